// The progress of a session for `run`, `resume` and `start`: a line for each event, and at a terminal a spinner for the current one.
// All text of models, tools and files is cleaned first. It decides nothing.
import type { Json, StreamEvent } from '../../index.ts'
import type { BashLine } from '../../tools/index.ts'
import { Cleaner, clippedToWidth, clippedEnd, fitted, saidText, widthOf } from './text.ts'
import { oneLine, safeJson } from './clean.ts'
import { outageText } from './outage.ts'
import { decisionText, CUT, isStopped, outcomeOf, outcomeText, tailOf } from './outcome.ts'
import { failureOf, isPlanned, stateOfReply } from '../state/workflows.ts'
import { textOf } from '../../view/text.ts'

export interface View {
  /** Whether it wants deltas. */
  readonly live: boolean
  /** The last model failure shown, so that it is not shown twice. */
  readonly told: string
  see(event: StreamEvent): void
  /** A line of a running command. It is not an event: the result has all lines. */
  hear(line: BashLine): void
  /** A line of our own, between those of the session. */
  note(text: string): void
  /** Restores the terminal. A later event opens it again. */
  close(): void
}

/** Shows nothing, for `--quiet` and `--json`. */
export const blind: View = { live: false, told: '', see: () => {}, hear: () => {}, note: () => {}, close: () => {} }

/** The result of a workflow node, from the state after it. */
export type Found = (node: string, state: NonNullable<ReturnType<typeof stateOfReply>>) => string

/** Context from before the first event. */
export type Before = {
  readonly found?: Found
  /** The tools of open calls, by session and call. */
  readonly tools?: ReadonlyMap<string, string>
}

