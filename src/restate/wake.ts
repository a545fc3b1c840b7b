// What one wake of Restate does: look at the session as a worker does, and say when to look again. The store decides whether anything is
// due and who may drive; nothing is kept here or in Restate but the wish to look.
import { Fault } from '../kernel/failure.ts'
import type { Looked } from '../engine/worker.ts'
import type { Store } from '../ports/store.ts'
import type { Harness } from '../harness.ts'
import { checkId } from '../stores/plan/id.ts'

/** `after`: a wake that looks again. Null: nothing is left to do before somebody sends something. */
export type Woken = { readonly after: { readonly key: string; readonly delayMs: number } | null }
/** `times`: how often this wake has been put off. */
export type Waker = (session: string, times: number) => Promise<Woken>

const OVER: Woken = { after: null }
/** Another session that failed before is driven here: this one is looked at again, as if another worker had it. */
const BUSY: Looked = { type: 'contended' }
const AGAIN_MS = 1_000

/** Rejects with `session_missing` or `invalid_input` for what no retry can mend; with anything else for what one may. */
export function wakerOf(store: Store, harness: Pick<Harness, 'look'>): Waker {
  /** As by `work`: if a session that failed before takes the process with it, no other such session is blamed. */
  let isSuspectDriven = false

  async function look(session: string, failedBefore: boolean): Promise<Looked | null> {
    const first = failedBefore ? null : await harness.look(session, false)
    if (first && first.seen !== 'later') return checked(first)
    if (isSuspectDriven) return BUSY
    isSuspectDriven = true
    try {
      return checked(await harness.look(session, true))
    } finally {
      isSuspectDriven = false
    }
  }

  return async (session, times) => {
    checkId('session', session)
    await store.open()
    const card = await store.card(session)
    if (card === null) throw new Fault('session_missing', 'This session is not in the store of this worker.')
    // Asked of the card first, so that a wake too many takes no lease.
    const now = store.now()
    if (card.due === null) return OVER
    if (card.due > now) return later(card.due, now, times)
    const looked = await look(session, card.trouble !== undefined)
    if (looked?.type === 'contended') return again(times)
    const left = await store.card(session)
    if (left === null || left.due === null) return OVER
    const then = store.now()
    return left.due > then ? later(left.due, then, times) : again(times)
  }
}

/** Throws what Restate must try again, here or at another worker. Null: the attempt threw, and the card says until when it is left alone. */
function checked({ seen, looked }: Awaited<ReturnType<Harness['look']>>): Looked | null {
  if (seen === 'failed') throw new Error('The look failed for a reason outside of the session.')
  if (looked?.type === 'lost') throw new Fault('lease_lost', 'This worker lost the session while it drove it.')
  if (looked?.type === 'stopped') throw new Fault('harness_closed', 'This worker closes.')
  return looked
}

/** The keys count, so that a wake is never taken for the one that sends it. Wakes too many fall together here. */
function later(due: number, now: number, times: number): Woken {
  return { after: { key: `due-${due}-${times + 1}`, delayMs: due - now } }
}

function again(times: number): Woken {
  return { after: { key: `again-${times + 1}`, delayMs: AGAIN_MS } }
}
