// `terret pending`: the calls that wait for a person, each with its exact action and the command that decides it.
import type { CommandArgs } from '../args.ts'
import { pendingLines, decideHint } from '../present/result-output.ts'
import { EXIT } from '../exit.ts'
import { folderOf } from '../state/session-folders.ts'
import { readHeldSession, heldLines } from '../present/held-session.ts'
import { readPending, waitingRoots } from '../state/read-log.ts'
import { hasStore, withStoreToRead, findSession } from '../state/command-context.ts'
import { print, printJson, outputStyle, warn } from '../present/print.ts'

export async function pendingCommand(call: CommandArgs): Promise<number> {
  const [name] = call.words
  if (!hasStore() && name === undefined) return reportNothing(call)
  return withStoreToRead(async (place) => {
    const roots =
      name === undefined ? await waitingRoots(place, call.is('all')) : [(await findSession(place, name)).root]
    const found = (await Promise.all(roots.map((root) => readPending(place.store, root)))).flat()
    const held = (await Promise.all(roots.map((root) => readHeldSession(place.store, root)))).filter(
      (each) => each !== null,
    )
    if (found.length + held.length === 0) return reportNothing(call)
    const seat = outputStyle(process.stdout, call.is('whole'))
    for (const each of held) {
      if (call.is('json')) printJson(each)
      else print(...(await heldLines(each, { folder: await folderOf(place, each.session), ...seat })))
    }
    for (const each of found) {
      if (call.is('json')) printJson(each)
      else {
        const folder = await folderOf(place, each.path[0] ?? each.sessionId)
        print(...(await pendingLines(each, { folder, ...seat })), decideHint(each))
      }
    }
    return EXIT.ok
  })
}

function reportNothing(call: CommandArgs): number {
  if (!call.is('json')) warn('Nothing waits for you here.')
  return EXIT.ok
}
