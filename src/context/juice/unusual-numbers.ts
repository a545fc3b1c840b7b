// Lines of one kind differ only in words with digits. Such words are columns: a line whose word is rare in a column with few different
// words, or whose number is far from the others of its column, is unusual, although nothing in it sounds like trouble.
import type { LineKinds } from './line-kinds.ts'

/** Kinds that are looked at, lines of them, and words of a line. */
const KINDS_MAX = 12
const KIND_LINES_MIN = 20
const LINES_MAX = 5_000
const WORDS_MAX = 16
/** A column with at most so many different words is a list of categories. */
const CATEGORIES_MAX = 6
const SIGMAS = 6
const FOUND_MAX = 8
const WORD = /[\w.:%-]*\d[\w.:%-]*/g
const LOOKED_CHARS = 400

export function unusualLines(kinds: LineKinds): readonly number[] {
  const { count, counts, kindOf } = kinds
  if (count > LINES_MAX) return []
  const large = [...counts.keys()].filter((kind) => (counts[kind] ?? 0) >= KIND_LINES_MIN)
  const found: number[] = []
  for (const kind of large.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0)).slice(0, KINDS_MAX)) {
    const lines: number[] = []
    for (let line = 0; line < count; line++) if (kindOf[line] === kind) lines.push(line)
    const rows = lines.map((line) => kinds.at(line).slice(0, LOOKED_CHARS).match(WORD)?.slice(0, WORDS_MAX) ?? [])
    const unusual = new Set<number>()
    for (let column = 0; column < (rows[0]?.length ?? 0); column++)
      for (const row of unusualIn(rows.map((row) => row[column] ?? ''))) unusual.add(lines[row] ?? 0)
    found.push(...unusual)
  }
  return found
}

/** Places in a column whose words are rare, or whose numbers are far from the mean. Too many of them say nothing. */
function unusualIn(words: readonly string[]): readonly number[] {
  const places = new Map<string, number[]>()
  for (const [i, word] of words.entries()) {
    const known = places.get(word)
    if (known === undefined) places.set(word, [i])
    else known.push(i)
  }
  const found =
    places.size <= CATEGORIES_MAX
      ? [...places.values()].filter(({ length }) => length <= Math.max(1, words.length * 0.01)).flat()
      : farNumbers(words)
  return found.length <= FOUND_MAX ? found : []
}

function farNumbers(words: readonly string[]): readonly number[] {
  const numbers = words.map(Number)
  const real = numbers.filter(Number.isFinite)
  if (real.length < words.length * 0.9) return []
  const mean = real.reduce((sum, each) => sum + each, 0) / real.length
  const sigma = Math.sqrt(real.reduce((sum, each) => sum + (each - mean) ** 2, 0) / real.length)
  if (!(sigma > 0) || !Number.isFinite(sigma)) return []
  return numbers.flatMap((each, i) => (Math.abs(each - mean) > SIGMAS * sigma ? [i] : []))
}
