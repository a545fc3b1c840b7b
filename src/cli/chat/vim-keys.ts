// The keys of vi for the input line, for those who turn them on. Pure: a key goes in, the new line comes out. Keys that
// are not for it, such as Enter and Ctrl-R, are left to edit-line.ts.
import { type Cell, EMPTY_LINE, type InputLine, insertCells, rowEnd, rowStart } from './edit-line.ts'
import type { KeyPress } from './keys.ts'

export type Vim = {
  readonly mode: 'insert' | 'normal'
  /** The first letter of a command of two. */
  readonly begun: 'd' | null
  /** What was removed last. `isRow`: p puts it below. */
  readonly removed: { readonly cells: readonly Cell[]; readonly isRow: boolean }
  /** Earlier lines, the last at the end. */
  readonly undo: readonly InputLine[]
}

export const VIM_START: Vim = { mode: 'insert', begun: null, removed: { cells: [], isRow: false }, undo: [] }
const UNDO_MAX = 100

type Pressed = { readonly vim: Vim; readonly line: InputLine }

/** Null: the key has its usual meaning. */
export function pressVim(vim: Vim, line: InputLine, key: KeyPress): Pressed | null {
  const isLetters = key.name === undefined && !key.ctrl && !key.meta
  if (vim.mode === 'insert') {
    if (key.name !== 'escape') return null
    return { vim: { ...vim, mode: 'normal', begun: null }, line: stepLeft(line) }
  }
  if (!isLetters) return null
  let now: Pressed = { vim, line }
  for (const letter of key.sequence) {
    // Text that is typed at once after `i` is inserted.
    if (now.vim.mode === 'insert') now = { ...now, line: insertCells(now.line, [{ text: letter, shown: letter }]) }
    else now = pressLetter(now.vim, now.line, letter)
  }
  return now
}

function pressLetter(vim: Vim, line: InputLine, letter: string): Pressed {
  if (vim.begun === 'd') return letter === 'd' ? cutRow(calm(vim), line) : { vim: calm(vim), line }
  const moved = MOVES[letter]?.(line)
  if (moved !== undefined) return { vim, line: { ...line, at: inRow(line, moved) } }
  switch (letter) {
    case 'd':
      return { vim: { ...vim, begun: 'd' }, line }
    case 'x':
      return cut(vim, line, line.at, Math.min(line.at + 1, rowEnd(line)))
    case 'D':
      return cut(vim, line, line.at, rowEnd(line))
    case 'p':
      return { vim: remember(vim, line), line: putBack(vim, line) }
    case 'u':
      return { vim: { ...vim, undo: vim.undo.slice(0, -1) }, line: vim.undo.at(-1) ?? line }
    default: {
      const opened = INSERTS[letter]?.(line)
      return opened ? { vim: { ...remember(vim, line), mode: 'insert' }, line: opened } : { vim, line }
    }
  }
}

const calm = (vim: Vim): Vim => ({ ...vim, begun: null })
const remember = (vim: Vim, line: InputLine): Vim => ({ ...vim, undo: [...vim.undo.slice(-UNDO_MAX), line] })
const stepLeft = (line: InputLine): InputLine => ({ ...line, at: Math.max(rowStart(line), line.at - 1) })

/** In normal mode the cursor stands on a letter, so not behind the last one of its row. */
function inRow(line: InputLine, at: number): number {
  const there = { ...line, at }
  return Math.max(rowStart(there), Math.min(at, rowEnd(there) - 1))
}

const MOVES: Readonly<Record<string, (line: InputLine) => number>> = {
  h: (line) => Math.max(rowStart(line), line.at - 1),
  l: (line) => Math.min(rowEnd(line), line.at + 1),
  j: (line) => rowBeside(line, 1),
  k: (line) => rowBeside(line, -1),
  w: (line) => wordStart(line),
  b: (line) => wordBack(line),
  e: (line) => wordEnd(line),
  '0': rowStart,
  $: rowEnd,
}

const INSERTS: Readonly<Record<string, (line: InputLine) => InputLine>> = {
  i: (line) => line,
  a: (line) => ({ ...line, at: Math.min(rowEnd(line), line.at + 1) }),
  I: (line) => ({ ...line, at: rowStart(line) }),
  A: (line) => ({ ...line, at: rowEnd(line) }),
  o: (line) => insertCells({ ...line, at: rowEnd(line) }, [NEW_ROW]),
}
const NEW_ROW: Cell = { text: '\n', shown: '\n' }

function rowBeside(line: InputLine, step: 1 | -1): number {
  const column = line.at - rowStart(line)
  const other = step > 0 ? rowEnd(line) + 1 : rowStart(line) - 1
  if (other < 0 || other > line.cells.length) return line.at
  const there = { ...line, at: other }
  return Math.min(rowStart(there) + column, rowEnd(there))
}

/** Words are of letters and digits, or of other signs. */
function kindAt({ cells }: InputLine, at: number): 'blank' | 'word' | 'sign' {
  const text = cells[at]?.text ?? ' '
  return /^\s/.test(text) ? 'blank' : /^[\p{L}\p{N}_]/u.test(text) ? 'word' : 'sign'
}

function wordStart(line: InputLine): number {
  let { at } = line
  const kind = kindAt(line, at)
  while (at < line.cells.length && kind !== 'blank' && kindAt(line, at) === kind) at += 1
  while (at < line.cells.length && kindAt(line, at) === 'blank') at += 1
  return at
}

function wordBack(line: InputLine): number {
  let at = line.at - 1
  while (at > 0 && kindAt(line, at) === 'blank') at -= 1
  while (at > 0 && kindAt(line, at - 1) === kindAt(line, at)) at -= 1
  return Math.max(0, at)
}

function wordEnd(line: InputLine): number {
  let at = line.at + 1
  while (at < line.cells.length && kindAt(line, at) === 'blank') at += 1
  while (at + 1 < line.cells.length && kindAt(line, at + 1) === kindAt(line, at)) at += 1
  return Math.min(at, line.cells.length)
}

function cut(vim: Vim, line: InputLine, from: number, to: number): Pressed {
  if (to <= from) return { vim, line }
  const next = { ...line, cells: [...line.cells.slice(0, from), ...line.cells.slice(to)], at: from }
  const removed = { cells: line.cells.slice(from, to), isRow: false }
  return { vim: { ...remember(vim, line), removed }, line: { ...next, at: inRow(next, from) } }
}

/** The row with the line break that belongs to it. */
function cutRow(vim: Vim, line: InputLine): Pressed {
  const [start, end] = [rowStart(line), rowEnd(line)]
  if (line.cells.length === 0) return { vim, line }
  const removed = { cells: line.cells.slice(start, end), isRow: true }
  const from = end === line.cells.length ? Math.max(0, start - 1) : start
  const cells = [...line.cells.slice(0, from), ...line.cells.slice(end + (from === start ? 1 : 0))]
  const next = cells.length === 0 ? EMPTY_LINE : { ...line, cells, at: Math.min(from, cells.length) }
  return { vim: { ...remember(vim, line), removed }, line: { ...next, at: rowStart(next) } }
}

function putBack({ removed: { cells, isRow } }: Vim, line: InputLine): InputLine {
  if (cells.length === 0) return line
  const at = isRow ? rowEnd(line) : Math.min(rowEnd(line), line.at + 1)
  const added = isRow ? [NEW_ROW, ...cells] : cells
  const next = { ...line, cells: [...line.cells.slice(0, at), ...added, ...line.cells.slice(at)] }
  return { ...next, at: isRow ? at + 1 : at + added.length - 1 }
}
