// Recorded sessions: exported to another store as a checked file, examined, folded and decided again by today's code,
// and run again.
export { type Examination, examine, examineLog, type Finding } from './models/protocols/examine-transcript.ts'
export { type Archive, archiveOf, checkArchive, removeArchived, restoreArchive } from './archive/session-archive.ts'
export { exportSession, importSession, type Portable, type PortableRecord } from './archive/portable.ts'
export {
  importTranscript,
  TRANSCRIPT_FORMATS,
  type TranscriptFormat,
  type TranscriptReport,
} from './archive/foreign/import-transcript.ts'
export { portableText } from './archive/stream-file.ts'
export { type FilledStore, fillStore, streamStore } from './stores/move/store-stream.ts'
export {
  type OutdatedCard,
  checkStore,
  repairCard,
  type StoreCheck,
  type StoreCounts,
  type StoreProblem,
} from './archive/store-check.ts'
export { type FoldDifference, readChildren, type Refolded, refoldSession } from './archive/replay-refold.ts'
export { readLog } from './view/session-log.ts'
export type { Rerun } from './archive/replay-compare.ts'
export { type DecisionDifference, redecide, findUnwritten } from './archive/replay-decide.ts'
export { type Recording, recordingOf, type RerunOptions } from './archive/replay-run.ts'
export { stateAt } from './runtime/state/session-at.ts'
export {
  type MissingAnswer,
  type ParkedCall,
  type ToolMode,
  type ToolStub,
  type WhatIf,
  type WhatIfAgent,
  type WhatIfCase,
  type WhatIfLog,
  type WhatIfOptions,
  whatIf,
} from './whatif/what-if.ts'
export { type AgentChoices, changedAgent } from './whatif/choose-agent.ts'
