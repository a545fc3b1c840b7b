// Values of one column that differ from what is usual there, although nothing in them sounds like trouble: a rare word among few different
// ones, a number or a date far from the others, a value of another shape. A value with parts, such as an address or `A=1;B=2`, is a
// row of columns itself. A column in which nearly all values differ says nothing.
import { numbersOf } from './numbers.ts'

export type Odd = { readonly row: number; readonly score: number }

/** In fewer values than this, none is odd. */
export const VALUES_MIN = 12
/** So many values at equal distances are compared, to see whether the others are worth it. */
const SAMPLE = 24
/** A value is rare in at most this share of the rows, and if common values are so many times as frequent. */
const RARE_SHARE = 0.02
const TIMES_AS_FREQUENT = 8
/** More rare rows than this share say nothing. */
const RARE_ROWS_SHARE = 0.03
/** Values with more parts, or longer ones, are not taken apart to their end. */
const PARTS_MAX = 16
const PART_CHARS_MAX = 240
/** Of more different shapes than this, the values are not taken apart. */
const SHAPES_MAX = 40
/** So many values and parts of them are looked at in one document to take values apart. The columns after these are judged as a whole only. */
const TAKEN_APART_MAX = 800_000
const SAMPLE_SHAPES_MAX = 8
const SCORE = { category: 1.8, number: 1.7, shape: 1.6 } as const

/** How many more values and parts of one document may be taken apart. All its columns share it. */
export type SplitBudget = { left: number }

export function startSplitBudget(): SplitBudget {
  return { left: TAKEN_APART_MAX }
}

/** Without `budget`, no value is taken apart. */
export function oddValues(values: readonly string[], budget: SplitBudget | null): readonly Odd[] {
  if (values.length < VALUES_MIN || isConstant(values)) return []
  const sample = sampleOf(values)
  if (sample.size < SAMPLE * 0.75 || values.length < SAMPLE) {
    const rare = rareRows(values)
    if (rare !== null) return giveScore(rare, SCORE.category)
  }
  const far = farRows(values)
  if (far !== null) return giveScore(far, SCORE.number)
  return budget === null || countShapes(sample) > SAMPLE_SHAPES_MAX ? [] : oddShapes(values, budget)
}

function countShapes(sample: ReadonlySet<string>): number {
  const shapes = new Set<number>()
  for (const value of sample) shapes.add(shapeOf(value))
  return shapes.size
}

function isConstant(values: readonly string[]): boolean {
  const [first] = values
  for (const value of values) if (value !== first) return false
  return true
}

/** A row that is alone says more than one of several. */
function giveScore(rows: readonly number[], score: number): readonly Odd[] {
  return rows.map((row) => ({ row, score: score + (rows.length === 1 ? 0.2 : 0) }))
}

function sampleOf(values: readonly string[]): ReadonlySet<string> {
  const sample = new Set<string>()
  const step = values.length / SAMPLE
  for (let i = 0; i < SAMPLE; i++) sample.add(values[Math.floor(i * step)] ?? '')
  return sample
}

