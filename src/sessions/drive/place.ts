// Steps that the verbs take for a session and its worker: check that the harness is open, wake the session, and act as
// its owner.
import { Fault } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'
import type { Receipt } from '../../ports/store.ts'
import { actAsOwner, type OwnerChanges } from '../../runtime/loop/act-as-owner.ts'
import { mayBeOwn } from '../../runtime/state/program.ts'
import type { RestWaiter, Worker } from '../../runtime/loop/worker.ts'
import { refuseLane } from '../lane-guard.ts'
import { keepStoreOpenFor, type SessionAccess } from '../await-run.ts'

export function checkHarnessOpen({ worker }: { readonly worker: Pick<Worker, 'closed'> }): void {
  if (worker.closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
}

/** The work runs in the background. Callers that wait for it see its error, and the log keeps the state. */
export function wakeSession({ worker, id }: Pick<SessionAccess, 'worker' | 'id'>, session = id): void {
  if (worker.drives) worker.wake(session).catch(() => {})
}

/**
 * Performs an action that only the owner may do, outside of any run. Workers could not look at the session meanwhile,
 * so it is woken afterwards.
 */
export async function runOwnerAction<T>(
  place: SessionAccess,
  act: (session: Session, reader: RestWaiter, epoch: number) => Promise<OwnerChanges<T>>,
): Promise<{ value: T; sent: Receipt | null }> {
  const { id, services, worker } = place
  checkHarnessOpen(place)
  await refuseLane(services, id)
  try {
    return await keepStoreOpenFor(worker, (reader) =>
      actAsOwner(services, id, (session, epoch) => act(session, reader, epoch)),
    )
  } finally {
    const card = await services.store.card(id)
    if (card && card.due !== null && mayBeOwn(services, card)) wakeSession(place)
  }
}
