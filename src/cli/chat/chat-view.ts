// The view of a chat while its session works: the model's text as it streams, its reasoning in one line, its calls folded, and queued
// messages. It decides nothing.
import type { Part, Result, StreamEvent } from '../../index.ts'
import type { Calls } from './call.ts'
import type { Terminal } from './terminal-input.ts'
import type { Moving } from './screen.ts'
import { clippedToWidth, fitted, spoken, wrapped } from '../present/text.ts'
import { clean, oneLine } from '../present/clean.ts'
import { budgetText, UNWHOLE } from '../present/ending.ts'
import { decisionText, CUT, isStopped } from '../present/outcome.ts'
import { outageText } from '../present/outage.ts'
import { textOf } from '../../view/text.ts'

type Of<Type extends StreamEvent['type']> = Extract<StreamEvent, { type: Type }>

/** Only the beginning of a longer message is shown. */
const ECHO_LINES_MAX = 8

export class ChatView {
  readonly calls: Calls
  /** The last event of the session itself. */
  seq = 0
  /** Messages that no request has included yet, by seq. */
  readonly queued = new Map<number, string>()
  /** The seq at which the shown run started. */
  run = 0
  readonly #terminal: Terminal
  /** Whether a message is on the screen already. */
  readonly #isEchoed: (id: string) => boolean
  /** Calls decided in this chat; their decision is not printed again. */
  readonly decided = new Set<string>()
  /** The text of the open reply so far. */
  #said = ''
  /** How many characters of each part have arrived. */
  readonly #heard = new Map<number, number>()
  #thought = ''
  #folded = false
  #tokens = 0
  #cost = 0
  /** The last model failure shown, so that it is not shown twice. */
  #failure = ''
  readonly #warned = new Set<string>()
  #doing = 'beginning'
  #isStopping = false

  constructor(terminal: Terminal, calls: Calls, isEchoed: (id: string) => boolean) {
    this.calls = calls
    this.#terminal = terminal
    this.#isEchoed = isEchoed
  }

  begin(): void {
    this.#isStopping = false
    this.#doing = 'beginning'
    this.#terminal.show((mark) => this.#moving(mark))
  }

  stopping(): void {
    this.#isStopping = true
    this.#doing = 'stopping; Ctrl-C once more leaves'
  }

  rest(): void {
    this.#terminal.hush()
    this.#fold()
    this.#flush()
    this.#said = ''
    this.#terminal.show(null)
  }

  /** Input of the user. Commands are dimmed. */
  echo(text: string): void {
    const { paint, columns } = this.#terminal
    const lines = clean(text.trimEnd()).split('\n')
    const long = lines.length > ECHO_LINES_MAX
    const some = long ? [...lines.slice(0, ECHO_LINES_MAX - 3), `[… ${lines.length} lines in all]`] : lines
    const rows = some.flatMap((line) => wrapped(line, columns - 2))
    const colour = text.startsWith('/') ? paint.dim : paint.bold
    this.#terminal.say('you', rows.map((row, at) => colour(`${at === 0 ? '› ' : '┆ '}${row}`)).join('\n'))
  }

  note(text: string): void {
    const { paint, columns } = this.#terminal
    this.#terminal.say('note', paint.dim(fitted(text, columns)))
  }

  see(event: StreamEvent): void {
    if (event.source.parent) return this.#seeChild(event)
    if (event.type === 'delta') return this.#hear(event)
    this.seq = event.seq
    this.#seeOwn(event)
  }

