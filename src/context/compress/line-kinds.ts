// Finds the kinds of the lines of a text in one pass over its characters, without cutting it into lines. Two lines are
// of one kind if they differ only in words with digits. The beginning of a line also has a shape: which of its first
// words have digits, and the signs between them.

/** The characters of a line that count for its kind. */
const KIND_CHARS = 240
/** Longer texts get a coarser hash of fewer characters, which takes a third of the time. */
const EXACT_CHARS_MAX = 500_000
const COARSE_CHARS = 120
/** The words and signs at the beginning of a line that make its shape. */
const SHAPE_WORDS = 4
const SHAPE_SIGNS = 3

export type LineKinds = {
  readonly count: number
  /** A line counted from 0, without its line end. */
  readonly at: (line: number) => string
  /** The number of a line's kind. */
  readonly kindOf: Int32Array
  /** By kind: how many lines it has, and the first and the last of them. */
  readonly counts: readonly number[]
  readonly first: readonly number[]
  readonly last: readonly number[]
  /** How many lines begin with the same shape as this line. */
  readonly alikeAtStart: (line: number) => number
}

const SIGN = 0
const LETTER = 1
const DIGIT = 2
const BLANK = 3
const NEWLINE = 4
const CLASS = new Uint8Array(128).fill(SIGN)
for (let code = 0; code < 128; code++) {
  if ((code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95) CLASS[code] = LETTER
  else if (code >= 48 && code <= 57) CLASS[code] = DIGIT
  else if (code === 32 || code === 9 || code === 13) CLASS[code] = BLANK
}
CLASS[10] = NEWLINE
const PRIME = 0x01000193
const HASH_START = 0x811c9dc5 | 0

export function findLineKinds(text: string): LineKinds {
  const { starts, kinds, shapes } = text.length > EXACT_CHARS_MAX ? hashCoarsely(text) : hashLines(text)
  const count = starts.length - 1
  const byKind = numberHashes(kinds, count)
  const byShape = shapes === null ? null : numberHashes(shapes, count)
  const at = (line: number): string => {
    const end = (starts[line + 1] ?? text.length + 1) - 1
    return text.slice(starts[line] ?? text.length, end)
  }
  const alikeAtStart = (line: number): number =>
    byShape === null ? count : (byShape.counts[byShape.of[line] ?? 0] ?? 0)
  return { count, at, kindOf: byKind.of, counts: byKind.counts, first: byKind.first, last: byKind.last, alikeAtStart }
}

type LineHashes = {
  readonly starts: readonly number[]
  readonly kinds: readonly number[]
  readonly shapes: readonly number[] | null
}

/** `starts` has one more entry: the place at which a line after the last one would begin. */
function hashLines(text: string): LineHashes {
  const starts: number[] = [0]
  const kinds: number[] = []
  const shapes: number[] = []
  const { length } = text
  for (let at = 0; at < length || starts.length === 1; ) {
    const stop = Math.min(length, at + KIND_CHARS)
    let kind = HASH_START
    let shape = 17
    let word = 0
    let digit = false
    let blank = true
    let words = 0
    let place = at
    for (; place <= stop; place++) {
      const code = place < stop ? text.charCodeAt(place) : 10
      const sort = code < 128 ? CLASS[code] : LETTER
      if (sort === LETTER || sort === DIGIT) {
        word = (Math.imul(word ^ code, PRIME) + 1) | 0
        if (sort === DIGIT) digit = true
        blank = false
        continue
      }
      if (word !== 0) {
        kind = Math.imul(kind ^ (digit ? 35 : word), PRIME)
        if (words++ < SHAPE_WORDS) shape = Math.imul(shape ^ (digit ? 35 : 97), PRIME)
        word = 0
        digit = false
      }
      if (sort === NEWLINE) break
      if (sort !== BLANK) kind = Math.imul(kind ^ code, PRIME)
      else if (!blank) kind = Math.imul(kind ^ 32, PRIME)
      // Several blanks count as one, except for the indentation.
      if (words < SHAPE_SIGNS && (sort !== BLANK || !blank || place === at)) shape = Math.imul(shape ^ code, PRIME)
      blank = sort === BLANK
    }
    kinds.push(kind)
    shapes.push(shape)
    const newline = place < stop ? place : text.indexOf('\n', place)
    at = newline < 0 ? length + 1 : newline + 1
    starts.push(at)
  }
  return { starts, kinds, shapes }
}

/** Hex digits do not count, so lines that differ in numbers or hashes are of one kind. All lines have one shape. */
const HEX = new Uint8Array(128)
for (const digit of '0123456789abcdefABCDEF') HEX[digit.charCodeAt(0)] = 1

function hashCoarsely(text: string): LineHashes {
  const starts: number[] = [0]
  const kinds: number[] = []
  const { length } = text
  for (let at = 0; at < length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? length : newline
    const stop = Math.min(end, at + COARSE_CHARS)
    let kind = HASH_START
    for (let place = at; place < stop; place++) {
      const code = text.charCodeAt(place)
      if (code > 127 || HEX[code] === 0) kind = Math.imul(kind ^ code, PRIME)
    }
    kinds.push(kind)
    at = end + 1
    starts.push(at)
  }
  return { starts, kinds, shapes: null }
}

type NumberedHashes = {
  readonly of: Int32Array
  readonly counts: readonly number[]
  readonly first: readonly number[]
  readonly last: readonly number[]
}

/**
 * Numbers the different hashes in the order of their first line. An open table of numbers is several times as fast as a
 * Map.
 */
function numberHashes(hashes: readonly number[], count: number): NumberedHashes {
  let bits = 4
  while (1 << bits < count * 2) bits += 1
  const mask = (1 << bits) - 1
  const slots = new Int32Array(1 << bits).fill(-1)
  const known: number[] = []
  const [counts, first, last]: [number[], number[], number[]] = [[], [], []]
  const of = new Int32Array(count)
  for (let line = 0; line < count; line++) {
    const hash = hashes[line] ?? 0
    let slot = (hash ^ (hash >>> 15)) & mask
    while ((slots[slot] ?? -1) >= 0 && known[slots[slot] ?? 0] !== hash) slot = (slot + 1) & mask
    let id = slots[slot] ?? -1
    if (id < 0) {
      id = known.length
      slots[slot] = id
      known.push(hash)
      counts.push(0)
      first.push(line)
      last.push(line)
    }
    of[line] = id
    counts[id] = (counts[id] ?? 0) + 1
    last[id] = line
  }
  return { of, counts, first, last }
}
