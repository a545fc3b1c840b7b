// Finds the rows of a long table that must be shown wherever they stand: rows with a signal of failure, with a rare
// value in a column of few different values, with a value of another type than nearly all others, with a key that few
// rows have or without one that nearly all have, and with a number far from the others of its column. The fields of
// objects inside rows are columns too. The result is bounded, since every row may be notable.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'
import { findOddValues, type SplitBudget, startSplitBudget } from './odd-values.ts'
import { isTroubleSignal, signalPosition, findSignal } from './signals.ts'

const NOTABLE_MAX = 60
const SCORE_MIN = 1.5
const LOOKED_CHARS = 200
const NESTED_CHARS = 4_000
/** If at least this share of the rows has a signal, it is common and counts for little. */
const COMMON_SHARE = 0.3
/**
 * A type is rare if at most this share of the rows has it and one type has nearly all. With fewer rows than this, no
 * type is rare.
 */
const RARE_TYPE_SHARE = 0.02
const NEARLY_ALL_SHARE = 0.95
const TYPED_ROWS_MIN = 20
const RARE_TYPE_SCORE = 1.8
/** The most columns that are compared. */
const COLUMNS_MAX = 200

/** The levels of objects inside rows that become columns. */
const INNER_LEVELS = 3
/**
 * The number of rows at the beginning in which such fields are searched for, and the most of them that become columns.
 */
const INNER_PROBED_ROWS = 20
const INNER_COLUMNS_MAX = 40

/**
 * The source of the rows. In printed cells, numbers and other texts have one type: only their spelling tells them
 * apart.
 */
type RowsFrom = 'json' | 'cells'

/** The indexes of rows, the most notable first. */
export function notableRows(
  given: readonly JsonObject[],
  outer: readonly string[],
  from: RowsFrom = 'json',
): readonly number[] {
  const { rows, columns } = flattenRows(given, outer)
  const scores = new Float64Array(rows.length)
  const budget = startSplitBudget()
  for (const column of columns.slice(0, COLUMNS_MAX)) {
    const values = valuesOf(rows, column)
    scoreKeys(values, scores)
    scoreTypes(values, scores, from)
    scoreValues(values, column, scores, budget)
  }
  const notable = [...scores.keys()].filter((row) => (scores[row] ?? 0) >= SCORE_MIN)
  return notable.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, NOTABLE_MAX)
}

type FlatRows = { readonly rows: readonly JsonObject[]; readonly columns: readonly string[] }

/** The same rows, with the fields of objects in at least half of them as columns, such as `node.stock.left`. */
function flattenRows(rows: readonly JsonObject[], columns: readonly string[]): FlatRows {
  const probe = rows.slice(0, INNER_PROBED_ROWS)
  const counts = new Map<string, number>()
  const paths = new Map<string, readonly string[]>()
  const look = (value: Json | undefined, path: readonly string[]): void => {
    if (!isObject(value) || path.length > INNER_LEVELS || paths.size > COLUMNS_MAX) return
    for (const key of Object.keys(value)) {
      const inner = [...path, key]
      const name = inner.join('.')
      paths.set(name, inner)
      counts.set(name, (counts.get(name) ?? 0) + 1)
      look(value[key], inner)
    }
  }
  for (const row of probe) for (const column of columns) look(row[column], [column])
  const shared = [...paths].filter(([name]) => (counts.get(name) ?? 0) * 2 >= probe.length).slice(0, INNER_COLUMNS_MAX)
  if (shared.length === 0) return { rows, columns }
  const flat = rows.map((row) => {
    const made: Record<string, Json> = { ...row }
    for (const [name, path] of shared) {
      const value = valueAt(row, path)
      if (value !== undefined) made[name] = value
    }
    return made
  })
  return { rows: flat, columns: [...columns, ...shared.map(([name]) => name)] }
}

function valueAt(row: JsonObject, path: readonly string[]): Json | undefined {
  let at: Json | undefined = row
  for (const key of path) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  return at
}

/** Undefined if the row has no such key. */
type ColumnValues = readonly (Json | undefined)[]

function valuesOf(rows: readonly JsonObject[], column: string): ColumnValues {
  return rows.map((row) => (Object.hasOwn(row, column) ? row[column] : undefined))
}

/** Scores rows with a key that few rows have, and rows without a key that nearly all have. */
function scoreKeys(values: ColumnValues, scores: Float64Array): void {
  let having = 0
  for (const value of values) if (value !== undefined) having += 1
  if (having === values.length) return
  const rare = having <= Math.max(1, values.length * 0.03)
  const usual = having >= values.length * 0.97
  if (!rare && !usual) return
  for (const [i, value] of values.entries()) {
    const has = value !== undefined
    if (rare && has) scores[i] = (scores[i] ?? 0) + 3
    else if (usual && !has) scores[i] = (scores[i] ?? 0) + 2
  }
}

