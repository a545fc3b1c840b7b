// A client of a terret server: the verbs of the library, over HTTP. It drives nothing: the server does. Nothing of Node is in it, so it
// runs in a browser too.
import type { CallKey, CardOutcome, Event, Json, Labels, Message, Metadata, Page } from '../kernel/index.ts'
import type {
  AgentsAnswer,
  CommandsBody,
  Damaged,
  DoneAnswer,
  DueAnswer,
  EventsAnswer,
  ForkBody,
  Health,
  Me,
  MessageBody,
  MessagesAnswer,
  OpenBody,
  OpenedAnswer,
  PendingAnswer,
  PinnedAnswer,
  PinsAnswer,
  RemovedAnswer,
  ResultAnswer,
  SessionAnswer,
  SessionPage,
  StateAnswer,
  UndoneAnswer,
  UsageAnswer,
  WireAccount,
  WireAgent,
  WireCard,
  WirePending,
  WireReceipt,
  WireResult,
} from '../server/wire.ts'
import { type Changed, type Followed, following, type FollowOptions, watching } from './following.ts'
import { badAnswer, type ClientOptions, type Request, Wires } from './wires.ts'

export type { Changed, Followed, FollowOptions } from './following.ts'
export { type ClientOptions, ServerRefusal } from './wires.ts'
export type * from '../server/wire.ts'

/** Which sessions: as `list` of the library has it, a page at a time. */
export type ListQuery = {
  readonly status?: WireCard['status']
  readonly agent?: string
  readonly folder?: string
  readonly root?: string
  readonly parent?: string
  readonly q?: string
  /** How the last run ended: one or more of these. */
  readonly outcome?: readonly CardOutcome[]
  /** The last event was at or after, and before these times, in ms. */
  readonly since?: number
  readonly until?: number
  readonly order?: 'newest' | 'made' | 'id'
  readonly cursor?: string
  readonly limit?: number
}
/** `by` and `role` of the token count, whatever is said here. */
export type Decision = {
  readonly callId: CallKey
  readonly allow: boolean
  readonly digest?: string
  /** Other arguments than were shown: the call runs with these, if its tool and the policy take them. */
  readonly args?: Json
  readonly sessionId?: string
  readonly why?: string
  readonly role?: string
  readonly usd?: number
  /** What was shown beside it may be handed back, and must be what is asked. */
  readonly tool?: string
  readonly class?: string
  readonly n?: number
  readonly roles?: readonly string[]
}

/** Nothing is sent until a verb is used. */
export function connect(options: ClientOptions): Client {
  return new Client(new Wires(options))
}

export class Client {
  readonly #wires: Wires

  constructor(wires: Wires) {
    this.#wires = wires
  }

  /** A new session, on disk when this resolves; with `input`, its first message too. */
  async open(options: OpenBody = {}): Promise<ClientSession> {
    const { session } = await this.#wires.json<OpenedAnswer>('open', { body: options })
    return this.session(session)
  }

