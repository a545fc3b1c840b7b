// The outputs of the presenter, for `run`, `resume`, `start` and the chat. Two kinds: a screen, whose lower end is
// redrawn all the time while the rows above are written once, and plain lines for files and for terminals that cannot
// move a cursor. Their text must be clean already, except for the model's own.
import { type Paint, createPaint, Prose, SAID_COLUMNS, modelRows, widthOf } from './terminal-text.ts'

/** The kind of a line. A blank line separates two different kinds. */
export type LineKind = 'you' | 'model' | 'call' | 'note' | 'ask'

/** The part that is redrawn: running calls and the status. */
export type RedrawnPart = { readonly calls: readonly string[]; readonly status: string | null }

export interface Surface {
  readonly paint: Paint
  readonly columns: number
  readonly rows: number
  /** Writes permanent lines. They must be clean. */
  say(kind: LineKind, text: string): void
  /** Writes a piece of the model's text, which is cleaned here. */
  speak(piece: string): void
  /** Ends the model's text. */
  hush(): void
  /** Sets the function that returns the redrawn part, called for every drawing; null stops redrawing. */
  show(moving: ((mark: string) => RedrawnPart) | null): void
}

/** Rows of text, and the position of the cursor in them. */
export type DrawnRows = { readonly rows: readonly string[]; readonly row: number; readonly column: number }

/** `input`: draws the line being edited, in this many columns. Without it, different kinds are not separated. */
export type ScreenOptions = { readonly colours: boolean; readonly input?: (columns: number) => DrawnRows }

const BLANK: DrawnRows = { rows: [], row: 0, column: 0 }
const NOTHING: RedrawnPart = { calls: [], status: null }
const ERASE = '\u001b[2K'
const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'
const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
/** Pieces that arrive faster than this are drawn together. */
const DRAW_MS = 16

export class Screen implements Surface {
  readonly paint: Paint
  readonly #out: NodeJS.WriteStream
  readonly #input: ScreenOptions['input']
  /** Lines to write above the redrawn part at the next drawing. */
  #above = ''
  #last: LineKind | null = null
  #prose: Prose | null = null
  /** The rows drawn now, and the cursor in them. */
  #drawn: DrawnRows = BLANK
  #moving: ((mark: string) => RedrawnPart) | null = null
  #frame = 0
  #spin: NodeJS.Timeout | null = null
  #soon: NodeJS.Timeout | null = null
  #isClosed = false
  /** Another program or another screen has the terminal. */
  #isHeld = false

  constructor(out: NodeJS.WriteStream, { colours, input }: ScreenOptions) {
    this.paint = createPaint(colours)
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

  speak(piece: string): void {
    this.#prose ??= new Prose()
    this.#said(this.#prose.push(piece, this.columns - SAID_COLUMNS))
  }

  hush(): void {
    const rows = this.#prose?.end(this.columns - SAID_COLUMNS) ?? []
    this.#prose = null
    this.#said(rows)
  }

  #said(rows: readonly string[]): void {
    for (const row of rows) for (const text of modelRows(row, this.columns)) this.#add('model', text)
    this.later()
  }

  #add(kind: LineKind, text: string): void {
    this.#above += `${this.#gap(kind) ? '\n' : ''}${text}\n`
    this.#last = kind
  }

  show(moving: ((mark: string) => RedrawnPart) | null): void {
    this.#moving = moving
    if (this.#spin) clearInterval(this.#spin)
    this.#spin = moving === null ? null : setInterval(this.#turn, FRAME_MS)
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
    if (!this.#input && !this.#moving) return this.lift()
    const drawn = this.#laid(this.#moving?.(FRAMES[this.#frame] ?? '') ?? NOTHING)
    const { rows, row, column } = drawn
    const text = `${this.#erase()}${this.#above}${rows.join('\n')}`
    const place = `${cursorUp(rows.length - 1 - row)}\u001b[${column + 1}G`
    this.#out.write(`${HIDE}${text}${place}${SHOW}`)
    this.#above = ''
    this.#drawn = drawn
  }

  /** While it is held nothing is drawn, and what is said waits. */
  hold(on: boolean): void {
    this.#isHeld = on
    if (!on) this.draw()
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

  #laid(moving: RedrawnPart): DrawnRows {
    const above = this.#rowsOf(moving)
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

  #rowsOf({ calls, status }: RedrawnPart): readonly string[] {
    const said = (this.#prose?.open ?? []).flatMap((row) => modelRows(row, this.columns))
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

function screenRows(out: NodeJS.WriteStream): number {
  return Math.max(5, out.rows || 24)
}

function cursorUp(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : ''
}

/** Writes only lines. Lines for a file are not wrapped. `prompt`: shown again after each line. */
export class PlainLines implements Surface {
  readonly paint = createPaint(false)
  readonly #out: NodeJS.WriteStream
  readonly #prompt: () => string
  #prose: Prose | null = null
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

  speak(piece: string): void {
    this.#prose ??= new Prose()
    this.#said(this.#prose.push(piece, this.columns - SAID_COLUMNS))
  }

  hush(): void {
    this.#said(this.#prose?.end(this.columns - SAID_COLUMNS) ?? [])
    this.#prose = null
    this.end()
  }

  #said(rows: readonly string[]): void {
    for (const row of rows) this.put(`${modelRows(row, this.columns).join('\n')}\n`)
  }

  show(): void {}

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
