// Copies an SQLite store while other processes write to it: everything committed at the start, including the
// write-ahead log and all blobs. The copy is a store of its own, and replaces nothing.
import { closeSync, linkSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { syncPath } from '../plan/sync-path.ts'
import { steadyClock } from '../plan/system-clock.ts'
import { holdFileLock } from './file-lock.ts'
import { loadDriver } from './driver.ts'
import { closeSqliteFile } from './open-file.ts'
import { openReadable, runWithRoom } from './open-full.ts'

/** `check` reads the copy before it gets its name. Until then nothing exists at `to`. */
export async function backUpFile(from: string, to: string, check: (copy: string) => Promise<void>): Promise<void> {
  refuseExisting(to)
  const copy = `${to}.partial`
  const lock = lockBackup(to, `${copy}-lock`)
  try {
    // Left by a killed backup. A running backup has the lock.
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
  if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) throw existsFault(to)
}

function existsFault(to: string): Fault {
  return new Fault('conflict', `${to} is there already. A backup replaces nothing: name a new file.`)
}

function lockBackup(to: string, path: string): { readonly release: () => void } {
  try {
    return holdFileLock(path)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.code === 'store_busy')
      throw new Fault('store_busy', `Another backup to ${to} is being made. Wait for it, or name another file.`)
    if (error.code !== 'io_error') throw error
    throw new Fault('io_error', `${to} cannot be made: check that its folder is there and yours.`, error.detail)
  }
}

/**
 * A link refuses a taken name. Some file systems have no links; there the name is reserved for the moment of the
 * rename.
 */
function giveName(copy: string, to: string): void {
  try {
    linkSync(copy, to)
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw existsFault(to)
    if (!NO_LINKS.includes(errorCode(error))) throw error
    refuseExisting(to)
    closeSync(openSync(to, 'wx', 0o600))
    renameSync(copy, to)
  }
}

const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** One read of the file as of one moment. Writers go on. */
async function writeCopy(from: string, copy: string): Promise<void> {
  const { connection } = await openReadable(from, loadDriver(), steadyClock)
  try {
    await runWithRoom(copy, steadyClock, () => connection.db.prepare('VACUUM INTO ?').run(copy))
  } finally {
    closeSqliteFile(connection)
  }
}

function removeCopy(copy: string): void {
  for (const end of ['', '-wal', '-shm', '-mark', '-journal']) rmSync(`${copy}${end}`, { force: true })
}
