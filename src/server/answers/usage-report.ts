// The handler for usage: what was spent by day, agent and model, counted from the logs. Each log is read once and then
// only where it grew; of the sessions only those are looked at that changed since the request before. One request reads a
// bounded number of events and says whether it reached the end.
import type { Card, CardPlace, Event, CompleteStore } from '../../kernel/index.ts'
import { LANE_AGENTS } from '../../view/lanes.ts'
import { usdOf } from '../../view/usd.ts'
import { type ApiRequest, type ApiAnswer, OWNER } from '../server-host.ts'
import type { UsageAnswer, UsageRow } from '../wire.ts'

const HOUR_MS = 60 * 60 * 1_000
const DAY_MS = 24 * HOUR_MS
const DAYS = 30
const EVENTS_MAX = 50_000
const PAGE = 500
/** How far the clocks of two processes may be apart, and how long a commit may take. */
const SLACK_MS = 10_000
const REMOVALS = 1_000

type UsageSum = { cost: number; inputTokens: number; outputTokens: number; replies: number }
type UsageTotal = UsageSum & Pick<SessionUsage, 'owner' | 'agent'> & { readonly day: string; readonly model: string }
/** How far a log was read, and what it spent by day and model. */
type SessionUsage = {
  readonly session: string
  readonly created: number
  readonly agent: string
  readonly owner: string | null
  readonly spent: Map<string, UsageSum>
  seq: number
}
type SpendingEntry = { readonly at: number; readonly cost: number; readonly of: SessionUsage }
/** A walk through the sessions, the last changed first, down to those that did not change after `from`. */
type UsageWalk = { readonly begun: number; readonly from: number; lanes: boolean; behind: CardPlace | null }

const usageByStore = new WeakMap<CompleteStore, UsageCount>()

