// The parts of an owner's write besides its facts: the stamp of each event, and the card of the session after them.
import type { EventBody, OwnerBody, OwnerEvent } from '../../kernel/event.ts'
import { open, take } from '../../kernel/fold.ts'
import type { Here } from '../../kernel/limits.ts'
import { next } from '../../kernel/next.ts'
import type { OwnerWrite } from '../../ports/store.ts'
import type { Session } from '../../kernel/session.ts'
import { timesOf } from '../../stores/plan/plan-writes.ts'
import { cardOf } from '../../view/card.ts'

/**
 * Builds the write of these events on top of a session, with the card it has then. For writes outside of any attempt.
 * Inbox messages are among them only where a whole log is written at once.
 */
export function ownerWrite(id: string, before: Session, bodies: readonly EventBody[], here: Here): OwnerWrite {
  const after = open(before)
  const events = bodies.map((body) => {
    const event = stampEvent(after, here, body as OwnerBody)
    take(after, event)
    return event
  })
  const card = cardOf(id, after, next(after, here))
  return { session: id, lane: 'owner', epoch: here.epoch, expectedSeq: before.seq, events, card }
}

/** The usual case is written out: it runs for every event, and a spread of two parts costs a microsecond. */
export function stampEvent({ seq, at }: Session, { now, epoch }: Here, body: OwnerBody): OwnerEvent {
  if (now < at) return { seq: seq + 1, ...timesOf(at, now), epoch, ...body }
  return { seq: seq + 1, at: now, epoch, ...body }
}
