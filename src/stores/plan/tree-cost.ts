// What a session and all sessions below it have cost, from their cards. It reads no log.
import type { Card, Store } from '../../ports/store.ts'
import { idsDownTo } from '../../view/ids.ts'
import { usdOf } from '../../view/usd.ts'
import { compareIds } from './id.ts'

/**
 * `costUsd` is of the session alone; `treeCostUsd` is with the children below it, at any depth. `cost` and `treeCost` are the same in
 * millionths of a dollar.
 */
export type TreeCard = Card & { readonly treeCost: number; readonly costUsd: number; readonly treeCostUsd: number }

/** The trees of many sessions are read together: a page of sessions costs one query, and another one for each thousand children. */
export async function withTreeCost(store: TreeStore, cards: readonly Card[]): Promise<readonly TreeCard[]> {
  const roots = [...new Set(cards.map(({ root }) => root))]
  const below = new Map<string, number>()
  for (let i = 0; i < roots.length; i += ROOTS) {
    for (const { session, root, cost } of await childrenIn(store, roots.slice(i, i + ROOTS))) {
      // A root may have the form of a child's id: what is above it is not above the session.
      const above = idsDownTo(session).filter((id) => id !== session && id.length >= root.length)
      for (const id of above) below.set(id, (below.get(id) ?? 0) + cost)
    }
  }
  return cards.map((card) => {
    const treeCost = card.cost + (below.get(card.session) ?? 0)
    return { ...card, treeCost, costUsd: usdOf(card.cost), treeCostUsd: usdOf(treeCost) }
  })
}

type TreeStore = Pick<Store, 'list' | 'listBelow'>

/** The same for what names a session: each with what that session and all below it have cost, in dollars. */
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
  return (await childrenIn(store, [card.root])).filter((each) => isBelow(each, card))
}

/** The name of a child begins with its parent's. */
function isBelow({ session }: Card, above: Card): boolean {
  return session.startsWith(`${above.session}~`)
}

const PAGE = 1_000
/** So many trees are asked for at once. */
const ROOTS = 500

/** All sessions of these trees but their roots. */
async function childrenIn(store: TreeStore, roots: readonly string[]): Promise<readonly Card[]> {
  const cards: Card[] = []
  let rest = roots.toSorted(compareIds)
  while (rest.length > 0 && store.listBelow) {
    const page = await store.listBelow(rest, PAGE)
    cards.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return cards
    cards.push(...(await treeAfter(store, last.root, last.session)))
    rest = rest.filter((root) => compareIds(root, last.root) > 0)
  }
  for (const root of rest) {
    // Most trees have no children: the next id of all tells it.
    const [first] = await store.list({ after: `${root}~`, limit: 1 })
    if (first?.session.startsWith(`${root}~`)) cards.push(...(await treeAfter(store, root, root)))
  }
  return cards
}

async function treeAfter(store: TreeStore, root: string, start: string): Promise<readonly Card[]> {
  const cards: Card[] = []
  for (let after = start; ; ) {
    const page = await store.list({ root, after, limit: PAGE })
    cards.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return cards
    after = last.session
  }
}
