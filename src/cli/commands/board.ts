// `terret board`: the board and the goal of a session, or a board that several share. `terret tasks`: what works in the background.
// Both are read from the log.
import { boardReplyIn, boardText, goalText, newestFirst, readBoard, tasksIn } from '../../boards/index.ts'
import type { Store } from '../../kernel/index.ts'
import { textOf } from '../../view/text.ts'
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { print, printJson, shortId } from '../present/print.ts'
import { hasStore, readPlace, sessionOf } from '../state/place.ts'

export function board(call: Call): Promise<number> {
  return readPlace(async (place) => {
    const { session } = await sessionOf(place, call.words[0] ?? 'latest')
    const shared = await sharedIn(place.store, session)
    const standing = shared === null ? await readBoard(place.store, session) : { board: shared, goal: null }
    if (call.is('json')) printJson({ session, ...standing })
    else {
      if (standing.goal) print(oneLine(goalText(standing.goal), 2_000))
      for (const line of boardText(standing.board).split('\n')) print(oneLine(line, 2_000))
    }
    return EXIT.ok
  })
}

/** Null for a session that is no board itself. */
async function sharedIn(store: Store, session: string) {
  const [created] = (await store.read(session, 0, 1)).events
  if (created?.type !== 'session.created' || created.planner !== 'board') return null
  for await (const event of newestFirst(store, session)) {
    const reply = event.type === 'agent.message' ? boardReplyIn(textOf(event.parts)) : null
    if (reply?.board) return reply.board
  }
  return null
}

const LIMIT = 20

export async function tasks(call: Call): Promise<number> {
  const limit = call.count('limit') ?? LIMIT
  if (!hasStore()) return EXIT.ok
  return readPlace(async (place) => {
    const [name] = call.words
    const parent = name === undefined ? undefined : (await sessionOf(place, name)).session
    const rows = await tasksIn(place.store, { limit, ...(parent === undefined ? {} : { parent }) })
    for (const row of rows) {
      if (call.is('json')) printJson(row)
      else {
        const what = row.what === '' ? '' : `  ${oneLine(row.what, 60)}`
        print(
          `${shortId(row.id).padEnd(8)}  ${row.status.padEnd(15)}  ${row.kind.padEnd(16)}  ${oneLine(row.agent)}${what}`,
        )
      }
    }
    if (rows.length === 0 && !call.is('json')) print('Nothing was started there.')
    return EXIT.ok
  })
}
