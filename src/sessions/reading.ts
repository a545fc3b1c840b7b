// Reading what runs do, by the store alone: cards of sessions, pages of their events, and which of them are at work. Nothing is driven
// and nothing is written. Loaded by the first harness that is asked.
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { next } from '../kernel/next.ts'
import type { Session } from '../kernel/session.ts'
import type { Card, CardFilter, Page, Store } from '../ports/store.ts'
import type { Services } from '../engine/wiring.ts'
import { headOf } from '../riders/children/tree.ts'
import { compareIds } from '../stores/plan/id.ts'
import { type TreeCard, withTreeCost } from '../stores/plan/tree-cost.ts'
import type { ListedCard, ListOptions, Progress, RunPhase } from './meter.ts'

/** `run`: only the events of this run, from its `run.started`, which has this seq, to its end. `limit`: 200 unless said, 1 to 1,000. */
export type EventsFilter = {
  readonly session: string
  readonly run?: number
  readonly after?: number
  readonly limit?: number
}
/** `next` is the `after` of the next page; null if there is nothing more by now. `damaged`: the log cannot be read from there on. */
export type EventPage = Page & { readonly next: number | null }

/** Only sessions of the tree under this root, or only children of this session. */
export type ActiveFilter = { readonly root?: string; readonly parent?: string }

/** A session whose child works is `running`. */
export type RunCard = Omit<TreeCard, 'parent'> & Progress & Frozen<{ parent: string | null }>

const EVENTS = 200
const EVENTS_MAX = 1_000
const CARDS = 500
/** Sessions that wait for a worker are looked at up to this many. */
const DUE_MAX = 1_000

export async function eventsOf(store: Store, filter: EventsFilter): Promise<EventPage> {
  const { session, run, after = 0, limit = EVENTS } = filter
  const size = Math.min(Math.max(limit, 1), EVENTS_MAX)
  try {
    if (run === undefined) return cutAt(size, await store.read(session, after, size + 1))
    if (!(await isWithin(store, session, run, after))) return NOTHING
    const page = await store.read(session, Math.max(after, run - 1), size + 1)
    const end = page.events.findIndex(({ type }) => type === 'run.settled')
    return cutAt(size, end < 0 ? page : { events: page.events.slice(0, end + 1) })
  } catch (error) {
    if (isMissing(error)) return NOTHING
    throw error
  }
}

const NOTHING: EventPage = { events: [], next: null }

/** One more than the page holds was read: it tells whether there is a next page. */
function cutAt(size: number, page: Page): EventPage {
  const { events } = page
  if (events.length <= size) return { ...page, next: null }
  const kept = events.slice(0, size)
  return { events: kept, next: kept.at(-1)?.seq ?? null }
}

/** Whether a run began at this seq and was still open after that one. Where it ended, only the log knows. */
async function isWithin(store: Store, session: string, run: number, after: number): Promise<boolean> {
  for (let from = run - 1; from <= Math.max(after, run) - 1; ) {
    const { events } = await store.read(session, from, Math.min(EVENTS_MAX, Math.max(after, run) - from))
    const last = events.at(-1)
    if (last === undefined || (from === run - 1 && events[0]?.type !== 'run.started')) return false
    if (events.some(({ type }: Event) => type === 'run.settled')) return false
    from = last.seq
  }
  return true
}

export async function listed(
  services: Services,
  { context = false, runs = false, ...filter }: ListOptions,
): Promise<readonly ListedCard[]> {
  const { store } = services
  return detailed(services, await withTreeCost(store, await cardsIn(store, filter)), { context, runs })
}

/** With what is read of each session, if it is asked for. */
export async function detailed(
  services: Services,
  found: readonly TreeCard[],
  { context, runs }: { readonly context: boolean; readonly runs: boolean },
): Promise<readonly ListedCard[]> {
  const cards = runs ? await withRuns(services.store, found) : found
  return context ? (await import('./meter.ts')).withContext(services, cards) : cards
}

/** All of them, a page at a time, so that a store of many does not stand still meanwhile. */
async function cardsIn(store: Store, filter: Partial<CardFilter>): Promise<readonly Card[]> {
  const { limit, ...rest } = filter
  if (limit !== undefined || rest.newest) return store.list({ ...rest, limit: limit ?? Number.MAX_SAFE_INTEGER })
  const cards: Card[] = []
  for (;;) {
    const last = cards.at(-1)?.session
    const page = await store.list({ ...rest, ...(last === undefined ? {} : { after: last }), limit: CARDS })
    cards.push(...page)
    if (page.length < CARDS) return cards
  }
}

