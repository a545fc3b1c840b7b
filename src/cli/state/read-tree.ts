// A session and all sessions below it, read for commands and the chat. It only reads.
import type { Card, Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { type TreeRow, treeRows } from '../../view/tree-rows.ts'
import { readPending } from './read-log.ts'

/** How many first events are read at once. */
const AT_ONCE = 50

export async function readSessionTree(store: Store, card: Card): Promise<readonly TreeRow[]> {
  const cards = [card, ...(await cardsBelow(store, card))]
  const began = new Map<string, number>()
  for (let from = 0; from < cards.length; from += AT_ONCE) {
    const some = cards.slice(from, from + AT_ONCE)
    await Promise.all(
      some.map(async ({ session }) => {
        const [created] = (await store.read(session, 0, 1)).events
        if (created) began.set(session, created.at)
      }),
    )
  }
  return treeRows(cards, { began, pending: await readPending(store, card.root) })
}
