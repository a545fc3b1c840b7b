// Following a log: every event after a point, in order, exactly once: first what is there, then what comes.
import { isDeepStrictEqual } from 'node:util'
import type { Event, InboxBody } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'

const PAGE = 1_000

export class LogFollower {
  readonly #store: Store
  readonly #session: string
  readonly #onEvent: (event: Event) => void
  readonly #onError: (error: unknown) => void
  #seq: number
  #reading: Promise<void> | null = null
  #stale = false
  #unwatch: () => void

  constructor(
    store: Store,
    session: string,
    after: number,
    on: { event: (event: Event) => void; error: (error: unknown) => void },
  ) {
    this.#store = store
    this.#session = session
    this.#seq = after
    this.#onEvent = on.event
    this.#onError = on.error
    this.#unwatch = store.watch(session, (news) => this.#notice(news))
  }

  /** Resolves when everything committed before this call has been delivered. */
  async catchUp(): Promise<void> {
    this.#stale = true
    this.#reading ??= Promise.resolve().then(() => this.#read())
    await this.#reading
  }

  /** No more news. What was asked for by `catchUp` is still delivered. */
  close(): void {
    this.#unwatch()
  }

  /** News of this process are delivered as they are; anything else is read from the store. */
  #notice(news: readonly Event[] | null): void {
    const first = news?.[0]
    if (!this.#reading && news && first && first.seq === this.#seq + 1) {
      for (let i = 0; i < news.length; i++) this.#deliver(news[i] as Event)
      return
    }
    const last = news?.[news.length - 1]
    if (last && last.seq <= this.#seq) return
    this.catchUp().catch(this.#onError)
  }

  async #read(): Promise<void> {
    try {
      while (this.#stale) {
        this.#stale = false
        for (;;) {
          const page = await this.#store.read(this.#session, this.#seq, PAGE)
          for (const event of page.events) this.#deliver(event)
          if (page.events.length < PAGE) break
        }
      }
    } finally {
      // In the same tick as the last look at `stale`: a later call starts another reading.
      this.#reading = null
    }
  }

  #deliver(event: Event): void {
    if (event.seq !== this.#seq + 1) return
    this.#seq = event.seq
    this.#onEvent(event)
  }
}

/** Where the inbox has this very event already; null if nowhere. */
export async function sentBefore(store: Store, session: string, sent: InboxBody): Promise<number | null> {
  const found = await store.sent(session, sent.id)
  const [event] = found === null ? [] : (await store.read(session, found - 1, 1)).events
  if (event === undefined) return null
  const { seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
  return isDeepStrictEqual(body, sent) ? seq : null
}
