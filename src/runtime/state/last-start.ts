// Reads back the start of a session's last run, from which later runs continue.
import type { EventOf } from '../../kernel/event.ts'
import type { Session } from '../../kernel/session.ts'
import type { Store } from '../../ports/store.ts'

export type LastRun = {
  readonly id: string
  readonly session: Pick<Session, 'began' | 'imported'>
  begun: EventOf<'run.started'> | null
}

/**
 * Null if there is no run, or if its start was imported or copied from another session: nothing is done on its
 * authority.
 */
export async function lastStart(store: Pick<Store, 'read'>, cache: LastRun): Promise<EventOf<'run.started'> | null> {
  const { began, imported = 0 } = cache.session
  if (began <= imported) return null
  if (cache.begun?.seq !== began) cache.begun = await readRunStart(store, cache.id, began)
  return cache.begun?.foreign ? null : cache.begun
}

export async function readRunStart(
  store: Pick<Store, 'read'>,
  session: string,
  seq: number,
): Promise<EventOf<'run.started'> | null> {
  const [event] = (await store.read(session, seq - 1, 1)).events
  return event?.type === 'run.started' ? event : null
}