export async function handleUsage({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  const { store } = host
  const { days = DAYS } = query as { readonly days?: number }
  const now = store.now()
  const since = now - days * DAY_MS
  const count = usageByStore.get(store) ?? new UsageCount(store)
  usageByStore.set(store, count)
  const complete = await count.countOn(since, now)
  const owner = principal.reach === 'own' ? principal.name : null
  const hourUsd = usdOf(count.spentAfter(now - HOUR_MS, owner))
  return { json: { rows: count.rows(dayOf(since), owner), complete, now, hourUsd } satisfies UsageAnswer }
}

class UsageCount {
  readonly #store: CompleteStore
  readonly #sessions = new Map<string, SessionUsage>()
  readonly #totals = new Map<string, UsageTotal>()
  #recent: SpendingEntry[] = []
  /** All that happened between these times is counted. */
  #counted = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY }
  #walk: UsageWalk | null = null
  #removedTo = Number.NEGATIVE_INFINITY
  #last: Promise<unknown> = Promise.resolve()

  constructor(store: CompleteStore) {
    this.#store = store
  }

  /** Counts what is new, one request after the other. False: there is more. */
  countOn(since: number, now: number): Promise<boolean> {
    const counted = this.#last.then(() => this.#countOn(since, now))
    this.#last = counted.catch(() => {})
    return counted
  }

  async #countOn(since: number, now: number): Promise<boolean> {
    await this.#dropRemoved()
    const { from, to } = this.#counted
    // An earlier day than before, or a clock that was set back: all sessions are looked at again.
    const floor = since < from || now < to ? since : to - SLACK_MS
    this.#walk ??= { begun: now, from: floor, lanes: false, behind: null }
    const walk = this.#walk
    for (let left = EVENTS_MAX; ; ) {
      const { cards, next } = await this.#store.page({
        order: 'newest',
        children: true,
        limit: PAGE,
        since: walk.from,
        ...(walk.lanes ? { agent: LANE_AGENTS } : {}),
        ...(walk.behind ? { behind: walk.behind } : {}),
      })
      for (const card of cards) {
        left -= await this.#read(card, left)
        if (left <= 0) return false
      }
      walk.behind = next
      if (next === null && walk.lanes) break
      if (next === null) walk.lanes = true
    }
    this.#walk = null
    this.#counted = { from: Math.min(from, walk.from), to: walk.begun }
    return true
  }

  /** Reads on in this log, and says how many events that were. */
  async #read(card: Card, most: number): Promise<number> {
    const { session, seq, created = 0, agent } = card
    const before = this.#sessions.get(session)
    // The id may now belong to another session, if the first one was removed.
    const isSame = before?.created === created && before.seq <= seq
    if (before && !isSame) this.#forget(before)
    const owner = card.labels?.[OWNER] ?? null
    const book = before && isSame ? before : { session, created, agent, owner, spent: new Map(), seq: 0 }
    this.#sessions.set(session, book)
    let count = 0
    while (book.seq < seq && count < most) {
      const { events, damaged } = await this.#store.read(session, book.seq, PAGE)
      for (const event of events) this.#add(book, event)
      count += events.length
      if (damaged || events.length === 0) break
    }
    return count
  }

  #add(book: SessionUsage, event: Event): void {
    book.seq = event.seq
    if (!('usage' in event) && !('cost' in event)) return
    const { usage: used, cost = 0 } = event
    const model = ('route' in event && event.route) || 'unknown'
    const day = dayOf(event.at)
    const spent = book.spent.get(`${day} ${model}`) ?? { ...NOTHING }
    book.spent.set(`${day} ${model}`, spent)
    if (cost > 0) this.#recent.push({ at: event.at, cost, of: book })
    const { inputTokens = 0, outputTokens = 0 } = used ?? {}
    const sum = { cost, inputTokens, outputTokens, replies: event.type === 'agent.message' ? 1 : 0 }
    for (const each of [spent, this.#totalOf(book, day, model)]) addUsage(each, sum, 1)
  }

  #totalOf({ owner, agent }: SessionUsage, day: string, model: string): UsageTotal {
    const name = JSON.stringify([owner, agent, day, model])
    const total = this.#totals.get(name) ?? { owner, agent, day, model, ...NOTHING }
    this.#totals.set(name, total)
    return total
  }

  #forget(book: SessionUsage): void {
    this.#sessions.delete(book.session)
    this.#recent = this.#recent.filter(({ of }) => of !== book)
    for (const [key, spent] of book.spent) addUsage(this.#totalOf(book, key.slice(0, 10), key.slice(11)), spent, -1)
  }

  /** What a removed session spent is not counted any more. After more removals than are read here, all is counted anew. */
  async #dropRemoved(): Promise<void> {
    const removals = await this.#store.removals(REMOVALS)
    const last = removals.at(-1)
    if (removals.length === REMOVALS && last && last.at > this.#removedTo && this.#sessions.size > 0) {
      for (const book of this.#sessions.values()) this.#forget(book)
      this.#counted = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY }
      this.#walk = null
    }
    for (const { session, at } of removals) {
      if (at < this.#removedTo) break
      const book = this.#sessions.get(session)
      if (book && book.created <= at) this.#forget(book)
    }
    this.#removedTo = removals[0]?.at ?? this.#removedTo
  }

  /** In dollars. Entries older than that are dropped. */
  spentAfter(from: number, owner: string | null): number {
    this.#recent = this.#recent.filter(({ at }) => at > from)
    return this.#recent.reduce((sum, { cost, of }) => (owner === null || of.owner === owner ? sum + cost : sum), 0)
  }

  rows(from: string, owner: string | null): readonly UsageRow[] {
    const rows = new Map<string, UsageSum & Pick<UsageTotal, 'day' | 'agent' | 'model'>>()
    for (const { owner: of, agent, day, model, ...sum } of this.#totals.values()) {
      if (day < from || (owner !== null && of !== owner) || sum.replies + sum.inputTokens + sum.cost === 0) continue
      const name = JSON.stringify([day, agent, model])
      const row = rows.get(name) ?? { day, agent, model, ...NOTHING }
      rows.set(name, row)
      addUsage(row, sum, 1)
    }
    return [...rows.values()]
      .map(({ cost, ...row }) => ({ ...row, usd: usdOf(cost) }))
      .toSorted((a, b) => `${b.day} ${a.agent} ${a.model}`.localeCompare(`${a.day} ${b.agent} ${b.model}`))
  }
}

/** Adds with the sign 1, and takes away with -1. */
function addUsage(to: UsageSum, { cost, inputTokens, outputTokens, replies }: UsageSum, sign: 1 | -1): void {
  to.cost += sign * cost
  to.inputTokens += sign * inputTokens
  to.outputTokens += sign * outputTokens
  to.replies += sign * replies
}

/** A calendar day in UTC. */
function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}

const NOTHING: Readonly<UsageSum> = { cost: 0, inputTokens: 0, outputTokens: 0, replies: 0 }