/** Null for a column that is no list of categories: common values do not fill nearly all of it. */
function rareRows<Value>(values: readonly Value[]): readonly number[] | null {
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

/** A number is far from the others from so many usual distances on. Where many are far, that says nothing; else the farthest are shown. */
const FAR_FROM = 12
const FAR_SHARE = 0.1
const FAR_MAX = 4
/** Of the number in the middle: so much at least is a usual distance from it. */
const USUAL_SHARE = 0.05
/** One or two numbers stand apart from the others if the gap is so many times as wide as the range of these. */
const APART_FROM = 1.2

/**
 * Rows whose numbers are far from the one in the middle, and those that stand apart from all others. Distances are compared with half of the
 * range of the middle half, and not with a deviation: in a short column, one number that is far makes the deviation large itself. Null for
 * a column without numbers.
 */
function farRows(values: readonly string[]): readonly number[] | null {
  const parsed = numbersOf(values)
  if (parsed === null) return null
  const { numbers, areDates } = parsed
  const sorted = numbers.filter(Number.isFinite).sort()
  const { length } = sorted
  const at = (i: number): number => sorted[i] ?? 0
  const middle = at(length >> 1)
  const usual = Math.max((at((length * 3) >> 2) - at(length >> 2)) / 2, areDates ? 1 : Math.abs(middle) * USUAL_SHARE)
  const odd = new Set(rowsApart(numbers, sorted, areDates))
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

/** Also by their logarithms: so a zero stands apart from thousands, and a sign from none. */
function rowsApart(numbers: Float64Array, sorted: Float64Array, areDates: boolean): readonly number[] {
  const found = new Set<number>()
  const { length } = sorted
  const end = length - 1
  for (const ends of areDates ? [endsOf(sorted)] : [endsOf(sorted), endsOf(sorted).map(signedLog)]) {
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

/** The three smallest and the three largest. */
function endsOf(sorted: Float64Array): readonly number[] {
  return [...sorted.subarray(0, 3), ...sorted.subarray(-3)]
}

function signedLog(value: number): number {
  return Math.sign(value) * Math.log1p(Math.abs(value))
}

/** Values of a rare shape, and values with a part that is odd among those of one shape. */
function oddShapes(values: readonly string[], budget: SplitBudget): readonly Odd[] {
  if (!spendBudget(budget, values.length)) return []
  const shapes = values.map(shapeOf)
  const groups = new Map<number, number[]>()
  for (const [row, shape] of shapes.entries()) {
    const group = groups.get(shape)
    if (group !== undefined) group.push(row)
    else if (groups.size < SHAPES_MAX) groups.set(shape, [row])
    else return []
  }
  const odd: Odd[] = groups.size === 1 ? [] : [...giveScore(rareRows(shapes) ?? [], SCORE.shape)]
  for (const rows of groups.values()) {
    const count = partsOf(values[rows[0] ?? 0] ?? '').length
    if (rows.length < VALUES_MIN || count < 2 || !spendBudget(budget, rows.length * count)) continue
    const parts = rows.map((row) => partsOf(values[row] ?? ''))
    for (let part = 0; part < count; part++) {
      const column = parts.map((each) => each[part] ?? '')
      for (const { row, score } of oddValues(column, null)) odd.push({ row: rows[row] ?? 0, score })
    }
  }
  return odd
}

/** False if less is left. */
function spendBudget(budget: SplitBudget, amount: number): boolean {
  if (amount > budget.left) return false
  budget.left -= amount
  return true
}

/** What a character is for the parts of a value: a sign between them, or of a part a digit, a letter, or a sign that stands inside. */
const [BETWEEN, DIGIT, LETTER, INSIDE] = [0, 1, 2, 4]
const SORTS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code)
  if (/\d/.test(char)) return DIGIT
  if (/\w/.test(char)) return LETTER
  return '.-%+~*'.includes(char) ? INSIDE : BETWEEN
})

function sortOf(code: number): number {
  return code > 127 ? LETTER : (SORTS[code] ?? BETWEEN)
}

function partsOf(value: string): readonly string[] {
  const parts: string[] = []
  const end = Math.min(value.length, PART_CHARS_MAX)
  let from = -1
  for (let at = 0; at <= end; at++) {
    if (at < end && sortOf(value.charCodeAt(at)) !== BETWEEN) {
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

/** A number for the signs between the parts of a value, the names of its keys, and whether each other part has letters, digits or neither. */
function shapeOf(value: string): number {
  const end = Math.min(value.length, PART_CHARS_MAX)
  let [shape, part, sorts] = [0, 0, 0]
  for (let at = 0; at <= end; at++) {
    const code = at < end ? value.charCodeAt(at) : 0
    const sort = sortOf(code)
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
