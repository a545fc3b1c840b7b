// `terret pending`: the calls that wait for a person, each with its exact action and the command that decides it.
import type { Call } from '../args.ts'
import { pendingLines, wayLine } from '../present/ending.ts'
import { EXIT } from '../exit.ts'
import { folderOf, sessionsIn } from '../state/folders.ts'
import { heldIn, heldLines } from '../present/held.ts'
import { pendingIn, rootsThatWait } from '../state/log.ts'
import { hasStore, readPlace, type Place, sessionOf } from '../state/place.ts'
import { print, printJson, seatOf, warn } from '../present/print.ts'

export async function pending(call: Call): Promise<number> {
  const [name] = call.words
  if (!hasStore() && name === undefined) return nothing(call)
  return readPlace(async (place) => {
    const roots = name === undefined ? await waiting(place, call.is('all')) : [(await sessionOf(place, name)).root]
    const found = (await Promise.all(roots.map((root) => pendingIn(place.store, root)))).flat()
    const held = (await Promise.all(roots.map((root) => heldIn(place.store, root)))).filter((each) => each !== null)
    if (found.length + held.length === 0) return nothing(call)
    const seat = seatOf(process.stdout, call.is('whole'))
    for (const each of held) {
      if (call.is('json')) printJson(each)
      else print(...(await heldLines(each, { folder: await folderOf(place, each.session), ...seat })))
    }
    for (const each of found) {
      if (call.is('json')) printJson(each)
      else {
        const folder = await folderOf(place, each.path[0] ?? each.sessionId)
        print(...(await pendingLines(each, { folder, ...seat })), wayLine(each))
      }
    }
    return EXIT.ok
  })
}

function nothing(call: Call): number {
  if (!call.is('json')) warn('Nothing waits for you here.')
  return EXIT.ok
}

/** The roots of all sessions that wait: of this folder, or of all. A server elsewhere does not know this folder: there it is all. */
async function waiting(place: Place, all: boolean): Promise<readonly string[]> {
  const here = all || place.at === null ? null : await sessionsIn(place)
  return (await rootsThatWait(place.store)).filter((root) => here === null || here.has(root))
}
