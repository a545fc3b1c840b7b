// Previews what a call would do to the current files, as plain data for a terminal, a page or a server. Writes and
// edits are shown line by line, with invisible differences marked. It only reads and decides nothing: an approval is
// for the arguments.
import { isUtf8 } from 'node:buffer'
import type { FileState, Frozen, Json } from '../../kernel/content.ts'
import { type DiffLine, diffLines } from '../../view/line-diff.ts'
import { readBeforeWrite } from './guarded-disk.ts'
import type { SeenFile } from './editor-buffers.ts'
import { screenForm, whyNameOdd } from '../../view/lookalike.ts'
import { type FileBuffers, createPathGuard, type PathGuardOptions, locatePath } from './path-guard.ts'
import { followLinks } from '../policy/links.ts'
import { placesIn } from '../policy/argument-paths.ts'

/**
 * `exposeLookalikes`: a removed and an added line look the same, so every blank and every unusual letter must be spelled out.
 */
export type PreviewLine = DiffLine & { readonly exposed?: true }

/** What a call would do to one file, line by line. */
export type FileChange = Frozen<{
  /** The path of the file, as the call names it. */
  path: string
  /** Whether the file would be new, changed, or the same as it is. */
  state: 'new' | 'changed' | 'same'
  /** How many lines would be added. */
  added: number
  /** How many lines would be removed. */
  removed: number
  /** The file is not text: its lines are bytes in hexadecimal. */
  bytes: boolean
  /** The changed lines, with some unchanged ones around them. */
  lines: readonly PreviewLine[]
}>

/** What a call that waits would change, made without changing anything. Show it to whoever decides. */
export type Preview = Frozen<{
  /** Null for a call that is not a plain write or edit: only its arguments can be shown. */
  files: readonly FileChange[] | null
  /** Why the call would fail now. */
  trouble: string | null
  /** Warnings about things that may mislead a reader. */
  warnings: readonly string[]
}>

/** `files`: the files as they were when a person was asked about the call, if one was. */
export type PreviewedCall = { readonly tool: string; readonly args: Json; readonly files?: readonly FileState[] }

/** Without a folder, only the arguments are examined. With `buffers`, files are read as an editor has them. */
export async function previewOf(
  folder: string | null,
  { tool, args, files }: PreviewedCall,
  buffers?: FileBuffers,
): Promise<Preview> {
  const odd = nameWarnings(tool, args)
  if (folder === null) return { files: null, trouble: null, warnings: odd }
  const warnings = [...odd, ...linkWarnings(tool, args, folder)]
  try {
    const changes = await planChanges({ root: folder, ...(buffers ? { buffers } : {}) }, tool, args)
    const other = files && changes?.find((change) => !isSameAsAsked(change, files))
    // A file that is not the one in the digest must not be shown as the effect of an approval.
    if (other) return { files: null, trouble: null, warnings: [...warnings, changedText(other.path)] }
    return { files: changes?.map(describeChange) ?? null, trouble: null, warnings }
  } catch (error) {
    return { files: null, trouble: error instanceof Error ? error.message : String(error), warnings }
  }
}

/** The reader sees the path as the model wrote it, so links are reported. */
function linkWarnings(tool: string, args: Json, folder: string): readonly string[] {
  if (tool !== 'write' && tool !== 'edit') return []
  return placesIn(args).flatMap((path) =>
    followLinks([path], folder).map((led) => `The path "${path}" leads through a link to "${led}".`),
  )
}

function nameWarnings(tool: string, args: Json): readonly string[] {
  const names = [['tool', tool] as const, ...placesIn(args).map((path) => ['path', path] as const)]
  return names.flatMap(([what, name]) => {
    const odd = whyNameOdd(name)
    return odd === null ? [] : [`The ${what} "${name}" has letters that look like others: ${odd}.`]
  })
}

function isSameAsAsked({ at, seen }: PlannedChange, files: readonly FileState[]): boolean {
  return files.some(({ path, hash }) => path === at && hash === (seen?.hash ?? null))
}

function changedText(path: string): string {
  return `${path} changed since this was asked. After a yes the question comes once more, with ${path} as it is then.`
}

/** `at` is the file's real path. */
type PlannedChange = {
  readonly path: string
  readonly at: string
  readonly seen: SeenFile | null
  readonly after: string
  readonly appends: boolean
}

/** Computes the new content of the files. Null for a call that is not a plain write or edit. */
async function planChanges(
  options: PathGuardOptions,
  tool: string,
  args: Json,
): Promise<readonly PlannedChange[] | null> {
  const files = new Map<string, PlannedChange>()
  const guarded = createPathGuard(options)
  const open = async (path: string): Promise<PlannedChange> => {
    const place = await locatePath(guarded, path, 'write')
    const known = files.get(place.shown)
    if (known) return known
    const seen = await readBeforeWrite(guarded, place)
    return { path: place.shown, at: place.path, seen, after: seen?.bytes.toString() ?? '', appends: false }
  }
  const keep = (change: PlannedChange, after: string): void => void files.set(change.path, { ...change, after })
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
      keep(file, replaceText(file, { old, fresh, all: edit['replace_all'] === true }))
    }
  } else return null
  return [...files.values()]
}

type Fields = { readonly [key: string]: Json }
type TextReplacement = { readonly old: string; readonly fresh: string; readonly all: boolean }

/** Replaces as `edit` does, and fails with the same reasons. */
function replaceText({ path, after, seen }: PlannedChange, { old, fresh, all }: TextReplacement): string {
  if (seen === null) throw new Error(`there is no ${path}`)
  if (!isUtf8(seen.bytes)) throw new Error(`${path} is not text`)
  const pieces = after.split(old)
  if (pieces.length === 1) throw new Error(`the text to replace is not in ${path}`)
  if (pieces.length > 2 && !all) throw new Error(`the text to replace is in ${path} ${pieces.length - 1} times`)
  return pieces.join(fresh)
}

function describeChange({ path, seen, after, appends }: PlannedChange): FileChange {
  const before = seen?.bytes ?? Buffer.alloc(0)
  const bytes = !isUtf8(before)
  const lines = bytes ? byteLines(before, after, appends) : exposeLookalikes(diffLines(before.toString(), after))
  const count = (mark: DiffLine['mark']): number => lines.filter((line) => line.mark === mark).length
  const state = seen === null ? 'new' : lines.length === 0 ? 'same' : 'changed'
  return { path, state, added: count('+'), removed: count('-'), bytes, lines }
}

/** Text would misrepresent these bytes: shows the old ones in hexadecimal, and the written or appended ones as text. */
function byteLines(before: Buffer, after: string, appends: boolean): readonly DiffLine[] {
  // Each byte that is not text became one replacement character in the string.
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

/** Marks removed and added lines that look the same. */
function exposeLookalikes(lines: readonly DiffLine[]): readonly PreviewLine[] {
  const looks = { '-': new Map<string, string>(), '+': new Map<string, string>() }
  for (const { mark, text } of lines) if (mark === '-' || mark === '+') looks[mark].set(screenForm(text), text)
  return lines.map((line) => {
    if (line.mark !== '-' && line.mark !== '+') return line
    const other = looks[line.mark === '-' ? '+' : '-'].get(screenForm(line.text))
    return other === undefined || other === line.text ? line : { ...line, exposed: true }
  })
}
