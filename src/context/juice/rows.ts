// Which rows of a long table must be shown wherever they stand: those with a signal of failure, with a value that is rare in a column
// of few different values, with a value of another type than nearly all others, with a key that few rows have or without one that
// nearly all have, and with a number far from the others of its column. The fields of objects inside of a row are columns too.
// Bounded, since every row may be one.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { isTrouble, signalAt, signalIn } from './signals.ts'

const NOTABLE_MAX = 60
const SCORE_MIN = 1.5
const SIGMAS = 3.5
/** Numbers far from the mean that are shown: the farthest. */
const OUTLIERS_MAX = 20
const LOOKED_CHARS = 200
const NESTED_CHARS = 4_000
/** A value is rare in at most this share of the rows. */
const RARE_SHARE = 0.02
/** From this share of the rows on, a signal is nothing special. */
const COMMON_SHARE = 0.3
/** In a column of fewer rows than this, no type is unusual. */
const TYPED_ROWS_MIN = 20
/** Columns that are looked at. */
const COLUMNS_MAX = 200

/** Objects inside of rows that are looked into: so many levels of them. */
const INNER_LEVELS = 3
/** Rows from the beginning in which such fields are looked for, and how many of them become columns. */
const INNER_PROBED_ROWS = 20
const INNER_COLUMNS_MAX = 40

/** Places of rows, the most notable first. */
export function notableRows(given: readonly JsonObject[], outer: readonly string[]): readonly number[] {
  const { rows, columns } = flattenRows(given, outer)
  const scores = new Float64Array(rows.length)
  const far = new Map<number, number>()
  for (const column of columns.slice(0, COLUMNS_MAX)) {
    scoreKeys(rows, column, scores)
    scoreValues(rows, column, scores)
    scoreTypes(rows, column, scores)
    for (const [row, away] of farRows(rows, column)) far.set(row, Math.max(away, far.get(row) ?? 0))
  }
  const farthest = [...far].sort(([, a], [, b]) => b - a).slice(0, OUTLIERS_MAX)
  for (const [row] of farthest) scores[row] = (scores[row] ?? 0) + 2.5
  const notable = [...scores.keys()].filter((row) => (scores[row] ?? 0) >= SCORE_MIN)
  return notable.sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, NOTABLE_MAX)
}

type Rows = { readonly rows: readonly JsonObject[]; readonly columns: readonly string[] }

/** The same rows with the fields that objects in most of them have as columns, such as `node.stock.left`. */
function flattenRows(rows: readonly JsonObject[], columns: readonly string[]): Rows {
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

/** A value of another type than nearly all others of its column, such as null among numbers. */
function scoreTypes(rows: readonly JsonObject[], column: string, scores: Float64Array): void {
  const counts: Record<string, number> = {}
  let having = 0
  for (const row of rows) {
    const value = row[column]
    if (value === undefined) continue
    const type = typeNameOf(value)
    counts[type] = (counts[type] ?? 0) + 1
    having += 1
  }
  const rareMax = Math.max(1, having * RARE_SHARE)
  if (having < TYPED_ROWS_MIN || !Object.values(counts).some((times) => times <= rareMax)) return
  for (const [i, row] of rows.entries()) {
    const value = row[column]
    if (value !== undefined && (counts[typeNameOf(value)] ?? 0) <= rareMax) scores[i] = (scores[i] ?? 0) + 2.5
  }
}

function typeNameOf(value: Json): string {
  if (value === null || value === '') return 'nothing'
  return Array.isArray(value) ? 'list' : typeof value
}

/** A key that few rows have, and one that nearly all have and this row has not. */
function scoreKeys(rows: readonly JsonObject[], column: string, scores: Float64Array): void {
  let having = 0
  for (const row of rows) if (Object.hasOwn(row, column)) having += 1
  if (having === rows.length) return
  const rare = having <= Math.max(1, rows.length * 0.03)
  const usual = having >= rows.length * 0.97
  if (!rare && !usual) return
  for (const [i, row] of rows.entries()) {
    const has = Object.hasOwn(row, column)
    if (rare && has) scores[i] = (scores[i] ?? 0) + 3
    else if (usual && !has) scores[i] = (scores[i] ?? 0) + 2
  }
}

const NAMES_ERROR = /err(?:or|ors)?$|exception|failure|fault|stack/i
const NAMES_STATE =
  /^(?:status|state|level|severity|result|outcome|conclusion|phase|health|type|kind|code)|[_.](?:status|code)$/i
const NAMES_EXIT = /exit_?(?:code|status)/i

/** Signals and rare values. A signal that many rows of the column have says little. */
function scoreValues(rows: readonly JsonObject[], column: string, scores: Float64Array): void {
  const counts = new Map<string, number>()
  const names = rows.map((row) => (Object.hasOwn(row, column) ? nameOf(row[column] ?? null) : null))
  for (const name of names) if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1)
  const isCategory = counts.size > 1 && counts.size <= Math.max(3, rows.length * 0.2)
  const rareMax = Math.max(1, rows.length * RARE_SHARE)
  const signals = new Set<string>()
  let troubled = 0
  for (const [i, name] of names.entries()) {
    if (name === null || signals.has(name) || !saysTrouble(column, rows[i]?.[column] ?? null)) continue
    signals.add(name)
    troubled += counts.get(name) ?? 0
  }
  const signalScore = troubled < rows.length * COMMON_SHARE ? 2 : 0.5
  for (const [i, name] of names.entries()) {
    if (name === null) continue
    const rare = isCategory && (counts.get(name) ?? 0) <= rareMax ? 2.5 : 0
    scores[i] = (scores[i] ?? 0) + rare + (signals.has(name) ? signalScore : 0)
  }
}

