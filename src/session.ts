// The verbs of a session in this process. What each promises is said in sessions/verbs.ts; callers know no more than that.
import { eventId } from './view/text.ts'
import type { BlobRef, CallKey } from './kernel/content.ts'
import type { InboxBody } from './kernel/event.ts'
import { Fault } from './kernel/failure.ts'
import { type Call, outsideOf } from './kernel/ledger.ts'
import type { Blob, Page, Receipt } from './ports/store.ts'
import { opening, type Session } from './kernel/session.ts'
import type { Message } from './kernel/transcript.ts'
import type { ContextReport } from './context/report.ts'
import {
  type Command,
  commandsOf,
  interruptOf,
  type MessageBody,
  messageOf,
  type Said,
  type SendOptions,
} from './sessions/command.ts'
import { interrupted } from './sessions/interrupt.ts'
import { checkDecision, checkUnder, confirmationOf, type ApprovalDecision } from './sessions/approval-decision.ts'
import { headOf, heldText } from './riders/children/tree.ts'
import { Feed, streamStart } from './sessions/stream.ts'
import { readersOf } from './sessions/stream-text.ts'
import { sentBefore } from './sessions/log-follower.ts'
import { blobFor } from './view/blobs.ts'
import { BUDGET, isStopped } from './view/calls.ts'
import { checkOwnBlobs, checkRoom, type Input, namedBlobs } from './sessions/input.ts'
import type { ChildRow, Spawned, SpawnOptions } from './sessions/children.ts'
import type { SessionState } from './sessions/look.ts'
import { asOwner, type Beginning, creation, type Owned } from './engine/owner.ts'
import { attended, follow, type Followed, followedBy, type Place, whenBegun } from './sessions/await-run.ts'
import type { Result } from './sessions/result.ts'
import { orThrow, required } from './sessions/run-failed.ts'
import { type UndoneCall, undoing } from './sessions/undo.ts'
import {
  type Answer,
  checkAnswer,
  checkBlob,
  checkFork,
  checkRunOf,
  checkSend,
  checkStream,
  type ForkOptions,
  type RunOptions,
  type StreamOptions,
} from './sessions/verb-options.ts'
import type {
  CompactedTo,
  CompactOptions,
  Pin,
  Pinned,
  RunStream,
  SentReceipt,
  Session as Verbs,
} from './sessions/verbs.ts'
import type { Reader, Worker } from './engine/worker.ts'
import { schemaKey, SCHEMAS_KEPT, type Services } from './engine/wiring.ts'
import { checkRootId, ownId } from './stores/plan/id.ts'

export class SessionHandle implements Verbs {
  readonly id: string
  readonly #services: Services
  readonly #worker: Worker

  constructor(id: string, services: Services, worker: Worker) {
    this.id = id
    this.#services = services
    this.#worker = worker
  }

