// Field paths and where filters: which rows pass. An invalid filter is reported before a file is opened.
import { compileFinder } from './regex.ts'
import { isList, isNumeral, type ExactValue, writeExactJson } from './exact-json.ts'
import { ToolFailure } from '../core/tool-output.ts'

export const OPERATORS = ['eq', 'ne', 'in', 'contains', 'regex', 'exists', 'gt', 'gte', 'lt', 'lte'] as const
export const COMPARED_AS = ['number', 'date'] as const

export type WhereClause = {
  readonly field: string
  readonly op: (typeof OPERATORS)[number]
  readonly value?: string | undefined
  readonly values?: readonly string[] | undefined
  readonly type?: (typeof COMPARED_AS)[number] | undefined
}

/** `incomparable`: a typed comparison could not decide the row. It does not pass. */
export type FilterVerdict = 'pass' | 'fail' | 'incomparable'
export type RowFilter = (row: ExactValue) => FilterVerdict
export type FieldPath = readonly (string | number)[]

/** All filters must pass. The first that does not decides, so a row counts as incomparable at most once. */
export function applyFilters(row: ExactValue, filters: readonly RowFilter[]): FilterVerdict {
  for (const filter of filters) {
    const verdict = filter(row)
    if (verdict !== 'pass') return verdict
  }
  return 'pass'
}

export function compileWhere(filters: readonly WhereClause[]): readonly RowFilter[] {
  return filters.map((where, index) => {
    const name = `where[${index}] (${where.field} ${where.op})`
    const path = parseFieldPath(name, where.field)
    const test = compileTest(name, where)
    return (row) => test(valueAtPath(row, path))
  })
}

const SEGMENT = /\.?(?:([\p{L}_$][\p{L}\p{N}_$-]*)|\[(-?\d{1,15})\]|\["([^"]*)"\]|\['([^']*)'\])/uy

/** Parses `a.b`, `.a.b`, `a[0]`, `a[-1]` and `a["any key"]`. */
export function parseFieldPath(name: string, field: string): FieldPath {
  const path: (string | number)[] = []
  SEGMENT.lastIndex = 0
  while (SEGMENT.lastIndex < field.length) {
    const from = SEGMENT.lastIndex
    const match = SEGMENT.exec(field)
    const glued = match !== null && match[1] !== undefined && from > 0 && !match[0].startsWith('.')
    if (match === null || glued) {
      const forms = 'a.b, a[0], a[-1] or a["any key"]'
      throw new ToolFailure('InvalidInput', `${name}: "${field}" is not a field path at ${from}. Write ${forms}.`)
    }
    const [, word, index, quoted, single] = match
    path.push(index === undefined ? (word ?? quoted ?? single ?? '') : Number(index))
  }
  if (path.length === 0) throw new ToolFailure('InvalidInput', `${name}: the field path is empty.`)
  return path
}

/** Undefined if the path leads nowhere. */
export function valueAtPath(row: ExactValue, path: FieldPath): ExactValue | undefined {
  let value: ExactValue | undefined = row
  for (const segment of path) {
    if (typeof segment === 'number') value = isList(value) ? value.at(segment) : undefined
    else value = value instanceof Map ? (value as ReadonlyMap<string, ExactValue>).get(segment) : undefined
  }
  return value
}

type ValueTest = (value: ExactValue | undefined) => FilterVerdict

function compileTest(name: string, where: WhereClause): ValueTest {
  const refuse = (problem: string) => new ToolFailure('InvalidInput', `${name}: ${problem}`)
  const { op, value, values, type } = where
  const ranged = op === 'gt' || op === 'gte' || op === 'lt' || op === 'lte'
  if (ranged && type === undefined) throw refuse('a range needs type "number" or "date".')
  if (type !== undefined && !ranged && op !== 'eq' && op !== 'ne') throw refuse(`${op} takes no type.`)
  if (values !== undefined && op !== 'in') throw refuse(`${op} takes value, not values.`)
  if (value !== undefined && (op === 'in' || op === 'exists')) throw refuse(`${op} takes no value.`)
  if (op === 'exists') return (found) => asVerdict(found !== undefined && found !== null)
  if (op === 'in') {
    if (values === undefined || values.length === 0) throw refuse('in needs values, a list with at least one text.')
    const equals = values.map(equalTo)
    return requireValue((found) => equals.some((equal) => equal(found)))
  }
  if (value === undefined) throw refuse(`${op} needs a value.`)
  if (type !== undefined)
    return compareTest(op, type === 'number' ? numberOrder(refuse, value) : dateOrder(refuse, value))
  return requireValue(plainTest(name, op, value))
}

function plainTest(name: string, op: WhereClause['op'], value: string): (found: ExactValue) => boolean {
  if (op === 'contains') return (found) => filterText(found).includes(value)
  if (op === 'regex') {
    const find = compileFinder(name, value, '')
    return (found) => find([filterText(found)])[0] !== -1
  }
  const equal = equalTo(value)
  return op === 'eq' ? equal : (found) => !equal(found)
}

/** The value as an untyped filter compares it: a string as it is, anything else as JSON. */
export function filterText(value: ExactValue): string {
  return typeof value === 'string' ? value : writeExactJson(value)
}

/** A number equals every spelling of itself; all other values are compared as text. */
function equalTo(value: string): (found: ExactValue) => boolean {
  const target = parseExact(value)
  return (found) => {
    const number = target !== null && isNumeral(found) ? parseExact(found.text) : null
    return target !== null && number !== null ? compareExact(number, target) === 0 : filterText(found) === value
  }
}

/** Compares a value with the filter's own: below, at or above zero; null if the two have no order. */
type Order = (value: ExactValue | undefined) => number | null

