// Reading a session for a page: its log as it is now, and its stream item by item. A page that leaves changes nothing but its reading.
import { Fault } from '../kernel/failure.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { RunStream, Session } from '../sessions/verbs.ts'
import { logOf, readPosition } from './position.ts'
import { type Item, Teller } from './teller.ts'

const PAGE = 1_000

/** A page may name a session before its first message has made it. */
export async function isThere(session: Session): Promise<boolean> {
  try {
    return (await session.read(0, 1)).events.length > 0
  } catch (error) {
    if (error instanceof Fault && error.code === 'session_missing') return false
    throw error
  }
}

/** All that a log says up to an event, told to `see`. The teller stands behind its last event. */
export async function readAll(
  session: Session,
  see: (item: Item) => void,
  upTo = Number.POSITIVE_INFINITY,
): Promise<Teller> {
  const teller = new Teller(session.id, await logOf(session))
  for (let after = 0; ; ) {
    const { events } = await session.read(after, PAGE)
    for (const event of events) if (event.seq <= upTo) for (const item of teller.see(event)) see(item)
    const last = events.at(-1)
    if (last === undefined || last.seq >= upTo) return teller
    after = last.seq
  }
}

/** What comes after a position that a stream gave. */
export async function continued(session: Session, cursor: unknown): Promise<Items> {
  const log = await logOf(session)
  const position = await readPosition(session, log, cursor)
  const stream = session.stream(undefined, { after: Math.max(0, position.from - 1), deltas: true })
  return followed(session, stream, new Teller(session.id, log, position))
}

/** What happens from the event `from` on, which began a message. */
export async function repeated(session: Session, from: number): Promise<Items> {
  return followed(session, session.stream(undefined, { after: from - 1, deltas: true }))
}

export type Items = AsyncIterator<readonly Item[], undefined>

/** A refusal is thrown here, before anything is answered. */
export async function followed(session: Session, stream: RunStream, known?: Teller): Promise<Items> {
  const events = stream[Symbol.asyncIterator]()
  let ahead: IteratorResult<StreamEvent> | null = await events.next()
  const teller = known ?? new Teller(session.id, await logOf(session))
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
