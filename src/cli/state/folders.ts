// The folder each session was started in: one line per session, in a file beside the database. The line is written before the session,
// so every session has one; a line without a session is harmless. The database stays the truth: `list --all` also shows sessions
// without a line.
import { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Home } from './home.ts'
import { codeOf, isErrno } from './plain-file.ts'
import { EXIT, Refusal } from '../exit.ts'

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

/** The folders of these sessions. */
export function foldersOf({ folders }: Home, sessions: ReadonlySet<string>): ReadonlyMap<string, string> {
  const lines = fileText(folders).split('\n')
  // The id is between the third and fourth quote, unless it contains quotes. Only wanted lines are parsed.
  const odd = [...sessions].some((session) => JSON.stringify(session) !== `"${session}"`)
  const known = lines.filter((line) => odd || sessions.has(line.split('"', 4)[3] ?? '')).flatMap(startedIn)
  return new Map(known.map(({ session, folder }) => [session, folder]))
}

/** A child works in the folder of its root session. */
export function folderOf(home: Home, session: string): string | null {
  const [root = session] = session.split('~')
  return startedSessions(home).findLast((each) => each.session === root)?.folder ?? null
}
