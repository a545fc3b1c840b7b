// Recorded sessions: taken to another store as a checked file, examined, folded and decided again by today's code, and run again.
export { type Examination, examine, examineLog, type Finding } from './models/protocols/doctor.ts'
export { type Archive, archiveOf, checkArchive, removeArchived, restoreArchive } from './archive/archive.ts'
export { exportSession, importSession, type Portable } from './archive/portable.ts'
export {
  type CardBehind,
  checkStore,
  repairCard,
  type StoreCheck,
  type StoreCounts,
  type StoreProblem,
} from './archive/store-check.ts'
export { type Misfold, readChildren, readLog, type Refolded, refold } from './archive/replay.ts'
export type { Rerun } from './archive/replay-compare.ts'
export { type Redecided, redecide, unwritten } from './archive/replay-decide.ts'
export { type Recording, recordingOf, type RerunOptions } from './archive/replay-run.ts'
export { stateAt } from './engine/state-at.ts'
