// The projections of a log as one import, for programs that show sessions: the command line, the server, the pages, and
// other pages. All of it runs in a browser. The kernel decides the next steps; reading a log from a store is elsewhere.
export { CallLog, type CallDecision, contentOf, type DecisionRecord, decisionsIn, type LoggedCall } from './call-log.ts'
export {
  type Amounts,
  type AnyCall,
  BUDGET,
  isForChild,
  mayWait,
  type OwnPending,
  ownPending,
  type Pending,
} from './pending-calls.ts'
export { cardOf } from './card.ts'
export { clean, exposedLine, oneLine, type CleanPiece, piecesOf, safeJson, shownLine } from './clean.ts'
export {
  type Comparison,
  compareLogs,
  type ComparedLog,
  type Difference,
  type Pair,
  type ComparedStep,
  type Totals,
} from './compare-logs.ts'
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
} from './request-context.ts'
export { diff, type DiffLine, diffLines } from './line-diff.ts'
export { type ArgChange, argChanges, changesText, editTexts } from './argument-changes.ts'
export {
  drawingIn,
  type GraphDrawing,
  type GraphEdge,
  type GraphLine,
  type GraphNode,
  graphLines,
  mermaidOf,
  nodeNotes,
  type NodeStanding,
  standingsOf,
} from './graph-drawing.ts'
export { type Handoff, handoffIn } from './handoff-record.ts'
export { HeardReply, type HeardPiece } from './heard-reply.ts'
export { isCheckpoint, stateIn, stateOfReply, type NodeStop, stopsOf } from './node-stops.ts'
export { sourcesOf } from './cited-sources.ts'
export { runsOf, type TracedRun } from './spans/project-spans.ts'
export type { Capture, SessionLog, Span } from './spans/span.ts'
export { clipText, countNoun, shortenText, textOf } from './shown-text.ts'
export {
  type CallRow,
  type CallStateWord,
  Timeline,
  timelineOf,
  type TimelineRow,
  type TurnRow,
  type Waits,
} from './timeline.ts'
export {
  drawTree,
  isQuarantined,
  isWorking,
  stateOf,
  durationText,
  type TreeRow,
  treeRows,
  type TreeWait,
} from './tree-rows.ts'
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
