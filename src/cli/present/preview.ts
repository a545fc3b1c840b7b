// A call that waits, as rows of a terminal: the difference it would make, or its exact arguments. Every row of it has a margin that the
// text cannot make, also where a line is broken. What does not fit is left out and counted, unchanged lines first. Pure
// except for reading the files; all commands and the chat use it.
import type { Pending } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import type { FileChange, Preview } from '../../tools/files/preview.ts'
import { broken, type Paint, widthOf } from './text.ts'
import { endShown, exposedLine, oneLine, safeJson, shownLine } from '../../view/clean.ts'
import { argChanges } from '../../view/edited.ts'
import { isObject } from '../../view/json.ts'
import { counted } from '../../view/text.ts'

/** Before a line of text, before the rest of it, and before a remark of ours between its lines. */
const MARGIN = '  │ '
const MORE = '  ┆ '
const ASIDE = '  ┊ '

/** No row of ours begins with any of these. */
export const MARGINS = [MARGIN, MORE, ASIDE] as const

/** The room to draw in. Without a terminal, lines are not wrapped. */
export type Room = { readonly columns: number; readonly rows: number }

type Tone = 'same' | 'added' | 'removed' | 'text' | 'head' | 'warning' | 'aside'
/** One line, broken to fit. `place` is the hunk or the argument it belongs to. */
export type Row = {
  readonly texts: readonly string[]
  readonly tone: Tone
  readonly place: string
  /** There is nothing in the line but blanks. */
  readonly blank?: boolean
  /** The number of characters of the first text before its shown part. */
  readonly lead?: number
}

export type Shown = {
  /** How much would change. */
  readonly sum: string
  readonly rows: readonly Row[]
  /** A description of the hidden part; null if all is shown. */
  readonly hidden: string | null
}

export async function shownCall(folder: string | null, pending: Pending, room: Room): Promise<Shown> {
  const { previewOf } = await import('../../tools/files/preview.ts')
  return drawnPreview(pending, await previewOf(folder, pending), room)
}

