// The input line as data: a key goes in, the new line and an action come out. Pure: terminal-input.ts reads keys and
// draws. Each grapheme is one cell, and so is a paste of several lines.
import { clean } from '../../view/clean.ts'
import type { DrawnRows } from '../present/screen.ts'
import { widthOf, wrapAnswers } from '../present/terminal-text.ts'
import type { KeyPress } from './keys.ts'

/** One cell of the line: its text, and the text shown for it. */
export type Cell = { readonly text: string; readonly shown: string }

export type InputLine = {
  readonly cells: readonly Cell[]
  /** The cursor stands before this cell. */
  readonly at: number
  /** The number of steps back in the history; `draft` is the line that was edited before. */
  readonly back: number
  readonly draft: readonly Cell[]
}

export type KeyAction =
  | { readonly type: 'entered'; readonly text: string; readonly shown: string }
  | { readonly type: PlainAction }
type PlainAction =
  | 'interrupt'
  | 'end'
  | 'redraw'
  | 'suspend'
  | 'escape'
  /** The next mode. */
  | 'mode'
  /** Everything that was shown, in full. */
  | 'expand'
  | 'search'
  /** The line in the person's own editor. */
  | 'compose'
  /** Takes the last queued message back. */
  | 'unqueue'

export type EditContext = {
  /** The history, oldest first. */
  readonly history: readonly string[]
  /** True if a message is queued that can be taken back. */
  readonly hasQueued: () => boolean
}

export const NOTHING_KNOWN: EditContext = { history: [], hasQueued: () => false }
export const EMPTY_LINE: InputLine = { cells: [], at: 0, back: 0, draft: [] }

export function lineText({ cells }: InputLine): string {
  return cells.map(({ text }) => text).join('')
}

/** Returns the line after a key, and the action of the key. */
export function pressKey(line: InputLine, key: KeyPress, known: EditContext): readonly [InputLine, KeyAction | null] {
  if (key.name === 'paste') return [insertPaste(line, key.sequence), null]
  if (isPlainText(key)) return [insertPaste(line, key.sequence), null]
  // Control characters without an entry in the table are ignored.
  return NAMED[keyNameOf(key)]?.(line, known) ?? [line, null]
}

function isPlainText(key: KeyPress): boolean {
  if (key.ctrl || key.meta || key.sequence === '' || /^\p{Cc}/u.test(key.sequence)) return false
  return key.name === undefined || NAMED[keyNameOf(key)] === undefined
}

export function keyNameOf({ name = '', ctrl, meta, shift }: KeyPress): string {
  const isShifted = shift && (name === 'tab' || name === 'return')
  return `${ctrl ? 'ctrl-' : ''}${meta ? 'alt-' : ''}${isShifted ? 'shift-' : ''}${name}`
}

type KeyHandler = (line: InputLine, known: EditContext) => readonly [InputLine, KeyAction | null]

const editHandler =
  (change: (line: InputLine) => InputLine): KeyHandler =>
  (line) => [change(line), null]
const actionHandler =
  (type: PlainAction): KeyHandler =>
  (line) => [line, { type }]
const insertNewLine = editHandler((line) => insertCells(line, [NEW_LINE]))
const moveLeft = editHandler((line) => ({ ...line, at: Math.max(0, line.at - 1) }))
const moveToStart = editHandler((line) => ({ ...line, at: rowStart(line) }))
const moveToEnd = editHandler((line) => ({ ...line, at: rowEnd(line) }))
const moveWordLeft = editHandler((line) => ({ ...line, at: wordBefore(line) }))
const moveWordRight = editHandler((line) => ({ ...line, at: wordAfter(line) }))
const cutWord = editHandler((line) => removeCells(line, wordBefore(line), line.at))
const eraseLeft = editHandler((line) => removeCells(line, line.at - 1, line.at))
const showOlder: KeyHandler = (line, known) => {
  const isFirst = rowStart(line) === 0 && line.back === 0
  return isFirst && known.hasQueued() ? [line, { type: 'unqueue' }] : [moveUp(line, known.history), null]
}
const showNewer: KeyHandler = (line, known) => [moveDown(line, known.history), null]

const NAMED: Readonly<Record<string, KeyHandler>> = {
  return: enterLine,
  enter: insertNewLine,
  'ctrl-j': insertNewLine,
  'alt-return': insertNewLine,
  'alt-enter': insertNewLine,
  'shift-return': insertNewLine,
  'shift-tab': actionHandler('mode'),
  escape: actionHandler('escape'),
  backspace: eraseLeft,
  'ctrl-h': eraseLeft,
  delete: editHandler((line) => removeCells(line, line.at, line.at + 1)),
  left: moveLeft,
  'ctrl-b': moveLeft,
  right: editHandler((line) => ({ ...line, at: Math.min(line.cells.length, line.at + 1) })),
  'ctrl-f': editHandler((line) => ({ ...line, at: Math.min(line.cells.length, line.at + 1) })),
  home: moveToStart,
  'ctrl-a': moveToStart,
  end: moveToEnd,
  'ctrl-e': moveToEnd,
  'ctrl-left': moveWordLeft,
  'alt-left': moveWordLeft,
  'alt-b': moveWordLeft,
  'ctrl-right': moveWordRight,
  'alt-right': moveWordRight,
  'alt-f': moveWordRight,
  'ctrl-w': cutWord,
  'alt-backspace': cutWord,
  'ctrl-u': editHandler((line) => removeCells(line, rowStart(line), line.at)),
  'ctrl-k': editHandler((line) => removeCells(line, line.at, rowEnd(line))),
  up: showOlder,
  'ctrl-p': showOlder,
  down: showNewer,
  'ctrl-n': showNewer,
  'ctrl-g': actionHandler('compose'),
  'ctrl-l': actionHandler('redraw'),
  'ctrl-o': actionHandler('expand'),
  'ctrl-r': actionHandler('search'),
  'ctrl-z': actionHandler('suspend'),
  'ctrl-c': actionHandler('interrupt'),
  'ctrl-d': (line) => {
    return line.cells.length === 0 ? [line, { type: 'end' }] : [removeCells(line, line.at, line.at + 1), null]
  },
}

