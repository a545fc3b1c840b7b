// A copy of an SQLite store, taken while other processes write to it: all that was committed when it began, with what is still in the
// write-ahead log and with all blobs. It is a store of its own, and replaces nothing.
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { steadyClock } from '../plan/clock.ts'
import { loadDriver } from './driver.ts'
import { closeFile } from './open.ts'
import { openReadable, whenRoom } from './open-full.ts'

/** `check` reads the copy before it gets its name. Until then nothing stands at `to` but an empty file. */
export async function backUpFile(from: string, to: string, check: (copy: string) => Promise<void>): Promise<void> {
  reserveFile(to)
  const copy = `${to}.partial`
  try {
    // Left by a backup that was killed.
    removeCopy(copy)
    closeSync(openSync(copy, 'wx', 0o600))
    await writeCopy(from, copy)
    await check(copy)
    for (const end of ['-wal', '-shm', '-mark']) rmSync(`${copy}${end}`, { force: true })
    syncPath(copy)
    renameSync(copy, to)
    syncPath(dirname(to))
  } catch (error) {
    removeCopy(copy)
    rmSync(to, { force: true })
    throw error
  }
}

function reserveFile(to: string): void {
  try {
    closeSync(openSync(to, 'wx', 0o600))
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (exists) throw new Fault('conflict', `${to} is there already. A backup replaces nothing: name a new file.`)
    throw new Fault('io_error', `${to} cannot be made: check that its folder is there and yours.`, String(error))
  }
}

/** One read of the file as it was at one moment. Writers go on. */
async function writeCopy(from: string, copy: string): Promise<void> {
  const { connection } = await openReadable(from, loadDriver(), steadyClock)
  try {
    await whenRoom(copy, steadyClock, () => connection.db.prepare('VACUUM INTO ?').run(copy))
  } finally {
    closeFile(connection)
  }
}

function removeCopy(copy: string): void {
  for (const end of ['', '-wal', '-shm', '-mark', '-journal']) rmSync(`${copy}${end}`, { force: true })
}

function syncPath(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
