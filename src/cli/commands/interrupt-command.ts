// `terret interrupt`: stops or pauses a session from any process. The process that drives it sees that at once.
import { type CommandArgs, actorName } from '../args.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { EXIT } from '../exit.ts'
import { withStore, findSession } from '../state/command-context.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { print, printJson, terretCommand } from '../present/print.ts'

export function interruptCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const card = await findSession(place, call.words[0] ?? '')
    const { session } = card
    const mode = call.is('pause') ? 'pause' : 'stop'
    await withoutDriving(place, (harness) =>
      harness.session(session, { stored: true }).interrupt(mode, { by: actorName(call) }),
    )
    if (call.is('json')) printJson({ session, mode })
    else
      print(`Told it to ${mode}. ${drivenElsewhere(place, card) ?? `Go on with: ${terretCommand`resume ${session}`}`}`)
    return EXIT.ok
  })
}
