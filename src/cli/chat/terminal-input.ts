// The terminal of a chat. Two kinds: one reads keys and redraws its lower end; a plain one is for terminals that cannot
// move a cursor. terminal-chat.ts interprets the input.
import { createInterface } from 'node:readline'
import type { ReadStream } from 'node:tty'
import {
  drawLine,
  EMPTY_LINE,
  type EditContext,
  type InputLine,
  type KeyAction,
  lineFromText,
  lineText,
  NOTHING_KNOWN,
  pressKey,
  type Prompt,
  replaceBack,
} from './edit-line.ts'
import { KeyDecoder, type KeyPress, LONE_ESC_MS } from './keys.ts'
import {
  drawMenu,
  type Menu,
  menuFor,
  type MenuSources,
  moveInMenu,
  quotePath,
  takeFromMenu,
  takesOnEnter,
} from './menu.ts'
import { pastedPicture } from './pictures.ts'
import type { pressVim, Vim } from './vim-keys.ts'
import { drawPage, openPager, type Pager, pressPageKey } from './pager.ts'
import {
  drawPicking,
  numberedLines,
  openPicking,
  type PickOptions,
  type Picking,
  pressPickKey,
  typedChoice,
} from './picker.ts'
import type { EditorEnd } from '../present/external-editor.ts'
import { type DrawnRows, PlainLines, Screen, type Surface } from '../present/screen.ts'
import { fitLines } from '../present/terminal-text.ts'
import { oneLine } from '../../view/clean.ts'

export interface Terminal {
  readonly out: Surface
  readonly open: boolean
  readonly gone: boolean
  /** True while another program, such as an editor, has the terminal. */
  readonly isLent: boolean
  /** True if the terminal itself leaves the input on the screen. */
  readonly echoes: boolean
  /**
   * Reads one input. With a question it reads the answer, and then restores the line being edited. Null: the person
   * cancelled, or the signal withdrew the question.
   */
  read(question?: string, withdrawn?: AbortSignal): Promise<string | null>
  /** Shows a list with search and returns the value taken. Null: the person left the list, or the signal withdrew it. */
  pick(options: PickOptions, withdrawn?: AbortSignal): Promise<string | null>
  /** Lets the person change a text in their own editor. `name` is that of the file, for its colours there. */
  edit(text: string, name: string): Promise<EditorEnd>
  /** Enters a text as if the person had typed it. The line being edited stays. */
  enter(text: string): void
  /** Shows rows page by page until the person leaves. They must be clean. */
  page(rows: readonly string[]): void
  /** Makes the terminal call for the person. A plain terminal cannot. */
  ring(): void
  /** Restores the terminal. `gone`: the terminal does not exist any more. */
  close(gone?: boolean): void
}

/** Called for input outside of `read`, and for keys that mean something to the chat. */
export type InputListeners = {
  readonly entered: (text: string) => void
  readonly interrupt: () => void
  /** Esc: true if there was something to stop. */
  readonly stop: () => boolean
  readonly nextMode: () => void
  /** Sends the command that runs to the background. False: none runs here. */
  readonly background: () => boolean
  /** Everything that was shown, in full. */
  readonly expand: () => void
  /** Takes the last queued message back. Null: it was sent already. */
  readonly unqueue: () => Promise<string | null>
  readonly end: () => void
  /** The terminal was closed. */
  readonly gone: () => void
}

