// What a session and all sessions below it have cost, from their cards. It reads no log.
import type { Card, Store } from '../../ports/store.ts'

/** `cost` is of the session alone; `treeCost` is with the children below it, at any depth. In millionths of a dollar. */
export type TreeCard = Card & { readonly treeCost: number }

/** Each tree is read once. */
export async function withTreeCost(store: Pick<Store, 'list'>, cards: readonly Card[]): Promise<readonly TreeCard[]> {
  const trees = new Map<string, readonly Card[]>()
  for (const { root } of cards) if (!trees.has(root)) trees.set(root, await childrenIn(store, root))
  return cards.map((card) => {
    const below = (trees.get(card.root) ?? []).filter((each) => isBelow(each, card))
    return { ...card, treeCost: below.reduce((sum, { cost }) => sum + cost, card.cost) }
  })
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
