// How a child stands, as its parent and people are told.
import type { SessionCache } from '../../engine/session-cache.ts'
import type { Card, Store } from '../../ports/store.ts'
import { isParentKey } from '../../stores/plan/id.ts'

export type ChildStatus = 'running' | 'idle' | 'awaiting_user' | 'failed' | 'closed'

export function childStatus({ status, due, outcome }: Card): ChildStatus {
  if (status === 'terminated') return 'closed'
  if (status === 'requires_action') return 'awaiting_user'
  if (status === 'running' || status === 'rescheduling' || due !== null) return 'running'
  if (outcome === null || outcome === 'completed' || outcome === 'interrupted') return 'idle'
  return 'failed'
}

/** It has work to do, or asks for something that it needs for it. */
export function isWorking(card: Card): boolean {
  const status = childStatus(card)
  return status === 'running' || status === 'awaiting_user'
}

/** No call waits for it. */
export async function isDetached(store: Store, session: string): Promise<boolean> {
  const [created] = (await store.read(session, 0, 1)).events
  return created?.type === 'session.created' && created.parent?.detached === true
}

export const CHILD_PAGE = 1_000

/** The children of a session by their cards, not those below them. */
export async function* childrenBelow(store: Store, parent: string): AsyncGenerator<Card> {
  for (let after = ''; ; ) {
    const cards = await store.list({ parent, after, limit: CHILD_PAGE })
    yield* cards
    const last = cards.at(-1)
    if (last === undefined || cards.length < CHILD_PAGE) return
    after = last.session
  }
}

/** How many sessions below this root are not closed, counted up to `most`. */
export async function countBelow(store: Store, root: string, most: number): Promise<number> {
  let count = 0
  for (let after = ''; ; ) {
    const cards = await store.list({ root, after, limit: CHILD_PAGE })
    count += cards.filter(({ session, status }) => session !== root && status !== 'terminated').length
    const last = cards.at(-1)
    if (count >= most || last === undefined || cards.length < CHILD_PAGE) return Math.min(count, most)
    after = last.session
  }
}

/** Was the last stop of this session its parent's? */
export async function isStoppedFromAbove(
  store: Store,
  { id, session: { began } }: Pick<SessionCache, 'id' | 'session'>,
): Promise<boolean> {
  let last = ''
  for (let after = Math.max(0, began - 1); ; ) {
    const { events } = await store.read(id, after, CHILD_PAGE)
    for (const event of events) if (event.type === 'user.interrupt' && event.mode === 'stop') last = event.id
    const end = events.at(-1)
    if (end === undefined || events.length < CHILD_PAGE) return isParentKey(last)
    after = end.seq
  }
}
