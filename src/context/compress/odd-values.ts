// Finds the values of one column that differ from the usual ones, although they have no signal of failure: a rare word
// among few different ones, a number or a date far from the others, a value of another shape. A value with parts, such
// as an address or `A=1;B=2`, is itself a row of columns. A column in which nearly all values differ says nothing.
import { parseNumbers } from './column-numbers.ts'

export type OddValue = { readonly row: number; readonly score: number }

/** A column with fewer values than this has no odd value. */
export const VALUES_MIN = 12
/** This many values at equal distances are compared first, to see whether the whole column is worth it. */
const SAMPLE = 24
/** A value is rare if at most this share of the rows has it and common values are this many times as frequent. */
const RARE_SHARE = 0.02
const TIMES_AS_FREQUENT = 8
/** If a larger share of the rows is rare, they say nothing. */
const RARE_ROWS_SHARE = 0.03
/** Longer values, or values with more parts, are split only up to this limit. */
const PARTS_MAX = 16
const PART_CHARS_MAX = 240
/** If the values have more different shapes than this, they are not split. */
const SHAPES_MAX = 40
/** The most values and parts that one document may split. Later columns are then judged by whole values only. */
const TAKEN_APART_MAX = 800_000
const SAMPLE_SHAPES_MAX = 8
const SCORE = { category: 1.8, number: 1.7, shape: 1.6 } as const

/** The number of values and parts that one document may still split. All its columns share it. */
export type SplitBudget = { left: number }

export function startSplitBudget(): SplitBudget {
  return { left: TAKEN_APART_MAX }
}

/** Without `budget`, no value is split. */
export function findOddValues(values: readonly string[], budget: SplitBudget | null): readonly OddValue[] {
  if (values.length < VALUES_MIN || isConstant(values)) return []
  const sample = sampleOf(values)
  if (sample.size < SAMPLE * 0.75 || values.length < SAMPLE) {
    const rare = findRareRows(values)
    if (rare !== null) return scoreRows(rare, SCORE.category)
  }
  const far = findFarRows(values)
  if (far !== null) return scoreRows(far, SCORE.number)
  return budget === null || countShapes(sample) > SAMPLE_SHAPES_MAX ? [] : findOddShapes(values, budget)
}

function countShapes(sample: ReadonlySet<string>): number {
  const shapes = new Set<number>()
  for (const value of sample) shapes.add(valueShape(value))
  return shapes.size
}

function isConstant(values: readonly string[]): boolean {
  const [first] = values
  for (const value of values) if (value !== first) return false
  return true
}

/** The only odd row of a column counts more than one of several. */
function scoreRows(rows: readonly number[], score: number): readonly OddValue[] {
  return rows.map((row) => ({ row, score: score + (rows.length === 1 ? 0.2 : 0) }))
}

function sampleOf(values: readonly string[]): ReadonlySet<string> {
  const sample = new Set<string>()
  const step = values.length / SAMPLE
  for (let i = 0; i < SAMPLE; i++) sample.add(values[Math.floor(i * step)] ?? '')
  return sample
}

/** Null if the column is not a list of categories: common values do not fill nearly all of it. */
function findRareRows<Value>(values: readonly Value[]): readonly number[] | null {
  const counts = new Map<Value, number>()
  const { length } = values
  const rareMax = Math.max(1, Math.floor(length * RARE_SHARE))
  const most = length / TIMES_AS_FREQUENT + Math.max(2, length * RARE_ROWS_SHARE)
  for (const value of values) {
    const times = counts.get(value)
    counts.set(value, (times ?? 0) + 1)
    if (times === undefined && counts.size > most) return null
  }
  let [common, commonRows] = [0, 0]
  for (const times of counts.values()) {
    if (times <= rareMax) continue
    common += 1
    commonRows += times
  }
  const rareCount = length - commonRows
  if (rareCount === 0 && common < length / VALUES_MIN) return []
  if (common === 0 || rareCount === 0 || rareCount > Math.max(2, length * RARE_ROWS_SHARE)) return null
  const rare = Math.min(rareMax, commonRows / common / TIMES_AS_FREQUENT)
  const rows: number[] = []
  for (const [row, value] of values.entries()) if ((counts.get(value) ?? 0) <= rare) rows.push(row)
  return rows.length === 0 ? null : rows
}

/**
 * A number is far from the others if it is this many usual distances away. If many numbers are far, that says nothing;
 * else the farthest are shown.
 */
const FAR_FROM = 12
const FAR_SHARE = 0.1
const FAR_MAX = 4
/** The usual distance is at least this share of the middle number. */
const USUAL_SHARE = 0.05
/** One or two numbers stand apart if the gap to the others is this many times as wide as the range of the others. */
const APART_FROM = 1.2

/**
 * Rows whose numbers are far from the middle one, and rows that stand apart from all others. The usual distance is half
 * the range of the middle half, not the deviation: in a short column, a single far number makes the deviation itself
 * large. Null for a column without numbers.
 */
function findFarRows(values: readonly string[]): readonly number[] | null {
  const parsed = parseNumbers(values)
  if (parsed === null) return null
  const { numbers, areDates } = parsed
  const sorted = numbers.filter(Number.isFinite).sort()
  const { length } = sorted
  const at = (i: number): number => sorted[i] ?? 0
  const middle = at(length >> 1)
  const usual = Math.max((at((length * 3) >> 2) - at(length >> 2)) / 2, areDates ? 1 : Math.abs(middle) * USUAL_SHARE)
  const odd = new Set(findRowsApart(numbers, sorted, areDates))
  if (Math.max(at(length - 1) - middle, middle - at(0)) > FAR_FROM * usual) {
    const away = (row: number): number => Math.abs((numbers[row] ?? middle) - middle)
    const far = [...numbers.keys()].filter((row) => away(row) > FAR_FROM * usual)
    if (far.length <= Math.max(2, length * FAR_SHARE))
      for (const row of far.sort((a, b) => away(b) - away(a)).slice(0, FAR_MAX)) odd.add(row)
  }
  const others = numbers.length - length
  if (others > 0 && others <= Math.max(1, numbers.length * RARE_SHARE))
    for (const [row, number] of numbers.entries()) if (!Number.isFinite(number)) odd.add(row)
  return [...odd]
}

