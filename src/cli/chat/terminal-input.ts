// The terminal of a chat. Two kinds: one reads keys and redraws its lower end; a plain one is for terminals that cannot
// move a cursor. terminal-chat.ts interprets the input.
import { createInterface, emitKeypressEvents } from 'node:readline'
import type { ReadStream } from 'node:tty'
import {
  type KeyAction,
  drawLine,
  EMPTY_LINE,
  isPlainText,
  type KeyPress,
  type EditContext,
  type InputLine,
  pressKey,
  type Prompt,
} from './edit-line.ts'
import {
  drawPicking,
  numberedLines,
  openPicking,
  type PickOptions,
  type Picking,
  pressPickKey,
  typedChoice,
} from './picker.ts'
import { type DrawnRows, PlainLines, Screen, type Surface } from '../present/screen.ts'
import { fitLines, wrapText } from '../present/terminal-text.ts'
import { oneLine } from '../../view/clean.ts'

export interface Terminal {
  readonly out: Surface
  readonly open: boolean
  readonly gone: boolean
  /** True if the terminal itself leaves the input on the screen. */
  readonly echoes: boolean
  /**
   * Reads one input. With a question it reads the answer, and then restores the line being edited. Null: the person
   * cancelled, or the signal withdrew the question.
   */
  read(question?: string, withdrawn?: AbortSignal): Promise<string | null>
  /** Shows a list with search and returns the value taken. Null: the person left the list, or the signal withdrew it. */
  pick(options: PickOptions, withdrawn?: AbortSignal): Promise<string | null>
  /** Restores the terminal. `gone`: the terminal does not exist any more. */
  close(gone?: boolean): void
}

/** Called for input outside of `read`. */
export type InputListeners = {
  readonly entered: (text: string) => void
  readonly interrupt: () => void
  readonly end: () => void
  /** The terminal was closed. */
  readonly gone: () => void
}

export type TerminalOptions = {
  readonly known: EditContext
  readonly ears: InputListeners
  readonly env: NodeJS.ProcessEnv
}

export function openTerminal(options: TerminalOptions): Terminal {
  const { env } = options
  const plain = env['TERM'] === undefined || env['TERM'] === 'dumb'
  const colours = !plain && (env['NO_COLOR'] ?? '') === '' && process.stdout.hasColors()
  return plain
    ? new PlainTerminal(process.stdin, process.stdout, options)
    : new RichTerminal(process.stdin, process.stdout, options, colours)
}

const PROMPT = '› '
const PASTE_ON = '\u001b[?2004h'
const PASTE_OFF = '\u001b[?2004l'

/** `before`: the read that the question or the list interrupted. It continues after the answer. */
type PendingRead = {
  readonly question: boolean
  readonly prompt: Prompt
  /** The open list; null where a line is read. */
  picking: Picking | null
  readonly done: (text: string | null) => void
  readonly draft: InputLine
  readonly before: PendingRead | null
}

class RichTerminal implements Terminal {
  readonly out: Screen
  readonly echoes = false
  readonly #in: ReadStream
  readonly #tty: NodeJS.WriteStream
  readonly #options: TerminalOptions
  #line: InputLine = EMPTY_LINE
  readonly #usual: Prompt
  #reading: PendingRead | null = null
  /** Text that was typed and is not inserted yet. */
  #typed = ''
  open = true
  gone = false

