// In which folder each session was started: one line a session, in a file beside the database. A line is written before its
// session is made, so no session is without one; a line whose session never came to be harms nobody. Sessions are not here: the
// database is the truth, and a session without a line is shown by `list --all`.
import { appendFileSync, readFileSync } from 'node:fs'
import type { Home } from './home.ts'
import { codeOf } from './plain-file.ts'
import { EXIT, Refusal } from './exit.ts'

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
export function startedSessions({ folders }: Home): readonly Started[] {
  let text: string
  try {
    text = readFileSync(folders, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap(startedIn)
}

function startedIn(line: string): readonly Started[] {
  if (line === '') return []
  try {
    const { session, folder } = JSON.parse(line) as Partial<Started>
    return typeof session === 'string' && typeof folder === 'string' ? [{ session, folder }] : []
  } catch {
    return []
  }
}

/** A child works where the session at the top works. */
export function folderOf(home: Home, session: string): string | null {
  const [root = session] = session.split('~')
  return startedSessions(home).findLast((each) => each.session === root)?.folder ?? null
}
