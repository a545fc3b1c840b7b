// Makes text of models, tools and files safe to show, on a terminal or a page: it cannot move the cursor, hide or reverse text, push
// text out of sight or imitate our own lines. The log keeps the raw text.
import { TAB } from './lookalike.ts'

/** Control characters but tab and newline, directions, joiners, tags, and all else that is drawn as nothing. */
const UNSAFE = /[\p{Cs}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?![\n\t])\p{Cc}/gu
/** Blanks that are not the plain one. */
const BLANK = /[^\P{Zs} ]|\u2800/gu
const HIDDEN = new RegExp(`${UNSAFE.source}|${BLANK.source}`, 'gu')
/** The first character of our own marks. In text it is shown by its code, so that no text can imitate a mark. */
const MARK = /⟨/gu

/** Invisible characters are shown by their code: `\u{1b}`. */
export function clean(text: string): string {
  return text.replace(UNSAFE, numbered).replace(BLANK, numbered)
}

/** A stretch of text that is drawn as it is, or (`hidden`) one character that is not, by its code. */
export type Piece = { readonly text: string; readonly hidden: boolean }

/** The same as `clean`, in pieces: a page marks what is shown by its code. */
export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = []
  let from = 0
  for (const { 0: each, index } of text.matchAll(HIDDEN)) {
    if (index > from) pieces.push({ text: text.slice(from, index), hidden: false })
    pieces.push({ text: numbered(each), hidden: true })
    from = index + each.length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), hidden: false })
  return pieces
}

function numbered(each: string): string {
  return `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`
}

/** Deeper than code is ever indented, and narrower than any terminal. */
const BLANKS_MAX = 40
const REPEATS_MAX = 3

/** One line, cleaned, with its tabs drawn as blanks. Runs of blanks and of invisible characters are counted. */
export function shownLine(line: string): string {
  return clean(line.replace(MARK, numbered))
    .replace(REPEATED, (run, each: string) => `${each}⟨${run.length / each.length} times⟩`)
    .replaceAll('\t', TAB)
    .replace(LONG_BLANK, (run) => `⟨${run.length} blanks⟩`)
    .replace(LONG_MARKS, (run, few: string) => `${few}⟨${Array.from(run).length - MARKS_MAX} more marks⟩`)
}

/** More marks on one letter than any script has. */
const MARKS_MAX = 6
const LONG_MARKS = new RegExp(`(\\p{M}{${MARKS_MAX}})\\p{M}+`, 'gu')

const REPEATED = new RegExp(`(\\\\u\\{[0-9a-f]+\\})\\1{${REPEATS_MAX},}`, 'g')
const LONG_BLANK = new RegExp(` {${BLANKS_MAX + 1},}`, 'g')

/** The same where blanks and look-alike letters matter: each unusual blank and non-ASCII character is shown by its code. */
export function exposedLine(line: string): string {
  return clean(line.replace(MARK, numbered))
    .replaceAll('\t', '\\t')
    .replace(/[^\x20-\x7e]/gu, numbered)
    .replace(REPEATED, (run, each: string) => `${each}⟨${run.length / each.length} times⟩`)
    .replace(/ +/g, (run) => (run.length > BLANKS_MAX ? `⟨${run.length} blanks⟩` : '␣'.repeat(run.length)))
}

const ID_CHARS_MAX = 200

/** The id of a session, a call or a message in a line for people: only ASCII is drawn, and all else is shown by its code. */
export function shownId(id: string): string {
  const drawn = exposedLine(id.slice(0, ID_CHARS_MAX))
  return id.length > ID_CHARS_MAX ? `${drawn}… (${id.length} characters)` : drawn
}

/** The colours that our own lines have, as `ESC[31m`. */
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[(?:[0-2]|3[1-6])m`, 'g')

/** One row of ours for a terminal: whatever stands in it, it moves no cursor, hides nothing and begins no other row. Our colours stay. */
export function shownRow(row: string): string {
  const colours = row.match(COLOUR) ?? []
  const texts = row.split(COLOUR).map((text) => clean(text).replaceAll('\n', ' ⏎ ').replaceAll('\t', TAB))
  return texts.map((text, at) => `${text}${colours[at] ?? ''}`).join('')
}

/** Trailing blanks are invisible, so they are shown. */
export function endShown(line: string): string {
  return line.replace(/ +$/, (run) => '␣'.repeat(run.length))
}

/** The same on one line, at most so long, with a note if it was cut. */
export function oneLine(text: string, charsMax = 160): string {
  // Do not process the part that is cut.
  const said = joined(text.slice(0, CHARS_SEEN_MAX + charsMax), ' ⏎ ')
  const line = shownLine(said).replace(/ {2,}/g, (run) => {
    return run.length > TAB.length ? `⟨${run.length} blanks⟩` : run
  })
  if (line.length <= charsMax && text.length <= CHARS_SEEN_MAX + charsMax) return line
  return `${line.slice(0, charsMax - 20)}… (${text.length} characters)`
}

const CHARS_SEEN_MAX = 10_000

/** Its lines without blanks around them, and without empty ones. A pattern for blanks around line breaks takes for ever on many blanks. */
export function joined(text: string, mark: string): string {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').join(mark)
}

/** JSON that is safe to print: the same value, with every character that is not safe escaped. On one line, unless it is indented. */
export function safeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replace(UNSAFE, escaped).replace(BLANK, escaped)
}

function escaped(each: string): string {
  return [...Array(each.length).keys()].map((i) => `\\u${each.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
}