/** One after the other: a session may be long. */
async function withRuns(store: Store, cards: readonly TreeCard[]): Promise<readonly ListedCard[]> {
  const listed: ListedCard[] = []
  for (const card of cards) {
    const found = await runCardOf(store, card).catch(goneOrDamaged)
    listed.push(found === null ? card : { ...card, run: found.run, phase: found.phase })
  }
  return listed
}

/** Null: there is no such session. */
export async function statusOf(store: Store, session: string): Promise<RunCard | null> {
  const card = await store.card(session)
  if (card === null) return null
  const waits = card.status === 'requires_action' && card.waits.length > 0
  const working = waits ? (await workingIn(store, card.root)).find((each) => each.session === session) : undefined
  const [whole] = await withTreeCost(store, [working ?? card])
  return whole ? runCardOf(store, whole) : null
}

/** By their ids. */
export async function activeIn(store: Store, { root, parent }: ActiveFilter): Promise<readonly RunCard[]> {
  const tree = root ?? (parent === undefined ? undefined : (await store.card(parent))?.root)
  if (tree === undefined && parent !== undefined) return []
  const cards = await workingIn(store, tree)
  const wanted = parent === undefined ? cards : cards.filter((card) => card.parent === parent)
  const all: RunCard[] = []
  for (const card of await withTreeCost(store, wanted)) {
    const found = await runCardOf(store, card).catch(goneOrDamaged)
    if (found !== null) all.push(found)
  }
  return all
}

/** Sessions whose run goes on without a person, and those that wait for one of them. */
async function workingIn(store: Store, root: string | undefined): Promise<readonly Card[]> {
  const within = root === undefined ? {} : { root }
  const running = await cardsIn(store, { ...within, status: 'running' })
  const retrying = await cardsIn(store, { ...within, status: 'rescheduling' })
  const found = new Map<string, Card>()
  // A session that only sleeps until a wake has no run.
  const working = [...running.filter(isAtWork), ...retrying.filter(({ outage }) => outage !== undefined)]
  for (const card of working) found.set(card.session, card)
  // What was said to a session is on its card only when a worker has taken it up.
  for (const id of await store.due(DUE_MAX)) {
    const card = found.has(id) ? null : await store.card(id)
    if (card !== null && (root === undefined || card.root === root)) found.set(id, card)
  }
  const parked = new Map(running.map((card) => [card.session, card]))
  // A parent that is found here is looked at in its turn.
  for (const card of found.values()) {
    const { parent: above } = card
    const parent = above === undefined || found.has(above) ? null : (parked.get(above) ?? (await store.card(above)))
    if (parent !== null && parent.status !== 'idle' && parent.waits.length > 0)
      found.set(parent.session, { ...parent, status: 'running' })
  }
  return [...found.values()].sort((a, b) => compareIds(a.session, b.session))
}

/** Cards do not say which run it is and how far it is: they would have to be written with every commit. The log says it. */
async function runCardOf(store: Store, card: TreeCard): Promise<RunCard> {
  const session = await headOf(store, card.session)
  const rests = next(session, { now: store.now(), epoch: session.epoch }).type === 'rest'
  const status = rests ? card.status : 'running'
  return { ...card, status, parent: card.parent ?? null, run: session.began || null, phase: phaseOf(session, rests) }
}

function phaseOf({ closed, run, inputs }: Session, rests: boolean): RunPhase {
  if (closed) return 'resting'
  if (run === null) return !rests ? 'building' : inputs.length > 0 ? 'waiting' : 'resting'
  if (rests) return 'waiting'
  return run.turn !== null && run.turn.open.length > 0 ? 'tools' : 'model'
}

/** Not one that only waits for its children. Whether these work, or wait for a person, their own cards say. */
function isAtWork({ due, waits }: Card): boolean {
  return due !== null || waits.length === 0
}

/** One that was removed meanwhile, or is damaged, must not hide the others. `list` says what is wrong with it. */
function goneOrDamaged(error: unknown): null {
  if (isMissing(error) || (error instanceof Fault && error.code === 'session_damaged')) return null
  throw error
}

function isMissing(error: unknown): boolean {
  return error instanceof Fault && error.code === 'session_missing'
}
