// What a call would do to files as they are now, as plain data to be drawn by a terminal, a page, a server. For writes and
// edits the difference line by line, with what cannot be seen marked. It looks and decides nothing: what is allowed are the arguments.
import { isUtf8 } from 'node:buffer'
import type { FileState, Frozen, Json } from '../../kernel/content.ts'
import { type DiffLine, diffLines } from '../../view/diff.ts'
import { look } from './disk.ts'
import type { Seen } from './buffers.ts'
import { drawn, oddName } from '../../view/lookalike.ts'
import { type FileBuffers, guard, type GuardOptions, locate } from './paths.ts'
import { followLinks } from '../policy/links.ts'
import { placesIn } from '../policy/paths.ts'

/** `exposed`: a removed and an added line look the same, so every blank and every letter that is not plain must be told. */
export type PreviewLine = DiffLine & { readonly exposed?: true }

export type FileChange = Frozen<{
  path: string
  state: 'new' | 'changed' | 'same'
  added: number
  removed: number
  /** The file is not text: its lines are bytes in hexadecimal. */
  bytes: boolean
  lines: readonly PreviewLine[]
}>

export type Preview = Frozen<{
  /** Null for a call that is no plain write or edit: its arguments are all there is. */
  files: readonly FileChange[] | null
  /** Why it would fail as things are. */
  trouble: string | null
  /** What may mislead a reader, in words. */
  warnings: readonly string[]
}>

/** `files`: as they were when the call was asked about, if it was. */
export type Action = { readonly tool: string; readonly args: Json; readonly files?: readonly FileState[] }

/** Without a folder only what the call itself says. With `buffers` files are as an editor has them. */
export async function previewOf(
  folder: string | null,
  { tool, args, files }: Action,
  buffers?: FileBuffers,
): Promise<Preview> {
  const odd = warningsOf(tool, args)
  if (folder === null) return { files: null, trouble: null, warnings: odd }
  const warnings = [...odd, ...linkWarnings(tool, args, folder)]
  try {
    const changes = await changesOf({ root: folder, ...(buffers ? { buffers } : {}) }, tool, args)
    const other = files && changes?.find((change) => !isAsAsked(change, files))
    // What is not in the digest is not shown as what a yes would do.
    if (other) return { files: null, trouble: null, warnings: [...warnings, changedText(other.path)] }
    return { files: changes?.map(changeOf) ?? null, trouble: null, warnings }
  } catch (error) {
    return { files: null, trouble: error instanceof Error ? error.message : String(error), warnings }
  }
}

/** For a reader who sees the path as the model wrote it. */
function linkWarnings(tool: string, args: Json, folder: string): readonly string[] {
  if (tool !== 'write' && tool !== 'edit') return []
  return placesIn(args).flatMap((path) =>
    followLinks([path], folder).map((led) => `The path "${path}" leads through a link to "${led}".`),
  )
}

function warningsOf(tool: string, args: Json): readonly string[] {
  const names = [['tool', tool] as const, ...placesIn(args).map((path) => ['path', path] as const)]
  return names.flatMap(([what, name]) => {
    const odd = oddName(name)
    return odd === null ? [] : [`The ${what} "${name}" has letters that look like others: ${odd}.`]
  })
}

function isAsAsked({ at, seen }: Change, files: readonly FileState[]): boolean {
  return files.some(({ path, hash }) => path === at && hash === (seen?.hash ?? null))
}

function changedText(path: string): string {
  return `${path} changed since this was asked. After a yes the question comes once more, with ${path} as it is then.`
}

/** `at` is its real path. */
type Change = {
  readonly path: string
  readonly at: string
  readonly seen: Seen | null
  readonly after: string
  readonly appends: boolean
}

