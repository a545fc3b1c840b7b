// What a session and all sessions below it have cost, from their cards. It reads no log.
import type { Card, Store } from '../../ports/store.ts'
import { usdOf } from '../../view/usd.ts'

/**
 * `costUsd` is of the session alone; `treeCostUsd` is with the children below it, at any depth. `cost` and `treeCost` are the same in
 * millionths of a dollar.
 */
export type TreeCard = Card & { readonly treeCost: number; readonly costUsd: number; readonly treeCostUsd: number }

/** Each tree is read once. */
export async function withTreeCost(store: Pick<Store, 'list'>, cards: readonly Card[]): Promise<readonly TreeCard[]> {
  const trees = new Map<string, readonly Card[]>()
  for (const { root } of cards) if (!trees.has(root)) trees.set(root, await childrenIn(store, root))
  return cards.map((card) => {
    const below = (trees.get(card.root) ?? []).filter((each) => isBelow(each, card))
    const treeCost = below.reduce((sum, { cost }) => sum + cost, card.cost)
    return { ...card, treeCost, costUsd: usdOf(card.cost), treeCostUsd: usdOf(treeCost) }
  })
}

/** The same for what names a session: each with what that session and all below it have cost, in dollars. */
export async function withTreeUsd<T extends { readonly sessionId: string }>(
  store: Pick<Store, 'list' | 'card'>,
  named: readonly T[],
): Promise<readonly (T & { readonly treeCostUsd: number })[]> {
  const ids = new Set(named.map(({ sessionId }) => sessionId))
  const cards = (await Promise.all([...ids].map((id) => store.card(id)))).filter((card) => card !== null)
  const costs = new Map((await withTreeCost(store, cards)).map((card) => [card.session, card.treeCostUsd]))
  return named.map((each) => ({ ...each, treeCostUsd: costs.get(each.sessionId) ?? 0 }))
}

/** The cards of all sessions below this one. */
export async function cardsBelow(store: Pick<Store, 'list'>, card: Card): Promise<readonly Card[]> {
  return (await childrenIn(store, card.root)).filter((each) => isBelow(each, card))
}

/** The name of a child begins with its parent's. */
function isBelow({ session }: Card, above: Card): boolean {
  return session.startsWith(`${above.session}~`)
}

const PAGE = 1_000

/** All of a tree but its root. Most have no children: the next name of all tells it, and no tree is looked for. */
async function childrenIn(store: Pick<Store, 'list'>, root: string): Promise<readonly Card[]> {
  const [first] = await store.list({ after: `${root}~`, limit: 1 })
  const cards: Card[] = []
  for (let after = root; first?.session.startsWith(`${root}~`); ) {
    const page = await store.list({ root, after, limit: PAGE })
    cards.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  return cards
}
