// Collects the result of one run from its events. It reads the log and adds nothing to it.
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
} from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import { type Message, saysSomething, type Transcript } from '../../kernel/transcript.ts'
import type { CallsOf, ToolList } from '../../tools/core/tool-types.ts'
import {
  type CallEdit,
  CallLog,
  contentOf,
  type DecisionRecord,
  decisionsIn,
  type LoggedCall,
} from '../../view/call-log.ts'
import type { Pending } from '../../view/pending-calls.ts'
import { type ClassifiedFailure, classify } from '../guard/classify-failure.ts'
import { conversationOf } from './run-messages.ts'
import { cloneJson } from './clone-json.ts'
import { addSpending, type Cost, costOf, type Spending, countSpendingBelow, countSpending } from './run-usage.ts'
import { sourcesOf } from '../../view/cited-sources.ts'
import { type ContextFill, countRequestTokens } from '../../context/request-tokens.ts'
import { textOf } from '../../view/shown-text.ts'

/** One call of the run and its outcome. */
export type CallRecord = Frozen<{
  /** The key of the call in its session. */
  callId: CallKey
  /** The name of the tool. */
  tool: string
  /** The arguments from the model, as they were admitted. */
  args: Json
  /** The arguments that the call ran with, and who changed them. Absent if nobody did. */
  edited?: CallEdit
  /** Null while the call is open. */
  status: CallStatus | null
  /** What the model reads as the result, or a reference to a stored one. Empty while the call is open. */
  content: string | BlobRef
  /** Its pictures and files. Absent if it has none. */
  parts?: readonly BlobRef[]
  /** The length of the content. */
  chars: number
  /** `kind` comes from the tool itself. */
  failure?: ClassifiedFailure & { readonly kind?: FailureKind }
  /** The decision, once there is one. */
  approved?: DecisionRecord
}>

/** Ends of a run that must never be taken for one another. */
type ResultFlags = Frozen<{ paused: boolean; capped: boolean; halted: boolean; empty: boolean; held?: true }>

type CommonResult = {
  sessionId: string
  text: string
  /** The usage of the run and of the children that its calls started, at any depth. */
  usage: Spending['usage']
  /** The cost of the run, with the children that its calls started and without them. Limits of a run count `ownUsd`. */
  cost: Cost
  /** The usage of the session itself in this run, without its children. Limits count this. */
  ownUsage: Spending['usage']
  /** How full the context was when the run ended or paused. Null: no reply of the run was counted. */
  context: ContextFill | null
  flags: ResultFlags
  calls: readonly CallRecord[]
  /**
   * The tool that ended the run early: its failure ended the run, or its retries were used up. Absent if no tool did.
   */
  endedBy?: string
  /** The host's metadata of the run and its session. */
  metadata: Metadata
  /** Warnings about missing tools, such as those of a server that could not be reached. */
  warnings: readonly string[]
  /** The messages that the run added to the conversation, whole, including results that no request has shown. */
  messages: readonly Message[]
  /** The citations of the run's replies and the finds of its own searches, each address once. */
  sources: readonly Source[]
  /** Pictures and files that the model made. Their bytes are beside the log, under their hashes. */
  files: readonly BlobRef[]
  /** With `raw: true`: each reply of the model as the log has it, with its finish reason and its model. */
  responses?: readonly RawResponse[]
}
type ReplyEvent = Extract<Event, { type: 'agent.message' }>
/** `model` is absent if the model did not give its name. */
export type RawResponse = Omit<ReplyEvent, 'finish'> & { readonly finish: Finish; readonly model?: string }
type Finish = 'stop' | 'calls' | 'length' | 'refusal'

/** `Output` is the answer of a completed run, and `Tools` are the tools whose calls may wait. */
export type Result<Output = Json, Tools extends ToolList[number] = ToolList[number]> = ResultEnd<Output> &
  PendingPart<Tools>
