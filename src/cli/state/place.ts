// The opened data folder: its store, and sessions by the short ids people type. A command opens one place and closes it at its end.
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Card, Store } from '../../kernel/index.ts'
import { clean, shownId } from '../../view/clean.ts'
import { FULL_BYTES, roomTrouble } from './disk.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clientOf, farNamed } from './far.ts'
import { cardsHere, folderOf } from './folders.ts'
import { type Home, homeOf, makeHome, realFolder, unusable } from './home.ts'
import { describeStart } from './own-folders.ts'
import { isErrno } from './plain-file.ts'
import { checkDrivenHere } from './program.ts'
import { warn, typed } from '../present/print.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import { describeAccept, gone, keepSeen, keepSeenDatabase, seenIn, unlike } from './store-fingerprint.ts'
import { type FilePlace, homeWith, openDatabase, openFile, storeIn, type StorePlace } from './store-place.ts'
import { isChildId } from '../../view/ids.ts'

/** `at`: which store it is. Null: that of a server. */
export type Place = {
  readonly home: Home
  readonly folder: string
  readonly store: Store
  readonly at: StorePlace | null
}

/** Opens the store, acts and always closes it. Refuses to write to a database that was replaced or rolled back. */
export function inPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  return within(act, false)
}

/** The same for commands that only read: a replaced database is a warning. */
export function readPlace<T>(act: (place: Place) => Promise<T>): Promise<T> {
  return within(act, true)
}

async function within<T>(act: (place: Place) => Promise<T>, reads: boolean): Promise<T> {
  const folder = realFolder(process.cwd())
  const far = farNamed()
  if (far)
    return act({ home: homeOf(), folder, at: null, store: await (await import('../remote/store.ts')).farStore(far) })
  const { home, at } = placed()
  makeReadable(home, reads)
  if (at.type === 'file') return withFile(at, { home, folder }, reads, act)
  const store = await openDatabase(at)
  try {
    // What cannot be reached is said before anything else is done.
    await openKnown(store)
    await keepSeenDatabase(home, at, store)
    refuseWrong(await store.moved(), reads)
    return await act({ home, folder, at, store })
  } finally {
    await store.close()
  }
}

/** A store that is gone, or is another one than before, is refused. */
async function openKnown(store: PostgresDatabase): Promise<void> {
  await store.open().catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'store_replaced')
      throw new Refusal(EXIT.store, `${error.message} ${describeAccept()}`)
    throw error
  })
}

/** The data folder and the store of this command line. */
export function placed(): { readonly home: Home; readonly at: StorePlace } {
  const home = homeOf()
  const at = storeIn(home)
  return { home: homeWith(home, at), at }
}

/** A file may have been replaced, rolled back or moved since it was seen last. */
async function withFile<T>(
  at: FilePlace,
  { home, folder }: Pick<Place, 'home' | 'folder'>,
  reads: boolean,
  act: (place: Place) => Promise<T>,
): Promise<T> {
  const there = hasFile(home)
  const seen = there ? seenIn(home) : null
  const store = await openFile(at)
  try {
    const wrong = (seen && (await unlike(store, seen))) ?? (there ? await store.moved() : null)
    refuseWrong(wrong, reads)
    if (reads && there) warnOfFullDisk(home)
    try {
      return await act({ home, folder, at, store })
    } finally {
      // The fingerprint protects later commands; its failure must not fail this one.
      if (!reads && existsSync(home.database)) await keepSeen(home, store).catch(() => {})
    }
  } finally {
    await store.close()
  }
}

export function warnOfFullDisk({ database }: Home): void {
  const full = roomTrouble(dirname(database), FULL_BYTES)
  if (full !== null) warn(clean(full))
}

/** What only reads is warned. */
function refuseWrong(wrong: string | null, reads: boolean): void {
  if (wrong && !reads) throw new Refusal(EXIT.store, wrong)
  if (wrong) warn(clean(wrong))
}

/** Falls back to reading a read-only file. */
export function makeReadable(home: Home, reads: boolean): void {
  try {
    makeHome(home)
  } catch (error) {
    if (!reads || !existsSync(home.database)) throw error
  }
}

/** Whether a store exists. An unreadable home, or one that lost its database, does not count as empty. */
export function hasStore(): boolean {
  if (farNamed()) return true
  const { home, at } = placed()
  return at.type === 'postgres' || hasFile(home)
}

export function hasFile(home: Home): boolean {
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
  if (name.trim() === '')
    throw new Refusal(EXIT.usage, `The session id is empty. \`${typed`list`}\` shows the sessions.`)
  const exact = await place.store.card(name)
  if (exact) {
    const others = isShort(name) ? await beginningWith(place.store, `${name.slice(0, 8)}-`) : []
    if (others.length === 0) return exact
    throw severalSessions(name, [exact, ...others])
  }
  const below = await childOf(place, name)
  if (below) return below
  const found = await beginningWith(place.store, name)
  const [card] = found
  if (card && found.length === 1) return card
  if (card) throw severalSessions(name, found)
  const text = `There is no session "${shownId(name)}". \`${typed`list --all`}\` shows those there are.`
  throw new Refusal(EXIT.missing, text)
}

function severalSessions(name: string, found: readonly Card[]): Refusal {
  const some = found.slice(0, 3).map(({ session }) => shownId(session))
  const text = `"${shownId(name)}" could mean several sessions: ${some.join(', ')}… Give more of the id.`
  return new Refusal(EXIT.missing, text)
}

/**
 * Whether it has the form of a short id, by which printed commands name a session or its child. If it is also the whole id of another
 * session, neither is chosen: one would be decided on in the place of the other.
 */
function isShort(name: string): boolean {
  return /^[0-9a-f]{8}(?:~|$)/.test(name)
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
    found.push(...alike.filter(({ session }) => !isChildId(session) || start.includes('~')))
    const last = cards.at(-1)
    if (found.length > 3 || last === undefined || alike.length < cards.length || cards.length < PAGE) return found
    after = last.session
  }
}

/** The session of this folder that was started last. */
async function latestOf(place: Place): Promise<Card> {
  const [card] = await cardsHere(place, { limit: 1 })
  if (card) return card
  throw new Refusal(EXIT.missing, `There is no session of this folder yet. ${describeStart()}`)
}

/** The folder a session works in: where it was started. Refused for a session of another program. */
export async function workplaceOf(place: Place, session: string): Promise<string> {
  await checkDrivenHere(place, session)
  const folder = await folderOf(place, session)
  if (folder === null)
    throw new Refusal(
      EXIT.config,
      `Session ${shownId(session)} was not started by this command, so its folder is unknown. Run it with the program that started it.`,
    )
  return realFolder(folder)
}

/** The folder of a session (null: unknown), and whether it is on this machine. */
export async function folderHere(place: Place, session: string): Promise<FolderHere> {
  const folder = await folderOf(place, session)
  if (folder === null) return { folder, isHere: false }
  const isHere = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false
  return isHere ? { folder: realFolder(folder), isHere } : { folder, isHere }
}

type FolderHere =
  | { readonly folder: string; readonly isHere: true }
  | { readonly folder: string | null; readonly isHere: false }

type Owned = { readonly labels?: { readonly owner: string }; readonly metadata?: { readonly owner: string } }

/** For a fork of a session that has an owner: it belongs to the person who makes it. A server sets that by itself. */
export function ownedBy({ store }: Place, card: Pick<Card, 'labels'> | null, by: string): Owned {
  if (card?.labels?.['owner'] === undefined || clientOf(store)) return {}
  const owner = { owner: by }
  return { labels: owner, metadata: owner }
}
