// The context of a command: the open store, the data folder and the working folder, and sessions by the short ids
// people type. A command opens one context and closes it at its end.
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Card, CompleteStore } from '../../kernel/index.ts'
import { clean, shownId } from '../../view/clean.ts'
import { FULL_BYTES, diskTrouble } from './disk-space.ts'
import { EXIT, CliError } from '../exit.ts'
import { remoteClient, remoteServer } from './remote-server.ts'
import { cardsHere, folderOf } from './session-folders.ts'
import { readGraderId } from '../../view/pursuits.ts'
import { type Home, findHome, makeHome, realFolder, unusableHome } from './cli-home.ts'
import { describeStart } from './own-folders.ts'
import { hasErrorCode } from './plain-file.ts'
import { workspaceFolder } from './workspace.ts'
import { checkDrivenHere } from './own-program.ts'
import { warn, terretCommand } from '../present/print.ts'
import type { PostgresDatabase } from '../../stores/postgres/postgres.ts'
import {
  describeAccept,
  databaseGone,
  saveSeenMark,
  saveStoreId,
  readSeenMark,
  whyStoreDiffers,
} from './store-fingerprint.ts'
import {
  type FileLocation,
  homeWithStore,
  openDatabase,
  openStoreFile,
  findStore,
  type StoreLocation,
} from './store-location.ts'
import { isChildId } from '../../view/ids.ts'

/** `at`: the location of the store. Null: the store of a remote server. */
export type CommandContext = {
  readonly home: Home
  readonly folder: string
  readonly store: CompleteStore
  readonly at: StoreLocation | null
}

/** For commands that only read: `withStore`, but a replaced database is only a warning. */
export function withStoreToRead<T>(act: (place: CommandContext) => Promise<T>): Promise<T> {
  return withStore(act, true)
}

/** Opens the store, acts and always closes it. Refuses to write to a database that was replaced or rolled back. */
export async function withStore<T>(act: (place: CommandContext) => Promise<T>, reads = false): Promise<T> {
  const folder = workspaceFolder()
  const far = remoteServer()
  if (far)
    return act({
      home: findHome(),
      folder,
      at: null,
      store: await (await import('../remote/remote-store.ts')).openRemoteStore(far),
    })
  const { home, at } = locateStore()
  prepareHome(home, reads)
  if (at.type === 'file') return withStoreFile(at, { home, folder }, reads, act)
  const store = await openDatabase(at)
  try {
    // An unreachable database is reported before anything else is done.
    await openKnownStore(store)
    await saveStoreId(home, at, store)
    refuseOrWarn(await store.moved(), reads)
    return await act({ home, folder, at, store })
  } finally {
    await store.close()
  }
}

/** Refuses a store that is gone or was replaced by another one. */
async function openKnownStore(store: PostgresDatabase): Promise<void> {
  await store.open().catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'store_replaced')
      throw new CliError(EXIT.store, `${error.message} ${describeAccept()}`)
    throw error
  })
}

/** The data folder and the store of this command line. */
export function locateStore(): { readonly home: Home; readonly at: StoreLocation } {
  const home = findHome()
  const at = findStore(home)
  return { home: homeWithStore(home, at), at }
}

/** The file may have been replaced, rolled back or moved since it was last seen. */
async function withStoreFile<T>(
  at: FileLocation,
  { home, folder }: Pick<CommandContext, 'home' | 'folder'>,
  reads: boolean,
  act: (place: CommandContext) => Promise<T>,
): Promise<T> {
  const there = hasStoreFile(home)
  const seen = there ? readSeenMark(home) : null
  const store = await openStoreFile(at)
  try {
    const wrong = (seen && (await whyStoreDiffers(store, seen))) ?? (there ? await store.moved() : null)
    refuseOrWarn(wrong, reads)
    if (reads && there) warnOfFullDisk(home)
    try {
      return await act({ home, folder, at, store })
    } finally {
      // The fingerprint protects later commands, so failing to save it must not fail this one.
      if (!reads && existsSync(home.database)) await saveSeenMark(home, store).catch(() => {})
    }
  } finally {
    await store.close()
  }
}

export function warnOfFullDisk({ database }: Home): void {
  const full = diskTrouble(dirname(database), FULL_BYTES)
  if (full !== null) warn(clean(full))
}

/** A wrong store is refused; for a command that only reads it is a warning. */
function refuseOrWarn(wrong: string | null, reads: boolean): void {
  if (wrong && !reads) throw new CliError(EXIT.store, wrong)
  if (wrong) warn(clean(wrong))
}

/** Creates the data folder. A command that only reads also works if the folder is read-only. */
export function prepareHome(home: Home, reads: boolean): void {
  try {
    makeHome(home)
  } catch (error) {
    if (!reads || !existsSync(home.database)) throw error
  }
}

