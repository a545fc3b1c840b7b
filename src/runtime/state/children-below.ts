// The status of a child, for its parent and for people.
import type { SessionCache } from './session-cache.ts'
import type { Card, CompleteStore, Store } from '../../ports/store.ts'
import { isParentKey } from '../../stores/plan/store-ids.ts'
import type { Proposal, Order } from '../../kernel/content.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { readSessionHead, findOutsideQuestion } from './session-tree.ts'
import { LIST, SPAWN } from '../../tools/agents/order-tools.ts'
import { writerTime } from '../../kernel/clock.ts'

export type ChildStatus = 'running' | 'idle' | 'awaiting_user' | 'failed' | 'closed'

export function childStatus({ status, due, outcome }: Card): ChildStatus {
  if (status === 'terminated') return 'closed'
  if (status === 'requires_action') return 'awaiting_user'
  if (status === 'running' || status === 'rescheduling' || due !== null) return 'running'
  if (outcome === null || outcome === 'completed' || outcome === 'interrupted') return 'idle'
  return 'failed'
}

/** The child has work to do, or waits for something that it needs for its work. */
export function isChildWorking(card: Card): boolean {
  const status = childStatus(card)
  return status === 'running' || status === 'awaiting_user'
}

/** No call waits for this child. */
export async function isDetached(store: Store, session: string): Promise<boolean> {
  const [created] = (await store.read(session, 0, 1)).events
  return created?.type === 'session.created' && created.parent?.detached === true
}

export const CHILD_PAGE = 1_000

/** The direct children of a session, by their cards. */
export async function* listChildren(store: Store, parent: string): AsyncGenerator<Card> {
  for (let after = ''; ; ) {
    const cards = await store.list({ parent, after, limit: CHILD_PAGE })
    yield* cards
    const last = cards.at(-1)
    if (last === undefined || cards.length < CHILD_PAGE) return
    after = last.session
  }
}

/** How many sessions below this root are not closed, counted up to `most`. */
export async function countOpenBelow(store: Store, root: string, most: number): Promise<number> {
  let count = 0
  for (let after = ''; ; ) {
    const cards = await store.list({ root, after, limit: CHILD_PAGE })
    count += cards.filter(({ session, status }) => session !== root && status !== 'terminated').length
    const last = cards.at(-1)
    if (count >= most || last === undefined || cards.length < CHILD_PAGE) return Math.min(count, most)
    after = last.session
  }
}

/** Whether the last stop of this session came from its parent. */
export async function isStoppedByParent(
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

/** Why the child can no longer take the order: it was closed or answered since the call was made. Null if it can. */
export async function whyTooLate(store: CompleteStore, call: Proposal): Promise<string | null> {
  const { orders = [], awaits } = outsideOf(call) ?? {}
  const told: Pick<Order, 'session' | 'call'>[] = orders.filter(({ type }) => type === 'say')
  if (awaits !== undefined) told.push({ session: awaits })
  for (const { session = '', call: question } of told) {
    const head = await readSessionHead(store, session)
    if (head.closed || head.closing === true) return childClosedText(session)
    if (question !== undefined && findOutsideQuestion(head)?.key !== question)
      return `Subagent ${session} does not wait for this answer any more. Call ${LIST} to see how it stands.`
  }
  return null
}

/** How long the slowest child of this run took, from its order to its answer or report. */
export async function slowestChildMs(store: CompleteStore, id: string, began: number): Promise<number> {
  const handed = new Map<string, number>()
  let slowest = 0
  for (let after = began; ; ) {
    const { events } = await store.read(id, after, LOG_PAGE)
    for (const event of events) {
      if (event.type === 'agent.custom_tool_use') handed.set(event.call, writerTime(event))
      const from =
        'by' in event && (event.by?.startsWith(`session:${id}~`) ?? false) ? event.by?.split('~').at(-1) : null
      const [, key = ''] = /^(\d+\.\d+)/.exec(from ?? '') ?? []
      const since = handed.get(key)
      if (since !== undefined) slowest = Math.max(slowest, writerTime(event) - since)
    }
    const last = events.at(-1)
    if (last === undefined || events.length < LOG_PAGE) return slowest
    after = last.seq
  }
}
const LOG_PAGE = 1_000

export function childClosedText(session: string): string {
  return `Subagent ${session} is closed. Start another with ${SPAWN}.`
}
