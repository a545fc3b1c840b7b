// `terret interrupt`: stops or pauses a session from any process. The process that drives it sees it at once.
import { type Call, person } from '../args.ts'
import { aside } from '../state/without-driving.ts'
import { EXIT } from '../exit.ts'
import { inPlace, sessionOf } from '../state/place.ts'
import { drivenElsewhere } from '../state/program.ts'
import { print, printJson, typed } from '../present/print.ts'

export function interrupt(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const card = await sessionOf(place, call.words[0] ?? '')
    const { session } = card
    const mode = call.is('pause') ? 'pause' : 'stop'
    await aside(place, (harness) => harness.session(session, { stored: true }).interrupt(mode, { by: person(call) }))
    if (call.is('json')) printJson({ session, mode })
    else print(`Told it to ${mode}. ${drivenElsewhere(place, card) ?? `Go on with: ${typed`resume ${session}`}`}`)
    return EXIT.ok
  })
}
