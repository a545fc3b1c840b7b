// Opens the database of an SQLite store where the disk may be full. A full disk has no room for the shared index of the
// write-ahead log, so the file is opened for this process alone and can only be read.
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import type { Driver } from './driver.ts'
import { fullFault } from './sqlite-faults.ts'
import { hasRoom } from './database-file.ts'
import { type SqliteConnection, openSqliteFile } from './open-file.ts'
import { runWhenFree } from './sqlite-writer.ts'

/** `full`: the disk is full, and no other process can use the file until this connection is closed. */
export type ReadableDatabase = { readonly connection: SqliteConnection; readonly full: boolean }

export async function openReadable(file: string, driver: Driver, clock: Clock): Promise<ReadableDatabase> {
  try {
    return { connection: await runWhenFree(clock, () => openSqliteFile(file, driver)), full: false }
  } catch (error) {
    if (!isFull(file, error)) throw error
    return { connection: await runWhenFree(clock, () => openSqliteFile(file, driver, true)), full: true }
  }
}

/** Tries until the file is not busy. A failure on a full disk is reported as a full disk. */
export async function runWithRoom<T>(file: string, clock: Clock, act: () => T): Promise<T> {
  return runWhenFree(clock, act).catch((error: unknown) => {
    throw isFull(file, error) ? fullFault() : error
  })
}

function isFull(file: string, error: unknown): boolean {
  if (!(error instanceof Fault)) return false
  return error.code === 'disk_full' || (error.code === 'io_error' && !hasRoom(file))
}
