// What waits for people: in one session and below it, or in all sessions of the store. The one place that looks for it. All of it is
// read from the store, but for the preview of a call, which also looks at the files that the call would change.
import type { Frozen, Labels } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'
import type { Card, CardFilter, Store } from '../../ports/store.ts'
import { cloneJson } from '../../effects/clone-json.ts'
import { headOf } from '../../riders/children/tree.ts'
import { cardsBelow, withTreeUsd } from '../../stores/plan/tree-cost.ts'
import type { Preview } from '../../tools/files/preview.ts'
import { saidBefore } from '../../tools/policy/covered.ts'
import { mayWait, type OwnPending, type Pending, waitingIn } from '../../view/pending.ts'

/** What waits for a person, whole: enough to show it and to decide it with `decide({ ...pending, allow, by })`. */
export type PendingCall = Pending &
  Frozen<{
    agent: string
    labels: Labels
    /** What the call would change in the folder of its session, as the command line shows it. */
    preview: Preview
  }>

/** What a session waits for, and what those below it do: people decide at the top. Each `path` begins with this session. */
export async function pendingOf(store: Store, id: string): Promise<readonly Pending[]> {
  const heads = headsOf(store)
  const own = await waitingIn(id, heads, saidBefore)
  const card = await store.card(id)
  const below = card === null ? [] : (await cardsBelow(store, card)).filter(mayWait).toSorted(inOrder)
  const all = [...own, ...(await waitingBy(heads, below))]
  if (all.length === 0) return []
  return withTreeUsd(
    store,
    all.map((each) => ({ ...each, path: each.path.slice(each.path.indexOf(id)) })),
    cardsOf(store),
  )
}

/** A child before its own children, and siblings by the calls that started them. */
function inOrder(a: Card, b: Card): number {
  const [left, right] = [a, b].map(({ session }) => session.split(/[~.]/).map(Number)) as [number[], number[]]
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const apart = (left[i] ?? 0) - (right[i] ?? 0)
    if (apart !== 0 && !Number.isNaN(apart)) return apart
  }
  return left.length - right.length
}

/**
 * What waits in all sessions of the store, or in those with these labels, by their ids. Sessions that wait for nobody are not read. What
 * one session waits for is never split: with `limit` the last session of a page may bring more than that.
 */
export async function pendingIn(store: Store, filter: Page = {}): Promise<readonly PendingCall[]> {
  const { where, limit = Number.MAX_SAFE_INTEGER } = filter
  const wanted = {
    ...(where ? { where } : {}),
    waiting: true,
    limit: Math.min(PAGE, Math.max(limit, PAGE_MIN)),
  } as const
  const heads = headsOf(store)
  const found: OwnPending[] = []
  const listed: Card[] = []
  for (let after = filter.after ?? ''; found.length < limit; ) {
    const cards = await store.list({ ...wanted, after })
    for (const card of cards.filter((each) => mayWait(each) && each.status !== 'terminated')) {
      if (found.length >= limit) break
      listed.push(card)
      found.push(...(await waitingBy(heads, [card])))
    }
    const last = cards.at(-1)
    if (last === undefined || cards.length < wanted.limit) break
    after = last.session
  }
  const cardOf = cardsOf(store, listed)
  return pendingCalls(store, await withTreeUsd(store, found, cardOf), cardOf)
}

/** Which of them, as a page: `PendingFilter` (verb-options.ts) says what each means. */
type Page = Pick<Partial<CardFilter>, 'where' | 'limit' | 'after'>

const PAGE = 1_000
/** Of the sessions that may wait, some only wait for their children. */
const PAGE_MIN = 50

/** With what shows them. Copies: a store in memory hands out what the worker goes on with. */
export async function pendingCalls(
  store: Store,
  pending: readonly Pending[],
  cardOf: CardOf = cardsOf(store),
): Promise<readonly PendingCall[]> {
  if (pending.length === 0) return []
  const { previewOf } = await import('../../tools/files/preview.ts')
  const calls = pending.map(async (each) => {
    const card = await cardOf(each.sessionId)
    // Children work where their root does, unless they have a folder of their own.
    const root = card === null || card.root === card.session ? card : await cardOf(card.root)
    const preview = await previewOf(card?.folder ?? root?.folder ?? null, each)
    return { ...each, agent: card?.agent ?? '', labels: card?.labels ?? {}, preview }
  })
  return cloneJson(await Promise.all(calls))
}

type CardOf = (session: string) => Promise<Card | null>

/** Each card is read once for one look, and those that are known already are not read. */
function cardsOf(store: Store, known: readonly Card[] = []): CardOf {
  const cards = new Map<string, Promise<Card | null>>(known.map((card) => [card.session, Promise.resolve(card)]))
  return (session) => {
    const card = cards.get(session) ?? store.card(session)
    cards.set(session, card)
    return card
  }
}

type HeadOf = (session: string) => Promise<Session>

/** A session that is damaged, or was removed meanwhile, has nothing that could be decided: `list` says what is wrong with it. */
async function waitingBy(heads: HeadOf, cards: readonly Card[]): Promise<readonly OwnPending[]> {
  const found: OwnPending[] = []
  for (const { session } of cards) {
    try {
      found.push(...(await waitingIn(session, heads, saidBefore)))
    } catch (error) {
      const gone = error instanceof Fault && (error.code === 'session_damaged' || error.code === 'session_missing')
      if (!gone) throw error
    }
  }
  return found
}

/** Each session is read once for one look: its children ask how it stands, too. */
function headsOf(store: Store): HeadOf {
  const heads = new Map<string, Promise<Session>>()
  return (session) => {
    const known = heads.get(session) ?? headOf(store, session)
    heads.set(session, known)
    return known
  }
}
