// Field paths and where filters: which rows pass. Everything wrong with a filter is said here, before a file is opened.
import { compareMoments, momentOf } from './date.ts'
import { compareExact, exactOf } from './number.ts'
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
