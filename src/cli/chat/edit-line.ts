// The input line as data: a key goes in, the new line and an action come out. Pure: terminal-input.ts reads keys and draws. A paste of
// several lines is one cell, and so is each grapheme.
import { clean } from '../../view/clean.ts'
import type { Drawn } from '../present/screen.ts'
import { widthOf, wrapped } from '../present/text.ts'

/** As Node's readline names it. */
export type Key = {
  readonly name?: string | undefined
  readonly sequence: string
  readonly ctrl?: boolean
  readonly meta?: boolean
}

/** One cell of the line: its text, and how it is shown. */
type Cell = { readonly text: string; readonly shown: string }

export type Line = {
  readonly cells: readonly Cell[]
  /** The cell after the cursor. */
  readonly at: number
  /** How far back in the history, and the line that was being edited. */
  readonly back: number
  readonly draft: readonly Cell[]
  /** The paste so far; null outside of a paste. */
  readonly paste: string | null
}

export type Deed =
  | { readonly type: 'entered'; readonly text: string; readonly shown: string }
  /** Several completions. */
  | { readonly type: 'choices'; readonly names: readonly string[] }
  | { readonly type: 'interrupt' | 'end' | 'redraw' | 'suspend' }

export type Known = {
  /** The history, oldest first. */
  readonly history: readonly string[]
  /** Names that begin with this text. */
  readonly complete: (text: string) => readonly string[]
}

export const EMPTY_LINE: Line = { cells: [], at: 0, back: 0, draft: [], paste: null }

export function lineText({ cells }: Line): string {
  return cells.map(({ text }) => text).join('')
}

/** The line after a key, and the action of the key. */
export function press(line: Line, key: Key, known: Known): readonly [Line, Deed | null] {
  if (key.name === 'paste-start') return [{ ...line, paste: '' }, null]
  if (line.paste !== null) {
    if (key.name !== 'paste-end') return [{ ...line, paste: line.paste + key.sequence }, null]
    return [pasted({ ...line, paste: null }, line.paste), null]
  }
  if (isPlainText(key)) return [pasted(line, key.sequence), null]
  // Control characters without a name here are ignored.
  return NAMED[nameOf(key)]?.(line, known) ?? [line, null]
}

/** The key inserts its own text and does nothing else. */
export function isPlainText(key: Key): boolean {
  if (key.ctrl || key.meta || key.sequence === '' || /^\p{Cc}/u.test(key.sequence)) return false
  return NAMED[nameOf(key)] === undefined && !key.name?.startsWith('paste-')
}

function nameOf({ name = '', ctrl, meta }: Key): string {
  return `${ctrl ? 'ctrl-' : ''}${meta ? 'alt-' : ''}${name}`
}

type Act = (line: Line, known: Known) => readonly [Line, Deed | null]

const still =
  (change: (line: Line) => Line): Act =>
  (line) => [change(line), null]
const doing =
  (type: 'interrupt' | 'redraw' | 'suspend'): Act =>
  (line) => [line, { type }]
const newLine = still((line) => inserted(line, [NEW_LINE]))
const toStart = still((line) => ({ ...line, at: rowStart(line) }))
const toEnd = still((line) => ({ ...line, at: rowEnd(line) }))
const wordLeft = still((line) => ({ ...line, at: wordBefore(line) }))
const wordRight = still((line) => ({ ...line, at: wordAfter(line) }))
const cutWord = still((line) => without(line, wordBefore(line), line.at))
const erase = still((line) => without(line, line.at - 1, line.at))
const older: Act = (line, known) => [up(line, known.history), null]
const newer: Act = (line, known) => [down(line, known.history), null]

