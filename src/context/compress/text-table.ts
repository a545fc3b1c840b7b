// Shortens tables that programs print: CSV and tabs, columns between bars, columns with two blanks between them, and
// columns under a line of names as `ps` and `df` print them. Constant columns are named once; of many rows, both ends
// and the notable ones are shown.
import { cutBothEnds } from './cut-lines.ts'
import { notableRows } from './notable-rows.ts'

const ROWS_MIN = 12
const PROBED_LINES = 60
const CELL_CHARS_MAX = 200
const FIRST_ROWS = 12
const LAST_ROWS = 5
/** The share of lines that must have the usual number of cells. */
const EVEN_SHARE = 0.9
const COLUMNS_MAX = 60
/** The names of the columns are within this many lines from the beginning. */
const TITLE_LINES = 12
/** The most lines that are not rows that are shown, and the most of them that are shown with the rows around them. */
const OTHERS_MAX = 40
const OTHERS_WITH_ROWS = 10
/** At least this share of the words of a row must begin or end where the names of their columns do. */
const ALIGNED_SHARE = 0.4

/**
 * Splits lines into cells; `sign` joins the cells when they are shown. `cells` returns null for a line without the
 * columns of the table.
 */
type CellSplitter = {
  readonly cells: (line: string) => readonly string[] | null
  readonly sign: string
  /** Without column names, a text with fewer columns than this is not taken for a table. */
  readonly unnamedMin: number
}
type TableRow = Readonly<Record<string, string | number>>
type TextTable = {
  readonly head: readonly string[]
  readonly rows: readonly TableRow[]
  /** Lines that are not rows, such as titles and counts, with the number of the row that follows them. */
  readonly others: readonly OtherLine[]
  readonly sign: string
}
type OtherLine = { readonly line: string; readonly before: number }

/** Null for a text that is not a table. */
export function shortenTextTable(lines: readonly string[], charsMax: number, isCsv: boolean): string | null {
  const table = readTable(lines, isCsv)
  return table === null ? null : renderTable(table, charsMax)
}

const BLANKS: CellSplitter = { cells: (line) => line.trim().split(/ {2,}/), sign: '\t', unnamedMin: 5 }
const BARS: CellSplitter = { cells: splitBars, sign: '\t', unnamedMin: 3 }
const TABS: CellSplitter = { cells: (line) => line.split('\t'), sign: '\t', unnamedMin: 3 }

function splitBars(line: string): readonly string[] {
  return line
    .replace(/^\s*\||\|\s*$/g, '')
    .split('|')
    .map((cell) => cell.trim())
}

function readTable(lines: readonly string[], isCsv: boolean): TextTable | null {
  const filled = lines.filter((line) => line.trim() !== '')
  if (filled.length < ROWS_MIN) return null
  const probe = filled.slice(0, PROBED_LINES)
  for (const split of splittersFor(probe, isCsv)) {
    const table = readTableBy(filled, split)
    if (table !== null) return table
  }
  return null
}

/** The ways to split these lines into cells, the most certain first. */
function splittersFor(probe: readonly string[], isCsv: boolean): readonly CellSplitter[] {
  const share = (test: (line: string) => boolean): number => probe.filter(test).length / probe.length
  const splits: CellSplitter[] = []
  if (share((line) => line.includes('\t') && !line.startsWith('\t')) >= EVEN_SHARE) splits.push(TABS)
  if (share((line) => / \| |^\|.*\|$/.test(line)) >= 0.8) splits.push(BARS)
  for (const sign of [',', ';'])
    if (isCsv || share((line) => line.includes(sign) && !/[.:]\s/.test(line)) >= EVEN_SHARE)
      splits.push(splitterBySign(sign))
  if (share((line) => !line.startsWith(' ') && /\S {2,}\S/.test(line)) >= EVEN_SHARE) splits.push(BLANKS)
  const head = probe.slice(0, TITLE_LINES).find(isHeader)
  if (head !== undefined) splits.push(splitterByHeader(head, probe.slice(probe.indexOf(head))))
  return splits
}

function isHeader(line: string): boolean {
  const names = line.trim().split(/\s+/)
  return names.length >= 4 && names.every((name) => /^[A-Z%][A-Z%+/()_-]*$/.test(name))
}

