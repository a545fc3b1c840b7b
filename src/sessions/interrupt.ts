// A stop or a pause from outside. A stop goes in the same commit to every child that works below the session, and those then send no report.
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { commit } from '../engine/again.ts'
import type { Send } from '../engine/commit.ts'
import type { InboxWrite, Receipt, Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { stopId } from '../stores/plan/id.ts'

type Interrupt = Extract<InboxBody, { type: 'user.interrupt' }>
/** `woken` have something to look at. */
type Interrupted = { readonly seq: number; readonly duplicate: boolean; readonly woken: readonly string[] }
type Known = { readonly store: Store; readonly clock?: Clock | undefined }

export async function interrupted({ store, clock }: Known, session: string, event: Interrupt): Promise<Interrupted> {
  const [child] = event.mode === 'stop' ? await store.list({ parent: session, limit: 1 }) : []
  if (child) return stopAll({ store, clock }, session, event)
  const [receipt] = await commit({ store, clock }, [inboxOf({ session, event })])
  return { ...receiptOf(receipt), woken: [session] }
}

const TRIES_MAX = 10

/** A session and all that work below it. Looked at again afterwards: a child may have been made meanwhile. */
async function stopAll({ store, clock }: Known, session: string, event: Interrupt): Promise<Interrupted> {
  const [{ stopsBelow }, { isWorking }] = await Promise.all([
    import('../riders/children/children.ts'),
    import('../riders/children/status.ts'),
  ])
  const card = await store.card(session)
  const tells = card !== null && isWorking(card)
  const told = new Set<string>()
  let first: Receipt | undefined
  for (let tries = 1; ; tries++) {
    const stop = stopId(session, event.id)
    const below = (await stopsBelow(store, session, stop, tells)).filter((each) => !told.has(each.session))
    // After the look below: what was there then had not begun since this interrupt was sent for the first time.
    if (first === undefined && (await store.sent(session, event.id)) !== null)
      return repeated({ store, clock }, session, event)
    const sends = first === undefined ? [{ session, event }, ...below] : below
    if (sends.length === 0 || tries > TRIES_MAX) return { ...receiptOf(first), woken: [...told] }
    try {
      const [receipt] = await commit({ store, clock }, sends.map(inboxOf))
      first ??= receipt
      for (const each of sends) told.add(each.session)
    } catch (error) {
      const closed = error instanceof Fault && error.code === 'session_closed' && below.length > 0
      // A child was closed since it was looked at.
      if (!closed || tries === TRIES_MAX) throw error
    }
  }
}

/** It stops nothing that began since. The store refuses it if the id was used for something else. */
async function repeated(known: Known, session: string, event: Interrupt): Promise<Interrupted> {
  const [receipt] = await commit(known, [inboxOf({ session, event })])
  return { ...receiptOf(receipt), woken: [] }
}

function inboxOf({ session, event }: Send): InboxWrite {
  return { session, lane: 'inbox', events: [event] }
}

function receiptOf(receipt: Receipt | undefined): Omit<Interrupted, 'woken'> {
  return { seq: receipt?.seqs[0] ?? 0, duplicate: receipt?.duplicate ?? false }
}