const NAMED: Readonly<Record<string, Act>> = {
  return: enter,
  enter: newLine,
  'ctrl-j': newLine,
  'alt-return': newLine,
  'alt-enter': newLine,
  tab: completed,
  backspace: erase,
  'ctrl-h': erase,
  delete: still((line) => without(line, line.at, line.at + 1)),
  left: still((line) => ({ ...line, at: Math.max(0, line.at - 1) })),
  'ctrl-b': still((line) => ({ ...line, at: Math.max(0, line.at - 1) })),
  right: still((line) => ({ ...line, at: Math.min(line.cells.length, line.at + 1) })),
  'ctrl-f': still((line) => ({ ...line, at: Math.min(line.cells.length, line.at + 1) })),
  home: toStart,
  'ctrl-a': toStart,
  end: toEnd,
  'ctrl-e': toEnd,
  'ctrl-left': wordLeft,
  'alt-left': wordLeft,
  'alt-b': wordLeft,
  'ctrl-right': wordRight,
  'alt-right': wordRight,
  'alt-f': wordRight,
  'ctrl-w': cutWord,
  'alt-backspace': cutWord,
  'ctrl-u': still((line) => without(line, rowStart(line), line.at)),
  'ctrl-k': still((line) => without(line, line.at, rowEnd(line))),
  up: older,
  'ctrl-p': older,
  down: newer,
  'ctrl-n': newer,
  'ctrl-l': doing('redraw'),
  'ctrl-z': doing('suspend'),
  'ctrl-c': doing('interrupt'),
  'ctrl-d': (line) => {
    return line.cells.length === 0 ? [line, { type: 'end' }] : [without(line, line.at, line.at + 1), null]
  },
}

/** A backslash at the end continues in the next row. */
function enter(line: Line): readonly [Line, Deed | null] {
  const last = line.cells.at(-1)
  if (last?.text === '\\') {
    const cells = [...line.cells.slice(0, -1), NEW_LINE]
    return [{ ...line, cells, at: cells.length }, null]
  }
  const shown = line.cells.map((cell) => cell.shown).join('')
  return [EMPTY_LINE, { type: 'entered', text: lineText(line), shown }]
}

function completed(line: Line, { complete }: Known): readonly [Line, Deed | null] {
  const text = lineText(line)
  const names = complete(text)
  const [first] = names
  if (first === undefined || line.at < line.cells.length) return [line, null]
  const common = names.reduce((begin, name) => {
    let same = 0
    while (same < begin.length && begin[same] === name[same]) same += 1
    return begin.slice(0, same)
  }, first)
  const whole = names.length === 1 ? `${first} ` : common
  if (whole.length > text.length) return [lineOf(whole), null]
  return [line, names.length > 1 ? { type: 'choices', names } : null]
}

const NEW_LINE: Cell = { text: '\n', shown: '\n' }

/** One cell per grapheme. */
function cellsOf(text: string): readonly Cell[] {
  const cells: Cell[] = []
  for (const { segment } of LETTERS.segment(text)) cells.push(cellOf(segment))
  return cells
}
const LETTERS = new Intl.Segmenter()

function cellOf(letter: string): Cell {
  if (letter === '\n') return NEW_LINE
  const shown = letter === '\t' ? '  ' : widthOf(letter) > 0 ? shownLetter(letter) : clean(letter)
  return { text: letter, shown }
}

/** Joiners inside of a letter are part of it; a letter that is not safe by itself is shown by its number. */
function shownLetter(letter: string): string {
  const [first = ''] = letter
  return clean(first) === first ? letter.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '') : clean(letter)
}

/** Many lines, and a very long one, are one piece here too. */
export function lineOf(text: string): Line {
  if (text.length > CHARS_MAX || text.split('\n').length > ROWS_MAX) return pasted(EMPTY_LINE, text)
  const cells = cellsOf(text)
  return { ...EMPTY_LINE, cells, at: cells.length }
}
const ROWS_MAX = 5
/** A longer text is one cell: as one cell for each letter it would fill the screen, and every key after it would be slow. */
const CHARS_MAX = 1_000

/** Inserted text may join the grapheme before it. */
function inserted(line: Line, added: readonly Cell[]): Line {
  const { cells, at } = line
  const before = cells[at - 1]
  const [first] = added
  const grown = before && first && before.text !== '\n' && isLetter(before) ? cellsOf(before.text + first.text) : []
  const joins = grown.length === 1
  const kept = joins ? cells.slice(0, at - 1) : cells.slice(0, at)
  const middle = joins ? [...grown, ...added.slice(1)] : added
  return { ...line, cells: [...kept, ...middle, ...cells.slice(at)], at: kept.length + middle.length }
}

