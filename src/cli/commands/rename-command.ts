// `terret rename`: gives a session another title in lists. It drives nothing, and works while another process does.
import { oneLine } from '../../view/clean.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT } from '../exit.ts'
import { print, printJson, shortId } from '../present/print.ts'
import { findSession, withStore } from '../state/command-context.ts'
import { withoutDriving } from '../state/without-driving.ts'

export function renameCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const [given = '', ...words] = call.words
    const { session } = await findSession(place, given)
    const by = actorName(call)
    const renamed = await withoutDriving(place, (sessions) =>
      sessions.session(session, { stored: true }).rename(words.join(' '), { by }),
    )
    if (call.is('json')) printJson({ session, ...renamed })
    else print(`${shortId(session)} is now "${oneLine(renamed.title)}".`)
    return EXIT.ok
  })
}
