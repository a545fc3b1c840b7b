// The three effects on the world: prepare a run, call the model, run a call. What goes wrong is part of the landing.
// Nothing is decided here; admission and the verdict are recorded with the reply.
import type { CallKey, Mutable, Proposal, Verdict } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'
import { assert } from '../kernel/failure.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Effect } from '../kernel/next.ts'
import type { Blob, CallContext, Clock, Delta, ModelFailure, Reply, Store } from '../kernel/ports.ts'
import { project } from '../kernel/project.ts'
import { refused, unknown } from '../kernel/result.ts'
import type { Message } from '../kernel/transcript.ts'
import { admit, type Asking } from '../tools/admit.ts'
import { type Done, execute, reconcile } from '../tools/run.ts'
import { NO_METADATA } from '../tools/output.ts'
import type { ToolContext } from '../tools/tool.ts'
import type { Book } from './book.ts'
import type { AbortReason, Abandon, Fail, FlightContext, Landing, Perform } from './flight.ts'
import { detach } from './detach.ts'
import { Preparer } from './prepare.ts'
import { sleep } from './sleep.ts'
import { type Agent, findText, type Frame, Frames, readText, refOf, textBlob, type World } from './world.ts'

/** Longer texts live beside the log, by hash. */
const INLINE_BYTES_MAX = 64 * 1024
const PREPARE_MS = 60_000

export class Performer {
  readonly #world: World
  readonly #frames: Frames
  readonly #preparer: Preparer

  constructor(world: World) {
    this.#world = world
    this.#frames = new Frames(world.store)
    this.#preparer = new Preparer(world)
  }

  /** The effects of one session's attempt. */
  for(book: Book): { readonly perform: Perform; readonly fail: Fail } {
    const perform: Perform = (effect, flight) => {
      if (effect.type === 'call') return this.#call(book, effect, flight)
      return effect.type === 'run' ? this.#run(book, effect, flight) : this.#prepare(book, effect)
    }
    return { perform, fail: (effect, error) => failedLanding(effect, book, error) }
  }

