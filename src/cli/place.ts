// The user's data folder, opened: its store, and sessions by the short names people type. A command opens one place and closes
// it at its end.
import { existsSync } from 'node:fs'
import type { Card, Store } from '../kernel/index.ts'
import { EXIT, Refusal } from './exit.ts'
import { folderOf, startedSessions } from './folders.ts'
import { type Home, homeOf, makeHome, realFolder } from './home.ts'

export type Place = { readonly home: Home; readonly folder: string; readonly store: Store }

/** Opens the store, acts and closes it again, whatever happens. */
export async function inPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  const home = homeOf()
  const folder = realFolder(process.cwd())
  makeHome(home)
  const { sqlite } = await import('../index.ts')
  const store = sqlite(home.database)
  try {
    return await act({ home, folder, store })
  } finally {
    await store.close()
  }
}

/** Whether there is anything to look at. */
export function hasStore(home: Home = homeOf()): boolean {
  return existsSync(home.database)
}

/** The session that a whole id, the unique beginning of one, or `latest` means. */
export async function sessionOf(place: Place, name: string): Promise<Card> {
  if (name === 'latest') return latestOf(place)
  if (name.trim() === '') throw new Refusal(EXIT.usage, 'The id of a session must not be empty.')
  const exact = await place.store.card(name)
  if (exact) return exact
  const found = await beginningWith(place.store, name)
  const [card] = found
  if (card && found.length === 1) return card
  if (!card)
    throw new Refusal(EXIT.missing, `There is no session "${name}". \`terret list --all\` shows those there are.`)
  const some = found.slice(0, 3).map(({ session }) => session)
  throw new Refusal(EXIT.missing, `"${name}" could mean several sessions: ${some.join(', ')}… Give more of the id.`)
}

const PAGE = 100

/** At most a few; children count for nothing here, as they begin with the id of their root. */
async function beginningWith(store: Store, start: string): Promise<readonly Card[]> {
  const found: Card[] = []
  for (let after = start; ; ) {
    const cards = await store.list({ after, limit: PAGE })
    const alike = cards.filter(({ session }) => session.startsWith(start))
    found.push(...alike.filter(({ session }) => !session.includes('~') || start.includes('~')))
    const last = cards.at(-1)
    if (found.length > 3 || last === undefined || alike.length < cards.length || cards.length < PAGE) return found
    after = last.session
  }
}

/** The session of this folder that was started last. */
async function latestOf({ home, folder, store }: Place): Promise<Card> {
  for (const started of startedSessions(home).toReversed()) {
    const card = started.folder === folder ? await store.card(started.session) : null
    if (card) return card
  }
  throw new Refusal(EXIT.missing, 'There is no session of this folder yet. `terret run TASK` starts one.')
}

/** Where a session works: where it was started, whoever goes on with it. */
export function workplaceOf({ home }: Place, session: string): string {
  const folder = folderOf(home, session)
  if (folder === null)
    throw new Refusal(EXIT.config, `Session ${session} was not started by this command, so its folder is not known.`)
  return realFolder(folder)
}

/** Short enough to type. Ids that are not ours stay whole. */
export function shortId(session: string): string {
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(session) ? session.slice(0, 8) : session
}

/**
 * A store that lets nobody drive: what is said to a session through it is on disk, and nothing is begun here. Whoever writes as
 * the owner for a moment still may. Otherwise a command that only records a decision would start the call and end with it.
 */
export function onlooking(store: Store): Store {
  const claim: Store['claim'] = (session, worker, ttlMs) =>
    worker.startsWith('owner-') ? store.claim(session, worker, ttlMs) : Promise.resolve(null)
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'claim') return claim
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
