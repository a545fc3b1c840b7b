// What a session is called in a list: one line of visible characters that fits on a screen.
import { columnsOf } from './columns.ts'
import { visible } from './invisible.ts'

/** At most so wide on a screen, with the mark of the cut. */
const COLUMNS_MAX = 80
/** Of a long text only the beginning is looked at. */
const CHARS_SEEN = 1_000
/** A word that begins in the last columns is left out whole. */
const WORD_COLUMNS = 20
/** Marks that take no column: more of them than any script needs are cut with the rest. */
const CHARS_MAX = COLUMNS_MAX * 4
const HALVES = /\p{Cs}/gu
const NARROW = /^[\x20-\x7e]*$/

/** Null if there is nothing to see in it. */
export function titleOf(text: string): string | null {
  const seen = text.trimStart().slice(0, CHARS_SEEN)
  const plain = NARROW.test(seen) ? seen : visible(seen).text.replace(HALVES, '').replaceAll('\u2800', ' ')
  const line = plain.replace(/\s+/gu, ' ').trim()
  return line === '' ? null : cut(line)
}

function cut(line: string): string {
  if (line.length <= COLUMNS_MAX && NARROW.test(line)) return line
  const end = fits(line, COLUMNS_MAX)
  if (end === line.length) return line
  const short = line.slice(0, fits(line, COLUMNS_MAX - 1))
  const word = line[short.length] === ' ' ? -1 : short.lastIndexOf(' ')
  const kept = word > 0 && fits(short, COLUMNS_MAX - WORD_COLUMNS) < word ? short.slice(0, word) : short
  return `${kept.trimEnd()}…`
}

/** How many of its characters take at most so many columns. */
function fits(line: string, columns: number): number {
  let [used, chars] = [0, 0]
  for (const each of line) {
    used += columnsOf(each)
    if (used > columns || chars + each.length > CHARS_MAX) return chars
    chars += each.length
  }
  return chars
}
