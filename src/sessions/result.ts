// What became of one run, collected from its events. It reads the log and adds nothing to it.
import type {
  BlobRef,
  CallKey,
  CallStatus,
  FailedReason,
  Failure,
  FailureKind,
  Frozen,
  Json,
  Metadata,
  Outcome,
  Source,
} from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { type Message, saysSomething, type Transcript } from '../kernel/transcript.ts'
import type { CallsOf, ToolList } from '../tools/core/typed.ts'
import { type CallEdit, CallLog, contentOf, type Decided, decisionsIn, type LoggedCall } from '../view/calls.ts'
import type { Pending } from '../view/pending.ts'
import { type ClassifiedFailure, classify } from './classify.ts'
import { messagesOf } from './messages.ts'
import { cloneJson } from '../effects/clone-json.ts'
import { plus, type Spending, spentBelow, spentIn } from '../riders/money/usage.ts'
import { sourcesOf } from '../view/sources.ts'
import { type ContextFill, tokensAfter } from '../context/meter.ts'
import { textOf } from '../view/text.ts'
import { usdOf } from '../view/usd.ts'

/** One call of the run and what became of it. */
export type CallRecord = Frozen<{
  callId: CallKey
  tool: string
  /** As the model gave them. If a person changed them, `edited` has those that it ran with, and who changed them. */
  args: Json
  edited?: CallEdit
  /** Null while it is open. */
  status: CallStatus | null
  content: string | BlobRef
  /** Its pictures and files. Absent: it has none. */
  parts?: readonly BlobRef[]
  /** How long the content is. */
  chars: number
  /** `kind` is what the tool itself called it. */
  failure?: ClassifiedFailure & { readonly kind?: FailureKind }
  /** The decision, once there is one. */
  approved?: Decided
}>

/** The ends that must never be taken for one another. */
type Flags = Frozen<{ paused: boolean; capped: boolean; halted: boolean; empty: boolean; held?: true }>

type Common = {
  sessionId: string
  text: string
  /** Of the run and of the children that its calls started, at any depth. */
  usage: Spending['usage']
  /** What the session itself spent in this run, and the same with the children that its calls started, in dollars. */
  costUsd: number
  treeCostUsd: number
  /** `treeCostUsd` in millionths of a dollar, as the log counts it. */
  cost: number
  /** What the session itself used and spent in this run, without its children. Limits count this. */
  own: Spending
  /** How full the context was when the run ended or came to rest. Null: no reply of the run was counted. */
  context: ContextFill | null
  flags: Flags
  calls: readonly CallRecord[]
  /** The tool that ended the run early: its failure was one that ends a run, or its retries were used up. Absent: no tool did. */
  endedBy?: string
  /** What the host said of the run and its session. */
  metadata: Metadata
  /** Tools that the run had to do without, such as those of a server that could not be reached. */
  warnings: readonly string[]
  /** What the run added to the conversation, whole: also results that no request has shown. */
  messages: readonly Message[]
  /** What the replies of the run cite, and what its own searches found, each address once. */
  sources: readonly Source[]
  /** Pictures and files that the model made. Their bytes are beside the log, under their hashes. */
  files: readonly BlobRef[]
  /** With `raw: true`: each reply of the model as the log has it, with why it ended and which model gave it. */
  responses?: readonly Response[]
}
type Replied = Extract<Event, { type: 'agent.message' }>
/** `model` is absent where the model did not say its name. */
export type Response = Omit<Replied, 'finish'> & { readonly finish: Finish; readonly model?: string }
type Finish = 'stop' | 'calls' | 'length' | 'refusal'

/** `Output` is what a completed run answered, and `Tools` the tools whose calls may wait. */
export type Result<Output = Json, Tools extends ToolList[number] = ToolList[number]> = End<Output> & Open<Tools>
export type Completed<Output = Json, Tools extends ToolList[number] = ToolList[number]> = Extract<
  End<Output>,
  { status: 'completed' }
> &
  Open<Tools>
/** Of the run and of the children that its calls started. */
type Open<Tools extends ToolList[number] = ToolList[number]> = { readonly pending: readonly Pending<CallsOf<Tools>>[] }