export function lines(out: NodeJS.WritableStream, before: Before = {}): View {
  const seen = new Lines((text) => void out.write(`${text}\n`), before)
  return {
    live: false,
    get told() {
      return seen.told
    },
    see: (event) => seen.take(event),
    hear: () => {},
    note: (text) => void out.write(`${text}\n`),
    close: () => {},
  }
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100

/** The last line is redrawn; everything else is written above it once. */
export function spinner(out: NodeJS.WriteStream, before: Before = {}): View {
  let frame = 0
  const clear = (): void => void out.write('\r\u001b[2K')
  const columns = (): number => Math.max(20, (out.columns || 80) - 1)
  const write = (text: string): void => {
    clear()
    out.write(`${fitted(text, columns())}\n`)
  }
  const seen = new Lines(write, before, columns)
  const draw = (): void => {
    frame = (frame + 1) % FRAMES.length
    clear()
    out.write(`${FRAMES[frame] ?? ''} ${seen.line(columns() - 2)}`)
  }
  let timer: NodeJS.Timeout | null = null
  return {
    live: true,
    get told() {
      return seen.told
    },
    see: (event) => {
      timer ??= setInterval(draw, FRAME_MS)
      seen.take(event)
    },
    hear: (line) => seen.hear(line),
    note: write,
    close: () => {
      if (timer === null) return
      clearInterval(timer)
      timer = null
      clear()
    },
  }
}

/** The names of nodes stand in one column. */
const NODE_WIDTH = 9

/** More than any line of a terminal holds. */
const SAID_CHARS_MAX = 1_000

/** Events as lines. */
class Lines {
  told = ''
  /** The current activity. */
  #now = 'beginning'
  readonly #write: (text: string) => void
  readonly #columns: () => number
  readonly #tools: Map<string, string>
  readonly #found: Found
  /** Finished nodes whose state has not come yet. */
  #done: string[] = []
  #cleaner = new Cleaner()
  /** The end of the streamed text. */
  #said = ''
  #isSaying = false
  #tokens = 0
  #cost = 0

  constructor(write: (text: string) => void, before: Before, columns = () => Number.POSITIVE_INFINITY) {
    const { found = () => '', tools = new Map<string, string>() } = before
    this.#write = write
    this.#columns = columns
    this.#found = found
    this.#tools = new Map(tools)
  }

  /** The current activity and the end of the streamed text, in so many columns. */
  line(width: number): string {
    const head = clippedToWidth(oneLine(this.#now, 400), width)
    if (!this.#isSaying) return head
    return `${head} ${clippedEnd(oneLine(this.#said, Number.POSITIVE_INFINITY), width - widthOf(head) - 1)}`
  }

  take(event: StreamEvent): void {
    if (event.type === 'delta') {
      if (event.kind === 'output') return this.#print(event)
      if (event.kind === 'text') this.#said = (this.#said + this.#cleaner.push(event.text)).slice(-SAID_CHARS_MAX)
      this.#isSaying = true
      this.#now = `${this.#spent()}${event.kind}:`
      return
    }
    this.#isSaying = false
    const line = this.#lineOf(event)
    const depth = event.source.parent ? '  ' : ''
    if (line !== null) this.#write(`${depth}${line}`)
  }

  /** What a call prints, also one that another process runs. */
  #print({ session, call = '', text }: Extract<StreamEvent, { type: 'delta' }>): void {
    for (const line of text.split('\n')) this.hear({ session, call, line })
  }

  hear({ session, call, line }: Pick<BashLine, 'session' | 'call' | 'line'>): void {
    if (line.trim() !== '')
      this.#now = `${this.#spent()}${this.#tools.get(`${session} ${call}`) ?? 'bash'}: ${oneLine(line)}`
  }

  #lineOf(event: Exclude<StreamEvent, { type: 'delta' }>): string | null {
    switch (event.type) {
      case 'model.started':
        this.#said = ''
        this.#cleaner = new Cleaner()
        this.#now = `${this.#spent()}thinking`
        return null
      case 'agent.message':
        return this.#reply(event)
      case 'agent.tool_use':
        this.#now = `${this.#spent()}${this.#tools.get(`${event.session} ${event.call}`) ?? `call ${event.call}`}`
        return null
      case 'agent.tool_result': {
        const tool = this.#tools.get(`${event.session} ${event.call}`) ?? `call ${event.call}`
        if (isPlanned(event.source.agent)) return this.#node(tool, event)
        return this.#result(tool, event)
      }
      case 'model.failed':
        if (isStopped(event)) return this.#cut(event.partial ?? '')
        this.told = event.message
        return `  ! ${outageText(event) ?? `the model did not answer (${event.class}): ${oneLine(event.message, 600)}`}`
      case 'run.deferred':
        this.told = event.message
        return `  ! ${outageText(event) ?? ''}`
      case 'user.tool_confirmation':
        return `  ${decisionText(event)}`
      case 'wake.scheduled':
        return `  it wants to go on at ${new Date(event.due).toISOString()}: ${oneLine(event.reason)}`
      case 'note.added':
        return `  note: ${oneLine(event.text)}`
      default:
        return null
    }
  }

  /** For a command: its exit code and, if it failed, its last lines. */
  #result(tool: string, event: Extract<StreamEvent, { type: 'agent.tool_result' }>): string {
    const outcome = outcomeOf(event)
    const name = oneLine(tool)
    if (outcome.command) {
      const rows = tailOf(outcome, this.#columns(), '    ')
      return [`  ${outcome.good ? '✓' : '✗'} ${name} · ${outcomeText(outcome)}`, ...rows].join('\n')
    }
    const why = event.failure ? `: ${oneLine(event.failure.message)}` : ''
    return outcome.good ? `  ✓ ${name}` : `  ✗ ${name} (${event.status})${why}`
  }

  /** The text of a stopped answer stays on the screen. */
  #cut(partial: string): string | null {
    return partial.trim() === '' ? null : `${saidText(partial.trim(), this.#columns())}\n! ${CUT}`
  }

  /** The result of a workflow node is in the state, which comes with the next reply. */
  #node(name: string, event: Extract<StreamEvent, { type: 'agent.tool_result' }>): string | null {
    if (event.status !== 'ok') return `✗ ${oneLine(name).padEnd(NODE_WIDTH)} ${failureOf(event)}`
    this.#done.push(name)
    return null
  }

  #planned(event: Extract<StreamEvent, { type: 'agent.message' }>): string | null {
    const state = stateOfReply(event) ?? {}
    const done = this.#done.map((name) => `✓ ${name.padEnd(NODE_WIDTH)} ${oneLine(this.#found(name, state))}`.trimEnd())
    this.#done = []
    for (const [index, { tool }] of event.calls.entries()) {
      this.#tools.set(`${event.session} ${event.seq}.${index}`, tool)
      this.#now = tool
    }
    return done.length > 0 ? done.join('\n') : null
  }

  #reply(event: Extract<StreamEvent, { type: 'agent.message' }>): string | null {
    if (isPlanned(event.source.agent)) return this.#planned(event)
    this.#tokens += (event.usage?.inputTokens ?? 0) + (event.usage?.outputTokens ?? 0)
    this.#cost += event.cost ?? 0
    if (event.verdict.type !== 'continue') return null
    const said = textOf(event.parts)
    const calls = event.calls.map(({ tool, args }, index) => {
      this.#tools.set(`${event.session} ${event.seq}.${index}`, tool)
      return `→ ${oneLine(tool)} ${callText(args)}`
    })
    return [...(said.trim() === '' ? [] : [saidText(said.trim(), this.#columns())]), ...calls].join('\n')
  }

  #spent(): string {
    if (this.#tokens === 0) return ''
    return `${this.#tokens} tokens${this.#cost > 0 ? `, $${(this.#cost / 1_000_000).toFixed(4)}` : ''} · `
  }
}

function callText(args: Json): string {
  return oneLine(safeJson(args))
}
