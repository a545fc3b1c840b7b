// `terret board`: the board and the goal of a session, or a board that several share. `terret tasks`: what works in the background.
// Both are read from the log.
import { boardReplyIn, boardText, goalText, newestFirst, readBoard, tasksIn } from '../../boards/index.ts'
import type { Store } from '../../kernel/index.ts'
import { textOf } from '../../view/text.ts'
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { print, printJson, shortId, warn } from '../present/print.ts'
import { describeStart } from '../state/own-folders.ts'
import { cardsHere } from '../state/folders.ts'
import { titleOf } from './list.ts'
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
  const [name] = call.words
  if (!hasStore() && name === undefined) return nothingStarted(call)
  return readPlace(async (place) => {
    const { store } = place
    const parent = name === undefined ? undefined : (await sessionOf(place, name)).session
    const here = { list: () => cardsHere(place, { limit }), read: store.read.bind(store) }
    const of = parent === undefined ? {} : { parent }
    const found = await tasksIn(parent !== undefined || call.is('all') ? store : here, { limit, ...of })
    for (const task of found) {
      const row = { ...task, what: task.what || (await whatOf(store, task.id)) }
      if (call.is('json')) printJson(row)
      else {
        const what = row.what === '' ? '' : `  ${oneLine(row.what, 60)}`
        print(
          `${shortId(row.id).padEnd(8)}  ${row.status.padEnd(15)}  ${row.kind.padEnd(16)}  ${oneLine(row.agent)}${what}`,
        )
      }
    }
    return found.length === 0 ? nothingStarted(call) : EXIT.ok
  })
}

/** The title of a session that a person started. */
async function whatOf(store: Store, id: string): Promise<string> {
  const card = await store.card(id)
  return card === null ? '' : titleOf(store, card)
}

function nothingStarted(call: Call): number {
  const [name] = call.words
  if (call.is('json')) return EXIT.ok
  if (name === undefined) warn(`Nothing was started in this folder yet. ${describeStart('a session')}`)
  else warn('It has started nothing, and no call of it runs.')
  return EXIT.ok
}
