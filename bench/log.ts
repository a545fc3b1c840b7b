// Long logs, made quickly: events that fold accepts, committed to a store in large pieces. Not how sessions are driven;
// it only leaves what a long session would have left.
import { cardOf } from '../src/view/card.ts'
import type { OwnerEvent } from '../src/kernel/event.ts'
import { open, type OpenSession, take } from '../src/kernel/fold.ts'
import { next } from '../src/kernel/next.ts'
import type { OwnerWrite, CompleteStore } from '../src/ports/store.ts'
import { EMPTY, FOLD_VERSION } from '../src/kernel/session.ts'
import { LIMITS, turnEvents } from './turn.ts'

const PIECE = 10_000

export type LongLog = {
  readonly id: string
  /** 4 for the opening and 4 for every turn. */
  readonly events: number
  /** Where its snapshot stands, if it has one. */
  readonly snapshotSeq?: number
  /** A snapshot each so many events, as a long session has them. */
  readonly snapshotEvery?: number
}

export async function buildLog(
  store: CompleteStore,
  { id, events, snapshotSeq = 0, snapshotEvery = 0 }: LongLog,
): Promise<void> {
  const session = open(EMPTY)
  const at = store.now()
  const created: OwnerEvent = { seq: 1, at, epoch: 0, type: 'session.created', agent: 'default', planner: 'model' }
  const go = { type: 'user.message', id: 'go', parts: [{ type: 'text', text: 'go' }], when: 'next' } as const
  take(session, created)
  await store.commit([write(id, session, [created]), { session: id, lane: 'inbox', events: [go] }])
  const [message] = (await store.read(id, 1)).events
  const claim = await store.claim(id, 'bench', 600_000)
  if (!claim || !message) throw new Error(`session ${id} was not made`)
  take(session, message)
  let piece: OwnerEvent[] = []
  for (const event of logAfter(message.seq, { at: message.at, epoch: claim.epoch })) {
    take(session, event)
    piece.push(event)
    const isKept = event.seq === snapshotSeq || (snapshotEvery > 0 && event.seq % snapshotEvery === 0)
    if (piece.length < PIECE && event.seq < events && !isKept) continue
    const snapshot = { seq: event.seq, version: FOLD_VERSION, body: JSON.stringify(session) }
    const kept = isKept ? { snapshot } : {}
    await store.commit([{ ...write(id, session, piece), ...kept }])
    piece = []
    if (event.seq >= events) break
  }
  await store.release(id, claim.epoch)
}

export function* logAfter(
  seq: number,
  { at, epoch }: { at: number; epoch: number },
): Generator<OwnerEvent, never, void> {
  const frame = { limits: LIMITS, toolset: 'none', instructions: 'none' }
  yield { seq: seq + 1, at, epoch, type: 'run.started', inputs: [seq], wakes: [], ...frame }
  yield { seq: seq + 2, at, epoch, type: 'model.started', shows: [seq] }
  for (let last = seq + 2; ; last += 4) for (const pair of turnEvents(last, { at, epoch })) yield* pair
}

/** `session` is as these events leave it. */
function write(id: string, session: OpenSession, events: readonly OwnerEvent[]): OwnerWrite {
  const { seq, epoch } = session
  const card = cardOf(id, session, next(session, { now: session.at, epoch }))
  return { session: id, lane: 'owner', epoch, expectedSeq: seq - events.length, events, card }
}
