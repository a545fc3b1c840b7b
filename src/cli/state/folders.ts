// In which folder each session was started: one line a session, in a file beside the database. A line is written before its
// session is made, so no session is without one; a line whose session never came to be harms nobody. Sessions are not here: the
// database is the truth, and a session without a line is shown by `list --all`.
import { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { Home } from './home.ts'
import { codeOf, isErrno } from './plain-file.ts'
import { EXIT, Refusal } from '../exit.ts'

export type Started = { readonly session: string; readonly folder: string }

export function recordFolder({ folders }: Home, started: Started): void {
  try {
    // One write at the end of the file: several processes may do this at once. A line that was cut short is ended first.
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
 * Takes out the lines of sessions that were removed. Each is overwritten where it stands, and nothing is moved: others may add
 * lines at the same time.
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

/** The folders of these, from a file that may have many more. */
export function foldersOf({ folders }: Home, sessions: ReadonlySet<string>): ReadonlyMap<string, string> {
  const lines = fileText(folders).split('\n')
  // An id stands between the third and the fourth quote, if it has no quote of its own. Only lines that are asked for are parsed.
  const odd = [...sessions].some((session) => JSON.stringify(session) !== `"${session}"`)
  const known = lines.filter((line) => odd || sessions.has(line.split('"', 4)[3] ?? '')).flatMap(startedIn)
  return new Map(known.map(({ session, folder }) => [session, folder]))
}

/** A child works where the session at the top works. */
export function folderOf(home: Home, session: string): string | null {
  const [root = session] = session.split('~')
  return startedSessions(home).findLast((each) => each.session === root)?.folder ?? null
}