function numberOrder(refuse: (problem: string) => ToolFailure, value: string): Order {
  const target = parseExact(value)
  if (target === null) throw refuse(`"${value.slice(0, 80)}" is not a finite number.`)
  return (found) => {
    const number = isNumeral(found) ? parseExact(found.text) : null
    return number === null ? null : compareExact(number, target)
  }
}

function dateOrder(refuse: (problem: string) => ToolFailure, value: string): Order {
  const target = parseMoment(value)
  if (target === null) {
    throw refuse(`"${value.slice(0, 80)}" is not a date. Write 2026-06-12 or 2026-06-12T09:00:00Z.`)
  }
  return (found) => {
    const moment = typeof found === 'string' ? parseMoment(found) : null
    return moment === null ? null : compareMoments(moment, target)
  }
}

const holds: Partial<Record<WhereClause['op'], (order: number) => boolean>> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
}

function compareTest(op: WhereClause['op'], orderOf: Order): ValueTest {
  return (found) => {
    const order = orderOf(found)
    return order === null ? 'incomparable' : asVerdict(holds[op]?.(order) === true)
  }
}

/** A missing or null field passes no test, not even `ne`: there is no value to differ. */
function requireValue(test: (found: ExactValue) => boolean): ValueTest {
  return (found) => asVerdict(found !== undefined && found !== null && test(found))
}

function asVerdict(passed: boolean): FilterVerdict {
  return passed ? 'pass' : 'fail'
}

// ISO dates and datetimes as written, and the order of two of them. Uses no clock, and knows time zones only as
// offsets.

/**
 * `seconds` counts from 1970 with the written offset applied, or as in UTC if none is written; `fraction` holds its
 * digits.
 */
type Moment =
  | { readonly type: 'date'; readonly date: string }
  | {
      readonly type: 'datetime'
      readonly date: string
      readonly aware: boolean
      readonly seconds: number
      readonly fraction: string
    }

const FORM = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,30}))?)?([Zz]|[+-]\d\d(?::?\d\d)?)?)?$/

/** Null for a date that does not exist, such as `2026-02-30`, or a time such as `24:00`. */
export function parseMoment(text: string): Moment | null {
  const match = FORM.exec(text)
  if (match === null) return null
  const [, date = '', hours, minutes = '0', seconds = '0', fraction = '', zone = ''] = match
  const midnightMs = Date.parse(`${date}T00:00:00Z`)
  // JavaScript refuses a day that its month does not have, or moves it on; the round trip finds both.
  if (Number.isNaN(midnightMs) || new Date(midnightMs).toISOString().slice(0, 10) !== date) return null
  if (hours === undefined) return { type: 'date', date }
  const offset = parseOffset(zone)
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)]
  if (offset === null || h > 23 || m > 59 || s > 59) return null
  return {
    type: 'datetime',
    date,
    aware: zone !== '',
    seconds: midnightMs / 1000 + h * 3600 + m * 60 + s - offset,
    fraction: fraction.replace(/0+$/, ''),
  }
}

/**
 * Returns a number below, at or above zero; null if only one of the two names an offset, so that they cannot be
 * compared.
 */
export function compareMoments(left: Moment, right: Moment): number | null {
  // A date alone means the day as written, whatever the offset of the other.
  if (left.type === 'date' || right.type === 'date') return orderTexts(left.date, right.date)
  if (left.aware !== right.aware) return null
  return left.seconds === right.seconds ? orderTexts(left.fraction, right.fraction) : left.seconds - right.seconds
}

function orderTexts(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

function parseOffset(zone: string): number | null {
  if (zone === '' || zone === 'Z' || zone === 'z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}

// Exact numbers: a decimal number as written, and the order of two of them. There is no rounding and no arithmetic.

/** 0.d₁d₂d₃… × 10^point, with no zero at either end of the digits. Zero has no digits and no sign. */
type ExactNumber = { readonly negative: boolean; readonly digits: string; readonly point: bigint }

/** A longer exponent costs more to read than any number is worth; such a number has no exact value here. */
const EXPONENT_DIGITS_MAX = 1_000

/**
 * Accepts any JSON number, and the forms people write (`+1`, `.5`, `5.`). Null for anything that is not a finite
 * number.
 */
export function parseExact(text: string): ExactNumber | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const written = whole + fraction
  if (written === '' || exponent.length > EXPONENT_DIGITS_MAX) return null
  let start = 0
  let end = written.length
  // Loops instead of patterns: stripping zeros with `/0+$/` takes quadratic time on a long run of zeros inside.
  while (start < end && written[start] === '0') start++
  while (end > start && written[end - 1] === '0') end--
  if (start === end) return { negative: false, digits: '', point: 0n }
  const point = BigInt(whole.length - start) + BigInt(exponent)
  return { negative: sign === '-', digits: written.slice(start, end), point }
}

/** Returns a number below, at or above zero, as `left` is below, at or above `right`. */
export function compareExact(left: ExactNumber, right: ExactNumber): number {
  const [a, b] = [signOf(left), signOf(right)]
  if (a !== b) return a - b
  return left.negative ? compareSizes(right, left) : compareSizes(left, right)
}

function signOf({ digits, negative }: ExactNumber): number {
  if (digits === '') return 0
  return negative ? -1 : 1
}

function compareSizes(left: ExactNumber, right: ExactNumber): number {
  if (left.point !== right.point) return left.point < right.point ? -1 : 1
  // Both start right behind the point, so comparing the digits as text compares the numbers.
  if (left.digits === right.digits) return 0
  return left.digits < right.digits ? -1 : 1
}