type End<Output> = Frozen<
  /** `max_tokens`: the answer was cut at its longest. `refusal`: the model said no. `cached`: the response cache gave the answer. */
  | (Common & { status: 'completed'; stopReason: 'end_turn' | 'max_tokens' | 'refusal'; output: Output; cached?: true })
  | (Common & { status: 'requires_action'; stopReason: 'approval_required' | 'answer_required' })
  /** `reason` is what the pause was given, that it was imported and is held, or how full the context is. */
  | (Common & { status: 'requires_action'; stopReason: 'paused'; reason?: string })
  /** `reason` says why the provider did not answer, where that is what it waits for. */
  | (Common & { status: 'sleeping'; stopReason: 'rescheduling'; until: number | null; reason?: string })
  | (Common & { status: 'interrupted'; stopReason: 'cancelled' | 'cancelled_by_hook'; reason?: string; output?: Json })
  /** For the limit `usd`: `account` is whose money does not cover the next call, and `short` how it stands. */
  | (Common & { status: 'limit'; stopReason: 'limit_reached' } & Omit<Limit, 'type'>)
  /** `text` is the cause, as `reason` is, and `said` what the model said last. */
  | (Common & { status: 'halted'; stopReason: 'halted'; reason: string; said: string })
  | (Common & {
      status: 'failed'
      stopReason: FailedReason
      failure: Failure & { classified: ClassifiedFailure | null }
    })
>
type Limit = Extract<Outcome, { type: 'limit' }>

/** Why nothing goes on for now. */
type Rest = { readonly waiting: string; readonly until: number | null; readonly reason?: string }

const PAGE = 1_000
const NO_WARNINGS: readonly string[] = []
const HALTED = { status: 'halted', stopReason: 'halted' } as const
const STOPS = { stop: 'end_turn', length: 'max_tokens', refusal: 'refusal' } as const

/** Follows one input to the run that took it, or, without an input, the last run. */
export class Collector {
  outcome: Outcome | null = null
  /** How much the run's model takes; null as long as nobody found out. */
  window: number | null = null
  readonly #sessionId: string
  readonly #input: number | null
  readonly #raw: boolean
  /** Its start was seen, and not yet its end. */
  #open = false
  /** It is the run that is asked for. */
  #ours: boolean
  #text = ''
  /** What was said last, if no reply said anything since: a reply with calls only says nothing. */
  #said = ''
  #output: Json = null
  #finish: Replied['finish']
  #cached: Replied['cached']
  /** Of the run alone, in order. What they say is worked out once, at the end. */
  #events: Event[] = []
  /** What no run that was seen has taken yet. */
  #queued: Event[] = []
  /** The run was open before anything of it was seen. */
  #late = false
  /** How the run before ended. */
  #earlier: readonly Event[] = []
  #last = 0
  #below: Spending | null = null

  constructor(sessionId: string, input: number | null, raw = false) {
    this.#sessionId = sessionId
    this.#input = input
    this.#raw = raw
    this.#ours = input === null
  }

