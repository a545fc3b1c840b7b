// A pending call as terminal rows: the diff it would make, or its exact arguments. Every row has a margin that the text
// cannot imitate, also where a line is wrapped. Rows that do not fit are left out and counted, unchanged lines first.
// Pure except for reading the files; all commands and the chat use it.
import type { Pending } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import type { FileChange, Preview } from '../../tools/files/preview-call.ts'
import { breakSpans, breakText, type Paint, type TextSpan, widthOf } from './terminal-text.ts'
import { showEndBlanks, exposedLine, oneLine, safeJson, shownLine } from '../../view/clean.ts'
import { argChanges } from '../../view/argument-changes.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { countNoun } from '../../view/shown-text.ts'

/** The margins of a line of text, of its continuation, and of a remark of this program. */
const MARGIN = '  │ '
const MORE = '  ┆ '
const ASIDE = '  ┊ '

/** No row of this program begins with any of these. */
export const MARGINS = [MARGIN, MORE, ASIDE] as const

/** The size of the area to draw in. Without a terminal, lines are not wrapped. */
export type DrawSize = { readonly columns: number; readonly rows: number }

type Tone = 'same' | 'added' | 'removed' | 'text' | 'head' | 'warning' | 'aside'
/** One line, wrapped to fit. `place` names its hunk or its argument. */
export type PreviewRow = {
  readonly texts: readonly string[]
  readonly tone: Tone
  readonly place: string
  /** True if the line has only blanks. */
  readonly blank?: boolean
  /** The number of characters before the shown part of the first text. */
  readonly lead?: number
  /** What differs from the line that it replaces, or that replaces it: a part of each text, or null. */
  readonly changed?: readonly (TextSpan | null)[]
}

export type DrawnPreview = {
  /** The size of the change, in words. */
  readonly sum: string
  readonly rows: readonly PreviewRow[]
  /** A description of the hidden part; null if all is shown. */
  readonly hidden: string | null
}

export async function previewCall(folder: string | null, pending: Pending, room: DrawSize): Promise<DrawnPreview> {
  const { previewOf } = await import('../../tools/files/preview-call.ts')
  return drawPreview(pending, await previewOf(folder, pending), room)
}

/** The person's changes to the arguments, field by field. */
function editRows({ args, edited }: PreviewedCall, { columns }: DrawSize): readonly PreviewRow[] {
  if (!edited) return []
  const row = (mark: '-' | '+', field: string, value: Json | undefined): readonly PreviewRow[] => {
    if (value === undefined) return []
    const text = `${MARGIN}${mark}${field === '' ? '' : `${oneLine(field, 60)}: `}${oneLine(safeJson(value), 2_000)}`
    return [rowOf(text, TONES[mark], oneLine(field, 60), columns)]
  }
  const changes = argChanges(edited.args, args)
  const head = rowOf(`  edited by ${oneLine(edited.by)}:`, 'head', 'edited', columns)
  return [
    head,
    ...changes.flatMap(({ field, before, after }) => [...row('-', field, before), ...row('+', field, after)]),
  ]
}

type PreviewedCall = Pick<Pending, 'args' | 'edited'>

export function drawPreview(call: PreviewedCall, preview: Preview, room: DrawSize): DrawnPreview {
  const { args } = call
  const { files, trouble, warnings } = preview
  const told = [...warnings, ...(trouble === null ? [] : [`As things are it would fail: ${trouble}.`])]
  const warned = [
    ...told.map((text) => rowOf(`  ! ${oneLine(text, 600)}`, 'warning', '', room.columns)),
    ...editRows(call, room),
  ]
  const changed = files?.filter(({ state }) => state !== 'same') ?? []
  const isSame = files !== null && changed.length === 0
  const rows = changed.length > 0 ? changed.flatMap((file) => fileRows(file, room)) : argRows(args, room)
  const clipped = clipRows(rows, { ...room, rows: room.rows - heightOf(warned) })
  return {
    ...clipped,
    rows: [...warned, ...clipped.rows],
    sum: isSame ? 'nothing would change' : changeSummary(changed),
  }
}

function changeSummary(files: readonly FileChange[]): string {
  const count = (of: 'added' | 'removed'): number => files.reduce((sum, file) => sum + file[of], 0)
  if (files.length === 0) return ''
  const fresh = files.some(({ state }) => state === 'new') ? 'new file · ' : ''
  const bytes = files.some((file) => file.bytes) ? ' · not a text file: its bytes are shown' : ''
  return `${fresh}+${count('added')} −${count('removed')}${bytes}`
}

