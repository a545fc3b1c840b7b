// What a model and a tool see of their flight: the doors they may use, and nothing else of the harness.
import type { CallKey, Proposal } from '../kernel/content.ts'
import type { Blob, CallContext, Clock, Delta } from '../kernel/ports.ts'
import { ToolFailure } from '../tools/core/output.ts'
import type { ToolContext } from '../tools/core/tool.ts'
import type { Book } from '../engine/session-cache.ts'
import { Door, type Purses } from '../riders/money/budgeted-model.ts'
import type { FlightContext } from '../engine/flights.ts'
import { shownText } from './outcomes.ts'
import { markOf, type Stream } from '../riders/redact/redact.ts'
import { sleep } from '../engine/sleep.ts'
import { readerIn, type Tools } from './toolbox.ts'
import { findText, refOf, textBlob, type World } from '../engine/wiring.ts'

/** What a model sees of its flight. A class, because one is made for every call. */
export class Talk implements CallContext {
  readonly #world: World
  readonly #session: string
  readonly #seq: number
  readonly #flight: FlightContext
  #spoke = false
  #streams: Streamed[] | null = null
  /** The one of the last delta: nearly always that of the next. */
  #latest: Streamed | null = null

  constructor(world: World, session: string, seq: number, flight: FlightContext) {
    this.#world = world
    this.#session = session
    this.#seq = seq
    this.#flight = flight
  }

  get signal(): AbortSignal {
    return this.#flight.signal
  }

  get clock(): Clock {
    return this.#world.clock
  }

  /** Something of the reply was shown. Certain once it is finished: a piece may be held back until more is known. */
  get spoke(): boolean {
    return this.#spoke
  }

  readonly emit = (delta: Delta): void => {
    const { redactor, live } = this.#world
    const text = redactor.idle ? delta.text : this.#stream(delta).push(delta.text)
    if (text === '') return
    this.#spoke = true
    const { kind, part } = delta
    live.publish(this.#session, this.#seq, text === delta.text ? delta : { kind, part, text })
  }

  readonly sleep = (ms: number): Promise<void> => sleep(this.#world.clock, ms, this.#flight.signal)

  /** The call is over. With `keeps`, returns the text that was shown, which is forgotten otherwise. */
  finish(keeps: boolean): string | undefined {
    const { live } = this.#world
    for (const { of, stream } of this.#streams ?? []) {
      const text = stream.end()
      if (text === '') continue
      this.#spoke = true
      live.publish(this.#session, this.#seq, { ...of, text })
    }
    if (!this.#spoke) return undefined
    const shown = keeps ? shownText(live.said(this.#session), this.#seq) : undefined
    live.finish(this.#session, this.#seq)
    return shown
  }

  /** One for each part of a reply: a secret may come in pieces. */
  #stream(of: Delta): Stream {
    if (this.#latest !== null && isOf(this.#latest, of)) return this.#latest.stream
    this.#streams ??= []
    let one = this.#streams.find((known) => isOf(known, of))
    if (!one) {
      one = { of, stream: this.#world.redactor.stream() }
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

const NONE: readonly Blob[] = []

/** What a tool sees of its flight. */
export class ToolTalk implements ToolContext {
  readonly session: string
  readonly call: CallKey
  readonly approved: boolean
  /** What the handler put beside the log: it lands with the result. */
  kept: readonly Blob[] = NONE
  /** Opened by the first request to a model; null while there was none. */
  door: Door | null = null
  /** The tools of the run. */
  tools: Tools | null = null
  readonly clock: Clock
  #book: Book | null = null
  #purses: Purses | null = null
  readonly #world: World
  readonly #flight: FlightContext
  readonly #secrets: readonly string[]

  constructor(
    world: World,
    session: string,
    call: { readonly key: CallKey; readonly proposal?: Proposal },
    flight: FlightContext,
    secrets: readonly string[],
  ) {
    this.session = session
    this.call = call.key
    // A call that had to be asked runs only after a yes.
    this.approved = call.proposal?.gate?.type === 'ask'
    this.clock = world.clock
    this.#world = world
    this.#flight = flight
    this.#secrets = secrets
  }

  /** Who pays for what the handler asks of models. Without it none can be asked. */
  paidBy(book: Book, purses: Purses): void {
    this.#book = book
    this.#purses = purses
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
      const blob = textBlob(this.#world.redactor.text(text), media)
      this.kept = [...this.kept, blob]
      return refOf(blob)
    }
  }

  get recall(): ToolContext['recall'] {
    return (hash) => findText(this.#world.store, hash)
  }

  get reader(): string | undefined {
    return readerIn(this.tools)
  }

  get redact(): ToolContext['redact'] {
    return (text) => this.#world.redactor.text(text)
  }

  get askModel(): ToolContext['askModel'] {
    if (this.#book === null || this.#purses === null)
      throw new ToolFailure('Unavailable', 'No model can be asked here: this is outside of a run.')
    const parts = { world: this.#world, book: this.#book, flight: this.#flight }
    this.door ??= new Door(parts, this.call, this.#purses)
    return this.door.ask
  }

  get secret(): ToolContext['secret'] {
    return (name) => {
      const value = this.#secrets.includes(name) ? this.#world.redactor.value(name) : null
      if (value === null) throw new ToolFailure('Unavailable', `The secret ${name} is not there, or was not declared.`)
      return value
    }
  }

  get reveal(): ToolContext['reveal'] {
    return (text) => this.#secrets.reduce((said, name) => said.replaceAll(markOf(name), () => this.secret(name)), text)
  }
}
