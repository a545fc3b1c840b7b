// The user's data folder, opened: its store, and sessions by the short names people type. A command opens one place and closes
// it at its end.
import { existsSync, statSync } from 'node:fs'
import type { Card, Store } from '../../kernel/index.ts'
import type { SqliteFile } from '../../stores/sqlite/sqlite.ts'
import { clean } from '../present/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { folderOf, startedSessions } from './folders.ts'
import { type Home, homeOf, makeHome, realFolder, unusable } from './home.ts'
import { isErrno } from './plain-file.ts'
import { warn } from '../present/print.ts'
import { gone, keepSeen, seenIn, unlike } from './store-fingerprint.ts'

export type Place = { readonly home: Home; readonly folder: string; readonly store: SqliteFile }

/** Opens the store, acts and closes it again, whatever happens. A database that is not the one it was is not written to. */
export function inPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  return within(act, false)
}

/** The same for who changes no session: then it is worth a warning. */
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
      // It guards what comes later: it must not change how this command ends.
      if (!reads && existsSync(home.database)) await keepSeen(home, store).catch(() => {})
    }
  } finally {
    await store.close()
  }
}

/** What can only be read is read. */
export function makeReadable(home: Home, reads: boolean): void {
  try {
    makeHome(home)
  } catch (error) {
    if (!reads || !existsSync(home.database)) throw error
  }
}

/** Whether there is anything to look at. A home that cannot be looked into, or has lost it, is not an empty one. */
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
