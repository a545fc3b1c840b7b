// What the server needs of the program that runs it: sessions, and who may reach which. A harness is enough for one; the command line and
// a server of several folders have their own.
import { Fault } from '../kernel/failure.ts'
import type { Card } from '../ports/store.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import type { Caller } from './caller.ts'
import { shownId } from '../view/clean.ts'
import { rootIdOf } from '../view/ids.ts'

export type ServerOptions = {
  readonly desk: Desk
  /** Registers more on each server, which is an `McpServer` of the bundled `@modelcontextprotocol/server`. */
  readonly more?: (server: object) => void
}

export type Start = { readonly id?: string; readonly agent?: string }

export type Desk = {
  /** Null: there is none, or it is not this caller's to reach. Both look the same to a caller. */
  session(id: string, caller: Caller): Promise<Session | null>
  /** A new session of this caller. One that has this id already is taken as it is. */
  start(start: Start, caller: Caller): Promise<Session>
  /** What waits for people, in reach. */
  pending(caller: Caller): Promise<readonly PendingCall[]>
  /** Newest first, in reach. */
  list(limit: number, caller: Caller): Promise<readonly Pick<Card, 'session' | 'agent' | 'status'>[]>
}

/** All sessions of one harness. `owns` says which of them a caller started who may reach only those; without it, none. */
export function deskOf(sessions: Sessions, owns: (caller: Caller, session: string) => Promise<boolean> = never): Desk {
  const reaches = async (caller: Caller, id: string): Promise<boolean> => {
    if ((await sessions.status(id)) === null) return false
    // A child belongs to whom its root belongs.
    return caller.reach === 'all' || owns(caller, rootIdOf(id))
  }
  const within = async <T>(all: readonly T[], idOf: (one: T) => string, caller: Caller): Promise<readonly T[]> => {
    if (caller.reach === 'all') return all
    const owned = await Promise.all(all.map((one) => owns(caller, rootIdOf(idOf(one)))))
    return all.filter((_, i) => owned[i])
  }
  return {
    session: async (id, caller) => ((await reaches(caller, id)) ? sessions.session(id, { stored: true }) : null),
    start: async (start) => sessions.open({ ...start, ...(start.id === undefined ? {} : { reuse: true }) }),
    pending: async (caller) => within(await sessions.pending(), ({ sessionId }) => sessionId, caller),
    list: async (limit, caller) =>
      within(await sessions.list({ newest: true, limit }), ({ session }) => session, caller),
  }
}

const never = (): Promise<boolean> => Promise.resolve(false)

/** The same words for what is missing and what is out of reach. */
export function missing(id: string): Fault {
  return new Fault(
    'session_missing',
    `There is no session "${shownId(id)}". \`pending\` and the resources name those there are.`,
  )
}
