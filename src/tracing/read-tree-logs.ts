// Reads the logs for a trace from a store: that of a run and those of the sessions below it. It projects nothing.
import type { Event, EventOf, Parent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Store } from '../ports/store.ts'
import { childIdOf, type SessionLog } from '../view/spans/span.ts'

const PAGE = 1_000

/** A session with all its children, whole or for one of its runs, as `spansOf` takes them. */
export async function readTree(store: Store, session: string, run?: number): Promise<readonly SessionLog[]> {
  const events = run === undefined ? await readAll(store, session, 0) : await readRun(store, session, run)
  const logs: SessionLog[] = [{ session, events }]
  for (const event of events) {
    if (event.type !== 'agent.custom_tool_use') continue
    const child = childIdOf(session, event.call)
    const parent = (await createdOf(store, child))?.parent
    if (parent?.session === session && parent.call === event.call) logs.push(...(await readTree(store, child)))
  }
  return logs
}

export async function createdOf(store: Store, session: string): Promise<EventOf<'session.created'> | null> {
  if ((await store.card(session)) === null) return null
  const [first] = await readPage(store, session, 0, 1)
  return first?.type === 'session.created' ? first : null
}

/** The root's run that a child works for, once it has settled. */
export type RootRun = { readonly session: string; readonly run: number; readonly settledAt: number }

/**
 * Follows the parents up to the root. Only there it looks for the settlement after the call, near the end of a log, and
 * then for the start of that run.
 */
export async function findRootRun(store: Store, parent: Parent): Promise<RootRun | null> {
  let [session, call] = [parent.session, parent.call]
  for (;;) {
    const above = (await createdOf(store, session))?.parent
    if (!above) break
    ;[session, call] = [above.session, above.call]
  }
  const seq = Number(call.split('.')[0])
  const settled = await findFrom(store, session, seq, 'run.settled')
  if (!settled) return null
  const before = await readAll(store, session, 0, seq)
  const run = before.findLast((event) => event.type === 'run.started')
  return run ? { session, run: run.seq, settledAt: settled.at } : null
}

/** The events of the run, preceded by the session's first event and by the earlier messages shown in the run. */
async function readRun(store: Store, session: string, run: number): Promise<readonly Event[]> {
  const [created] = await readPage(store, session, 0, 1)
  const events: Event[] = []
  for (let after = run - 1; ; ) {
    const page = await readPage(store, session, after)
    const end = page.findIndex((event) => event.type === 'run.settled')
    events.push(...(end < 0 ? page : page.slice(0, end + 1)))
    after += page.length
    if (end >= 0 || page.length === 0) break
  }
  const shown = new Set(events.flatMap((event) => (event.type === 'model.started' ? event.shows : [])))
  const before = [...shown].filter((seq) => seq > 1 && seq < run).toSorted((a, b) => a - b)
  const said = await Promise.all(before.map((seq) => readPage(store, session, seq - 1, 1)))
  return [...(created ? [created] : []), ...said.flat(), ...events]
}

async function readAll(store: Store, session: string, after: number, upTo = Infinity): Promise<readonly Event[]> {
  const events: Event[] = []
  for (let last = after; last < upTo; ) {
    const page = await readPage(store, session, last, Math.min(PAGE, upTo - last))
    if (page.length === 0) break
    events.push(...page)
    last += page.length
  }
  return events
}

async function findFrom(store: Store, session: string, after: number, type: Event['type']): Promise<Event | null> {
  for (let last = after; ; ) {
    const page = await readPage(store, session, last)
    const found = page.find((event) => event.type === type)
    if (found || page.length === 0) return found ?? null
    last += page.length
  }
}

async function readPage(store: Store, session: string, after: number, limit = PAGE): Promise<readonly Event[]> {
  const { events, damaged } = await store.read(session, after, limit)
  if (damaged)
    throw new Fault('session_damaged', `Session ${session} is damaged at event ${damaged.seq}: it cannot be traced.`)
  return events
}
