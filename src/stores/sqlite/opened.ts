// What the store needs once it has a file to open: statements, reading, writing, watching. Loaded by the first store that is used
// (store.ts), so that a process whose sessions live in memory loads none of it.
export { CardNews } from './card-news.ts'
export { fullFault } from './fault.ts'
export { dropCopy, hasRoom, prepareReading } from './file.ts'
export { checkMark, MarkFile, moveIn, readMark } from './mark.ts'
export { closeFile } from './open.ts'
export { openReadable } from './open-full.ts'
export {
  isAnyAhead,
  readAccount,
  readAhead,
  readBlob,
  readCard,
  readDue,
  readHealth,
  readHolders,
  readBelow,
  readList,
  readLog,
  readNextDue,
} from './read.ts'
export { readPage } from './pages.ts'
export { readSnapshot } from './snapshots.ts'
export { Watcher } from './watch.ts'
export { Writer, whenFree } from './writer.ts'
