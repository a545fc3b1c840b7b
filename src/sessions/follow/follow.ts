// Follows a session that others drive: its events in pages from the store, and live deltas between them. It takes no
// lease and writes nothing, and keeps no more than one page and the deltas since the last step.
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { cloneJson } from '../../runtime/state/clone-json.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import type { SessionAccess } from '../await-run.ts'
import type { Followed, FollowOptions } from './open.ts'
import type { PullSource } from './pull.ts'
import { DeltaBuffer } from './spoken.ts'

/** The most that is read ahead of the reader. A single event may be longer. */
const EVENTS_AHEAD_MAX = 200
const BYTES_AHEAD_MAX = 1024 * 1024
/** How often the log is read without news: a process that stopped right after a write sends none. */
const LOOK_MS = 5_000

export async function openFollow(
  place: SessionAccess,
  options: FollowOptions,
  news: () => void,
): Promise<PullSource<Followed>> {
  const { id, services } = place
  const { after = 0 } = options
  const last = after === 0 ? null : ((await services.store.read(id, after - 1, 1)).events[0] ?? null)
  if (after > 0 && last === null) throw await beyondEndFault(services, id, after)
  return new FollowSource(place, options, { last, news })
}

async function beyondEndFault({ store }: Services, id: string, after: number): Promise<Fault> {
  const head = (await store.card(id))?.seq ?? 0
  const text = `Session ${id} has no event ${after}: its last is ${head}. Follow it after ${head}, or from an earlier event.`
  return new Fault('cursor_stale', text)
}

type FollowStart = { readonly last: Event | null; readonly news: () => void }

class FollowSource implements PullSource<Followed> {
  readonly #id: string
  readonly #services: Services
  readonly #news: () => void
  readonly #unwatch: () => void
  /** Null for a reader that did not ask for deltas. */
  readonly #spoken: DeltaBuffer | null
  /** The last event that the reader has. */
  #last: Event | null
  #page: readonly Event[] = []
  #at = 0
  /** The page is what a commit of this process told its listeners: the same objects for all of them. */
  #isTold = false
  #reading = false
  #damage: Fault | null = null
  /**
   * `#stale`: the log may have grown. `#doubted`: the last news did not say what changed, or there was no news, so the
   * log may by now belong to another session of the same id.
   */
  #stale = true
  #doubted = false
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The starting point, until it is known which replies were over there. */
  #began: number | null

  constructor(
    { id, services }: SessionAccess,
    { deltas = false, after = 0 }: FollowOptions,
    { last, news }: FollowStart,
  ) {
    this.#began = after === 0 ? null : after
    this.#id = id
    this.#services = services
    this.#news = news
    this.#last = last
    this.#spoken = deltas ? new DeltaBuffer(services.live, id, news) : null
    this.#unwatch = services.store.watch(id, (grown) => {
      if (grown === null || !this.#takeTold(grown)) {
        this.#stale = true
        this.#doubted ||= grown === null
      }
      this.#news()
    })
  }

  /** A reader that has everything takes what follows as it was told. Otherwise the log must be read. */
  #takeTold(grown: readonly Event[]): boolean {
    const hasAll = !this.#stale && !this.#reading && this.#at === this.#page.length
    if (!hasAll || grown[0]?.seq !== this.#seq + 1 || grown.length > EVENTS_AHEAD_MAX) return false
    this.#page = grown
    this.#at = 0
    this.#isTold = true
    this.#lookedAt = this.#services.clock.now()
    return true
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

  /** Events come first. The heard deltas of a reply come before the event that ends it. */
  async take(): Promise<Followed | null> {
    if (this.#at === this.#page.length) await this.#look()
    if (this.#began !== null) await this.#skipOver(this.#began)
    const event = this.#page[this.#at]
    if (event === undefined) return this.#spoken?.take(this.#seq) ?? null
    const heard = event.type === 'agent.message' ? this.#spoken?.takeHeard(this.#seq) : null
    if (heard) return heard
    this.#at += 1
    this.#last = event
    this.#spoken?.passEvent(event)
    // A reader may change what it is given, and this source goes on from its own.
    return { type: 'event', event: this.#isTold ? cloneJson(event) : { ...event } }
  }

  /** Replies that were over at the starting point give no deltas, such as those of a lost attempt that still talks. */
  async #skipOver(began: number): Promise<void> {
    const first = this.#spoken?.first ?? null
    if (first === null || first > began) return
    this.#began = null
    const { events } = await this.#services.store.read(this.#id, first, EVENTS_AHEAD_MAX, BYTES_AHEAD_MAX)
    for (const event of events) if (event.seq <= began) this.#spoken?.passEvent(event)
  }

  async #look(): Promise<void> {
    if (this.#damage) throw this.#damage
    const now = this.#services.clock.now()
    if (!this.#stale && now < this.until()) return
    const doubted = this.#doubted || !this.#stale
    this.#stale = false
    this.#doubted = false
    this.#lookedAt = now
    this.#reading = true
    try {
      await this.#read(doubted)
    } catch (error) {
      if (error instanceof Fault && error.code === 'session_missing' && this.#last) throw this.#removed()
      throw error
    } finally {
      this.#reading = false
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
    this.#isTold = false
    // There may be more than a page.
    this.#stale ||= events.length > 0
    if (damaged) this.#damage = damageFault(this.#id, damaged.seq)
  }

  /** The id may have been used again, for a session that this reader did not ask for. */
  #removed(): Fault {
    return new Fault('session_missing', `Session ${this.#id} was removed. Nothing more comes.`)
  }
}

function damageFault(id: string, seq: number): Fault {
  const text = `Session ${id} is damaged: it can be read up to event ${seq - 1}. Export that, or restore the database from a backup.`
  return new Fault('session_damaged', text)
}
