// A store of many sessions of every kind that lists tell apart: rested, asleep until a wake, deliveries, children; of some agents and
// folders, with titles and costs. And the requests for all lists that a page of the inspector or a client asks for.
import type { Card, CompleteStore, OwnerWrite } from '../../src/ports/store.ts'
import type { OwnerEvent } from '../../src/kernel/event.ts'
import { CONTENT_LABEL } from '../../src/triggers/decision-cache.ts'
import { TRIGGER_LABEL } from '../../src/triggers/trigger-definition.ts'

const BATCH = 1_000
const DAY_MS = 86_400_000
const AGENTS = ['default', 'researcher', 'clerk']
export const SOURCE = 'orders'
/** These have a session of their own, so that a search and a folder find few. */
const FOLDERS = 50

export async function fillMany(store: CompleteStore, count: number): Promise<void> {
  const now = store.now()
  for (let from = 0; from < count; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - from) }, (_, i) => from + i)
    await store.commit(numbers.map((n) => sessionOf(n, now, count)))
  }
}

function nameOf(n: number): string {
  return n % 10 === 9 ? `${nameOf(n - 1)}~2.0` : `session-${String(n).padStart(7, '0')}`
}

function sessionOf(n: number, now: number, count: number): OwnerWrite {
  const session = nameOf(n)
  const [isChild, sleeps, isDelivery] = [n % 10 === 9, n % 5 === 0, n % 10 === 3]
  const agent = isDelivery ? `trigger_${SOURCE}` : (AGENTS[n % AGENTS.length] as string)
  // In no order, so that no index is a copy of the table.
  const at = now - ((n * 7_919) % count) * 10
  const due = sleeps ? now + DAY_MS + ((n * 104_729) % count) * 1_000 : null
  const parent = isChild ? { parent: { session: nameOf(n - 1), call: '2.0' } } : {}
  const labels = isDelivery ? { labels: { [TRIGGER_LABEL]: SOURCE, [CONTENT_LABEL]: `order-${n}` } } : {}
  const metadata = { title: `Order ${n} of shop ${n % 7}` }
  const stamp = { at, epoch: 0 }
  const events: OwnerEvent[] = [
    {
      ...stamp,
      seq: 1,
      type: 'session.created',
      agent,
      planner: 'model',
      metadata,
      ...labels,
      ...parent,
    } as OwnerEvent,
    ...(due === null ? [] : [{ ...stamp, seq: 2, type: 'wake.scheduled', due, reason: 'later', key: 'w' } as const]),
  ]
  const card: Card = {
    session,
    agent,
    root: isChild ? nameOf(n - 1) : session,
    ...(isChild ? { parent: nameOf(n - 1) } : { folder: `/shops/${n % FOLDERS}` }),
    status: sleeps ? 'rescheduling' : 'idle',
    due,
    ...labels,
    seq: events.length,
    at,
    cost: n % 1_000,
    asks: [],
    waits: [],
    wakes: sleeps ? 1 : 0,
    outcome: sleeps ? null : n % 17 === 0 ? 'failed' : 'completed',
  }
  return { session, lane: 'owner', epoch: 0, expectedSeq: 0, events, card }
}

/** Every list of the routes, with the filters that pages and clients use. */
export const LISTS: readonly string[] = [
  'health',
  'sessions',
  'sessions?limit=200',
  'sessions?order=made',
  'sessions?order=id&limit=200',
  'sessions?status=idle',
  'sessions?status=rescheduling',
  'sessions?status=requires_action',
  'sessions?agent=clerk',
  'sessions?folder=/shops/7',
  'sessions?outcome=failed',
  'sessions?outcome=failed,completed&agent=researcher',
  'sessions?since=1&until=4000000000000',
  'sessions?q=Order',
  `sessions?root=${nameOf(8)}`,
  `sessions?parent=${nameOf(8)}`,
  `sessions/${nameOf(8)}`,
  `sessions/${nameOf(8)}/events`,
  'pending',
  'triggers',
  `triggers?source=${SOURCE}&decision=dead`,
  'letters',
  'evals',
  'cron',
  'due',
  'usage',
]