/** Splits CSV: a separator between quotes does not count. */
function splitterBySign(sign: string): CellSplitter {
  const cells = (line: string): readonly string[] => {
    if (!line.includes('"')) return line.split(sign)
    const cells: string[] = []
    let [from, quoted] = [0, false]
    for (let at = 0; at <= line.length; at++) {
      if (line[at] === '"') quoted = !quoted
      else if (at === line.length || (line[at] === sign && !quoted)) {
        cells.push(line.slice(from, at))
        from = at + 1
      }
    }
    return cells
  }
  return { cells, sign, unnamedMin: 3 }
}

type ColumnPlace = { readonly from: number; readonly to: number }

/**
 * Splits lines under a line of names. If nearly all lines have a blank before each name, cells are cut there, and other
 * lines are prose. Else a line has as many words as there are names, the last with the rest of the line, if most of
 * them begin or end with their names.
 */
function splitterByHeader(header: string, probe: readonly string[]): CellSplitter {
  const names = [...header.matchAll(/\S+/g)].map(({ index, 0: name }) => ({ from: index, to: index + name.length }))
  const cutAt: CellSplitter['cells'] = (line) =>
    isCutBy(names, line)
      ? names.map(({ from }, i) => line.slice(i === 0 ? 0 : from, names[i + 1]?.from ?? line.length).trim())
      : null
  const fitting = probe.filter((line) => isCutBy(names, line)).length
  const shown = { sign: '\t', unnamedMin: 3 }
  if (fitting >= probe.length * EVEN_SHARE) return { cells: cutAt, ...shown }
  const cells = (line: string): readonly string[] | null => {
    if (line !== header && !isAlignedTo(names, line)) return null
    const words = line.trim().split(/\s+/)
    return words.length <= names.length
      ? words
      : [...words.slice(0, names.length - 1), words.slice(names.length - 1).join(' ')]
  }
  return { cells, ...shown }
}

function isBlank(line: string, at: number): boolean {
  return at >= line.length || line[at] === ' '
}

/**
 * Whether the columns of the header cut this line between words: each column but the first begins after a blank, and
 * the last is not empty.
 */
function isCutBy(names: readonly ColumnPlace[], line: string): boolean {
  return names.every(({ from }, i) => i === 0 || isBlank(line, from - 1)) && !isBlank(line, names.at(-1)?.from ?? 0)
}

function isAlignedTo(names: readonly ColumnPlace[], line: string): boolean {
  const aligned = names.slice(1).filter(({ from, to }) => {
    return (isBlank(line, from - 1) && !isBlank(line, from)) || (isBlank(line, to) && !isBlank(line, to - 1))
  })
  return aligned.length >= (names.length - 1) * ALIGNED_SHARE
}

const RULE = /^[\s|+:=-]+$/
const NO_CELLS: readonly string[] = []

function readTableBy(lines: readonly string[], { cells, sign, unnamedMin }: CellSplitter): TextTable | null {
  const cut = lines.map((line) => (RULE.test(line) ? null : (cells(line) ?? NO_CELLS)))
  const width = usualWidth(cut)
  if (width < 3 || width > COLUMNS_MAX) return null
  const even = cut.filter((row) => row === null || row.length === width).length
  if (even < lines.length * EVEN_SHARE) return null
  const start = cut.findIndex((row) => row?.length === width)
  const names = cut[start] ?? []
  const isNamed = areColumnNames(names, cut.slice(start + 1))
  if (!isNamed && width < unnamedMin) return null
  const head = isNamed ? names : names.map((_name, i) => `c${i + 1}`)
  const rows: TableRow[] = []
  const others: OtherLine[] = []
  for (const [i, row] of cut.entries()) {
    if (row?.length === width) {
      if (i !== start || !isNamed)
        rows.push(Object.fromEntries(head.map((name, at) => [name, cellValue(row[at] ?? '')])))
    } else if (row !== null) others.push({ line: lines[i] ?? '', before: rows.length })
  }
  return { head, rows, others, sign }
}

