// Money beside the events: which holds a commit opens and closes. A lost call is settled at its full hold, and marked assumed.
import { eventId, type OwnerEvent } from '../kernel/event.ts'
import type { Charge } from '../kernel/ports.ts'
import type { Run } from '../kernel/session.ts'

const NONE: readonly Charge[] = []

/** `before` is the model call that was open before these events. */
export function chargesOf(
  id: string,
  before: Run['model'],
  events: readonly OwnerEvent[],
  accounts: readonly string[],
): readonly Charge[] {
  if (before?.held === 0 && events.every((event) => event.type !== 'model.started' || !event.held)) return NONE
  const charges: Charge[] = []
  let open = before
  for (const event of events) {
    if (event.type === 'model.started') {
      open = { seq: event.seq, epoch: event.epoch, at: event.at, held: event.held ?? 0 }
      if (event.held) charges.push({ type: 'hold', key: eventId(id, event.seq), accounts, amount: event.held })
    } else if (event.type === 'agent.message' || event.type === 'model.failed') {
      if (open && open.held > 0) charges.push(close(eventId(id, open.seq), open.held, event))
      open = null
    }
  }
  return charges
}

function close(
  key: string,
  held: number,
  event: Extract<OwnerEvent, { type: 'agent.message' | 'model.failed' }>,
): Charge {
  if (event.type === 'agent.message') return { type: 'settle', key, amount: event.cost ?? 0 }
  return event.class === 'lost' ? { type: 'settle', key, amount: held, assumed: true } : { type: 'free', key }
}