  take(event: Event): void {
    const { type } = event
    if (this.outcome && this.#input !== null) return
    this.#last = event.seq
    // That a call was begun says nothing of what became of it, and of a wide turn there are many.
    if (type === 'agent.tool_use') return
    // A run that was held back, or could not be prepared, ends without a start.
    if (type === 'run.started' || (type === 'run.settled' && !this.#open)) this.#reset()
    if (type === 'run.started') this.#open = true
    if (type === 'user.message' || (!this.#open && type !== 'run.settled')) this.#queued.push(event)
    else this.#events.push(event)
    if (type === 'run.started' || type === 'model.started' || type === 'run.settled') this.#promote(event)
    else if (type === 'agent.message') this.#reply(event)
    if (type === 'run.settled') this.#settle(event)
  }

  /** What the event takes in is the run's from now on. */
  #promote(event: Extract<Event, { type: 'run.started' | 'model.started' | 'run.settled' }>): void {
    const taken = (event.type === 'model.started' ? event.shows : event.inputs) ?? []
    if (this.#input !== null && taken.includes(this.#input)) {
      this.#late = event.type === 'model.started' && !this.#open
      this.#open = this.#ours = true
    }
    if (this.#queued.length === 0 || taken.length === 0) return
    for (const each of this.#queued) {
      if (!taken.includes(each.seq)) continue
      // It stands where it came.
      const later = this.#events.findIndex(({ seq }) => seq > each.seq)
      this.#events.splice(later, 0, each)
    }
    this.#queued = this.#queued.filter(({ seq }) => !taken.includes(seq))
  }

  #settle({ outcome, output }: Extract<Event, { type: 'run.settled' }>): void {
    this.#open = false
    if (this.#ours) this.outcome = outcome
    // What a finalizer came to.
    if (output !== undefined) [this.#output, this.#said] = [output, JSON.stringify(output)]
    else if (outcome.type === 'interrupted') this.#output = null
    this.#queued = this.#queued.filter(({ type }) => type === 'user.message')
  }

  /** With what this one could not see, because it came late: how the run began, and what else began it. */
  async whole(store: Store): Promise<Collector> {
    const from = this.#late ? 0 : this.#before()
    if (from === null) return this
    const whole = new Collector(this.#sessionId, this.#input, this.#raw)
    // With the end of the run before: else what is read of that run would be of this one.
    const seen = [...this.#earlier, ...this.#events, ...this.#queued].sort((a, b) => a.seq - b.seq)
    // Of a run that was open before, only its end was looked at.
    const end = this.#late ? this.#last : (seen[0]?.seq ?? this.#last + 1) - 1
    for (let after = from; after < end; ) {
      const { events } = await store.read(this.#sessionId, after, Math.min(PAGE, end - after))
      for (const event of events) whole.take(event)
      if (events.length === 0) break
      after += events.length
    }
    if (!this.#late) for (const event of seen) whole.take(event)
    return whole
  }

  /** Counts what children of the run have spent by now. */
  async countChildren(store: Pick<Store, 'read'>): Promise<void> {
    this.#below = await spentBelow(store, this.#sessionId, this.#own())
  }

  /** What lies before the first input that began the run and was not seen; null when all were. */
  #before(): number | null {
    if (!this.#ours) return null
    const start = this.#events.find(({ type }) => type === 'run.started' || type === 'run.settled')
    const inputs = start && 'inputs' in start ? (start.inputs ?? []) : []
    const unseen = inputs.filter((input) => !this.#events.some(({ seq }) => seq === input))
    return unseen.length > 0 ? Math.min(...unseen) - 1 : null
  }

  /** Whether a provider counted the last reply. `options` are those of the run, by hash. */
  get counted(): { readonly options?: string } | null {
    const events = this.#own()
    const reply = events.findLast((event) => event.type === 'agent.message')
    if (reply?.type !== 'agent.message' || !reply.usage) return null
    const setup = this.#setup(events)
    return setup?.options === undefined ? {} : { options: setup.options }
  }

  /** Of a run that came from elsewhere, what holds here. */
  #setup(events: readonly Event[]) {
    return events.findLast((event) => event.type === 'run.started' || event.type === 'run.reviewed')
  }

  /** `calls`, `messages`, `sources`, `files` and `context` are computed when they are read: most callers read none of them. */
  result(pending: readonly Pending[], waiting: Rest): Result {
    const events = this.#own()
    return lazily(this.#ended(events, pending, waiting), events, this.window)
  }

  #ended(events: readonly Event[], pending: readonly Pending[], waiting: Rest): Told<Result> {
    // The result of the last run says that what came after it is held.
    const outcome = this.#input === null && waiting.waiting === 'resume' ? null : this.outcome
    const common = this.#common(events, pending, outcome, waiting.waiting)
    if (!outcome) return unsettled(common, waiting, events, pausedIn([...events, ...this.#queued]))
    switch (outcome.type) {
      case 'completed':
        return {
          ...common,
          status: 'completed',
          stopReason: STOPS[this.#finish ?? 'stop'],
          output: cloneJson(this.#output),
          ...(this.#cached ? { cached: true } : {}),
        }
      case 'interrupted':
        if (outcome.hook === undefined) {
          const last = this.#output === null ? {} : { output: cloneJson(this.#output) }
          return { ...common, status: 'interrupted', stopReason: 'cancelled', ...last }
        }
        return { ...common, status: 'interrupted', stopReason: 'cancelled_by_hook', reason: outcome.hook }
      case 'limit': {
        const { type, ...met } = outcome
        return { ...common, status: type, stopReason: 'limit_reached', ...met }
      }
      case 'halted':
        return { ...common, ...HALTED, text: outcome.reason, reason: outcome.reason, said: common.text }
      case 'failed': {
        const failure = { ...outcome.failure, classified: classify(outcome) }
        return { ...common, ...endedBy(outcome), status: 'failed', stopReason: outcome.reason, failure }
      }
    }
  }

  #own(): readonly Event[] {
    // Until a run takes the input there is nothing but the input.
    return this.#ours ? this.#events : this.#queued.filter(({ seq }) => seq === this.#input)
  }

  #common(
    events: readonly Event[],
    pending: readonly Pending[],
    outcome: Outcome | null,
    waiting: string,
  ): Told<Common & Open> {
    const own = spentIn(events)
    const setup = this.#setup(events)
    const { usage, cost } = this.#below === null ? own : plus(own, this.#below)
    const replies = this.#raw ? cloneJson(events.filter((event) => event.type === 'agent.message')) : null
    const responses = replies?.map(responseOf)
    return {
      sessionId: this.#sessionId,
      text: !this.#ours ? '' : outcome?.type === 'completed' ? this.#text : this.#said,
      usage,
      costUsd: usdOf(own.cost),
      treeCostUsd: usdOf(cost),
      cost,
      own,
      pending,
      flags: {
        paused: outcome === null && waiting === 'resume',
        capped: outcome?.type === 'limit',
        halted: outcome?.type === 'halted',
        empty: outcome?.type === 'failed' && outcome.reason === 'empty_answer',
      },
      warnings: setup?.warnings ?? NO_WARNINGS,
      metadata: setup?.metadata ? cloneJson(setup.metadata) : {},
      ...(responses ? { responses } : {}),
    }
  }

  /** Another run begins. */
  #reset(): void {
    this.outcome = null
    this.#text = ''
    this.#said = ''
    this.#output = null
    this.#earlier = this.#events.slice(-1)
    this.#events = []
  }

  #reply(event: Replied): void {
    // What a hook did not let be the answer is not told as one.
    const isKept = event.guard === undefined || event.guard === 'replace'
    this.#text = isKept ? textOf(event.parts) : ''
    this.#finish = event.finish
    this.#cached = event.cached
    if (this.#text.trim() !== '') this.#said = this.#text
    const { verdict } = event
    if (verdict.type !== 'final') this.#output = null
    else this.#output = verdict.output === undefined ? this.#text : verdict.output
  }
}

/** The kernel's own sentence names the tool. */
function endedBy({ reason, failure }: Extract<Outcome, { type: 'failed' }>): { readonly endedBy?: string } {
  if (reason !== 'tool_error' && reason !== 'tool_retries_exceeded') return {}
  const [, tool] = /^Tool "(.+?)" (?:failed: |used up its retries)/s.exec(failure.message) ?? []
  return tool === undefined ? {} : { endedBy: tool }
}

/** The log leaves out what goes without saying. */
function responseOf(reply: Replied): Response {
  const finish = reply.finish ?? (reply.calls.length > 0 ? 'calls' : 'stop')
  return { ...reply, finish, ...(reply.route === undefined ? {} : { model: reply.route }) }
}

/** A result without what is computed when it is read. */
type Told<T> = T extends unknown ? Omit<T, 'calls' | 'messages' | 'sources' | 'files' | 'context'> : never

const EVENTS = Symbol('events')
const WINDOW = Symbol('window')
type Lazy = { readonly [EVENTS]: readonly Event[]; readonly [WINDOW]: number | null }

/**
 * Own and enumerable, so that a copy or a print of the result has them too. The getters are the same for all results: one
 * made for each would live in the shape of its object, where only a major collection finds it, and hold the whole run until then.
 */
const CALLS = lookedAt('calls', callsOf)
const MESSAGES = lookedAt('messages', messagesOf)
const SOURCES = lookedAt('sources', sourcesOf)
const FILES = lookedAt('files', filesOf)
const CONTEXT = lookedAt('context', contextIn)

function lookedAt(
  name: string,
  make: (events: readonly Event[], window: number | null) => unknown,
): PropertyDescriptor & ThisType<Lazy> {
  return {
    get() {
      // A copy: the events are those that the worker goes on with.
      const value = cloneJson(make(this[EVENTS], this[WINDOW]))
      Object.defineProperty(this, name, { value, enumerable: true })
      return value
    },
    enumerable: true,
    configurable: true,
  }
}

function lazily(result: Told<Result>, events: readonly Event[], window: number | null): Result {
  Object.defineProperty(result, EVENTS, { value: events })
  Object.defineProperty(result, WINDOW, { value: window })
  Object.defineProperty(result, 'calls', CALLS)
  Object.defineProperty(result, 'messages', MESSAGES)
  Object.defineProperty(result, 'sources', SOURCES)
  Object.defineProperty(result, 'files', FILES)
  Object.defineProperty(result, 'context', CONTEXT)
  return result as Result
}

function unsettled(
  common: Told<Common & Open>,
  { waiting, until, reason }: Rest,
  events: readonly Event[],
  paused: { readonly reason?: string },
): Told<Result> {
  const asks = common.pending.some(({ needs }) => needs === 'approval')
  if (waiting === 'approval' || (waiting === 'answer' && asks))
    return { ...common, status: 'requires_action', stopReason: 'approval_required' }
  if (waiting === 'answer') return { ...common, status: 'requires_action', stopReason: 'answer_required' }
  if (waiting === 'resume') {
    const why = reason === undefined ? { ...overflowIn(events), ...paused } : { reason }
    const flags = reason === undefined ? common.flags : ({ ...common.flags, held: true } as const)
    return { ...common, flags, status: 'requires_action', stopReason: 'paused', ...why }
  }
  const why = reason === undefined ? outageIn(events) : { reason }
  return { ...common, status: 'sleeping', stopReason: 'rescheduling', until, ...why }
}

/** What the pause that holds was given as its reason: that of the first, if there are several. */
function pausedIn(events: readonly Event[]): { readonly reason?: string } {
  let pause: Extract<Event, { type: 'user.interrupt' }> | null = null
  for (const event of events) {
    if (event.type === 'user.interrupt') pause = event.mode === 'pause' ? (pause ?? event) : null
    else if (event.type === 'user.message' && event.when !== 'after') pause = null
  }
  return pause?.why === undefined ? {} : { reason: pause.why }
}

/** Why nothing more was asked, if it was because no more fits. */
function overflowIn(events: readonly Event[]): { readonly reason?: string } {
  const last = events.findLast(({ type }) => type === 'agent.message' || type === 'model.failed')
  return last?.type === 'model.failed' && last.class === 'overflow' ? { reason: last.message } : {}
}

/** Why the provider did not answer, if nothing has answered since, or why the run cannot begin. */
function outageIn(events: readonly Event[]): { readonly reason?: string } {
  const last = events.findLast(
    ({ type }) => type === 'agent.message' || type === 'model.failed' || type === 'run.deferred',
  )
  if (last?.type === 'run.deferred') return { reason: last.message }
  return last?.type === 'model.failed' && last.retryAt !== undefined ? { reason: last.message } : {}
}

function contextIn(events: readonly Event[], window: number | null): ContextFill | null {
  const tokens = tokensAfter(events)
  return tokens === null ? null : { tokens, window }
}

function filesOf(events: readonly Event[]): readonly BlobRef[] {
  return events.flatMap((event) => {
    return event.type === 'agent.message' ? event.parts.filter((part) => part.type === 'blob') : []
  })
}

function callsOf(events: readonly Event[]): readonly CallRecord[] {
  const log = new CallLog()
  for (const event of events) log.take(event)
  const decisions = decisionsIn(events)
  const calls = log.all.filter(({ reply }) => reply.verdict.type === 'continue')
  return calls.map((call) => recordOf(call, decisions.get(call.key)?.decided ?? null))
}

function recordOf(call: LoggedCall, approved: Decided | null): CallRecord {
  const { key: callId, proposal, result } = call
  const { tool, args } = proposal
  const content = contentOf(call)
  const chars = typeof content === 'string' ? content.length : content.bytes
  const shown = result?.parts ? { content, parts: result.parts } : { content }
  const record = { callId, tool, args, status: result?.status ?? null, ...shown, chars }
  const failure = result && classify({ ...result, content })
  const kind = result?.failure ? { kind: result.failure.kind } : {}
  const edited = call.edit ? { edited: call.edit } : {}
  return {
    ...record,
    ...edited,
    ...(failure ? { failure: { ...failure, ...kind } } : {}),
    ...(approved ? { approved } : {}),
  }
}

/** What the model said last in the run, before these events or in them. A reply with calls only says nothing. */
export function lastTextOf(transcript: Transcript | null, events: readonly Event[]): string {
  const last = events.findLast((event) => event.type === 'agent.message' && saysSomething(event.parts, event.guard))
  return textOf(last?.type === 'agent.message' ? last.parts : (transcript?.lastSaid ?? []))
}
