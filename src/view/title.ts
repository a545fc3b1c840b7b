// The title of a session in a list: one line of visible characters that fits on a screen.
import { columnWidth } from './columns.ts'
import { removeInvisible } from './invisible.ts'

/** The maximum width on a screen, including the mark of the cut. */
const COLUMNS_MAX = 80
/** Only the beginning of a long text is read. */
const CHARS_SEEN = 1_000
/** A word that begins in the last columns is left out completely. */
const WORD_COLUMNS = 20
/** Combining marks take no column: more of them than any script needs are cut with the rest. */
const CHARS_MAX = COLUMNS_MAX * 4
const HALVES = /\p{Cs}/gu
const NARROW = /^[\x20-\x7e]*$/

/** Null if the text has nothing visible. */
export function titleFromText(text: string): string | null {
  const seen = text.trimStart().slice(0, CHARS_SEEN)
  const plain = NARROW.test(seen) ? seen : removeInvisible(seen).text.replace(HALVES, '').replaceAll('\u2800', ' ')
  const line = plain.replace(/\s+/gu, ' ').trim()
  return line === '' ? null : cutTitle(line)
}

function cutTitle(line: string): string {
  if (line.length <= COLUMNS_MAX && NARROW.test(line)) return line
  const end = charsThatFit(line, COLUMNS_MAX)
  if (end === line.length) return line
  const short = line.slice(0, charsThatFit(line, COLUMNS_MAX - 1))
  const word = line[short.length] === ' ' ? -1 : short.lastIndexOf(' ')
  const kept = word > 0 && charsThatFit(short, COLUMNS_MAX - WORD_COLUMNS) < word ? short.slice(0, word) : short
  return `${kept.trimEnd()}…`
}

/** How many characters fit into this many columns. */
function charsThatFit(line: string, columns: number): number {
  let [used, chars] = [0, 0]
  for (const each of line) {
    used += columnWidth(each)
    if (used > columns || chars + each.length > CHARS_MAX) return chars
    chars += each.length
  }
  return chars
}
