// The listeners of one store, called for each commit in commit order. It does not look for news itself: the store calls
// it.
import type { Event } from '../../kernel/event.ts'

type SessionNews = readonly Event[] | null
type SessionListener = (news: SessionNews) => void
type Subscription<Listener = SessionListener> = { readonly listener: Listener }

/** The listeners of one store: it calls them for each commit, in the order of commits. */
export class Listeners {
  readonly #sessions = new Map<string, Set<Subscription>>()
  readonly #due = new Set<Subscription>()
  readonly #cards = new Set<Subscription<(session: string) => void>>()
  readonly #queue: {
    readonly set: ReadonlySet<Subscription>
    readonly own: Subscription
    readonly news: SessionNews
  }[] = []
  #delivering = false

  /** True if nobody listens. */
  get empty(): boolean {
    return this.#sessions.size === 0 && !this.hasDue && !this.hasCards
  }

  /** True if somebody listens for cards. */
  get hasCards(): boolean {
    return this.#cards.size > 0
  }

  /** True if somebody listens for due sessions. */
  get hasDue(): boolean {
    return this.#due.size > 0
  }

  /** The sessions that somebody listens to. */
  get sessions(): Iterable<string> {
    return this.#sessions.keys()
  }

  /** True if somebody listens to this session. */
  watches(session: string): boolean {
    return this.#sessions.has(session)
  }

  /** Adds a listener for commits of one session. Returns what removes it. */
  addSession(session: string, listener: SessionListener): () => void {
    // A separate object, so that a listener added twice is called twice and removed once at a time.
    const own = { listener }
    const set = this.#sessions.get(session) ?? new Set()
    this.#sessions.set(session, set.add(own))
    return () => {
      set.delete(own)
      if (set.size === 0 && this.#sessions.get(session) === set) this.#sessions.delete(session)
    }
  }

  /** Adds a listener for sessions that become due. Returns what removes it. */
  addDue(listener: () => void): () => void {
    const own = { listener }
    this.#due.add(own)
    return () => void this.#due.delete(own)
  }

  /** Adds a listener for cards that change. Returns what removes it. */
  addCards(listener: (session: string) => void): () => void {
    const own = { listener }
    this.#cards.add(own)
    return () => void this.#cards.delete(own)
  }

  /** Tells the listeners of a session of its new events. Null: they must read them. */
  tell(session: string, news: SessionNews): void {
    const set = this.#sessions.get(session)
    if (set) this.#deliver(set, news)
  }

  /** Tells that some session may have become due. */
  tellDue(): void {
    if (this.hasDue) this.#deliver(this.#due, null)
  }

  /** These listeners only note the name, so order does not matter. */
  tellCard(session: string): void {
    for (const { listener } of this.#cards) listener(session)
  }

  /** Removes all listeners. */
  clear(): void {
    this.#cards.clear()
    this.#sessions.clear()
    this.#due.clear()
  }

  /**
   * A listener may commit. Its news waits until all listeners have the present news, so that none gets them out of
   * order.
   */
  #deliver(set: ReadonlySet<Subscription>, news: SessionNews): void {
    for (const own of set) this.#queue.push({ set, own, news })
    if (this.#delivering) return
    this.#delivering = true
    for (let told = this.#queue.shift(); told; told = this.#queue.shift()) {
      if (!told.set.has(told.own)) continue
      try {
        told.own.listener(told.news)
      } catch (error) {
        // The commit stands. A listener that throws is a bug of its owner, and must be visible as one.
        queueMicrotask(() => {
          throw error
        })
      }
    }
    this.#delivering = false
  }
}