/** The rows of one file. A hunk is named by its number and its file. */
function fileRows({ path, lines }: FileChange, { columns }: DrawSize): readonly PreviewRow[] {
  const hunks = lines.filter(({ mark }) => mark === '@').length
  let hunk = 0
  const rows = lines.map(({ mark, text, exposed }): PreviewRow => {
    if (mark === '@') hunk += 1
    const place = hunks > 1 ? `${oneLine(path)}, hunk ${hunk} of ${hunks}` : oneLine(path)
    if (mark === '@') return rowOf(`${MARGIN}${mark}${text}`, 'head', place, columns)
    const shown = exposed ? exposedLine(text) : mark === ' ' ? shownLine(text) : showEndBlanks(shownLine(text))
    return { ...rowOf(`${MARGIN}${mark}${shown}`, TONES[mark], place, columns), blank: isBlank(text) }
  })
  const head = rowOf(`  ${oneLine(path, 300)}`, 'head', oneLine(path), columns)
  return [head, ...foldBlankRows(markWords(rows, columns), columns)]
}

/** A change that was made, from the text of its diff. */
export function diffPreview(diff: string, room: DrawSize): Omit<DrawnPreview, 'sum'> {
  const lines = diff.split('\n').filter((line) => /^[-+ @\\]/.test(line) && !/^(?:\+\+\+|---) /.test(line))
  const rows = lines.map((line): PreviewRow => {
    const mark = line.slice(0, 1)
    const tone = mark === '@' ? 'head' : (TONES[mark as ' '] ?? 'same')
    const text = shownLine(line.slice(1))
    const shown = tone === 'same' || tone === 'head' ? text : showEndBlanks(text)
    return { ...rowOf(`${MARGIN}${shownLine(mark)}${shown}`, tone, '', room.columns), blank: isBlank(line.slice(1)) }
  })
  return clipRows(foldBlankRows(markWords(rows, room.columns), room.columns), room)
}

/** Finds the words that changed, where as many lines were added as were removed before them. */
function markWords(rows: readonly PreviewRow[], columns: number): readonly PreviewRow[] {
  // A file gets the lines as they are.
  if (!Number.isFinite(columns)) return rows
  const marked = [...rows]
  for (let start = 0; start < rows.length; ) {
    const removed = runOf(rows, start, 'removed')
    const added = runOf(rows, start + removed, 'added')
    for (let i = start; removed === added && i < start + removed; i += 1) {
      const [before, after] = [rows[i], rows[i + removed]]
      const spans = before && after ? changedWords(lineOf(before), lineOf(after)) : null
      if (!before || !after || !spans) continue
      marked[i] = markRow(before, spans[0], columns)
      marked[i + removed] = markRow(after, spans[1], columns)
    }
    start += Math.max(1, removed + added)
  }
  return marked
}

function runOf(rows: readonly PreviewRow[], start: number, tone: Tone): number {
  let end = start
  while (rows[end]?.tone === tone) end += 1
  return end - start
}

/** Lines that have less in common are two lines, and not one that was changed. */
const COMMON_SHARE = 0.3

/** The columns of the brackets that mark words where there are no colours. */
const BRACKETS_COLUMNS = 2

/** The row with its changed part marked. A line without room for the marks is wrapped, and marked in each of its rows. */
function markRow(row: PreviewRow, { from, to }: TextSpan, columns: number): PreviewRow {
  const line = lineOf(row)
  const fits = widthOf(line) + BRACKETS_COLUMNS <= columns
  const room = wrapColumns(columns) - BRACKETS_COLUMNS
  const pieces = fits ? [{ from: 0, to: line.length }] : breakSpans(line, room)
  const changed = pieces.map((piece, i) => {
    const [begin, end] = [Math.max(from, piece.from), Math.min(to, piece.to)]
    const lead = i === 0 ? 0 : MORE.length - piece.from
    return begin < end ? { from: begin + lead, to: end + lead } : null
  })
  return { ...row, texts: withMargins(pieces.map((piece) => line.slice(piece.from, piece.to))), changed }
}

/** The line of a row before it was wrapped. */
function lineOf({ texts }: PreviewRow): string {
  return texts.map((text, i) => (i === 0 ? text : text.slice(MORE.length))).join('')
}

/** Null if the lines have little in common. */
function changedWords(a: string, b: string): readonly [before: TextSpan, after: TextSpan] | null {
  const lead = MARGIN.length + 1
  const words = (text: string): readonly string[] =>
    text.slice(lead).match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]+/gu) ?? []
  const [olds, news] = [words(a), words(b)]
  const most = Math.min(olds.length, news.length)
  let head = 0
  while (head < most && olds[head] === news[head]) head += 1
  let tail = 0
  while (tail < most - head && olds.at(-1 - tail) === news.at(-1 - tail)) tail += 1
  const length = (some: readonly string[]): number => some.reduce((sum, word) => sum + word.length, 0)
  const from = lead + length(olds.slice(0, head))
  const end = length(tail === 0 ? [] : olds.slice(-tail))
  const common = from - lead + end
  if (common < Math.max(a.length, b.length) * COMMON_SHARE) return null
  return [
    { from, to: a.length - end },
    { from, to: b.length - end },
  ]
}