  session(id: string): ClientSession {
    return new ClientSession(id, this.#wires)
  }

  /** One page. `next` is the cursor of the next. */
  list({ outcome, ...query }: ListQuery = {}): Promise<SessionPage> {
    const ends = outcome === undefined ? {} : { outcome: outcome.join() }
    return this.#wires.json('sessions', { query: { ...query, ...ends } })
  }

  async pending(): Promise<readonly WirePending[]> {
    return (await this.#wires.json<PendingAnswer>('pending')).pending
  }

  async remove(session: string): Promise<RemovedAnswer['removed']> {
    return (await this.#wires.json<RemovedAnswer>('remove', { params: { id: session } })).removed
  }

  async agents(): Promise<readonly WireAgent[]> {
    return (await this.#wires.json<AgentsAnswer>('agents')).agents
  }

  async import(file: Json): Promise<ClientSession> {
    const { session } = await this.#wires.json<OpenedAnswer>('import', { body: file })
    return this.session(session)
  }

  /** Cards as they change, until the signal aborts. */
  watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<Changed, undefined> {
    return watching(this.#wires, options.signal)
  }

  health(): Promise<Health> {
    return this.#wires.json('health')
  }

  me(): Promise<Me> {
    return this.#wires.json('me')
  }

  usage(days?: number): Promise<UsageAnswer> {
    return this.#wires.json('usage', { query: { days } })
  }

  due(): Promise<DueAnswer> {
    return this.#wires.json('due')
  }
}

export class ClientSession {
  readonly id: string
  readonly #wires: Wires

  constructor(id: string, wires: Wires) {
    this.id = id
    this.#wires = wires
  }

  #with(request: Request = {}): Request {
    return { ...request, params: { id: this.id, ...request.params } }
  }

  send(input: MessageBody['input'], options: Omit<MessageBody, 'input'> = {}): Promise<WireReceipt> {
    return this.#wires.json('send', this.#with({ body: { ...options, input } }))
  }

  steer(commands: CommandsBody['commands']): Promise<WireReceipt> {
    return this.#wires.json('commands', this.#with({ body: { commands } }))
  }

  /** Sends, and waits until the run settles or waits for a person. With nothing to send: until the last run does. */
  async run(input?: MessageBody['input'], options: Omit<MessageBody, 'input'> = {}): Promise<WireResult> {
    const after = input === undefined ? 0 : (await this.send(input, options)).seq
    for (;;) {
      const { card } = await this.look()
      const { open, result } = await this.#wires.json<ResultAnswer>('result', this.#with({ query: { wait: WAIT_S } }))
      if (!open && result && card.seq > after) return result
    }
  }

  /** Null while it works. Waits so many ms at most. */
  async result(options: { readonly waitMs?: number } = {}): Promise<WireResult | null> {
    const wait = Math.min(30, Math.ceil((options.waitMs ?? 0) / 1_000))
    return (await this.#wires.json<ResultAnswer>('result', this.#with({ query: { wait } }))).result
  }

  /** Every event after `after`, once and in order, also over lost connections; with `deltas` what is being said. It never ends by itself. */
  follow(options: FollowOptions = {}): AsyncGenerator<Followed, undefined> {
    return following(this.#wires, this.id, options)
  }

  async messages(): Promise<readonly Message[]> {
    return (await this.#wires.json<MessagesAnswer>('messages', this.#with())).messages
  }

  /** The card, what waits, and the accounts, in one answer. */
  look(): Promise<SessionAnswer> {
    return this.#wires.json('session', this.#with())
  }

  async card(): Promise<WireCard> {
    return (await this.look()).card
  }

  async pending(): Promise<readonly WirePending[]> {
    return (await this.look()).pending
  }

  async accounts(): Promise<readonly WireAccount[]> {
    return (await this.look()).accounts
  }

  stateAt(seq: number): Promise<StateAnswer> {
    return this.#wires.json('state', this.#with({ query: { at: seq } }))
  }

  /** One page of the log, as the library's `read` gives it. */
  async read(after = 0, limit = 1_000): Promise<Page> {
    const events: Event[] = []
    let damaged: Damaged | undefined
    for (let from: number | null = after; from !== null && events.length < limit && !damaged; ) {
      const query = { after: from, limit: Math.min(1_000, limit - events.length) }
      const page: EventsAnswer = await this.#wires.json('events', this.#with({ query }))
      events.push(...page.events)
      damaged = page.damaged
      if (page.after !== null && page.after <= from) throw badAnswer(200, 'its pages of events do not go on')
      from = page.after
    }
    return { events, ...(damaged ? { damaged } : {}) }
  }

  events(query: EventsQuery = {}): Promise<EventsAnswer> {
    return this.#wires.json('events', this.#with({ query }))
  }

  /** Allow or deny one pending call, as it was shown: its digest goes with it. */
  decide(decision: Decision): Promise<WireReceipt> {
    const { callId, allow, digest, args, sessionId, why, role, usd, tool, class: kind, n, roles } = decision
    const shown = callId === 'budget' ? {} : { args, tool, class: kind, n, roles }
    return this.#wires.json(
      'decide',
      this.#with({ body: { callId, allow, digest, sessionId, why, role, usd, ...shown } }),
    )
  }

  answer(answer: {
    readonly callId: CallKey
    readonly content: string
    readonly ok?: boolean
    readonly sessionId?: string
  }): Promise<WireReceipt> {
    const { callId, content, ok, sessionId } = answer
    return this.#wires.json('answer', this.#with({ body: { callId, content, ok, sessionId } }))
  }

  interrupt(mode: 'stop' | 'pause' = 'stop'): Promise<WireReceipt> {
    return this.#wires.json('interrupt', this.#with({ body: { mode } }))
  }

  async wake(): Promise<void> {
    await this.#wires.json<DoneAnswer>('wake', this.#with())
  }

  async undo(run?: number): Promise<readonly Json[]> {
    return (await this.#wires.json<UndoneAnswer>('undo', this.#with({ body: { run } }))).undone
  }

  async pins(): Promise<PinsAnswer['pins']> {
    return (await this.#wires.json<PinsAnswer>('pins', this.#with())).pins
  }

  /** A text, or a message by its seq. For a session that rests; while it works, send the rule with `pin`. */
  pin(what: string | number): Promise<PinnedAnswer> {
    return this.#wires.json('pin', this.#with({ body: typeof what === 'string' ? { text: what } : { seq: what } }))
  }

  /** By its number, or by its `name` in the list. */
  async unpin(what: number | string): Promise<void> {
    await this.#wires.json<DoneAnswer>('unpin', this.#with({ params: { seq: String(what) } }))
  }

  async fork(options: ForkBody = {}): Promise<ClientSession> {
    const { session } = await this.#wires.json<OpenedAnswer>('fork', this.#with({ body: options }))
    return new ClientSession(session, this.#wires)
  }

  async blob(
    ref: string | { readonly hash: string },
  ): Promise<{ readonly media: string; readonly data: Uint8Array } | null> {
    const hash = typeof ref === 'string' ? ref : ref.hash
    const response = await this.#wires.once('blob', this.#with({ params: { hash } }))
    if (!response.ok) return null
    const media = response.headers.get('x-media-type') ?? 'application/octet-stream'
    return { media, data: new Uint8Array(await response.arrayBuffer()) }
  }

  async export(format: 'jsonl' | 'json' = 'jsonl'): Promise<string> {
    return (await this.#wires.ask('export', this.#with({ query: { format } }))).text()
  }

  async close(): Promise<void> {
    await this.#wires.json<DoneAnswer>('close', this.#with())
  }
}

export type EventsQuery = {
  readonly after?: number
  readonly before?: number
  readonly limit?: number
  readonly types?: string
  readonly q?: string
}

const WAIT_S = 25

export type { Labels, Metadata }
