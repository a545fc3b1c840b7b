// Which rows of a long table must be shown wherever they stand: those with a signal of failure, with a value that is rare in a column
// of few different values, with a value of another type than nearly all others, with a key that few rows have or without one that
// nearly all have, and with a number far from the others of its column. The fields of objects inside of a row are columns too.
// Bounded, since every row may be one.
import type { Json } from '../../kernel/content.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { oddValues } from './odd-values.ts'
import { isTrouble, signalAt, signalIn } from './signals.ts'

const NOTABLE_MAX = 60
const SCORE_MIN = 1.5
const LOOKED_CHARS = 200
const NESTED_CHARS = 4_000
/** From this share of the rows on, a signal is nothing special. */
const COMMON_SHARE = 0.3
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
  for (const column of columns.slice(0, COLUMNS_MAX)) {
    scoreKeys(rows, column, scores)
    scoreValues(rows, column, scores)
  }
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

/** Signals and odd values. A signal that many rows of the column have says little. */
function scoreValues(rows: readonly JsonObject[], column: string, scores: Float64Array): void {
  const having: number[] = []
  for (const [i, row] of rows.entries()) if (Object.hasOwn(row, column)) having.push(i)
  const names = having.map((row) => nameOf(rows[row]?.[column] ?? null))
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const signals = new Set<string>()
  let troubled = 0
  for (const [i, name] of names.entries()) {
    if (signals.has(name) || !saysTrouble(column, rows[having[i] ?? 0]?.[column] ?? null)) continue
    signals.add(name)
    troubled += counts.get(name) ?? 0
  }
  const signalScore = troubled < rows.length * COMMON_SHARE ? 2 : 0.5
  const add = (i: number, score: number): void => {
    const row = having[i] ?? 0
    scores[row] = (scores[row] ?? 0) + score
  }
  if (signals.size > 0) for (const [i, name] of names.entries()) if (signals.has(name)) add(i, signalScore)
  for (const { row, score } of oddValues(names)) add(row, score)
}

/** Values with one name are counted together. The name of what is no text begins with a sign, so it has a shape of its own. */
function nameOf(value: Json): string {
  if (typeof value === 'string') return value.slice(0, LOOKED_CHARS)
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return `=${value}`
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
