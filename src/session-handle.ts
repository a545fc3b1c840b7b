// One session, as a caller holds it: the verbs. Each verb either appends to the inbox or reads; the worker does the rest.
import { cardOf } from './kernel/card.ts'
import type { CallKey } from './kernel/content.ts'
import { type Event, eventId, type InboxBody, type OwnerBody, type OwnerEvent } from './kernel/event.ts'
import { Fault } from './kernel/failure.ts'
import { fold } from './kernel/fold.ts'
import type { Call } from './kernel/ledger.ts'
import { next } from './kernel/next.ts'
import type { Blob, Charge, OwnerWrite, Page } from './kernel/ports.ts'
import type { LiveDelta } from './runtime/live.ts'
import { EMPTY, type Session } from './kernel/session.ts'
import { Book } from './runtime/book.ts'
import { Follower } from './runtime/follow.ts'
import { type Input, readInput } from './runtime/input.ts'
import { raiseOf, wasRaised } from './runtime/purse.ts'
import { Queue } from './runtime/queue.ts'
import { Collector, type Pending, type Result } from './runtime/result.ts'
import { sleep } from './runtime/sleep.ts'
import { type UndoneCall, undoRun, undoText } from './runtime/undo.ts'
import type { Looked, Worker } from './runtime/worker.ts'
import type { World } from './runtime/world.ts'

export type SendOptions = {
  /** `next` steers at the next request (default), `after` starts its own run later, `now` supersedes the open request. */
  readonly when?: 'next' | 'after' | 'now'
  /** Your own id: sending the same one twice is one message. */
  readonly id?: string
  readonly by?: string
}
export type SentReceipt = {
  readonly eventId: string
  readonly seq: number
  readonly duplicate: boolean
  /** The session waits for a person: the message is kept and comes after the decision. */
  readonly queued: boolean
}
export type Decision = {
  readonly callId: CallKey
  readonly allow: boolean
  readonly by: string
  readonly why?: string
  readonly role?: string
  /** What you saw. When given, it must be the pending action's. */
  readonly digest?: string
  /** For `callId: 'budget'`: how many dollars more. */
  readonly usd?: number
}
export type StreamOptions = {
  /** Events after this seq. Default: from the beginning, or from the input that the stream sends. */
  readonly after?: number
  readonly deltas?: boolean
}
export type StreamEvent =
  | (Event & { readonly session: string })
  | ({ readonly type: 'delta'; readonly session: string } & LiveDelta)
export type RunStream = AsyncIterable<StreamEvent> & { readonly result: Promise<Result> }

/** What `decide` takes for a session that ended at its budget. */
const BUDGET = 'budget'
const ASKS_FOR_MORE: Pending = { callId: BUDGET, tool: BUDGET, args: {}, needs: 'approval' }

export class SessionHandle {
  readonly id: string
  readonly #world: World
  readonly #worker: Worker

  constructor(id: string, world: World, worker: Worker) {
    this.id = id
    this.#world = world
    this.#worker = worker
  }

  /** Admits a message durably. It resolves when the message is on disk; the work goes on by itself. */
  async send(input: Input, options: SendOptions = {}): Promise<SentReceipt> {
    const receipt = await this.#admit(...this.#message(input, options))
    this.#kick()
    return receipt
  }

  /** Sends and drives until that run settles or somebody else is needed. With nothing to send: the last run, driven to rest. */
  async run(input?: Input, options: SendOptions = {}): Promise<Result> {
    if (input === undefined) return this.#follow(null, Math.max(0, (await this.#head()).began - 1))
    const { seq } = await this.#admit(...this.#message(input, options))
    return this.#follow(seq, seq)
  }