  /** Only the calls of children are shown. */
  #seeChild(event: StreamEvent): void {
    if (event.type === 'agent.message' || event.type === 'agent.tool_use' || event.type === 'agent.tool_result')
      this.calls.take(event)
    this.#flush()
  }

  /** After a gap nothing more is streamed of a part until it is complete. */
  #hear({ kind, text, part, offset, session, call = '' }: Of<'delta'>): void {
    // What a call prints, also one that another process runs.
    if (kind === 'output') return text.split('\n').forEach((line) => this.calls.hear({ session, call, line }))
    if (offset !== (this.#heard.get(part) ?? 0)) return
    this.#heard.set(part, offset + text.length)
    if (kind === 'reasoning') {
      this.#thought += text
      this.#doing = 'thinking'
    } else if (kind === 'text') {
      this.#fold()
      this.#said += text
      this.#doing = 'answering'
      this.#terminal.speak(text)
    } else this.#doing = 'preparing a call'
  }

  #seeOwn(event: Exclude<StreamEvent, { type: 'delta' }>): void {
    switch (event.type) {
      case 'user.message':
        if (!this.#isEchoed(event.id)) this.queued.set(event.seq, messageText(event))
        return
      case 'run.started':
        this.run = event.seq
        this.#tokens = 0
        this.#cost = 0
        return this.#missing(event.warnings ?? [])
      case 'model.started':
        this.#said = ''
        this.#heard.clear()
        this.#thought = ''
        this.#folded = false
        this.#doing = 'thinking'
        for (const seq of event.shows) this.#taken(seq)
        return
      case 'agent.message':
        return this.#reply(event)
      case 'agent.tool_use':
      case 'agent.custom_tool_use':
        this.#doing = 'working'
        return this.calls.take(event)
      case 'agent.tool_result':
        this.calls.take(event, this.decided.has(event.call))
        return this.#flush()
      default:
        return this.#seeRest(event)
    }
  }

  #seeRest(event: Exclude<StreamEvent, { type: 'delta' }>): void {
    switch (event.type) {
      case 'model.failed':
        if (isStopped(event)) return this.cut(event)
        this.#terminal.hush()
        this.#said = ''
        this.#failure = event.message
        return this.#warn(
          outageText(event) ?? `The model did not answer (${event.class}): ${oneLine(event.message, 400)}`,
        )
      case 'run.deferred':
        return this.#warn(outageText(event) ?? '')
      case 'user.tool_confirmation':
        if (this.decided.has(event.call)) return
        return this.#aside(decisionText(event))
      case 'user.custom_tool_result':
        return this.calls.take(event)
      case 'note.added':
        return this.#aside(`note: ${oneLine(event.text, 400)}`)
      case 'context.compacted':
        return this.#aside('what was said before was summed up')
      case 'run.settled':
        for (const seq of event.inputs ?? []) this.#taken(seq)
        return
      default:
        return
    }
  }

  /** Warnings about missing tools, each shown once. */
  #missing(warnings: readonly string[]): void {
    for (const text of warnings.filter((each) => !this.#warned.has(each))) {
      this.#warned.add(text)
      this.#warn(oneLine(text, 600))
    }
  }

  /** A request has included the message, so it leaves the queue. */
  #taken(seq: number): void {
    const text = this.queued.get(seq)
    if (text === undefined) return
    this.queued.delete(seq)
    this.echo(text)
  }

  /** The log has the full text; deltas may have been lost. */
  #reply(event: Of<'agent.message'>): void {
    const text = textOf(event.parts)
    if (this.#thought === '')
      this.#thought = event.parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join(' ')
    this.#fold()
    const more = text.startsWith(this.#said) ? text.slice(this.#said.length) : null
    if (more === null) this.#terminal.hush()
    this.#terminal.speak(more ?? text)
    this.#terminal.hush()
    this.#said = ''
    this.#tokens += (event.usage?.inputTokens ?? 0) + (event.usage?.outputTokens ?? 0)
    this.#cost += event.cost ?? 0
    this.calls.take(event)
  }

  /** Shows the logged text of a stopped answer, and that it was stopped. */
  cut({ partial = '' }: Pick<Of<'model.failed'>, 'partial'>): void {
    const said = this.#said
    this.#said = ''
    if (partial.startsWith(said)) this.#terminal.speak(partial.slice(said.length))
    this.#terminal.hush()
    if (partial.trim() !== '' || said.trim() !== '') this.#warn(CUT)
  }

  /** An event between calls. */
  #aside(text: string): void {
    const { paint, columns } = this.#terminal
    this.#terminal.say('call', paint.dim(fitted(`  ${text}`, columns)))
  }

  /** Reasoning becomes one line, once. */
  #fold(): void {
    const text = oneLine(spoken(this.#thought), 2_000)
    if (text === '' || this.#folded) return
    this.#folded = true
    const { paint, columns } = this.#terminal
    this.#terminal.say('call', paint.dim(clippedToWidth(`  ∴ ${text}`, columns)))
  }

  #flush(): void {
    const { paint, columns } = this.#terminal
    for (const line of this.calls.done(paint, columns)) this.#terminal.say('call', line)
  }

  #moving(mark: string): Moving {
    const { paint, columns } = this.#terminal
    // The end of the reasoning is its newest part.
    const thought = this.#thought !== '' && !this.#folded ? oneLine(this.#thought.slice(-columns), 2_000) : ''
    const calls = this.calls.moving(paint, columns, mark)
    const { line } = this.calls
    const queued = [...this.queued.values()].map((text) =>
      paint.dim(clippedToWidth(`  queued: ${oneLine(text)}`, columns)),
    )
    const shown = [
      ...(thought === '' ? [] : [paint.dim(clippedToWidth(`  ∴ ${thought}`, columns))]),
      ...calls.slice(0, CALLS_MAX),
      ...(calls.length > CALLS_MAX ? [paint.dim(`  … and ${calls.length - CALLS_MAX} more`)] : []),
      ...(line === '' ? [] : [paint.dim(clippedToWidth(`    ${oneLine(line, 2_000)}`, columns))]),
      ...queued,
    ]
    const status = [
      this.#doing,
      ...spentWords(this.#tokens, this.#cost),
      ...(this.#isStopping ? [] : ['Ctrl-C stops']),
    ].join(' · ')
    return { calls: shown, status: `${paint.cyan(mark)} ${paint.dim(clippedToWidth(status, columns - 2))}` }
  }

  #warn(text: string): void {
    const { paint, columns } = this.#terminal
    this.#terminal.say('note', paint.yellow(fitted(`! ${text}`, columns)))
  }

  /** Shows how a run ended, if that is worth a line. */
  ended(result: Result): void {
    const { usage, cost } = result
    const tokens = usage.inputTokens + usage.outputTokens
    const calls = usage.toolCalls === 0 ? [] : [usage.toolCalls === 1 ? '1 call' : `${usage.toolCalls} calls`]
    const spent = [...calls, ...spentWords(tokens, cost)].join(' · ')
    const why = causeOf(result, this.#failure)
    if (why !== null) this.#warn(why)
    else if (spent !== '') this.note(`  ${spent}`)
  }
}

const CALLS_MAX = 8

function spentWords(tokens: number, cost: number): readonly string[] {
  return [
    ...(tokens > 0 ? [`${tokens.toLocaleString('en')} tokens`] : []),
    ...(cost > 0 ? [`$${(cost / 1_000_000).toFixed(4)}`] : []),
  ]
}

export function messageText({ parts }: { readonly parts: readonly Part[] }): string {
  return parts
    .map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? '' : `(${part.type})`))
    .join('')
}

function causeOf(result: Result, told: string): string | null {
  switch (result.status) {
    case 'completed':
      return UNWHOLE[result.stopReason]
    case 'interrupted':
      return 'Stopped. Nothing is lost: say what to do instead, or "go on".'
    case 'failed': {
      const { message, classified } = result.failure
      const why = [...(message === told ? [] : [oneLine(message, 600)]), oneLine(classified?.nextAction ?? '')]
      return [...why, 'Say "go on" to try again.'].filter((part) => part !== '').join(' ')
    }
    case 'halted':
      return oneLine(result.reason, 600)
    case 'limit':
      if (result.limit === 'usd') return `${budgetText(result)} \`/approve budget\` allows more.`
      return `The limit ${result.limit} was met. Say "go on" for another run.`
    case 'sleeping':
      return 'It goes on later by itself, when `terret worker` runs; or now, if you say so.'
    case 'requires_action':
      if (result.stopReason !== 'paused') return null
      return result.reason === undefined ? 'It is paused. `terret resume` goes on.' : oneLine(result.reason, 600)
  }
}
