// The cost of a session with all sessions below it, from their cards. It reads no log.
import type { Card, CompleteStore } from '../../ports/store.ts'
import { idsDownTo } from '../../view/ids.ts'
import { usdOf } from '../../view/usd.ts'
import { compareIds } from './store-ids.ts'

/** A card with the cost of the sessions below it. */
export type TreeCard = Card & {
  /** What the session and all sessions below it have spent, in millionths of a dollar. */
  readonly treeCost: number
  /** What the session itself has spent, in dollars. */
  readonly costUsd: number
  /** What the session and all sessions below it have spent, in dollars. */
  readonly treeCostUsd: number
}

/**
 * Reads the trees of many sessions together: a page of sessions costs one query, and another one for each thousand
 * children.
 */
export async function withTreeCost(store: TreeStore, cards: readonly Card[]): Promise<readonly TreeCard[]> {
  const roots = [...new Set(cards.map(({ root }) => root))]
  const below = new Map<string, number>()
  for (let i = 0; i < roots.length; i += ROOTS) {
    for (const { session, root, cost } of await readChildCards(store, roots.slice(i, i + ROOTS))) {
      // A root may have the form of a child's id: ids above the root are not above the session.
      const above = idsDownTo(session).filter((id) => id !== session && id.length >= root.length)
      for (const id of above) below.set(id, (below.get(id) ?? 0) + cost)
    }
  }
  return cards.map((card) => {
    const treeCost = card.cost + (below.get(card.session) ?? 0)
    return { ...card, treeCost, costUsd: usdOf(card.cost), treeCostUsd: usdOf(treeCost) }
  })
}

type TreeStore = Pick<CompleteStore, 'list' | 'listBelow'>

/** The same for objects that name a session: each with the cost of that session and all below it, in dollars. */
export async function withTreeUsd<T extends { readonly sessionId: string }>(
  store: TreeStore,
  named: readonly T[],
  cardOf: (session: string) => Promise<Card | null>,
): Promise<readonly (T & { readonly treeCostUsd: number })[]> {
  const ids = new Set(named.map(({ sessionId }) => sessionId))
  const cards = (await Promise.all([...ids].map(cardOf))).filter((card) => card !== null)
  const costs = new Map((await withTreeCost(store, cards)).map((card) => [card.session, card.treeCostUsd]))
  return named.map((each) => ({ ...each, treeCostUsd: costs.get(each.sessionId) ?? 0 }))
}

/** The cards of all sessions below this one. */
export async function cardsBelow(store: TreeStore, card: Card): Promise<readonly Card[]> {
  return (await readChildCards(store, [card.root])).filter((each) => isBelow(each, card))
}

/** A child's id begins with its parent's. */
function isBelow({ session }: Card, above: Card): boolean {
  return session.startsWith(`${above.session}~`)
}

const PAGE = 1_000
/** How many trees are asked for at once. */
const ROOTS = 500

/** All sessions of these trees except the roots. */
async function readChildCards(store: TreeStore, roots: readonly string[]): Promise<readonly Card[]> {
  const cards: Card[] = []
  let rest = roots.toSorted(compareIds)
  while (rest.length > 0 && store.listBelow) {
    const page = await store.listBelow(rest, PAGE)
    cards.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return cards
    cards.push(...(await readTreeAfter(store, last.root, last.session)))
    rest = rest.filter((root) => compareIds(root, last.root) > 0)
  }
  for (const root of rest) {
    // Most trees have no children: the next id in the store shows it.
    const [first] = await store.list({ after: `${root}~`, limit: 1 })
    if (first?.session.startsWith(`${root}~`)) cards.push(...(await readTreeAfter(store, root, root)))
  }
  return cards
}

async function readTreeAfter(store: TreeStore, root: string, start: string): Promise<readonly Card[]> {
  const cards: Card[] = []
  for (let after = start; ; ) {
    const page = await store.list({ root, after, limit: PAGE })
    cards.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return cards
    after = last.session
  }
}
