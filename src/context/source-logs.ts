// Reads the logs of a session: its own, and those of the sessions it was forked from. "^" before a number means the
// session that this one was forked from, "^^" the one before that. It never reads beyond the event at which a fork was
// made.
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'

const PAGE = 500

/** A log, read up to this event. */
export type SourceLog = { readonly id: string; readonly upTo: number }

/**
 * The log of this session and those it was forked from, the nearest first. `most`: how many of the latter to look for.
 */
export async function findSourceLogs(
  store: Pick<Store, 'read'>,
  session: string,
  most = Number.POSITIVE_INFINITY,
): Promise<readonly SourceLog[]> {
  const logs: SourceLog[] = [{ id: session, upTo: Number.POSITIVE_INFINITY }]
  for (const { id } of logs) {
    const [created] = (await store.read(id, 0, 1)).events
    const fork = created?.type === 'session.created' ? created.fork : undefined
    if (logs.length > most || fork === undefined || logs.some((log) => log.id === fork.session)) break
    logs.push({ id: fork.session, upTo: fork.seq })
  }
  return logs
}

export async function* readSourceEvents(
  store: Pick<Store, 'read'>,
  { id, upTo }: SourceLog,
  after = 0,
): AsyncGenerator<Event> {
  for (let at = after; ; ) {
    const { events } = await store.read(id, at, PAGE)
    for (const event of events) {
      if (event.seq > upTo) return
      yield event
    }
    const last = events.at(-1)
    if (last === undefined) return
    at = last.seq
  }
}

/**
 * The messages of users that this event gives to the model. A message that still waits, or that a hook held back before
 * there was a run, was never given to it.
 */
export function promotedMessages(event: Event): readonly number[] {
  if (event.type === 'model.started') return event.shows
  if (event.type !== 'run.settled') return []
  const { outcome, inputs = [] } = event
  return 'hook' in outcome || ('reason' in outcome && outcome.reason === 'hook_error') ? [] : inputs
}
