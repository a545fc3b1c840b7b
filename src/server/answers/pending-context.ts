// The log's context of a pending call or a due wake: when the call was asked, what the model said with it, and why a
// session looks again. A log that cannot be read gives no context.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { isCheckpoint } from '../../view/node-stops.ts'
import { shortenText, textOf } from '../../view/shown-text.ts'
import type { ServerHost } from '../server-host.ts'
import type { DueRow, ScheduledRow, WirePending } from '../wire.ts'

const SAID_CHARS_MAX = 8_000

/** Sorted by the time of asking, the oldest first. */
export async function addPendingContext(
  store: Store,
  waiting: readonly WirePending[],
): Promise<readonly WirePending[]> {
  const told = await Promise.all(waiting.map(async (one) => ({ ...one, ...(await readPendingContext(store, one)) })))
  return told.toSorted((a, b) => (a.since ?? 0) - (b.since ?? 0))
}

type PendingContext = Pick<WirePending, 'since' | 'said' | 'effect' | 'title'>

/** A call's key is the seq of the event that proposed it and its index there. */
async function readPendingContext(store: Store, { sessionId, callId }: WirePending): Promise<PendingContext> {
  const [seq = Number.NaN, index = Number.NaN] = callId.split('.').map(Number)
  const card = await store.card(sessionId)
  const named = card?.title === undefined ? {} : { title: card.title }
  // A session that ended at its budget has waited since its last event.
  if (!Number.isSafeInteger(seq)) return { ...named, ...(card === null ? {} : { since: card.at }) }
  const event = await readEventAt(store, sessionId, seq)
  if (event?.type !== 'agent.message') return named
  // The reply of a graph's planner is its state, not text of a model.
  const said = isCheckpoint(event) ? '' : textOf(event.parts)
  const effect = event.calls[index]?.effect
  return {
    ...named,
    since: event.at,
    ...(said === '' ? {} : { said: shortenText(said, SAID_CHARS_MAX) }),
    ...(effect === undefined ? {} : { effect }),
  }
}

/** An outage's reason stands on the card, a wake's reason in the event that planned it. */
export async function readDueReason(
  { harness, store }: ServerHost,
  card: Card,
): Promise<Pick<DueRow, 'reason' | 'scheduled'>> {
  const outage = card.outage ? { reason: card.outage.reason } : {}
  // A message for later leaves a session that rests rescheduled.
  if (card.wakes === 0 && card.status !== 'rescheduling') return outage
  try {
    const { session } = await harness.session(card.session, { stored: true }).status({ at: card.seq })
    const later = session.inputs.flatMap(({ seq, due }) => (due === undefined ? [] : [{ seq, due }]))
    const timed = [...session.wakes, ...later].toSorted((a, b) => a.due - b.due)
    const rows = timed.map(({ seq }) => readScheduled(store, card.session, seq))
    const scheduled = (await Promise.all(rows)).filter((row) => row !== null)
    const [first] = scheduled
    return first === undefined ? outage : { reason: first.reason, ...outage, scheduled }
  } catch {
    return outage
  }
}

/** A message for later is known by its text. */
async function readScheduled(store: Store, id: string, seq: number): Promise<ScheduledRow | null> {
  const event = await readEventAt(store, id, seq)
  if (event && 'due' in event) return { key: event.key, due: event.due, reason: event.reason }
  if (event?.type !== 'user.message' || event.notBefore === undefined) return null
  return { due: event.notBefore, reason: shortenText(textOf(event.parts), REASON_CHARS_MAX) }
}

const REASON_CHARS_MAX = 2_000

async function readEventAt(store: Store, session: string, seq: number): Promise<Event | undefined> {
  const { events } = await store.read(session, seq - 1, 1)
  return events[0]
}