  async #prepare(book: Book, effect: Extract<Effect, { type: 'prepare' }>): Promise<Landing> {
    return this.#preparer.prepare(effect, book.session.agent)
  }

  async #call(book: Book, effect: Extract<Effect, { type: 'call' }>, flight: FlightContext): Promise<Landing> {
    const agent = this.#world.agent(book.session.agent)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
    const transcript = book.shown ?? (await book.transcript())
    assert(book.started, 'a model call without model.started')
    let request = project(book.id, frame, transcript, book.started)
    if (transcript.hasBlobs) request = { ...request, messages: await this.#resolve(request.messages) }
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
    if (answer.type === 'failure') return { events: [this.#failure(answer, flight.reason, book)] }
    const admitted = admit(answer.calls, agent.tools, this.#asking(agent))
    const calls = admitted instanceof Promise ? await admitted : admitted
    return { events: [messageOf(answer, calls)] }
  }

  #asking({ approvalMs, policy, environment }: Agent): Asking {
    return { now: this.#world.store.now(), approvalMs, policy, environment }
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

  /** Content that lives beside the log is put back for the model. */
  #resolve(messages: readonly Message[]): Promise<readonly Message[]> {
    return Promise.all(
      messages.map(async (message): Promise<Message> => {
        if (message.role === 'tool') {
          return typeof message.content === 'string'
            ? message
            : { ...message, content: await readText(this.#world.store, message.content.hash) }
        }
        if (!message.parts.some((part) => part.type === 'blob')) return message
        const parts = message.parts.map(async (part) =>
          part.type === 'blob' ? ({ type: 'text', text: await readText(this.#world.store, part.hash) } as const) : part,
        )
        return { ...message, parts: await Promise.all(parts) }
      }),
    )
  }

  #failure(failure: ModelFailure, reason: AbortReason | null, book: Book): OwnerBody {
    if (reason !== null) return stoppedCall(reason)
    const { message, retryable, retryAfterMs } = failure
    const failed = { type: 'model.failed', class: failure.class, message: message || failure.class, retryable } as const
    if (!retryable) return failed
    const backoff = Math.min(30_000, 200 * 2 ** (book.session.run?.failures ?? 0))
    const wait = Math.max(retryAfterMs ?? 0, backoff * (1 + this.#world.random.fraction() / 4))
    return { ...failed, retryAt: this.#world.store.now() + Math.ceil(Math.min(wait, 120_000)) }
  }

  async #run(book: Book, effect: Extract<Effect, { type: 'run' }>, flight: FlightContext): Promise<Landing> {
    const { call, mode } = effect
    const agent = this.#world.agent(book.session.agent)
    const tool = agent.tools.get(call.proposal.tool)
    const frame = this.#frozen(book) ?? (await this.#freeze(book))
    if (!tool || frame.definitions.get(tool.name) !== tool.definition) {
      const what = tool ? 'has changed' : 'is no longer there'
      return {
        events: [refused(call.key, 'error', `ToolChanged: tool "${call.proposal.tool}" ${what} since this run began.`)],
      }
    }
    const context = new ToolTalk(this.#world, book.id, call.key, flight)
    if (!flight.clear()) return abandon(effect, flight.reason ?? 'lost', false)
    const args = detach(call.proposal.args)
    const done = await (mode === 'execute' ? execute(tool, args, context) : reconcile(tool, args, context))
    if (done.type === 'undecided') return { events: [unknown(call.key)] }
    if (done.type === 'failed' && flight.reason !== null) return abandon(effect, flight.reason, true)
    return resultOf(call, done, context.kept)
  }
}

/** What a model sees of its flight. A class, because one is made for every call. */
class Talk implements CallContext {
  readonly #world: World
  readonly #session: string
  readonly #seq: number
  readonly #flight: FlightContext
  #spoke = false

  constructor(world: World, session: string, seq: number, flight: FlightContext) {
    this.#world = world
    this.#session = session
    this.#seq = seq
    this.#flight = flight
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  readonly emit = (delta: Delta): void => {
    this.#spoke = true
    this.#world.live.publish(this.#session, this.#seq, delta)
  }

  readonly sleep = (ms: number): Promise<void> => sleep(this.#world.clock, ms, this.#flight.signal)

  finish(): void {
    if (this.#spoke) this.#world.live.finish(this.#session, this.#seq)
  }
}

const NONE: readonly Blob[] = []

/** What a tool sees of its flight. */
class ToolTalk implements ToolContext {
  readonly session: string
  readonly call: CallKey
  /** What the handler put beside the log: it lands with the result. */
  kept: readonly Blob[] = NONE
  readonly clock: Clock
  readonly #store: Store
  readonly #flight: FlightContext

  constructor({ store, clock }: World, session: string, call: CallKey, flight: FlightContext) {
    this.session = session
    this.call = call
    this.clock = clock
    this.#store = store
    this.#flight = flight
  }

  get key(): string {
    return `${this.session}:${this.call}`
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  // Made when looked at: one of these stands in every call, and few handlers look.
  get keep(): ToolContext['keep'] {
    return (text, media = 'text/plain') => {
      const blob = textBlob(text, media)
      this.kept = [...this.kept, blob]
      return refOf(blob)
    }
  }

  get recall(): ToolContext['recall'] {
    return (hash) => findText(this.#store, hash)
  }
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

function stoppedCall(reason: AbortReason): OwnerBody {
  if (reason === 'timeout') {
    return { type: 'model.failed', class: 'timeout', message: 'The model did not answer in time.', retryable: true }
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
function resultOf(call: Call, done: Exclude<Done, { type: 'undecided' }>, kept: readonly Blob[]): Landing {
  const { ok, content, metadata } = done.output
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

function messageOf(reply: Reply, calls: readonly Proposal[]): OwnerBody {
  const message: Mutable<Extract<OwnerBody, { type: 'agent.message' }>> = {
    type: 'agent.message',
    parts: reply.parts,
    calls,
    verdict: verdictOf(reply),
  }
  if (reply.usage) message.usage = reply.usage
  if (reply.cost) message.cost = reply.cost
  return message
}

function verdictOf(reply: Reply): Verdict {
  if (reply.calls.length > 0) return { type: 'continue' }
  const text = reply.parts.some((part) => part.type === 'text' && part.text.trim() !== '')
  if (text) return { type: 'final' }
  return reply.finish === 'length' ? { type: 'empty', boost: true } : { type: 'empty' }
}