/** Names of columns differ, have no digits, and do not come again in a row. */
function areColumnNames(names: readonly string[], rows: readonly (readonly string[] | null)[]): boolean {
  if (names.some((name) => name === '' || /\d/.test(name)) || new Set(names).size < names.length) return false
  return !rows.some((row) => row !== null && names.filter((name, i) => row[i] === name).length * 2 >= names.length)
}

function usualWidth(cut: readonly (readonly string[] | null)[]): number {
  const widths = new Map<number, number>()
  for (const cells of cut.slice(0, PROBED_LINES))
    if (cells) widths.set(cells.length, (widths.get(cells.length) ?? 0) + 1)
  return [...widths].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 0
}

/** A number only if the cell is written exactly as that number. */
function cellValue(cell: string): string | number {
  const number = cell === '' ? Number.NaN : Number(cell)
  return Number.isFinite(number) && String(number) === cell ? number : cell
}

function renderTable(table: TextTable, charsMax: number): string {
  const { head, rows, sign } = table
  const [sample = {}] = rows
  const constant = rows.length > 5 ? head.filter((name) => rows.every((row) => row[name] === sample[name])) : []
  const shown = head.filter((name) => !constant.includes(name))
  const cell = (row: TableRow, name: string): string => cutBothEnds(String(row[name] ?? ''), CELL_CHARS_MAX)
  const lineOf = (row: number): string =>
    shown
      .map((name) => cell(rows[row] ?? {}, name))
      .join(sign)
      .trimEnd()
  const same = constant.map((name) => `${name}=${cell(sample, name)}`).join(', ')
  const parted = sign === '\t' ? ', columns separated by tabs' : ''
  const title = `${rows.length} rows${parted}${same === '' ? '' : `; in all of them ${same}`}`
  const others = table.others.slice(0, OTHERS_MAX).map(({ line, before }) => {
    return { line: cutBothEnds(line, CELL_CHARS_MAX), before }
  })
  const top = [title, shown.join(sign)]
  const chars = [...top, ...others.map(({ line }) => line)].reduce((sum, line) => sum + line.length + 1, 0)
  return renderRows(top, others, lineOf, chooseRows(table, others, lineOf, charsMax - chars))
}

/** Takes both ends, the rows around a line that is not a row, and the notable rows. */
function chooseRows(
  { rows, head }: TextTable,
  others: readonly OtherLine[],
  lineOf: (row: number) => string,
  charsMax: number,
): readonly boolean[] {
  let left = charsMax
  const taken = rows.map(() => false)
  const take = (row: number): void => {
    if (row < 0 || row >= rows.length || taken[row]) return
    const chars = lineOf(row).length + 14
    if (chars > left) return
    taken[row] = true
    left -= chars
  }
  for (const row of [0, 1, rows.length - 1]) take(row)
  if (others.length <= OTHERS_WITH_ROWS)
    for (const { before } of others) for (const row of [before - 1, before]) take(row)
  for (const row of notableRows(rows, head, 'cells')) take(row)
  for (let row = 2; row < FIRST_ROWS; row++) take(row)
  for (let i = 2; i <= LAST_ROWS; i++) take(rows.length - i)
  return taken
}

/** The rows and other lines in their order. A gap is named at the end of the line before it. */
function renderRows(
  top: readonly string[],
  others: readonly OtherLine[],
  lineOf: (row: number) => string,
  taken: readonly boolean[],
): string {
  const lines: string[] = []
  let [from, next] = [-1, 0]
  const nameGap = (to: number): void => {
    if (from >= 0) lines.push(`${lines.pop() ?? ''} [… rows ${from + 1}–${to}]`)
    from = -1
  }
  const placeOthers = (row: number): void => {
    for (; next < others.length && (others[next]?.before ?? 0) <= row; next++) {
      nameGap(row)
      lines.push(others[next]?.line ?? '')
    }
    if (row === 0) lines.push(...top)
  }
  for (let row = 0; row <= taken.length; row++) {
    placeOthers(row)
    if (row < taken.length && !taken[row]) {
      if (from < 0) from = row
      continue
    }
    nameGap(row)
    if (row < taken.length) lines.push(lineOf(row))
  }
  return lines.join('\n')
}
