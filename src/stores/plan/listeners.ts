// The listeners of one store, told of each commit in commit order.
// It does not look for news itself: the store tells it.
import type { Event } from '../../kernel/event.ts'

type News = readonly Event[] | null
type SessionListener = (news: News) => void
type Own<Listener = SessionListener> = { readonly listener: Listener }

export class Listeners {
  readonly #sessions = new Map<string, Set<Own>>()
  readonly #due = new Set<Own>()
  readonly #cards = new Set<Own<(session: string) => void>>()
  readonly #queue: { readonly set: ReadonlySet<Own>; readonly own: Own; readonly news: News }[] = []
  #delivering = false

  get empty(): boolean {
    return this.#sessions.size === 0 && !this.hasDue && !this.hasCards
  }

  get hasCards(): boolean {
    return this.#cards.size > 0
  }

  get hasDue(): boolean {
    return this.#due.size > 0
  }

  get sessions(): Iterable<string> {
    return this.#sessions.keys()
  }

  watches(session: string): boolean {
    return this.#sessions.has(session)
  }

  addSession(session: string, listener: SessionListener): () => void {
    // An object of its own, so that one listener added twice is heard twice and leaves one at a time.
    const own = { listener }
    const set = this.#sessions.get(session) ?? new Set()
    this.#sessions.set(session, set.add(own))
    return () => {
      set.delete(own)
      if (set.size === 0 && this.#sessions.get(session) === set) this.#sessions.delete(session)
    }
  }

  addDue(listener: () => void): () => void {
    const own = { listener }
    this.#due.add(own)
    return () => void this.#due.delete(own)
  }

  addCards(listener: (session: string) => void): () => void {
    const own = { listener }
    this.#cards.add(own)
    return () => void this.#cards.delete(own)
  }

  tell(session: string, news: News): void {
    const set = this.#sessions.get(session)
    if (set) this.#deliver(set, news)
  }

  tellDue(): void {
    if (this.hasDue) this.#deliver(this.#due, null)
  }

  /** These listeners only note the name, so there is no order to keep. */
  tellCard(session: string): void {
    for (const { listener } of this.#cards) listener(session)
  }

  clear(): void {
    this.#cards.clear()
    this.#sessions.clear()
    this.#due.clear()
  }

  /** A listener may commit: its news waits until the present news has reached every listener, so none hears them out of order. */
  #deliver(set: ReadonlySet<Own>, news: News): void {
    for (const own of set) this.#queue.push({ set, own, news })
    if (this.#delivering) return
    this.#delivering = true
    for (let told = this.#queue.shift(); told; told = this.#queue.shift()) {
      if (!told.set.has(told.own)) continue
      try {
        told.own.listener(told.news)
      } catch (error) {
        // The commit stands. A listener that throws is a bug of its owner, and must be seen as one.
        queueMicrotask(() => {
          throw error
        })
      }
    }
    this.#delivering = false
  }
}
