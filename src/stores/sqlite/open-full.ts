// Opens the database of an SQLite store where the disk may be full. A full disk has no room for the index of the write-ahead log that
// processes share, so there the file is opened for this process alone, and can only be read.
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import type { Driver } from './driver.ts'
import { fullFault } from './fault.ts'
import { hasRoom } from './file.ts'
import { type Connection, openFile } from './open.ts'
import { whenFree } from './writer.ts'

/** `full`: the disk is full, and no other process can use the file until this connection is closed. */
export type Readable = { readonly connection: Connection; readonly full: boolean }

export async function openReadable(file: string, driver: Driver, clock: Clock): Promise<Readable> {
  try {
    return { connection: await whenFree(clock, () => openFile(file, driver)), full: false }
  } catch (error) {
    if (!isFull(file, error)) throw error
    return { connection: await whenFree(clock, () => openFile(file, driver, true)), full: true }
  }
}

/** Tries until it is not busy. A failure on a disk without room is reported as a full disk. */
export async function whenRoom<T>(file: string, clock: Clock, act: () => T): Promise<T> {
  return whenFree(clock, act).catch((error: unknown) => {
    throw isFull(file, error) ? fullFault() : error
  })
}

function isFull(file: string, error: unknown): boolean {
  if (!(error instanceof Fault)) return false
  return error.code === 'disk_full' || (error.code === 'io_error' && !hasRoom(file))
}
