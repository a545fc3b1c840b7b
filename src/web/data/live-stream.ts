// Live updates: one stream for this tab, with all sessions and cards that its pages follow. If no stream is available,
// the same data is polled. Each event reaches a reader once and in order, either way.
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { Event, Frames, WireCard, WireDelta } from '../../server/wire.ts'
import { api, ApiError, neverChanges, sendApiRequest } from './api.ts'
import { setServerNow } from './server-clock.ts'
import { takeSlot } from './stream-slots.ts'

/** `live`: events are streamed. `polling`: events are polled. `offline`: the server does not answer. */
export type LiveState = 'idle' | 'connecting' | 'live' | 'polling' | 'offline'

export type SessionReader = {
  readonly session: string
  /** The last event that the reader has. */
  readonly after: number
  readonly onEvents: (events: readonly Event[]) => void
  readonly onDelta?: (delta: WireDelta) => void
  /** The session was removed. */
  readonly onGone?: () => void
}
export type CardReader = {
  readonly onCard: (card: WireCard) => void
  /** A session was removed. */
  readonly onGone: (session: string) => void
  readonly onMissed: () => void
}

const POLL_MS = 2_500
/** For a hidden tab. */
const HIDDEN_POLL_MS = 20_000
const RETRY_MS = [1_000, 2_000, 5_000, 15_000]
const PAGE = 1_000
/** A tab hidden this long gives its stream to a visible tab. */
const HIDDEN_MS = 30_000

/** Each reader, and the last event that it has. */
type ReaderPositions = Map<SessionReader, number>

export class LiveStream {
  state: LiveState = 'idle'
  readonly #watched = new Map<string, ReaderPositions>()
  readonly #cards = new Set<CardReader>()
  readonly #listeners = new Set<() => void>()
  #store: string | null = null
  #onStore: () => void = () => {}
  #wake: () => void = () => {}
  #round: AbortController | null = null
  #runs = false
  #hiddenAt: number | null = null

  /** `onStore`: called when the server has another store, so that everything read before is stale. */
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

  /** Follows a session until the returned function is called. */
  follow(reader: SessionReader): () => void {
    const watched: ReaderPositions = this.#watched.get(reader.session) ?? new Map()
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

  /** The followed sessions changed: reconnect with the new set. */
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
      // Pages that begin at the same moment share one request.
      await new Promise((next) => setTimeout(next, 20))
      this.#round = new AbortController()
      if (neverChanges()) return this.#read(this.#round.signal)
      const release = this.#isHidden ? null : await takeSlot()
      try {
        await (release === null ? this.#poll(this.#round.signal) : this.#listen(this.#round.signal))
        failures = 0
      } catch (error) {
        if (this.#round.signal.aborted) continue
        // Without a token there is nothing to read; the page asks for one.
        if (error instanceof ApiError && error.status === 401) return
        // The log is shorter than what was read: the store was replaced by an older copy.
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
    const sessions = Object.fromEntries([...this.#watched].map(([id, watched]) => [id, lowestSeq(watched)]))
    const body = { sessions, cards: this.#cards.size > 0, deltas: true }
    const { body: stream } = await sendApiRequest('POST', 'stream', { body, signal })
    if (stream === null) return
    // Cards may have changed between the last list and this stream.
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
        setServerNow(frame)
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

  /** Skips the events that a reader already has. */
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

  /** Polls the next events of all followed sessions. */
  async #read(signal: AbortSignal): Promise<void> {
    for (const [session, watched] of this.#watched) {
      try {
        const { events } = await api.events(session, { after: lowestSeq(watched), limit: PAGE }, signal)
        this.#take(session, events)
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) this.#gone(session)
        else throw error
      }
    }
  }
}

/** Events after this one are new to at least one reader. */
function lowestSeq(watched: ReaderPositions): number {
  return Math.min(...watched.values())
}
