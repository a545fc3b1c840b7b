// The projections of a log as one import, for those who show sessions: the command line, the server, the pages, and pages of others.
// All of it runs in a browser. What has to happen is the kernel's to say; how a log is read from a store is elsewhere.
export { CallLog, type CallDecision, contentOf, type Decided, decisionsIn, type LoggedCall } from './calls.ts'
export {
  type Amounts,
  type AnyCall,
  BUDGET,
  isForChild,
  mayWait,
  type OwnPending,
  ownPending,
  type Pending,
} from './pending.ts'
export { cardOf } from './card.ts'
export { clean, exposedLine, oneLine, type Piece, piecesOf, safeJson, shownLine } from './clean.ts'
export {
  type Comparison,
  compareLogs,
  type ComparedLog,
  type Difference,
  type Pair,
  type Step,
  type Totals,
} from './compare.ts'
export {
  bySource,
  type CacheMiss,
  type CompactionRecord,
  ContextLog,
  type ContextPart,
  missIn,
  requestAt,
  requestsIn,
  type ShownRequest,
  type ShownSource,
  SOURCE_NAMES,
  type SourceKind,
  toolSources,
} from './context.ts'
export { diff, type DiffLine, diffLines } from './diff.ts'
export { type ArgChange, argChanges, changesText, editTexts } from './edited.ts'
export {
  drawingIn,
  type GraphDrawing,
  type GraphEdge,
  type GraphLine,
  type GraphNode,
  linesOf,
  mermaidOf,
  nodeNotes,
  type NodeStanding,
  standingsOf,
} from './graph.ts'
export { type Handoff, handoffIn } from './handoffs.ts'
export { Heard, type Piece as HeardPiece } from './heard.ts'
export { isCheckpoint, stateIn, stateOfReply, type Stop, stopsOf } from './node-stops.ts'
export { sourcesOf } from './sources.ts'
export { runsOf, type TracedRun } from './spans/project.ts'
export type { Capture, SessionLog, Span } from './spans/span.ts'
export { clipped, counted, shortened, textOf } from './text.ts'
export {
  type CallRow,
  type CallStateWord,
  Timeline,
  timelineOf,
  type TimelineRow,
  type TurnRow,
  type Waits,
} from './timeline.ts'
export { drawnTree, isQuarantined, isWorking, stateOf, tookText, type TreeRow, treeRows, type Wait } from './tree.ts'
export { usdOf, usdText } from './usd.ts'
export {
  type Bar,
  barsOf,
  type ChildRows,
  placeOn,
  type Scale,
  scaleOf,
  type Stretch,
  type TreeBar,
  treeBars,
} from './waterfall.ts'
