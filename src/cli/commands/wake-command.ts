// `terret wake`: does the due work of a session, once. If nothing is due, it writes nothing. With a time it schedules.
import type { Harness } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { remoteClient } from '../state/remote-server.ts'
import { withStore, findSession, workingFolder } from '../state/command-context.ts'
import { lookText } from '../present/look-text.ts'
import { print, printJson, shortId } from '../present/print.ts'
import { readCommandSetup, withHarness } from '../state/drive-session.ts'
import { asksForSchedule, scheduleCommand } from './schedule-command.ts'

export function wakeCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const { session, agent } = await findSession(place, call.words[0] ?? '')
    if (asksForSchedule(call)) return scheduleCommand(place, session, call)
    const client = remoteClient(place.store)
    if (client) return (await import('../remote/remote-run.ts')).wakeRemotely(client, session, call)
    const setup = await readCommandSetup(place, await workingFolder(place, session), call, { agent })
    const look = async (harness: Harness): Promise<number> => {
      const looked = await harness.work({ session })
      if (call.is('json')) printJson({ session, ...looked })
      else print(lookText(shortId(session), looked))
      if (looked.type !== 'rested') return EXIT.conflict
      if (looked.until !== null) return EXIT.later
      return ['approval', 'answer', 'resume'].includes(looked.waiting) ? EXIT.waits : EXIT.ok
    }
    return withHarness(place, setup, call, look, agent)
  })
}
