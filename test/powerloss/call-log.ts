// The log of calls that a recorder wrote (call-record.h), as data: which file or name changed, in which order, and what was synced.
// It begins with what was there, and ends with a line that says so: a log that was cut is refused. What a disk may have kept of it
// is disk.ts.
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join, relative } from 'node:path'

const MAGIC = 0x31434c54
const HEAD_BYTES = 40
/** By number, as in call-record.h. What this program adds has a high one. */
const KINDS = {
  1: 'name',
  2: 'write',
  3: 'size',
  4: 'sync begin',
  5: 'sync end',
  6: 'folder sync',
  7: 'rename',
  8: 'remove',
  9: 'folder',
  10: 'grow',
  11: 'unknown',
  100: 'begin',
  101: 'end',
} as const
type Kind = (typeof KINDS)[keyof typeof KINDS]

/** `path` is relative to the recorded folder. `offset` is a size where a size was set. */
export type Call = {
  readonly kind: Kind
  readonly process: number
  /** Not its number in the folder: a name that leads to it may be another one later. */
  readonly file: bigint
  readonly offset: number
  readonly path: string
  readonly data: Buffer
}

/** What was recorded, for whoever reads the log alone. */
export type Recorded = {
  readonly root: string
  readonly store: 'sqlite' | 'postgres'
  readonly seed: number
  /** The program that wrote down what was there before. */
  readonly process: number
}
export type CallLog = { readonly recorded: Recorded; readonly calls: readonly Call[] }

/** Throws a sentence about what is wrong with this file. */
export function readCallLog(file: string): CallLog {
  const calls: Call[] = []
  const bytes = readBytes(file)
  let recorded: Recorded | null = null
  for (let at = 0; at < bytes.length; ) {
    const { call, end } = callAt(bytes, at, file)
    at = end
    if (call.kind === 'begin') recorded = JSON.parse(call.data.toString()) as Recorded
    else if (recorded === null) throw new Error(`${file} is no log of calls.`)
    else calls.push(placed(call, recorded.root))
  }
  if (recorded === null) throw new Error(`${file} is no log of calls.`)
  if (calls.at(-1)?.kind !== 'end')
    throw new Error(`${file} was cut: it has ${calls.length} whole calls and no end. Record it again.`)
  const unknown = calls.find(({ kind }) => kind === 'unknown')
  if (unknown) throw new Error(`${file} has a call that is not understood: ${unknown.path}.`)
  return { recorded, calls: calls.slice(0, -1) }
}

function readBytes(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function callAt(bytes: Buffer, at: number, file: string): { readonly call: Call; readonly end: number } {
  const isWhole = bytes.length - at >= HEAD_BYTES
  if (!isWhole || bytes.readUInt32LE(at) !== MAGIC)
    throw new Error(
      at === 0 ? `${file} is no log of calls.` : `${file} was cut, or is damaged, at byte ${at}. Record it again.`,
    )
  const pathEnd = at + HEAD_BYTES + bytes.readUInt32LE(at + 12)
  const end = pathEnd + Number(bytes.readBigUInt64LE(at + 16))
  const kind = KINDS[bytes.readUInt32LE(at + 4) as keyof typeof KINDS] as Kind | undefined
  if (kind === undefined || end > bytes.length)
    throw new Error(`${file} was cut, or is damaged, at byte ${at}. Record it again.`)
  const call = {
    kind,
    process: bytes.readUInt32LE(at + 8),
    file: bytes.readBigUInt64LE(at + 24),
    offset: Number(bytes.readBigInt64LE(at + 32)),
    path: bytes.toString('utf8', at + HEAD_BYTES, pathEnd),
    data: bytes.subarray(pathEnd, end),
  }
  return { call, end }
}

/** A file whose only name was removed while it was open is shown with this. */
const DELETED = ' (deleted)'

function placed(call: Call, root: string): Call {
  const path = call.path.startsWith('/') ? relative(root, call.path) : call.path
  const data = call.kind === 'rename' ? Buffer.from(relative(root, call.data.toString())) : call.data
  return { ...call, path: path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path, data }
}

/** What this program itself says in the log. Recorders append to it meanwhile. */
export class CallWriter {
  readonly #fd: number

  constructor(file: string, recorded: Recorded) {
    this.#fd = openSync(file, 'ax', 0o600)
    this.#add('begin', { data: Buffer.from(JSON.stringify(recorded)) })
    this.#addFolder(recorded.root, recorded.root)
  }

  /** Nothing is recorded any more. */
  end(): void {
    this.#add('end', {})
    closeSync(this.#fd)
  }

  /** What is there before anything is recorded is on the disk. */
  #addFolder(root: string, folder: string): void {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        this.#add('folder', { path })
        this.#addFolder(root, path)
      } else if (entry.isFile()) {
        const file = fileNumber(path)
        this.#add('name', { file, path })
        this.#add('write', { file, path, data: readFileSync(path) })
        this.#add('sync begin', { file, path })
        this.#add('sync end', { file, path })
      } else throw new Error(`${path} is no plain file, and cannot be recorded.`)
    }
    this.#add('folder sync', { path: folder })
  }

  #add(kind: Kind, { file = 0n, path = '', data = Buffer.alloc(0) }: Partial<Pick<Call, 'file' | 'path' | 'data'>>) {
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeUInt32LE(MAGIC, 0)
    head.writeUInt32LE(numberOf(kind), 4)
    head.writeUInt32LE(process.pid, 8)
    head.writeUInt32LE(Buffer.byteLength(path), 12)
    head.writeBigUInt64LE(BigInt(data.length), 16)
    head.writeBigUInt64LE(file, 24)
    const bytes = Buffer.concat([head, Buffer.from(path), data])
    if (writeSync(this.#fd, bytes) !== bytes.length) throw new Error('the log was written only in part')
  }
}

function numberOf(kind: Kind): number {
  return Number(Object.entries(KINDS).find(([, name]) => name === kind)?.[0])
}

/** As `record_file_number` in call-record.h. */
function fileNumber(path: string): bigint {
  const { ino, birthtimeNs } = statSync(path, { bigint: true })
  return BigInt.asUintN(64, (ino * 1_000_003n) ^ birthtimeNs)
}
