// `terret wake`: does what is due in a session, once. With nothing to do it writes nothing.
import type { Harness } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { inPlace, sessionOf, shortId, workplaceOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'
import { setupOf, withHarness } from '../state/work.ts'

export function wake(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const { session, agent } = await sessionOf(place, call.words[0] ?? '')
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

export function lookedText(
  id: string,
  looked: { readonly type: string; readonly waiting?: string; readonly until?: number | null },
): string {
  if (looked.type === 'contended') return `${id}: another worker drives it.`
  if (looked.type !== 'rested') return `${id}: ${looked.type}.`
  const until = looked.until ? `, until ${new Date(looked.until).toISOString()}` : ''
  return `${id}: rests, waiting for ${looked.waiting ?? 'nothing'}${until}.`
}
