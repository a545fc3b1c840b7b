// `terret resume`: goes on with a session wherever it stopped: what is open is driven, a pause ends, and a run that was cut short
// is told to go on.
import type { Card } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { allEvents, foldAll } from '../log.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../place.ts'
import { setupOf, withHarness, work } from '../work.ts'

export function resume(call: Call): Promise<number> {
  const [name = '', ...words] = call.words
  return inPlace(async (place) => {
    const card = await sessionOf(place, name)
    const message = words.join(' ').trim()
    return resumeSession(place, card, call, message)
  })
}

export async function resumeSession(place: Place, card: Card, call: Call, message = ''): Promise<number> {
  const { session: id, status } = card
  if (status === 'terminated')
    throw new Refusal(EXIT.conflict, `Session ${id} is closed. \`terret fork ${id}\` goes on from it.`)
  const setup = await setupOf(place, workplaceOf(place, id), call)
  return withHarness(place, setup, call, async (harness) => {
    const session = harness.session(id)
    if (foldAll(await allEvents(place.store, id)).paused) await session.steer([{ type: 'resume' }])
    const said = message !== '' ? message : wasCutShort(card) ? 'Go on.' : undefined
    return work(call, { harness, setup, session }, (deltas) =>
      session.stream(said, { ...(said ? {} : { after: card.seq }), deltas }),
    )
  })
}

/** It rests, and not because it was done. */
function wasCutShort({ status, outcome, due }: Card): boolean {
  return status === 'idle' && due === null && outcome !== null && outcome !== 'completed'
}
