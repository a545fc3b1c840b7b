// In which folder a session works. Its card says it. Of sessions from before cards did, and of those whose path holds a secret, it is in
// a side file beside the database, one line per session; a line without a session is harmless.
import { randomUUID } from 'node:crypto'
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Card, Store } from '../../kernel/index.ts'
import type { Home } from './home.ts'
import { codeOf, isErrno } from './plain-file.ts'
import { EXIT, Refusal } from '../exit.ts'
import { isFound } from '../../stores/plan/facts.ts'
import { rootIdOf } from '../../view/ids.ts'

type Kept = { readonly home: Home; readonly store: Store }

export type Started = { readonly session: string; readonly folder: string }

export function recordFolder({ folders }: Home, started: Started): void {
  try {
    // One append per line, since several processes may write at once. An unfinished last line is ended first.
    appendFileSync(folders, `\n${JSON.stringify(started)}`, { mode: 0o600, flush: true })
  } catch (error) {
    throw new Refusal(EXIT.store, `${folders} cannot be written (${codeOf(error)}). Make it writable.`)
  }
}

/** In the order they were started. */
export function startedSessions({ folders }: Pick<Home, 'folders'>): readonly Started[] {
  return fileText(folders).split('\n').flatMap(startedIn)
}

function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return ''
    throw new Refusal(EXIT.store, `${file} cannot be read (${codeOf(error)}). Make it readable.`)
  }
}

/**
 * Removes the lines of removed sessions. Each is overwritten in place, since other processes may append at the same time.
 */
export function forgetFolders({ folders }: Pick<Home, 'folders'>, sessions: ReadonlySet<string>): void {
  if (!startedSessions({ folders }).some(({ session }) => sessions.has(session))) return
  const file = openSync(folders, 'r+')
  try {
    const bytes = readFileSync(file)
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(NEWLINE, from)
      const to = end === -1 ? bytes.length : end
      const [started] = startedIn(bytes.toString('utf8', from, to))
      if (started && sessions.has(started.session)) writeSync(file, Buffer.alloc(to - from, ' '), 0, to - from, from)
      from = to + 1
    }
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const NEWLINE = 0x0a

function startedIn(line: string): readonly Started[] {
  if (line.trim() === '') return []
  try {
    const { session, folder } = JSON.parse(line) as Partial<Started>
    return typeof session === 'string' && typeof folder === 'string' ? [{ session, folder }] : []
  } catch {
    return []
  }
}

/** Starts a session that works in this folder. A path that holds a secret is not in the log: it is kept in the side file. */
export async function startIn<T>(
  { home, store }: Kept,
  folder: string,
  start: (as: { readonly id: string; readonly folder: string }) => Promise<T>,
  id: string = randomUUID(),
): Promise<T> {
  const started = await start({ id, folder })
  if ((await store.card(id))?.folder === undefined) recordFolder(home, { session: id, folder })
  return started
}

/** The sessions of this folder, the last that was started first. Those of the side file are from before the others. */
export async function cardsIn(
  { home, folder, store }: Kept & { readonly folder: string },
  { status, q, limit = Number.MAX_SAFE_INTEGER }: Wanted = {},
): Promise<readonly Card[]> {
  const given = { ...(status ? { status } : {}), ...(q === undefined ? {} : { q }) }
  const cards = [...(await store.page({ folder, order: 'made', limit, ...given })).cards]
  for (const [session, where] of [...notedFolders(home)].reverse()) {
    if (cards.length >= limit) break
    const card = where === folder ? await store.card(session) : null
    const wanted = card && card.folder === undefined && (status ?? card.status) === card.status
    if (wanted && isFound(card, q ?? '')) cards.push(card)
  }
  return cards
}

/** By session: what the side file says. Its last line counts. */
export function notedFolders(home: Pick<Home, 'folders'>): ReadonlyMap<string, string> {
  return new Map(startedSessions(home).map(({ session, folder }) => [session, folder]))
}

type Wanted = { readonly status?: Card['status'] | undefined; readonly q?: string; readonly limit?: number }

export async function sessionsIn(place: Kept & { readonly folder: string }): Promise<ReadonlySet<string>> {
  return new Set((await cardsIn(place)).map(({ session }) => session))
}

/** A child works in the folder of its root session. */
export async function folderOf({ home, store }: Kept, session: string): Promise<string | null> {
  const root = rootIdOf(session)
  const { folder } = (await store.card(root)) ?? {}
  return folder ?? notedFolders(home).get(root) ?? null
}

/** Where `terret demo` works, below the folder it is run in. */
export const DEMO = {
  folder: 'terret-demo',
  data: join('terret-demo', 'data'),
  reports: join('terret-demo', 'reports'),
}

/** The sessions of this folder. Where there are none, those of the demo that was run here. */
export async function cardsHere(place: Parameters<typeof cardsIn>[0], wanted: Wanted = {}): Promise<readonly Card[]> {
  const cards = await cardsIn(place, wanted)
  if (cards.length > 0) return cards
  const above = basename(place.folder) === DEMO.folder ? dirname(place.folder) : place.folder
  const reports = join(above, DEMO.reports)
  return existsSync(reports) ? cardsIn({ ...place, folder: reports }, wanted) : cards
}
