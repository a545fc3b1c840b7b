// Where an SQLite store may live and who may read it: directories, permissions, and file systems that cannot be trusted with locks.
// It opens no database: sqlite-open.ts does.
import { chmodSync, closeSync, openSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import { makeFolder } from './folder.ts'

/** The magic number of the file system that holds a path, as statfs(2) gives it. */
export type FileSystemOf = (path: string) => number

/**
 * Locks and shared memory of these are not reliable between machines, and WAL needs both.
 * FUSE is not among them: it says nothing about what is behind it, and is often a local disk.
 */
const networked: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x564c, 'NCP'],
  [0x73757245, 'Coda'],
  [0x0bd00bd0, 'Lustre'],
])

export function realFileSystemOf(path: string): number {
  // The numbers are Linux's; elsewhere they mean other things.
  return process.platform === 'linux' ? statfsSync(path).type : 0
}

/** Makes the directory and the file, for nobody but their owner, and returns the file's full path. */
export function prepareFile(path: string, fileSystemOf: FileSystemOf): string {
  if (typeof path !== 'string' || path.trim() === '' || path === ':memory:') {
    throw new Fault('invalid_config', 'An SQLite store needs the path of a file. For a store in memory use memory().')
  }
  const file = resolve(path)
  try {
    makeFolder(dirname(file))
    refuseNetwork(dirname(file), fileSystemOf)
    // Made before SQLite opens it: whatever the umask is, its -wal and -shm files get the same permissions.
    closeSync(openSync(file, 'a', 0o600))
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
    return file
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault(
      'io_error',
      `The file ${file} cannot be made private and opened: check its directory.`,
      String(error),
    )
  }
}

function refuseNetwork(directory: string, fileSystemOf: FileSystemOf): void {
  const name = networked.get(fileSystemOf(directory) >>> 0)
  if (name === undefined) return
  const text = `${directory} is on ${name}, a network file system, where SQLite can lose data. Use a local disk.`
  throw new Fault('store_unsupported', text)
}

/** Which file stands at this path, or 0. Changes when somebody removes or replaces it. */
export function identify(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? 0
}
