// Reads a session for a page: its log as it is now, and its stream item by item. A page that leaves only ends its own
// reading.
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { RunStream, Session } from '../sessions/verbs.ts'
import { readLogId, readPosition } from './reader-position.ts'
import { type PositionedItem, ItemBuilder } from './item-builder.ts'

const PAGE = 1_000

/** A page may use a session's id before the first message creates the session. */
export async function sessionExists(session: Session): Promise<boolean> {
  return (await session.events({ limit: 1 })).events.length > 0
}

/** Passes all items up to an event to `see`. The returned builder has taken the last of these events. */
export async function readAllItems(
  session: Session,
  see: (item: PositionedItem) => void,
  upTo = Number.POSITIVE_INFINITY,
): Promise<ItemBuilder> {
  const teller = new ItemBuilder(session.id, await readLogId(session))
  for (let after = 0; ; ) {
    const { events } = await session.events({ after, limit: PAGE })
    for (const event of events) if (event.seq <= upTo) for (const item of teller.see(event)) see(item)
    const last = events.at(-1)
    if (last === undefined || last.seq >= upTo) return teller
    after = last.seq
  }
}

/** Follows the session after a position that a stream gave. */
export async function continueFrom(session: Session, cursor: unknown): Promise<ItemStream> {
  const log = await readLogId(session)
  const position = await readPosition(session, log, cursor)
  const stream = session.stream(undefined, { after: Math.max(0, position.from - 1), deltas: true })
  return followItems(session, stream, new ItemBuilder(session.id, log, position))
}

/** Follows the session again from event `from`, which began a message. */
export async function repeatFrom(session: Session, from: number): Promise<ItemStream> {
  return followItems(session, session.stream(undefined, { after: from - 1, deltas: true }))
}

export type ItemStream = AsyncIterator<readonly PositionedItem[], undefined>

/** A refusal is thrown here, before the response begins. */
export async function followItems(session: Session, stream: RunStream, known?: ItemBuilder): Promise<ItemStream> {
  const events = stream[Symbol.asyncIterator]()
  let ahead: IteratorResult<StreamEvent> | null = await events.next()
  const teller = known ?? new ItemBuilder(session.id, await readLogId(session))
  let over = false
  return {
    next: async () => {
      if (over) return OVER
      const step = ahead ?? (await events.next())
      ahead = null
      if (step.done !== true) return { done: false, value: teller.take(step.value) }
      over = true
      return { done: false, value: teller.rest(await stream.result) }
    },
    return: async () => {
      over = true
      await events.return?.()
      return OVER
    },
  }
}

const OVER = { done: true, value: undefined } as const