/** The result of a run that came to its end. `orThrow` returns it, and throws for every other. */
export type Completed<Output = Json, Tools extends ToolList[number] = ToolList[number]> = Extract<
  ResultEnd<Output>,
  { status: 'completed' }
> &
  PendingPart<Tools>
/** The waiting calls of the run and of the children that its calls started. */
type PendingPart<Tools extends ToolList[number] = ToolList[number]> = {
  readonly pending: readonly Pending<CallsOf<Tools>>[]
}

type ResultEnd<Output> = Frozen<
  /**
   * `max_tokens`: the answer was cut at its maximum length. `refusal`: the model refused. `cached`: the response cache
   * gave the answer.
   */
  | (CommonResult & {
      status: 'completed'
      stopReason: 'end_turn' | 'max_tokens' | 'refusal'
      output: Output
      cached?: true
    })
  | (CommonResult & { status: 'requires_action'; stopReason: 'approval_required' | 'answer_required' })
  /** `reason` is the reason of the pause, the hold of an import, or how full the context is. */
  | (CommonResult & { status: 'requires_action'; stopReason: 'paused'; reason?: string })
  /** `reason` says why the provider did not answer, if the run waits for a provider. */
  | (CommonResult & { status: 'sleeping'; stopReason: 'rescheduling'; until: number | null; reason?: string })
  | (CommonResult & {
      status: 'interrupted'
      stopReason: 'cancelled' | 'cancelled_by_hook'
      reason?: string
      output?: Json
    })
  /** For the limit `usd`: `account` is the account that cannot pay for the next call, and `short` its amounts. */
  | (CommonResult & { status: 'limit'; stopReason: 'limit_reached' } & Omit<LimitOutcome, 'type'>)
  /** `text` and `reason` are the cause of the halt, and `said` is the model's last text. */
  | (CommonResult & { status: 'halted'; stopReason: 'halted'; reason: string; said: string })
  | (CommonResult & {
      status: 'failed'
      stopReason: FailedReason
      failure: Failure & { classified: ClassifiedFailure | null }
    })
>
type LimitOutcome = Extract<Outcome, { type: 'limit' }>

/** The reason why nothing continues for now. */
type RestReason = { readonly waiting: string; readonly until: number | null; readonly reason?: string }

const PAGE = 1_000
const NO_WARNINGS: readonly string[] = []
const HALTED = { status: 'halted', stopReason: 'halted' } as const
const STOPS = { stop: 'end_turn', length: 'max_tokens', refusal: 'refusal' } as const

