// The contexts that a model and a tool get for their flight: the services they may use, and nothing else of the
// harness.
import type { CallKey, Metadata, Proposal } from '../../kernel/content.ts'
import type { Blob } from '../../ports/store.ts'
import type { CallContext, Delta, Model } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { ToolFailure } from '../../tools/core/tool-output.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import { NO_HOOK_METADATA, type SessionCache } from '../state/session-cache.ts'
import type { Allowances } from '../money/allowance.ts'
import type { BudgetedModel } from './budgeted-model.ts'
import type { CallSpending } from '../money/usage-estimate.ts'
import type { FlightContext } from '../state/effect.ts'
import { cloneJson } from '../state/clone-json.ts'
import { shownText } from './landings.ts'
import { secretMark, type RedactedStream } from '../redact/redactor.ts'
import { sleep } from '../state/sleep.ts'
import { callSpanIdOf, spanIdOf } from '../../view/spans/span.ts'
import { traceparentIn } from '../state/trace-context.ts'
import { findWindow } from '../state/model-window.ts'
import { readerName, type Tools } from '../state/toolbox.ts'
import { modelByName, type Services } from '../state/runtime-ports.ts'
import { agentOfRun } from '../state/agent.ts'
import { cleanBlob, blobRefOf } from '../state/content-blobs.ts'
import { blobFor } from '../../view/readable-blobs.ts'

/** A model's view of its flight. It is a class, because one is made for every call. */
export class ModelContext implements CallContext {
  readonly #services: Services
  readonly #cache: SessionCache
  readonly #seq: number
  readonly #flight: FlightContext
  #spoke = false
  #streams: PartStream[] | null = null
  /** The stream of the last delta; nearly always that of the next one too. */
  #latest: PartStream | null = null

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

  /**
   * Whether some of the reply was shown. The answer is final only after `finish`: a piece may be held back until more
   * is known.
   */
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

  /** Ends the call. With `keeps` it returns the text that was shown; otherwise the text is forgotten. */
  finish(keeps: boolean): string | undefined {
    const { live } = this.#services
    if (this.#streams) this.#endStreams(this.#streams)
    if (!this.#spoke) return undefined
    const shown = keeps ? shownText(live.said(this.#cache.id), this.#seq) : undefined
    live.finish(this.#cache.id, this.#seq)
    return shown
  }

  /** Shows the text that was held back because it could have become a secret. */
  #endStreams(streams: readonly PartStream[]): void {
    for (const { of, stream } of streams) {
      const text = stream.end()
      if (text === '') continue
      this.#spoke = true
      this.#services.live.publish(this.#cache.id, this.#seq, { ...of, text })
    }
  }

  /** One stream for each part of a reply: a secret may arrive in pieces. */
  #stream(of: Delta): RedactedStream {
    if (this.#latest !== null && isSamePart(this.#latest, of)) return this.#latest.stream
    this.#streams ??= []
    let one = this.#streams.find((known) => isSamePart(known, of))
    if (!one) {
      one = { of, stream: this.#services.redactor.stream() }
      this.#streams.push(one)
    }
    this.#latest = one
    return one.stream
  }
}

type PartStream = { readonly of: Delta; readonly stream: RedactedStream }

function isSamePart({ of }: PartStream, { part, kind }: Delta): boolean {
  return of.part === part && of.kind === kind
}

/** The most characters of output that are shown: a command may print without end. */
const TOLD_CHARS_MAX = 256 * 1024

const NONE: readonly Blob[] = []

/** A tool's view of its flight. */
export class ToolRunContext implements ToolContext {
  readonly session: string
  readonly call: CallKey
  readonly approved: boolean
  readonly files: ToolContext['files']
  /** Set where rules of the policy name paths. */
  permits: ToolContext['permits']
  /** Blobs that the handler stored beside the log. They land with the result. */
  kept: readonly Blob[] = NONE
  /** The handler asked a model, or may have asked one. */
  asked = false
  /** The tools of the run. */
  tools: Tools | null = null
  /** The value that the host's `deps` built. */
  deps: unknown
  readonly clock: Clock
  #cache: SessionCache | null = null
  #allowances: (() => Promise<Allowances>) | null = null
  #paid: Promise<BudgetedModel> | null = null
  #model: BudgetedModel | null = null
  #told = 0
  #telling: RedactedStream | null = null
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
    // A call that a person must approve runs only after the approval.
    this.approved = call.proposal?.gate?.type === 'ask'
    this.files = call.proposal?.files
    this.clock = services.clock
    this.#services = services
    this.#flight = flight
    this.#secrets = secrets
  }

  readonly now = (): number => this.#cache?.now() ?? this.#services.store.now()

  /** Sets the account that pays for requests of the handler to models. Without it no model can be asked. */
  setPayer(cache: SessionCache, allowances: () => Promise<Allowances>): void {
    this.#cache = cache
    this.#allowances = allowances
  }

  /** A copy, because a handler may change it. */
  get metadata(): Metadata {
    return cloneJson(this.#cache?.runIdentity.metadata ?? NO_HOOK_METADATA)
  }

  /** The usage of the handler's requests so far; null if it made none. */
  get spent(): CallSpending | null {
    return this.#model?.spent ?? null
  }

  get key(): string {
    return `${this.session}:${this.call}`
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  // These are getters, so that they are made only when they are read: every call has such a context, and few handlers
  // read them.
  get keep(): ToolContext['keep'] {
    return (data, media = typeof data === 'string' ? 'text/plain' : 'application/octet-stream') => {
      const blob = cleanBlob(this.#services.redactor, data, media)
      this.kept = [...this.kept, blob]
      return blobRefOf(blob)
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
    // The model also has the tool for originals from the first result on that names it.
    return readerName(this.tools) ?? (cache === null ? undefined : agentOfRun(this.#services, cache).retrieve?.name)
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
      const { model, planner } = agentOfRun(this.#services, cache)
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
      // A secret may arrive in pieces.
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

  /** Ends the call: its output is forgotten, and no more of it is shown. */
  finish(): void {
    if (!this.#over && this.#telling !== null) this.#show(this.#telling.end())
    this.#over = true
    if (this.#told > 0) this.#services.live.finish(this.session, ...this.#place)
  }

  /** The seq of the reply that made the call, and the call's index in it. */
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
    const { model, planner } = agentOfRun(this.#services, cache)
    return modelByName(this.#services, hint, planner === null ? model : null)
  }

  async #openModel(cache: SessionCache, allowances: () => Promise<Allowances>): Promise<BudgetedModel> {
    const { BudgetedModel } = await import('./budgeted-model.ts')
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
    return (text) =>
      this.#secrets.reduce((said, name) => said.replaceAll(secretMark(name), () => this.secret(name)), text)
  }
}