/** What the files would become. Null for a call that is no plain write or edit. */
async function changesOf(options: GuardOptions, tool: string, args: Json): Promise<readonly Change[] | null> {
  const files = new Map<string, Change>()
  const guarded = guard(options)
  const open = async (path: string): Promise<Change> => {
    const place = await locate(guarded, path, 'write')
    const known = files.get(place.shown)
    if (known) return known
    const seen = await look(guarded, place)
    return { path: place.shown, at: place.path, seen, after: seen?.bytes.toString() ?? '', appends: false }
  }
  const keep = (change: Change, after: string): void => void files.set(change.path, { ...change, after })
  if (tool === 'write') {
    const { path, content, append, expected_hash: expected } = args as Fields
    if (typeof path !== 'string' || typeof content !== 'string') return null
    const file = await open(path)
    if (typeof expected === 'string' && file.seen?.hash.startsWith(expected.toLowerCase()) !== true)
      throw new Error(`${file.path} is not what the model read`)
    const appends = append === true && file.seen !== null
    keep({ ...file, appends }, appends ? file.after + content : content)
  } else if (tool === 'edit') {
    const { edits } = args as Fields
    if (!Array.isArray(edits)) return null
    for (const edit of edits as readonly Fields[]) {
      const { path, old_string: old, new_string: fresh } = edit
      if (typeof path !== 'string' || typeof old !== 'string' || typeof fresh !== 'string' || old === '') return null
      const file = await open(path)
      keep(file, replaced(file, { old, fresh, all: edit['replace_all'] === true }))
    }
  } else return null
  return [...files.values()]
}

type Fields = { readonly [key: string]: Json }
type Replacing = { readonly old: string; readonly fresh: string; readonly all: boolean }

/** As `edit` does it, and with its words where it does not. */
function replaced({ path, after, seen }: Change, { old, fresh, all }: Replacing): string {
  if (seen === null) throw new Error(`there is no ${path}`)
  if (!isUtf8(seen.bytes)) throw new Error(`${path} is not text`)
  const pieces = after.split(old)
  if (pieces.length === 1) throw new Error(`the text to replace is not in ${path}`)
  if (pieces.length > 2 && !all) throw new Error(`the text to replace is in ${path} ${pieces.length - 1} times`)
  return pieces.join(fresh)
}

function changeOf({ path, seen, after, appends }: Change): FileChange {
  const before = seen?.bytes ?? Buffer.alloc(0)
  const bytes = !isUtf8(before)
  const lines = bytes ? bytesChanged(before, after, appends) : exposed(diffLines(before.toString(), after))
  const count = (mark: DiffLine['mark']): number => lines.filter((line) => line.mark === mark).length
  const state = seen === null ? 'new' : lines.length === 0 ? 'same' : 'changed'
  return { path, state, added: count('+'), removed: count('-'), bytes, lines }
}

/** Text would lie about these: the old bytes as numbers, and what is written over or behind them as text. */
function bytesChanged(before: Buffer, after: string, appends: boolean): readonly DiffLine[] {
  // Bytes that are no text became one replacement character each on the way.
  const added = appends ? after.slice(before.toString().length) : after
  const old: readonly DiffLine[] = appends ? [{ mark: ' ', text: `(${before.length} bytes stay)` }] : hexLines(before)
  return [...old, ...diffLines('', added).filter(({ mark }) => mark !== '@')]
}

const HEX_ROW = 16
const HEX_BYTES_MAX = 65_536

function hexLines(bytes: Buffer): readonly DiffLine[] {
  const lines: DiffLine[] = []
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES_MAX); at += HEX_ROW) {
    const row = bytes.subarray(at, Math.min(at + HEX_ROW, HEX_BYTES_MAX))
    const hex = row.toString('hex').replace(/../g, '$& ')
    const text = row.toString('latin1').replace(/[^\x20-\x7e]/g, '.')
    lines.push({ mark: '-', text: `${at.toString(16).padStart(8, '0')}  ${hex.padEnd(3 * HEX_ROW)} ${text}` })
  }
  const rest = bytes.length - HEX_BYTES_MAX
  return rest > 0 ? [...lines, { mark: '-', text: `(${rest} more bytes)` }] : lines
}

/** Lines that are removed and added and look the same. */
function exposed(lines: readonly DiffLine[]): readonly PreviewLine[] {
  const looks = { '-': new Map<string, string>(), '+': new Map<string, string>() }
  for (const { mark, text } of lines) if (mark === '-' || mark === '+') looks[mark].set(drawn(text), text)
  return lines.map((line) => {
    if (line.mark !== '-' && line.mark !== '+') return line
    const other = looks[line.mark === '-' ? '+' : '-'].get(drawn(line.text))
    return other === undefined || other === line.text ? line : { ...line, exposed: true }
  })
}
