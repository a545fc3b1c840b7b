// A model's text as it arrives: rows that are finished, and rows that may still change. However the text is cut into
// pieces, the finished rows are the same, except in a paragraph that is too tall to wait for its end.
import type { Token, Tokens } from 'marked'
import {
  BLANK_ROW,
  CODE_INDENT,
  blockRows,
  endsWithBlank,
  inlineRuns,
  isFence,
  itemRows,
  languageIn,
  lexMarkdown,
  marginRows,
  restRows,
  type TextRow,
  type TextStyle,
} from './markdown.ts'
import { MARGIN_COLUMNS, TextCleaner } from './terminal-text.ts'
import { colourLine } from './colour.ts'
import { plainRuns, textOfRuns } from './flow.ts'

/** A block with more characters is written as it is. Lexing it anew for each piece would take quadratic time. */
const WINDOW_CHARS = 16_384
const LINE_CHARS_MAX = 10_000
/** A paragraph with more rows is written, but for its last rows. */
const PARAGRAPH_ROWS_MAX = 14
const PARAGRAPH_ROWS_LIVE = 2

type OpenCode = { readonly fence: string; readonly indent: number; readonly language: string; state: string }

export class MarkdownStream {
  readonly #cleaner = new TextCleaner()
  /** The cleaned text that is not written yet. */
  #tail = ''
  /** The characters of its last line. */
  #line = 0
  #code: OpenCode | null = null
  #rows: TextRow[] = []
  #begun = false
  /** True if a blank line came after what is written. */
  #hasBlank = false
  /** How many characters of the open paragraph are written. */
  #written = 0
  /** True if a line was finished since the last look. */
  #hasLine = false

  push(piece: string): void {
    this.#add(this.#cleaner.push(piece))
  }

