// The world outside the log: what tools really did, and what models were really shown. It never reads a session's state.
import type { CallKey, EffectClass } from '../src/kernel/content.ts'
import type { ModelFailure, Request } from '../src/ports/model.ts'
import { textOf } from '../src/view/shown-text.ts'
import { requestBytes } from './bytes.ts'
import { RETRY_AFTER_MS } from './cast.ts'
import { leaksInRequest } from './secrets.ts'

export type Execution = {
  readonly session: string
  readonly call: CallKey
  readonly effect: EffectClass
  times: number
}

/** `own` are instructions of the run alone; else all runs of an epoch are told the same. */
type Told = { readonly run: number; readonly own: string | null; readonly epoch: number }

export class Oracle {
  readonly executions = new Map<string, Execution>()
  readonly violations: string[] = []
  /** Intents that are on disk, as the invariants saw them committed. */
  readonly intents = new Set<string>()
  /**
   * Where each call was to act when it was asked about. After a review these are several: a process that stood still may still run the call
   * that it was allowed to run before.
   */
  readonly places = new Map<string, Set<string | undefined>>()
  /** The arguments that a call had at each of its intents: a handler that a lost worker left may still act with earlier ones. */
  readonly args = new Map<string, Set<string>>()
  /** What the tools are defined as, by name: people who edit a call decide about it as it is defined. */
  readonly definitions = new Map<string, string>()
  /** How often a model refused because its provider was down. */
  refused = 0
  /** How often tools that a run needs were away. */
  absent = 0
  /** How often a summary was asked for. */
  summaries = 0
  /** From when until when the provider is down. */
  outage: { readonly from: number; readonly until: number; readonly long: boolean } | null = null
  /** Requests whose connection was reset after the head of the answer, and those that were asked to wait. */
  readonly resets = new Set<string>()
  readonly putOff = new Set<string>()
  readonly #spoken = new Set<string>()
  readonly #cuts = new Map<string, number>()
  /** What the runs of a session are to be told, in order. */
  readonly #told = new Map<string, readonly Told[]>()
  /** What the first request of an epoch began with. */
  readonly #heads = new Map<string, string>()
  readonly #compacted = new Map<string, readonly number[]>()
  readonly #pins = new Map<string, readonly { readonly seq: number; readonly text: string; shown: number }[]>()
  readonly #requests = new Map<string, { readonly seq: number; readonly bytes: string }>()

  /** A call was asked about, or admitted, for this place. */
  admit(key: string, place: string | undefined): void {
    this.places.set(key, (this.places.get(key) ?? new Set()).add(place))
  }

  /** The intent of a call was recorded, with these arguments. */
  intend(key: string, args: unknown): void {
    this.args.set(key, (this.args.get(key) ?? new Set()).add(JSON.stringify(args)))
  }

  /** A handler is about to act on the world. */
  execute(session: string, call: CallKey, effect: EffectClass, place?: string, args?: unknown): void {
    const key = `${session}:${call}`
    if (args !== undefined && !this.args.get(key)?.has(JSON.stringify(args)))
      this.violations.push(`O9 ${key} ran with arguments that none of its intents had`)
    if (!this.places.get(key)?.has(place)) this.violations.push(`O6 ${key} ran in another place than was asked about`)
    if (!this.intents.has(key)) this.violations.push(`O1 ${key} ran before its intent was on disk`)
    const seen = this.executions.get(key) ?? { session, call, effect, times: 0 }
    seen.times += 1
    this.executions.set(key, seen)
    if (effect === 'once' && seen.times > 1) this.violations.push(`O2 ${key} is once and ran ${seen.times} times`)
  }

  /** A model has shown the beginning of its answer. */
  cut({ session }: Request): void {
    this.#cuts.set(session, (this.#cuts.get(session) ?? 0) + 1)
  }

  cutsOf({ session }: Request): number {
    return this.#cuts.get(session) ?? 0
  }

  spoke({ session, seq }: Request): void {
    this.#spoken.add(`${session}:${seq}`)
  }

  hasSpoken(session: string, seq: number): boolean {
    return this.#spoken.has(`${session}:${seq}`)
  }

  /** How a provider that is down fails: always the same in a short outage, in three ways by turns in a long one. */
  refuse({ session, seq }: Pick<Request, 'session' | 'seq'>): ModelFailure {
    const down = { type: 'failure', class: 'server', message: 'the provider is down', retryable: true } as const
    const way = this.outage?.long ? this.refused % 3 : 0
    this.refused += 1
    // What a reset costs is assumed: the first session must have money left for its first answer.
    if (way === 1 && session !== 's0') {
      this.resets.add(`${session}:${seq}`)
      return { ...down, class: 'network', message: 'the connection was reset', broken: true }
    }
    if (way === 2) this.putOff.add(`${session}:${seq}`)
    return way === 2 ? { ...down, retryAfterMs: RETRY_AFTER_MS } : down
  }