/** What a person changed in the arguments, field by field. */
function editRows({ args, edited }: Drawn, { columns }: Room): readonly Row[] {
  if (!edited) return []
  const row = (mark: '-' | '+', field: string, value: Json | undefined): readonly Row[] => {
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

type Drawn = Pick<Pending, 'args' | 'edited'>

export function drawnPreview(call: Drawn, preview: Preview, room: Room): Shown {
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
  const clipped = clip(rows, { ...room, rows: room.rows - heightOf(warned) })
  return { ...clipped, rows: [...warned, ...clipped.rows], sum: isSame ? 'nothing would change' : sumOf(changed) }
}

function sumOf(files: readonly FileChange[]): string {
  const count = (of: 'added' | 'removed'): number => files.reduce((sum, file) => sum + file[of], 0)
  if (files.length === 0) return ''
  const fresh = files.some(({ state }) => state === 'new') ? 'new file · ' : ''
  const bytes = files.some((file) => file.bytes) ? ' · not a text file: its bytes are shown' : ''
  return `${fresh}+${count('added')} −${count('removed')}${bytes}`
}

/** A hunk is named by its number and its file. */
function fileRows({ path, lines }: FileChange, { columns }: Room): readonly Row[] {
  const hunks = lines.filter(({ mark }) => mark === '@').length
  let hunk = 0
  const rows = lines.map(({ mark, text, exposed }): Row => {
    if (mark === '@') hunk += 1
    const place = hunks > 1 ? `${oneLine(path)}, hunk ${hunk} of ${hunks}` : oneLine(path)
    if (mark === '@') return rowOf(`${MARGIN}${mark}${text}`, 'head', place, columns)
    const shown = exposed ? exposedLine(text) : mark === ' ' ? shownLine(text) : endShown(shownLine(text))
    return { ...rowOf(`${MARGIN}${mark}${shown}`, TONES[mark], place, columns), blank: isBlank(text) }
  })
  return [rowOf(`  ${oneLine(path, 300)}`, 'head', oneLine(path), columns), ...blanksFolded(rows, columns)]
}

const TONES = { ' ': 'same', '+': 'added', '-': 'removed', '\\': 'added' } as const

/** Arguments as people read them: short ones on a line, texts in full below their name. */
function argRows(args: unknown, { columns }: Room): readonly Row[] {
  const isPlain = !isObject(args)
  return Object.entries(isPlain ? { arguments: args } : args).flatMap(([name, value]: [string, unknown]) => {
    const key = oneLine(name, 60)
    const row = (text: string): Row => rowOf(`${MARGIN}${text}`, 'text', key, columns)
    const inline = (text: string): Row => ({ ...row(`${key}: ${text}`), lead: MARGIN.length + key.length + 2 })
    if (typeof value !== 'string') return [inline(shownLine(safeJson(value)))]
    if (!value.includes('\n')) return [inline(endShown(shownLine(value)))]
    const lines = value.split('\n').map((line) => {
      return { ...row(`│ ${endShown(shownLine(line))}`), blank: isBlank(line) }
    })
    return [row(`${key}:`), ...blanksFolded(lines, columns)]
  })
}

/** Any other text that is not ours: a result, an answer. */
export function quoted(text: string, room: Room): Omit<Shown, 'sum'> {
  const rows = text.split('\n').map((line) => {
    return { ...rowOf(`${MARGIN}${shownLine(line)}`, 'text', '', room.columns), blank: isBlank(line) }
  })
  return clip(blanksFolded(rows, room.columns), room)
}

const PIECES_MAX = 6
const LINE_CHARS_MAX = 4_000

/** Of a line that is longer than some rows, or some thousand characters, its beginning, its end and how much is between. */
function rowOf(line: string, tone: Tone, place: string, columns: number): Row {
  const room = Math.max(16, columns - MORE.length)
  if (widthOf(line) <= columns && line.length <= LINE_CHARS_MAX) return { texts: [line], tone, place }
  const pieces = Number.isFinite(columns) ? broken(line, room) : [line]
  const more = pieces.map((piece, i) => (i === 0 ? piece : `${MORE}${piece}`))
  return { texts: more, tone, place }
}

/** How a row is shown when not all of it can be. */
function shortened(row: Row, columns: number): Row | null {
  const { texts, lead = MARGIN.length } = row
  const [only = ''] = texts
  if (texts.length === 1 && only.length > LINE_CHARS_MAX) {
    const [head, tail] = [Math.ceil(LINE_CHARS_MAX * 0.6), Math.floor(LINE_CHARS_MAX * 0.4)]
    const cut = asides(cutText(only.length - head - tail, only.length - lead), columns)
    return { ...row, texts: [only.slice(0, head), ...cut, `${MORE}${only.slice(-tail)}`] }
  }
  if (texts.length <= PIECES_MAX) return null
  const chars = (some: readonly string[]): number => some.reduce((sum, text) => sum + text.length - MORE.length, 0)
  const cut = asides(cutText(chars(texts.slice(3, -2)), chars(texts) - lead + MORE.length), columns)
  return { ...row, texts: [...texts.slice(0, 3), ...cut, ...texts.slice(-2)] }
}

function cutText(gone: number, all: number): string {
  return `${gone} of ${all} characters are not shown here`
}

function isBlank(text: string): boolean {
  return /^[\s\p{Z}\u2800\p{Default_Ignorable_Code_Point}]*$/u.test(text)
}

function asides(text: string, columns: number): readonly string[] {
  const pieces = Number.isFinite(columns) ? broken(text, columns - ASIDE.length) : [text]
  return pieces.map((piece) => ASIDE + piece)
}

const BLANK_ROWS_MAX = 3

/** Many empty lines could push text out of sight, so they are counted instead. */
function blanksFolded(rows: readonly Row[], columns: number): readonly Row[] {
  const folded: Row[] = []
  for (let start = 0; start < rows.length; ) {
    let end = start
    while (rows[end]?.blank && rows[end]?.tone === rows[start]?.tone) end += 1
    const run = rows.slice(start, Math.max(end, start + 1))
    const [row] = run
    if (row && run.length > BLANK_ROWS_MAX) {
      const what = row.tone === 'added' ? 'added' : row.tone === 'removed' ? 'removed' : 'blank'
      const text = `${run.length} ${what === 'blank' ? '' : `${what} `}lines with nothing in them`
      folded.push({ ...row, texts: asides(text, columns) })
    } else folded.push(...run)
    start += run.length
  }
  return folded
}

/** Leaves out unchanged lines first, then the middle, and names the hunks or arguments left out. */
function clip(rows: readonly Row[], { columns, rows: most }: Room): Omit<Shown, 'sum'> {
  if (!Number.isFinite(most)) return { rows, hidden: null }
  const short = rows.map((row) => shortened(row, columns) ?? row)
  const cut = short.filter((row, i) => row !== rows[i])
  const long = cut.length === 0 ? [] : [`parts of ${counted(cut.length, 'long line')}`]
  if (heightOf(short) <= most) return { rows: short, hidden: long[0] ?? null }
  const changed = short.filter(({ tone }) => tone !== 'same')
  const unchanged = short.length - changed.length
  const without = unchanged === 0 ? [] : [`${unchanged} unchanged ${unchanged === 1 ? 'line' : 'lines'}`]
  if (heightOf(changed) <= most) return { rows: changed, hidden: [...without, ...long].join(' and ') }
  const head = fitting(changed, Math.max(3, Math.floor(most * 0.6)))
  const tail = fitting(changed.toReversed(), Math.max(2, most - heightOf(head) - 1)).toReversed()
  const gone = changed.slice(head.length, Math.max(head.length, changed.length - tail.length))
  const lost = gone.filter(({ tone }) => tone !== 'head')
  const what = `${lost.length} of ${counted(
    changed.filter(({ tone }) => tone !== 'head').length,
    NOUNS[lost[0]?.tone ?? 'text'] ?? 'line',
  )}`
  const places = placesOf(lost)
  const aside: Row = { texts: asides(`${what} are not shown here${places}`, columns), tone: 'aside', place: '' }
  return { rows: [...head, aside, ...tail], hidden: [`${what}${places}`, ...without, ...long].join(' and ') }
}

const NOUNS: { readonly [tone in Tone]?: string } = { added: 'changed line', removed: 'changed line' }

const PLACES_MAX = 4

function placesOf(rows: readonly Row[]): string {
  const places = [...new Set(rows.map(({ place }) => place))].filter((place) => place !== '')
  const more = places.length > PLACES_MAX ? ` and ${places.length - PLACES_MAX} more` : ''
  return places.length === 0 ? '' : ` (${places.slice(0, PLACES_MAX).join('; ')}${more})`
}

function fitting(rows: readonly Row[], most: number): readonly Row[] {
  let used = 0
  const first = rows.findIndex((row) => {
    used += row.texts.length
    return used > most
  })
  return first < 0 ? rows : rows.slice(0, first)
}

function heightOf(rows: readonly Row[]): number {
  return rows.reduce((sum, { texts }) => sum + texts.length, 0)
}

/** Coloured by the change of each line. */
export function painted(rows: readonly Row[], paint: Paint): readonly string[] {
  const colours: { readonly [tone in Tone]?: (text: string) => string } = {
    added: paint.green,
    removed: paint.red,
    head: paint.cyan,
    warning: paint.yellow,
    aside: paint.yellow,
  }
  return rows.flatMap(({ texts, tone }) => texts.map(colours[tone] ?? ((text) => text)))
}

/** The warning before a question if not all is shown. */
export function hiddenText({ hidden }: Pick<Shown, 'hidden'>, way: string): string | null {
  return hidden === null ? null : `! Not shown: ${hidden}. ${way}`
}
