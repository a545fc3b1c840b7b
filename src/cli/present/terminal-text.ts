// Prepares text for a terminal: cleans it piece by piece, measures it in columns, breaks it into rows. Pure: it draws
// nothing.
import { stripVTControlCharacters } from 'node:util'
import { columnWidth, WIDE } from '../../view/columns.ts'
import { TAB } from '../../view/lookalike.ts'
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
const SAID = '│ '
const MORE = '┆ '
export const SAID_COLUMNS = SAID.length

/** One row of model text with its margin. Code is not wrapped at words, so it is cut here. */
export function modelRows(row: string, columns: number): readonly string[] {
  const pieces = Number.isFinite(columns) ? breakText(row.replaceAll('\t', TAB), columns - SAID.length) : [row]
  return pieces.map((piece, i) => `${i === 0 ? SAID : MORE}${piece}`.trimEnd())
}

/** Model text as rows with a margin. */
export function modelText(text: string, columns: number): string {
  const prose = new Prose()
  const width = Number.isFinite(columns) ? columns - SAID.length : columns
  const rows = [...prose.push(text, width), ...prose.end(width)]
  return rows.flatMap((row) => modelRows(row, columns)).join('\n')
}

/** Wraps lines of this program that quote other text, so that no row begins with the quoted text. */
export function fitLines(text: string, columns: number): string {
  if (!Number.isFinite(columns)) return text
  const fit = (line: string): string => (widthOf(line) <= columns ? line : wrapText(line, columns, MORE).join('\n'))
  return text.split('\n').map(fit).join('\n')
}

/** A line can be broken at spaces, and around wide letters. */
const WORDS = new RegExp(`\\s+|${WIDE.source}|(?:(?!${WIDE.source})\\S)+`, 'gu')
const NARROW = /^[\x20-\x7e]*$/
/**
 * Combining marks take no column, so a row could grow without end. The marks above this number for each column are
 * therefore counted as columns.
 */
const UNITS_PER_COLUMN = 16
/** The most characters of a code line that are kept in one row. */
const CODE_CHARS_MAX = 10_000

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

/** Breaks a text into pieces of this width, also inside words. */
export function breakText(text: string, width: number): readonly string[] {
  if (text !== '' && width >= 1 && NARROW.test(text)) {
    const pieces: string[] = []
    for (let at = 0; at < text.length; at += width) pieces.push(text.slice(at, at + width))
    return pieces
  }
  const rows: string[] = []
  let row = ''
  let used = 0
  for (const each of text) {
    const columns = columnWidth(each)
    if ((used + columns > width && used > 0) || row.length + each.length > width * UNITS_PER_COLUMN) {
      rows.push(row)
      row = ''
      used = 0
    }
    row += each
    used += columns
  }
  return [...rows, row]
}

/** Breaks a line between words. More text at the end changes only the last row. */
export function wrapText(line: string, width: number, indent = ''): readonly string[] {
  const rows: string[] = []
  let row = ''
  let used = 0
  const next = (): void => {
    rows.push(row.trimEnd())
    row = indent
    used = widthOf(indent)
  }
  const put = (text: string, columns: number): void => {
    row += text
    used += columns
  }
  for (const token of line.match(WORDS) ?? []) {
    const columns = widthOf(token)
    if (used + columns <= width) put(token, columns)
    else if (/^\s/u.test(token)) next()
    else {
      if (row.trim() !== '') next()
      const pieces = breakText(token, Math.max(1, width - used))
      for (const [at, piece] of pieces.entries()) {
        if (at > 0) next()
        put(piece, widthOf(piece))
      }
    }
  }
  return [...rows, row]
}

/** The indent of the second row of a list entry. */
function hangingIndent(line: string): string {
  const [mark = ''] = /^\s*(?:[-*+•] |\d{1,3}[.)] )?/u.exec(line) ?? []
  return ' '.repeat(Math.min(mark.length, 12))
}

/** Turns streamed text into rows: finished ones, and the one that grows. */
export class Prose {
  readonly #cleaner = new TextCleaner()
  #line = ''
  /** The indent of later rows of this line; null before the first row. */
  #indent: string | null = null
  #code = false
  /** Blank lines that are written only if more text follows. */
  #blank = 0
  #begun = false

  /** The growing row, and the blank rows before it. */
  get open(): readonly string[] {
    return this.#line.trim() === '' ? [] : [...Array<string>(Math.min(this.#blank, 2)).fill(''), this.#line]
  }

  push(piece: string, width: number): readonly string[] {
    const parts = this.#cleaner.push(piece).split('\n')
    return parts.flatMap((part, at) => {
      this.#line += part
      return at < parts.length - 1 ? this.#close(width) : this.#grown(width)
    })
  }

  end(width: number): readonly string[] {
    this.#line += this.#cleaner.end()
    return this.#line.split('\n').flatMap((line) => {
      this.#line = line
      return this.#close(width)
    })
  }

  #close(width: number): readonly string[] {
    const line = this.#line
    const fence = this.#indent === null && /^\s*(```|~~~)/.test(line)
    const whole = this.#code || fence
    const rows = whole ? [line] : wrapText(line.trimEnd(), width, this.#indent ?? hangingIndent(line))
    if (fence) this.#code = !this.#code
    this.#line = ''
    this.#indent = null
    return this.#spaced(rows)
  }

  /** Returns the full rows of a long line. Code stays in one piece, so that it can be copied. */
  #grown(width: number): readonly string[] {
    if (this.#code) return this.#line.length > CODE_CHARS_MAX ? this.#cut() : []
    if (widthOf(this.#line) <= width) return []
    this.#indent ??= hangingIndent(this.#line)
    const rows = wrapText(this.#line, width, this.#indent)
    this.#line = rows.at(-1) ?? ''
    return this.#spaced(rows.slice(0, -1))
  }

  #cut(): readonly string[] {
    const row = this.#line
    this.#line = ''
    // The rest is not a new line, so it cannot open or close a code fence.
    this.#indent = ''
    return this.#spaced([row])
  }

  #spaced(rows: readonly string[]): readonly string[] {
    return rows.flatMap((row) => {
      if (row.trim() === '' && !this.#code) {
        if (this.#begun) this.#blank += 1
        return []
      }
      const before = Array<string>(Math.min(this.#blank, 2)).fill('')
      this.#blank = 0
      this.#begun = true
      return [...before, row]
    })
  }
}

const CODES = { dim: 2, bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Paint = Readonly<Record<keyof typeof CODES, (text: string) => string>>

/** Colours line by line, so that a colour never continues where a line was cut. */
export function createPaint(colours: boolean): Paint {
  const painted = (code: number) => (text: string) =>
    colours && text !== '' ? text.replace(/[^\n]+/g, (line) => `\u001b[${code}m${line}\u001b[0m`) : text
  return Object.fromEntries(Object.entries(CODES).map(([name, code]) => [name, painted(code)])) as Paint
}
