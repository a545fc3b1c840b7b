// Traces on this machine: one file of JSON lines per trace, in a folder per project that only its owner can read.
// Nothing leaves the machine here, and nothing is deleted unless a bound is given.
import { hash } from 'node:crypto'
import {
  chmod,
  constants,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import { countCheck, nonEmptyCheck, requiredCheck, optionsChecker, objectCheck, optionsCheck } from '../options.ts'
import { recordOf, recordsIn, type SpanRecord } from './span-record.ts'
import type { Capture, Span } from '../view/spans/span.ts'
import { captureCheck, type Sink } from './sink.ts'

/** Both bounds apply. The newest trace is kept, however large. */
type KeepBounds = { readonly files: number; readonly bytes: number }

/** Options of `localTraces`: the folder, what is captured, and how much is kept. */
export type LocalOptions = {
  /** Default: `~/.terret/traces`. */
  readonly dir?: string
  /** The name for the project's folder. Default: the current folder. */
  readonly name?: string
  /** Which texts are kept. Default `none`. */
  readonly capture?: Capture
  /** How much is kept of this project; the oldest traces go first. Default: all of it. */
  readonly keep?: KeepBounds
  /** The environment in which `TERRET_DISABLE_LOCAL_TRACING` is looked up. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const checkOptions = optionsChecker<LocalOptions>('localTraces', {
  dir: nonEmptyCheck,
  name: nonEmptyCheck,
  capture: captureCheck,
  keep: optionsCheck<KeepBounds>({ files: requiredCheck(countCheck()), bytes: requiredCheck(countCheck()) }),
  env: objectCheck,
})

/** A long-lived process cleans up again after this many exports. */
const SWEEP_EVERY = 50

/** A sink that writes traces to files of this machine, one for each trace. */
export type LocalTraces = Sink & {
  /** `<dir>/<name>-<hash>`. It contains `<trace id>.jsonl`, and with captured content `prompts/<hash>.txt`. */
  readonly folder: string
}

/** With `TERRET_DISABLE_LOCAL_TRACING` set to 1, true or yes it writes nothing. */
export function localTraces(options: LocalOptions = {}): LocalTraces {
  checkOptions(options)
  const { dir = join(homedir(), '.terret', 'traces'), name = process.cwd(), capture = 'none', keep } = options
  const folder = join(dir, `${slug(name)}-${hash('sha1', name).slice(0, 10)}`)
  const off = /^(1|true|yes)$/i.test((options.env ?? process.env)['TERRET_DISABLE_LOCAL_TRACING']?.trim() ?? '')
  const written = new Set<string>()
  let exports = 0
  const write = async (spans: readonly Span[], texts: ReadonlyMap<string, string>): Promise<void> => {
    await ensureOwnFolder(folder)
    for (const [traceId, of] of groupByTrace(spans)) await appendSpans(join(folder, `${traceId}.jsonl`), of)
    if (texts.size > 0) await ensureOwnFolder(join(folder, 'prompts'))
    for (const [hashed, text] of texts) {
      if (!written.has(hashed)) await keepText(join(folder, 'prompts'), hashed, text)
      written.add(hashed)
    }
    if (keep && exports++ % SWEEP_EVERY === 0) await sweepTraces(folder, keep)
  }
  return {
    name: 'local traces',
    capture,
    folder,
    export: (spans, { texts }) => (off ? Promise.resolve() : write(spans, texts)),
    close: () => Promise.resolve(),
  }
}

/** The spans in one trace file. Lines that a crash left incomplete are skipped. */
export async function readTrace(file: string): Promise<readonly SpanRecord[]> {
  return recordsIn(await readFile(file))
}

function slug(name: string): string {
  const short = basename(name)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 48)
  return short.replace(/^-+|-+$/g, '') || 'project'
}

function groupByTrace(spans: readonly Span[]): ReadonlyMap<string, readonly Span[]> {
  const groups = new Map<string, Span[]>()
  for (const span of spans) {
    const group = groups.get(span.traceId)
    if (group) group.push(span)
    else groups.set(span.traceId, [span])
  }
  return groups
}

/** A folder that another user prepared could be read by them. */
async function ensureOwnFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  const found = await lstat(path)
  const foreign = process.getuid !== undefined && found.uid !== process.getuid()
  if (!found.isDirectory() || foreign)
    throw new Fault('io_error', `Traces are not written to ${path}: it is not a folder of one's own.`)
  if ((found.mode & 0o077) !== 0) await chmod(path, 0o700)
}

/**
 * One write for the whole batch. If an earlier write was cut short, even within a character, its line is ended first.
 */
async function appendSpans(path: string, spans: readonly Span[]): Promise<void> {
  const file = await openOwnFile(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT)
  try {
    const lines = spans.map((span) => `${JSON.stringify(recordOf(span))}\n`).join('')
    await file.appendFile(`${(await isTorn(file)) ? '\n' : ''}${lines}`)
  } finally {
    await file.close()
  }
}

async function isTorn(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] !== 0x0a
}

/** Complete or absent: the file is written beside its place and then renamed. */
async function keepText(folder: string, hashed: string, text: string): Promise<void> {
  if (!/^[0-9a-f]{64}$/.test(hashed)) return
  const path = join(folder, `${hashed}.txt`)
  if (await stat(path).catch(() => null)) return
  const beside = `${path}.${process.pid}`
  const file = await openOwnFile(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC)
  try {
    await file.writeFile(text)
  } finally {
    await file.close()
  }
  await rename(beside, path)
}

/** Never follows a link, and never writes into a pipe. */
async function openOwnFile(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0), 0o600)
  const found = await file.stat()
  if (found.isFile() && found.nlink === 1) return file
  await file.close()
  throw new Fault('io_error', `Traces are not written to ${path}: it is not a file of one's own.`)
}

const TRACE = /^[0-9a-f]{32}\.jsonl$/

/** Removes the oldest files first. Only files named like a trace are touched: each can be made again from the log. */
async function sweepTraces(folder: string, keep: KeepBounds): Promise<void> {
  const names = (await readdir(folder)).filter((name) => TRACE.test(name))
  const found = await Promise.all(names.map((name) => traceFileAt(join(folder, name))))
  const newest = found.flat().toSorted((a, b) => b.at - a.at)
  let bytes = 0
  for (const [i, { path, size }] of newest.entries()) {
    bytes += size
    if (i > 0 && (i >= keep.files || bytes > keep.bytes)) await rm(path, { force: true })
  }
}

type TraceFile = { readonly path: string; readonly size: number; readonly at: number }

/** Another process may have removed it meanwhile. */
async function traceFileAt(path: string): Promise<readonly TraceFile[]> {
  try {
    const { size, mtimeMs } = await lstat(path)
    return [{ path, size, at: mtimeMs }]
  } catch {
    return []
  }
}
