// Reads cards of sessions and their runs from the store alone. Nothing is driven
// and nothing is written. Loaded at the first use.
import { isLaneAgent } from '../view/lanes.ts'
import { Fault } from '../kernel/failure.ts'
import { next } from '../kernel/next.ts'
import type { Card, CardFilter, CompleteStore } from '../ports/store.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { compareIds } from '../stores/plan/store-ids.ts'
import { type TreeCard, withTreeCost } from '../stores/plan/tree-cost.ts'
import { isMissing } from './event-page.ts'
import type { ListedCard } from './meter.ts'
import { type RunProgress, runPhase } from '../view/session-phase.ts'

/** Only sessions of the tree under this root, or only children of this session. */
export type ActiveFilter = { readonly root?: string; readonly parent?: string }

/** A session with a working child is `running`. */
export type RunCard = TreeCard & RunProgress
const CARDS = 500
/** The most sessions waiting for a worker that are read. */
const DUE_MAX = 1_000

/** Adds the requested details, which are read from each session. */
export async function addCardDetails(
  services: Services,
  found: readonly TreeCard[],
  { context, runs }: { readonly context: boolean; readonly runs: boolean },
): Promise<readonly ListedCard[]> {
  const cards = runs ? await addRunProgress(services.store, found) : found
  return context ? (await import('./meter.ts')).addContextFill(services, cards) : cards
}

/** Reads all cards a page at a time, so that a large store does not block other work. */
async function listAllCards(store: CompleteStore, filter: Partial<CardFilter>): Promise<readonly Card[]> {
  const cards: Card[] = []
  for (;;) {
    const last = cards.at(-1)?.session
    const page = await store.list({ ...filter, ...(last === undefined ? {} : { after: last }), limit: CARDS })
    cards.push(...page)
    if (page.length < CARDS) return cards.filter(({ agent }) => !isLaneAgent(agent))
  }
}

/** Reads one session after the other, since each may be long. */
async function addRunProgress(store: CompleteStore, cards: readonly TreeCard[]): Promise<readonly ListedCard[]> {
  const listed: ListedCard[] = []
  for (const card of cards) {
    const found = await buildRunCard(store, card).catch(ignoreGoneOrDamaged)
    listed.push(found === null ? card : { ...card, run: found.run, phase: found.phase })
  }
  return listed
}

/** Null: the session does not exist. */
export async function readRunCard(store: CompleteStore, session: string): Promise<RunCard | null> {
  const card = await store.card(session)
  if (card === null) return null
  const waits = card.status === 'requires_action' && card.waits.length > 0
  const working = waits
    ? (await findWorkingCards(store, card.root)).find((each) => each.session === session)
    : undefined
  const [whole] = await withTreeCost(store, [working ?? card])
  return whole ? buildRunCard(store, whole) : null
}

/** Sorted by session id. */
export async function listActiveRuns(
  store: CompleteStore,
  { root, parent }: ActiveFilter,
): Promise<readonly RunCard[]> {
  const tree = root ?? (parent === undefined ? undefined : (await store.card(parent))?.root)
  if (tree === undefined && parent !== undefined) return []
  const cards = await findWorkingCards(store, tree)
  const wanted = parent === undefined ? cards : cards.filter((card) => card.parent === parent)
  const all: RunCard[] = []
  for (const card of await withTreeCost(store, wanted)) {
    const found = await buildRunCard(store, card).catch(ignoreGoneOrDamaged)
    if (found !== null) all.push(found)
  }
  return all
}

/** Sessions whose run continues without a person, and the sessions that wait for one of them. */
async function findWorkingCards(store: CompleteStore, root: string | undefined): Promise<readonly Card[]> {
  const within = root === undefined ? {} : { root }
  const running = await listAllCards(store, { ...within, status: 'running' })
  const retrying = await listAllCards(store, { ...within, status: 'rescheduling' })
  const found = new Map<string, Card>()
  // A session that only sleeps until a wake has no run.
  const working = [...running.filter(isAtWork), ...retrying.filter(({ outage }) => outage !== undefined)]
  for (const card of working) found.set(card.session, card)
  // A card shows new input only after a worker has taken it up.
  for (const id of (await store.due(DUE_MAX)).sessions) {
    const card = found.has(id) ? null : await store.card(id)
    if (card !== null && (root === undefined || card.root === root)) found.set(id, card)
  }
  const parked = new Map(running.map((card) => [card.session, card]))
  // A parent added here is visited later in the same loop.
  for (const card of found.values()) {
    const { parent: above } = card
    const parent = above === undefined || found.has(above) ? null : (parked.get(above) ?? (await store.card(above)))
    if (parent !== null && parent.status !== 'idle' && parent.waits.length > 0)
      found.set(parent.session, { ...parent, status: 'running' })
  }
  return [...found.values()].sort((a, b) => compareIds(a.session, b.session))
}

/** Cards do not have the last run and its phase, which would have to be written with every commit. The log has them. */
async function buildRunCard(store: CompleteStore, card: TreeCard): Promise<RunCard> {
  const session = await readSessionHead(store, card.session)
  const rests = next(session, { now: store.now(), epoch: session.epoch }).type === 'rest'
  const status = rests ? card.status : 'running'
  return { ...card, status, run: session.began || null, phase: runPhase(session, rests) }
}

/**
 * False for a session that only waits for its children. Their own cards show whether they work or wait for a person.
 */
function isAtWork({ due, waits }: Card): boolean {
  return due !== null || waits.length === 0
}

/** A removed or damaged session must not hide the others. `list` shows its trouble. */
function ignoreGoneOrDamaged(error: unknown): null {
  if (isMissing(error) || (error instanceof Fault && error.code === 'session_damaged')) return null
  throw error
}