function isLetter({ text }: Cell): boolean {
  return text.length <= 32 && !text.includes('\n')
}

/** A paste of several lines, or of one very long line, is one piece, so that it neither sends itself nor fills the screen. */
function pasted(line: Line, raw: string): Line {
  const text = raw.replace(/\r\n?/g, '\n')
  if (text === '') return line
  const isLines = text.includes('\n')
  if (!isLines && text.length <= CHARS_MAX) return inserted(line, cellsOf(text))
  const count = text.replace(/\n$/, '').split('\n').length
  const shown = isLines ? `[pasted ${count} line${count === 1 ? '' : 's'}]` : `[pasted ${text.length} characters]`
  const cells = [...line.cells.slice(0, line.at), { text, shown }, ...line.cells.slice(line.at)]
  return { ...line, cells, at: line.at + 1 }
}

function without(line: Line, from: number, to: number): Line {
  const start = Math.max(0, from)
  return { ...line, cells: [...line.cells.slice(0, start), ...line.cells.slice(to)], at: start }
}

function rowStart({ cells, at }: Line): number {
  return cells.slice(0, at).findLastIndex(({ text }) => text === '\n') + 1
}

function rowEnd({ cells, at }: Line): number {
  const end = cells.findIndex(({ text }, index) => index >= at && text === '\n')
  return end < 0 ? cells.length : end
}

const isSpace = (cell: Cell | undefined): boolean => cell !== undefined && /^\s/.test(cell.text)

function wordBefore({ cells, at }: Line): number {
  let to = at
  while (to > 0 && isSpace(cells[to - 1])) to -= 1
  while (to > 0 && !isSpace(cells[to - 1])) to -= 1
  return to
}

function wordAfter({ cells, at }: Line): number {
  let to = at
  while (to < cells.length && isSpace(cells[to])) to += 1
  while (to < cells.length && !isSpace(cells[to])) to += 1
  return to
}

/** To the row above, or from the first row to the history. */
function up(line: Line, history: readonly string[]): Line {
  const start = rowStart(line)
  if (start > 0) {
    const above = rowStart({ ...line, at: start - 1 })
    return { ...line, at: Math.min(above + line.at - start, start - 1) }
  }
  const said = history.at(-1 - line.back)
  if (said === undefined) return line
  const draft = line.back === 0 ? line.cells : line.draft
  return { ...lineOf(said), back: line.back + 1, draft }
}

function down(line: Line, history: readonly string[]): Line {
  const end = rowEnd(line)
  if (end < line.cells.length) {
    const below = end + 1
    return { ...line, at: Math.min(below + line.at - rowStart(line), rowEnd({ ...line, at: below })) }
  }
  if (line.back === 0) return line
  if (line.back === 1) return { ...EMPTY_LINE, cells: line.draft, at: line.draft.length }
  return { ...lineOf(history.at(1 - line.back) ?? ''), back: line.back - 1, draft: line.draft }
}

/** Text without colours, and the function that colours it. */
export type Prompt = { readonly text: string; readonly paint: (text: string) => string }

/** The rows of a line after its prompt, and where the cursor is in them. Rows after the first begin below the text. */
export function drawLine(prompt: Prompt, { cells, at }: Line, width: number): Drawn {
  const asked = wrapped(prompt.text, width)
  const head = asked.at(-1) ?? ''
  const indent = ' '.repeat(asked.length > 1 ? 2 : Math.min(widthOf(head), Math.floor(width / 2)))
  const rows = asked.map((row) => prompt.paint(row))
  let used = widthOf(head)
  let [row, column] = [rows.length - 1, used]
  const next = (): void => {
    rows.push(indent)
    used = indent.length
  }
  for (const [index, { text, shown }] of [...cells, { text: '', shown: '' }].entries()) {
    const columns = text === '\n' ? 0 : widthOf(shown)
    if (columns > 0 && used + columns > width && used > indent.length) next()
    if (index === at) [row, column] = [rows.length - 1, used]
    if (text === '\n') next()
    else rows[rows.length - 1] += shown
    used += columns
  }
  return { rows, row, column: Math.min(column, width) }
}
