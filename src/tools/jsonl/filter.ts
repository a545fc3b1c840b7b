// Field paths and where filters: which rows pass. Everything wrong with a filter is said here, before a file is opened.
import { finderOf } from './regex.ts'
import { isList, isNumeral, type Value, writeJson } from './reader.ts'
import { ToolFailure } from '../core/output.ts'

export const OPERATORS = ['eq', 'ne', 'in', 'contains', 'regex', 'exists', 'gt', 'gte', 'lt', 'lte'] as const
export const COMPARED_AS = ['number', 'date'] as const

export type Where = {
  readonly field: string
  readonly op: (typeof OPERATORS)[number]
  readonly value?: string | undefined
  readonly values?: readonly string[] | undefined
  readonly type?: (typeof COMPARED_AS)[number] | undefined
}

/** `incomparable` is a row that a typed comparison met and could not decide. It does not pass. */
export type Verdict = 'pass' | 'fail' | 'incomparable'
export type Filter = (row: Value) => Verdict
export type Path = readonly (string | number)[]

/** All filters must pass. The first that does not decides, so a row is counted as incomparable at most once. */
export function judge(row: Value, filters: readonly Filter[]): Verdict {
  for (const filter of filters) {
    const verdict = filter(row)
    if (verdict !== 'pass') return verdict
  }
  return 'pass'
}

export function compileWhere(filters: readonly Where[]): readonly Filter[] {
  return filters.map((where, index) => {
    const name = `where[${index}] (${where.field} ${where.op})`
    const path = pathOf(name, where.field)
    const test = testOf(name, where)
    return (row) => test(at(row, path))
  })
}

const SEGMENT = /\.?(?:([\p{L}_$][\p{L}\p{N}_$-]*)|\[(-?\d{1,15})\]|\["([^"]*)"\]|\['([^']*)'\])/uy

/** `a.b`, `.a.b`, `a[0]`, `a[-1]`, `a["any key"]`. */
export function pathOf(name: string, field: string): Path {
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

/** Undefined when the path leads nowhere. */
export function at(row: Value, path: Path): Value | undefined {
  let value: Value | undefined = row
  for (const segment of path) {
    if (typeof segment === 'number') value = isList(value) ? value.at(segment) : undefined
    else value = value instanceof Map ? (value as ReadonlyMap<string, Value>).get(segment) : undefined
  }
  return value
}

type Test = (value: Value | undefined) => Verdict

function testOf(name: string, where: Where): Test {
  const refuse = (problem: string) => new ToolFailure('InvalidInput', `${name}: ${problem}`)
  const { op, value, values, type } = where
  const ranged = op === 'gt' || op === 'gte' || op === 'lt' || op === 'lte'
  if (ranged && type === undefined) throw refuse('a range needs type "number" or "date".')
  if (type !== undefined && !ranged && op !== 'eq' && op !== 'ne') throw refuse(`${op} takes no type.`)
  if (values !== undefined && op !== 'in') throw refuse(`${op} takes value, not values.`)
  if (value !== undefined && (op === 'in' || op === 'exists')) throw refuse(`${op} takes no value.`)
  if (op === 'exists') return (found) => verdict(found !== undefined && found !== null)
  if (op === 'in') {
    if (values === undefined || values.length === 0) throw refuse('in needs values, a list with at least one text.')
    const equals = values.map(equalTo)
    return present((found) => equals.some((equal) => equal(found)))
  }
  if (value === undefined) throw refuse(`${op} needs a value.`)
  if (type !== undefined)
    return comparison(op, type === 'number' ? numberOrder(refuse, value) : dateOrder(refuse, value))
  return present(plainTest(name, op, value))
}

function plainTest(name: string, op: Where['op'], value: string): (found: Value) => boolean {
  if (op === 'contains') return (found) => filterText(found).includes(value)
  if (op === 'regex') {
    const find = finderOf(name, value, '')
    return (found) => find([filterText(found)])[0] !== -1
  }
  const equal = equalTo(value)
  return op === 'eq' ? equal : (found) => !equal(found)
}

/** What an untyped filter sees: a string as it is, anything else as JSON. */
export function filterText(value: Value): string {
  return typeof value === 'string' ? value : writeJson(value)
}

/** A number equals every way of writing it; all else is equal as text. */
function equalTo(value: string): (found: Value) => boolean {
  const target = exactOf(value)
  return (found) => {
    const number = target !== null && isNumeral(found) ? exactOf(found.text) : null
    return target !== null && number !== null ? compareExact(number, target) === 0 : filterText(found) === value
  }
}

/** How a value stands to the filter's own: below, at or above zero, or null when the two have no order. */
type Order = (value: Value | undefined) => number | null

function numberOrder(refuse: (problem: string) => ToolFailure, value: string): Order {
  const target = exactOf(value)
  if (target === null) throw refuse(`"${value.slice(0, 80)}" is not a finite number.`)
  return (found) => {
    const number = isNumeral(found) ? exactOf(found.text) : null
    return number === null ? null : compareExact(number, target)
  }
}

function dateOrder(refuse: (problem: string) => ToolFailure, value: string): Order {
  const target = momentOf(value)
  if (target === null) {
    throw refuse(`"${value.slice(0, 80)}" is not a date. Write 2026-06-12 or 2026-06-12T09:00:00Z.`)
  }
  return (found) => {
    const moment = typeof found === 'string' ? momentOf(found) : null
    return moment === null ? null : compareMoments(moment, target)
  }
}

const holds: Partial<Record<Where['op'], (order: number) => boolean>> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
}