/** Values with one name are counted together. */
function nameOf(value: Json): string {
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' ? value.slice(0, LOOKED_CHARS) : String(value)
  return Array.isArray(value) && value.length === 0 ? '[]' : JSON.stringify(value).slice(0, NESTED_CHARS)
}

function saysTrouble(column: string, value: Json): boolean {
  if (value === null || value === '' || value === 'none') return false
  if (NAMES_EXIT.test(column)) return value !== 0 && value !== '0'
  if (NAMES_ERROR.test(column)) return !isNothing(value)
  if (typeof value === 'number') return NAMES_STATE.test(column) && value >= 400 && value < 600
  if (typeof value === 'boolean') return !value && /^(?:ok|success|passed|healthy|ready|valid)$/i.test(column)
  return typeof value === 'string' ? isTrouble(signalIn(value)) : signalAt(JSON.stringify(value)) >= 0
}

function isNothing(value: Json): boolean {
  return value === false || value === 0 || value === '0' || (Array.isArray(value) && value.length === 0)
}

/** A text that is a number, such as `0.50`, `48,211` or `98.7%`. */
const NUMERIC = /^\s*([-+]?\d[\d,]{0,20}(?:\.\d{1,20})?)\s?[a-zA-Z%]{0,3}\s*$/
const NUMERIC_CHARS_MAX = 48
/** Among so many rows from the beginning there must be a number. */
const PROBED_ROWS = 8

function numberOf(value: Json | undefined): number {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.length > NUMERIC_CHARS_MAX) return Number.NaN
  const [, digits] = NUMERIC.exec(value) ?? []
  return digits === undefined ? Number.NaN : Number(digits.replaceAll(',', ''))
}

/** Rows whose number is far from the mean of its column, with how far. */
function farRows(rows: readonly JsonObject[], column: string): readonly (readonly [row: number, away: number])[] {
  const isNumeric = rows.slice(0, PROBED_ROWS).some((row) => Number.isFinite(numberOf(row[column])))
  const numbers = rows.map((row) => (isNumeric || typeof row[column] === 'number' ? numberOf(row[column]) : Number.NaN))
  let [count, mean, squares] = [0, 0, 0]
  for (const value of numbers) {
    if (!Number.isFinite(value)) continue
    count += 1
    const away = value - mean
    mean += away / count
    squares += away * (value - mean)
  }
  const sigma = Math.sqrt(squares / Math.max(1, count))
  if (!(sigma > 0) || !Number.isFinite(sigma)) return []
  return numbers.flatMap((value, i) => {
    const away = Math.abs(value - mean) / sigma
    return away > SIGMAS ? [[i, away] as const] : []
  })
}
