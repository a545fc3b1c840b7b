// What a model and a tool see of their flight: the doors they may use, and nothing else of the harness.
import type { CallKey, Metadata, Proposal } from '../kernel/content.ts'
import type { Blob } from '../ports/store.ts'
import type { CallContext, Delta, Model } from '../ports/model.ts'
import type { Clock } from '../ports/system.ts'
import { ToolFailure } from '../tools/core/output.ts'
import type { ToolContext } from '../tools/core/tool.ts'
import { NO_METADATA, type SessionCache } from '../engine/session-cache.ts'
import type { Allowances } from '../riders/money/allowance.ts'
import type { BudgetedModel } from '../riders/money/budgeted-model.ts'
import type { Spent } from '../riders/money/usage-estimate.ts'
import type { FlightContext } from '../engine/flights.ts'
import { cloneJson } from './clone-json.ts'
import { shownText } from './outcomes.ts'
import { markOf, type Stream } from '../riders/redact/redact.ts'
import { sleep } from '../engine/sleep.ts'
import { callSpanIdOf, spanIdOf } from '../view/spans/span.ts'
import { traceparentIn } from './trace-context.ts'
import { findWindow } from './window.ts'
import { readerIn, type Tools } from './toolbox.ts'
import { agentFor, cleanBlob, modelNamed, refOf, type Services } from '../engine/wiring.ts'
import { blobFor } from '../view/blobs.ts'

/** What a model sees of its flight. A class, because one is made for every call. */
export class ModelContext implements CallContext {
  readonly #services: Services
  readonly #cache: SessionCache
  readonly #seq: number
  readonly #flight: FlightContext
  #spoke = false
  #streams: Streamed[] | null = null
  /** The one of the last delta: nearly always that of the next. */
  #latest: Streamed | null = null

