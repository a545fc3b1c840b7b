// The replacement for `upkeep` in a store without it: nothing is removed, and the condition is counted from the cards.
import { Fault } from '../../kernel/failure.ts'
import type { Store, StoreHealth } from '../../ports/store.ts'

const CARDS = 500
const DUE = 1_000

export function removalRefused(): Fault {
  return new Fault('unsupported', 'This store cannot remove sessions. Close the session instead, or use another store.')
}

/** `now` is the store's clock. */
export async function countHealth(store: Store, now: number): Promise<StoreHealth> {
  let sessions = 0
  for (let after: string | undefined; ; ) {
    const page = await store.list({ limit: CARDS, ...(after === undefined ? {} : { after }) })
    sessions += page.length
    after = page.at(-1)?.session
    if (page.length < CARDS) break
  }
  const due = (await store.due(DUE)).sessions
  const cards = await Promise.all(due.map((session) => store.card(session)))
  const waitedMs = Math.max(0, ...cards.map((card) => now - (card?.due ?? now)))
  return { durability: 'unknown', schema: null, sessions, due: due.length, waitedMs }
}