const TONES = { ' ': 'same', '+': 'added', '-': 'removed', '\\': 'added' } as const

/** Arguments for people: short ones on one line, longer texts in full below their name. */
function argRows(args: unknown, { columns }: DrawSize): readonly PreviewRow[] {
  const isPlain = !isObject(args)
  return Object.entries(isPlain ? { arguments: args } : args).flatMap(([name, value]: [string, unknown]) => {
    const key = oneLine(name, 60)
    const row = (text: string): PreviewRow => rowOf(`${MARGIN}${text}`, 'text', key, columns)
    const inline = (text: string): PreviewRow => ({ ...row(`${key}: ${text}`), lead: MARGIN.length + key.length + 2 })
    if (typeof value !== 'string') return [inline(shownLine(safeJson(value)))]
    if (!value.includes('\n')) return [inline(showEndBlanks(shownLine(value)))]
    const lines = value.split('\n').map((line) => {
      return { ...row(`│ ${showEndBlanks(shownLine(line))}`), blank: isBlank(line) }
    })
    return [row(`${key}:`), ...foldBlankRows(lines, columns)]
  })
}

/** Quotes any other text, such as a result or an answer. */
export function quoteText(text: string, room: DrawSize): Omit<DrawnPreview, 'sum'> {
  const rows = text.split('\n').map((line) => {
    return { ...rowOf(`${MARGIN}${shownLine(line)}`, 'text', '', room.columns), blank: isBlank(line) }
  })
  return clipRows(foldBlankRows(rows, room.columns), room)
}

const PIECES_MAX = 6
const LINE_CHARS_MAX = 4_000

/** One line as a row, wrapped to the columns. shortenRow cuts long ones. */
function rowOf(line: string, tone: Tone, place: string, columns: number): PreviewRow {
  if (widthOf(line) <= columns && line.length <= LINE_CHARS_MAX) return { texts: [line], tone, place }
  const pieces = Number.isFinite(columns) ? breakText(line, wrapColumns(columns)) : [line]
  return { texts: withMargins(pieces), tone, place }
}

function wrapColumns(columns: number): number {
  return Math.max(16, columns - MORE.length)
}

function withMargins(pieces: readonly string[]): readonly string[] {
  return pieces.map((piece, i) => (i === 0 ? piece : `${MORE}${piece}`))
}

/** A long row shortened to its beginning, its end and the size of the gap. Null if it is short enough. */
function shortenRow(row: PreviewRow, columns: number): PreviewRow | null {
  const { texts, lead = MARGIN.length } = row
  const [only = ''] = texts
  if (texts.length === 1 && only.length > LINE_CHARS_MAX) {
    const [head, tail] = [Math.ceil(LINE_CHARS_MAX * 0.6), Math.floor(LINE_CHARS_MAX * 0.4)]
    const cut = asideRows(cutText(only.length - head - tail, only.length - lead), columns)
    return { ...row, texts: [only.slice(0, head), ...cut, `${MORE}${only.slice(-tail)}`] }
  }
  if (texts.length <= PIECES_MAX) return null
  const chars = (some: readonly string[]): number => some.reduce((sum, text) => sum + text.length - MORE.length, 0)
  const cut = asideRows(cutText(chars(texts.slice(3, -2)), chars(texts) - lead + MORE.length), columns)
  const changed = row.changed && [...row.changed.slice(0, 3), ...cut.map(() => null), ...row.changed.slice(-2)]
  return { ...row, texts: [...texts.slice(0, 3), ...cut, ...texts.slice(-2)], ...(changed && { changed }) }
}

function cutText(gone: number, all: number): string {
  return `${gone} of ${all} characters are not shown here`
}

function isBlank(text: string): boolean {
  return /^[\s\p{Z}\u2800\p{Default_Ignorable_Code_Point}]*$/u.test(text)
}

function asideRows(text: string, columns: number): readonly string[] {
  const pieces = Number.isFinite(columns) ? breakText(text, columns - ASIDE.length) : [text]
  return pieces.map((piece) => ASIDE + piece)
}

const BLANK_ROWS_MAX = 3

