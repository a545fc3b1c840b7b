// Reading a session that others drive: its events by pages of the store, and what is being said between them. It takes no lease and
// writes nothing, and keeps no more than one page and what was said since the last step.
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Services } from '../../engine/wiring.ts'
import type { Place } from '../await-run.ts'
import type { Followed, FollowOptions } from './open.ts'
import type { Source } from './pull.ts'
import { Spoken } from './spoken.ts'

/** What is read ahead of the reader. One event may be longer. */
const EVENTS_AHEAD_MAX = 200
const BYTES_AHEAD_MAX = 1024 * 1024
/** Looked at again without news: of a process that was stopped just when it wrote, none may come. */
const LOOK_MS = 5_000

export async function openFollow(place: Place, options: FollowOptions, news: () => void): Promise<Source<Followed>> {
  const { id, services } = place
  const { after = 0 } = options
  const last = after === 0 ? null : ((await services.store.read(id, after - 1, 1)).events[0] ?? null)
  if (after > 0 && last === null) throw await beyond(services, id, after)
  return new Follow(place, options, { last, news })
}

async function beyond({ store }: Services, id: string, after: number): Promise<Fault> {
  const head = (await store.card(id))?.seq ?? 0
  const text = `Session ${id} has no event ${after}: its last is ${head}. Follow it after ${head}, or from an earlier event.`
  return new Fault('cursor_stale', text)
}

type Start = { readonly last: Event | null; readonly news: () => void }

class Follow implements Source<Followed> {
  readonly #id: string
  readonly #services: Services
  readonly #news: () => void
  readonly #unwatch: () => void
  /** Null for a reader that did not ask for it. */
  readonly #spoken: Spoken | null
  /** The last event that the reader has. */
  #last: Event | null
  #page: readonly Event[] = []
  #at = 0
  #damage: Fault | null = null
  /** The log may have grown; by more than this process knows of, or not at all, it may be another one by now. */
  #stale = true
  #doubted = false
  #lookedAt = Number.NEGATIVE_INFINITY
  /** Where it began, as long as it is not known which replies were over there. */
  #began: number | null

  constructor({ id, services }: Place, { deltas = false, after = 0 }: FollowOptions, { last, news }: Start) {
    this.#began = after === 0 ? null : after
    this.#id = id
    this.#services = services
    this.#news = news
    this.#last = last
    this.#spoken = deltas ? new Spoken(services.live, id, news) : null
    this.#unwatch = services.store.watch(id, (grown) => {
      this.#stale = true
      this.#doubted ||= grown === null
      this.#news()
    })
  }

  get #seq(): number {
    return this.#last?.seq ?? 0
  }

  until(): number {
    return this.#lookedAt + LOOK_MS
  }

  close(): void {
    this.#unwatch()
    this.#spoken?.close()
    this.#page = []
  }

  /** Events come first. Before the one that ends a reply comes what was heard of that reply. */
  async take(): Promise<Followed | null> {
    if (this.#at === this.#page.length) await this.#look()
    if (this.#began !== null) await this.#skipOver(this.#began)
    const event = this.#page[this.#at]
    if (event === undefined) return this.#spoken?.take(this.#seq) ?? null
    const heard = event.type === 'agent.message' ? this.#spoken?.heard(this.#seq) : null
    if (heard) return heard
    this.#at += 1
    this.#last = event
    this.#spoken?.passed(event)
    return { type: 'event', event }
  }

  /** Of a reply that was over where this reader began, such as that of an attempt that was lost and talks on, nothing is given. */
  async #skipOver(began: number): Promise<void> {
    const first = this.#spoken?.first ?? null
    if (first === null || first > began) return
    this.#began = null
    const { events } = await this.#services.store.read(this.#id, first, EVENTS_AHEAD_MAX, BYTES_AHEAD_MAX)
    for (const event of events) if (event.seq <= began) this.#spoken?.passed(event)
  }

  async #look(): Promise<void> {
    if (this.#damage) throw this.#damage
    const now = this.#services.clock.now()
    if (!this.#stale && now < this.until()) return
    const doubted = this.#doubted || !this.#stale
    this.#stale = false
    this.#doubted = false
    this.#lookedAt = now
    try {
      await this.#read(doubted)
    } catch (error) {
      if (error instanceof Fault && error.code === 'session_missing' && this.#last) throw this.#removed()
      throw error
    }
  }

  async #read(doubted: boolean): Promise<void> {
    const { store } = this.#services
    const last = this.#last
    if (doubted && last) {
      const [same] = (await store.read(this.#id, last.seq - 1, 1)).events
      if (same?.type !== last.type || same.at !== last.at) throw this.#removed()
    }
    const { events, damaged } = await store.read(this.#id, this.#seq, EVENTS_AHEAD_MAX, BYTES_AHEAD_MAX)
    this.#page = events
    this.#at = 0
    // There may be more than a page.
    this.#stale ||= events.length > 0
    if (damaged) this.#damage = damageAt(this.#id, damaged.seq)
  }

  /** Its id may have been used again, for a session that this reader did not ask for. */
  #removed(): Fault {
    return new Fault('session_missing', `Session ${this.#id} was removed. Nothing more comes.`)
  }
}

function damageAt(id: string, seq: number): Fault {
  const text = `Session ${id} is damaged: it can be read up to event ${seq - 1}. Export that, or restore the database from a backup.`
  return new Fault('session_damaged', text)
}
