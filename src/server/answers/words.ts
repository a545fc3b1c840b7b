// What a log says around what waits: when a call was asked about and what the model said with it, and why a session looks again. Read from
// the events that say so; a log that cannot be read has no words.
import type { Card, Event, Store } from '../../kernel/index.ts'
import { isCheckpoint } from '../../view/node-stops.ts'
import { shortened, textOf } from '../../view/text.ts'
import type { Host } from '../host.ts'
import type { WirePending } from '../wire.ts'

const SAID_CHARS_MAX = 8_000

/** In the order they were asked, the first first. */
export async function withWords(store: Store, waiting: readonly WirePending[]): Promise<readonly WirePending[]> {
  const told = await Promise.all(waiting.map(async (one) => ({ ...one, ...(await wordsOf(store, one)) })))
  return told.toSorted((a, b) => (a.since ?? 0) - (b.since ?? 0))
}

type Words = Pick<WirePending, 'since' | 'said' | 'effect' | 'title'>

/** A call is named by the event that proposed it and its place there. */
async function wordsOf(store: Store, { sessionId, callId }: WirePending): Promise<Words> {
  const [seq = Number.NaN, index = Number.NaN] = callId.split('.').map(Number)
  const card = await store.card(sessionId)
  const named = card?.title === undefined ? {} : { title: card.title }
  // A session that ended at its budget has waited since its last event.
  if (!Number.isSafeInteger(seq)) return { ...named, ...(card === null ? {} : { since: card.at }) }
  const event = await eventAt(store, sessionId, seq)
  if (event?.type !== 'agent.message') return named
  // What the planner of a graph replies is its state, and no words of a model.
  const said = isCheckpoint(event) ? '' : textOf(event.parts)
  const effect = event.calls[index]?.effect
  return {
    ...named,
    since: event.at,
    ...(said === '' ? {} : { said: shortened(said, SAID_CHARS_MAX) }),
    ...(effect === undefined ? {} : { effect }),
  }
}

/** Of a provider that is away the card says it; of a wake the event that planned it. */
export async function reasonOf({ harness, store }: Host, card: Card): Promise<{ readonly reason?: string }> {
  if (card.outage) return { reason: card.outage.reason }
  if (card.wakes === 0) return {}
  try {
    const { session } = await harness.session(card.session, { stored: true }).stateAt(card.seq)
    const next = session.wakes.find(({ due }) => due === card.due) ?? session.wakes[0]
    const event = next && (await eventAt(store, card.session, next.seq))
    return event?.type === 'wake.scheduled' ? { reason: event.reason } : {}
  } catch {
    return {}
  }
}

async function eventAt(store: Store, session: string, seq: number): Promise<Event | undefined> {
  const { events } = await store.read(session, seq - 1, 1)
  return events[0]
}
