// Lines of one kind differ only in words with digits, lines of one family in names as well. Such words are columns: a line whose word
// is rare in a column with few different words, or whose number is far from the others of its column, is unusual, although nothing in it
// sounds like trouble.
import type { LineKinds } from './line-kinds.ts'

/** Groups of lines that are looked at, lines of a text, and words of a line. */
const GROUPS_MAX = 80
const GROUP_LINES_MIN = 16
const LINES_MAX = 5_000
const WORDS_MAX = 16
/** Rows of which one must have a digit in a column, for the column to be looked at. */
const PROBED_ROWS = 4
/** A column with at most so many different words is a list of categories. */
const CATEGORIES_MAX = 6
/** A number is far from the others from so many usual distances on. Where many are far, that says nothing; else the farthest are shown. */
const FAR_FROM = 12
const FAR_SHARE = 0.1
const FAR_MAX = 4
/** Of the number in the middle: so much at least is a usual distance from it. */
const USUAL_SHARE = 0.05
const FOUND_MAX = 8
const WORD = /[\w.:%-]*\d[\w.:%-]*/g
/** A number with thousands and a unit, such as `48,211` or `1.5ms`. */
const NUMBER = /^[-+]?\d[\d,]*(?:\.\d+)?(?=[a-zA-Zµ%]{0,3}$)/
const LOOKED_CHARS = 400
/** A family of which one kind has more than this share was looked at as that kind. */
const ONE_KIND_SHARE = 0.8

/** `familyOf`: the number of the family that a kind of lines belongs to. */
export function unusualLines(kinds: LineKinds, familyOf: (kind: number) => number): readonly number[] {
  if (kinds.count > LINES_MAX) return []
  const { at } = kinds
  const found = new Set<number>()
  for (const lines of largeGroups(kinds, (kind) => kind, 1)) {
    const rows = lines.map((line) => at(line).slice(0, LOOKED_CHARS).match(WORD)?.slice(0, WORDS_MAX) ?? [])
    for (const row of unusualRows(rows, unusualIn)) found.add(lines[row] ?? 0)
  }
  const wordsAt = (line: number): readonly string[] => at(line).slice(0, LOOKED_CHARS).trim().split(/\s+/, WORDS_MAX)
  for (const lines of largeGroups(kinds, familyOf, ONE_KIND_SHARE)) {
    const probe = lines.slice(0, PROBED_ROWS).flatMap(wordsAt)
    if (!probe.some((word) => Number.isFinite(numberIn(word)))) continue
    for (const row of unusualRows(lines.map(wordsAt), farNumbers)) found.add(lines[row] ?? 0)
  }
  return [...found]
}

type Group = { readonly lines: number[]; size: number; largest: number }

/** The lines of the largest groups of kinds. A group of which one kind has more than `oneKind` is none. */
function largeGroups(
  { count, counts, kindOf }: LineKinds,
  groupOf: (kind: number) => number,
  oneKind: number,
): readonly (readonly number[])[] {
  const groups = new Map<number, Group>()
  for (const [kind, times] of counts.entries()) {
    const group = groups.get(groupOf(kind))
    if (group === undefined) groups.set(groupOf(kind), { lines: [], size: times, largest: times })
    else {
      group.size += times
      group.largest = Math.max(group.largest, times)
    }
  }
  const large = [...groups].filter(([, { size, largest }]) => size >= GROUP_LINES_MIN && largest <= size * oneKind)
  const wanted = new Map(large.sort(([, a], [, b]) => b.size - a.size).slice(0, GROUPS_MAX))
  if (wanted.size === 0) return []
  const byKind = counts.map((_times, kind) => wanted.get(groupOf(kind))?.lines)
  for (let line = 0; line < count; line++) byKind[kindOf[line] ?? 0]?.push(line)
  return [...wanted.values()].map(({ lines }) => lines)
}

type Judge = (words: readonly string[]) => readonly number[]

function unusualRows(rows: readonly (readonly string[])[], judge: Judge): ReadonlySet<number> {
  const unusual = new Set<number>()
  for (let column = 0; column < (rows[0]?.length ?? 0); column++)
    if (rows.slice(0, PROBED_ROWS).some((words) => /\d/.test(words[column] ?? '')))
      for (const row of judge(rows.map((words) => words[column] ?? ''))) unusual.add(row)
  return unusual
}

/** Places in a column whose words are rare, or whose numbers are far from the mean. Too many rare words say nothing. */
function unusualIn(words: readonly string[]): readonly number[] {
  const places = new Map<string, number[]>()
  for (const [i, word] of words.entries()) {
    const known = places.get(word)
    if (known === undefined) places.set(word, [i])
    else known.push(i)
  }
  if (places.size > CATEGORIES_MAX) return farNumbers(words)
  const rare = [...places.values()].filter(({ length }) => length <= Math.max(1, words.length * 0.01)).flat()
  return rare.length <= FOUND_MAX ? rare : []
}

/**
 * The places of the numbers that are farthest from the one in the middle, if they are far at all. Distances are compared with the usual
 * distance from the middle, and not with a deviation: in a short column, one number that is far makes the deviation large itself.
 */
function farNumbers(words: readonly string[]): readonly number[] {
  const numbers = words.map(numberIn)
  const real = numbers.filter(Number.isFinite)
  if (real.length < words.length * 0.9) return []
  const middle = medianOf(real)
  const usual = Math.max(medianOf(real.map((each) => Math.abs(each - middle))), Math.abs(middle) * USUAL_SHARE)
  const away = (i: number): number => Math.abs((numbers[i] ?? middle) - middle)
  const far = [...numbers.keys()].filter((i) => away(i) > FAR_FROM * usual)
  if (far.length > Math.max(2, words.length * FAR_SHARE)) return []
  return far.sort((a, b) => away(b) - away(a)).slice(0, FAR_MAX)
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}

function numberIn(word: string): number {
  const first = word.charCodeAt(0)
  // A digit, or a sign or a point before one.
  if (!((first >= 48 && first <= 57) || first === 45 || first === 43 || first === 46)) return Number.NaN
  const number = Number(word)
  if (Number.isFinite(number)) return number
  const [found] = NUMBER.exec(word) ?? []
  return found === undefined ? Number.NaN : Number(found.replaceAll(',', ''))
}