  constructor(input: ReadStream, tty: NodeJS.WriteStream, options: TerminalOptions, colours: boolean) {
    this.#in = input
    this.#tty = tty
    this.#options = options
    this.out = new Screen(tty, { colours, input: (columns) => this.#drawInput(columns) })
    this.#usual = { text: PROMPT, paint: this.out.paint.cyan }
    emitKeypressEvents(input)
    this.#raw(true)
    input.on('keypress', this.#key).on('end', options.ears.gone).on('error', options.ears.gone)
    tty.on('resize', this.out.draw)
    process.on('SIGCONT', this.#back).on('exit', this.#restore)
  }

  read(question?: string, withdrawn?: AbortSignal): Promise<string | null> {
    const prompt = question === undefined ? this.#usual : { text: `${question} `, paint: this.out.paint.bold }
    return this.#begin({ question: question !== undefined, prompt, picking: null }, withdrawn)
  }

  pick(options: PickOptions, withdrawn?: AbortSignal): Promise<string | null> {
    return this.#begin({ question: true, prompt: this.#usual, picking: openPicking(options) }, withdrawn)
  }

  #begin(asked: Pick<PendingRead, 'question' | 'prompt' | 'picking'>, withdrawn?: AbortSignal): Promise<string | null> {
    if (withdrawn?.aborted || !this.open) return Promise.resolve(null)
    return new Promise((done) => {
      const reading: PendingRead = { ...asked, done, draft: this.#line, before: this.#reading }
      this.#reading = reading
      withdrawn?.addEventListener('abort', () => this.#withdraw(reading), { once: true })
      if (asked.question) this.#line = EMPTY_LINE
      this.out.later()
    })
  }

  #drawInput(columns: number): DrawnRows {
    const { picking, prompt } = this.#reading ?? { picking: null, prompt: this.#usual }
    if (picking) return drawPicking(picking, this.out.paint, columns, this.out.rows)
    return drawLine(prompt, this.#line, columns)
  }

  close(gone = false): void {
    if (!this.open) return
    this.open = false
    this.gone = gone
    this.out.close(gone)
    this.#in.off('keypress', this.#key).off('end', this.#options.ears.gone)
    this.#tty.off('resize', this.out.draw)
    process.off('SIGCONT', this.#back).off('exit', this.#restore)
    if (!gone) this.#raw(false)
    this.#in.pause()
    while (this.#reading) this.#answer(null)
  }

  /**
   * Text that arrives within one read of the terminal is inserted at once: a terminal may paste it letter by letter.
   */
  readonly #key = (_: string | undefined, key: KeyPress): void => {
    if (this.#line.paste === null && isPlainText(key)) {
      if (this.#typed === '') setImmediate(this.#insertTyped)
      this.#typed += key.sequence
      return
    }
    this.#insertTyped()
    this.#press(key)
    if (this.#line.paste === null) this.out.draw()
  }

  readonly #insertTyped = (): void => {
    const sequence = this.#typed
    this.#typed = ''
    if (sequence === '' || !this.open) return
    this.#press({ sequence })
    this.out.draw()
  }

  #press(key: KeyPress): void {
    if (this.#reading?.picking) return this.#pressPick(this.#reading, this.#reading.picking, key)
    const known = this.#reading?.question ? NOTHING_KNOWN : this.#options.known
    const [line, deed] = pressKey(this.#line, key, known)
    this.#line = line
    if (deed) this.#do(deed)
  }

  #pressPick(reading: PendingRead, picking: Picking, key: KeyPress): void {
    const [next, end] = pressPickKey(picking, key)
    reading.picking = next
    if (end) this.#answer(end.value)
    else if (key.ctrl && key.name === 'l') this.out.clear()
  }

  #do(deed: KeyAction): void {
    const { ears } = this.#options
    if (deed.type === 'entered') {
      if (this.#reading) this.#answer(deed.text)
      else ears.entered(deed.text)
    } else if (deed.type === 'choices') this.#choices(deed.names)
    else if (deed.type === 'redraw') this.out.clear()
    else if (deed.type === 'suspend') this.#suspend()
    else if (this.#reading?.question) this.#answer(null)
    else if (deed.type === 'interrupt' && this.#reading && this.#line.cells.length > 0) this.#line = EMPTY_LINE
    else if (deed.type === 'interrupt') ears.interrupt()
    else ears.end()
  }

  #choices(names: readonly string[]): void {
    this.out.say('note', this.out.paint.dim(wrapText(`  ${names.join('  ')}`, this.out.columns, '  ').join('\n')))
  }

  #answer(text: string | null): void {
    const reading = this.#reading
    if (!reading) return
    this.#reading = reading.before
    if (reading.question) this.#line = reading.draft
    reading.done(text)
  }

  /** Withdraws a question, unless another question stands above it. */
  #withdraw(reading: PendingRead): void {
    if (this.#reading !== reading) return
    this.#answer(null)
    this.out.later()
  }

  #suspend(): void {
    this.out.lift()
    this.#raw(false)
    process.kill(process.pid, 'SIGTSTP')
  }

  readonly #back = (): void => {
    this.#raw(true)
    this.out.draw()
  }

  readonly #restore = (): void => this.#raw(false)

  /** A closed terminal cannot be restored, and need not be. */
  #raw(on: boolean): void {
    try {
      this.#in.setRawMode(on)
      this.#tty.write(on ? PASTE_ON : PASTE_OFF)
    } catch {}
  }
}

const NOTHING_KNOWN: EditContext = { history: [], complete: () => [] }

/** Reads and writes whole lines: the terminal itself edits the input, and its Ctrl-C comes as a signal. */
class PlainTerminal implements Terminal {
  readonly out: PlainLines
  readonly echoes = true
  open = true
  gone = false
  readonly #lines: ReturnType<typeof createInterface>
  /** The last question is answered first. */
  readonly #readings: { readonly prompt: string; readonly done: (text: string | null) => void }[] = []
  #begun = ''

  constructor(input: ReadStream, tty: NodeJS.WriteStream, { ears }: TerminalOptions) {
    this.out = new PlainLines(tty, () => this.#readings.at(-1)?.prompt ?? '')
    this.#lines = createInterface({ input, terminal: false })
    input.on('error', ears.gone)
    this.#lines.on('close', ears.end)
    this.#lines.on('line', (line) => {
      this.out.ended()
      const text = this.#begun + line
      if (text.endsWith('\\')) {
        this.#begun = `${text.slice(0, -1)}\n`
        return
      }
      this.#begun = ''
      if (!this.#answer(text)) ears.entered(text)
    })
  }

  read(question?: string, withdrawn?: AbortSignal): Promise<string | null> {
    if (withdrawn?.aborted || !this.open) return Promise.resolve(null)
    const prompt = question === undefined ? '> ' : `${question} `
    this.out.put(prompt)
    return new Promise((done) => {
      const reading = { prompt, done }
      this.#readings.push(reading)
      withdrawn?.addEventListener('abort', () => this.#readings.at(-1) === reading && this.#answer(null), {
        once: true,
      })
    })
  }

  async pick(options: PickOptions, withdrawn?: AbortSignal): Promise<string | null> {
    const { columns } = this.out
    this.out.say(
      'ask',
      [oneLine(options.title), ...numberedLines(options)].map((row) => fitLines(row, columns)).join('\n'),
    )
    for (;;) {
      const typed = (await this.read('The number or the name (empty: none)', withdrawn))?.trim() ?? ''
      const value = typed === '' ? null : typedChoice(options, typed)
      if (value !== undefined) return value
      this.out.say('ask', fitLines(`There is no "${oneLine(typed, 80)}" in the list.`, columns))
    }
  }

  close(gone = false): void {
    if (!this.open) return
    this.open = false
    this.gone = gone
    if (!gone) this.out.end()
    this.#lines.removeAllListeners('close')
    this.#lines.close()
    while (this.#answer(null));
  }

  #answer(text: string | null): boolean {
    const reading = this.#readings.pop()
    reading?.done(text)
    return reading !== undefined
  }
}
