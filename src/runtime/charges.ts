// Money beside the events: which holds a commit opens and closes. A lost call is settled at its full hold, and marked assumed.
import { eventId, type OwnerEvent } from '../kernel/event.ts'
import type { Charge } from '../kernel/ports.ts'
import type { Run } from '../kernel/session.ts'
import type { Purse } from './purse.ts'

const NONE: readonly Charge[] = []

export type Spending = {
  readonly id: string
  readonly root: string
  /** The last run that began before these events, and the model call that was open. */
  readonly run: number
  readonly open: Run['model']
}

export function chargesOf(
  { id, root, run, open: before }: Spending,
  events: readonly OwnerEvent[],
  purse: Purse,
): readonly Charge[] {
  if (!before?.held && events.every(isFree)) return NONE
  const charges: Charge[] = []
  let open = before
  let payer = { session: id, root, run, at: 0 }
  for (const event of events) {
    payer = { ...payer, at: event.at }
    if (event.type === 'run.started') {
      const before = payer.run
      payer = { ...payer, run: event.seq }
      charges.push(...purse.runLimit(payer, before))
    } else if (event.type === 'model.started') {
      open = { seq: event.seq, epoch: event.epoch, at: event.at, held: event.held ?? 0 }
      if (!event.held) continue
      const hold = {
        type: 'hold',
        key: eventId(id, event.seq),
        accounts: purse.accounts(payer),
        amount: event.held,
      } as const
      charges.push(...purse.limits(payer), hold)
    } else if (event.type === 'agent.message' || event.type === 'model.failed') {
      if (open && open.held > 0) charges.push(close(eventId(id, open.seq), open.held, event))
      open = null
    }
  }
  return charges
}

function isFree(event: OwnerEvent): boolean {
  return event.type !== 'run.started' && (event.type !== 'model.started' || !event.held)
}

function close(
  key: string,
  held: number,
  event: Extract<OwnerEvent, { type: 'agent.message' | 'model.failed' }>,
): Charge {
  if (event.type === 'agent.message' && event.cost !== undefined) return { type: 'settle', key, amount: event.cost }
  // A reply that does not say what it cost is counted as what was held for it, like one that was lost.
  if (event.type === 'agent.message') return { type: 'settle', key, amount: held, assumed: true }
  return event.class === 'lost' ? { type: 'settle', key, amount: held, assumed: true } : { type: 'free', key }
}
