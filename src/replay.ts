// Recorded sessions: taken to another store as a checked file, folded and decided again by today's code, and run again.
export { exportSession, importSession, type Portable } from './runtime/portable.ts'
export { type Misfold, readChildren, readLog, type Refolded, refold } from './runtime/replay.ts'
export type { Rerun } from './runtime/replay-compare.ts'
export { type Redecided, redecide, unwritten } from './runtime/replay-decide.ts'
export { type Recording, recordingOf, type RerunOptions } from './runtime/replay-run.ts'
