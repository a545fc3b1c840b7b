// The view of a chat while its session works: the streamed text of the model, its reasoning in one line, its calls
// folded, and queued messages. It decides nothing.
import type { Part, Result, StreamEvent } from '../../index.ts'
import { WindowFill, fillWithTokens } from '../../context/window-fill.ts'
import { type ChatCalls, isWhole, printedTexts, unfoldCall } from './chat-calls.ts'
import { isRenewable } from './reached-limit.ts'
import { DOING_RANK, fitStatus, type StatusPart } from './status-line.ts'
import type { RedrawnPart, Surface } from '../present/screen.ts'
import { type EventRenderer, type LoggedEvent, type StreamEventOf, Presenter } from '../present/presenter.ts'
import { clipToWidth, cleanModelText, fitLines, widthOf, wrapText } from '../present/terminal-text.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { percentText } from '../../view/shown-text.ts'
import { INCOMPLETE_TEXTS } from '../present/result-output.ts'
import { ANSWER_CUT, isStoppedFailure } from '../present/outcome.ts'
import { textOf } from '../../view/shown-text.ts'
import { usdText } from '../../view/usd.ts'
import { terretCommand } from '../present/print.ts'

/** Longer messages are shortened on the screen. The log has all of them. */
const ECHO_LINES_MAX = 8
const ECHO_ROWS_MAX = 24
const ECHO_ROWS_CUT = 5

/** `window`: how many tokens the model takes; infinity if that is unknown. */
type ViewOptions = { readonly window: number; readonly place: { readonly store: { now(): number } } }

export class ChatView implements EventRenderer {
  readonly wording = { unanswered: 'The model did not answer', failureCharsMax: 400, noteCharsMax: 400, margin: '' }
  readonly calls: ChatCalls
  /** The number of the session's last event that was shown. */
  seq = 0
  /** Messages that no request has included yet, by seq. */
  readonly queued = new Map<number, string>()
  /** True for the queued message that a key takes back. */
  isTakeable: (seq: number) => boolean = () => false
  /** The seq at which the shown run started. */
  run = 0
  /** The seq at which the last shown run settled. */
  settled = 0
  readonly #out: Surface
  readonly #presenter: Presenter
  /** True if the message is on the screen already. */
  readonly #isEchoed: (id: string) => boolean
  /** The text of the open reply so far. */
  #said = ''
  /** How many characters of each part have arrived. */
  readonly #heard = new Map<number, number>()
  #thought = ''
  #folded = false
  readonly #warned = new Set<string>()
  /** How many events of each type a command of this chat has written and shown already. */
  readonly #toldHere = new Map<string, number>()
  #doing = 'beginning'
  #isStopping = false
  #fill = new WindowFill()
  /** The lines of the children that work. */
  children: (mark: string) => readonly string[] = () => []
  /** The parts of the status row that are shown also while nothing works. */
  status: () => readonly StatusPart[] = () => []
  readonly #window: number

  /** What can be pressed while a command runs. */
  callKey = ''
  readonly #now: () => number

  constructor(out: Surface, calls: ChatCalls, isEchoed: (id: string) => boolean, { window, place }: ViewOptions) {
    this.#window = window
    this.#now = () => place.store.now()
    this.calls = calls
    this.#out = out
    this.#presenter = new Presenter(out, this)
    this.#isEchoed = isEchoed
  }

  begin(): void {
    this.#isStopping = false
    this.#doing = 'beginning'
    this.#presenter.begin()
  }

  stopping(): void {
    this.#isStopping = true
    this.#doing = 'stopping; Ctrl-C once more leaves'
  }

  rest(): void {
    this.#out.hush()
    this.#fold()
    this.#flush()
    this.#said = ''
    this.#presenter.rest()
  }

  /** Only the children work, so only their lines are shown above the prompt. */
  idle(): void {
    const some = this.children('').length > 0
    this.#out.show(some ? (mark) => ({ calls: this.children(mark), status: null }) : null)
  }

  /** Shows input of the user. Commands are dimmed. */
  echo(text: string): void {
    this.#out.say('you', this.messageRows(text).join('\n'))
  }

  messageRows(text: string): readonly string[] {
    const { paint, columns } = this.#out
    const rows = messageHead(clean(text.trimEnd()), columns - 2)
    const colour = text.startsWith('/') ? paint.dim : paint.bold
    return rows.map((row, at) => colour(`${at === 0 ? '› ' : '┆ '}${row}`))
  }

  note(text: string): void {
    this.#presenter.note(text)
  }

  /** The decision of this call is not printed again. */
  decided(call: string): void {
    this.#presenter.decided.add(call)
  }

  /** A command of this chat wrote an event of this type and has shown its effect, so the event is not shown. */
  told(type: 'note.added' | 'context.compacted'): void {
    this.#toldHere.set(type, (this.#toldHere.get(type) ?? 0) + 1)
  }

  see(event: StreamEvent): void {
    const told = this.#toldHere.get(event.type) ?? 0
    if (event.source.parent) this.#seeChild(event)
    else if (event.type !== 'delta' && event.seq <= this.seq) return
    else if (told > 0 && event.type !== 'delta') {
      this.#toldHere.set(event.type, told - 1)
      this.logged(event)
    } else this.#presenter.see(event)
  }

