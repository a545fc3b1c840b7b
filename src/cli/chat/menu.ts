// The menu below the input line: commands after a slash at its begin, files after an `@`. Pure: what is known comes in,
// rows and the changed line come out.
import { clean, oneLine } from '../../view/clean.ts'
import { clipToWidth, type Paint, widthOf } from '../present/terminal-text.ts'
import { type InputLine, lineText, replaceBack } from './edit-line.ts'

export type MenuRow = { readonly value: string; readonly detail?: string }
export type Menu = {
  readonly token: MenuToken
  readonly rows: readonly MenuRow[]
  readonly at: number
  /** The person moved in the menu, so Enter takes the marked row. */
  readonly isMoved: boolean
}
/** `from`: the cell at which the text to complete begins. */
export type MenuToken = { readonly type: 'command' | 'file'; readonly from: number; readonly query: string }

export type MenuSources = {
  /** The commands that begin with this text, which begins with a slash. */
  readonly commands: (text: string) => readonly MenuRow[]
  /** The files that fit the query so far, the best first. `changed` is called when there are more. */
  readonly files: (query: string, changed: () => void) => readonly string[]
}

/** The word before the cursor that can be completed. */
function tokenBefore({ cells, at }: InputLine): MenuToken | null {
  let from = at
  while (from > 0 && !/^\s/.test(cells[from - 1]?.text ?? '')) from -= 1
  const first = cells[from]?.text
  if (from === at || (first !== '@' && (first !== '/' || from > 0))) return null
  const query = cells.slice(from + 1, at).map(({ text }) => text)
  // A paste or a taken file is one cell, and no part of a name.
  if (query.some((text) => text.length > 32)) return null
  return { type: first === '@' ? 'file' : 'command', from, query: query.join('') }
}

/** The menu after the line has changed; null: there is nothing to choose. The mark stays while the word is the same. */
export function menuFor(line: InputLine, sources: MenuSources, before: Menu | null, changed: () => void): Menu | null {
  const token = tokenBefore(line)
  if (token === null) return null
  const rows =
    token.type === 'command'
      ? sources.commands(`/${token.query}`)
      : sources.files(token.query, changed).map((value) => ({ value }))
  if (rows.length === 0) return null
  const isSame = before?.token.query === token.query && before.token.from === token.from
  const at = isSame ? Math.min(before.at, rows.length - 1) : 0
  return { token, rows, at, isMoved: isSame && before.isMoved }
}

export function moveInMenu(menu: Menu, step: number): Menu {
  const { rows, at } = menu
  return { ...menu, at: (at + step + rows.length) % rows.length, isMoved: true }
}

/** The line with the marked row in place of the word. */
export function takeFromMenu(line: InputLine, { token, rows, at }: Menu): InputLine {
  const { value } = rows[at] ?? { value: '' }
  const text = token.type === 'command' ? value : `@${quotePath(value)}`
  return replaceBack(line, token.from, { text, shown: oneLine(text, 400) })
}

/** True if Enter takes the marked row in place of sending the line. */
export function takesOnEnter(line: InputLine, { token, rows, at, isMoved }: Menu): boolean {
  if (isMoved) return true
  if (token.type === 'command') return false
  return line.at === line.cells.length && rows[at]?.value !== token.query && lineText(line) !== '@'
}

/** A path with a blank or another odd character is written as JSON, so that it is read back exactly. */
export function quotePath(path: string): string {
  return /^[^\s"\p{C}]+$/u.test(path) ? path : JSON.stringify(path)
}

const ROWS_MAX = 8

export function drawMenu({ rows, at, token }: Menu, paint: Paint, columns: number): readonly string[] {
  const from = Math.max(0, Math.min(at - Math.floor(ROWS_MAX / 2), rows.length - ROWS_MAX))
  const shown = rows.slice(from, from + ROWS_MAX)
  const names = shown.map(({ value }) => (token.type === 'file' ? clean(quotePath(value)) : clean(value)))
  const widest = Math.min(Math.max(...names.map(widthOf)), Math.floor(columns / 2))
  const drawn = shown.map(({ detail = '' }, index) => {
    const name = clipToWidth(names[index] ?? '', columns - 4)
    const room = columns - 4 - Math.max(widthOf(name), widest) - 2
    const said =
      detail === '' || room < 8
        ? ''
        : `${' '.repeat(Math.max(2, widest - widthOf(name) + 2))}${clipToWidth(oneLine(detail, 400), room)}`
    const isMarked = from + index === at
    return isMarked ? `  ${paint.cyan('❯')} ${paint.bold(name)}${paint.dim(said)}` : paint.dim(`    ${name}${said}`)
  })
  return rows.length > ROWS_MAX
    ? [...drawn, paint.dim(clipToWidth(`    ${at + 1} of ${rows.length} · ↑ ↓`, columns))]
    : drawn
}