  stream(input?: Input, options: StreamOptions & SendOptions = {}): RunStream {
    if (input === undefined) return this.streamFrom(options, async () => null)
    return this.streamFrom(options, async () => (await this.#admit(...this.#message(input, options))).seq)
  }

  /** Allow or deny one pending call. The first decision stands. */
  async decide(decision: Decision): Promise<SentReceipt> {
    if (decision.callId === BUDGET) return this.#raise(decision)
    const call = await this.#open(decision.callId, 'asked', 'approval')
    const digest = call.proposal.digest ?? ''
    if (decision.digest !== undefined && decision.digest !== digest) {
      throw new Fault(
        'decision_stale',
        `Call ${decision.callId} is not the action you saw. Read it again before you decide.`,
      )
    }
    const { callId, allow, by, role, why } = decision
    const id = `decision:${callId}:${by}`
    const optional = { ...(role === undefined ? {} : { role }), ...(why === undefined ? {} : { why }) }
    return this.#answered({ type: 'user.tool_confirmation', id, call: callId, digest, allow, by, ...optional }, callId)
  }

  /** More money for a session whose last run ended at its budget: the work goes on in a new run. A denial is noted. */
  async #raise({ allow, by, why, usd = 0 }: Decision): Promise<SentReceipt> {
    const amount = Math.round(usd * 1_000_000)
    if (allow && !(amount > 0 && Number.isFinite(amount)))
      throw new Fault('invalid_input', 'Say how much more the session may spend, in dollars: usd.')
    const { store, random } = this.#world
    const seq = await this.#asOwner(async (session) => {
      const payer = { session: this.id, root: session.root ?? this.id, run: session.began, at: store.now() }
      const waits = session.run === null && session.last?.type === 'limit' && session.last.limit === 'usd'
      if (!waits || (await wasRaised(session.agent, payer, store)))
        throw new Fault('decision_stale', `Session ${this.id} does not wait for a budget.`)
      const decided = allow ? `${by} raised the budget by $${usd}` : `${by} did not raise the budget`
      const note = {
        type: 'note.added',
        kind: 'limit',
        text: `${decided}${why === undefined ? '' : `: ${why}`}.`,
      } as const
      if (!allow) return { value: session.seq + 1, events: [note] }
      const parts = [{ type: 'text', text: 'The budget was raised. Go on.' }] as const
      const go = { type: 'user.message', id: random.id(), parts, when: 'after', by } as const
      const charges = raiseOf(session.agent, payer, amount)
      return { value: session.seq + 2, events: [note], charges, sends: [go] }
    })
    if (allow) this.#kick()
    return { eventId: eventId(this.id, seq), seq, duplicate: false, queued: false }
  }

  /** Answer one call that is owned outside. The first answer stands. */
  async answer(answer: {
    readonly callId: CallKey
    readonly content: string
    readonly ok?: boolean
    readonly by?: string
  }): Promise<SentReceipt> {
    const { callId, content, ok = true, by } = answer
    await this.#open(callId, 'outside', 'an answer')
    const id = `answer:${callId}`
    return this.#answered(
      { type: 'user.custom_tool_result', id, call: callId, ok, content, ...(by === undefined ? {} : { by }) },
      callId,
    )
  }

  async interrupt(mode: 'stop' | 'pause' = 'stop'): Promise<SentReceipt> {
    const receipt = await this.#admit({ type: 'user.interrupt', id: this.#world.random.id(), mode })
    this.#kick()
    return receipt
  }

  /**
   * Takes back what the calls of a run changed, newest first: the last run, or the one whose `run.started` has this seq.
   * What somebody changed since is left alone. The model is told at its next request.
   */
  async undo(run?: number): Promise<readonly UndoneCall[]> {
    return this.#asOwner(async (session) => {
      if (session.run !== null)
        throw new Fault('session_busy', `Session ${this.id} has an open run. Interrupt it before you undo one.`)
      const what = { session: this.id, agent: session.agent, run: run ?? session.began }
      const calls = await undoRun(this.#world, what, new AbortController().signal)
      const event = { type: 'note.added', kind: 'undo', text: this.#world.redactor.text(undoText(calls)) } as const
      return { value: calls, events: calls.length > 0 ? [event] : [] }
    })
  }

  /**
   * A new session that goes on from here, or from an earlier event of this one. Nothing is copied and nothing here changes:
   * the new session reads this log up to that event.
   */
  async fork(options: { readonly at?: number; readonly id?: string } = {}): Promise<SessionHandle> {
    const { seq, agent } = await this.#head()
    const at = options.at ?? seq
    if (!(Number.isInteger(at) && at >= 1 && at <= seq))
      throw new Fault('invalid_input', `Session ${this.id} has events 1 to ${seq}; it cannot be forked at ${at}.`)
    const forked = new SessionHandle(options.id ?? this.#world.random.id(), this.#world, this.#worker)
    await this.#world.store.commit([forked.#creation(agent, { session: this.id, seq: at })])
    return forked
  }

  /** The log itself, from `after` on. */
  read(after = 0, limit?: number): Promise<Page> {
    return this.#world.store.read(this.id, after, limit)
  }

  /** Nothing more will be accepted. What runs is interrupted first. */
  async close(): Promise<void> {
    await this.interrupt()
    await this.#worker.wake(this.id)
    await this.#asOwner(async () => ({ value: null, events: [{ type: 'session.closed' }] }))
  }

  /** What only the owner may do, outside of any run: claim, look, act, write it down and give the session back. */
  async #asOwner<T>(
    act: (session: Session) => Promise<{
      readonly value: T
      readonly events: readonly OwnerBody[]
      readonly charges?: readonly Charge[]
      /** For its own inbox, in the same commit. */
      readonly sends?: readonly InboxBody[]
    }>,
  ): Promise<T> {
    const { store, redactor } = this.#world
    const claim = await store.claim(this.id, this.#worker.id, 30_000)
    if (!claim)
      throw new Fault('session_busy', `Session ${this.id} is being driven by another worker. Try again when it rests.`)
    const { epoch } = claim
    try {
      const session = await this.#head()
      const { value, events, charges = [], sends = [] } = await act(session)
      const at = Math.max(session.at, store.now())
      const stamped = events.map((body, i): OwnerEvent => {
        return { seq: session.seq + 1 + i, at, epoch, ...redactor.body(body) }
      })
      if (stamped.length === 0) return value
      const inbox = { session: this.id, lane: 'inbox', events: sends.map((body) => redactor.body(body)) } as const
      const write = { ...this.#ownerWrite(session, stamped, epoch), charges }
      await store.commit(sends.length > 0 ? [write, inbox] : [write])
      return value
    } finally {
      await store.release(this.id, epoch)
    }
  }

  async create(agent: string): Promise<void> {
    await this.#world.store.commit([this.#creation(agent)])
  }

  /** Creates the session and admits its first message in one commit. */
  async createWith(agent: string, input: Input): Promise<number> {
    const [event, blobs] = this.#message(input, {})
    const message = { session: this.id, lane: 'inbox', events: [this.#world.redactor.body(event)], blobs } as const
    const [, receipt] = await this.#world.store.commit([this.#creation(agent), message])
    return receipt?.seqs[0] ?? 0
  }

  async begin(agent: string, input: Input): Promise<Result> {
    const seq = await this.createWith(agent, input)
    return this.#follow(seq, seq)
  }

  /** One reader: history, then live, no gap and no duplicate. With an input of its own, leaving early interrupts its run. */
  streamFrom(options: StreamOptions, send: () => Promise<number | null>): RunStream {
    const { world, id } = { world: this.#world, id: this.id }
    const queue = new Queue<StreamEvent>()
    let settled = 0
    // Across processes a delta may come after the event that settles its call: then the event has said it all.
    const hear = (delta: LiveDelta): void => {
      const { seq, kind, part, offset, text } = delta
      if (seq > settled) queue.push({ type: 'delta', session: id, seq, kind, part, offset, text })
    }
    const unlive = options.deltas ? world.live.subscribe(id, hear) : () => {}
    let sent: number | null = null
    let done = false
    const see = (event: Event): void => {
      if (event.type === 'agent.message' || event.type === 'model.failed') settled = event.seq
      queue.push({ session: id, ...event })
    }
    const result = send()
      .then((seq) => {
        sent = seq
        return this.#follow(seq, options.after ?? (seq === null ? 0 : seq - 1), see)
      })
      .finally(() => {
        done = true
        unlive()
      })
    result.then(
      () => queue.end(),
      (error: unknown) => queue.fail(error),
    )
    const leave = async (): Promise<void> => {
      if (!done && sent !== null) await this.interrupt()
    }
    return { result, [Symbol.asyncIterator]: () => queue.iterate(leave) }
  }

  /** Waits until the input's run has settled, or until the session rests for somebody else. */
  async #follow(input: number | null, after: number, onEvent?: (event: Event) => void): Promise<Result> {
    const collector = new Collector(this.id, input)
    let wake: (() => void) | null = null
    const event = (e: Event): void => {
      onEvent?.(e)
      collector.take(e)
      wake?.()
    }
    const follower = new Follower(this.#world.store, this.id, after, { event, error: () => wake?.() })
    try {
      await follower.catchUp()
      for (;;) {
        const looked = await this.#worker.wake(this.id)
        await follower.catchUp()
        if (collector.outcome || looked.type === 'rested' || looked.type === 'stopped')
          return await this.#result(collector, looked)
        // Another worker drives it, or ours was lost: wait for news, or for a lease to run out.
        const news = new Promise<void>((resolve) => {
          wake = resolve
        })
        await Promise.race([news, sleep(this.#world.clock, 500)])
      }
    } finally {
      follower.close()
    }
  }

  async #result(collector: Collector, looked: Looked): Promise<Result> {
    const rest = looked.type === 'rested' ? looked : { waiting: 'nothing', until: null }
    const { outcome } = collector
    if (outcome?.type === 'limit' && outcome.limit === 'usd') return collector.result([ASKS_FOR_MORE], rest)
    if (outcome) return collector.result([], rest)
    return collector.result(pendingOf(await this.#head()), rest)
  }

  async #admit(event: InboxBody, blobs: readonly Blob[] = []): Promise<SentReceipt> {
    const { store, redactor } = this.#world
    const [receipt] = await store.commit([{ session: this.id, lane: 'inbox', events: [redactor.body(event)], blobs }])
    const seq = receipt?.seqs[0] ?? 0
    const queued = event.type === 'user.message' && (await store.card(this.id))?.status === 'requires_action'
    return { eventId: eventId(this.id, seq), seq, duplicate: receipt?.duplicate ?? false, queued }
  }

  async #answered(event: InboxBody, callId: CallKey): Promise<SentReceipt> {
    try {
      const receipt = await this.#admit(event)
      this.#kick()
      return receipt
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'id_reused') throw error
      throw new Fault('decision_stale', `Call ${callId} was already decided. The first decision stands.`, error.message)
    }
  }

  async #open(callId: CallKey, state: 'asked' | 'outside', what: string): Promise<Call> {
    const session = await this.#head()
    const call = session.run?.turn?.open.find((c) => c.key === callId)
    if (call?.state.type === state) return call
    const code = Number(callId.split('.')[0]) <= session.seq ? 'decision_stale' : 'call_unknown'
    throw new Fault(code, `Call ${callId} is not waiting for ${what}. Run \`pending\` to see what is.`)
  }

  /** The work goes on in the background; whoever waits for it sees its error, and the log keeps the state. */
  #kick(): void {
    this.#worker.wake(this.id).catch(() => {})
  }

  async #head(): Promise<Session> {
    const book = new Book(this.id, this.#world.store)
    await book.open()
    if (book.session.seq === 0)
      throw new Fault('session_missing', `There is no session ${this.id}. Check the id, or open a new one.`)
    return book.session
  }

  #message(input: Input, options: SendOptions): [Extract<InboxBody, { type: 'user.message' }>, readonly Blob[]] {
    const { parts, blobs } = readInput(input)
    const empty = parts.every((part) => part.type === 'text' && part.text.trim() === '')
    if (empty) throw new Fault('invalid_input', 'A message must not be empty.')
    const id = options.id ?? this.#world.random.id()
    const by = options.by === undefined ? {} : { by: options.by }
    return [{ type: 'user.message', id, parts, when: options.when ?? 'next', ...by }, blobs]
  }

  #creation(agent: string, fork?: { readonly session: string; readonly seq: number }): OwnerWrite {
    const at = this.#world.store.now()
    const created = { seq: 1, at, epoch: 0, type: 'session.created', agent, planner: 'model' } as const
    return this.#ownerWrite(EMPTY, [fork === undefined ? created : { ...created, fork }], 0)
  }

  #ownerWrite(before: Session, events: readonly OwnerEvent[], epoch: number): OwnerWrite {
    const after = events.reduce(fold, before)
    const card = cardOf(this.id, after, next(after, { now: this.#world.store.now(), epoch }))
    return { session: this.id, lane: 'owner', epoch, expectedSeq: before.seq, events, card }
  }
}

function pendingOf(session: Session): readonly Pending[] {
  const open = session.run?.turn?.open ?? []
  return open.flatMap((call): readonly Pending[] => {
    const { tool, args, gate, digest } = call.proposal
    if (call.state.type === 'outside') return [{ callId: call.key, tool, args, needs: 'answer' }]
    if (call.state.type !== 'asked' || gate?.type !== 'ask') return []
    return [
      {
        callId: call.key,
        tool,
        args,
        needs: 'approval',
        expiresAt: gate.expiresAt,
        ...(digest === undefined ? {} : { digest }),
      },
    ]
  })
}
