// The replacement for `notifications` in a store without it: the commits of this process, told after they are done. If
// other processes may have the store open, everything that is watched is also looked at each second.
import type { Event } from '../../kernel/event.ts'
import type { Notifications, Receipt, Store, Write } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { Listeners } from './listeners.ts'

const LOOK_MS = 1_000
const CARDS = 500

type News = readonly Event[] | null

export class OwnNews implements Notifications {
  readonly #store: Store
  /** Null: no other process writes. */
  readonly #clock: Clock | null
  readonly #listeners = new Listeners()
  /** The end of each watched log when it was last told, or last looked at. */
  readonly #ends = new Map<string, number>()
  /** All cards as they were last looked at; null while nothing watches them. */
  #cards: ReadonlyMap<string, string> | null = null
  #nextDue: number | null = null
  #cancel: (() => void) | null = null
  #closed = false

  constructor(store: Store, clock: Clock | null) {
    this.#store = store
    this.#clock = clock
  }

  watch(session: string, listener: (news: News) => void): () => void {
    return this.#looking(this.#listeners.addSession(session, listener))
  }

  watchCards(listener: (session: string) => void): () => void {
    return this.#looking(this.#listeners.addCards(listener))
  }

  watchDue(listener: () => void): () => void {
    return this.#looking(this.#listeners.addDue(listener))
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
    this.#listeners.clear()
  }

  tellCommit(writes: readonly Write[], receipts: readonly Receipt[]): void {
    const fresh = writes.filter((_, i) => receipts[i]?.duplicate === false)
    const grown = growthOf(fresh)
    for (const [session, news] of grown) {
      this.#noteEnd(session, news)
      this.#listeners.tell(session, news)
    }
    for (const session of new Set([...fresh.map((write) => write.session), ...grown.keys()]))
      this.#listeners.tellCard(session)
    if (fresh.some(mayMakeDue)) this.#listeners.tellDue()
  }

  tellReleased(session: string): void {
    this.#listeners.tellCard(session)
    this.#listeners.tellDue()
  }

  tellRemoved(session: string): void {
    this.#ends.set(session, 0)
    this.#listeners.tell(session, null)
    this.#listeners.tellCard(session)
  }

  tellDue(): void {
    this.#listeners.tellDue()
  }

  /** Notes the end that the listeners were told, so that the next look does not report it again. */
  #noteEnd(session: string, news: News): void {
    const last = news?.at(-1)
    if (last) this.#ends.set(session, last.seq)
  }

  #looking(remove: () => void): () => void {
    this.#lookLater()
    return () => {
      remove()
      if (this.#listeners.empty) this.#cancel?.()
      if (this.#listeners.empty) this.#cancel = null
    }
  }

  #lookLater(): void {
    if (this.#clock === null || this.#cancel !== null || this.#closed) return
    this.#cancel = this.#clock.timer(LOOK_MS, () => {
      const looked = this.#look()
      // A store that cannot be read now is looked at again in a second.
      void looked
        .catch(() => {})
        .finally(() => {
          this.#cancel = null
          if (!this.#listeners.empty) this.#lookLater()
        })
    })
  }

  async #look(): Promise<void> {
    for (const session of this.#listeners.sessions) await this.#lookAtLog(session)
    if (this.#listeners.hasCards) await this.#lookAtCards()
    else this.#cards = null
    if (this.#listeners.hasDue) await this.#lookAtDue()
  }

  async #lookAtLog(session: string): Promise<void> {
    const end = (await this.#store.card(session))?.seq ?? 0
    const known = this.#ends.get(session)
    this.#ends.set(session, end)
    // The first look cannot tell what its listener has read.
    if (end !== known) this.#listeners.tell(session, null)
  }

  async #lookAtCards(): Promise<void> {
    const before = this.#cards
    const cards = new Map<string, string>()
    for (let after: string | undefined; ; ) {
      const page = await this.#store.list({ limit: CARDS, ...(after === undefined ? {} : { after }) })
      for (const card of page) cards.set(card.session, JSON.stringify(card))
      after = page.at(-1)?.session
      if (page.length < CARDS) break
    }
    this.#cards = cards
    for (const [session, text] of cards) if (before?.get(session) !== text) this.#listeners.tellCard(session)
    for (const session of before?.keys() ?? []) if (!cards.has(session)) this.#listeners.tellCard(session)
  }

  async #lookAtDue(): Promise<void> {
    const { next } = await this.#store.due(0)
    const isNew = next !== this.#nextDue
    this.#nextDue = next
    const { sessions } = isNew || next === null ? { sessions: [] } : await this.#store.due(1)
    if (isNew || sessions.length > 0) this.#listeners.tellDue()
  }
}

/** The sessions that grew. With each come its new events, if this process has all of them with their stamps. */
function growthOf(writes: readonly Write[]): ReadonlyMap<string, News> {
  const grown = new Map<string, News>()
  for (const write of writes) {
    if (write.lane === 'inbox' || 'history' in write) grown.set(write.session, null)
    else if (write.events.length > 0) {
      const before = grown.get(write.session)
      grown.set(write.session, before === null ? null : [...(before ?? []), ...write.events])
    }
    // The store stamps these.
    if (write.lane === 'owner') for (const { session } of write.sends ?? []) grown.set(session, null)
  }
  return grown
}

/** A session that its owner keeps is not due for others. */
function mayMakeDue(write: Write): boolean {
  if (write.lane === 'inbox') return write.events.length > 0
  const isFree = write.release === true || write.epoch === 0
  return (isFree && write.card.due !== null) || (write.sends?.length ?? 0) > 0
}
