// Handles one wake from Restate: looks at the session as a worker does, and says when to look again. The store decides
// whether anything is due and who may drive. Nothing is kept here, and Restate keeps only the wake itself.
import { Fault } from '../kernel/failure.ts'
import type { RestReport } from '../runtime/loop/worker.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Harness } from '../harness.ts'
import { checkId } from '../stores/plan/store-ids.ts'
import { lookAt, type WorkerLook } from '../worker.ts'

/** `after`: the wake that looks again. Null: nothing is left to do until a new event arrives. */
export type WakeResult = { readonly after: { readonly key: string; readonly delayMs: number } | null }
/** `times`: how often this wake has been postponed. */
export type WakeSession = (session: string, times: number) => Promise<WakeResult>

const OVER: WakeResult = { after: null }
/**
 * A suspect session (one that failed before) is being driven here, so this one is looked at again later, as if another
 * worker had it.
 */
const BUSY: RestReport = { type: 'contended' }
const AGAIN_MS = 1_000

/** Rejects with `session_missing` or `invalid_input` if no retry can help, and with other errors if one may. */
export function createWaker(store: CompleteStore, harness: Pick<Harness, 'health'>): WakeSession {
  /** As in `work`, only one suspect session is driven at a time: if it crashes the process, no other one is blamed. */
  let isSuspectDriven = false

  async function look(session: string, failedBefore: boolean): Promise<RestReport | null> {
    const first = failedBefore ? null : await lookAt(harness, session, false)
    if (first && first.seen !== 'later') return requireLooked(first)
    if (isSuspectDriven) return BUSY
    isSuspectDriven = true
    try {
      return requireLooked(await lookAt(harness, session, true))
    } finally {
      isSuspectDriven = false
    }
  }

  return async (session, times) => {
    checkId('session', session)
    await store.open()
    const card = await store.card(session)
    if (card === null) throw new Fault('session_missing', 'This session is not in the store of this worker.')
    // The card is read first, so that a superfluous wake takes no lease.
    const now = store.now()
    if (card.due === null) return OVER
    if (card.due > now) return wakeAtDue(card.due, now, times)
    const looked = await look(session, card.trouble !== undefined)
    if (looked?.type === 'contended') return wakeSoon(times)
    const left = await store.card(session)
    if (left === null || left.due === null) return OVER
    const then = store.now()
    return left.due > then ? wakeAtDue(left.due, then, times) : wakeSoon(times)
  }
}

/**
 * Throws if Restate must try again, here or at another worker. Null: the attempt threw, and the card says how long the
 * session is left alone.
 */
function requireLooked({ seen, looked }: WorkerLook): RestReport | null {
  if (seen === 'failed') throw new Error('The look failed for a reason outside of the session.')
  if (looked?.type === 'lost') throw new Fault('lease_lost', 'This worker lost the session while it drove it.')
  if (looked?.type === 'stopped') throw new Fault('harness_closed', 'This worker closes.')
  return looked
}

/**
 * The keys contain a counter, so that a follow-up is never a duplicate of the wake that sends it. Superfluous wakes
 * share a key and merge.
 */
function wakeAtDue(due: number, now: number, times: number): WakeResult {
  return { after: { key: `due-${due}-${times + 1}`, delayMs: due - now } }
}

function wakeSoon(times: number): WakeResult {
  return { after: { key: `again-${times + 1}`, delayMs: AGAIN_MS } }
}
