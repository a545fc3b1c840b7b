// The opened data folder: its store, and sessions by the short ids people type. A command opens one place and closes it at its end.
import { existsSync, statSync } from 'node:fs'
import type { Card, Store } from '../../kernel/index.ts'
import type { SqliteFile } from '../../stores/sqlite/sqlite.ts'
import { clean } from '../present/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { cardsIn, folderOf } from './folders.ts'
import { type Home, homeOf, makeHome, realFolder, unusable } from './home.ts'
import { isErrno } from './plain-file.ts'
import { warn } from '../present/print.ts'
import { gone, keepSeen, seenIn, unlike } from './store-fingerprint.ts'

export type Place = { readonly home: Home; readonly folder: string; readonly store: SqliteFile }

/** Opens the store, acts and always closes it. Refuses to write to a database that was replaced or rolled back. */
export function inPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  return within(act, false)
}

/** The same for commands that only read: a replaced database is a warning. */
export function readPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  return within(act, true)
}

async function within<T>(act: (place: Place) => Promise<T>, reads: boolean): Promise<T> {
  const home = homeOf()
  const folder = realFolder(process.cwd())
  makeReadable(home, reads)
  const seen = hasStore(home) ? seenIn(home) : null
  // Not from the index: a command that only reads loads no harness.
  const { sqlite } = await import('../../stores/sqlite/sqlite.ts')
  const store = sqlite(home.database)
  try {
    const wrong = seen && (await unlike(store, seen))
    if (wrong && !reads) throw new Refusal(EXIT.store, wrong)
    if (wrong) warn(clean(wrong))
    try {
      return await act({ home, folder, store })
    } finally {
      // The fingerprint protects later commands; its failure must not fail this one.
      if (!reads && existsSync(home.database)) await keepSeen(home, store).catch(() => {})
    }
  } finally {
    await store.close()
  }
}

/** Falls back to reading a read-only file. */
export function makeReadable(home: Home, reads: boolean): void {
  try {
    makeHome(home)
  } catch (error) {
    if (!reads || !existsSync(home.database)) throw error
  }
}

/** Whether a database exists. An unreadable home, or one that lost its database, does not count as empty. */
export function hasStore(home: Home = homeOf()): boolean {
  try {
    statSync(home.database)
    return true
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw unusable(home, error)
    if (seenIn(home) !== null) throw gone(home)
    return false
  }
}

/** The session with this id, this unique prefix of an id, or the newest for `latest`. */
export async function sessionOf(place: Place, name: string): Promise<Card> {
  if (name === 'latest') return latestOf(place)
  if (name.trim() === '') throw new Refusal(EXIT.usage, 'The session id is empty. `terret list` shows the sessions.')
  const exact = await place.store.card(name)
  if (exact) return exact
  const below = await childOf(place, name)
  if (below) return below
  const found = await beginningWith(place.store, name)
  const [card] = found
  if (card && found.length === 1) return card
  if (!card)
    throw new Refusal(EXIT.missing, `There is no session "${name}". \`terret list --all\` shows those there are.`)
  const some = found.slice(0, 3).map(({ session }) => session)
  throw new Refusal(EXIT.missing, `"${name}" could mean several sessions: ${some.join(', ')}… Give more of the id.`)
}

/** A child by a short id of its root and its name below it: `1a2b3c4d~3.0`. */
async function childOf(place: Place, name: string): Promise<Card | null> {
  const at = name.indexOf('~')
  if (at < 1) return null
  const [root, ...others] = await beginningWith(place.store, name.slice(0, at))
  return root && others.length === 0 ? place.store.card(`${root.session}${name.slice(at)}`) : null
}

const PAGE = 100

/** A few at most. Children do not count, as their ids begin with the id of their root. */
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
async function latestOf(place: Place): Promise<Card> {
  const [card] = await cardsIn(place, { limit: 1 })
  if (card) return card
  throw new Refusal(EXIT.missing, 'There is no session of this folder yet. `terret run TASK` starts one.')
}

/** The folder a session works in: where it was started. */
export async function workplaceOf(place: Place, session: string): Promise<string> {
  const folder = await folderOf(place, session)
  if (folder === null)
    throw new Refusal(
      EXIT.config,
      `Session ${session} was not started by this command, so its folder is unknown. Run it with the program that started it.`,
    )
  return realFolder(folder)
}

/** A short id to type. Ids of another form stay whole. */
export function shortId(session: string): string {
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(session) ? session.slice(0, 8) : session
}