export type TerminalOptions = {
  readonly known: EditContext
  readonly sources: MenuSources
  readonly ears: InputListeners
  readonly env: NodeJS.ProcessEnv
  /** The keys of vi in the input line. */
  readonly vim: boolean
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
/** In the normal mode of vi, where letters are commands. */
const NORMAL_PROMPT = '‹ '
const PASTE_ON = '\u001b[?2004h'
const PASTE_OFF = '\u001b[?2004l'
const SHOW_CURSOR = '\u001b[?25h'
/** The alternate screen leaves what was on the screen before as it is. Rows that are too long are cut there. */
const PAGES_ON = '\u001b[?1049h\u001b[?7l'
const PAGES_OFF = '\u001b[?7h\u001b[?1049l'
/** What Esc twice at rest enters. */
const REWIND = '/rewind'

/** `before`: the read that the question or the list interrupted. It continues after the answer. */
type PendingRead = {
  readonly question: boolean
  readonly prompt: Prompt
  /** The open list; null where a line is read. */
  picking: Picking | null
  readonly done: (text: string | null) => void
  draft: InputLine
  readonly before: PendingRead | null
}

class RichTerminal implements Terminal {
  readonly out: Screen
  readonly echoes = false
  readonly #in: ReadStream
  readonly #tty: NodeJS.WriteStream
  readonly #options: TerminalOptions
  readonly #keys = new KeyDecoder()
  #loneEsc: NodeJS.Timeout | null = null
  #line: InputLine = EMPTY_LINE
  readonly #usual: Prompt
  #reading: PendingRead | null = null
  #menu: Menu | null = null
  /** The person closed the menu of the word that begins at this cell. */
  #closedMenuAt: number | null = null
  #pager: Pager | null = null
  /** How often Esc was pressed at rest, with no other key between. */
  #escapes = 0
  /** The keys of vi, if they are on. */
  #vim: { readonly press: typeof pressVim; now: Vim } | null = null
  open = true
  gone = false
  isLent = false

  constructor(input: ReadStream, tty: NodeJS.WriteStream, options: TerminalOptions, colours: boolean) {
    this.#in = input
    this.#tty = tty
    this.#options = options
    this.out = new Screen(tty, { colours, input: (columns) => this.#drawInput(columns) })
    this.#usual = { text: PROMPT, paint: this.out.paint.cyan }
    this.#raw(true)
    input.on('data', this.#read).on('end', options.ears.gone).on('error', options.ears.gone)
    // A terminal that was closed before has paused it.
    input.resume()
    tty.on('resize', this.#draw)
    if (options.vim) void this.#loadVim()
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
      this.#updateMenu()
      this.out.later()
    })
  }

  async edit(text: string, name: string): Promise<EditorEnd> {
    if (this.isLent || !this.open) return { type: 'failed', why: 'The terminal is in use.' }
    const { openEditor } = await import('../present/external-editor.ts')
    this.isLent = true
    this.out.lift()
    this.out.hold(true)
    this.#in.pause()
    this.#raw(false)
    try {
      return await openEditor(text, name, this.#options.env)
    } finally {
      this.isLent = false
      if (this.open) {
        this.#raw(true)
        this.#in.resume()
        this.out.hold(false)
      }
    }
  }

  enter(text: string): void {
    if (this.#reading) this.#answer(text)
    else this.#options.ears.entered(text)
  }

  page(rows: readonly string[]): void {
    if (this.isLent || !this.open) return
    if (this.#pager === null) this.#tty.write(PAGES_ON)
    this.out.hold(true)
    this.#pager = openPager(rows, this.out.rows)
    this.#drawPage()
  }

  #drawInput(columns: number): DrawnRows {
    const { picking, prompt } = this.#reading ?? { picking: null, prompt: this.#usual }
    const { paint, rows } = this.out
    if (picking) return drawPicking(picking, paint, columns, rows)
    const isNormal = prompt === this.#usual && this.#vim?.now.mode === 'normal'
    const drawn = drawLine(isNormal ? { ...prompt, text: NORMAL_PROMPT } : prompt, this.#line, columns)
    return this.#menu ? { ...drawn, rows: [...drawn.rows, ...drawMenu(this.#menu, paint, columns)] } : drawn
  }

  close(gone = false): void {
    if (!this.open) return
    if (this.#pager) this.#leavePages()
    this.open = false
    this.gone = gone
    if (this.#loneEsc) clearTimeout(this.#loneEsc)
    this.out.close(gone)
    this.#in.off('data', this.#read).off('end', this.#options.ears.gone)
    this.#tty.off('resize', this.#draw)
    process.off('SIGCONT', this.#back).off('exit', this.#restore)
    if (!gone && !this.isLent) this.#raw(false)
    this.#in.pause()
    while (this.#reading) this.#answer(null)
  }

  readonly #draw = (): void => {
    if (this.#pager) this.#drawPage()
    else this.out.draw()
  }

  readonly #read = (bytes: Uint8Array): void => {
    if (this.#loneEsc) clearTimeout(this.#loneEsc)
    this.#loneEsc = null
    this.#pressAll(this.#keys.push(bytes))
    if (this.open && this.#keys.isWaiting)
      this.#loneEsc = setTimeout(() => this.#pressAll(this.#keys.flush()), LONE_ESC_MS)
  }

  #pressAll(keys: readonly KeyPress[]): void {
    for (const key of keys) if (this.open) this.#press(key)
    if (keys.length > 0 && this.open && !this.isLent) this.#draw()
  }

  #press(key: KeyPress): void {
    if (this.#pager) return this.#pressPage(this.#pager, key)
    if (this.#reading?.picking) return this.#pressPick(this.#reading, this.#reading.picking, key)
    if (key.name !== 'escape') this.#escapes = 0
    if (this.#menu && this.#pressMenu(this.#menu, key)) return
    if (key.ctrl && key.name === 'b' && this.#options.ears.background()) return
    const known = this.#reading?.question ? NOTHING_KNOWN : this.#options.known
    if (!this.#reading?.question && this.#pressVim(key)) return
    const picture = key.name === 'paste' && !this.#reading?.question ? pastedPicture(key.sequence) : null
    if (picture) {
      this.#line = replaceBack(this.#line, this.#line.at, { text: `@${quotePath(picture.path)}`, shown: picture.shown })
      return
    }
    const [line, deed] = pressKey(this.#line, key, known)
    this.#line = line
    if (deed?.type === 'entered' && this.#vim) this.#vim.now = { ...this.#vim.now, mode: 'insert' }
    this.#updateMenu()
    if (deed) this.#do(deed)
  }

  async #loadVim(): Promise<void> {
    const { pressVim: press, VIM_START } = await import('./vim-keys.ts')
    this.#vim = { press, now: VIM_START }
  }

  /** False: the key has its usual meaning. */
  #pressVim(key: KeyPress): boolean {
    const pressed = this.#vim?.press(this.#vim.now, this.#line, key)
    if (!this.#vim || !pressed) return false
    this.#vim.now = pressed.vim
    this.#line = pressed.line
    this.#updateMenu()
    return true
  }

  #pressPick(reading: PendingRead, picking: Picking, key: KeyPress): void {
    const [next, end] = pressPickKey(picking, key)
    reading.picking = next
    if (end) this.#answer(end.value)
    else if (key.ctrl && key.name === 'l') this.out.clear()
  }

  /** False: the key is not for the menu. */
  #pressMenu(menu: Menu, { name = '', ctrl, meta, shift }: KeyPress): boolean {
    const step = ctrl ? MENU_STEPS_CTRL[name] : MENU_STEPS[name]
    if (step !== undefined) this.#menu = moveInMenu(menu, step)
    else if (name === 'escape') {
      this.#menu = null
      this.#closedMenuAt = menu.token.from
    } else if (!meta && !shift && (name === 'tab' || (name === 'return' && takesOnEnter(this.#line, menu)))) {
      this.#line = takeFromMenu(this.#line, menu)
      this.#updateMenu()
    } else return false
    return true
  }

  readonly #updateMenu = (): void => {
    if (!this.open) return
    const isOff = this.#reading?.question || this.#vim?.now.mode === 'normal'
    const menu = isOff ? null : menuFor(this.#line, this.#options.sources, this.#menu, this.#showMore)
    if (menu?.token.from !== this.#closedMenuAt) this.#closedMenuAt = null
    this.#menu = this.#closedMenuAt === null ? menu : null
  }

  /** A search in files has found more. */
  readonly #showMore = (): void => {
    this.#updateMenu()
    this.out.later()
  }

  #do(deed: KeyAction): void {
    const { ears } = this.#options
    switch (deed.type) {
      case 'entered':
        return this.enter(deed.text)
      case 'redraw':
        return this.out.clear()
      case 'suspend':
        return this.#suspend()
      case 'mode':
        return ears.nextMode()
      case 'expand':
        return ears.expand()
      case 'search':
        return void this.#searchHistory()
      case 'compose':
        return void this.#compose()
      case 'unqueue':
        return void this.#unqueue()
      case 'escape':
        return this.#escape()
      default:
        if (this.#reading?.question) this.#answer(null)
        else if (deed.type === 'end') ears.end()
        else if (this.#reading && this.#line.cells.length > 0) this.#line = EMPTY_LINE
        else ears.interrupt()
    }
  }

  /** Esc leaves a question, or stops the work, or twice at rest goes back. */
  #escape(): void {
    if (this.#reading?.question) return this.#answer(null)
    if (this.#options.ears.stop()) return
    this.#escapes += 1
    if (this.#escapes < 2) return
    this.#escapes = 0
    this.enter(REWIND)
  }

  async #searchHistory(): Promise<void> {
    if (this.#reading?.question) return
    const items = [...new Set(this.#options.known.history.toReversed())].map((text) => ({ value: text, label: text }))
    const query = lineText(this.#line)
    const text = await this.pick({ title: 'History', items, query: query.length > 80 ? '' : query })
    if (text === null) return
    this.#setDraft(lineFromText(text))
    this.out.later()
  }

  async #compose(): Promise<void> {
    if (this.#reading?.question) return
    const edited = await this.edit(lineText(this.#line), 'message.md')
    if (edited.type === 'edited') this.#setDraft(lineFromText(edited.text.replace(/\n+$/, '')))
    else this.#note(edited.why)
    this.out.later()
  }

  async #unqueue(): Promise<void> {
    const text = await this.#options.ears.unqueue()
    if (text === null) return
    const { cells } = this.#draft
    const before = lineFromText(text)
    const both = cells.length === 0 ? before.cells : [...before.cells, ...lineFromText('\n').cells, ...cells]
    this.#setDraft({ ...EMPTY_LINE, cells: both, at: before.cells.length })
    this.out.later()
  }

  /** The line being edited, also while a question is open. */
  get #draft(): InputLine {
    return this.#outermost?.draft ?? this.#line
  }

  #setDraft(line: InputLine): void {
    const outermost = this.#outermost
    if (outermost) outermost.draft = line
    else this.#line = line
    this.#updateMenu()
  }

  /** The question that was opened first; null where a line is edited. */
  get #outermost(): PendingRead | null {
    let reading = this.#reading?.question ? this.#reading : null
    while (reading?.before?.question) reading = reading.before
    return reading
  }

  #note(text: string): void {
    this.out.say('note', this.out.paint.dim(fitLines(oneLine(text, 400), this.out.columns)))
  }

  #answer(text: string | null): void {
    const reading = this.#reading
    if (!reading) return
    this.#reading = reading.before
    if (reading.question) this.#line = reading.draft
    this.#updateMenu()
    reading.done(text)
  }

  /** Withdraws a question, unless another question stands above it. */
  #withdraw(reading: PendingRead): void {
    if (this.#reading !== reading) return
    this.#answer(null)
    this.out.later()
  }

  #pressPage(pager: Pager, key: KeyPress): void {
    const next = pressPageKey(pager, key, this.out.rows)
    if (next === null) this.#leavePages()
    else this.#pager = next
  }

  #drawPage(): void {
    if (this.#pager) this.#tty.write(drawPage(this.#pager, this.out.paint, this.out.columns, this.out.rows))
  }

  #leavePages(): void {
    this.#pager = null
    this.#tty.write(`${PAGES_OFF}${SHOW_CURSOR}`)
    this.out.hold(false)
  }

  ring(): void {
    if (this.open) this.#tty.write('\u0007')
  }

  #suspend(): void {
    this.out.lift()
    this.#raw(false)
    process.kill(process.pid, 'SIGTSTP')
  }

  readonly #back = (): void => {
    if (this.isLent) return
    this.#raw(true)
    this.#draw()
  }

  readonly #restore = (): void => this.#raw(false)

  /** A closed terminal cannot be restored, and need not be. */
  #raw(on: boolean): void {
    try {
      this.#in.setRawMode(on)
      this.#tty.write(on ? PASTE_ON : `${PASTE_OFF}${this.#pager ? PAGES_OFF : ''}${SHOW_CURSOR}`)
    } catch {}
  }
}

const MENU_STEPS: Readonly<Record<string, number>> = { up: -1, down: 1 }
const MENU_STEPS_CTRL: Readonly<Record<string, number>> = { p: -1, n: 1 }

/** Reads and writes whole lines: the terminal itself edits the input, and its Ctrl-C comes as a signal. */
class PlainTerminal implements Terminal {
  readonly out: PlainLines
  readonly echoes = true
  readonly isLent = false
  open = true
  gone = false
  readonly #ears: InputListeners
  readonly #lines: ReturnType<typeof createInterface>
  /** The last question is answered first. */
  readonly #readings: { readonly prompt: string; readonly done: (text: string | null) => void }[] = []
  #begun = ''

  constructor(input: ReadStream, tty: NodeJS.WriteStream, { ears }: TerminalOptions) {
    this.out = new PlainLines(tty, () => this.#readings.at(-1)?.prompt ?? '')
    this.#ears = ears
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
      this.enter(text)
    })
  }

  enter(text: string): void {
    if (!this.#answer(text)) this.#ears.entered(text)
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

  /** An editor needs a terminal that can move a cursor. */
  edit(): Promise<EditorEnd> {
    return Promise.resolve({ type: 'failed', why: 'This terminal cannot open an editor.' })
  }

  page(rows: readonly string[]): void {
    this.out.say('note', rows.join('\n'))
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

  ring(): void {}

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
