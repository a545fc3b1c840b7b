// Tables that programs print: CSV and tabs, columns between bars, columns that two blanks part, and columns under a line of names such
// as `ps` and `df` print them. Columns that never change are said once; of many rows, both ends and the notable ones are shown.
import { cutBothEnds } from './lines.ts'
import { notableRows } from './rows.ts'

const ROWS_MIN = 12
const PROBED_LINES = 60
const CELL_CHARS_MAX = 200
const FIRST_ROWS = 12
const LAST_ROWS = 5
/** The share of lines that must have as many cells as the others. */
const EVEN_SHARE = 0.9
const COLUMNS_MAX = 60
/** So many of the words of a row begin or end where the names of their columns do. */
const ALIGNED_SHARE = 0.4

/** Null for a line that has not the columns of the table. */
type Split = (line: string) => readonly string[] | null
type Row = Readonly<Record<string, string | number>>
type Table = {
  readonly head: readonly string[]
  readonly rows: readonly Row[]
  /** Lines that are no row: titles, rules and counts. */
  readonly others: readonly string[]
}

/** Null for a text that is no table. */
export function shortenTextTable(lines: readonly string[], charsMax: number, isCsv: boolean): string | null {
  const table = readTable(lines, isCsv)
  return table === null ? null : shownTable(table, charsMax)
}

const BLANKS: Split = (line) => line.trim().split(/ {2,}/)
const BARS: Split = (line) =>
  line
    .replace(/^\s*\||\|\s*$/g, '')
    .split('|')
    .map((cell) => cell.trim())
const TABS: Split = (line) => line.split('\t')

function readTable(lines: readonly string[], isCsv: boolean): Table | null {
  const filled = lines.filter((line) => line.trim() !== '')
  if (filled.length < ROWS_MIN) return null
  const probe = filled.slice(0, PROBED_LINES)
  for (const split of splitsFor(probe, isCsv)) {
    const table = tableBy(filled, split)
    if (table !== null) return table
  }
  return null
}

/** The ways to cut these lines into cells, the surest first. */
function splitsFor(probe: readonly string[], isCsv: boolean): readonly Split[] {
  const share = (test: (line: string) => boolean): number => probe.filter(test).length / probe.length
  const splits: Split[] = []
  if (share((line) => line.includes('\t') && !line.startsWith('\t')) >= EVEN_SHARE) splits.push(TABS)
  if (share((line) => / \| |^\|.*\|$/.test(line)) >= 0.8) splits.push(BARS)
  for (const sign of [',', ';'])
    if (isCsv || share((line) => line.includes(sign) && !/[.:]\s/.test(line)) >= EVEN_SHARE)
      splits.push(cellsBetween(sign))
  if (share((line) => !line.startsWith(' ') && /\S {2,}\S/.test(line)) >= EVEN_SHARE) splits.push(BLANKS)
  const names = (probe[0] ?? '').trim().split(/\s+/)
  if (names.length >= 4 && names.every((name) => /^[A-Z%][A-Z%+/()_-]*$/.test(name)))
    splits.push(cellsUnder(probe[0] ?? '', probe))
  return splits
}

/** Cells of CSV: a sign between quotes parts nothing. */
function cellsBetween(sign: string): Split {
  return (line) => {
    if (!line.includes('"')) return line.split(sign)
    const cells: string[] = []
    let [from, quoted] = [0, false]
    for (let at = 0; at <= line.length; at++) {
      if (line[at] === '"') quoted = !quoted
      else if (at === line.length || (line[at] === sign && !quoted)) {
        const cell = line.slice(from, at)
        cells.push(/^".*"$/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell)
        from = at + 1
      }
    }
    return cells
  }
}

type Place = { readonly from: number; readonly to: number }

/**
 * Cells under a line of names. Where nearly all lines have a blank before each name, cells are cut there, and other lines are prose. Else a
 * line has as many words as there are names, the last with all that follows it, if most of them begin or end with their names.
 */
function cellsUnder(header: string, probe: readonly string[]): Split {
  const names = [...header.matchAll(/\S+/g)].map(({ index, 0: name }) => ({ from: index, to: index + name.length }))
  const cutAt: Split = (line) =>
    isCutBy(names, line)
      ? names.map(({ from }, i) => line.slice(i === 0 ? 0 : from, names[i + 1]?.from ?? line.length).trim())
      : null
  const fitting = probe.filter((line) => isCutBy(names, line)).length
  if (fitting >= probe.length * EVEN_SHARE) return cutAt
  return (line) => {
    if (line !== header && !isAlignedTo(names, line)) return null
    const words = line.trim().split(/\s+/)
    return words.length <= names.length
      ? words
      : [...words.slice(0, names.length - 1), words.slice(names.length - 1).join(' ')]
  }
}

