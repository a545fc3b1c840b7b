// The start of a session's last run, read back: what later runs of the session go on from.
import type { Event } from '../kernel/event.ts'
import type { Session } from '../kernel/session.ts'
import type { Store } from '../ports/store.ts'

export type Started = Extract<Event, { type: 'run.started' }>

export type Begun = {
  readonly id: string
  readonly session: Pick<Session, 'began' | 'imported'>
  begun: Started | null
}

/** Null if there is none, or if it came out of a file or from another session: then nothing is done on its word. */
export async function lastStart(store: Pick<Store, 'read'>, cache: Begun): Promise<Started | null> {
  const { began, imported = 0 } = cache.session
  if (began <= imported) return null
  if (cache.begun?.seq !== began) cache.begun = await startAt(store, cache.id, began)
  return cache.begun?.foreign ? null : cache.begun
}

export async function startAt(store: Pick<Store, 'read'>, session: string, seq: number): Promise<Started | null> {
  const [event] = (await store.read(session, seq - 1, 1)).events
  return event?.type === 'run.started' ? event : null
}
