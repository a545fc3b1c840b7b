// What happens, as it happens: one stream for this tab, of all sessions and cards that its pages look at. Where no stream can be had, the
// same is read again and again. Every event is handed on once and in order, whatever way it came.
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { Event, Frames, WireCard, WireDelta } from '../../server/wire.ts'
import { api, ApiError, neverChanges, request } from './api.ts'
import { heardNow } from './clock.ts'
import { takeSlot } from './slots.ts'

/** `live`: events come as they happen. `polling`: they are asked for. `offline`: the server does not answer. */
export type LiveState = 'idle' | 'connecting' | 'live' | 'polling' | 'offline'

export type SessionReader = {
  readonly session: string
  /** The last event it has. */
  readonly after: number
  readonly onEvents: (events: readonly Event[]) => void
  readonly onDelta?: (delta: WireDelta) => void
  /** It was removed. */
  readonly onGone?: () => void
}
export type CardReader = {
  readonly onCard: (card: WireCard) => void
  /** A session was removed. */
  readonly onGone: (session: string) => void
  readonly onMissed: () => void
}

const POLL_MS = 2_500
/** Of a tab that nobody sees. */
const HIDDEN_POLL_MS = 20_000
const RETRY_MS = [1_000, 2_000, 5_000, 15_000]
const PAGE = 1_000
/** A hidden tab gives its stream to one that is seen. */
const HIDDEN_MS = 30_000

/** Each reader, and the last event that it has. */
type Watched = Map<SessionReader, number>

export class Live {
  state: LiveState = 'idle'
  readonly #watched = new Map<string, Watched>()
  readonly #cards = new Set<CardReader>()
  readonly #listeners = new Set<() => void>()
  #store: string | null = null
  #onStore: () => void = () => {}
  #wake: () => void = () => {}
  #round: AbortController | null = null
  #runs = false
  #hiddenAt: number | null = null

  /** `onStore`: the server has another store now, and nothing that was read before counts. */
  constructor(onStore: () => void) {
    this.#onStore = onStore
    document.addEventListener('visibilitychange', () => {
      this.#hiddenAt = document.hidden ? performance.now() : null
      if (!document.hidden) this.#again()
    })
    window.addEventListener('online', () => this.#again())
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Reads a session from now on, until the function that it returns is called. */
  follow(reader: SessionReader): () => void {
    const watched: Watched = this.#watched.get(reader.session) ?? new Map()
    this.#watched.set(reader.session, watched.set(reader, reader.after))
    this.#again()
    return () => {
      watched.delete(reader)
      if (watched.size === 0) this.#watched.delete(reader.session)
      this.#again()
    }
  }

  cards(reader: CardReader): () => void {
    this.#cards.add(reader)
    this.#again()
    return () => {
      this.#cards.delete(reader)
      this.#again()
    }
  }

  #set(state: LiveState): void {
    if (this.state === state) return
    this.state = state
    for (const listener of this.#listeners) listener()
  }

  /** What is looked at has changed: begin anew with it. */
  #again(): void {
    this.#round?.abort()
    this.#wake()
    if (this.#runs) return
    this.#runs = true
    void this.#run().finally(() => {
      this.#runs = false
      this.#set('idle')
    })
  }

  get #wanted(): boolean {
    return this.#watched.size > 0 || this.#cards.size > 0
  }

  async #run(): Promise<void> {
    for (let failures = 0; this.#wanted; ) {
      // Several pages that begin at once are one request.
      await new Promise((next) => setTimeout(next, 20))
      this.#round = new AbortController()
      if (neverChanges()) return this.#read(this.#round.signal)
      const release = this.#isHidden ? null : await takeSlot()
      try {
        await (release === null ? this.#poll(this.#round.signal) : this.#listen(this.#round.signal))
        failures = 0
      } catch (error) {
        if (this.#round.signal.aborted) continue
        // Without a token there is nothing to read: the page asks for one.
        if (error instanceof ApiError && error.status === 401) return
        // Its logs are shorter than what was read: an older copy is in its place.
        if (error instanceof ApiError && error.status === 409) this.#onStore()
        this.#set('offline')
        const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? PAGE
        failures += 1
        await this.#sleep(error instanceof ApiError ? (error.retryAfterMs ?? wait) : wait)
      } finally {
        release?.()
      }
    }
  }

  get #isHidden(): boolean {
    return this.#hiddenAt !== null && performance.now() - this.#hiddenAt > HIDDEN_MS
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #listen(signal: AbortSignal): Promise<void> {
    if (this.state !== 'live') this.#set('connecting')
    const sessions = Object.fromEntries([...this.#watched].map(([id, watched]) => [id, seqOf(watched)]))
    const body = { sessions, cards: this.#cards.size > 0, deltas: true }
    const { body: stream } = await request('POST', 'stream', { body, signal })
    if (stream === null) return
    // Between the last list and this stream cards may have changed.
    for (const { onMissed } of this.#cards) onMissed()
    const parser = createParser({ onEvent: (message) => this.#frame(message) })
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
    const hides = setInterval(() => {
      if (this.#isHidden) this.#round?.abort()
    }, HIDDEN_MS)
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        this.#set('live')
        parser.feed(value)
      }
    } finally {
      clearInterval(hides)
    }
  }

  #frame({ event, data }: EventSourceMessage): void {
    const frame = JSON.parse(data) as unknown
    switch (event) {
      case 'hello':
        heardNow(frame)
        return this.#hello(frame as Frames['hello'])
      case 'event': {
        const { session, ...one } = frame as Frames['event']
        return this.#take(session ?? '', [one])
      }
      case 'delta': {
        const delta = frame as WireDelta
        for (const { onDelta } of this.#watched.get(delta.session ?? '')?.keys() ?? []) onDelta?.(delta)
        return
      }
      case 'card':
        for (const { onCard } of this.#cards) onCard(frame as WireCard)
        return
      case 'gone':
        return this.#gone((frame as Frames['gone']).session)
      default:
        return
    }
  }

  #hello({ store }: Pick<Frames['hello'], 'store'>): void {
    if (this.#store !== null && this.#store !== store) this.#onStore()
    this.#store = store
  }

  #gone(session: string): void {
    const readers = [...(this.#watched.get(session)?.keys() ?? [])]
    this.#watched.delete(session)
    for (const { onGone } of readers) onGone?.()
    for (const { onGone } of this.#cards) onGone(session)
  }

  /** Each once: what a reader has already is left out. */
  #take(session: string, events: readonly Event[]): void {
    const watched = this.#watched.get(session) ?? []
    for (const [reader, seen] of watched) {
      const fresh = events.filter(({ seq }) => seq > seen)
      const last = fresh.at(-1)
      if (!last) continue
      this.#watched.get(session)?.set(reader, last.seq)
      reader.onEvents(fresh)
    }
  }

  async #poll(signal: AbortSignal): Promise<void> {
    await this.#read(signal)
    for (const { onMissed } of this.#cards) onMissed()
    this.#set('polling')
    if (signal.aborted) return
    await this.#sleep(document.hidden ? HIDDEN_POLL_MS : POLL_MS)
  }

  /** The next events of all that is followed. */
  async #read(signal: AbortSignal): Promise<void> {
    for (const [session, watched] of this.#watched) {
      try {
        const { events } = await api.events(session, { after: seqOf(watched), limit: PAGE }, signal)
        this.#take(session, events)
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.#gone(session)
        else throw error
      }
    }
  }
}

/** What is asked for from there on is new to at least one of them. */
function seqOf(watched: Watched): number {
  return Math.min(...watched.values())
}
