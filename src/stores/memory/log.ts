// One session of the store in memory, and what is read from many of them: cards, and lists of cards. It decides nothing: memory.ts does.
import type { Card, CardFilter, CardPage, CardQuery, CardPlace, Snapshot } from '../../ports/store.ts'
import type { Event } from '../../kernel/event.ts'
import { assert } from '../../kernel/failure.ts'
import { type Facts, findable, hasAll, told, wordsOf } from '../plan/facts.ts'
import { compareIds } from '../plan/id.ts'
import { hasOutcome } from '../plan/query.ts'
import { type SessionChange, type Head, originOf } from '../plan/plan.ts'
import { isSpare } from '../plan/snapshots.ts'
import { upcast } from '../plan/upcast.ts'
import { mayWait } from '../../view/pending.ts'

/** One session. A class, so that all of them have one shape: with a shape each, every look at one would be a search. */
export class Log implements Head {
  readonly id: string
  /** Counts sessions in the order of their creation. */
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
  trouble: Head['trouble'] = null
  facts: Facts
  card: Card
  readonly bodies: string[] = []
  readonly ids = new Map<string, number>()
  /** By seq. */
  readonly snapshots: Kept[] = []
  /** The session whose log it reads before its own. */
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
    this.origin = originOf(draft)
  }
}

/** Whether a session is of one of these agents. Of none that are named: each is. */
export function ofAgents(agents: readonly string[] | undefined): (log: Log) => boolean {
  return agents === undefined ? () => true : ({ card }) => agents.includes(card.agent)
}

/** JSON is made in pieces, and a string of pieces takes half as much again. Reading one character joins them. */
export function flat(text: string): string {
  assert(text.charCodeAt(0) === OBJECT, 'an event is an object')
  return text
}
const OBJECT = '{'.charCodeAt(0)

/** Those after `after`: at least one, if there is one, and then as many as both bounds allow. */
export function eventsOf({ bodies }: Log, after: number, limit: number, bytesMax: number): readonly Event[] {
  const events: Event[] = []
  for (let i = after, bytes = 0; i < bodies.length && i < after + limit; i++) {
    const body = bodies[i] ?? ''
    bytes += body.length
    if (bytes > bytesMax && events.length > 0) break
    events.push(upcast(JSON.parse(body) as Event))
  }
  return events
}

type Wanted = Pick<CardFilter, 'status' | 'parent' | 'folder' | 'where'>

function isWanted({ status: now, card }: Log, { status, parent, folder, where }: Wanted): boolean {
  if ((status ?? now) !== now || (folder ?? card.folder) !== card.folder) return false
  if ((parent ?? card.parent) !== card.parent) return false
  return where === undefined || Object.entries(where).every(([name, value]) => card.labels?.[name] === value)
}

/** Of logs that are ordered by id. */
export function listOf(ordered: readonly Log[], filter: CardFilter): readonly Card[] {
  const { root, after = '', limit, waiting = false } = filter
  const found: Card[] = []
  for (const log of ordered.slice(countUpTo(ordered, after))) {
    if (found.length >= limit) break
    if (waiting && !mayWait({ ...log.card, status: log.status })) continue
    if (isWanted(log, filter) && (root ?? log.card.root) === log.card.root) found.push(cardOf(log))
  }
  return found
}

/** Of all that pass, only as many are held as are wanted, and some more: they are put in order now and then. */
export function pageOf(logs: Iterable<Log>, query: CardQuery): CardPage {
  const { order, limit, behind } = query
  const words = wordsOf(query.q ?? '')
  const compare = order === 'made' ? (a: CardPlace, b: CardPlace) => b.n - a.n : byTime
  let found: Log[] = []
  const cut = (): void => void (found = found.sort(compare).slice(0, limit + 1))
  for (const log of logs) {
    if ((behind && compare(behind, log) >= 0) || !isAsked(log, query, words)) continue
    found.push(log)
    if (found.length > 2 * limit + HELD) cut()
  }
  cut()
  const shown = found.slice(0, limit)
  const { at, n } = shown.at(-1) ?? behind ?? START
  return { cards: shown.map(cardOf), next: found.length > limit ? { at, n } : null }
}
const HELD = 1_000
const START: CardPlace = { at: Number.MAX_VALUE, n: Number.MAX_SAFE_INTEGER }

function byTime(a: CardPlace, b: CardPlace): number {
  return b.at - a.at || b.n - a.n
}

function isAsked(log: Log, query: CardQuery, words: readonly string[]): boolean {
  const { card, facts } = log
  const { outcome, since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY } = query
  if (log.at < since || log.at >= until) return false
  if (outcome !== undefined && !hasOutcome(card, log.trouble, outcome)) return false
  if (query.parent === undefined && log.id !== card.root) return false
  if ((query.agent ?? card.agent) !== card.agent || (query.owner ?? facts.owner) !== facts.owner) return false
  if (!isWanted(log, query)) return false
  return words.length === 0 || hasAll(findable({ ...card, title: facts.title }), words)
}

/** `own`: its owner wrote it. */
type Kept = Snapshot & { readonly own: boolean }

export function snapshotOf({ snapshots }: Log, upTo?: number): Snapshot | null {
  const found = snapshots.findLast(({ seq, own }) => (upTo === undefined ? own : seq <= upTo))
  return found ? { seq: found.seq, version: found.version, body: found.body } : null
}

/** The last one that an owner wrote goes for a newer one, unless it is needed to reach events in the middle of the log. */
export function keepSnapshot({ snapshots }: Log, { seq, version, body }: Snapshot, own: boolean): void {
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
  if (last && isSpare(seq, before?.seq ?? 0)) snapshots.splice(snapshots.indexOf(last), 1)
}

export function cardOf(log: Log): Card {
  const { seq, at, due, trouble, facts } = log
  const { title: _title, owner: _owner, created: _created, tokens: _tokens, ...card } = log.card
  // A reader may do with it what it likes.
  const labels = card.labels ? { labels: { ...card.labels } } : {}
  return { ...card, ...labels, seq, at, due, ...(trouble ? { trouble } : {}), ...told(facts) }
}

/** How many of these, ordered by id, are not after `id`. */
function countUpTo(logs: readonly Log[], id: string): number {
  let [low, high] = [0, logs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const log = logs[middle]
    if (log && compareIds(log.id, id) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
