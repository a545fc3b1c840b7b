// `terret board`: the board and the goal of a session, or a shared board. `terret tasks`: the work in the background.
// Both are read from the log.
import { boardReplyIn, boardText, goalText, newestFirst, readBoard, tasksIn } from '../../boards/index.ts'
import type { CompleteStore } from '../../kernel/index.ts'
import { textOf } from '../../view/shown-text.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { print, printJson, shortId, warn } from '../present/print.ts'
import { describeStart } from '../state/own-folders.ts'
import { cardsHere } from '../state/session-folders.ts'
import { sessionTitle } from './list-command.ts'
import { hasStore, withStoreToRead, findSession } from '../state/command-context.ts'

export function boardCommand(call: CommandArgs): Promise<number> {
  return withStoreToRead(async (place) => {
    const { session } = await findSession(place, call.words[0] ?? 'latest')
    const shared = await findSharedBoard(place.store, session)
    const standing = shared === null ? await readBoard(place.store, session) : { board: shared, goal: null }
    if (call.is('json')) printJson({ session, ...standing })
    else {
      if (standing.goal) print(oneLine(goalText(standing.goal), 2_000))
      for (const line of boardText(standing.board).split('\n')) print(oneLine(line, 2_000))
    }
    return EXIT.ok
  })
}

/** Null for a session that is not a shared board. */
async function findSharedBoard(store: CompleteStore, session: string) {
  const [created] = (await store.read(session, 0, 1)).events
  if (created?.type !== 'session.created' || created.planner !== 'board') return null
  for await (const event of newestFirst(store, session)) {
    const reply = event.type === 'agent.message' ? boardReplyIn(textOf(event.parts)) : null
    if (reply?.board) return reply.board
  }
  return null
}

const LIMIT = 20

export async function tasksCommand(call: CommandArgs): Promise<number> {
  const limit = call.count('limit') ?? LIMIT
  const [name] = call.words
  if (!hasStore() && name === undefined) return reportNothingStarted(call)
  return withStoreToRead(async (place) => {
    const { store } = place
    const parent = name === undefined ? undefined : (await findSession(place, name)).session
    const of = parent === undefined ? {} : { parent }
    const everywhere = parent !== undefined || call.is('all')
    const list = async () =>
      everywhere ? (await store.page({ order: 'newest', limit, ...of })).cards : cardsHere(place, { limit })
    const found = await tasksIn({ list, read: store.read.bind(store) }, { limit, ...of })
    for (const task of found) {
      const row = { ...task, what: task.what || (await taskTitle(store, task.id)) }
      if (call.is('json')) printJson(row)
      else {
        const what = row.what === '' ? '' : `  ${oneLine(row.what, 60)}`
        print(
          `${shortId(row.id).padEnd(8)}  ${row.status.padEnd(15)}  ${row.kind.padEnd(16)}  ${oneLine(row.agent)}${what}`,
        )
      }
    }
    return found.length === 0 ? reportNothingStarted(call) : EXIT.ok
  })
}

/** The title of a session that a person started. */
async function taskTitle(store: CompleteStore, id: string): Promise<string> {
  const card = await store.card(id)
  return card === null ? '' : sessionTitle(store, card)
}

function reportNothingStarted(call: CommandArgs): number {
  const [name] = call.words
  if (call.is('json')) return EXIT.ok
  if (name === undefined) warn(`Nothing was started in this folder yet. ${describeStart('a session')}`)
  else warn('It has started nothing, and no call of it runs.')
  return EXIT.ok
}
