// Shortens JSON: objects in a list or under keys become a table that names each key once; everything else loses its
// blanks. With loss, a long table shows its beginning, its end, the rows that report an error and the rows with unusual
// numbers.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject, parseJson } from '../../view/untrusted-json.ts'
import type { Shortener, ShortenedText } from './text-kind.ts'
import { newBoundedChoice, cutBothEnds } from './cut-lines.ts'
import { PathCollector } from './pointed-rows.ts'
import { notableRows } from './notable-rows.ts'

const ROWS_MIN = 3
const ROWS_MAX = 40
/** Fewer objects under keys may be the parts of one thing, with the rows inside them. */
const COLLECTION_MIN = 10
const HEAD_ROWS = 20
const TAIL_ROWS = 10
const CELL_CHARS_MAX = 240
const COLUMNS_MAX = 200
/** A table in which fewer cells than this share are filled is longer than the JSON that it replaces. */
const FILLED_SHARE = 0.2
/** A result below this share of the text need not be compared with the text without blanks. */
const MUCH_SHORTER = 0.25
const LEVELS_MAX = 24
/** In an object of more fields than this, no tables are searched for. */
const FIELDS_MAX = 1_000
/** A whole number with more digits than a JavaScript number holds. */
const UNSAFE_NUMBER = /[[:,]\s*-?\d{16}/
const MANY_DIGITS = /\d{16}/

/** Parsing JSON blocks the process: a longer text stays as it is, and is clipped like any text. */
const JSON_CHARS_MAX = 4_000_000

export const shortenJson: Shortener = (text, { lossless }) => {
  if (text.length > JSON_CHARS_MAX) return null
  const value = parseJson(text)
  if (value === undefined) return shortenJsonLines(text, lossless)
  const made = isObject(value) && Object.keys(value).length > FIELDS_MAX ? null : shortenValue(text, value, lossless)
  return made ?? { text: removeBlanks(text), lossy: false }
}

/** Null if its tables are no shorter than the same JSON without blanks, or would change a value. */
function shortenValue(text: string, value: Json, lossless: boolean): ShortenedText | null {
  try {
    const state = newTableState(lossless)
    findTables(value, state, 0)
    if (!lossless) state.pointed = state.paths.rowsIn(value)
    const shown = [renderValue(value, state), ...state.tables].join('\n')
    const exact = !state.lossy && isExact(text, value)
    // An id that is shown as a rounded number would mislead.
    if (!exact && (lossless || hasUnsafeNumber(text))) return null
    const lossy = state.lossy || !exact
    if (shown.length < text.length * MUCH_SHORTER) return { text: shown, lossy }
    const dense = JSON.stringify(value)
    if (shown.length < dense.length) return { text: shown, lossy }
    return exact ? { text: dense, lossy: false } : null
  } catch (error) {
    // The value is nested too deeply to be written.
    if (error instanceof RangeError) return null
    throw error
  }
}

/**
 * Whether a JSON text equals its value written again, except for blanks: then no number, key or escape was changed by
 * parsing. It first tries the two forms that most programs write, which V8 compares much faster.
 */
function isExact(text: string, value: Json): boolean {
  const [, indent] = /^[{[]\n( {1,8}|\t)/.exec(text.slice(0, 20)) ?? []
  const body = text.endsWith('\n') ? text.slice(0, -1) : text
  if (JSON.stringify(value, null, indent) === body) return true
  return removeBlanks(text) === JSON.stringify(value)
}

/** Most texts have no such digits, and the first test finds that out much faster. */
function hasUnsafeNumber(text: string): boolean {
  return MANY_DIGITS.test(text) && UNSAFE_NUMBER.test(text)
}

/** One JSON value in each line. */
function shortenJsonLines(text: string, lossless: boolean): ShortenedText | null {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const rows: Json[] = []
  for (const line of lines) {
    const row = line.trimStart().startsWith('{') && !hasUnsafeNumber(line) ? parseJson(line) : undefined
    if (row === undefined) return null
    rows.push(row)
  }
  const state = newTableState(lossless)
  const table = renderTable(rows, state)
  if (table === null) return null
  const lossy = state.lossy || !rows.every((row, i) => isExact(lines[i] ?? '', row))
  return lossless && lossy ? null : { text: table, lossy }
}

/**
 * `tables` are shown below the value, in their order. `holders` are lists and objects in which something is shortened.
 * `pointed` are rows that the text itself names by a path.
 */
type TableState = {
  readonly lossless: boolean
  lossy: boolean
  readonly tables: string[]
  readonly holders: Set<Json>
  readonly paths: PathCollector
  pointed: ReadonlyMap<Json, ReadonlySet<number>>
}

function newTableState(lossless: boolean): TableState {
  return { lossless, lossy: false, tables: [], holders: new Set(), paths: new PathCollector(), pointed: new Map() }
}

/**
 * Finds the lists that may become shorter, and all their holders: V8 writes all other values at once, which is much
 * faster.
 */
function findTables(value: Json, state: TableState, level: number): boolean {
  if (typeof value !== 'object' || value === null || level > LEVELS_MAX) return false
  let found = false
  if (Array.isArray(value)) {
    const list = value as readonly Json[]
    state.paths.addList(list)
    found = list.length > ROWS_MAX || (list.length >= ROWS_MIN && list.every(isObject))
    for (const item of list) if (findTables(item, state, level + 1)) found = true
  } else {
    const values = Object.values(value as JsonObject)
    state.paths.addFields(value as JsonObject)
    if (values.length > FIELDS_MAX) return false
    for (const item of values) if (findTables(item, state, level + 1)) found = true
    found ||= values.length >= ROWS_MIN && values.every(isObject)
  }
  if (found) state.holders.add(value)
  return found
}

function renderValue(value: Json, state: TableState, level = 0): string {
  if (!state.holders.has(value)) return JSON.stringify(value)
  const table = Array.isArray(value)
    ? renderTable(value as readonly Json[], state)
    : renderKeyedTable(value as JsonObject, state)
  if (table !== null && level === 0) return table
  if (table !== null) {
    state.tables.push(`table ${state.tables.length + 1}: ${table}`)
    return `<table ${state.tables.length}>`
  }
  if (Array.isArray(value))
    return `[${renderList(value as readonly Json[], state, (item) => renderValue(item, state, level + 1))}]`
  const fields = value as JsonObject
  const field = (key: string): string => `${JSON.stringify(key)}:${renderValue(fields[key] ?? null, state, level + 1)}`
  return `{${Object.keys(fields).map(field).join(',')}}`
}

/**
 * Objects under keys are rows, like those of a list. Null for a few objects that have tables inside, and if it gets no
 * shorter.
 */
function renderKeyedTable(fields: JsonObject, state: TableState): string | null {
  const rows = Object.values(fields)
  if (rows.length < COLLECTION_MIN && rows.some((row) => state.holders.has(row))) return null
  const { lossy } = state
  const table = renderTable(rows, state, Object.keys(fields))
  if (table !== null && table.length < JSON.stringify(fields).length) return table
  state.lossy = lossy
  return null
}

/** Shows the beginning and the end of a long list. */
function renderList(list: readonly Json[], state: TableState, show: (item: Json) => string): string {
  if (state.lossless || list.length <= ROWS_MAX) return list.map(show).join(',')
  state.lossy = true
  const left = list.length - HEAD_ROWS - TAIL_ROWS
  const [head, tail] = [list.slice(0, HEAD_ROWS), list.slice(-TAIL_ROWS)]
  return `${head.map(show).join(',')},… ${left} more …,${tail.map(show).join(',')}`
}

/** Null unless it is a list of similar objects. With `keys`, each row begins with its key. */
function renderTable(list: readonly Json[], state: TableState, keys?: readonly string[]): string | null {
  if (list.length < ROWS_MIN || !list.every(isObject)) return null
  const columns = columnsOf(list)
  if (columns === null) return null
  const lines = [
    `${list.length} rows${keys ? ' by key' : ''}, columns separated by tabs`,
    [...(keys ? ['key'] : []), ...columns.map(columnTitle)].join('\t'),
  ]
  const wanted = state.lossless || list.length <= ROWS_MAX ? null : chooseRows(list, columns, state.pointed.get(list))
  let left = 0
  const gap = (next: number): void => {
    if (left > 0) lines.push(`[… rows ${next - left + 1} to ${next} left out …]`)
    left = 0
  }
  for (const [i, row] of list.entries()) {
    if (wanted !== null && !wanted.has(i)) {
      left += 1
      state.lossy = true
      continue
    }
    gap(i)
    const cells = columns.map((column) => renderCell(row, column, state)).join('\t')
    lines.push(keys ? `${columnTitle(keys[i] ?? '')}\t${cells}` : cells)
  }
  gap(list.length)
  return lines.join('\n')
}

function columnsOf(list: readonly JsonObject[]): readonly string[] | null {
  const columns = new Set<string>()
  let cells = 0
  for (const row of list) {
    for (const key of Object.keys(row)) {
      columns.add(key)
      cells += 1
    }
    if (columns.size > COLUMNS_MAX) return null
  }
  return columns.size > 0 && cells / (columns.size * list.length) >= FILLED_SHARE ? [...columns] : null
}

function chooseRows(
  list: readonly JsonObject[],
  columns: readonly string[],
  pointed: ReadonlySet<number> = new Set(),
): { has(row: number): boolean } {
  const choice = newBoundedChoice(list.length, list.length + 1)
  for (let i = 0; i < HEAD_ROWS; i++) choice.take(i)
  for (let i = 1; i <= TAIL_ROWS; i++) choice.take(list.length - i)
  for (const row of [...pointed, ...notableRows(list, columns)]) choice.take(row)
  return choice
}

function columnTitle(column: string): string {
  return isBareText(column) ? column : JSON.stringify(column)
}

/** Empty for a missing key. Texts stand unquoted, unless they could be read as another value. */
function renderCell(row: JsonObject, column: string, state: TableState): string {
  if (!Object.hasOwn(row, column)) return ''
  const value = row[column] ?? null
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const cell = typeof value === 'string' && isBareText(value) ? value : JSON.stringify(value)
  if (state.lossless || cell.length <= CELL_CHARS_MAX) return cell
  state.lossy = true
  return cutBothEnds(cell, CELL_CHARS_MAX)
}

// oxlint-disable-next-line no-control-regex -- The pattern is about control characters.
const AMBIGUOUS = /^(?:["{[\d\s<…-]|(?:true|false|null)$)|[\u0000-\u001F]|\s$/

function isBareText(text: string): boolean {
  return text !== '' && !AMBIGUOUS.test(text)
}

/** The same JSON without the blanks between its tokens, at any depth. */
function removeBlanks(text: string): string {
  const parts: string[] = []
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = closingQuote(text, at)
    else if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
      if (at > from) parts.push(text.slice(from, at))
      from = at + 1
    }
  }
  parts.push(text.slice(from))
  return parts.join('')
}

function closingQuote(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes += 1
    if (slashes % 2 === 0) return at
  }
  return text.length
}