  constructor(services: Services, cache: SessionCache, seq: number, flight: FlightContext) {
    this.#services = services
    this.#cache = cache
    this.#seq = seq
    this.#flight = flight
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  get clock(): Clock {
    return this.#services.clock
  }

  get redactPieces(): NonNullable<ToolContext['redactPieces']> {
    return () => this.#services.redactor.stream()
  }

  get traceparent(): string | undefined {
    if (!this.#services.traces?.propagate) return undefined
    return traceparentIn(this.#services, this.#cache, () => spanIdOf(this.#cache.id, this.#seq))
  }

  /** Something of the reply was shown. Certain once it is finished: a piece may be held back until more is known. */
  get spoke(): boolean {
    return this.#spoke
  }

  readonly now = (): number => this.#cache.now()

  readonly emit = (delta: Delta): void => {
    const { redactor, live } = this.#services
    const text = redactor.idle ? delta.text : this.#stream(delta).push(delta.text)
    if (text === '') return
    this.#spoke = true
    const { kind, part } = delta
    live.publish(this.#cache.id, this.#seq, text === delta.text ? delta : { kind, part, text })
  }

  readonly sleep = (ms: number): Promise<void> => sleep(this.#services.clock, ms, this.#flight.signal)

  /** The call is over. With `keeps`, returns the text that was shown, which is forgotten otherwise. */
  finish(keeps: boolean): string | undefined {
    const { live } = this.#services
    if (this.#streams) this.#endStreams(this.#streams)
    if (!this.#spoke) return undefined
    const shown = keeps ? shownText(live.said(this.#cache.id), this.#seq) : undefined
    live.finish(this.#cache.id, this.#seq)
    return shown
  }

  /** What was held back, because it could have become a secret, is shown now. */
  #endStreams(streams: readonly Streamed[]): void {
    for (const { of, stream } of streams) {
      const text = stream.end()
      if (text === '') continue
      this.#spoke = true
      this.#services.live.publish(this.#cache.id, this.#seq, { ...of, text })
    }
  }

  /** One for each part of a reply: a secret may come in pieces. */
  #stream(of: Delta): Stream {
    if (this.#latest !== null && isOf(this.#latest, of)) return this.#latest.stream
    this.#streams ??= []
    let one = this.#streams.find((known) => isOf(known, of))
    if (!one) {
      one = { of, stream: this.#services.redactor.stream() }
      this.#streams.push(one)
    }
    this.#latest = one
    return one.stream
  }
}

type Streamed = { readonly of: Delta; readonly stream: Stream }

function isOf({ of }: Streamed, { part, kind }: Delta): boolean {
  return of.part === part && of.kind === kind
}

/** A command may print without end. */
const TOLD_CHARS_MAX = 256 * 1024

const NONE: readonly Blob[] = []

/** What a tool sees of its flight. */
export class ToolRunContext implements ToolContext {
  readonly session: string
  readonly call: CallKey
  readonly approved: boolean
  readonly files: ToolContext['files']
  /** Set where rules speak of paths. */
  permits: ToolContext['permits']
  /** What the handler put beside the log: it lands with the result. */
  kept: readonly Blob[] = NONE
  /** The handler asked a model, or may have. */
  asked = false
  /** The tools of the run. */
  tools: Tools | null = null
  /** What the host's `context` built. */
  deps: unknown
  readonly clock: Clock
  #cache: SessionCache | null = null
  #allowances: (() => Promise<Allowances>) | null = null
  #paid: Promise<BudgetedModel> | null = null
  #model: BudgetedModel | null = null
  #told = 0
  #telling: Stream | null = null
  #over = false
  readonly #services: Services
  readonly #flight: FlightContext
  readonly #secrets: readonly string[]

  constructor(
    services: Services,
    session: string,
    call: { readonly key: CallKey; readonly proposal?: Proposal },
    flight: FlightContext,
    secrets: readonly string[],
  ) {
    this.session = session
    this.call = call.key
    // A call that had to be asked runs only after a yes.
    this.approved = call.proposal?.gate?.type === 'ask'
    this.files = call.proposal?.files
    this.clock = services.clock
    this.#services = services
    this.#flight = flight
    this.#secrets = secrets
  }

  readonly now = (): number => this.#cache?.now() ?? this.#services.store.now()

  /** The account for what the handler asks of models. Without it none can be asked. */
  paidBy(cache: SessionCache, allowances: () => Promise<Allowances>): void {
    this.#cache = cache
    this.#allowances = allowances
  }

  /** A copy: a handler may do with it what it likes. */
  get metadata(): Metadata {
    return cloneJson(this.#cache?.place.metadata ?? NO_METADATA)
  }

  /** What its requests came to so far; null if none was made. */
  get spent(): Spent | null {
    return this.#model?.spent ?? null
  }

  get key(): string {
    return `${this.session}:${this.call}`
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  // Made when looked at: one of these stands in every call, and few handlers look.
  get keep(): ToolContext['keep'] {
    return (data, media = typeof data === 'string' ? 'text/plain' : 'application/octet-stream') => {
      const blob = cleanBlob(this.#services.redactor, data, media)
      this.kept = [...this.kept, blob]
      return refOf(blob)
    }
  }

  get recall(): ToolContext['recall'] {
    return async (hash) => {
      const blob = await blobFor(this.#services.store, this.session, hash)
      return blob && Buffer.from(blob.data).toString()
    }
  }

  get reader(): string | undefined {
    const cache = this.#cache
    // A result that names the tool for originals makes it one that the model has.
    return readerIn(this.tools) ?? (cache === null ? undefined : agentFor(this.#services, cache).retrieve?.name)
  }

  get redact(): ToolContext['redact'] {
    return (text) => this.#services.redactor.text(text)
  }

  get redactPieces(): NonNullable<ToolContext['redactPieces']> {
    return () => this.#services.redactor.stream()
  }

  get windowTokens(): ToolContext['windowTokens'] {
    const cache = this.#cache
    if (cache === null) return undefined
    return async () => {
      const { model, planner } = agentFor(this.#services, cache)
      if (planner !== null) return Number.POSITIVE_INFINITY
      const { tokens } = await findWindow(this.#services, model)
      return Math.min(tokens, cache.guard.fill?.learned ?? tokens)
    }
  }

  get traceparent(): string | undefined {
    const cache = this.#cache
    return cache === null
      ? undefined
      : traceparentIn(this.#services, cache, () => callSpanIdOf(this.session, this.call))
  }

  get tell(): ToolContext['tell'] {
    return (text) => {
      if (this.#told >= TOLD_CHARS_MAX || text === '' || this.#over) return
      // A secret may be told in pieces.
      this.#telling ??= this.#services.redactor.stream()
      this.#show(this.#telling.push(text))
    }
  }

  #show(said: string): void {
    const left = TOLD_CHARS_MAX - this.#told
    if (said === '' || left <= 0) return
    const shown = said.length > left ? `${said.slice(0, left)}\n[more is not shown here]\n` : said
    this.#told += said.length
    const [seq, part] = this.#place
    this.#services.live.publish(this.session, seq, { kind: 'output', part, text: shown })
  }

  /** The call is over: what it showed is forgotten, and it shows nothing more. */
  finish(): void {
    if (!this.#over && this.#telling !== null) this.#show(this.#telling.end())
    this.#over = true
    if (this.#told > 0) this.#services.live.finish(this.session, ...this.#place)
  }

  /** The reply that made the call, and its index there. */
  get #place(): readonly [seq: number, index: number] {
    const [seq = 0, index = 0] = this.call.split('.').map(Number)
    return [seq, index]
  }

  get askModel(): ToolContext['askModel'] {
    const [cache, allowances] = [this.#cache, this.#allowances]
    if (cache === null || allowances === null)
      throw new ToolFailure('Unavailable', 'No model can be asked here: this is outside of a run.')
    this.asked = true
    return async (given, request) => {
      const paid = await (this.#paid ??= this.#openModel(cache, allowances))
      return paid.ask(typeof given === 'string' ? this.#routed(cache, given) : given, request)
    }
  }

  /** A workflow has no model of its own. */
  #routed(cache: SessionCache, hint: string): Model {
    const { model, planner } = agentFor(this.#services, cache)
    return modelNamed(this.#services, hint, planner === null ? model : null)
  }

  async #openModel(cache: SessionCache, allowances: () => Promise<Allowances>): Promise<BudgetedModel> {
    const { BudgetedModel } = await import('../riders/money/budgeted-model.ts')
    const parts = { services: this.#services, cache, flight: this.#flight }
    this.#model = new BudgetedModel(parts, this.call, await allowances())
    return this.#model
  }

  get secret(): ToolContext['secret'] {
    return (name) => {
      const value = this.#secrets.includes(name) ? this.#services.redactor.value(name) : null
      if (value === null) throw new ToolFailure('Unavailable', `The secret ${name} is not there, or was not declared.`)
      return value
    }
  }

  get reveal(): ToolContext['reveal'] {
    return (text) => this.#secrets.reduce((said, name) => said.replaceAll(markOf(name), () => this.secret(name)), text)
  }
}