function comparison(op: Where['op'], orderOf: Order): Test {
  return (found) => {
    const order = orderOf(found)
    return order === null ? 'incomparable' : verdict(holds[op]?.(order) === true)
  }
}

/** A field that is missing or null passes nothing, not even `ne`: there is no value to differ. */
function present(test: (found: Value) => boolean): Test {
  return (found) => verdict(found !== undefined && found !== null && test(found))
}

function verdict(passed: boolean): Verdict {
  return passed ? 'pass' : 'fail'
}

// ISO dates and datetimes as written, and the order of two of them. It reads no clock and knows no time zone but an offset.

/** `seconds` counts from 1970 at the written offset, or as if in UTC when none is written; `fraction` is its digits. */
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

/** Null for what is no real date: `2026-02-30` and `24:00` are not. */
export function momentOf(text: string): Moment | null {
  const match = FORM.exec(text)
  if (match === null) return null
  const [, date = '', hours, minutes = '0', seconds = '0', fraction = '', zone = ''] = match
  const midnightMs = Date.parse(`${date}T00:00:00Z`)
  // A day that its month does not have is either refused or moved on; the round trip shows both.
  if (Number.isNaN(midnightMs) || new Date(midnightMs).toISOString().slice(0, 10) !== date) return null
  if (hours === undefined) return { type: 'date', date }
  const offset = offsetOf(zone)
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

/** Below, at or above zero; null when one names its offset and the other does not, so that they cannot be compared. */
export function compareMoments(left: Moment, right: Moment): number | null {
  // A date alone means the day as it was written, whatever the offset of the other.
  if (left.type === 'date' || right.type === 'date') return order(left.date, right.date)
  if (left.aware !== right.aware) return null
  return left.seconds === right.seconds ? order(left.fraction, right.fraction) : left.seconds - right.seconds
}

function order(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

function offsetOf(zone: string): number | null {
  if (zone === '' || zone === 'Z' || zone === 'z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}

// Exact numbers: a decimal number as written, and the order of two of them. No rounding, no arithmetic, no JSON.

/** 0.d₁d₂d₃… × 10^point, with no zero at either end of the digits. Zero has no digits and no sign. */
type Exact = { readonly negative: boolean; readonly digits: string; readonly point: bigint }

/** Longer exponents cost more to read than any number is worth; such a number has no exact value here. */
const EXPONENT_DIGITS_MAX = 1_000

/** Anything JSON calls a number, and the forms people write (`+1`, `.5`, `5.`). Null for what is no finite number. */
export function exactOf(text: string): Exact | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (match === null) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const written = whole + fraction
  if (written === '' || exponent.length > EXPONENT_DIGITS_MAX) return null
  let start = 0
  let end = written.length
  // Loops, not patterns: stripping zeros with `/0+$/` takes quadratic time on a long run of zeros inside.
  while (start < end && written[start] === '0') start++
  while (end > start && written[end - 1] === '0') end--
  if (start === end) return { negative: false, digits: '', point: 0n }
  const point = BigInt(whole.length - start) + BigInt(exponent)
  return { negative: sign === '-', digits: written.slice(start, end), point }
}

/** Below, at or above zero, as `left` is below, at or above `right`. */
export function compareExact(left: Exact, right: Exact): number {
  const [a, b] = [signOf(left), signOf(right)]
  if (a !== b) return a - b
  return left.negative ? compareSizes(right, left) : compareSizes(left, right)
}

function signOf({ digits, negative }: Exact): number {
  if (digits === '') return 0
  return negative ? -1 : 1
}

function compareSizes(left: Exact, right: Exact): number {
  if (left.point !== right.point) return left.point < right.point ? -1 : 1
  // Both start right behind the point, so the order of the digits as text is the order of the numbers.
  if (left.digits === right.digits) return 0
  return left.digits < right.digits ? -1 : 1
}
