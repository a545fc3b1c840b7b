// The outputs of the presenter, for `run`, `resume`, `start` and the chat. Two kinds: a screen, whose lower end is
// redrawn all the time while the rows above are written once, and plain lines for files and for terminals that cannot
// move a cursor. Their text must be clean already, except for the model's own.
import { type Paint, createPaint, widthOf } from './terminal-text.ts'
import { MarkdownStream } from './markdown-stream.ts'
import type { TextStyle } from './markdown.ts'

/** The kind of a line. A blank line separates two different kinds, and stands before each message and each question. */
export type LineKind = 'you' | 'model' | 'call' | 'note' | 'ask' | 'question'

/** The part that is redrawn: running calls and the status. */
export type RedrawnPart = { readonly calls: readonly string[]; readonly status: string | null }

export interface Surface {
  readonly paint: Paint
  readonly columns: number
  readonly rows: number
  /** For text of a model. */
  readonly style: TextStyle
  /** Writes permanent lines. They must be clean. */
  say(kind: LineKind, text: string): void
  /** Writes a piece of the model's text, which is cleaned here. */
  speak(piece: string): void
  /** Ends the model's text. */
  hush(): void
  /** Sets the function that returns the redrawn part, called for every drawing; null stops redrawing. */
  show(moving: ((mark: string) => RedrawnPart) | null): void
  /** Sets the function that returns the row above the input while nothing works. It is called for every drawing. */
  rest(line: (() => string) | null): void
}

/** Rows of text, and the position of the cursor in them. */
export type DrawnRows = { readonly rows: readonly string[]; readonly row: number; readonly column: number }

/** `input`: draws the line being edited, in this many columns. Without it, different kinds are not separated. */
export type ScreenOptions = { readonly colours: boolean; readonly input?: (columns: number) => DrawnRows }

const BLANK: DrawnRows = { rows: [], row: 0, column: 0 }
const NOTHING: RedrawnPart = { calls: [], status: null }
/** The whole row: of one that was erased from its middle on, some terminals keep the length, and wrap it when they become narrower. */
const ERASE = '\u001b[2K'
const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
/** Pieces that arrive faster than this are drawn together. A key is drawn at once. */
const DRAW_MS = 33
/** A terminal that knows these shows everything between them at once. Others ignore them. */
const SYNC_BEGIN = '\u001b[?2026h'
const SYNC_END = '\u001b[?2026l'
const ERASE_BELOW = '\u001b[J'

export class Screen implements Surface {
  readonly paint: Paint
  readonly #out: NodeJS.WriteStream
  readonly #input: ScreenOptions['input']
  readonly #hasColours: boolean
  /** Lines to write above the redrawn part at the next drawing. */
  #above = ''
  #last: LineKind | null = null
  #text: MarkdownStream | null = null
  /** The rows drawn now, and the cursor in them. */
  #drawn: DrawnRows = BLANK
  /** The size of the terminal at the last drawing. */
  #size = ''
  #moving: ((mark: string) => RedrawnPart) | null = null
  #rest: (() => string) | null = null
  #frame = 0
  #spin: NodeJS.Timeout | null = null
  #soon: NodeJS.Timeout | null = null
  #isClosed = false
  /** Another program or another screen has the terminal. */
  #isHeld = false

  constructor(out: NodeJS.WriteStream, { colours, input }: ScreenOptions) {
    this.paint = createPaint(colours)
    this.#hasColours = colours
    this.#out = out
    this.#input = input
  }