/**
 * Scores values of another type than nearly all others of their column, such as null among texts. A single such value
 * counts more.
 */
function scoreTypes(values: ColumnValues, scores: Float64Array, from: RowsFrom): void {
  const types = values.map((value) => (value === undefined ? null : typeOf(value, from)))
  const counts = new Map<string, number>()
  for (const type of types) if (type !== null) counts.set(type, (counts.get(type) ?? 0) + 1)
  if (counts.size < 2) return
  let [having, most] = [0, 0]
  for (const times of counts.values()) {
    having += times
    most = Math.max(most, times)
  }
  const rareMax = Math.max(1, having * RARE_TYPE_SHARE)
  if (having < TYPED_ROWS_MIN || most < having * NEARLY_ALL_SHARE) return
  for (const [i, type] of types.entries()) {
    const times = type === null ? having : (counts.get(type) ?? 0)
    if (times <= rareMax) scores[i] = (scores[i] ?? 0) + RARE_TYPE_SCORE + (times === 1 ? 0.2 : 0)
  }
}

function typeOf(value: Json, from: RowsFrom): string {
  if (value === null) return 'null'
  if (value === '') return 'empty text'
  if (typeof value === 'object') return Array.isArray(value) ? 'list' : 'object'
  return from === 'cells' ? 'cell' : typeof value
}

const NAMES_ERROR = /err(?:or|ors)?$|exception|failure|fault|stack/i
const NAMES_STATE =
  /^(?:status|state|level|severity|result|outcome|conclusion|phase|health|type|kind|code)|[_.](?:status|code)$/i
const NAMES_EXIT = /exit_?(?:code|status)/i
const NAMES_SUCCESS = /^(?:ok|success|passed|healthy|ready|valid)$/i

/** Scores signals and odd values. A signal in many rows of the column counts for little. */
function scoreValues(values: ColumnValues, column: string, scores: Float64Array, budget: SplitBudget): void {
  const having: number[] = []
  const names: string[] = []
  const signals = new Set<string>()
  const judged = new Set<Json>()
  const said = meaningOfColumn(column)
  for (const [row, value] of values.entries()) {
    if (value === undefined) continue
    const name = nameOfValue(value)
    having.push(row)
    names.push(name)
    if (judged.has(value)) continue
    judged.add(value)
    if (!signals.has(name) && saysTrouble(said, value)) signals.add(name)
  }
  const add = (i: number, score: number): void => {
    const row = having[i] ?? 0
    scores[row] = (scores[row] ?? 0) + score
  }
  if (signals.size > 0) {
    const troubled = [...names.keys()].filter((i) => signals.has(names[i] ?? ''))
    for (const i of troubled) add(i, troubled.length < values.length * COMMON_SHARE ? 2 : 0.5)
  }
  for (const { row, score } of findOddValues(names, budget)) add(row, score)
}

/**
 * Values with one name are counted together. The name of a value that is not a text begins with a sign, so it has its
 * own shape.
 */
function nameOfValue(value: Json): string {
  if (typeof value === 'string') return value.slice(0, LOOKED_CHARS)
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return `=${value}`
  return Array.isArray(value) && value.length === 0 ? '[]' : JSON.stringify(value).slice(0, NESTED_CHARS)
}

/** The meaning that a column's name gives to its values. */
type ColumnMeaning = {
  readonly exit: boolean
  readonly error: boolean
  readonly state: boolean
  readonly success: boolean
}

function meaningOfColumn(column: string): ColumnMeaning {
  return {
    exit: NAMES_EXIT.test(column),
    error: NAMES_ERROR.test(column),
    state: NAMES_STATE.test(column),
    success: NAMES_SUCCESS.test(column),
  }
}

function saysTrouble({ exit, error, state, success }: ColumnMeaning, value: Json): boolean {
  if (value === null || value === '' || value === 'none') return false
  if (exit) return value !== 0 && value !== '0'
  if (error) return !isNothing(value)
  if (typeof value === 'number') return state && value >= 400 && value < 600
  if (typeof value === 'boolean') return !value && success
  return typeof value === 'string' ? isTroubleSignal(findSignal(value)) : signalPosition(JSON.stringify(value)) >= 0
}

function isNothing(value: Json): boolean {
  return value === false || value === 0 || value === '0' || (Array.isArray(value) && value.length === 0)
}