/** It also compares logarithms: so a zero stands apart from thousands, and a negative number from positive ones. */
function findRowsApart(numbers: Float64Array, sorted: Float64Array, areDates: boolean): readonly number[] {
  const found = new Set<number>()
  const { length } = sorted
  const end = length - 1
  for (const ends of areDates
    ? [smallestAndLargest(sorted)]
    : [smallestAndLargest(sorted), smallestAndLargest(sorted).map(signedLog)]) {
    const [low = 0, second = 0, third = 0, thirdLast = 0, secondLast = 0, high = 0] = ends
    if (high - secondLast > (secondLast - low) * APART_FROM) found.add(sorted[end] ?? 0)
    else if (secondLast - thirdLast > (thirdLast - low) * APART_FROM)
      found.add(sorted[end] ?? 0).add(sorted[end - 1] ?? 0)
    if (second - low > (high - second) * APART_FROM) found.add(sorted[0] ?? 0)
    else if (third - second > (high - third) * APART_FROM) found.add(sorted[0] ?? 0).add(sorted[1] ?? 0)
  }
  const isNegative = (sorted[0] ?? 0) < 0 && (sorted[Math.max(1, Math.floor(length * RARE_SHARE))] ?? 0) >= 0
  if (found.size === 0 && !isNegative) return []
  const rows: number[] = []
  for (const [row, number] of numbers.entries()) if (found.has(number) || (isNegative && number < 0)) rows.push(row)
  return rows
}

/** The three smallest and the three largest numbers. */
function smallestAndLargest(sorted: Float64Array): readonly number[] {
  return [...sorted.subarray(0, 3), ...sorted.subarray(-3)]
}

function signedLog(value: number): number {
  return Math.sign(value) * Math.log1p(Math.abs(value))
}

/** Values of a rare shape, and values with a part that is odd among the values of one shape. */
function findOddShapes(values: readonly string[], budget: SplitBudget): readonly OddValue[] {
  if (!spendBudget(budget, values.length)) return []
  const shapes = values.map(valueShape)
  const groups = new Map<number, number[]>()
  for (const [row, shape] of shapes.entries()) {
    const group = groups.get(shape)
    if (group !== undefined) group.push(row)
    else if (groups.size < SHAPES_MAX) groups.set(shape, [row])
    else return []
  }
  const odd: OddValue[] = groups.size === 1 ? [] : [...scoreRows(findRareRows(shapes) ?? [], SCORE.shape)]
  for (const rows of groups.values()) {
    const count = splitParts(values[rows[0] ?? 0] ?? '').length
    if (rows.length < VALUES_MIN || count < 2 || !spendBudget(budget, rows.length * count)) continue
    const parts = rows.map((row) => splitParts(values[row] ?? ''))
    for (let part = 0; part < count; part++) {
      const column = parts.map((each) => each[part] ?? '')
      for (const { row, score } of findOddValues(column, null)) odd.push({ row: rows[row] ?? 0, score })
    }
  }
  return odd
}

/** False if less than this is left. */
function spendBudget(budget: SplitBudget, amount: number): boolean {
  if (amount > budget.left) return false
  budget.left -= amount
  return true
}

/** The sorts of characters in a value: a sign between parts, or inside a part a digit, a letter, or a sign. */
const [BETWEEN, DIGIT, LETTER, INSIDE] = [0, 1, 2, 4]
const SORTS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code)
  if (/\d/.test(char)) return DIGIT
  if (/\w/.test(char)) return LETTER
  return '.-%+~*'.includes(char) ? INSIDE : BETWEEN
})

function characterSort(code: number): number {
  return code > 127 ? LETTER : (SORTS[code] ?? BETWEEN)
}

function splitParts(value: string): readonly string[] {
  const parts: string[] = []
  const end = Math.min(value.length, PART_CHARS_MAX)
  let from = -1
  for (let at = 0; at <= end; at++) {
    if (at < end && characterSort(value.charCodeAt(at)) !== BETWEEN) {
      if (from < 0) from = at
    } else if (from >= 0) {
      parts.push(value.slice(from, at))
      if (parts.length === PARTS_MAX) return parts
      from = -1
    }
  }
  return parts
}

const PRIME = 0x01000193
const EQUALS = 61

/**
 * A hash of the signs between the parts of a value, the names of its keys, and whether each other part has letters,
 * digits or neither.
 */
function valueShape(value: string): number {
  const end = Math.min(value.length, PART_CHARS_MAX)
  let [shape, part, sorts] = [0, 0, 0]
  for (let at = 0; at <= end; at++) {
    const code = at < end ? value.charCodeAt(at) : 0
    const sort = characterSort(code)
    if (sort === DIGIT || sort === LETTER) {
      sorts |= sort
      part = Math.imul(part ^ code, PRIME)
    } else if (sort === INSIDE) {
      if (sorts === 0) part = Math.imul(part ^ code, PRIME)
    } else {
      shape = Math.imul(shape ^ (code === EQUALS || sorts === 0 ? part : sorts & LETTER ? 97 : 48), PRIME)
      shape = Math.imul(shape ^ code, PRIME)
      part = sorts = 0
    }
  }
  return shape
}