/** Follows one input to the run that took it. Without an input it collects the last run. */
export class ResultCollector {
  outcome: Outcome | null = null
  /** The window of the run's model; null until it is looked up. */
  window: number | null = null
  readonly #sessionId: string
  readonly #input: number | null
  readonly #raw: boolean
  /** The start of a run was read, but not its end yet. */
  #open = false
  /** The current run is the requested one. */
  #ours: boolean
  #text = ''
  /** The last text of the model. A reply with only calls has none and keeps the earlier text. */
  #said = ''
  #output: Json = null
  #finish: ReplyEvent['finish']
  #cached: ReplyEvent['cached']
  /** The events of the run alone, in order. They are evaluated once, at the end. */
  #events: Event[] = []
  /** Events that no run has taken yet. */
  #queued: Event[] = []
  /** The run was already open when its first event was read. */
  #late = false
  /** The end of the previous run. */
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
    // The start of a call does not say its outcome, and a wide turn has many calls.
    if (type === 'agent.tool_use') return
    // A run that was held back, or could not be prepared, ends without a start.
    if (type === 'run.started' || (type === 'run.settled' && !this.#open)) this.#reset()
    if (type === 'run.started') this.#open = true
    if (type === 'user.withdraw') this.#queued = this.#queued.filter(({ seq }) => seq !== event.message)
    if (type === 'user.message' || (!this.#open && type !== 'run.settled')) this.#queued.push(event)
    else this.#events.push(event)
    if (type === 'run.started' || type === 'run.settled') this.#promote(event)
    else if (type === 'model.started') {
      // The messages of a followed run that is open are all in it.
      if (this.#queued.length > 0 || !this.#open || !this.#ours) this.#promote(event)
    } else if (type === 'agent.message') this.#reply(event)
    if (type === 'run.settled') this.#settle(event)
  }

  /** Moves the messages that this event takes in to the run. */
  #promote(event: Extract<Event, { type: 'run.started' | 'model.started' | 'run.settled' }>): void {
    const taken = (event.type === 'model.started' ? event.shows : event.inputs) ?? []
    if (this.#input !== null && taken.includes(this.#input)) {
      this.#late = event.type === 'model.started' && !this.#open
      this.#open = this.#ours = true
    }
    if (this.#queued.length === 0 || taken.length === 0) return
    for (const each of this.#queued) {
      if (!taken.includes(each.seq)) continue
      // The message keeps its place in the order of the log.
      const later = this.#events.findIndex(({ seq }) => seq > each.seq)
      this.#events.splice(later, 0, each)
    }
    this.#queued = this.#queued.filter(({ seq }) => !taken.includes(seq))
  }

  #settle({ outcome, output }: Extract<Event, { type: 'run.settled' }>): void {
    this.#open = false
    if (this.#ours) this.outcome = outcome
    // The output of a finalizer.
    if (output !== undefined) [this.#output, this.#said] = [output, JSON.stringify(output)]
    else if (outcome.type === 'interrupted') this.#output = null
    this.#queued = this.#queued.filter(({ type }) => type === 'user.message')
  }

  /**
   * Returns a collector that also has the events before this one began to read: the start of the run, and other inputs
   * that began it.
   */
  async whole(store: Pick<Store, 'read'>): Promise<ResultCollector> {
    const from = this.#late ? 0 : this.#before()
    if (from === null) return this
    const whole = new ResultCollector(this.#sessionId, this.#input, this.#raw)
    // The end of the previous run is included. Otherwise events of that run would count for this one.
    const seen = [...this.#earlier, ...this.#events, ...this.#queued].sort((a, b) => a.seq - b.seq)
    // If the run was already open, only its end was read here.
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
    this.#below = await countSpendingBelow(store, this.#sessionId, this.#own())
  }

  /** The seq before the first unread input that began the run; null if all were read. */
  #before(): number | null {
    if (!this.#ours) return null
    const start = this.#events.find(({ type }) => type === 'run.started' || type === 'run.settled')
    const inputs = start && 'inputs' in start ? (start.inputs ?? []) : []
    const unseen = inputs.filter((input) => !this.#events.some(({ seq }) => seq === input))
    return unseen.length > 0 ? Math.min(...unseen) - 1 : null
  }

  /** Set if a provider counted the last reply. `options` are those of the run, by hash. */
  get counted(): { readonly options?: string } | null {
    const events = this.#own()
    const reply = events.findLast((event) => event.type === 'agent.message')
    if (reply?.type !== 'agent.message' || !reply.usage) return null
    const setup = this.#setup(events)
    return setup?.options === undefined ? {} : { options: setup.options }
  }

  /** For a run from elsewhere, its review has the setup that holds here. */
  #setup(events: readonly Event[]) {
    return events.findLast((event) => event.type === 'run.started' || event.type === 'run.reviewed')
  }

  /** `calls`, `messages`, `sources`, `files` and `context` are computed when they are read: most callers read none of them. */
  result(pending: readonly Pending[], waiting: RestReason): Result {
    const events = this.#own()
    return addLazyFields(this.#ended(events, pending, waiting), events, this.window)
  }

  #ended(events: readonly Event[], pending: readonly Pending[], waiting: RestReason): EagerResult<Result> {
    // The last run's result must show that later messages are held.
    const outcome = this.#input === null && waiting.waiting === 'resume' ? null : this.outcome
    const common = this.#common(events, pending, outcome, waiting.waiting)
    if (!outcome) return unsettledResult(common, waiting, events, pauseReason([...events, ...this.#queued]))
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
        return { ...common, ...endedByField(outcome), status: 'failed', stopReason: outcome.reason, failure }
      }
    }
  }

  #own(): readonly Event[] {
    // Until a run takes the input, the input is the only event.
    return this.#ours ? this.#events : this.#queued.filter(({ seq }) => seq === this.#input)
  }

  #common(
    events: readonly Event[],
    pending: readonly Pending[],
    outcome: Outcome | null,
    waiting: string,
  ): EagerResult<CommonResult & PendingPart> {
    const own = countSpending(events)
    const setup = this.#setup(events)
    const { usage, cost } = this.#below === null ? own : addSpending(own, this.#below)
    const replies = this.#raw ? cloneJson(events.filter((event) => event.type === 'agent.message')) : null
    const responses = replies?.map(buildResponse)
    return {
      sessionId: this.#sessionId,
      text: !this.#ours ? '' : outcome?.type === 'completed' ? this.#text : this.#said,
      usage,
      cost: costOf(cost, own.cost),
      ownUsage: own.usage,
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

  /** Resets the collector for another run. */
  #reset(): void {
    this.outcome = null
    this.#text = ''
    this.#said = ''
    this.#output = null
    this.#earlier = this.#events.slice(-1)
    this.#events = []
  }

  #reply(event: ReplyEvent): void {
    // Text that a hook rejected as the answer is not shown as one.
    const isKept = event.guard === undefined || event.guard === 'replace'
    this.#text = isKept && event.parts.length > 0 ? textOf(event.parts) : ''
    this.#finish = event.finish
    this.#cached = event.cached
    if (this.#text.trim() !== '') this.#said = this.#text
    const { verdict } = event
    if (verdict.type !== 'final') this.#output = null
    else this.#output = verdict.output === undefined ? this.#text : verdict.output
  }
}

/** Takes the tool's name from the kernel's own failure message. */
function endedByField({ reason, failure }: Extract<Outcome, { type: 'failed' }>): { readonly endedBy?: string } {
  if (reason !== 'tool_error' && reason !== 'tool_retries_exceeded') return {}
  const [, tool] = /^Tool "(.+?)" (?:failed: |used up its retries)/s.exec(failure.message) ?? []
  return tool === undefined ? {} : { endedBy: tool }
}

/** Adds the finish reason that the log leaves out as implied. */
function buildResponse(reply: ReplyEvent): RawResponse {
  const finish = reply.finish ?? (reply.calls.length > 0 ? 'calls' : 'stop')
  return { ...reply, finish, ...(reply.route === undefined ? {} : { model: reply.route }) }
}

/** A result without its lazily computed fields. */
type EagerResult<T> = T extends unknown ? Omit<T, 'calls' | 'messages' | 'sources' | 'files' | 'context'> : never

const EVENTS = Symbol('events')
const WINDOW = Symbol('window')
type LazySource = { readonly [EVENTS]: readonly Event[]; readonly [WINDOW]: number | null }

/**
 * The fields are own and enumerable, so that a copy or a print of the result has them too. All results share the same
 * getters: a getter made for each result would live in the shape of its object, where only a major collection finds it,
 * and hold the whole run until then.
 */
const CALLS = lazyProperty('calls', buildCallRecords)
const MESSAGES = lazyProperty('messages', conversationOf)
const SOURCES = lazyProperty('sources', sourcesOf)
const FILES = lazyProperty('files', filesInReplies)
const CONTEXT = lazyProperty('context', contextFillIn)

function lazyProperty(
  name: string,
  make: (events: readonly Event[], window: number | null) => unknown,
): PropertyDescriptor & ThisType<LazySource> {
  return {
    get() {
      // Copied, because the worker goes on with the same events.
      const value = cloneJson(make(this[EVENTS], this[WINDOW]))
      Object.defineProperty(this, name, { value, enumerable: true })
      return value
    },
    enumerable: true,
    configurable: true,
  }
}

function addLazyFields(result: EagerResult<Result>, events: readonly Event[], window: number | null): Result {
  Object.defineProperty(result, EVENTS, { value: events })
  Object.defineProperty(result, WINDOW, { value: window })
  Object.defineProperty(result, 'calls', CALLS)
  Object.defineProperty(result, 'messages', MESSAGES)
  Object.defineProperty(result, 'sources', SOURCES)
  Object.defineProperty(result, 'files', FILES)
  Object.defineProperty(result, 'context', CONTEXT)
  return result as Result
}

function unsettledResult(
  common: EagerResult<CommonResult & PendingPart>,
  { waiting, until, reason }: RestReason,
  events: readonly Event[],
  paused: { readonly reason?: string },
): EagerResult<Result> {
  const asks = common.pending.some(({ needs }) => needs === 'approval')
  if (waiting === 'approval' || (waiting === 'answer' && asks))
    return { ...common, status: 'requires_action', stopReason: 'approval_required' }
  if (waiting === 'answer') return { ...common, status: 'requires_action', stopReason: 'answer_required' }
  if (waiting === 'resume') {
    const why = reason === undefined ? { ...overflowReason(events), ...paused } : { reason }
    const flags = reason === undefined ? common.flags : ({ ...common.flags, held: true } as const)
    return { ...common, flags, status: 'requires_action', stopReason: 'paused', ...why }
  }
  const why = reason === undefined ? outageReason(events) : { reason }
  return { ...common, status: 'sleeping', stopReason: 'rescheduling', until, ...why }
}

/** The reason of the pause that is in effect: the first one's, if there are several. */
function pauseReason(events: readonly Event[]): { readonly reason?: string } {
  let pause: Extract<Event, { type: 'user.interrupt' }> | null = null
  for (const event of events) {
    if (event.type === 'user.interrupt') pause = event.mode === 'pause' ? (pause ?? event) : null
    else if (event.type === 'user.message' && event.when !== 'after') pause = null
  }
  return pause?.why === undefined ? {} : { reason: pause.why }
}

/** The reason why no request was made, if the context is full. */
function overflowReason(events: readonly Event[]): { readonly reason?: string } {
  const last = events.findLast(({ type }) => type === 'agent.message' || type === 'model.failed')
  return last?.type === 'model.failed' && last.class === 'overflow' ? { reason: last.message } : {}
}

/** The reason why the provider did not answer, if no answer came since, or why the run cannot begin. */
function outageReason(events: readonly Event[]): { readonly reason?: string } {
  const last = events.findLast(
    ({ type }) => type === 'agent.message' || type === 'model.failed' || type === 'run.deferred',
  )
  if (last?.type === 'run.deferred') return { reason: last.message }
  return last?.type === 'model.failed' && last.retryAt !== undefined ? { reason: last.message } : {}
}

function contextFillIn(events: readonly Event[], window: number | null): ContextFill | null {
  const tokens = countRequestTokens(events)
  return tokens === null ? null : { tokens, window }
}

function filesInReplies(events: readonly Event[]): readonly BlobRef[] {
  return events.flatMap((event) => {
    return event.type === 'agent.message' ? event.parts.filter((part) => part.type === 'blob') : []
  })
}

function buildCallRecords(events: readonly Event[]): readonly CallRecord[] {
  const log = new CallLog()
  for (const event of events) log.take(event)
  const decisions = decisionsIn(events)
  const calls = log.all.filter(({ reply }) => reply.verdict.type === 'continue')
  return calls.map((call) => buildCallRecord(call, decisions.get(call.key)?.decided ?? null))
}

function buildCallRecord(call: LoggedCall, approved: DecisionRecord | null): CallRecord {
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

/** The model's last text in the run, before these events or in them. A reply with only calls has none. */
export function lastTextOf(transcript: Transcript | null, events: readonly Event[]): string {
  const last = events.findLast((event) => event.type === 'agent.message' && saysSomething(event.parts, event.guard))
  return textOf(last?.type === 'agent.message' ? last.parts : (transcript?.lastSaid ?? []))
}
