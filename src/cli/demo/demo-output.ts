// The output of the demo: a line for each node when the log has its result, and at a terminal one line that moves. Each
// line is written once, so nothing flickers, and a file or a plain terminal gets the same lines. It reads the log and
// decides nothing.
import { outputStyle } from '../present/print.ts'
import { decisionText } from '../present/outcome.ts'
import { oneLine } from '../../view/clean.ts'
import { PlainLines, Screen, type Surface } from '../present/screen.ts'
import { fitLines, type Paint } from '../present/terminal-text.ts'
import type { NodeStop } from '../../view/node-stops.ts'
import type { LogReader } from './log-reader.ts'

const NODE_COLUMNS = 9
const FOUND_COLUMNS = 37
/** On a narrower terminal the text is not put in columns. */
const WIDE_COLUMNS = 70

export class DemoOutput {
  readonly #log: LogReader
  readonly #folder: string
  readonly #out: Surface
  readonly #paint: Paint
  #told = 0
  #decisions = 0
  /** The worker that was killed last, until another one continues. */
  #killed: number | null = null
  #now = ''

  constructor(log: LogReader, folder: string) {
    this.#log = log
    this.#folder = folder
    const moves = process.stderr.isTTY && process.env['TERM'] !== 'dumb'
    this.#out = moves ? new Screen(process.stderr, { colours: false }) : new PlainLines(process.stderr)
    this.#paint = outputStyle(process.stderr).paint
  }

  /** Writes one permanent line. */
  say(text: string, paint: keyof Paint | null = null): void {
    const shown = fitLines(text, this.#out.columns)
    this.#out.say('note', paint === null ? shown : this.#paint[paint](shown))
  }

  /** Writes a line to copy. It is never wrapped, so it has no break marks. */
  command(text: string): void {
    this.#out.say('note', text)
  }

  /** Shows the current activity until `rest` is called. */
  moves(): void {
    this.#out.show((mark) => ({
      calls: [],
      status: fitLines(`${mark} ${this.#now}`, this.#out.columns).split('\n')[0] ?? '',
    }))
  }

  rest(): void {
    this.#out.show(null)
  }

  /** Prints the news of the log. */
  news(): void {
    const log = this.#log
    const decisions = log.events.filter((event) => event.type === 'user.tool_confirmation')
    for (const event of decisions.slice(this.#decisions)) this.say(`${event.allow ? '✓' : '✗'} ${decisionText(event)}`)
    this.#decisions = decisions.length
    for (const stop of log.stops.slice(this.#told)) {
      if (!ENDED.has(stop.status) && !(stop.status === 'ok' && (stop.found !== '' || log.isSettled))) break
      this.#told += 1
      this.#node(stop)
    }
    const pid = log.pid === null ? 'another process' : `process ${log.pid}`
    const begins = this.#killed === null ? 'begins' : `waits for the lease of process ${this.#killed} to end`
    this.#now = `${pid} ${log.running === null ? begins : `runs ${log.running}`}`
  }

  #node(stop: NodeStop): void {
    const pid = this.#log.writerOf(stop)
    const isNext = this.#killed !== null && pid !== null && pid !== this.#killed
    if (isNext) this.#killed = null
    const who = pid === null ? 'another process' : `process ${pid}${isNext ? ' goes on' : ''}`
    const found = oneLine(stop.found.replace(`${this.#folder}/`, ''), 400)
    if (stop.status === 'ok') this.say(this.#row('✓', stop.node, found, who))
    else this.say(this.#row('✗', stop.node, `${stop.status}: ${found}`, who), 'red')
  }

  killed(node: string, pid: number, what: string): void {
    this.#killed = pid
    this.say(this.#row('✗', node, `kill -9 ${pid} ${what}`, ''), 'red')
  }

  #row(mark: string, node: string, text: string, who: string): string {
    const isWide = this.#out.columns >= WIDE_COLUMNS
    const [name, found] = isWide ? [node.padEnd(NODE_COLUMNS), text.padEnd(FOUND_COLUMNS)] : [node, text]
    return `${mark} ${name} ${found}${who === '' ? '' : isWide ? ` ${who}` : ` (${who})`}`.trimEnd()
  }
}

/** The statuses of nodes that failed and will not continue. */
const ENDED: ReadonlySet<string> = new Set(['error', 'denied', 'aborted', 'timeout', 'unknown'])
