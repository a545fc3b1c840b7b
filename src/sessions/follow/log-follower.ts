// Follows a log: every event after a point, in order, exactly once: first the existing ones, then new ones.
import type { Event } from '../../kernel/event.ts'
import type { CompleteStore } from '../../ports/store.ts'

const PAGE = 1_000

/** Pages of logs, and news of them. */
export type FollowedLogs = Pick<CompleteStore, 'read' | 'watch'>

export class LogFollower {
  readonly #store: FollowedLogs
  readonly #session: string
  readonly #onEvent: (event: Event) => void
  readonly #onError: (error: unknown) => void
  #seq: number
  #reading: Promise<void> | null = null
  #stale = false
  #unwatch: () => void

  constructor(
    store: FollowedLogs,
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

  /** Stops listening for news. Events requested by `catchUp` are still delivered. */
  close(): void {
    this.#unwatch()
  }

  /** News from this process is delivered as it is; everything else is read from the store. */
  #notice(news: readonly Event[] | null): void {
    const first = news?.[0]
    if (!this.#reading && news && first && first.seq === this.#seq + 1) {
      for (let i = 0; i < news.length; i++) {
        const event = news[i] as Event
        // Who gets an event may make this one read on.
        if (event.seq !== this.#seq + 1) continue
        this.#seq = event.seq
        this.#onEvent(event)
      }
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
      // Cleared in the same tick as the last check of `stale`, so a later call starts a new read.
      this.#reading = null
    }
  }

  #deliver(event: Event): void {
    if (event.seq !== this.#seq + 1) return
    this.#seq = event.seq
    this.#onEvent(event)
  }
}
