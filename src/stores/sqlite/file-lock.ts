// Lets one process run at a time, by a lock of the operating system that ends with its process, however that ends.
import { lstatSync, rmSync } from 'node:fs'
import { Fault } from '../../kernel/failure.ts'
import { type Database, loadDriver } from './driver.ts'
import { fullFault, isBusy } from './sqlite-faults.ts'

const WAIT_MS = 1_000

/** `path` is a file used only for this. The event loop waits too, so the work must be short. */
export function withFileLock<T>(path: string, work: () => T): T {
  const db = lockFile(path)
  try {
    return work()
  } catch (error) {
    const isFull = error instanceof Error && 'code' in error && error.code === 'ENOSPC'
    throw isFull ? fullFault() : error
  } finally {
    db.close()
  }
}

/**
 * Holds the lock until `release`, which also removes the file. A process that opened the file before its removal locks
 * a file without a name. So each checks whether the name still leads to the file it locked, and tries again if not.
 */
export function holdFileLock(path: string): { readonly release: () => void } {
  for (;;) {
    const before = inodeOf(path)
    const db = lockFile(path)
    if (before !== null && before === inodeOf(path))
      return {
        release: () => {
          rmSync(path, { force: true })
          db.close()
        },
      }
    db.close()
  }
}

function inodeOf(path: string): bigint | null {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino ?? null
}

function lockFile(path: string): Database {
  const Driver = loadDriver()
  let db: Database | null = null
  try {
    db = new Driver(path)
    // Nothing is ever written to this file. With the journal in memory it can be locked on a full disk too.
    db.exec(`PRAGMA busy_timeout = ${WAIT_MS}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`)
    return db
  } catch (error) {
    db?.close()
    if (isBusy(error)) throw new Fault('store_busy', `Another process has ${path}. Nothing was changed; try again.`)
    const text = `${path} cannot be made or locked. Check that its folder is there and yours, and remove it if it is no plain file.`
    throw new Fault('io_error', text, String(error))
  }
}
