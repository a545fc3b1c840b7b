// Prepares text for a terminal: cleans it piece by piece, measures it in columns, breaks it into rows. Pure: it draws
// nothing.
import { stripVTControlCharacters } from 'node:util'
import { columnWidth, WIDE } from '../../view/columns.ts'
import { clean } from '../../view/clean.ts'

/** An end that may join the next piece: half a surrogate pair, a carriage return, or an emoji that may be combined. */
const UNSURE =
  /(?:[\ud800-\udbff\r]|[0-9#*]\ufe0f?|(?:\p{Extended_Pictographic}\p{Emoji_Modifier}?\ufe0f?\u200d?){1,16}[\ud800-\udbff]?)$/u
/** Characters that draw nothing of their own inside an emoji. Anywhere else they are shown by their number. */
const JOINED = /(\p{Extended_Pictographic}\p{Emoji_Modifier}?)\ufe0f?(?:\u200d(?=\p{Extended_Pictographic}))?/gu
const KEYCAP = /([0-9#*])\ufe0f(?=\u20e3)/gu

/** Cleans text piece by piece. The result does not depend on where the pieces were cut. */
export class TextCleaner {
  #held = ''

  push(piece: string): string {
    const text = this.#held + piece
    const sure = UNSURE.exec(text)?.index ?? text.length
    this.#held = text.slice(sure)
    return cleanModelText(text.slice(0, sure))
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return cleanModelText(rest)
  }
}

/** Cleans text of a model: whole emoji, plain line ends and plain spaces. */
export function cleanModelText(text: string): string {
  const plain = text
    .replaceAll('\r\n', '\n')
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f]/g, ' ')
    .replaceAll('\u3000', '  ')
  return clean(plain.replace(JOINED, '$1').replace(KEYCAP, '$1'))
}

/**
 * The margins of text from models or logs, and of wrapped lines of this program. No line of this program begins with
 * the first.
 */
export const SAID = '│ '
export const MORE = '┆ '
export const MARGIN_COLUMNS = SAID.length

/** Wraps lines of this program that quote other text, so that no row begins with the quoted text. */
export function fitLines(text: string, columns: number): string {
  if (!Number.isFinite(columns)) return text
  const fit = (line: string): string => {
    if (widthOf(line) <= columns) return line
    const [indent = ''] = /^ {0,8}/.exec(line) ?? []
    return wrapText(line, columns, `${indent}${MORE}`).join('\n')
  }
  return text.split('\n').map(fit).join('\n')
}

const SEPARATOR = ' · '

/** Wraps a question with its answers, so that no answer is broken that fits in a row. */
export function wrapAnswers(text: string, columns: number): readonly string[] {
  const rows: string[] = []
  for (const part of text.split(SEPARATOR)) {
    const joined = rows.length === 0 ? part : `${rows.at(-1)}${SEPARATOR}${part}`
    const isWithin = widthOf(joined) + SEPARATOR.trimEnd().length <= columns
    if (rows.length === 0 || isWithin) rows.splice(-1, 1, joined)
    else rows.splice(-1, 1, `${rows.at(-1)}${SEPARATOR.trimEnd()}`, part)
  }
  return rows.flatMap((row) => wrapText(row, columns))
}

/** A line can be broken at spaces, and around wide letters. */
const WORDS = new RegExp(`\\s+|${WIDE.source}|(?:(?!${WIDE.source})\\S)+`, 'gu')
const NARROW = /^[\x20-\x7e]*$/
/**
 * Combining marks take no column, so a row could grow without end. The marks above this number for each column are
 * therefore counted as columns.
 */
const UNITS_PER_COLUMN = 16

/** The number of columns of a text. Colour codes of this program take none. */
export function widthOf(text: string): number {
  if (NARROW.test(text)) return text.length
  let width = 0
  const plain = stripVTControlCharacters(text)
  for (const each of plain) width += columnWidth(each)
  return Math.max(width, Math.ceil(plain.length / UNITS_PER_COLUMN))
}

/** The beginning of a text, at most this wide. For text without colours. */
export function clipToWidth(text: string, width: number): string {
  const seen = text.slice(0, Math.max(1, width) * UNITS_PER_COLUMN + 1)
  if (seen === text && widthOf(text) <= width) return text
  const [head = ''] = breakText(seen, Math.max(1, width - 1))
  return `${head}…`
}

/** The end of a text, at most this wide. For text without colours. */
export function clipToEnd(text: string, width: number): string {
  const seen = text.slice(-(Math.max(1, width) * UNITS_PER_COLUMN + 1))
  if (seen === text && widthOf(text) <= width) return text
  const letters = Array.from(seen)
  let at = letters.length
  for (let used = 1; at > 0; at -= 1) {
    used += columnWidth(letters[at - 1] ?? '')
    if (used > width) break
  }
  return width < 1 ? '' : `…${letters.slice(at).join('')}`
}

/** A part of a text, by its characters. */
export type TextSpan = { readonly from: number; readonly to: number }

/** Breaks a text into pieces of this width, also inside words. */
export function breakText(text: string, width: number): readonly string[] {
  return breakSpans(text, width).map(({ from, to }) => text.slice(from, to))
}

export function breakSpans(text: string, width: number): readonly TextSpan[] {
  const spans: TextSpan[] = []
  if (text !== '' && width >= 1 && NARROW.test(text)) {
    for (let from = 0; from < text.length; from += width) spans.push({ from, to: Math.min(from + width, text.length) })
    return spans
  }
  let [from, at, used] = [0, 0, 0]
  for (const each of text) {
    const columns = columnWidth(each)
    if ((used + columns > width && used > 0) || at - from + each.length > width * UNITS_PER_COLUMN) {
      spans.push({ from, to: at })
      from = at
      used = 0
    }
    used += columns
    at += each.length
  }
  return [...spans, { from, to: at }]
}

/** Breaks a line between words. More text at the end changes only the last row. */
export function wrapText(line: string, width: number, indent = ''): readonly string[] {
  const spans = wrapSpans(line, width, widthOf(indent))
  return spans.map(({ from, to }, i) => `${i === 0 ? '' : indent}${line.slice(from, to)}`)
}

/** The rows of a line that is broken between words. Later rows are narrower by the indent. */
export function wrapSpans(line: string, width: number, indent = 0): readonly TextSpan[] {
  const spans: TextSpan[] = []
  let [from, to, used] = [0, 0, 0]
  const close = (next: number): void => {
    spans.push({ from, to: from + line.slice(from, to).trimEnd().length })
    from = next
    to = next
    used = indent
  }
  for (const { 0: word, index } of line.matchAll(WORDS)) {
    const columns = widthOf(word)
    if (used + columns <= width) {
      to = index + word.length
      used += columns
    } else if (/^\s/u.test(word)) close(index + word.length)
    else {
      if (line.slice(from, to).trim() !== '') close(index)
      // A word that is wider than a row is broken inside.
      for (const each of breakSpans(word, Math.max(1, width - used))) {
        if (each.from > 0) close(index + each.from)
        to = index + each.to
        used += widthOf(word.slice(each.from, each.to))
      }
    }
  }
  return [...spans, { from, to }]
}

const CODES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Paint = Readonly<Record<keyof typeof CODES, (text: string) => string>>

/** Colours line by line, so that a colour never continues where a line was cut. */
export function createPaint(colours: boolean): Paint {
  const painted = (code: number) => (text: string) =>
    colours && text !== '' ? text.replace(/[^\n]+/g, (line) => `\u001b[${code}m${line}\u001b[0m`) : text
  return Object.fromEntries(Object.entries(CODES).map(([name, code]) => [name, painted(code)])) as Paint
}
