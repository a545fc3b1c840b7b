// Families of lines: lines with the same message about different things. A family is wider than a kind of lines: names,
// which are words with digits or slashes, do not count. Only the first words that are not names count, so a message
// with a name in it stays in its family.

/** The number of words that make a family, and the number of characters in which they are searched for. */
const FAMILY_WORDS = 3
const FAMILY_CHARS = 160
const PRIME = 0x01000193
const HASH_START = 0x811c9dc5 | 0

/** A hash that all lines of one family share. Whether a line is indented counts, but not how far. */
export function lineFamily(line: string): number {
  const stop = Math.min(line.length, FAMILY_CHARS)
  const first = line.charCodeAt(0)
  let family = first === 32 || first === 9 ? PRIME : HASH_START
  let [word, words, isName] = [0, 0, false]
  for (let at = 0; at <= stop && words < FAMILY_WORDS; at++) {
    const code = at < stop ? line.charCodeAt(at) : 32
    if (code !== 32 && code !== 9) {
      word = (Math.imul(word ^ code, PRIME) + 1) | 0
      if ((code >= 48 && code <= 57) || code === 47 || code === 92) isName = true
    } else if (word !== 0) {
      if (!isName) {
        family = Math.imul(family ^ word, PRIME)
        words += 1
      }
      ;[word, isName] = [0, false]
    }
  }
  return family
}
