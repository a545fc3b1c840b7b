// The lower end of the terminal, redrawn all the time: the row being streamed, the running calls, a status and the input line. All
// rows above it are written once. The text it gets must be clean already.
import { type Drawn, drawLine, type Line, type Prompt } from './edit-line.ts'
import { Prose, SAID_COLUMNS, saidRows, widthOf } from '../present/text.ts'

/** The kind of a line. A blank line separates two different kinds. */
export type Kind = 'you' | 'model' | 'call' | 'note' | 'ask'

/** The part that is redrawn: running calls and the status. */
export type Moving = { readonly calls: readonly string[]; readonly status: string | null }

export type Region = {
  readonly prompt: Prompt
  readonly line: Line
  readonly moving: Moving
}

const BLANK: Drawn = { rows: [], row: 0, column: 0 }
const ERASE = '\u001b[2K'
const HIDE = '\u001b[?25l'
const SHOW = '\u001b[?25h'

export class Canvas {
  readonly #out: NodeJS.WriteStream
  /** Lines to write above at the next drawing. */
  #above = ''
  #last: Kind | null = null
  #prose: Prose | null = null
  /** The rows drawn now, and the cursor in them. */
  #drawn: Drawn = BLANK

  constructor(out: NodeJS.WriteStream) {
    this.#out = out
  }

  /** One column stays free: terminals differ on the cursor position after the last column. */
  get columns(): number {
    return Math.max(20, (this.#out.columns || 80) - 1)
  }

  get rows(): number {
    return Math.max(5, this.#out.rows || 24)
  }

  say(kind: Kind, text: string): void {
    this.#above += `${this.#gap(kind) ? '\n' : ''}${text}\n`
    this.#last = kind
  }

  /** A piece of the model's text. */
  speak(piece: string): void {
    this.#prose ??= new Prose()
    this.#said(this.#prose.push(piece, this.columns - SAID_COLUMNS))
  }

  /** The model's text is complete. */
  hush(): void {
    const rows = this.#prose?.end(this.columns - SAID_COLUMNS) ?? []
    this.#prose = null
    this.#said(rows)
  }

  #said(rows: readonly string[]): void {
    for (const row of rows) for (const text of saidRows(row, this.columns)) this.say('model', text)
  }

  draw(region: Region): void {
    const drawn = this.#laid(region)
    const { rows, row, column } = drawn
    const text = `${this.#erase()}${this.#above}${rows.join('\n')}`
    const place = `${up(rows.length - 1 - row)}\u001b[${column + 1}G`
    this.#out.write(`${HIDE}${text}${place}${SHOW}`)
    this.#above = ''
    this.#drawn = drawn
  }

  /** Redraws the whole screen. */
  clear(): void {
    this.#out.write('\u001b[2J\u001b[H')
    this.#drawn = BLANK
  }

  /** Erases the redrawn part. */
  lift(): void {
    this.#out.write(`${this.#erase()}${this.#above}${SHOW}`)
    this.#above = ''
    this.#drawn = BLANK
  }

  /**
   * Erases every drawn row and returns to the first. The terminal may have become narrower and have wrapped rows.
   * Row by row: some terminals keep a screen that is erased as a whole from its first row on.
   */
  #erase(): string {
    const columns = this.#out.columns || 80
    const { rows, row, column } = this.#drawn
    if (rows.length === 0) return ''
    const heights = rows.map((each) => Math.max(1, Math.ceil(widthOf(each) / columns)))
    const sum = (some: readonly number[]): number => some.reduce((all, each) => all + each, 0)
    const down = sum(heights) - 1
    const top = `${up(sum(heights.slice(0, row)) + Math.floor(column / columns))}\r`
    return `${top}${`${ERASE}\u001b[B`.repeat(down)}${ERASE}${up(down)}`
  }

  #gap(kind: Kind): boolean {
    return this.#last !== null && (kind === 'you' || this.#last !== kind)
  }

  #laid({ prompt, line, moving }: Region): Drawn {
    const drawn = drawLine(prompt, line, this.columns)
    const most = Math.max(1, this.rows - 2)
    const from = Math.max(0, Math.min(drawn.row - most + 1, drawn.rows.length - most))
    const typed = drawn.rows.slice(from, from + most)
    const above = this.#moving(moving)
    const room = Math.max(0, this.rows - 1 - typed.length)
    const kept = above.slice(Math.max(0, above.length - room))
    return { rows: [...kept, ...typed], row: kept.length + drawn.row - from, column: drawn.column }
  }

  #moving({ calls, status }: Moving): readonly string[] {
    const said = (this.#prose?.open ?? []).flatMap((row) => saidRows(row, this.columns))
    return [
      ...(said.length > 0 && this.#gap('model') ? [''] : []),
      ...said,
      ...(calls.length > 0 && (said.length > 0 || this.#gap('call')) ? [''] : []),
      ...calls,
      ...(this.#last === null && said.length === 0 ? [] : ['']),
      ...(status === null ? [] : [status]),
    ]
  }
}

function up(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : ''
}
