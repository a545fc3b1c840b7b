// Makes text of models, tools and files safe to show on a terminal or a page: it cannot move the cursor, hide or
// reverse text, push text out of sight or imitate our own lines. The log keeps the raw text.
import { TAB } from './lookalike.ts'

/** Control characters except tab and newline, direction marks, joiners, tags, and all other invisible characters. */
const UNSAFE = /[\p{Cs}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?![\n\t])\p{Cc}/gu
/** Blanks other than the plain space. */
const BLANK = /[^\P{Zs} ]|\u2800/gu
const HIDDEN = new RegExp(`${UNSAFE.source}|${BLANK.source}`, 'gu')
/** The first character of our own marks. In text it is shown by its code, so that no text can imitate a mark. */
const MARK = /⟨/gu

/** Invisible characters are shown by their code: `\u{1b}`. */
export function clean(text: string): string {
  return text.replace(UNSAFE, characterCode).replace(BLANK, characterCode)
}

/** A piece of cleaned text. */
export type CleanPiece = {
  /** What is drawn. */
  readonly text: string
  /** It is the code of one character that is not drawn as it is. */
  readonly hidden: boolean
}

/** The same as `clean`, in pieces, so that a page can mark the characters shown by code. */
export function piecesOf(text: string): readonly CleanPiece[] {
  const pieces: CleanPiece[] = []
  let from = 0
  for (const { 0: each, index } of text.matchAll(HIDDEN)) {
    if (index > from) pieces.push({ text: text.slice(from, index), hidden: false })
    pieces.push({ text: characterCode(each), hidden: true })
    from = index + each.length
  }
  if (from < text.length) pieces.push({ text: text.slice(from), hidden: false })
  return pieces
}

function characterCode(each: string): string {
  return `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`
}

/** More than code is ever indented, and less than the width of any terminal. */
const BLANKS_MAX = 40
const REPEATS_MAX = 3

/**
 * One cleaned line, with tabs drawn as blanks. Long runs of blanks and of invisible characters are replaced by their
 * count.
 */
export function shownLine(line: string): string {
  return clean(line.replace(MARK, characterCode))
    .replace(REPEATED, (run, each: string) => `${each}⟨${run.length / each.length} times⟩`)
    .replaceAll('\t', TAB)
    .replace(LONG_BLANK, (run) => `⟨${run.length} blanks⟩`)
    .replace(LONG_MARKS, (run, few: string) => `${few}⟨${Array.from(run).length - MARKS_MAX} more marks⟩`)
}

/** More marks on one letter than any script uses. */
const MARKS_MAX = 6
const LONG_MARKS = new RegExp(`(\\p{M}{${MARKS_MAX}})\\p{M}+`, 'gu')

const REPEATED = new RegExp(`(\\\\u\\{[0-9a-f]+\\})\\1{${REPEATS_MAX},}`, 'g')
const LONG_BLANK = new RegExp(` {${BLANKS_MAX + 1},}`, 'g')

/**
 * The same where blanks and look-alike letters matter: unusual blanks and non-ASCII characters are shown by their
 * codes.
 */
export function exposedLine(line: string): string {
  return clean(line.replace(MARK, characterCode))
    .replaceAll('\t', '\\t')
    .replace(/[^\x20-\x7e]/gu, characterCode)
    .replace(REPEATED, (run, each: string) => `${each}⟨${run.length / each.length} times⟩`)
    .replace(/ +/g, (run) => (run.length > BLANKS_MAX ? `⟨${run.length} blanks⟩` : '␣'.repeat(run.length)))
}

const ID_CHARS_MAX = 200

/**
 * The id of a session, a call or a message in a line for people: ASCII is drawn, everything else is shown by its code.
 */
export function shownId(id: string): string {
  const drawn = exposedLine(id.slice(0, ID_CHARS_MAX))
  return id.length > ID_CHARS_MAX ? `${drawn}… (${id.length} characters)` : drawn
}

/** The colours of our own lines, as `ESC[31m`. */
const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[(?:[0-2]|3[1-6])m`, 'g')

/**
 * One of our rows for a terminal: no text in it can move the cursor, hide anything or begin another row. Our colours
 * stay.
 */
export function shownRow(row: string): string {
  const colours = row.match(COLOUR) ?? []
  const texts = row.split(COLOUR).map((text) => clean(text).replaceAll('\n', ' ⏎ ').replaceAll('\t', TAB))
  return texts.map((text, at) => `${text}${colours[at] ?? ''}`).join('')
}

/** Trailing blanks are invisible, so they are shown. */
export function showEndBlanks(line: string): string {
  return line.replace(/ +$/, (run) => '␣'.repeat(run.length))
}

/** The text on one line with at most this many characters, and a note if it was cut. */
export function oneLine(text: string, charsMax = 160): string {
  // Do not process the part that is cut.
  const said = joinLines(text.slice(0, CHARS_SEEN_MAX + charsMax), ' ⏎ ')
  const line = shownLine(said).replace(/ {2,}/g, (run) => {
    return run.length > TAB.length ? `⟨${run.length} blanks⟩` : run
  })
  if (line.length <= charsMax && text.length <= CHARS_SEEN_MAX + charsMax) return line
  return `${line.slice(0, charsMax - 20)}… (${text.length} characters)`
}

const CHARS_SEEN_MAX = 10_000

/** The non-empty lines, trimmed and joined. A pattern for blanks around line breaks takes for ever on many blanks. */
export function joinLines(text: string, mark: string): string {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').join(mark)
}

/**
 * JSON that is safe to print: the same value with every unsafe character escaped. On one line, unless it is indented.
 */
export function safeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replace(UNSAFE, escapeCharacter).replace(BLANK, escapeCharacter)
}

function escapeCharacter(each: string): string {
  return [...Array(each.length).keys()].map((i) => `\\u${each.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
}
