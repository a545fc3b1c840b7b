// A session and the worker that drives it, as the verbs use them: whether the harness is open, waking, and acting as the owner.
import { Fault } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'
import type { Receipt } from '../../ports/store.ts'
import { asOwner, type Owned } from '../../engine/owner.ts'
import { maybeOwn } from '../../engine/program.ts'
import type { Reader, Worker } from '../../engine/worker.ts'
import { attended, type Place } from '../await-run.ts'

export function checkOpen({ worker }: { readonly worker: Pick<Worker, 'closed'> }): void {
  if (worker.closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
}

/** The work goes on in the background; callers that wait for it see its error, and the log keeps the state. */
export function kick({ worker, id }: Pick<Place, 'worker' | 'id'>, session = id): void {
  if (worker.drives) worker.wake(session).catch(() => {})
}

/** What only the owner may do, outside of any run. Looks that were asked for meanwhile could not happen, so one is made after it. */
export async function owned<T>(
  place: Place,
  act: (session: Session, reader: Reader, epoch: number) => Promise<Owned<T>>,
): Promise<{ value: T; sent: Receipt | null }> {
  const { id, services, worker } = place
  checkOpen(place)
  try {
    return await attended(worker, (reader) => asOwner(services, id, (session, epoch) => act(session, reader, epoch)))
  } finally {
    const card = await services.store.card(id)
    if (card && card.due !== null && maybeOwn(services, card)) kick(place)
  }
}
