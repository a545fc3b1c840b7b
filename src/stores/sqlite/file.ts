// Where an SQLite store may live, and with which permissions: directories, permissions, and file systems that cannot be trusted with locks.
// It opens no database: open.ts does.
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Fault } from '../../kernel/failure.ts'
import { makeFolder } from '../plan/folder.ts'

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

/** Makes the directory and the file, readable by their owner only, and returns the file's full path. */
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
    accessSync(dirname(file), constants.W_OK)
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

/** The file to open. `readOnly`: it is a copy, made to be read, because the file itself cannot be written. */
export type Prepared = { readonly file: string; readonly readOnly: boolean }

/** The same for reading only: a file that is there and cannot be written is copied. */
export function prepareReading(path: string, fileSystemOf: FileSystemOf): Prepared {
  try {
    return { file: prepareFile(path, fileSystemOf), readOnly: false }
  } catch (error) {
    const forbidden = error instanceof Fault && /\b(EACCES|EPERM|EROFS)\b/.test(error.detail)
    const copy = forbidden && existsSync(path) ? copyOf(resolve(path)) : null
    if (copy === null) throw error
    return { file: copy, readOnly: true }
  }
}

const COPIES_MAX = 5

/**
 * SQLite needs to write beside a database to read one that has a write-ahead log. So where it may not, a copy is read. Taken again if
 * another process wrote meanwhile.
 */
function copyOf(file: string): string | null {
  if (!['', '-wal'].every((end) => isReadable(`${file}${end}`))) return null
  const folder = mkdtempSync(join(tmpdir(), 'terret-read-'))
  const copy = join(folder, 'terret.db')
  for (let i = 0; i < COPIES_MAX; i++) {
    const before = stateOf(file)
    for (const end of ['', '-wal']) {
      rmSync(`${copy}${end}`, { force: true })
      if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, `${copy}${end}`, constants.COPYFILE_FICLONE)
    }
    if (stateOf(file) !== before) continue
    for (const end of ['', '-wal']) if (existsSync(`${copy}${end}`)) chmodSync(`${copy}${end}`, 0o600)
    return copy
  }
  dropCopy(copy)
  throw new Fault('store_busy', `${file} is written to while it is copied to be read. Try again.`)
}

/** What is not there need not be read. */
function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return !existsSync(file)
  }
}

export function dropCopy(copy: string): void {
  rmSync(dirname(copy), { recursive: true, force: true })
}

function stateOf(file: string): string {
  const parts = ['', '-wal'].map((end) => statSync(`${file}${end}`, { throwIfNoEntry: false, bigint: true }))
  return parts.map((stat) => (stat ? `${stat.size}:${stat.mtimeNs}` : '')).join(' ')
}

/** Whether so much more could be written to the file system of this file. Default: anything at all. */
export function hasRoom(file: string, bytes = 1): boolean {
  const { bavail, bsize, blocks } = statfsSync(dirname(file))
  // Some file systems do not report it.
  return blocks === 0 || bavail * bsize >= bytes
}

function refuseNetwork(directory: string, fileSystemOf: FileSystemOf): void {
  const name = networked.get(fileSystemOf(directory) >>> 0)
  if (name === undefined) return
  const text = `${directory} is on ${name}, a network file system, where SQLite can lose data. Use a local disk.`
  throw new Fault('store_unsupported', text)
}

/** Which file stands at this path, or ''. Changes when it is removed or replaced. */
function identify(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat ? `${stat.dev}:${stat.ino}` : ''
}

/** The same of a database and its log: while it is open both stay the same files. */
export function identifyBoth(file: string): string {
  return `${identify(file)} ${identify(`${file}-wal`)}`
}