  /** One column stays free: terminals differ on the cursor position after the last column. */
  get columns(): number {
    return Math.max(10, (this.#out.columns || 80) - 1)
  }

  get rows(): number {
    return screenRows(this.#out)
  }

  say(kind: LineKind, text: string): void {
    this.#add(kind, text)
    this.later()
  }

  get style(): TextStyle {
    return { columns: this.columns, hasColours: this.#hasColours }
  }

  speak(piece: string): void {
    this.#text ??= new MarkdownStream()
    this.#text.push(piece)
    this.later()
  }

  hush(): void {
    const text = this.#text
    this.#text = null
    if (text) this.#addText(text.end(this.style))
    this.later()
  }

  #addText(rows: readonly string[]): void {
    for (const row of rows) this.#add('model', row)
  }

  #add(kind: LineKind, text: string): void {
    this.#above += `${this.#gap(kind) ? '\n' : ''}${text}\n`
    // What is said of a question belongs to it.
    this.#last = kind === 'question' ? 'ask' : kind
  }

  show(moving: ((mark: string) => RedrawnPart) | null): void {
    this.#moving = moving
    if (this.#spin) clearInterval(this.#spin)
    this.#spin = moving === null ? null : setInterval(this.#turn, FRAME_MS)
    this.later()
  }

  rest(line: (() => string) | null): void {
    this.#rest = line
    this.later()
  }

  readonly #turn = (): void => {
    this.#frame = (this.#frame + 1) % FRAMES.length
    this.draw()
  }

  /** Draws soon, together with later text. Draws at once if nothing is redrawn, because other code may write next. */
  later(): void {
    if (this.#input || this.#moving) this.#soon ??= setTimeout(this.draw, DRAW_MS)
    else this.draw()
  }

  readonly draw = (): void => {
    this.#settle()
    if (this.#isClosed || this.#isHeld) return
    if (this.#drawn.rows.length > 0) readSizes()
    const { finished, open } = this.#text?.look(this.style) ?? NO_TEXT
    this.#addText(finished)
    if (!this.#input && !this.#moving) return this.lift()
    const drawn = this.#laid(open, this.#moving?.(FRAMES[this.#frame] ?? '') ?? NOTHING)
    const size = `${this.#out.columns} ${this.#out.rows}`
    const frame = size === this.#size ? this.#change(drawn) : this.#replace(drawn)
    if (frame !== '') this.#out.write(`${SYNC_BEGIN}${HIDE}${frame}${SHOW}${SYNC_END}`)
    this.#size = size
    this.#above = ''
    this.#drawn = drawn
  }

  /** While it is held nothing is drawn, and what is said waits. */
  hold(on: boolean): void {
    this.#isHeld = on
    if (!on) this.draw()
  }

  /** Writes only the rows that changed. Nothing if there are none. */
  #change({ rows, row, column }: DrawnRows): string {
    const before = this.#drawn
    if (this.#above !== '' || before.rows.length === 0) return this.#overwrite({ rows, row, column })
    let at = before.row
    let text = ''
    const goTo = (to: number): void => {
      const last = Math.max(before.rows.length, rows.length) - 1
      text += to <= at ? cursorUp(at - to) : cursorDown(Math.min(to, last) - at)
      at = to
    }
    const kept = Math.min(rows.length, before.rows.length)
    for (let i = 0; i < kept; i += 1) {
      if (rows[i] === before.rows[i]) continue
      goTo(i)
      text += `\r${ERASE}${rows[i]}`
    }
    for (let i = kept; i < before.rows.length; i += 1) {
      goTo(i)
      text += `\r${ERASE}`
    }
    for (let i = kept; i < rows.length; i += 1) {
      goTo(i - 1)
      text += `\r\n${ERASE}${rows[i]}`
      at = i
    }
    if (text === '' && row === before.row && column === before.column) return ''
    goTo(row)
    return `${text}${columnTo(column)}`
  }

  /** Writes new lines over the drawn rows, and the rows again below them. */
  #overwrite({ rows, row, column }: DrawnRows): string {
    const lines = this.#above === '' ? [] : this.#above.slice(0, -1).split('\n')
    const text = [...lines, ...rows].map((line) => `${ERASE}${line}`).join('\r\n')
    return `${cursorUp(this.#drawn.row)}\r${text}${ERASE_BELOW}${cursorUp(rows.length - 1 - row)}${columnTo(column)}`
  }

  /** Erases first: the terminal has another size now, and may have wrapped the drawn rows. */
  #replace({ rows, row, column }: DrawnRows): string {
    const text = `${this.#erase()}${this.#above}${rows.join('\n')}`
    return `${text}${cursorUp(rows.length - 1 - row)}${columnTo(column)}`
  }

  #settle(): void {
    if (this.#soon) clearTimeout(this.#soon)
    this.#soon = null
  }

  /** Redraws the whole screen. */
  clear(): void {
    this.#out.write('\u001b[2J\u001b[H')
    this.#drawn = BLANK
  }

  /** Erases the redrawn part. */
  lift(): void {
    const text = `${this.#erase()}${this.#above}`
    if (text !== '') this.#out.write(`${text}${SHOW}`)
    this.#above = ''
    this.#drawn = BLANK
  }

  /** Stops drawing. `gone`: the terminal does not exist any more. */
  close(gone: boolean): void {
    this.#isClosed = true
    this.show(null)
    this.#settle()
    if (!gone) this.lift()
  }

  /**
   * Erases every drawn row and returns to the first. The terminal may have become narrower and have wrapped rows. It
   * erases row by row, because some terminals save a screen that is erased as a whole from its first row.
   */
  #erase(): string {
    const columns = this.#out.columns || 80
    const { rows, row, column } = this.#drawn
    if (rows.length === 0) return ''
    const heights = rows.map((each) => Math.max(1, Math.ceil(widthOf(each) / columns)))
    const sum = (some: readonly number[]): number => some.reduce((all, each) => all + each, 0)
    const down = sum(heights) - 1
    const top = `${cursorUp(sum(heights.slice(0, row)) + Math.floor(column / columns))}\r`
    return `${top}${`${ERASE}\u001b[B`.repeat(down)}${ERASE}${cursorUp(down)}`
  }

  #gap(kind: LineKind): boolean {
    return this.#input !== undefined && this.#last !== null && (kind === 'you' || this.#last !== kind)
  }

  #laid(open: readonly string[], moving: RedrawnPart): DrawnRows {
    const above = this.#rowsOf(open, moving)
    const drawn = this.#input?.(this.columns)
    // Without input the cursor stays behind the last row.
    if (!drawn) return { rows: above, row: above.length - 1, column: widthOf(above.at(-1) ?? '') }
    const most = Math.max(1, this.rows - 2)
    const from = Math.max(0, Math.min(drawn.row - most + 1, drawn.rows.length - most))
    const typed = drawn.rows.slice(from, from + most)
    const room = Math.max(0, this.rows - 1 - typed.length)
    const kept = above.slice(Math.max(0, above.length - room))
    return { rows: [...kept, ...typed], row: kept.length + drawn.row - from, column: drawn.column }
  }

  #rowsOf(said: readonly string[], { calls, status: working }: RedrawnPart): readonly string[] {
    const status = working ?? (this.#input ? (this.#rest?.() ?? null) : null)
    const isFirst = this.#last === null && said.length === 0
    return [
      ...(said.length > 0 && this.#gap('model') ? [''] : []),
      ...said,
      ...(calls.length > 0 && (said.length > 0 || this.#gap('call')) ? [''] : []),
      ...calls,
      ...(isFirst || !this.#input ? [] : ['']),
      ...(status === null ? [] : [status]),
    ]
  }
}

/**
 * Node asks a terminal for its size when the signal of a change is handled, which may be after the next frame. What
 * handles that signal asks now.
 */
function readSizes(): void {
  process.emit('SIGWINCH', 'SIGWINCH')
}

function screenRows(out: NodeJS.WriteStream): number {
  return Math.max(5, out.rows || 24)
}

const NO_TEXT = { finished: [], open: [] }

function cursorUp(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : ''
}

function cursorDown(rows: number): string {
  return rows > 0 ? `\u001b[${rows}B` : ''
}

function columnTo(column: number): string {
  return `\u001b[${column + 1}G`
}

/** Writes only lines. Lines for a file are not wrapped. `prompt`: shown again after each line. */
export class PlainLines implements Surface {
  readonly paint = createPaint(false)
  readonly #out: NodeJS.WriteStream
  readonly #prompt: () => string
  #text: MarkdownStream | null = null
  #isUnended = false

  constructor(out: NodeJS.WriteStream, prompt = () => '') {
    this.#out = out
    this.#prompt = prompt
  }

  get columns(): number {
    return this.#out.isTTY ? Math.max(10, this.#out.columns || 80) : Number.POSITIVE_INFINITY
  }

  get rows(): number {
    return screenRows(this.#out)
  }

  say(_kind: LineKind, text: string): void {
    this.end()
    this.#out.write(`${text}\n`)
    this.put(this.#prompt())
  }

  get style(): TextStyle {
    return { columns: this.columns, hasColours: false }
  }

  speak(piece: string): void {
    this.#text ??= new MarkdownStream()
    this.#text.push(piece)
    this.#said(this.#text.finished(this.style))
  }

  hush(): void {
    this.#said(this.#text?.end(this.style) ?? [])
    this.#text = null
    this.end()
  }

  #said(rows: readonly string[]): void {
    for (const row of rows) this.put(`${row}\n`)
  }

  show(): void {}

  rest(): void {}

  /** Writes text as it is. The next line begins below it. */
  put(text: string): void {
    if (text === '') return
    this.#out.write(text)
    this.#isUnended = !text.endsWith('\n')
  }

  /** The terminal itself has ended the last line. */
  ended(): void {
    this.#isUnended = false
  }

  end(): void {
    if (this.#isUnended) this.#out.write('\n')
    this.#isUnended = false
  }
}
