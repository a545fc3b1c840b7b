// The interface that the MCP server needs: sessions, and which caller reaches which. `deskOf` makes one from a harness.
// The command line and a server of several folders have their own.
import { Fault } from '../kernel/failure.ts'
import type { Card } from '../ports/store.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session, Sessions } from '../sessions/verbs.ts'
import type { Caller } from './caller.ts'
import { shownId } from '../view/clean.ts'
import { rootIdOf } from '../view/ids.ts'

/** Options of an MCP server: the host of its sessions, and what you add to it. */
export type ServerOptions = {
  /** The sessions that the tools work on, with what the caller may do. */
  readonly desk: McpSessionHost
  /** Registers more on each server, an `McpServer` of the bundled `@modelcontextprotocol/server`. */
  readonly more?: (server: object) => void
}

/** How a session is started. */
export type Start = {
  /** The id of the session: an existing one under it is returned. Absent: a new one. */
  readonly id?: string
  /** The agent of the session. Absent: the host's own. */
  readonly agent?: string
}

/** The verbs that an MCP server offers to its clients, and to whom. */
export type McpSessionHost = {
  /** Null if the session does not exist or the caller may not reach it. The caller cannot tell the two apart. */
  session(id: string, caller: Caller): Promise<Session | null>
  /** Opens a session for this caller, or returns the session that already has the id. */
  start(start: Start, caller: Caller): Promise<Session>
  /** The pending calls that the caller may reach. */
  pending(caller: Caller): Promise<readonly PendingCall[]>
  /** The sessions that the caller may reach, newest first. */
  list(limit: number, caller: Caller): Promise<readonly Pick<Card, 'session' | 'agent' | 'status'>[]>
}

/**
 * Serves all sessions of one harness. `owns` tells which sessions belong to a caller with the reach `own`; without it,
 * none do.
 */
export function deskOf(
  sessions: Sessions,
  owns: (caller: Caller, session: string) => Promise<boolean> = ownsNone,
): McpSessionHost {
  const reaches = async (caller: Caller, id: string): Promise<boolean> => {
    const { events, damaged } = await sessions.session(id, { stored: true }).events({ limit: 1 })
    if (events.length === 0 && !damaged) return false
    // A child has the owner of its root.
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
      within((await sessions.list({ order: 'newest', limit })).cards, ({ session }) => session, caller),
  }
}

const ownsNone = (): Promise<boolean> => Promise.resolve(false)

/** A missing session and one out of reach get the same text. */
export function missingSessionFault(id: string): Fault {
  return new Fault(
    'session_missing',
    `There is no session "${shownId(id)}". \`pending\` and the resources name those there are.`,
  )
}
