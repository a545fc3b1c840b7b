// `terret wake`: does what is due in a session, once. With nothing to do it writes nothing.
import type { Harness } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { clientOf } from '../state/far.ts'
import { inPlace, sessionOf, workplaceOf } from '../state/place.ts'
import { lookedText } from '../present/looked.ts'
import { print, printJson, shortId } from '../present/print.ts'
import { setupOf, withHarness } from '../state/work.ts'

export function wake(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const { session, agent } = await sessionOf(place, call.words[0] ?? '')
    const client = clientOf(place.store)
    if (client) return (await import('../remote/driven.ts')).farWake(client.session(session), call)
    const setup = await setupOf(place, await workplaceOf(place, session), call, agent)
    const look = async (harness: Harness): Promise<number> => {
      const looked = await harness.wake(session)
      if (call.is('json')) printJson({ session, ...looked })
      else print(lookedText(shortId(session), looked))
      if (looked.type !== 'rested') return EXIT.conflict
      if (looked.until !== null) return EXIT.later
      return ['approval', 'answer', 'resume'].includes(looked.waiting) ? EXIT.waits : EXIT.ok
    }
    return withHarness(place, setup, call, look, agent)
  })
}
