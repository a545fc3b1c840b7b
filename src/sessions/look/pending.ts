// The calls that wait for people, in one session and below it, or in all sessions of the store. No other code looks for
// them. Everything is read from the store, except the preview of a call, which also reads the files that the call would
// change.
import type { Frozen, Labels } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'
import type { Card, CardFilter, CompleteStore } from '../../ports/store.ts'
import { cloneJson } from '../../runtime/state/clone-json.ts'
import { readSessionHead } from '../../runtime/state/session-tree.ts'
import { cardsBelow, withTreeUsd } from '../../stores/plan/tree-cost.ts'
import type { Preview } from '../../tools/files/preview-call.ts'
import { earlierConsent } from '../../tools/policy/earlier-consent.ts'
import { mayWait, type OwnPending, type Pending, readOwnPending } from '../../view/pending-calls.ts'

/**
 * A call that waits for a person, with everything to show it and to decide it with `decide({ ...pending, allow, by })`.
 */
export type PendingCall = Pending &
  Frozen<{
    /** The agent of the waiting session. Empty if its card is gone. */
    agent: string
    /** The labels of the waiting session. */
    labels: Labels
    /** The changes that the call would make in its session's folder, as the command line shows them. */
    preview: Preview
  }>

/**
 * The waiting calls of a session and of those below it: people decide at the top. Each `path` begins with this session.
 */
export async function pendingInTree(store: CompleteStore, id: string): Promise<readonly Pending[]> {
  const heads = cachedHeads(store)
  const own = await readOwnPending(id, heads, earlierConsent)
  const card = await store.card(id)
  const below = card === null ? [] : (await cardsBelow(store, card)).filter(mayWait).toSorted(compareByBirth)
  const all = [...own, ...(await readWaiting(heads, below))]
  if (all.length === 0) return []
  return withTreeUsd(
    store,
    all.map((each) => ({ ...each, path: each.path.slice(each.path.indexOf(id)) })),
    cachedCards(store),
  )
}

/** Sorts a child before its own children, and siblings by the calls that started them. */
function compareByBirth(a: Card, b: Card): number {
  const [left, right] = [a, b].map(({ session }) => session.split(/[~.]/).map(Number)) as [number[], number[]]
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const apart = (left[i] ?? 0) - (right[i] ?? 0)
    if (apart !== 0 && !Number.isNaN(apart)) return apart
  }
  return left.length - right.length
}

/**
 * The waiting calls in all sessions of the store, or in those with these labels, ordered by session id. Sessions that
 * wait for no person are not read. The calls of one session are never split: with `limit` the last session of a page
 * may exceed it.
 */
export async function pendingInStore(store: CompleteStore, filter: PendingPage = {}): Promise<readonly PendingCall[]> {
  const { where, limit = Number.MAX_SAFE_INTEGER } = filter
  const wanted = {
    ...(where ? { where } : {}),
    waiting: true,
    limit: Math.min(PAGE, Math.max(limit, PAGE_MIN)),
  } as const
  const heads = cachedHeads(store)
  const found: OwnPending[] = []
  const listed: Card[] = []
  for (let after = filter.after ?? ''; found.length < limit; ) {
    const cards = await store.list({ ...wanted, after })
    for (const card of cards.filter((each) => mayWait(each) && each.status !== 'terminated')) {
      if (found.length >= limit) break
      listed.push(card)
      found.push(...(await readWaiting(heads, [card])))
    }
    const last = cards.at(-1)
    if (last === undefined || cards.length < wanted.limit) break
    after = last.session
  }
  const cardOf = cachedCards(store, listed)
  return addPreviews(store, await withTreeUsd(store, found, cardOf), cardOf)
}

/** The page to read. `PendingFilter` (verb-options.ts) describes the fields. */
type PendingPage = Pick<Partial<CardFilter>, 'where' | 'limit' | 'after'>

const PAGE = 1_000
/** The least number of cards to read: some sessions that may wait only wait for their children. */
const PAGE_MIN = 50

/** Adds agent, labels and preview. Copied, because a store in memory hands out the objects that the worker uses. */
export async function addPreviews(
  store: CompleteStore,
  pending: readonly Pending[],
  cardOf: CardLookup = cachedCards(store),
): Promise<readonly PendingCall[]> {
  if (pending.length === 0) return []
  const { previewOf } = await import('../../tools/files/preview-call.ts')
  const calls = pending.map(async (each) => {
    const card = await cardOf(each.sessionId)
    // Children work in their root's folder, unless they have their own.
    const root = card === null || card.root === card.session ? card : await cardOf(card.root)
    const preview = await previewOf(card?.folder ?? root?.folder ?? null, each)
    return { ...each, agent: card?.agent ?? '', labels: card?.labels ?? {}, preview }
  })
  return cloneJson(await Promise.all(calls))
}

type CardLookup = (session: string) => Promise<Card | null>

/** Reads each card once, except those that are known already. */
function cachedCards(store: CompleteStore, known: readonly Card[] = []): CardLookup {
  const cards = new Map<string, Promise<Card | null>>(known.map((card) => [card.session, Promise.resolve(card)]))
  return (session) => {
    const card = cards.get(session) ?? store.card(session)
    cards.set(session, card)
    return card
  }
}

type HeadLookup = (session: string) => Promise<Session>

/** A damaged or removed session has no calls that could be decided; `list` shows its trouble. */
async function readWaiting(heads: HeadLookup, cards: readonly Card[]): Promise<readonly OwnPending[]> {
  const found: OwnPending[] = []
  for (const { session } of cards) {
    try {
      found.push(...(await readOwnPending(session, heads, earlierConsent)))
    } catch (error) {
      const gone = error instanceof Fault && (error.code === 'session_damaged' || error.code === 'session_missing')
      if (!gone) throw error
    }
  }
  return found
}

/** Reads each session once: its children need its state too. */
function cachedHeads(store: CompleteStore): HeadLookup {
  const heads = new Map<string, Promise<Session>>()
  return (session) => {
    const known = heads.get(session) ?? readSessionHead(store, session)
    heads.set(session, known)
    return known
  }
}