  /** The rows that were finished since the last call. */
  finished(style: TextStyle): readonly string[] {
    const inner = innerStyle(style)
    if (this.#hasLine) this.#advance(inner)
    this.#hasLine = false
    return this.#taken(style)
  }

  /** Also the rows that may still change. */
  look(style: TextStyle): { readonly finished: readonly string[]; readonly open: readonly string[] } {
    const finished = this.finished(style)
    const open = this.#open(style)
    // The beginning of a tall paragraph is finished by looking at it.
    return { finished: [...finished, ...this.#taken(style)], open }
  }

  #open(style: TextStyle): readonly string[] {
    if (this.#tail.trim() === '') return []
    // What may become the end of the code is not shown as a line of it.
    if (this.#code && /^ {0,3}[`~]+$/.test(this.#tail)) return []
    const blank = this.#hasBlank && this.#begun && this.#written === 0 ? [BLANK_ROW] : []
    const rows = this.#code ? codeRow(this.#tail, this.#code).rows : this.#openRows(innerStyle(style))
    return (rows.length === 0 ? [] : [...blank, ...rows]).flatMap((row) => marginRows(row, style))
  }

  /** Ends the text. */
  end(style: TextStyle): readonly string[] {
    this.#add(this.#cleaner.end())
    if (this.#tail !== '' && !this.#tail.endsWith('\n')) this.#add('\n')
    const inner = innerStyle(style)
    this.#advance(inner)
    this.#put(lexMarkdown(this.#tail), this.#tail, inner)
    this.#tail = ''
    return this.#taken(style)
  }

  #taken(style: TextStyle): readonly string[] {
    const rows = this.#rows
    this.#rows = []
    return rows.flatMap((row) => marginRows(row, style))
  }

  #add(text: string): void {
    for (let at = 0; at < text.length; ) {
      const newline = text.indexOf('\n', at)
      const end = Math.min(newline < 0 ? text.length : newline + 1, at + LINE_CHARS_MAX - this.#line)
      const part = text.slice(at, end)
      this.#line = part.endsWith('\n') ? 0 : this.#line + part.length
      const isFull = this.#line >= LINE_CHARS_MAX
      this.#tail += isFull ? `${part}\n` : part
      if (isFull) this.#line = 0
      if (this.#line === 0) this.#hasLine = true
      at = end
    }
  }

  /** Writes all that more text cannot change. */
  #advance(style: TextStyle): void {
    for (;;) {
      if (this.#code) {
        if (!this.#advanceCode(this.#code)) return
        this.#code = null
      }
      const window = wholeLines(this.#tail.slice(0, WINDOW_CHARS))
      if (window === '') return
      const tokens = lexMarkdown(window)
      const before = this.#tail
      if (tokens === null) this.#consume(null, window, style)
      else this.#advanceTokens(tokens, style)
      if (this.#code || this.#tail.length < before.length) continue
      if (this.#tail.length < WINDOW_CHARS) return
      this.#consume(tokens, window, style)
    }
  }

  /** The last block stays open, and so does the last item of a list. */
  #advanceTokens(tokens: readonly Token[], style: TextStyle): void {
    const last = tokens.findLastIndex(({ type }) => type !== 'space')
    for (const [i, token] of tokens.entries()) {
      if (!this.#tail.startsWith(token.raw)) return
      if (isFence(token)) return this.#beginCode()
      if (i < last || last < 0) this.#consume([token], token.raw, style)
      else if (token.type === 'list') return this.#advanceList(token as Tokens.List, style)
      else return
    }
  }

  #advanceList({ items, ordered }: Tokens.List, style: TextStyle): void {
    for (const item of items.slice(0, -1)) {
      if (!this.#tail.startsWith(item.raw)) return
      this.#tail = this.#tail.slice(item.raw.length)
      this.#write(itemRows(item, ordered, style), endsWithBlank(item.raw))
    }
  }

  /** The line that opens a block of code is whole. */
  #beginCode(): void {
    const end = this.#tail.indexOf('\n') + 1
    const [, blanks = '', fence = '', info = ''] = /^( {0,3})(`{3,}|~{3,})(.*)/.exec(this.#tail.slice(0, end)) ?? []
    this.#tail = this.#tail.slice(end)
    this.#code = { fence, indent: blanks.length, language: languageIn(info), state: '' }
  }

  /** Writes the whole lines of a block of code. True if it has ended. */
  #advanceCode(code: OpenCode): boolean {
    for (let end = this.#tail.indexOf('\n'); end >= 0; end = this.#tail.indexOf('\n')) {
      const line = this.#tail.slice(0, end)
      this.#tail = this.#tail.slice(end + 1)
      if (isFenceEnd(line, code)) return true
      const { rows, state } = codeRow(line, code)
      code.state = state
      this.#write(rows, false)
    }
    return false
  }

  #consume(tokens: readonly Token[] | null, raw: string, style: TextStyle): void {
    this.#tail = this.#tail.slice(raw.length)
    this.#put(tokens, raw, style)
  }

  #put(tokens: readonly Token[] | null, raw: string, style: TextStyle): void {
    for (const token of tokens ?? plainLines(raw)) {
      const written = hasSpans(token) ? this.#written : 0
      if (token.type === 'space') this.#hasBlank ||= this.#begun
      else if (written === 0) this.#write(blockRows([token], style), endsWithBlank(token.raw))
      else {
        this.#hasBlank = false
        this.#write(restRows(token, style, written), endsWithBlank(token.raw))
      }
      // The window may end within the paragraph whose beginning is written.
      this.#written = Math.max(0, written - textOfRuns(inlineRuns(token, style)).length - 1)
    }
  }

  #write(rows: readonly TextRow[], endsBlank: boolean): void {
    if (rows.length > 0) {
      if (this.#hasBlank && this.#begun) this.#rows.push(BLANK_ROW)
      this.#rows.push(...rows)
      this.#begun = true
      this.#hasBlank = false
    }
    this.#hasBlank ||= endsBlank
  }

  #openRows(style: TextStyle): readonly TextRow[] {
    const tokens = lexMarkdown(this.#tail) ?? plainLines(this.#tail)
    const [only, ...more] = tokens.filter(({ type }) => type !== 'space')
    if (!only) return []
    if (!hasSpans(only)) return blockRows(tokens, style)
    const rows = restRows(only, style, this.#written)
    const last = rows.at(-1 - PARAGRAPH_ROWS_LIVE)
    if (more.length > 0 || rows.length <= PARAGRAPH_ROWS_MAX || !last)
      return [...rows, ...(more.length > 0 ? blockRows(more, style) : [])]
    this.#write(rows.slice(0, -PARAGRAPH_ROWS_LIVE), false)
    this.#written = last.end
    return rows.slice(-PARAGRAPH_ROWS_LIVE)
  }
}

function innerStyle({ columns, hasColours }: TextStyle): TextStyle {
  return { columns: Math.max(1, columns - MARGIN_COLUMNS), hasColours }
}

function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

function hasSpans({ type }: Token): boolean {
  return type === 'paragraph' || type === 'heading' || type === 'text'
}

/** Text that is not read as Markdown, as tokens. */
function plainLines(text: string): readonly Token[] {
  const lines = text.split('\n').map((line): Token => {
    return line.trim() === '' ? { type: 'space', raw: line } : { type: 'plain', raw: line }
  })
  return lines.at(-1)?.raw === '' ? lines.slice(0, -1) : lines
}

function codeRow(
  line: string,
  { indent, language, state }: OpenCode,
): { readonly rows: readonly TextRow[]; readonly state: string } {
  const blanks = /^ */.exec(line)?.[0].length ?? 0
  const coloured = colourLine(line.slice(Math.min(indent, blanks)), language, state)
  return { rows: [{ runs: [...plainRuns(CODE_INDENT), ...coloured.runs] }], state: coloured.state }
}

function isFenceEnd(line: string, { fence }: OpenCode): boolean {
  const [, marks = ''] = /^ {0,3}(`{3,}|~{3,}) *$/.exec(line) ?? []
  return marks[0] === fence[0] && marks.length >= fence.length
}

/** A whole text, with its margin. */
export function modelText(text: string, style: TextStyle): string {
  const stream = new MarkdownStream()
  stream.push(text)
  return stream.end(style).join('\n')
}
