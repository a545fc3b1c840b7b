// Reads a session's own log from a store, page by page.
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { damagedFault } from './session-history.ts'

const PAGE = 1_000

/** The whole log, in order. */
export async function readLog(store: Pick<Store, 'read'>, session: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for await (const event of readLogEvents(store, session)) events.push(event)
  return events
}

/** Rejects with `session_damaged` at the first event that does not match its checksum. */
export async function* readLogEvents(store: Pick<Store, 'read'>, session: string): AsyncGenerator<Event> {
  for (let after = 0; ; ) {
    const page = await store.read(session, after, PAGE)
    yield* page.events
    if (page.damaged) throw damagedFault(session, page.damaged)
    if (page.events.length < PAGE) return
    after += page.events.length
  }
}
