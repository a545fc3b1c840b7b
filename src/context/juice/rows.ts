// Which rows of a long table must be shown wherever they stand: those that report an error, and those with a number far from the
// others of its column. Bounded, since every row may be one.
import type { Json } from '../../kernel/content.ts'
import type { JsonObject } from '../../view/json.ts'

const ERRORS_MAX = 50
const OUTLIERS_MAX = 20
const SIGMAS = 2
const LOOKED_CHARS = 200

export function notableRows(rows: readonly JsonObject[], columns: readonly string[]): readonly number[] {
  const errors: number[] = []
  const watched = columns.map((column) => ({ column, role: roleOf(column) })).filter(({ role }) => role !== null)
  const isError = (row: JsonObject): boolean => watched.some(({ column, role }) => reports(role, row[column] ?? null))
  for (const [i, row] of rows.entries()) if (isError(row)) errors.push(i)
  return [...ends(errors, ERRORS_MAX), ...outliers(rows, columns)]
}

/** The first and the last of them. */
function ends(found: readonly number[], most: number): readonly number[] {
  return found.length <= most ? found : [...found.slice(0, most / 2), ...found.slice(-most / 2)]
}

const NAMES_ERROR = /err(?:or|ors)?$|exception|failure|fault|stack/i
const NAMES_STATE =
  /^(?:status|state|level|severity|result|outcome|conclusion|phase|health|type|kind|code)|_(?:status|code)$/i
const NAMES_EXIT = /exit_?(?:code|status)/i
const NAMES_SUCCESS = /^(?:ok|success|passed|healthy)$/i
const SAYS_ERROR = /error|fail|fatal|critical|exception|denied|refused|timeout|timed.out|panic|crash|unhealthy/i

/** What a column says of errors, by its name. */
type Role = 'error' | 'exit' | 'success' | 'state' | null

function roleOf(column: string): Role {
  const name = column.slice(-LOOKED_CHARS)
  if (NAMES_ERROR.test(name)) return 'error'
  if (NAMES_SUCCESS.test(name)) return 'success'
  if (NAMES_EXIT.test(name)) return 'exit'
  return NAMES_STATE.test(name) ? 'state' : null
}

function reports(role: Role, value: Json): boolean {
  if (role === 'success') return value === false
  if (role === 'exit') return typeof value === 'number' && value !== 0
  if (role === 'state')
    return typeof value === 'string'
      ? SAYS_ERROR.test(value.slice(0, LOOKED_CHARS))
      : typeof value === 'number' && value >= 400 && value < 600
  if (Array.isArray(value)) return value.length > 0
  return value !== null && value !== false && value !== 0 && value !== '' && value !== 'none' && value !== '0'
}

/** More than two standard deviations from the mean of its column; the farthest first, if there are many. */
function outliers(rows: readonly JsonObject[], columns: readonly string[]): readonly number[] {
  const found = new Map<number, number>()
  for (const column of columns) {
    let [count, mean, squares] = [0, 0, 0]
    for (const row of rows) {
      const value = row[column]
      if (typeof value !== 'number') continue
      count += 1
      const away = value - mean
      mean += away / count
      squares += away * (value - mean)
    }
    const sigma = Math.sqrt(squares / Math.max(1, count))
    if (!(sigma > 0) || !Number.isFinite(sigma)) continue
    for (const [i, row] of rows.entries()) {
      const value = row[column]
      const score = typeof value === 'number' ? Math.abs(value - mean) / sigma : 0
      if (score > SIGMAS) found.set(i, Math.max(score, found.get(i) ?? 0))
    }
  }
  const farthest = [...found].sort(([, a], [, b]) => b - a).slice(0, OUTLIERS_MAX)
  return farthest.map(([i]) => i)
}
