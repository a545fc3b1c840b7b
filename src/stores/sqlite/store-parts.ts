// The modules that the store needs once it opens a file: statements, reading, writing, watching. The first used store
// loads them (sqlite-store.ts), so a process with sessions only in memory loads none of them.
export { CardChanges } from './card-changes.ts'
export { fullFault } from './sqlite-faults.ts'
export { dropCopy, hasRoom, prepareReading } from './database-file.ts'
export { checkMark, MarkFile, findMove, readMark } from './store-mark.ts'
export { closeSqliteFile } from './open-file.ts'
export { openReadable } from './open-full.ts'
export {
  hasLeaseAhead,
  readAccount,
  readSessionsAhead,
  readBlob,
  readCard,
  readDue,
  readHealth,
  readHolders,
  readCardsBelow,
  readWakingCards,
  readCardList,
  readStoredLog,
  readNextDue,
} from './read-store.ts'
export { readStoredPage } from './sqlite-pages.ts'
export { readStoredSnapshot } from './sqlite-snapshots.ts'
export { WalWatcher } from './wal-watcher.ts'
export { SqliteWriter, runWhenFree } from './sqlite-writer.ts'
