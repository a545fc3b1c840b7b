// The three effects on the world: prepare a run, call the model, run a call. What goes wrong is part of the landing.
// Nothing is decided here; admission and the verdict are recorded with the reply.
import type { Json, Mutable, Proposal, Verdict } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import { assert } from '../kernel/failure.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Effect } from '../kernel/next.ts'
import type { Blob, ModelFailure, Reply } from '../kernel/ports.ts'
import { project } from '../kernel/project.ts'
import { refused, unknown } from '../kernel/result.ts'
import { admit, type Asking } from '../tools/admit.ts'
import { actionAccount, withinBudget } from '../tools/budget.ts'
import { type Done, execute, reconcile } from '../tools/run.ts'
import { NO_METADATA } from '../tools/output.ts'
import type { Book } from './book.ts'
import type { AbortReason, Abandon, Fail, FlightContext, Landing, Perform } from './flight.ts'
import { detach } from './detach.ts'
import { isPriced, OUTPUT_TOKENS, type Priced } from '../models/hosted.ts'
import { looksLikeCall } from '../models/leaked.ts'
import { judgeOutput } from '../models/output.ts'
import { CAUTIOUS } from '../models/price.ts'
import { missed, missOf, recalled, type Sent } from './prefix.ts'
import { Preparer } from './prepare.ts'
import { CHARS_A_TOKEN, Purse, raisedOf, type Rate } from './purse.ts'
import type { Redactor } from './redact.ts'
import { Talk, ToolTalk } from './talk.ts'
import type { Tools } from './toolbox.ts'
import { type Agent, type Frame, Frames, refOf, resolved, textBlob, type World } from './world.ts'

/** Longer texts live beside the log, by hash. */
const INLINE_BYTES_MAX = 64 * 1024
const PREPARE_MS = 60_000
const BACKOFF_MS = 200
const BACKOFF_MS_MAX = 30_000
const RETRY_MS_MAX = 120_000
/** A million dollars. */
const COST_MAX = 1e12

export class Performer {
  readonly #world: World
  readonly #frames: Frames
  readonly #preparer: Preparer
  readonly #rates = new WeakMap<Agent, Omit<Rate, 'baseChars'>>()
  readonly #told = new WeakMap<object, number>()
  readonly #offers = new WeakMap<Frame, { readonly of: Tools; readonly offered: Tools }>()

  constructor(world: World) {
    this.#world = world
    this.#frames = new Frames(world.store)
    this.#preparer = new Preparer(world)
  }

  /** The effects of one session's attempt. */
  for(book: Book): { readonly perform: Perform; readonly fail: Fail } {
    const perform: Perform = (effect, flight) => {
      if (effect.type === 'call') return this.#call(book, effect, flight)
      if (effect.type === 'run') return this.#run(book, effect, flight)
      return this.#preparer.prepare(effect, book.session.agent, flight.signal)
    }
    return { perform, fail: (effect, error) => failedLanding(effect, book, error) }
  }

