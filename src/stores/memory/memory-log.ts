// One session of the store in memory, and reading many of them: cards, and lists of cards. It decides nothing:
// memory-store.ts does.
import type { Card, CardFilter, CardPage, CardQuery, CardPlace, Snapshot } from '../../ports/store.ts'
import type { Event } from '../../kernel/event.ts'
import { assert } from '../../kernel/failure.ts'
import { type LogFacts, searchableText, hasAllWords, searchWords } from '../plan/log-facts.ts'
import { compareIds } from '../plan/store-ids.ts'
import {
  comparePlaces,
  FIRST_PLACE,
  hasOutcome,
  isAgentWanted,
  matchesFilter,
  meetsConditions,
} from '../plan/card-query.ts'
import { type SessionChange, type SessionRecord, cardOfRecord, forkOriginOf } from '../plan/plan-writes.ts'
import { isSnapshotSpare } from '../plan/snapshot-span.ts'
import { upcast } from '../plan/upcast.ts'

/**
 * One session. A class, so that all of them have one shape: with different shapes every property access would be a
 * search.
 */
export class MemoryLog implements SessionRecord {
  readonly id: string
  /** The number of the session in order of creation. */
  readonly n: number
  turn = 0
  seq = 0
  at = 0
  epoch: number
  worker: string | null = null
  due: number | null = null
  urgent = false
  status: Card['status']
  tries = 0
  trouble: SessionRecord['trouble'] = null
  facts: LogFacts
  card: Card
  readonly bodies: string[] = []
  readonly ids = new Map<string, number>()
  /** By seq. */
  readonly snapshots: KeptSnapshot[] = []
  /** The session that this one was forked from, whose log it reads first. */
  readonly origin: string | null
  /** The blobs it refers to, if any. */
  blobs: Set<string> | null = null

  constructor(n: number, draft: SessionChange, card: Card) {
    this.id = draft.session
    this.n = n
    this.epoch = draft.epoch
    this.status = draft.status
    this.facts = draft.facts
    this.card = card
    this.origin = forkOriginOf(draft)
  }
}

/** True for sessions of these agents; without agents, for every session. */
export function matchesAgents(agents: readonly string[] | undefined): (log: MemoryLog) => boolean {
  return agents === undefined ? () => true : ({ card }) => agents.includes(card.agent)
}

/**
 * JSON is built in pieces, and a string of pieces takes half as much memory again. Reading one character joins them.
 */
export function flattenText(text: string): string {
  if (text.charCodeAt(0) !== OBJECT) assert(false, 'an event is an object')
  return text
}
const OBJECT = '{'.charCodeAt(0)

/** The events after `after`: at least one if there is one, then as many as both bounds allow. */
export function eventsAfter({ bodies }: MemoryLog, after: number, limit: number, bytesMax: number): readonly Event[] {
  const events: Event[] = []
  for (let i = after, bytes = 0; i < bodies.length && i < after + limit; i++) {
    const body = bodies[i] ?? ''
    bytes += body.length
    if (bytes > bytesMax && events.length > 0) break
    events.push(upcast(JSON.parse(body) as Event))
  }
  return events
}

/** For logs that are ordered by id. */
export function listMemoryCards(ordered: readonly MemoryLog[], filter: CardFilter): readonly Card[] {
  const { after = '', limit } = filter
  const found: Card[] = []
  for (const log of ordered.slice(countUpTo(ordered, after))) {
    if (found.length >= limit) break
    if (matchesFilter(log.card, filter)) found.push(cardOfLog(log))
  }
  return found
}

/** Keeps only as many matches as needed and some more, sorting and cutting now and then. */
export function pageOfCards(logs: Iterable<MemoryLog>, query: CardQuery): CardPage {
  const { order, limit, behind } = query
  const words = searchWords(query.q ?? '')
  const compare = order === 'made' ? (a: CardPlace, b: CardPlace) => b.n - a.n : comparePlaces
  let found: MemoryLog[] = []
  const cut = (): void => void (found = found.sort(compare).slice(0, limit + 1))
  for (const log of logs) {
    if ((behind && compare(behind, log) >= 0) || !matchesQuery(log, query, words)) continue
    found.push(log)
    if (found.length > 2 * limit + HELD) cut()
  }
  cut()
  const shown = found.slice(0, limit)
  const { at, n } = shown.at(-1) ?? behind ?? FIRST_PLACE
  return { cards: shown.map(cardOfLog), next: found.length > limit ? { at, n } : null }
}
const HELD = 1_000

function matchesQuery(log: MemoryLog, query: CardQuery, words: readonly string[]): boolean {
  const { card, facts } = log
  const { outcome, since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = query
  if (log.at < since || log.at >= until) return false
  if (outcome !== undefined && !hasOutcome(card, log.trouble, outcome)) return false
  if (query.parent === undefined && !query.children && log.id !== card.root) return false
  if (!isAgentWanted(card.agent, query.agent) || (query.owner ?? facts.owner) !== facts.owner) return false
  if (!meetsConditions(card, query)) return false
  return words.length === 0 || hasAllWords(searchableText({ ...card, title: facts.title }), words)
}

/** `own`: the owner wrote it. */
type KeptSnapshot = Snapshot & { readonly own: boolean }

export function findSnapshot({ snapshots }: MemoryLog, upTo?: number): Snapshot | null {
  const found = snapshots.findLast(({ seq, own }) => (upTo === undefined ? own : seq <= upTo))
  return found ? { seq: found.seq, version: found.version, body: found.body } : null
}

/** A newer snapshot replaces the owner's last one, unless that is needed to reach events in the middle of the log. */
export function keepSnapshot({ snapshots }: MemoryLog, { seq, version, body }: Snapshot, own: boolean): void {
  const [last, before] = own
    ? snapshots
        .filter((each) => each.own && each.seq < seq)
        .slice(-2)
        .reverse()
    : []
  const there = snapshots.findIndex((each) => each.seq >= seq)
  const at = there < 0 ? snapshots.length : there
  const same = snapshots[at]?.seq === seq ? snapshots[at] : undefined
  if (same?.own && !own && version <= same.version) return
  snapshots.splice(at, same ? 1 : 0, { seq, version, body, own })
  if (last && isSnapshotSpare(seq, before?.seq ?? 0)) snapshots.splice(snapshots.indexOf(last), 1)
}

export function cardOfLog(log: MemoryLog): Card {
  const card = cardOfRecord(log.card, log)
  // A copy, because the reader may change it.
  return card.labels ? { ...card, labels: { ...card.labels } } : card
}

/** How many of these, ordered by id, are not after `id`. */
function countUpTo(logs: readonly MemoryLog[], id: string): number {
  let [low, high] = [0, logs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const log = logs[middle]
    if (log && compareIds(log.id, id) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
