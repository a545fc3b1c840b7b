// The folder in which a session works. Its card has it. Sessions from before cards had folders, and sessions whose path
// holds a secret, are in a side file beside the database, one line per session. A line without a session is harmless.
import { randomUUID } from 'node:crypto'
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Card, CompleteStore } from '../../kernel/index.ts'
import type { Home } from './cli-home.ts'
import { fileErrorCode, hasErrorCode } from './plain-file.ts'
import { EXIT, CliError } from '../exit.ts'
import { cardMatchesSearch } from '../../stores/plan/log-facts.ts'
import { rootIdOf } from '../../view/ids.ts'

/** The label of the copy in which a chat asks aside. Such a copy is no session that a person goes on with. */
export const SIDE_LABEL = 'aside'

type FolderStore = { readonly home: Home; readonly store: CompleteStore }

export type SessionFolder = { readonly session: string; readonly folder: string }

export function recordFolder({ folders }: Home, started: SessionFolder): void {
  try {
    // One append per line, because several processes may write at once. An unfinished last line is ended first.
    appendFileSync(folders, `\n${JSON.stringify(started)}`, { mode: 0o600, flush: true })
  } catch (error) {
    throw new CliError(EXIT.store, `${folders} cannot be written (${fileErrorCode(error)}). Make it writable.`)
  }
}

/** In the order of their starts. */
export function readSessionFolders({ folders }: Pick<Home, 'folders'>): readonly SessionFolder[] {
  return readOrEmpty(folders).split('\n').flatMap(parseFolderLine)
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return ''
    throw new CliError(EXIT.store, `${file} cannot be read (${fileErrorCode(error)}). Make it readable.`)
  }
}

/**
 * Removes the lines of removed sessions. Each line is overwritten in place, because other processes may append at the
 * same time.
 */
export function forgetFolders({ folders }: Pick<Home, 'folders'>, sessions: ReadonlySet<string>): void {
  if (!readSessionFolders({ folders }).some(({ session }) => sessions.has(session))) return
  const file = openSync(folders, 'r+')
  try {
    const bytes = readFileSync(file)
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(NEWLINE, from)
      const to = end === -1 ? bytes.length : end
      const [started] = parseFolderLine(bytes.toString('utf8', from, to))
      if (started && sessions.has(started.session)) writeSync(file, Buffer.alloc(to - from, ' '), 0, to - from, from)
      from = to + 1
    }
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const NEWLINE = 0x0a

function parseFolderLine(line: string): readonly SessionFolder[] {
  if (line.trim() === '') return []
  try {
    const { session, folder } = JSON.parse(line) as Partial<SessionFolder>
    return typeof session === 'string' && typeof folder === 'string' ? [{ session, folder }] : []
  } catch {
    return []
  }
}

/**
 * Starts a session that works in this folder. A path that holds a secret is kept in the side file instead of the log.
 */
export async function startSessionIn<T>(
  { home, store }: FolderStore,
  folder: string,
  start: (as: { readonly id: string; readonly folder: string }) => Promise<T>,
  id: string = randomUUID(),
): Promise<T> {
  const started = await start({ id, folder })
  if ((await store.card(id))?.folder === undefined) recordFolder(home, { session: id, folder })
  return started
}

/** The sessions of this folder, the newest first. Sessions of the side file are older than the others. */
export async function cardsInFolder(
  { home, folder, store }: FolderStore & { readonly folder: string },
  { status, q, limit = Number.MAX_SAFE_INTEGER }: FolderCardFilter = {},
): Promise<readonly Card[]> {
  const given = { ...(status ? { status } : {}), ...(q === undefined ? {} : { q }) }
  const cards = [...(await store.page({ folder, order: 'made', limit, ...given })).cards]
  for (const [session, where] of [...recordedFolders(home)].reverse()) {
    if (cards.length >= limit) break
    const card = where === folder ? await store.card(session) : null
    const wanted = card && card.folder === undefined && (status ?? card.status) === card.status
    if (wanted && cardMatchesSearch(card, q ?? '')) cards.push(card)
  }
  return cards
}

/** The folders in the side file, by session. The last line of a session counts. */
export function recordedFolders(home: Pick<Home, 'folders'>): ReadonlyMap<string, string> {
  return new Map(readSessionFolders(home).map(({ session, folder }) => [session, folder]))
}

type FolderCardFilter = { readonly status?: Card['status'] | undefined; readonly q?: string; readonly limit?: number }

export async function sessionIdsIn(place: FolderStore & { readonly folder: string }): Promise<ReadonlySet<string>> {
  return new Set((await cardsInFolder(place)).map(({ session }) => session))
}

/** A child works in the folder of its root session. */
export async function folderOf({ home, store }: FolderStore, session: string): Promise<string | null> {
  const root = rootIdOf(session)
  const { folder } = (await store.card(root)) ?? {}
  return folder ?? recordedFolders(home).get(root) ?? null
}

/** Where `terret demo` works, below the folder it is run in. */
export const DEMO = {
  folder: 'terret-demo',
  data: join('terret-demo', 'data'),
  reports: join('terret-demo', 'reports'),
}

/** The sessions of this folder. If there are none, those of the demo that was run here. */
export async function cardsHere(
  place: Parameters<typeof cardsInFolder>[0],
  wanted: FolderCardFilter = {},
): Promise<readonly Card[]> {
  const cards = await cardsInFolder(place, wanted)
  if (cards.length > 0) return cards
  const above = basename(place.folder) === DEMO.folder ? dirname(place.folder) : place.folder
  const reports = join(above, DEMO.reports)
  return existsSync(reports) ? cardsInFolder({ ...place, folder: reports }, wanted) : cards
}
