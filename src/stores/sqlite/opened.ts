// What the store needs once it has a file to open: statements, reading, writing, watching. Loaded by the first store that is used
// (store.ts), so that a process whose sessions live in memory loads none of it.
export { dropCopy, prepareReading } from './file.ts'
export { checkMark, readMark } from './mark.ts'
export { closeFile, openFile } from './open.ts'
export {
  isAnyAhead,
  readAccount,
  readAhead,
  readBlob,
  readCard,
  readDue,
  readHolders,
  readList,
  readLog,
  readNextDue,
  readSnapshot,
} from './read.ts'
export { Watcher } from './watch.ts'
export { Writer, whenFree } from './writer.ts'