  async #call(book: Book, effect: Extract<Effect, { type: 'call' }>, flight: FlightContext): Promise<Landing> {
    const agent = this.#world.agent(book.session.agent)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
    const transcript = book.shown ?? (await book.transcript())
    assert(book.started, 'a model call without model.started')
    let request = project(book.id, frame, transcript, book.started)
    if (transcript.hasBlobs) request = { ...request, messages: await resolved(this.#world.store, request.messages) }
    if (agent.output?.asked) request = { ...request, output: agent.output.asked }
    // Reading took time. If the call is no longer the open one, nobody must be asked.
    if (!flight.clear() || book.session.run?.model?.seq !== effect.seq) {
      return { events: [stoppedCall(flight.reason ?? 'interrupted')] }
    }
    const talk = new Talk(this.#world, book.id, effect.seq, flight)
    let answer: Reply | ModelFailure
    try {
      answer = await agent.model.call(request, talk)
    } finally {
      talk.finish()
    }
    if (answer.type === 'failure') return { events: [await this.#failure(answer, book, flight.reason, talk.spoke)] }
    const { model } = agent
    const { messages } = transcript
    const miss = isPriced(model) ? await this.#missed(book, { frame, messages, answer, model }) : undefined
    const tools = agent.tools.seen ?? (await agent.tools.open(flight.signal))
    const admitted = admit(answer.calls, this.#offered(frame, tools), this.#asking(agent))
    const read = admitted instanceof Promise ? await admitted : admitted
    const calls = answer.finish === 'length' ? read.map((call, i) => uncut(call, answer.calls[i]?.args ?? '')) : read
    const judged = agent.output ? await judgeOutput(agent.output, answer) : verdictOf(answer, frame)
    const perHour = agent.policy.actionsPerHour
    const message = messageOf(answer, calls, judged, miss)
    if (perHour === undefined || calls.length === 0) return { events: [message] }
    return this.#budgeted(message, {
      perHour,
      agent: agent.name,
      key: `${book.id}:${effect.seq}`,
    })
  }

  /** Did this request begin with the bytes of the one before? Only models that are paid for have a cache worth watching. */
  async #missed(
    book: Book,
    {
      frame,
      messages,
      answer,
      model,
    }: Pick<Sent, 'frame' | 'messages'> & { readonly answer: Reply; readonly model: Priced },
  ): Promise<Json | undefined> {
    const { route, usage } = answer
    // Whoever spoke before may have been asked by another process.
    const spoke = messages.some((message) => message.role === 'assistant')
    const sent =
      book.sent ?? (spoke ? await recalled(this.#world.store, book.id, book.session.seq, this.#frames) : null)
    // A copy: a compaction changes the list itself.
    const now = { frame, messages: messages.slice(), route }
    book.sent = { ...now, inputTokens: usage?.inputTokens ?? 0 }
    const miss = sent && missOf(sent, now)
    return miss ? missed(miss, sent, (await model.profile()).price) : undefined
  }

  /** What acts is counted in the same commit as the reply that asks for it. */
  async #budgeted(
    message: Message,
    { perHour, agent, key }: { readonly perHour: number; readonly agent: string; readonly key: string },
  ): Promise<Landing> {
    const { store } = this.#world
    const account = actionAccount(agent, store.now())
    const used = (await store.account(account))?.spent ?? 0
    const { calls, spent } = withinBudget(message.calls, perHour - used, perHour)
    const events = [{ ...message, calls }]
    if (spent === 0) return { events }
    const hold = { type: 'hold', key: `${key}:actions`, accounts: [account], amount: spent } as const
    return { events, charges: [hold, { type: 'settle', key: hold.key, amount: spent }] }
  }

  /** What calls of this session's model may cost. Only with a budget does anything have to be found out for it. */
  async purse(book: Book): Promise<Purse> {
    if (book.session.agent === '') return UNPRICED
    const agent = this.#world.agent(book.session.agent)
    if (agent.budget === null) return UNPRICED
    await book.count()
    const rate = this.#rates.get(agent) ?? (await rateOf(agent))
    this.#rates.set(agent, rate)
    const { id, session } = book
    if (session.run && !this.#frozen(book)) await this.#freeze(book)
    const payer = { session: id, root: session.root ?? id, run: session.began, at: this.#world.store.now() }
    const raised = await raisedOf(agent.name, payer, this.#world.store)
    return new Purse(agent.name, agent.budget, { ...rate, baseChars: () => this.#baseChars(book, agent) }, raised)
  }

  /** What stands before the conversation: as the run froze it, or as the run that begins just now will. */
  #baseChars(book: Book, agent: Agent): number {
    const told = this.#frozen(book) ?? agent.tools.seen
    if (told === null) return agent.instructions.length
    const known = this.#told.get(told) ?? baseOf(told, agent)
    this.#told.set(told, known)
    return known
  }

  /** A tool that came while the run was open is unknown to it. */
  #offered(frame: Frame, tools: Tools): Tools {
    const known = this.#offers.get(frame)
    if (known?.of === tools) return known.offered
    const offered = new Map([...tools].filter(([name]) => frame.definitions.has(name)))
    this.#offers.set(frame, { of: tools, offered })
    return offered
  }

  #asking({ approvalMs, policy, environment }: Agent): Asking {
    const { store, redactor } = this.#world
    return { now: store.now(), approvalMs, policy, environment, redactor }
  }

  #frozen(book: Book): Frame | null {
    return book.frame !== null && book.frame.run === book.session.run?.seq ? book.frame.frame : null
  }

  async #freeze(book: Book): Promise<Frame> {
    const { run } = book.session
    assert(run, 'an effect outside of a run')
    const frame = await this.#frames.of(run.toolset, run.instructions)
    book.frame = { run: run.seq, frame }
    return frame
  }

  async #failure(
    failure: ModelFailure,
    book: Book,
    reason: AbortReason | null,
    spoke: boolean,
  ): Promise<Extract<OwnerBody, { type: 'model.failed' }>> {
    if (reason !== null) return stoppedCall(reason, spoke)
    const { retryAfterMs, partial } = failure
    const { failures = 0, limits = null } = book.session.run ?? {}
    const message = failure.class === 'overflow' ? await this.#full(failure, book) : failure.message || failure.class
    const failed = {
      type: 'model.failed',
      class: failure.class,
      message,
      ...(partial === undefined ? {} : { partial }),
    } as const
    // What was shown cannot be taken back, and would be shown again.
    if (!failure.retryable || spoke) return { ...failed, retryable: false }
    // Nobody tries again, so the end of the run names its cause.
    if (limits !== null && failures + 1 >= limits.modelAttempts) {
      return { ...failed, message: `${message} Given up after ${failures + 1} tries.`, retryable: false }
    }
    // Those who were told the same come back one after the other.
    const backoff = Math.max(retryAfterMs ?? 0, Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** failures))
    const wait = Math.min(RETRY_MS_MAX, backoff * (1 + this.#world.random.fraction() / 4))
    return { ...failed, retryable: true, retryAt: this.#world.store.now() + Math.ceil(wait) }
  }

  /** Nothing is cut silently: whoever looks is told how full it is, and what can be done. */
  async #full(failure: ModelFailure, book: Book): Promise<string> {
    const { model } = this.#world.agent(book.session.agent)
    await book.count()
    const tokens = Math.ceil(book.chars / CHARS_A_TOKEN)
    const most = isPriced(model) ? ` of ${(await model.profile()).contextTokens}` : ''
    return `The context is full: about ${tokens}${most} tokens. Fork the session from an earlier event, or go on with a model that takes more. (${failure.message})`
  }

  async #run(book: Book, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = this.#world.agent(book.session.agent)
    const tools = agent.tools.seen ?? (await agent.tools.open(flight.signal))
    const tool = tools.get(call.proposal.tool)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
    if (!tool || frame.definitions.get(tool.name) !== tool.definition) {
      const what = tool ? 'has changed' : 'is no longer there'
      return {
        events: [refused(call.key, 'error', `ToolChanged: tool "${call.proposal.tool}" ${what} since this run began.`)],
      }
    }
    const context = new ToolTalk(this.#world, book.id, call.key, flight, tool.secrets)
    if (!flight.clear()) return abandon(effect, flight.reason ?? 'lost', false)
    const args = detach(call.proposal.args)
    const leave = this.#world.watchdog?.enter({ tool: tool.name, call: call.key, session: book.id })
    const done = await (mode === 'execute' ? execute(tool, args, context) : reconcile(tool, args, context))
    leave?.()
    if (done.type === 'undecided') return { events: [unknown(call.key)] }
    if (done.type === 'failed' && flight.reason !== null) return abandon(effect, flight.reason, true)
    return resultOf(call, done, context.kept, this.#world.redactor)
  }
}

const UNPRICED = new Purse('', {}, null)
/** For a model that does not say what it costs. */
const UNKNOWN_RATE = { price: CAUTIOUS, outputTokensMax: OUTPUT_TOKENS }

async function rateOf({ model }: Agent): Promise<Omit<Rate, 'baseChars'>> {
  return isPriced(model)
    ? { price: (await model.profile()).price, outputTokensMax: model.outputTokensMax }
    : UNKNOWN_RATE
}

function baseOf(told: Frame | Tools, { instructions, output }: Agent): number {
  const asked = output?.asked ? JSON.stringify(output.asked.schema).length : 0
  if ('definitions' in told) return asked + told.instructions.length + JSON.stringify(told.tools).length
  const tools = [...told.values()].map(({ name, description, parameters, instructions: said }) => {
    return name.length + description.length + JSON.stringify(parameters).length + said.length
  })
  return tools.reduce((sum, chars) => sum + chars, asked + instructions.length)
}

/** What is written for an effect that was stopped before it started, or did not land in time. */
export const abandon: Abandon = (effect, reason, started) => {
  if (effect.type === 'call') return { events: [stoppedCall(reason)] }
  if (effect.type === 'prepare') {
    const failure = { kind: 'Timeout', message: 'Preparing the run took too long.' } as const
    const outcome = { type: 'failed', reason: 'prepare_failed', failure } as const
    return { events: [{ type: 'run.settled', outcome, inputs: effect.inputs }] }
  }
  const { key, proposal } = effect.call
  const never = !started && effect.mode === 'execute'
  if (never) return { events: [refused(key, 'aborted', 'Stopped before it started: it did not run.')] }
  if (proposal.effect === 'once') return { events: [unknown(key)] }
  const late = reason === 'timeout'
  const text = late ? `Timed out after ${proposal.timeoutMs} ms.` : 'Stopped while it ran.'
  return { events: [refused(key, late ? 'timeout' : 'aborted', text)] }
}

export function deadlineOf(effect: Effect, now: number): number {
  if (effect.type === 'call') return effect.deadline
  return now + (effect.type === 'run' ? effect.call.proposal.timeoutMs : PREPARE_MS)
}

function stoppedCall(reason: AbortReason, spoke = false): Extract<OwnerBody, { type: 'model.failed' }> {
  if (reason === 'timeout') {
    return { type: 'model.failed', class: 'timeout', message: 'The model did not answer in time.', retryable: !spoke }
  }
  const kind = reason === 'superseded' ? 'superseded' : 'interrupted'
  return { type: 'model.failed', class: kind, message: `The call was stopped: ${reason}.`, retryable: true }
}

function failedLanding(effect: Effect, book: Book, error: unknown): Landing {
  const message =
    error instanceof Error && error.message ? error.message : String(error) || 'an error without a message'
  if (effect.type === 'run') return { events: [refused(effect.call.key, 'error', message)] }
  if (effect.type === 'call') return { events: [{ type: 'model.failed', class: 'other', message, retryable: false }] }
  const outcome = { type: 'failed', reason: 'prepare_failed', failure: { kind: 'Failed', message } } as const
  return { events: [{ type: 'run.settled', outcome, inputs: effect.inputs.filter((seq) => seq <= book.session.seq) }] }
}

/** An envelope becomes the event: long content goes beside the log, metadata only if there is any. */
type Ended = Exclude<Done, { type: 'undecided' }>

function resultOf(call: Call, done: Ended, kept: readonly Blob[], redactor: Redactor): Landing {
  const { ok, metadata } = done.output
  const content = redactor.text(done.output.content)
  const long = content.length > INLINE_BYTES_MAX / 4 && Buffer.byteLength(content) > INLINE_BYTES_MAX
  const blob = long ? textBlob(content, 'text/plain') : null
  const event: Mutable<Extract<OwnerBody, { type: 'agent.tool_result' }>> = {
    type: 'agent.tool_result',
    call: call.key,
    status: ok ? 'ok' : 'error',
    content: blob ? refOf(blob) : content,
  }
  const kind = done.type === 'failed' ? done.kind : 'Failed'
  if (!ok) event.failure = { kind, message: content.slice(0, 500) || kind }
  if (done.type === 'failed' && done.retryKind !== undefined) event.retryKind = done.retryKind
  if (done.attempts > 1) event.metadata = { ...metadata, attempts: done.attempts }
  else if (metadata !== NO_METADATA) event.metadata = metadata
  const blobs = blob ? [...kept, blob] : kept
  return blobs.length > 0 ? { events: [event], blobs } : { events: [event] }
}

type Message = Extract<OwnerBody, { type: 'agent.message' }>

function messageOf(reply: Reply, calls: readonly Proposal[], verdict: Verdict, miss: Json | undefined): Message {
  const message: Mutable<Message> = { type: 'agent.message', parts: reply.parts, calls, verdict }
  if (reply.usage) message.usage = reply.usage
  // What is no amount of money is not counted as one: then it is what was held.
  if (reply.cost && reply.cost > 0 && reply.cost < COST_MAX) message.cost = reply.cost
  if (reply.route) message.route = reply.route
  if (miss !== undefined) message.missed = miss
  return message
}

/** A call that ran out of room is not run: what did not come any more may be what mattered. */
function uncut(call: Proposal, args: string): Proposal {
  if (call.gate?.type === 'refuse' || isWhole(args)) return call
  const { gate: _gate, digest: _digest, ...rest } = call
  const message = `The call of "${call.tool}" was cut off by the limit of the answer and was not run. Make it shorter, or split it.`
  const failure = { kind: 'InvalidInput', message, recoverable: true } as const
  const retryKind = 'InvalidArguments'
  return { ...rest, gate: { type: 'refuse', failure, retryKind, metadata: { retry: true, error_type: retryKind } } }
}

function isWhole(args: string): boolean {
  try {
    JSON.parse(args)
    return true
  } catch {
    return false
  }
}

function verdictOf(reply: Reply, frame: Frame): Verdict {
  if (reply.calls.length > 0) return { type: 'continue' }
  let text = ''
  for (const part of reply.parts) if (part.type === 'text') text += part.text
  if (text.trim() === '') return reply.finish === 'length' ? { type: 'empty', boost: true } : { type: 'empty' }
  if (frame.tools.length === 0 || !looksLikeCall(text, [...frame.definitions.keys()])) return { type: 'final' }
  return {
    type: 'retry_user_message',
    text: 'That was a tool call written as text, and nothing was run. Call the tool itself.',
  }
}