  isDown(now: number): boolean {
    return this.outage !== null && now >= this.outage.from && now < this.outage.until
  }

  executed(session: string, call: CallKey): boolean {
    return this.executions.has(`${session}:${call}`)
  }

  /** A run began that is to have instructions of its own, or what the first request of its epoch showed. */
  begun(session: string, told: Told): void {
    this.#told.set(session, [...(this.#told.get(session) ?? []), told])
  }

  /** The run that a request belongs to. */
  #runAt(session: string, seq: number): Told | undefined {
    return this.#told.get(session)?.findLast(({ run }) => run < seq)
  }

  /** A model is asked: the request must be whole, and start with the bytes of the one before, if that was told the same. */
  ask(request: Request): void {
    const { session, seq, instructions } = request
    const told = this.#runAt(session, seq)
    if (told && told.own !== null && told.own !== instructions)
      this.violations.push(`O7 ${session}@${seq}: was told "${instructions}" and not "${told.own}"`)
    if (told?.own === null) this.#kept(request, told.epoch)
    const bytes = requestBytes(request)
    const last = this.#requests.get(session) ?? { seq: 0, bytes: '' }
    // A process that froze may ask late: then its request is the older one, and a prefix of what was asked since.
    const late = seq < last.seq
    const before = this.#runAt(session, last.seq)
    const [older, newer] = late ? [seq, last.seq] : [last.seq, seq]
    const cut = (this.#compacted.get(session) ?? []).some((at) => at > older && at < newer)
    const other = cut || before?.own !== told?.own || before?.epoch !== told?.epoch
    const whole = other || (late ? last.bytes.startsWith(bytes) : bytes.startsWith(last.bytes))
    if (!whole) this.violations.push(`O3 ${session}@${seq}: the request does not extend the one at ${last.seq}`)
    if (!late) this.#requests.set(session, { seq, bytes })
    this.#pairs(request)
    this.#pinned(request)
    this.violations.push(...leaksInRequest(request))
  }

  /** The session is removed. What comes under its id begins anew. */
  forget(session: string): void {
    for (const known of [this.#told, this.#compacted, this.#pins, this.#requests]) known.delete(session)
    for (const key of this.#heads.keys()) if (key.startsWith(`${session}:`)) this.#heads.delete(key)
  }

  /** The view of a session was compacted by this event. */
  compacted(session: string, seq: number): void {
    this.#compacted.set(session, [...(this.#compacted.get(session) ?? []), seq])
  }

  /** A user pinned this text. */
  pin(session: string, seq: number, text: string): void {
    this.#pins.set(session, [...(this.#pins.get(session) ?? []), { seq, text, shown: 0 }])
  }

  /** What was pinned stands word for word in every request from the first one that showed it. */
  #pinned({ session, seq, messages }: Request): void {
    for (const pin of this.#pins.get(session) ?? []) {
      const found = messages.some((m) => m.role === 'user' && m.seq === pin.seq && textOf(m.parts) === pin.text)
      if (found && (pin.shown === 0 || seq < pin.shown)) pin.shown = seq
      if (!found && pin.shown > 0 && seq > pin.shown)
        this.violations.push(`O10 ${session}@${seq}: the pin ${pin.seq} is not in the request`)
    }
  }

  /** Each request of an epoch begins with the same bytes, in whichever process. */
  #kept({ session, seq, instructions, tools }: Request, epoch: number): void {
    const key = `${session}:${epoch}`
    const head = JSON.stringify([instructions, tools])
    const first = this.#heads.get(key) ?? head
    this.#heads.set(key, first)
    if (first !== head) this.violations.push(`O9 ${session}@${seq}: begins with ${head} and not with ${first}`)
  }

  /** Every call is followed by exactly its results, in model order, before anything else. */
  #pairs(request: Request): void {
    let open: readonly string[] = []
    for (const message of request.messages) {
      if (message.role === 'tool') {
        const [expected, ...rest] = open
        if (message.call !== expected)
          this.violations.push(
            `O4 ${request.session}@${request.seq}: result ${message.call} stands where ${expected} belongs`,
          )
        open = rest
        continue
      }
      if (open.length > 0)
        this.violations.push(`O5 ${request.session}@${request.seq}: ${open.join(', ')} has no result`)
      open = message.role === 'assistant' ? message.calls.map((call) => call.key) : []
    }
    if (open.length > 0)
      this.violations.push(`O5 ${request.session}@${request.seq}: ${open.join(', ')} has no result at the end`)
  }
}