  /** Calls of children are kept for `/calls`. child-watcher.ts shows the current work of a child in one line. */
  #seeChild(event: StreamEvent): void {
    if (event.type === 'agent.message' || event.type === 'agent.tool_use' || event.type === 'agent.tool_result')
      this.calls.take(event)
    this.#flush()
  }

  /** If a delta of a part is missing, the rest of the part is not streamed. */
  heard({ kind, text, part, offset, session, call = '' }: StreamEventOf<'delta'>): void {
    // The output of a call, also if another process runs it.
    if (kind === 'output') return text.split('\n').forEach((line) => this.calls.hear({ session, call, line }, 'stream'))
    if (offset !== (this.#heard.get(part) ?? 0)) return
    this.#heard.set(part, offset + text.length)
    if (kind === 'reasoning') {
      this.#thought += text
      this.#doing = 'thinking'
    } else if (kind === 'text') {
      this.#fold()
      this.#said += text
      this.#doing = 'answering'
      this.#out.speak(text)
    } else this.#doing = 'preparing a call'
  }

  /** Sets the number of tokens in the context: after a command, or when a session continues. */
  filled(tokens: number): void {
    this.#fill = fillWithTokens(tokens)
  }

  logged(event: LoggedEvent): void {
    this.seq = event.seq
    this.#fill.take(event)
    if (event.type !== 'model.failed' || isStoppedFailure(event)) return
    this.#out.hush()
    this.#said = ''
  }

  requested({ shows }: StreamEventOf<'model.started'>): void {
    this.#said = ''
    this.#heard.clear()
    this.#thought = ''
    this.#folded = false
    this.#doing = 'thinking'
    for (const seq of shows) this.#taken(seq)
  }

  other(event: LoggedEvent): void {
    switch (event.type) {
      case 'user.message':
        // The report of a child is not a message of the person. The line of the child says how it ended.
        if (event.report === undefined && !this.#isEchoed(event.id)) this.queued.set(event.seq, messageText(event))
        return
      case 'user.withdraw':
        this.queued.delete(event.message)
        return
      case 'run.started':
        this.run = event.seq
        this.#presenter.tokens = 0
        this.#presenter.cost = 0
        return this.#missing(event.warnings ?? [])
      case 'agent.tool_use':
      case 'agent.custom_tool_use':
        this.#doing = 'working'
        return this.calls.take(event)
      case 'agent.tool_result':
        this.calls.take(event, this.#presenter.decided.has(event.call))
        return this.#flush()
      case 'user.custom_tool_result':
        return this.calls.take(event)
      case 'context.compacted':
        return this.#compacted(event)
      case 'run.settled':
        this.settled = event.seq
        for (const seq of event.inputs ?? []) this.#taken(seq)
        return
      default:
        return
    }
  }

  /** Says in one line how the context was made smaller, or why not. */
  #compacted({ cut, cleared, fitted, failed }: Extract<StreamEvent, { type: 'context.compacted' }>): void {
    if (cut !== undefined) this.#presenter.aside('what was said before was summed up')
    else if (cleared !== undefined) this.#presenter.aside('old results were left out, as the context is nearly full')
    else if (fitted !== undefined) this.#presenter.aside('the newest results were shortened to fit the context')
    else if (failed !== undefined) this.#presenter.aside(`the context could not be summed up: ${oneLine(failed, 200)}`)
  }

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

  /** The log has the full text, because deltas may have been lost. */
  replied(event: StreamEventOf<'agent.message'>): void {
    const text = textOf(event.parts)
    if (this.#thought === '')
      this.#thought = event.parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join(' ')
    this.#fold()
    const more = text.startsWith(this.#said) ? text.slice(this.#said.length) : null
    if (more === null) this.#out.hush()
    this.#out.speak(more ?? text)
    this.#out.hush()
    this.#said = ''
    this.#presenter.spend(event)
    this.calls.take(event)
  }

  /** Shows the logged text of a stopped answer and says that it was stopped. */
  cut({ partial = '' }: Pick<StreamEventOf<'model.failed'>, 'partial'>): void {
    const said = this.#said
    this.#said = ''
    if (partial.startsWith(said)) this.#out.speak(partial.slice(said.length))
    this.#out.hush()
    if (partial.trim() !== '' || said.trim() !== '') this.#warn(ANSWER_CUT)
  }

  /** Prints the reasoning as one line, once. */
  #fold(): void {
    const text = oneLine(cleanModelText(this.#thought), 2_000)
    if (text === '' || this.#folded) return
    this.#folded = true
    const { paint, columns } = this.#out
    this.#out.say('call', paint.dim(clipToWidth(`  ∴ ${text}`, columns)))
  }

  #flush(): void {
    const { paint, columns } = this.#out
    for (const line of this.calls.done(paint, columns)) this.#out.say('call', line)
  }

  moving(mark: string): RedrawnPart {
    const { paint, columns } = this.#out
    // The end of the reasoning is its newest part.
    const thought = this.#thought !== '' && !this.#folded ? oneLine(this.#thought.slice(-columns), 2_000) : ''
    const calls = this.calls.moving(paint, columns, mark, { now: this.#now(), key: this.callKey })
    const queued = [...this.queued].map(([seq, text]) => {
      const way = this.isTakeable(seq) ? ' (↑ takes it back)' : ''
      return paint.dim(`${clipToWidth(`  queued: ${oneLine(text)}`, columns - widthOf(way))}${way}`)
    })
    const shown = [
      ...(thought === '' ? [] : [paint.dim(clipToWidth(`  ∴ ${thought}`, columns))]),
      ...calls.slice(0, CALLS_MAX),
      ...(calls.length > CALLS_MAX ? [paint.dim(`  … and ${calls.length - CALLS_MAX} more`)] : []),
      ...this.calls.running(columns).map(paint.dim),
      ...this.children(mark),
      ...queued,
    ]
    const status = [
      { text: this.#doing, rank: DOING_RANK },
      ...spendingTexts(this.#presenter.tokens, 0).map((text) => ({ text, rank: 3 })),
      ...this.status(),
      ...(this.#isStopping ? [] : [{ text: 'Esc stops', rank: DOING_RANK }]),
    ]
    return { calls: shown, status: `${paint.cyan(mark)} ${paint.dim(fitStatus(status, columns - 2))}` }
  }

  /** How full the context is; null if that is not known. */
  get context(): { readonly tokens: number; readonly window: number } | null {
    const known = this.#fill.counted && Number.isFinite(this.#window)
    return known ? { tokens: this.#fill.tokens, window: this.#window } : null
  }

  /** How full the context is, if that is known. */
  #meter(): readonly string[] {
    const { context } = this
    return context === null ? [] : [`ctx ${percentText(context.tokens, context.window)}`]
  }

  /** All of the last calls, as rows without colours: what Ctrl-O shows. */
  fullText(): readonly string[] {
    const room = { columns: this.#out.columns, rows: Number.POSITIVE_INFINITY }
    const last = this.calls.all.slice(-FULL_CALLS_MAX)
    if (last.length === 0) return ['No call was made yet.']
    return last.flatMap((call) => [
      ...unfoldCall(call, printedTexts(call), room).rows.flatMap(({ texts }) => texts),
      ...(isWhole(call) ? [] : [fitLines(`  Not all of it is here: /show ${call.number} all`, room.columns)]),
      '',
    ])
  }

  #warn(text: string): void {
    this.#presenter.warn(`! ${text}`)
  }

  /** Says how a run ended, if it did not end as usual, and what it used. */
  ended(result: Result): void {
    const { usage, cost } = result
    const tokens = usage.inputTokens + usage.outputTokens
    const calls = usage.toolCalls === 0 ? [] : [usage.toolCalls === 1 ? '1 call' : `${usage.toolCalls} calls`]
    const spent = [...calls, ...spendingTexts(tokens, cost.micros), ...this.#meter()].join(' · ')
    const why = whyRunEnded(result, this.#presenter.told)
    if (why !== null) this.#warn(why)
    else if (spent !== '') this.note(`  ${spent}`)
  }
}

const CALLS_MAX = 8
const FULL_CALLS_MAX = 20

function spendingTexts(tokens: number, cost: number): readonly string[] {
  return [...(tokens > 0 ? [`${tokens.toLocaleString('en')} tokens`] : []), ...(cost > 0 ? [usdText(cost)] : [])]
}

export function messageText({ parts }: { readonly parts: readonly Part[] }): string {
  return parts
    .map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? '' : `(${part.type})`))
    .join('')
}

/** All rows of a message, or its first rows and its length. */
function messageHead(text: string, columns: number): readonly string[] {
  const lines = text.split('\n')
  const isLong = lines.length > ECHO_LINES_MAX
  // Hidden text is not wrapped: a pasted line may have a million characters.
  const rows = lines
    .slice(0, ECHO_LINES_MAX)
    .flatMap((line) => wrapText(line.slice(0, columns * (ECHO_ROWS_MAX + 1)), columns))
  if (!isLong && rows.length <= ECHO_ROWS_MAX) return rows
  const size = isLong ? `${lines.length} lines` : `${text.length.toLocaleString('en')} characters`
  return [...rows.slice(0, ECHO_ROWS_CUT), `[… ${size} in all]`]
}

function whyRunEnded(result: Result, told: string): string | null {
  switch (result.status) {
    case 'completed':
      return INCOMPLETE_TEXTS[result.stopReason]
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
      // The chat asks about these, and the question says what was met.
      if (result.limit === 'usd' || isRenewable(result.limit)) return null
      return `The limit ${result.limit} was met. Say "go on" for another run.`
    case 'sleeping':
      return `It goes on later by itself, when \`${terretCommand`worker`}\` runs; or now, if you say so.`
    case 'requires_action':
      if (result.stopReason !== 'paused') return null
      return result.reason === undefined
        ? `It is paused. \`${terretCommand`resume`}\` goes on.`
        : oneLine(result.reason, 600)
  }
}
