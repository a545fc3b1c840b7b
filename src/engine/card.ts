// What an owner's write has besides the facts: the stamp of each event, and the card of the session as it is after them.
import type { EventBody, OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import type { Here } from '../kernel/limits.ts'
import { next } from '../kernel/next.ts'
import type { OwnerWrite } from '../ports/store.ts'
import type { Session } from '../kernel/session.ts'
import { timesOf } from '../stores/plan/plan.ts'
import { cardOf } from '../view/card.ts'

/**
 * These events on top of a session, with the card it has then. For what is written outside of any attempt. Messages to the inbox are
 * among them only where a whole log is written at once.
 */
export function ownerWrite(id: string, before: Session, bodies: readonly EventBody[], here: Here): OwnerWrite {
  const after = open(before)
  const events = bodies.map((body) => {
    const event = stamped(after, here, body as OwnerBody)
    take(after, event)
    return event
  })
  const card = cardOf(id, after, next(after, here))
  return { session: id, lane: 'owner', epoch: here.epoch, expectedSeq: before.seq, events, card }
}

/** The usual case is written out: it is made for every event, and a spread of two parts costs a microsecond. */
export function stamped({ seq, at }: Session, { now, epoch }: Here, body: OwnerBody): OwnerEvent {
  if (now < at) return { seq: seq + 1, ...timesOf(at, now), epoch, ...body }
  return { seq: seq + 1, at: now, epoch, ...body }
}
