// A copy of an SQLite store, taken while other processes write to it: all that was committed when it began, with what is still in the
// write-ahead log and with all blobs. It is a store of its own, and replaces nothing.
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { steadyClock } from '../plan/clock.ts'
import { holdLock } from './alone.ts'
import { loadDriver } from './driver.ts'
import { closeFile } from './open.ts'
import { openReadable, whenRoom } from './open-full.ts'

/** `check` reads the copy before it gets its name. Until then nothing stands at `to`. */
export async function backUpFile(from: string, to: string, check: (copy: string) => Promise<void>): Promise<void> {
  refuseExisting(to)
  const copy = `${to}.partial`
  const lock = lockBackup(to, `${copy}-lock`)
  try {
    // A backup that was killed left these. One that runs has the lock.
    removeCopy(copy)
    closeSync(openSync(copy, 'wx', 0o600))
    await writeCopy(from, copy)
    await check(copy)
    for (const end of ['-wal', '-shm', '-mark']) rmSync(`${copy}${end}`, { force: true })
    syncPath(copy)
    giveName(copy, to)
    syncPath(dirname(to))
  } finally {
    removeCopy(copy)
    lock.release()
  }
}

function refuseExisting(to: string): void {
  if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) throw exists(to)
}

function exists(to: string): Fault {
  return new Fault('conflict', `${to} is there already. A backup replaces nothing: name a new file.`)
}

function lockBackup(to: string, path: string): { readonly release: () => void } {
  try {
    return holdLock(path)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.code === 'store_busy')
      throw new Fault('store_busy', `Another backup to ${to} is being made. Wait for it, or name another file.`)
    if (error.code !== 'io_error') throw error
    throw new Fault('io_error', `${to} cannot be made: check that its folder is there and yours.`, error.detail)
  }
}

/** A link refuses a name that is taken. Some file systems have no links: there the name is reserved for the moment of the rename. */
function giveName(copy: string, to: string): void {
  try {
    linkSync(copy, to)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw exists(to)
    if (!NO_LINKS.includes(codeOf(error))) throw error
    refuseExisting(to)
    closeSync(openSync(to, 'wx', 0o600))
    renameSync(copy, to)
  }
}

const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
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
