// Turns SQLite's error codes into Faults with a sentence for the caller. The writer decides how to react.
import { Fault, type FaultCode } from '../../kernel/failure.ts'

const BUSY = 5
const LOCKED = 6
/** Too many tries for a place in the shared index: another form of busy. */
const PROTOCOL = 15
const CORRUPT = 11
const CONSTRAINT = 19

/**
 * The index that processes share beside the file could not grow. SQLite reports a failed disk, but no data was touched.
 */
const IOERR_SHMSIZE = 4874

const FULL: readonly [FaultCode, string] = [
  'disk_full',
  'The disk is full. Nothing was written; make room and try again.',
]

const BUSY_TEXT = 'Other processes kept the database locked for too long. Nothing was written; try again.'

const texts: ReadonlyMap<number, readonly [FaultCode, string]> = new Map([
  [BUSY, ['store_busy', BUSY_TEXT]],
  [LOCKED, ['store_busy', BUSY_TEXT]],
  [PROTOCOL, ['store_busy', BUSY_TEXT]],
  [8, ['io_error', 'The database file cannot be written: check its permissions.']],
  [10, ['io_error', 'The disk failed. The store is read-only until it is opened again.']],
  [CORRUPT, ['store_damaged', 'The database file is damaged. Restore it from a backup.']],
  [13, FULL],
  [14, ['io_error', 'The database file cannot be opened: check that its directory exists and is yours.']],
  [CONSTRAINT, ['store_damaged', 'The database contradicts itself. Restore it from a backup.']],
  [26, ['store_damaged', 'The file is not an SQLite database. Choose another path, or restore it from a backup.']],
])

/** The prefix of the error message of a moved file. */
export const MOVED = 'moved: '

/** A Fault stays as it is; an SQLite error becomes one; anything else is a bug and passes through. */
export function toFault(error: unknown): Error {
  if (error instanceof Fault) return error
  const known = isSharedIndexFull(error) ? FULL : texts.get(primaryCode(error))
  const detail = error instanceof Error ? error.message : String(error)
  if (isMoved(error)) return new Fault('store_replaced', detail.slice(MOVED.length))
  if (known) return new Fault(known[0], known[1], detail)
  return error instanceof Error ? error : new Error(detail)
}

/** The file was moved to another store: it can be read as before, but not written. */
export function isMoved(error: unknown): boolean {
  return primaryCode(error) === CONSTRAINT && error instanceof Error && error.message.startsWith(MOVED)
}

function isSharedIndexFull(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === IOERR_SHMSIZE
}

export function fullFault(): Fault {
  return new Fault(...FULL)
}

export function fileBusyFault(): Fault {
  return new Fault('store_busy', BUSY_TEXT)
}

export function isBusy(error: unknown): boolean {
  return [BUSY, LOCKED, PROTOCOL].includes(primaryCode(error))
}

export function primaryCode(error: unknown): number {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : 0
  return typeof code === 'number' ? code & 0xff : 0
}