/** Many empty lines could push text out of sight, so they are counted instead. */
function foldBlankRows(rows: readonly PreviewRow[], columns: number): readonly PreviewRow[] {
  const folded: PreviewRow[] = []
  for (let start = 0; start < rows.length; ) {
    let end = start
    while (rows[end]?.blank && rows[end]?.tone === rows[start]?.tone) end += 1
    const run = rows.slice(start, Math.max(end, start + 1))
    const [row] = run
    if (row && run.length > BLANK_ROWS_MAX) {
      const what = row.tone === 'added' ? 'added' : row.tone === 'removed' ? 'removed' : 'blank'
      const text = `${run.length} ${what === 'blank' ? '' : `${what} `}lines with nothing in them`
      folded.push({ ...row, texts: asideRows(text, columns), changed: [] })
    } else folded.push(...run)
    start += run.length
  }
  return folded
}

/** Leaves out unchanged lines first, then the middle, and names the hunks or arguments that are missing. */
function clipRows(rows: readonly PreviewRow[], { columns, rows: most }: DrawSize): Omit<DrawnPreview, 'sum'> {
  if (!Number.isFinite(most)) return { rows, hidden: null }
  const short = rows.map((row) => shortenRow(row, columns) ?? row)
  const cut = short.filter((row, i) => row !== rows[i])
  const long = cut.length === 0 ? [] : [`parts of ${countNoun(cut.length, 'long line')}`]
  if (heightOf(short) <= most) return { rows: short, hidden: long[0] ?? null }
  const changed = short.filter(({ tone }) => tone !== 'same')
  const unchanged = short.length - changed.length
  const without = unchanged === 0 ? [] : [`${unchanged} unchanged ${unchanged === 1 ? 'line' : 'lines'}`]
  if (heightOf(changed) <= most) return { rows: changed, hidden: [...without, ...long].join(' and ') }
  const head = rowsThatFit(changed, Math.max(3, Math.floor(most * 0.6)))
  const tail = rowsThatFit(changed.toReversed(), Math.max(2, most - heightOf(head) - 1)).toReversed()
  const gone = changed.slice(head.length, Math.max(head.length, changed.length - tail.length))
  const lost = gone.filter(({ tone }) => tone !== 'head')
  const what = `${lost.length} of ${countNoun(
    changed.filter(({ tone }) => tone !== 'head').length,
    NOUNS[lost[0]?.tone ?? 'text'] ?? 'line',
  )}`
  const places = placesOf(lost)
  const aside: PreviewRow = {
    texts: asideRows(`${what} are not shown here${places}`, columns),
    tone: 'aside',
    place: '',
  }
  return { rows: [...head, aside, ...tail], hidden: [`${what}${places}`, ...without, ...long].join(' and ') }
}

const NOUNS: { readonly [tone in Tone]?: string } = { added: 'changed line', removed: 'changed line' }

const PLACES_MAX = 4

function placesOf(rows: readonly PreviewRow[]): string {
  const places = [...new Set(rows.map(({ place }) => place))].filter((place) => place !== '')
  const more = places.length > PLACES_MAX ? ` and ${places.length - PLACES_MAX} more` : ''
  return places.length === 0 ? '' : ` (${places.slice(0, PLACES_MAX).join('; ')}${more})`
}

function rowsThatFit(rows: readonly PreviewRow[], most: number): readonly PreviewRow[] {
  let used = 0
  const first = rows.findIndex((row) => {
    used += row.texts.length
    return used > most
  })
  return first < 0 ? rows : rows.slice(0, first)
}

function heightOf(rows: readonly PreviewRow[]): number {
  return rows.reduce((sum, { texts }) => sum + texts.length, 0)
}

/** Colours each row by its change. */
export function paintRows(rows: readonly PreviewRow[], paint: Paint): readonly string[] {
  const colours: { readonly [tone in Tone]?: (text: string) => string } = {
    added: paint.green,
    removed: paint.red,
    head: paint.cyan,
    warning: paint.yellow,
    aside: paint.yellow,
  }
  return rows.flatMap(({ texts, tone, changed }) => {
    const colour = colours[tone] ?? ((text: string) => text)
    return texts.map((text, at) => {
      const span = changed?.[at]
      if (!span) return colour(text)
      const part = text.slice(span.from, span.to)
      // Without colours brackets say which words changed.
      const shown = paint.bold(part) === part ? `[${part}]` : paint.bold(colour(part))
      return `${colour(text.slice(0, span.from))}${shown}${colour(text.slice(span.to))}`
    })
  })
}

/** The warning before a question if a part is hidden. */
export function hiddenText({ hidden }: Pick<DrawnPreview, 'hidden'>, way: string): string | null {
  return hidden === null ? null : `! Not shown: ${hidden}. ${way}`
}
