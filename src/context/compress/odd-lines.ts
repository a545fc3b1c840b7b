// Finds odd lines. Lines that differ only in their words are rows, and the places of their words are columns. A line is
// odd if one of its words is odd in its column, although it has no signal of failure. Lines of one family, with one
// label or with one number of words are compared.
import { lineFamily } from './line-families.ts'
import type { LineKinds } from './line-kinds.ts'
import { findOddValues, VALUES_MIN, type SplitBudget, startSplitBudget } from './odd-values.ts'

/** The most groups of lines, lines of a text, and words of a line that are compared. */
const GROUPS_MAX = 80
const LINES_MAX = 5_000
const WORDS_MAX = 20
/** The number of columns counted from the right, for lines with different numbers of words. */
const RIGHT_MAX = 8
const LOOKED_CHARS = 400
const FOUND_MAX = 30
const ONE_FAMILY_SHARE = 0.7
/** The score that each further odd word of a line adds. */
const MORE_ODD = 0.15

export type OddLine = { readonly line: number; readonly score: number }

/** The oddest lines, the oddest first. */
export function findOddLines(kinds: LineKinds): readonly OddLine[] {
  const { count, at } = kinds
  if (count > LINES_MAX) return []
  const words: (readonly string[])[] = []
  for (let line = 0; line < count; line++) words.push(wordsOf(at(line)))
  const scores = new Map<number, number>()
  const budget = startSplitBudget()
  for (const lines of groupLines(words, kinds))
    for (const [line, score] of scoreOddLines(lines, words, budget)) {
      const known = scores.get(line)
      scores.set(line, known === undefined ? score : Math.max(known, score))
    }
  const odd = [...scores].map(([line, score]) => ({ line, score }))
  return odd.sort((a, b) => b.score - a.score || a.line - b.line).slice(0, FOUND_MAX)
}

function wordsOf(said: string): readonly string[] {
  const end = Math.min(said.length, LOOKED_CHARS)
  const words: string[] = []
  let from = -1
  for (let at = 0; at <= end; at++) {
    const code = at < end ? said.charCodeAt(at) : 32
    if (code !== 32 && code !== 9) {
      if (from < 0) from = at
    } else if (from >= 0) {
      words.push(said.slice(from, at))
      if (words.length === WORDS_MAX) return words
      from = -1
    }
  }
  return words
}

/** Groups the lines of one family, and the lines with one label or, if the label is rare, with one number of words. */
function groupLines(words: readonly (readonly string[])[], kinds: LineKinds): readonly (readonly number[])[] {
  const familyByKind = kinds.first.map((line) => lineFamily(kinds.at(line)))
  const families = new Map<number, number[]>()
  const labels = new Map<string, number[]>()
  for (const [line, said] of words.entries()) {
    if (said.length === 0) continue
    addToGroup(families, familyByKind[kinds.kindOf[line] ?? 0] ?? 0, line)
    addToGroup(labels, labelOf(said), line)
  }
  const widths = new Map<number, number[]>()
  for (const [label, lines] of labels) {
    if (lines.length >= VALUES_MIN) continue
    labels.delete(label)
    for (const line of lines) addToGroup(widths, words[line]?.length ?? 0, line)
  }
  // A family that is nearly all of its label is compared with the rest of that label.
  for (const [family, lines] of families) {
    const labelled = labels.get(labelOf(words[lines[0] ?? 0] ?? []))
    if (labelled !== undefined && lines.length >= labelled.length * ONE_FAMILY_SHARE) families.delete(family)
  }
  const groups = [...families.values(), ...labels.values(), ...widths.values()]
  const large = groups.filter(({ length }) => length >= VALUES_MIN).sort((a, b) => b.length - a.length)
  const seen = new Set<string>()
  const different = large.filter((lines) => {
    const name = `${lines.length} ${lines[0]} ${lines.at(-1)}`
    return !seen.has(name) && seen.add(name)
  })
  return different.slice(0, GROUPS_MAX)
}

/** The first word that has a letter before any digit, up to its first digit. */
function labelOf(words: readonly string[]): string {
  const word = words.find((each) => LETTER_FIRST.test(each)) ?? ''
  const digit = word.search(/\d/)
  return digit < 0 ? word : word.slice(0, digit)
}

const LETTER_FIRST = /^[^\da-zA-Z]*[a-zA-Z]/

function addToGroup<Key>(groups: Map<Key, number[]>, key: Key, line: number): void {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [line])
  else group.push(line)
}

function scoreOddLines(
  lines: readonly number[],
  words: readonly (readonly string[])[],
  budget: SplitBudget,
): ReadonlyMap<number, number> {
  const rows = lines.map((line) => words[line] ?? [])
  const width = rows.reduce((most, { length }) => Math.max(most, length), 0)
  const isEven = rows.every(({ length }) => length === width)
  const scores = new Map<number, number>()
  const judge = (column: number): void => {
    const having = isEven
      ? lines
      : lines.filter((_line, i) => Math.abs(column) < (rows[i]?.length ?? 0) + (column < 0 ? 1 : 0))
    const values = having.map((line) => words[line]?.at(column) ?? '')
    for (const { row, score } of findOddValues(values, budget)) {
      const line = having[row] ?? 0
      const known = scores.get(line)
      scores.set(line, known === undefined ? score : Math.max(known, score) + MORE_ODD)
    }
  }
  for (let column = 0; column < width; column++) judge(column)
  if (!isEven) for (let column = -1; column >= -RIGHT_MAX; column--) judge(column)
  return scores
}
