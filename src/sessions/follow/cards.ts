// The cards of many sessions, as they change. Only names wait for a slow reader: each card is read when the reader takes it, so it gets
// the newest one. It drives nothing and writes nothing.
import type { Services } from '../../engine/wiring.ts'
import type { Card, Store } from '../../ports/store.ts'
import { type TreeCard, withTreeCost } from '../../stores/plan/tree-cost.ts'
import type { CardChange, WatchOptions } from './open.ts'
import type { Source } from './pull.ts'

/** A card that changes all the time is given once in so many milliseconds. */
const PACE_MS = 50
/** Sessions with work open are looked at again without news: another process may change a card without an event. */
const LOOK_MS = 2_000
const LOOKS_MAX = 500
/** So many of the last cards are known, to give none twice. */
const GIVEN_MAX = 10_000
const PAGE = 500
/** After so many cards in a row others have their turn: a thousand of them take a good part of a second. */
const TURN = 25
const GONE = 'gone'

export async function openCards(
  { store, clock }: Services,
  { signal: _signal, ...filter }: WatchOptions,
  changed: Set<string>,
): Promise<Source<CardChange>> {
  const { root, parent, folder, where } = filter
  const narrow = root ?? parent ?? folder ?? where
  const known = narrow === undefined ? null : await namesOf(store, filter)
  return new Cards(store, clock, { filter, changed, known })
}

type Filter = Omit<WatchOptions, 'signal'>
type Watched = {
  readonly filter: Filter
  /** Sessions that changed since they were last read. */
  readonly changed: Set<string>
  /** The sessions that are watched, whatever their status: the card of a removed one cannot say so any more. Null: all are. */
  readonly known: Set<string> | null
}

class Cards implements Source<CardChange> {
  readonly #store: Store
  readonly #clock: Services['clock']
  readonly #watched: Watched
  /** What the reader has of each session. The one that was given last comes last. */
  readonly #given = new Map<string, string>()
  /** Those of them that have work open. */
  readonly #open = new Set<string>()
  /** Those that are only looked at again: without news of them or of a child below. */
  readonly #looks = new Set<string>()
  #read = 0
  #round = new Set<string>()
  #roundAt = Number.NEGATIVE_INFINITY
  #lookedAt: number

  constructor(store: Store, clock: Services['clock'], watched: Watched) {
    this.#store = store
    this.#clock = clock
    this.#watched = watched
    this.#lookedAt = clock.now()
  }

  until(): number {
    const { changed } = this.#watched
    const look = this.#lookedAt + LOOK_MS
    return changed.size > 0 ? Math.min(look, this.#roundAt + PACE_MS) : look
  }

  close(): void {
    this.#round.clear()
    this.#looks.clear()
    this.#given.clear()
  }

  async take(): Promise<CardChange | null> {
    if (this.#round.size === 0) this.#begin()
    // It grows while it is read: a child's card makes its parent's another one.
    for (const session of this.#round) {
      this.#round.delete(session)
      this.#read += 1
      if (this.#read % TURN === 0) await new Promise((resolve) => setImmediate(resolve))
      const change = await this.#changeOf(session)
      if (change) return change
    }
    return null
  }

  #begin(): void {
    const { changed } = this.#watched
    const now = this.#clock.now()
    if (now >= this.#lookedAt + LOOK_MS) {
      this.#lookedAt = now
      if (this.#store.reach !== 'process') this.#lookAgain()
    }
    if (changed.size === 0 || now < this.#roundAt + PACE_MS) return
    this.#roundAt = now
    this.#round = new Set(changed)
    changed.clear()
  }

  /** Each in its turn, if there are many. */
  #lookAgain(): void {
    const { changed } = this.#watched
    for (const session of [...this.#open].slice(0, LOOKS_MAX)) {
      this.#open.delete(session)
      this.#open.add(session)
      if (changed.has(session)) continue
      this.#looks.add(session)
      changed.add(session)
    }
  }

  async #changeOf(session: string): Promise<CardChange | null> {
    const { known, filter } = this.#watched
    const isLook = this.#looks.delete(session)
    const found = await this.#store.card(session)
    if (found === null) {
      this.#open.delete(session)
      return known === null || known.delete(session) ? this.#gone(session) : null
    }
    // What is below it costs the same, or there were news: its tree need not be read for this.
    if (isLook && this.#given.get(session)?.startsWith(`${ownVersionOf(found)} `)) return null
    if (found.parent !== undefined) {
      this.#looks.delete(found.parent)
      this.#round.add(found.parent)
    }
    if (!isWithin(found, filter)) return null
    known?.add(session)
    if (found.due === null) this.#open.delete(session)
    else this.#open.add(session)
    if (filter.status !== undefined && filter.status !== found.status) return this.#gone(session)
    const [card] = await withTreeCost(this.#store, [found])
    return card && this.#isNew(session, versionOf(card)) ? { type: 'card', card } : null
  }

  #gone(session: string): CardChange | null {
    return this.#isNew(session, GONE) ? { type: 'gone', session } : null
  }

  #isNew(session: string, version: string): boolean {
    if (this.#given.get(session) === version) return false
    this.#given.delete(session)
    this.#given.set(session, version)
    const [oldest] = this.#given.keys()
    if (this.#given.size <= GIVEN_MAX || oldest === undefined) return true
    this.#given.delete(oldest)
    this.#open.delete(oldest)
    return true
  }
}

/** Every event moves `seq`. The rest may change without one. */
function ownVersionOf({ seq, at, status, due, trouble }: Card): string {
  return `${seq} ${at} ${status} ${due} ${trouble ? JSON.stringify(trouble) : ''}`
}

function versionOf(card: TreeCard): string {
  return `${ownVersionOf(card)} ${card.treeCost}`
}

/** These never change for a session. */
function isWithin(card: Card, { root, parent, folder, where = {} }: Filter): boolean {
  if (root !== undefined && card.root !== root) return false
  if (parent !== undefined && card.parent !== parent) return false
  if (folder !== undefined && card.folder !== folder) return false
  return Object.entries(where).every(([name, value]) => card.labels?.[name] === value)
}

async function namesOf(store: Store, { status: _status, ...filter }: Filter): Promise<Set<string>> {
  const names = new Set<string>()
  for (let after = ''; ; ) {
    const page = await store.list({ ...filter, after, limit: PAGE })
    for (const { session } of page) names.add(session)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return names
    after = last.session
  }
}