  async send(input: Input, options: SendOptions = {}): Promise<SentReceipt> {
    checkSend(options)
    const { signal } = options
    const receipt = await this.#enter(input, options)
    if (!signal) this.#kick()
    else {
      const followed = { input: receipt.seq, after: receipt.seq - 1 }
      attended(this.#worker, (reader) => this.#heed(reader, followed, signal)).catch(() => {})
    }
    return receipt
  }

  async steer(commands: readonly Command[]): Promise<void> {
    this.#check()
    const { store, random, redactor } = this.#services
    const said = commandsOf(commands, random)
    if (said.some(({ event }) => event.type === 'user.interrupt' && event.mode === 'stop'))
      return void (await this.interrupt())
    await checkOwnBlobs(store, this.id, said.flatMap(namedBlobs))
    const words = said.filter(({ event }) => event.type === 'user.message').length
    if (words > 0) await this.#checkRoom(words)
    const events = said.map(({ event }) => redactor.body(event))
    await store.commit([{ session: this.id, lane: 'inbox', events, blobs: said.flatMap(({ blobs }) => blobs) }])
    this.#kick()
  }

  /** The message is on disk when this resolves. */
  async #enter(input: Input, options: SendOptions): Promise<SentReceipt> {
    options.signal?.throwIfAborted()
    const said = messageOf(input, options, this.#services.random)
    const named = namedBlobs(said)
    if (named.length > 0) await checkOwnBlobs(this.#services.store, this.id, named)
    if (said.event.options !== undefined) await this.#checkChoice(said, options, null)
    if (options.when !== 'idle') return this.#queue(said, options)
    try {
      return await this.#enterIdle(said)
    } catch (error) {
      // A retry whose first send succeeded is a duplicate, not a conflict.
      const again = error instanceof Fault && error.code === 'session_busy' && options.id !== undefined
      const seq = again
        ? await sentBefore(this.#services.store, this.id, this.#services.redactor.body(said.event))
        : null
      if (seq === null) throw error
      return { eventId: eventId(this.id, seq), seq, duplicate: true, queued: false }
    }
  }

  /** What is wrong with the options is said before anything is written. */
  async #checkChoice({ event }: Said<MessageBody>, options: RunOptions, agent: string | null): Promise<void> {
    const { schemas, store } = this.#services
    const { checkChoice } = await import('./sessions/run-choice.ts')
    const name = agent ?? (await store.card(this.id))?.agent
    if (name !== undefined) checkChoice(this.#services, name, options, event.parts)
    const { schema } = followedBy(options)
    if (schema) schemas.set(schemaKey(this.id, event.id), schema)
    const [oldest] = schemas.keys()
    if (schemas.size > SCHEMAS_KEPT && oldest !== undefined) schemas.delete(oldest)
  }

  /** Admits a message, unless too many wait. One that was sent before is known, however many wait. */
  async #queue(said: Said, { id }: SendOptions): Promise<SentReceipt> {
    // Only here: a harness that is closed while the room is looked up still takes what was sent before.
    this.#check()
    try {
      await this.#checkRoom(1)
    } catch (error) {
      const { store, redactor } = this.#services
      const seq = id === undefined ? null : await sentBefore(store, this.id, redactor.body(said.event))
      if (seq === null) throw error
    }
    return this.#write(said)
  }

  async #checkRoom(more: number): Promise<void> {
    const { seq = 0 } = (await this.#services.store.card(this.id)) ?? {}
    await checkRoom(this.#worker.heads, this.id, seq, more)
  }

  /** Decided as the owner, so that of two callers one gets in: one that had to wait for the other's message was not the first. */
  async #enterIdle({ event, blobs }: Said): Promise<SentReceipt> {
    const { seq: seen } = await headOf(this.#services.store, this.id)
    const { sent } = await this.#asOwner(async (session) => {
      if (session.run !== null || session.inputs.length > 0 || session.seq !== seen)
        throw new Fault('session_busy', `Session ${this.id} has an open run. Wait for it, or send with another "when".`)
      return { value: null, events: [], sends: [event], blobs }
    })
    const { seqs: [seq = 0] = [], duplicate = false } = sent ?? {}
    return { eventId: eventId(this.id, seq), seq, duplicate, queued: false }
  }

  async run(input?: Input, options: SendOptions & RunOptions = {}): Promise<Result> {
    this.#check()
    checkRunOf(options)
    const result = await attended(this.#worker, async (reader) => {
      if (input === undefined) {
        const { began } = await headOf(this.#services.store, this.id)
        return this.#follow(reader, { input: null, after: Math.max(0, began - 1), ...followedBy(options) })
      }
      const { seq } = await this.#enter(input, options)
      return this.#heed(reader, { input: seq, after: seq - 1, ...followedBy(options) }, options.signal)
    })
    return required(result, options.require)
  }

  stream(input?: Input, options: StreamOptions & SendOptions = {}): RunStream {
    checkStream(options)
    if (input === undefined) return this.streamFrom(options, async () => null)
    return this.streamFrom(options, async () => (await this.#enter(input, options)).seq)
  }

  async messages(): Promise<readonly Message[]> {
    const { messagesOf } = await import('./sessions/look.ts')
    return messagesOf(this.#services.store, this.id)
  }

  async blob(ref: Pick<BlobRef, 'hash'>): Promise<Blob | null> {
    this.#check()
    return blobFor(this.#services.store, this.id, checkBlob(ref))
  }

  async state(): Promise<SessionState> {
    this.#check()
    const { stateOf } = await import('./sessions/look.ts')
    return stateOf(this.#services, this.id)
  }

  async context(): Promise<ContextReport> {
    const { contextOf } = await import('./sessions/look.ts')
    return contextOf(this.#services, this.id)
  }

  async decide(decision: ApprovalDecision): Promise<SentReceipt> {
    checkDecision(decision)
    const other = await this.#other(decision)
    if (other) return other.decide(decision)
    if (decision.callId === BUDGET) return this.#raise(decision)
    const call = await this.#open(decision.callId, 'asked', 'approval')
    if (decision.under !== undefined)
      checkUnder(decision, call, (await headOf(this.#services.store, this.id)).run?.said)
    return this.#answered(confirmationOf(decision, call, this.#services.store.now()), decision.callId)
  }

  /** The child that a decision or an answer is for, if it is one. */
  async #other({ sessionId = this.id }: { readonly sessionId?: string }): Promise<SessionHandle | null> {
    if (sessionId === this.id) return null
    const { checkBelow } = await import('./sessions/children.ts')
    await checkBelow(this.#services, this.id, sessionId)
    return new SessionHandle(sessionId, this.#services, this.#worker)
  }

  async #raise(decision: ApprovalDecision): Promise<SentReceipt> {
    this.#check()
    const { raise } = await import('./sessions/raise.ts')
    const raised = await raise(this.#services, this.id, decision)
    for (const { session } of raised) this.#kick(session)
    const { session = this.id, seq = 0 } = raised[0] ?? {}
    return { eventId: eventId(session, seq), seq, duplicate: false, queued: false }
  }

  async answer(answer: Answer): Promise<SentReceipt> {
    const { callId, content, ok = true, by } = answer ?? ({} as Partial<Answer>)
    if (typeof ok !== 'boolean' || typeof content !== 'string')
      throw new Fault('invalid_input', 'An answer has a text as content, and true or false as ok.')
    checkAnswer(answer)
    const other = await this.#other(answer)
    if (other) return other.answer(answer)
    const { proposal } = await this.#open(callId, 'outside', 'an answer')
    const { child, answers } = outsideOf(proposal) ?? {}
    if (child !== undefined || answers !== undefined)
      throw new Fault('decision_stale', `Call ${callId} waits for its child: only that answers it.`)
    const id = ownId('answer', callId)
    return this.#answered(
      { type: 'user.custom_tool_result', id, call: callId, ok, content, ...(by === undefined ? {} : { by }) },
      callId,
    )
  }

  async interrupt(mode: 'stop' | 'pause' = 'stop'): Promise<SentReceipt> {
    const event = interruptOf(mode, this.#services.random)
    this.#check()
    const { seq, duplicate, woken } = await interrupted(this.#services, this.id, event)
    for (const session of woken) this.#kick(session)
    return { eventId: eventId(this.id, seq), seq, duplicate, queued: false }
  }

  async undo(run?: number): Promise<readonly UndoneCall[]> {
    return (await this.#asOwner(undoing(this.#services, this.id, run))).value
  }

  async pin(what: string | number): Promise<Pinned> {
    const { pinning } = await import('./sessions/pin.ts')
    return (await this.#asOwner(pinning(this.#services, this.id, what))).value
  }

  async unpin(seq: number): Promise<void> {
    const { unpinning } = await import('./sessions/pin.ts')
    await this.#asOwner(unpinning(this.#services, this.id, seq))
  }

  async pins(): Promise<readonly Pin[]> {
    const { pinsOf } = await import('./sessions/pin.ts')
    return pinsOf(this.#services, this.id)
  }

  async compact(options: CompactOptions = {}): Promise<CompactedTo | null> {
    const { compacting } = await import('./sessions/compact.ts')
    return (await this.#asOwner(compacting(this.#services, this.id, options))).value
  }

  async spawn(agent: string, prompt: string, options: SpawnOptions = {}): Promise<Spawned> {
    this.#check()
    const { spawn } = await import('./sessions/children.ts')
    const spawned = await spawn(this.#services, this.id, agent, prompt, options)
    this.#kick(spawned.sessionId)
    return spawned
  }

  async children(): Promise<readonly ChildRow[]> {
    this.#check()
    const { childrenOf } = await import('./sessions/children.ts')
    return childrenOf(this.#services, this.id)
  }

  async fork(options: ForkOptions = {}): Promise<Verbs> {
    this.#check()
    checkFork(options)
    const { beginningOf } = await import('./sessions/fork.ts')
    const beginning = await beginningOf(this.#services, this.id, options)
    const forked = new SessionHandle(options.id ?? this.#services.random.id(), this.#services, this.#worker)
    await forked.create(beginning)
    return forked
  }

  read(after = 0, limit?: number): Promise<Page> {
    return this.#services.store.read(this.id, after, limit)
  }

  async close(): Promise<void> {
    await this.interrupt()
    await this.#worker.wake(this.id)
    await this.#asOwner(async () => ({ value: null, events: [{ type: 'session.closed' }] }))
  }

  /** What only the owner may do, outside of any run. Looks that were asked for meanwhile could not happen, so one is made after it. */
  async #asOwner<T>(
    act: (session: Session, reader: Reader, epoch: number) => Promise<Owned<T>>,
  ): Promise<{ value: T; sent: Receipt | null }> {
    this.#check()
    const reader = this.#worker.attend()
    try {
      return await asOwner(this.#services, this.id, (session, epoch) => act(session, reader, epoch))
    } finally {
      this.#worker.leave(reader)
      const { due = null } = (await this.#services.store.card(this.id)) ?? {}
      if (due !== null) this.#kick()
    }
  }

  async create(beginning: Beginning): Promise<void> {
    checkRootId(this.id)
    await this.#services.store.commit([creation(this.#services, this.id, beginning)])
  }

  /** Creates the session and admits its first message in one commit. */
  async createWith(beginning: Beginning, input: Input, options: RunOptions): Promise<number> {
    const { store, random, redactor } = this.#services
    options.signal?.throwIfAborted()
    const said = messageOf(input, options, random)
    await checkOwnBlobs(store, this.id, namedBlobs(said))
    if (said.event.options !== undefined) await this.#checkChoice(said, options, beginning.agent)
    const { event, blobs } = said
    const message = { session: this.id, lane: 'inbox', events: [redactor.body(event)], blobs } as const
    const [, receipt] = await store.commit([creation(this.#services, this.id, beginning), message])
    return receipt?.seqs[0] ?? 0
  }

  async begin(beginning: Beginning, input: Input, options: RunOptions): Promise<Result> {
    const result = await attended(this.#worker, async (reader) => {
      const seq = await this.createWith(beginning, input, options)
      return this.#heed(reader, { input: seq, after: seq - 1, ...followedBy(options) }, options.signal)
    })
    return required(result, options.require)
  }

  /** One reader: history, then live, no gap and no duplicate. With an input of its own, leaving early interrupts its run. */
  streamFrom(options: StreamOptions, send: () => Promise<number | null>): RunStream {
    const feed = new Feed(this.#services, options)
    const gone = new AbortController()
    let [wanted, done] = [false, false]
    const begun = this.#begin(options, send)
    const read = (live: boolean): Promise<Result> => {
      return attended(this.#worker, async (reader) => {
        const { input, from, ...root } = await begun
        const followed = { input, after: from, ...followedBy(options) }
        if (!live) return this.#follow(reader, followed)
        const see = { event: feed.root(this.id, root), end: () => feed.end() }
        return this.#heed(reader, { ...followed, see, gone: gone.signal }, options.signal)
      })
    }
    const followed = read(true).finally(() => {
      done = true
    })
    followed.catch((error: unknown) => feed.fail(error))
    const leave = async (): Promise<void> => {
      feed.close()
      if (done) return
      if (!wanted) gone.abort()
      const { input } = await begun
      if (input !== null && !options.detach) await this.#stopRunOf(input)
    }
    let again: Promise<Result> | null = null
    /** A stream that was left early did not wait for its result: then the log is read. */
    const result = (): Promise<Result> => {
      wanted = true
      if (!gone.signal.aborted) return followed
      again ??= read(false)
      return again
    }
    const readers = readersOf(feed, leave, this.id)
    return {
      get result() {
        return result()
      },
      get text() {
        return readers.text()
      },
      orThrow: async (strictness) => orThrow(await result(), strictness),
      [Symbol.asyncIterator]: () => readers.events(),
    }
  }

  async #begin(options: StreamOptions, send: () => Promise<number | null>) {
    this.#check()
    return streamStart(this.#services.store, this.id, options, send)
  }

  /** Stops the run that this input opened, or will open. One that another input opened goes on. */
  async #stopRunOf(input: number): Promise<void> {
    const session = await headOf(this.#services.store, this.id)
    const { run, inputs } = session
    const start = run && (await this.#services.store.read(this.id, run.seq - 1, 1)).events[0]
    if (run && start?.type === 'run.started' && start.inputs.includes(input)) return this.#stop(run.seq)
    if (!inputs.some(({ seq }) => seq === input)) return
    if (run === null && opening(session).includes(input)) await this.interrupt()
    // Another run is open. It is not waited for.
    else whenBegun(this.#place, input, (begun) => void this.#stop(begun).catch(() => {}))
  }

  async #stop(run: number): Promise<void> {
    const { random } = this.#services
    await this.#admit({ event: { type: 'user.interrupt', id: random.id(), mode: 'stop', run }, blobs: [] })
    this.#kick()
  }

  get #place(): Place {
    return { id: this.id, services: this.#services, worker: this.#worker }
  }

  async #follow(reader: Reader, followed: Followed): Promise<Result> {
    const result = await follow(this.#place, reader, followed)
    if (!followed.schema) return result
    const { parsedResult } = await import('./sessions/run-choice.ts')
    return parsedResult(this.#services, result, followed.schema)
  }

  /** Follows a run, which the signal stops. */
  async #heed(reader: Reader, followed: Followed, signal: AbortSignal | undefined): Promise<Result> {
    const { input } = followed
    if (!signal || input === null) return this.#follow(reader, followed)
    const stop = (): void => void this.#stopRunOf(input).catch(() => {})
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await this.#follow(reader, followed)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  async #admit(said: Said): Promise<SentReceipt> {
    this.#check()
    return this.#write(said)
  }

  async #write({ event, blobs }: Said): Promise<SentReceipt> {
    const { store, redactor } = this.#services
    const [receipt] = await store.commit([{ session: this.id, lane: 'inbox', events: [redactor.body(event)], blobs }])
    const seq = receipt?.seqs[0] ?? 0
    const queued = event.type === 'user.message' && (await store.card(this.id))?.status === 'requires_action'
    return { eventId: eventId(this.id, seq), seq, duplicate: receipt?.duplicate ?? false, queued }
  }

  async #answered(event: InboxBody, callId: CallKey): Promise<SentReceipt> {
    try {
      const receipt = await this.#admit({ event, blobs: [] })
      this.#kick()
      return receipt
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'id_reused') throw error
      throw new Fault('decision_stale', `Call ${callId} was already decided. The first decision stands.`, error.message)
    }
  }

  async #open(callId: CallKey, state: 'asked' | 'outside', what: string): Promise<Call> {
    const session = await headOf(this.#services.store, this.id)
    if (session.held) throw new Fault('session_held', heldText(this.id))
    if (await isStopped(session, (id) => headOf(this.#services.store, id))) {
      const text = `Call ${callId} was stopped: its run was interrupted. Nothing waits for ${what}.`
      throw new Fault('decision_stale', text)
    }
    const call = session.run?.foreign ? undefined : session.run?.turn?.open.find((c) => c.key === callId)
    if (call?.state.type === state) return call
    const code = Number(callId.split('.')[0]) <= session.seq ? 'decision_stale' : 'call_unknown'
    throw new Fault(code, `Call ${callId} is not waiting for ${what}. Run \`pending\` to see what is.`)
  }

  /** The work goes on in the background; callers that wait for it see its error, and the log keeps the state. */
  #kick(session = this.id): void {
    if (this.#worker.drives) this.#worker.wake(session).catch(() => {})
  }

  #check(): void {
    if (this.#worker.closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
  }
}
