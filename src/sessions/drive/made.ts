// Creates a session under an id. If several callers ask for the same, one creates it and the others find it. Any other
// use of the id is refused.
import { isDeepStrictEqual } from 'node:util'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { commitWithRetry } from '../../runtime/state/store-retry.ts'
import { type SessionBeginning, newSessionWrite } from '../../runtime/loop/act-as-owner.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { checkRootId } from '../../stores/plan/store-ids.ts'

/** Creates the session, or finds an existing one for which `isSame` accepts the first event. */
export async function createOnce(
  services: Services,
  id: string,
  beginning: SessionBeginning,
  isSame: (created: Event | undefined) => boolean = sameBeginning(services, id, beginning),
): Promise<void> {
  checkRootId(id)
  await services.store.open()
  try {
    await commitWithRetry(services, [newSessionWrite(services, id, beginning)])
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_exists') throw error
    await checkSameRequest(services, id, isSame)
  }
}

/** Throws unless the session was created by the same request. */
export async function checkSameRequest(
  { store }: Services,
  id: string,
  isSame: (created: Event | undefined) => boolean,
): Promise<void> {
  const [created] = (await store.read(id, 0, 1)).events
  if (isSame(created)) return
  const text = `There is a session ${id} already, and it was made with other options. Choose another id, or take that one with harness.session(id).`
  throw new Fault('id_reused', text)
}

/** Whether the session began as this one would. */
function sameBeginning(
  services: Services,
  id: string,
  beginning: SessionBeginning,
): (created: Event | undefined) => boolean {
  return (created) => {
    const write = newSessionWrite(services, id, beginning)
    const [wanted] = 'history' in write ? write.history : write.events
    return (
      created !== undefined &&
      wanted !== undefined &&
      isDeepStrictEqual(comparableBody(created), comparableBody(wanted))
    )
  }
}

/** The event as it would stand in a log, for comparison. */
function comparableBody(event: Event): unknown {
  // Sessions of older versions do not name a program.
  const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = { ...event, program: undefined }
  return JSON.parse(JSON.stringify(body))
}
