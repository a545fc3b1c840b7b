// Making a session under an id: of several that ask for the same, one makes it and the others find it. Another use of the id is refused.
import { isDeepStrictEqual } from 'node:util'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { commit } from '../../engine/again.ts'
import { type Beginning, creation } from '../../engine/owner.ts'
import type { Services } from '../../engine/wiring.ts'
import { checkRootId } from '../../stores/plan/id.ts'

/** Makes the session, or finds one for which `isSame` says that the same was asked. */
export async function made(
  services: Services,
  id: string,
  beginning: Beginning,
  isSame: (created: Event | undefined) => boolean = asBegun(services, id, beginning),
): Promise<void> {
  checkRootId(id)
  await services.store.open()
  try {
    await commit(services, [creation(services, id, beginning)])
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_exists') throw error
    await checkSame(services, id, isSame)
  }
}

/** Refused unless the session was made by the same request. */
export async function checkSame(
  { store }: Services,
  id: string,
  isSame: (created: Event | undefined) => boolean,
): Promise<void> {
  const [created] = (await store.read(id, 0, 1)).events
  if (isSame(created)) return
  const text = `There is a session ${id} already, and it was made with other options. Choose another id, or take that one with harness.session(id).`
  throw new Fault('id_reused', text)
}

/** It began as this one would. */
function asBegun(services: Services, id: string, beginning: Beginning): (created: Event | undefined) => boolean {
  return (created) => {
    const write = creation(services, id, beginning)
    const [wanted] = 'history' in write ? write.history : write.events
    return created !== undefined && wanted !== undefined && isDeepStrictEqual(bodyOf(created), bodyOf(wanted))
  }
}

/** As it would stand in a log. */
function bodyOf(event: Event): unknown {
  // Sessions of older versions name no program.
  const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = { ...event, program: undefined }
  return JSON.parse(JSON.stringify(body))
}
