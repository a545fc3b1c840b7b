// Where an SQLite store may be, and with which permissions: directories, and file systems whose locks cannot be
// trusted. It opens no database: open-file.ts does.
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
import { makeFolder } from '../plan/make-folder.ts'

/** The magic number of a path's file system, as statfs(2) returns it. */
export type FileSystemOf = (path: string) => number

/**
 * Locks and shared memory of these are not reliable between machines, and WAL needs both. FUSE is not listed: it does
 * not say what is behind it, and is often a local disk.
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

/** Creates the directory and the file, readable by their owner only, and returns the file's full path. */
export function prepareFile(path: string, fileSystemOf: FileSystemOf): string {
  if (typeof path !== 'string' || path.trim() === '' || path === ':memory:') {
    throw new Fault('invalid_config', 'An SQLite store needs the path of a file. For a store in memory use memory().')
  }
  const file = resolve(path)
  try {
    makeFolder(dirname(file))
    refuseNetwork(dirname(file), fileSystemOf)
    // Created before SQLite opens it, so that its -wal and -shm files get the same permissions under any umask.
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

/** The file to open. `readOnly`: it is a copy for reading, because the file itself cannot be written. */
export type PreparedFile = { readonly file: string; readonly readOnly: boolean }

/** The same for reading only: an existing file that cannot be written is copied. */
export function prepareReading(path: string, fileSystemOf: FileSystemOf): PreparedFile {
  try {
    return { file: prepareFile(path, fileSystemOf), readOnly: false }
  } catch (error) {
    const forbidden = error instanceof Fault && /\b(EACCES|EPERM|EROFS)\b/.test(error.detail)
    const copy = forbidden && existsSync(path) ? copyForReading(resolve(path)) : null
    if (copy === null) throw error
    return { file: copy, readOnly: true }
  }
}

const COPIES_MAX = 5

/**
 * To read a database with a write-ahead log, SQLite must write beside it. Where it may not, a copy is read. The copy is
 * made again if another process wrote meanwhile.
 */
function copyForReading(file: string): string | null {
  if (!['', '-wal'].every((end) => isReadable(`${file}${end}`))) return null
  const folder = mkdtempSync(join(tmpdir(), 'terret-read-'))
  const copy = join(folder, 'terret.db')
  for (let i = 0; i < COPIES_MAX; i++) {
    const before = fileStamp(file)
    for (const end of ['', '-wal']) {
      rmSync(`${copy}${end}`, { force: true })
      if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, `${copy}${end}`, constants.COPYFILE_FICLONE)
    }
    if (fileStamp(file) !== before) continue
    for (const end of ['', '-wal']) if (existsSync(`${copy}${end}`)) chmodSync(`${copy}${end}`, 0o600)
    return copy
  }
  dropCopy(copy)
  throw new Fault('store_busy', `${file} is written to while it is copied to be read. Try again.`)
}

/** A missing file need not be readable. */
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

function fileStamp(file: string): string {
  const parts = ['', '-wal'].map((end) => statSync(`${file}${end}`, { throwIfNoEntry: false, bigint: true }))
  return parts.map((stat) => (stat ? `${stat.size}:${stat.mtimeNs}` : '')).join(' ')
}

/** Whether this many more bytes fit on the file's file system. Default: any at all. */
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

/** Identifies the file at this path, or '' if there is none. Changes when the file is removed or replaced. */
function fileIdentity(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat ? `${stat.dev}:${stat.ino}` : ''
}

/** The same for a database and its log: while it is open both stay the same files. */
export function filesIdentity(file: string): string {
  return `${fileIdentity(file)} ${fileIdentity(`${file}-wal`)}`
}