/** Enter sends the line. After a backslash at the end it adds a row instead. */
function enterLine(line: InputLine): readonly [InputLine, KeyAction | null] {
  const last = line.cells.at(-1)
  if (last?.text === '\\') {
    const cells = [...line.cells.slice(0, -1), NEW_LINE]
    return [{ ...line, cells, at: cells.length }, null]
  }
  const shown = line.cells.map((cell) => cell.shown).join('')
  return [EMPTY_LINE, { type: 'entered', text: lineText(line), shown }]
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

/** Joiners inside a grapheme are part of it. A character that is unsafe by itself is shown by its number. */
function shownLetter(letter: string): string {
  const [first = ''] = letter
  return clean(first) === first ? letter.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '') : clean(letter)
}

/** Text with many lines, or very long text, becomes one cell, as in a paste. */
export function lineFromText(text: string): InputLine {
  if (text.length > CHARS_MAX || text.split('\n').length > ROWS_MAX) return insertPaste(EMPTY_LINE, text)
  const cells = cellsOf(text)
  return { ...EMPTY_LINE, cells, at: cells.length }
}
const ROWS_MAX = 5
/** A longer text is one cell. With one cell for each letter it would fill the screen and make every key slow. */
const CHARS_MAX = 1_000

/** The first inserted character may join the grapheme before it. */
export function insertCells(line: InputLine, added: readonly Cell[]): InputLine {
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

/**
 * A paste of several lines, or of one very long line, becomes one cell, so that it neither sends itself nor fills the
 * screen.
 */
function insertPaste(line: InputLine, raw: string): InputLine {
  const text = raw.replace(/\r\n?/g, '\n')
  if (text === '') return line
  const isLines = text.includes('\n')
  if (!isLines && text.length <= CHARS_MAX) return insertCells(line, cellsOf(text))
  const count = text.replace(/\n$/, '').split('\n').length
  const shown = isLines
    ? `[pasted ${count} line${count === 1 ? '' : 's'}]`
    : `[pasted ${text.length.toLocaleString('en')} characters]`
  const cells = [...line.cells.slice(0, line.at), { text, shown }, ...line.cells.slice(line.at)]
  return { ...line, cells, at: line.at + 1 }
}

/** One cell in place of those from here to the cursor, with a blank behind it. */
export function replaceBack(line: InputLine, from: number, cell: Cell): InputLine {
  const cells = [...line.cells.slice(0, from), cell, ...cellsOf(' '), ...line.cells.slice(line.at)]
  return { ...line, cells, at: from + 2 }
}

function removeCells(line: InputLine, from: number, to: number): InputLine {
  const start = Math.max(0, from)
  return { ...line, cells: [...line.cells.slice(0, start), ...line.cells.slice(to)], at: start }
}

export function rowStart({ cells, at }: InputLine): number {
  return cells.slice(0, at).findLastIndex(({ text }) => text === '\n') + 1
}

export function rowEnd({ cells, at }: InputLine): number {
  const end = cells.findIndex(({ text }, index) => index >= at && text === '\n')
  return end < 0 ? cells.length : end
}

const isSpace = (cell: Cell | undefined): boolean => cell !== undefined && /^\s/.test(cell.text)

function wordBefore({ cells, at }: InputLine): number {
  let to = at
  while (to > 0 && isSpace(cells[to - 1])) to -= 1
  while (to > 0 && !isSpace(cells[to - 1])) to -= 1
  return to
}

function wordAfter({ cells, at }: InputLine): number {
  let to = at
  while (to < cells.length && isSpace(cells[to])) to += 1
  while (to < cells.length && !isSpace(cells[to])) to += 1
  return to
}

/** Moves to the row above, or from the first row to the history. */
function moveUp(line: InputLine, history: readonly string[]): InputLine {
  const start = rowStart(line)
  if (start > 0) {
    const above = rowStart({ ...line, at: start - 1 })
    return { ...line, at: Math.min(above + line.at - start, start - 1) }
  }
  const said = history.at(-1 - line.back)
  if (said === undefined) return line
  const draft = line.back === 0 ? line.cells : line.draft
  return { ...lineFromText(said), back: line.back + 1, draft }
}

function moveDown(line: InputLine, history: readonly string[]): InputLine {
  const end = rowEnd(line)
  if (end < line.cells.length) {
    const below = end + 1
    return { ...line, at: Math.min(below + line.at - rowStart(line), rowEnd({ ...line, at: below })) }
  }
  if (line.back === 0) return line
  if (line.back === 1) return { ...EMPTY_LINE, cells: line.draft, at: line.draft.length }
  return { ...lineFromText(history.at(1 - line.back) ?? ''), back: line.back - 1, draft: line.draft }
}

/** A prompt without colours, and the function that colours it. */
export type Prompt = { readonly text: string; readonly paint: (text: string) => string }

/** The rows of a line after its prompt, and the position of the cursor. Later rows begin below the text. */
export function drawLine(prompt: Prompt, { cells, at }: InputLine, width: number): DrawnRows {
  const asked = wrapAnswers(prompt.text, width)
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
