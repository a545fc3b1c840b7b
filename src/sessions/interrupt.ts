// Stops or pauses a session from outside. A stop reaches every working child below the session in the same commit, and
// those children then send no report.
import { isChildWorking } from '../runtime/state/children-below.ts'
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import type { OutgoingMessage, InboxWrite, Receipt, CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { stopId } from '../stores/plan/store-ids.ts'
import { graderId, PURSUIT, readRoundName } from '../view/pursuits.ts'

type Interrupt = Extract<InboxBody, { type: 'user.interrupt' }>
/** `woken`: the sessions to wake. */
type InterruptReceipt = { readonly seq: number; readonly duplicate: boolean; readonly woken: readonly string[] }
type InterruptDeps = { readonly store: CompleteStore; readonly clock?: Clock | undefined }

export async function sendInterrupt(
  { store, clock }: InterruptDeps,
  session: string,
  event: Interrupt,
): Promise<InterruptReceipt> {
  const [child] = event.mode === 'stop' ? await store.list({ parent: session, limit: 1 }) : []
  if (child) return stopTree({ store, clock }, session, event)
  const [receipt] = await commitWithRetry({ store, clock }, [inboxWrite({ session, event })])
  return { ...receiptFields(receipt), woken: [session] }
}

/**
 * Stops the grader of the session's last run, if that was a round of a pursuit and is being graded. Returns the sessions
 * to wake.
 */
export async function stopGrader(deps: InterruptDeps, session: string, { id }: Interrupt): Promise<readonly string[]> {
  const { store } = deps
  const { began } = await readSessionHead(store, session)
  const [started] = began === 0 ? [] : (await store.read(session, began - 1, 1)).events
  const name = started?.type === 'run.started' ? readRoundName(started.metadata?.[PURSUIT]) : null
  const grader = name && graderId(name.fingerprint, name.round)
  if (grader === null || grader === session) return []
  const { status = 'idle' } = (await store.card(grader)) ?? {}
  if (status === 'idle' || status === 'terminated') return []
  const stop = { type: 'user.interrupt', id: stopId(session, id), mode: 'stop', by: `session:${session}` } as const
  return (await sendInterrupt(deps, grader, stop)).woken
}

const TRIES_MAX = 10

/**
 * Stops a session and everything that works below it. It looks again after each commit, because a child may have been
 * created meanwhile.
 */
async function stopTree({ store, clock }: InterruptDeps, session: string, event: Interrupt): Promise<InterruptReceipt> {
  const { stopMessagesBelow } = await import('../runtime/commit/family.ts')
  const card = await store.card(session)
  const tells = card !== null && isChildWorking(card)
  const told = new Set<string>()
  let first: Receipt | undefined
  for (let tries = 1; ; tries++) {
    const stop = stopId(session, event.id)
    const below = (await stopMessagesBelow(store, session, stop, tells)).filter((each) => !told.has(each.session))
    // Checked after the children were read: those children existed before this interrupt was first sent.
    if (first === undefined && (await store.sent(session, event.id)) !== null)
      return repeatInterrupt({ store, clock }, session, event)
    const sends = first === undefined ? [{ session, event }, ...below] : below
    if (sends.length === 0 || tries > TRIES_MAX) return { ...receiptFields(first), woken: [...told] }
    try {
      const [receipt] = await commitWithRetry({ store, clock }, sends.map(inboxWrite))
      first ??= receipt
      for (const each of sends) told.add(each.session)
    } catch (error) {
      const closed = error instanceof Fault && error.code === 'session_closed' && below.length > 0
      // A child was closed after it was read.
      if (!closed || tries === TRIES_MAX) throw error
    }
  }
}

/** A repeated interrupt stops nothing that began since. The store refuses it if the id was used for something else. */
async function repeatInterrupt(known: InterruptDeps, session: string, event: Interrupt): Promise<InterruptReceipt> {
  const [receipt] = await commitWithRetry(known, [inboxWrite({ session, event })])
  return { ...receiptFields(receipt), woken: [] }
}

function inboxWrite({ session, event }: OutgoingMessage): InboxWrite {
  return { session, lane: 'inbox', events: [event] }
}

function receiptFields(receipt: Receipt | undefined): Omit<InterruptReceipt, 'woken'> {
  return { seq: receipt?.seqs[0] ?? 0, duplicate: receipt?.duplicate ?? false }
}
