// `terret fork`: a new session that goes on from an event of another, which stays unchanged. Open calls are asked about again.
import { type CommandArgs, actorName } from '../args.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { EXIT } from '../exit.ts'
import { folderOf, startSessionIn } from '../state/session-folders.ts'
import { readAllEvents, foldAll } from '../state/read-log.ts'
import { withStore, ownerFields, findSession } from '../state/command-context.ts'
import { drivenElsewhere } from '../state/own-program.ts'
import { print, printJson, terretCommand } from '../present/print.ts'
import { isWorkflowAgent } from '../state/workflow-agents.ts'
import { shownId } from '../../view/clean.ts'

export function forkCommand(call: CommandArgs): Promise<number> {
  const at = call.count('at')
  return withStore(async (place) => {
    const card = await findSession(place, call.words[0] ?? '')
    const { session, agent } = card
    const folder = (await folderOf(place, session)) ?? place.folder
    const upTo = at === undefined ? {} : { at }
    // A person who forks a session of another program does so on purpose, so the agent of this folder continues it.
    const elsewhere = drivenElsewhere(place, card)
    const by = elsewhere === null ? {} : { agent }
    const own = ownerFields(place, card, actorName(call))
    const { id } = await startSessionIn(place, folder, (as) => {
      return withoutDriving(
        place,
        (harness) => harness.session(session, { stored: true }).fork({ ...as, ...upTo, ...own, ...by }),
        {
          agent,
          folder,
        },
      )
    })
    const again = foldAll(await readAllEvents(place.store, id)).run?.turn?.open.length ?? 0
    if (call.is('json')) printJson({ session: id, from: session, at: at ?? null, open: again })
    else if (again > 0)
      print(
        shownId(id),
        `${again === 1 ? 'A call was' : `${again} calls were`} open there: it is asked about again here. Go on with: ${terretCommand`resume ${id}`}`,
      )
    else {
      const way = isWorkflowAgent(agent)
        ? terretCommand`resume ${id}`
        : terretCommand`run --continue --session ${id} TASK`
      print(shownId(id), `Go on with: ${way}`)
    }
    return EXIT.ok
  })
}
