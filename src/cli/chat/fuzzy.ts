// Fuzzy search over names, paths and titles: the letters of the query in their order, starts of words first. Pure.

/** A text to search in, prepared once. */
export type SearchText = { readonly text: string; readonly lower: string; readonly base: number }

export function searchTextOf(text: string): SearchText {
  return { text, lower: text.toLowerCase(), base: text.lastIndexOf('/') + 1 }
}

/** A word begins after a character that is neither letter nor digit, and at a capital after a small letter. */
function isWordStart(text: string, at: number): boolean {
  const here = text.charCodeAt(at)
  if (!isWordCode(here)) return false
  if (at === 0) return true
  const before = text.charCodeAt(at - 1)
  return !isWordCode(before) || (isCapital(here) && !isCapital(before))
}

const isCapital = (code: number): boolean => code >= 65 && code <= 90
const isWordCode = (code: number): boolean =>
  (code >= 48 && code <= 57) || isCapital(code) || (code >= 97 && code <= 122) || code > 127

/** Each row of ranks is this far apart, so that the length of a text decides only between equals. */
const RANK = 100_000

/**
 * How well a lower-case query fits: the lower, the better. Null: it does not fit. Best are queries whose letters go on
 * from starts of words (`edl` in `edit-line`), then queries that stand in the text, then letters in their order. A text
 * that cannot be better than `limit` is not looked at further, and any rank above the limit is returned.
 */
export function fuzzyRank(query: string, searched: SearchText, limit = Number.POSITIVE_INFINITY): number | null {
  const { lower, base } = searched
  const length = Math.min(lower.length, RANK - 1)
  if (query === '') return length
  const start = query.includes('/') ? 0 : base
  if (lower.startsWith(query, start)) return length
  if (!hasInOrder(query, lower)) return null
  const tests = [
    () => goesByWords(query, searched, start, start),
    () => goesByWords(query, searched, start, lower.length),
    () => start > 0 && goesByWords(query, searched, 0, lower.length),
    () => lower.lastIndexOf(query) >= start,
    () => lower.includes(query),
  ]
  const found = tests.findIndex((test, at) => (at + 1) * RANK + length >= limit || test())
  return (found < 0 ? tests.length + 1 : found + 1) * RANK + length
}

function hasInOrder(query: string, lower: string): boolean {
  let at = -1
  for (let done = 0; done < query.length; done += 1) {
    at = lower.indexOf(query[done] ?? '', at + 1)
    if (at < 0) return false
  }
  return true
}

/** True if the query begins at a start of a word and goes on either with the next letter or at another start. */
function goesByWords(query: string, { text, lower }: SearchText, from: number, last: number): boolean {
  const letter = query[0] ?? ''
  let left = TRIES_MAX
  const goesOn = (done: number, at: number): boolean => {
    if (done === query.length) return true
    left -= 1
    if (left < 0) return false
    const wanted = query[done] ?? ''
    if (lower[at] === wanted && goesOn(done + 1, at + 1)) return true
    for (let next = lower.indexOf(wanted, at + 1); next >= 0 && left > 0; next = lower.indexOf(wanted, next + 1))
      if (isWordStart(text, next) && goesOn(done + 1, next + 1)) return true
    return false
  }
  for (let at = lower.indexOf(letter, from); at >= 0 && at <= last && left > 0; at = lower.indexOf(letter, at + 1))
    if (isWordStart(text, at) && goesOn(1, at + 1)) return true
  return false
}

/** How many letters are tried for one text, so that a text of one letter costs no more than a name. */
const TRIES_MAX = 200
