// Watches the cards of many sessions. Only the names of changed sessions wait for a slow reader: each card is read when
// the reader takes it, so the reader gets the newest one. It drives nothing and writes nothing.
import { isLaneAgent } from '../../view/lanes.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import type { Card, CompleteStore } from '../../ports/store.ts'
import { type TreeCard, withTreeCost } from '../../stores/plan/tree-cost.ts'
import type { CardChange, WatchOptions } from './open.ts'
import type { PullSource } from './pull.ts'

/** A card that changes constantly is given at most once in this time. */
const PACE_MS = 50
/** Sessions with open work are read again without news: another process may change a card without an event. */
const LOOK_MS = 2_000
const LOOKS_MAX = 500
/** The number of given cards that are remembered, so that none is given twice. */
const GIVEN_MAX = 10_000
const PAGE = 500
/** After this many cards in a row, other code gets a turn: a thousand cards take a good part of a second. */
const TURN = 25
const GONE = 'gone'

export async function openCardWatch(
  { store, clock }: Services,
  { signal: _signal, ...filter }: WatchOptions,
  changed: Set<string>,
): Promise<PullSource<CardChange>> {
  const { root, parent, folder, where } = filter
  const narrow = root ?? parent ?? folder ?? where
  const known = narrow === undefined ? null : await readSessionIds(store, filter)
  return new CardSource(store, clock, { filter, changed, known })
}

type WatchFilter = Omit<WatchOptions, 'signal'>
type WatchedCards = {
  readonly filter: WatchFilter
  /** Sessions that changed since they were last read. */
  readonly changed: Set<string>
  /**
   * The watched sessions, whatever their status: a removed session has no card that could be filtered any more. Null:
   * all are watched.
   */
  readonly known: Set<string> | null
}

class CardSource implements PullSource<CardChange> {
  readonly #store: CompleteStore
  readonly #clock: Services['clock']
  readonly #watched: WatchedCards
  /** The version of each session's card that the reader has. The last given comes last. */
  readonly #given = new Map<string, string>()
  /** The given sessions that have open work. */
  readonly #open = new Set<string>()
  /** Sessions that are only read again, without news about them or a child below them. */
  readonly #looks = new Set<string>()
  #read = 0
  #round = new Set<string>()
  #roundAt = Number.NEGATIVE_INFINITY
  #lookedAt: number

  constructor(store: CompleteStore, clock: Services['clock'], watched: WatchedCards) {
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
    // The set grows during the loop: a child's card changes its parent's tree cost.
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

  /** Rotates through the sessions if there are many. */
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
    // The card itself is unchanged and there was no news from below, so its tree need not be read.
    if (isLook && this.#given.get(session)?.startsWith(`${ownCardVersion(found)} `)) return null
    if (found.parent !== undefined) {
      this.#looks.delete(found.parent)
      this.#round.add(found.parent)
    }
    if (!passesFilter(found, filter)) return null
    known?.add(session)
    if (found.due === null) this.#open.delete(session)
    else this.#open.add(session)
    if (filter.status !== undefined && filter.status !== found.status) return this.#gone(session)
    const [card] = await withTreeCost(this.#store, [found])
    return card && this.#isNew(session, cardVersion(card)) ? { type: 'card', card } : null
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

/** Every event changes `seq`. The other fields may change without an event. */
function ownCardVersion({ seq, at, status, due, trouble }: Card): string {
  return `${seq} ${at} ${status} ${due} ${trouble ? JSON.stringify(trouble) : ''}`
}

function cardVersion(card: TreeCard): string {
  return `${ownCardVersion(card)} ${card.treeCost}`
}

/** These fields never change for a session. */
function passesFilter(card: Card, { root, parent, folder, where = {} }: WatchFilter): boolean {
  if (root === undefined ? isLaneAgent(card.agent) : card.root !== root) return false
  if (parent !== undefined && card.parent !== parent) return false
  if (folder !== undefined && card.folder !== folder) return false
  return Object.entries(where).every(([name, value]) => card.labels?.[name] === value)
}

async function readSessionIds(store: CompleteStore, { status: _status, ...filter }: WatchFilter): Promise<Set<string>> {
  const names = new Set<string>()
  for (let after = ''; ; ) {
    const page = await store.list({ ...filter, after, limit: PAGE })
    for (const { session, agent } of page) if (filter.root !== undefined || !isLaneAgent(agent)) names.add(session)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return names
    after = last.session
  }
}
