// `terret fork`: a new session that goes on from an event of another, which stays unchanged. Open calls are asked about again.
import { type Call, person } from '../args.ts'
import { aside } from '../state/without-driving.ts'
import { EXIT } from '../exit.ts'
import { folderOf, startIn } from '../state/folders.ts'
import { allEvents, foldAll } from '../state/log.ts'
import { inPlace, ownedBy, sessionOf } from '../state/place.ts'
import { drivenElsewhere } from '../state/program.ts'
import { print, printJson, typed } from '../present/print.ts'
import { isPlanned } from '../state/workflows.ts'
import { shownId } from '../../view/clean.ts'

export function fork(call: Call): Promise<number> {
  const at = call.count('at')
  return inPlace(async (place) => {
    const card = await sessionOf(place, call.words[0] ?? '')
    const { session, agent } = card
    const folder = (await folderOf(place, session)) ?? place.folder
    const upTo = at === undefined ? {} : { at }
    // A person forks it here on purpose: the agent of this folder goes on with it.
    const elsewhere = drivenElsewhere(place, card)
    const by = elsewhere === null ? {} : { agent }
    const own = ownedBy(place, card, person(call))
    const { id } = await startIn(place, folder, (as) => {
      return aside(
        place,
        (harness) => harness.session(session, { stored: true }).fork({ ...as, ...upTo, ...own, ...by }),
        {
          agent,
          folder,
        },
      )
    })
    const again = foldAll(await allEvents(place.store, id)).run?.turn?.open.length ?? 0
    if (call.is('json')) printJson({ session: id, from: session, at: at ?? null, open: again })
    else if (again > 0)
      print(
        shownId(id),
        `${again === 1 ? 'A call was' : `${again} calls were`} open there: it is asked about again here. Go on with: ${typed`resume ${id}`}`,
      )
    else {
      const way = isPlanned(agent) ? typed`resume ${id}` : typed`run --continue --session ${id} TASK`
      print(shownId(id), `Go on with: ${way}`)
    }
    return EXIT.ok
  })
}