function isBlank(line: string, at: number): boolean {
  return at >= line.length || line[at] === ' '
}

/** A blank stands before each name, and a word stands under the last name. */
function isCutBy(names: readonly Place[], line: string): boolean {
  return names.every(({ from }, i) => i === 0 || isBlank(line, from - 1)) && !isBlank(line, names.at(-1)?.from ?? 0)
}

function isAlignedTo(names: readonly Place[], line: string): boolean {
  const aligned = names.slice(1).filter(({ from, to }) => {
    return (isBlank(line, from - 1) && !isBlank(line, from)) || (isBlank(line, to) && !isBlank(line, to - 1))
  })
  return aligned.length >= (names.length - 1) * ALIGNED_SHARE
}

const RULE = /^[\s|+:=-]+$/
const NO_CELLS: readonly string[] = []

function tableBy(lines: readonly string[], split: Split): Table | null {
  const cut = lines.map((line) => (RULE.test(line) ? null : (split(line) ?? NO_CELLS)))
  const width = usualWidth(cut)
  if (width < 3 || width > COLUMNS_MAX) return null
  const even = cut.filter((cells) => cells === null || cells.length === width).length
  if (even < lines.length * EVEN_SHARE) return null
  const start = cut.findIndex((cells) => cells?.length === width)
  const names = cut[start] ?? []
  const named = names.every((name) => name !== '' && !/\d/.test(name)) && new Set(names).size === names.length
  const head = named ? names : names.map((_name, i) => `c${i + 1}`)
  const rows: Row[] = []
  const others: string[] = []
  for (const [i, cells] of cut.entries()) {
    if (cells?.length === width) {
      if (i !== start || !named) rows.push(Object.fromEntries(head.map((name, at) => [name, valueOf(cells[at] ?? '')])))
    } else if (cells !== null) others.push(lines[i] ?? '')
  }
  return { head, rows, others }
}

function usualWidth(cut: readonly (readonly string[] | null)[]): number {
  const widths = new Map<number, number>()
  for (const cells of cut.slice(0, PROBED_LINES))
    if (cells) widths.set(cells.length, (widths.get(cells.length) ?? 0) + 1)
  return [...widths].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 0
}

/** A number only where it is written as that number is written. */
function valueOf(cell: string): string | number {
  const number = cell === '' ? Number.NaN : Number(cell)
  return Number.isFinite(number) && String(number) === cell ? number : cell
}

function shownTable({ head, rows, others }: Table, charsMax: number): string {
  const [sample = {}] = rows
  const constant = rows.length > 5 ? head.filter((name) => rows.every((row) => row[name] === sample[name])) : []
  const shown = head.filter((name) => !constant.includes(name))
  const cell = (row: Row, name: string): string => cutBothEnds(String(row[name] ?? ''), CELL_CHARS_MAX)
  const lineOf = (row: Row): string =>
    shown
      .map((name) => cell(row, name))
      .join('\t')
      .trimEnd()
  const same = constant.map((name) => `${name}=${cell(sample, name)}`).join(', ')
  const title = `${rows.length} rows, columns separated by tabs${same === '' ? '' : `; in all of them ${same}`}`
  const aside = others.slice(0, 40).map((line) => cutBothEnds(line, CELL_CHARS_MAX))
  let left = charsMax - title.length - shown.join('\t').length - aside.join('\n').length
  const taken = new Set<number>()
  const take = (row: number): void => {
    const chars = lineOf(rows[row] ?? {}).length + 14
    if (row < 0 || row >= rows.length || taken.has(row) || chars > left) return
    taken.add(row)
    left -= chars
  }
  for (const row of [0, 1, rows.length - 1]) take(row)
  for (const row of notableRows(rows, head)) take(row)
  for (let row = 2; row < FIRST_ROWS; row++) take(row)
  for (let i = 2; i <= LAST_ROWS; i++) take(rows.length - i)
  const lines = [title, shown.join('\t'), ...aside]
  let from = -1
  for (let row = 0; row <= rows.length; row++) {
    if (row < rows.length && !taken.has(row)) {
      if (from < 0) from = row
      continue
    }
    if (from >= 0) lines.push(`${lines.pop() ?? ''} [… rows ${from + 1}–${row}]`)
    from = -1
    if (row < rows.length) lines.push(lineOf(rows[row] ?? {}))
  }
  return lines.join('\n')
}