/**
 * Whether a store exists. An unreadable home, or one that lost its database, is an error and does not count as empty.
 */
export function hasStore(): boolean {
  if (remoteServer()) return true
  const { home, at } = locateStore()
  return at.type === 'postgres' || hasStoreFile(home)
}

export function hasStoreFile(home: Home): boolean {
  try {
    statSync(home.database)
    return true
  } catch (error) {
    if (!hasErrorCode(error, 'ENOENT')) throw unusableHome(home, error)
    if (readSeenMark(home) !== null) throw databaseGone(home)
    return false
  }
}

/** Finds the session with this id or unique prefix of an id, or the newest one for `latest`. */
export async function findSession(place: CommandContext, name: string): Promise<Card> {
  if (name === 'latest') return findLatest(place)
  if (name.trim() === '')
    throw new CliError(EXIT.usage, `The session id is empty. \`${terretCommand`list`}\` shows the sessions.`)
  const exact = await place.store.card(name)
  if (exact) {
    const others = isShortId(name) ? await findByPrefix(place.store, `${name.slice(0, 8)}-`) : []
    if (others.length === 0) return exact
    throw severalSessions(name, [exact, ...others])
  }
  const below = await findChild(place, name)
  if (below) return below
  const found = await findByPrefix(place.store, name)
  const [card] = found
  if (card && found.length === 1) return card
  if (card) throw severalSessions(name, found)
  const text = `There is no session "${shownId(name)}". \`${terretCommand`list --all`}\` shows those there are.`
  throw new CliError(EXIT.missing, text)
}

function severalSessions(name: string, found: readonly Card[]): CliError {
  const some = found.slice(0, 3).map(({ session }) => shownId(session))
  const text = `"${shownId(name)}" could mean several sessions: ${some.join(', ')}… Give more of the id.`
  return new CliError(EXIT.missing, text)
}

/**
 * True if the name has the form of a short id, which printed commands use for a session or its child. If it is also the
 * full id of another session, the name is ambiguous and refused: otherwise the wrong session could be decided.
 */
function isShortId(name: string): boolean {
  return /^[0-9a-f]{8}(?:~|$)/.test(name)
}

/** Finds a child by a short id of its root and its name below it: `1a2b3c4d~3.0`. */
async function findChild(place: CommandContext, name: string): Promise<Card | null> {
  const at = name.indexOf('~')
  if (at < 1) return null
  const [root, ...others] = await findByPrefix(place.store, name.slice(0, at))
  return root && others.length === 0 ? place.store.card(`${root.session}${name.slice(at)}`) : null
}

const PAGE = 100

/** Finds a few sessions at most. Children do not count, because their ids begin with the id of their root. */
async function findByPrefix(store: CompleteStore, start: string): Promise<readonly Card[]> {
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

/** The session of this folder that was started last. Those that grade rounds of an outcome were started by no person. */
async function findLatest(place: CommandContext): Promise<Card> {
  for (let limit = 1; ; limit *= 8) {
    const cards = await cardsHere(place, { limit })
    const card = cards.find(({ session }) => readGraderId(session) === null)
    if (card) return card
    if (cards.length < limit)
      throw new CliError(EXIT.missing, `There is no session of this folder yet. ${describeStart()}`)
  }
}

/** The folder in which a session works, which is where it was started. Refused for a session of another program. */
export async function workingFolder(place: CommandContext, session: string): Promise<string> {
  await checkDrivenHere(place, session)
  const folder = await folderOf(place, session)
  if (folder === null)
    throw new CliError(
      EXIT.config,
      `Session ${shownId(session)} was not started by this command, so its folder is unknown. Run it with the program that started it.`,
    )
  return realFolder(folder)
}

/** The folder of a session (null: unknown), and whether it is on this machine. */
export async function findFolderHere(place: CommandContext, session: string): Promise<FolderHere> {
  const folder = await folderOf(place, session)
  if (folder === null) return { folder, isHere: false }
  const isHere = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false
  return isHere ? { folder: realFolder(folder), isHere } : { folder, isHere }
}

type FolderHere =
  | { readonly folder: string; readonly isHere: true }
  | { readonly folder: string | null; readonly isHere: false }

type OwnerFields = { readonly labels?: { readonly owner: string }; readonly metadata?: { readonly owner: string } }

/** A fork of a session that has an owner belongs to the person who makes it. A server sets that by itself. */
export function ownerFields({ store }: CommandContext, card: Pick<Card, 'labels'> | null, by: string): OwnerFields {
  if (card?.labels?.['owner'] === undefined || remoteClient(store)) return {}
  const owner = { owner: by }
  return { labels: owner, metadata: owner }
}
