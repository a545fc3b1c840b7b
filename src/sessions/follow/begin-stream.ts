// Finds where a stream begins: it sends the input, and computes the position from which the log must be followed.
import type { Session } from '../../kernel/session.ts'
import type { Store } from '../../ports/store.ts'
import { checkCount } from '../../stores/plan/check-count.ts'
import type { StreamOptions } from '../verb-options.ts'

/** The log of a session and the state after its last event, from a store or from a server. */
export type StreamLog = Pick<Store, 'read'> & {
  headOf(id: string): Promise<Pick<Session, 'agent' | 'began' | 'run' | 'parent'>>
}

/**
 * Sends the input and finds the start of its stream: the reader's position, and the seq from which the run must be
 * followed.
 */
export async function beginStream(
  log: StreamLog,
  id: string,
  { after, subagents = true }: StreamOptions,
  send: () => Promise<number | null>,
) {
  const places = typeof after === 'object' && after !== null ? after : null
  for (const place of places === null ? [after ?? 0] : Object.values(places)) checkCount('after', place)
  const input = await send()
  const { agent, began, run, parent } = await log.headOf(id)
  const own = places === null ? (after as number | undefined) : ownPlace(places, id)
  const seen = own ?? (input === null ? 0 : input - 1)
  // An input that joins an open run belongs to that one.
  const joined = run !== null && run.seq < (input ?? 0) ? run.seq - 1 : (input ?? 0) - 1
  const last = Math.min(seen, Math.max(0, input === null ? began - 1 : joined))
  // To know which children worked at a place in an earlier run, the log before it must be read.
  const whole = own !== undefined && subagents && last === own
  const from = whole ? 0 : own === undefined ? last : await findReplyBefore(log, id, last)
  // Read from the beginning, the log itself names the parent.
  return { input, agent, after: seen, from, places, parent: from === 0 ? null : parent }
}

const BEFORE = 200

/**
 * The seq from which a log must be followed so that every event after this place can be shown whole: before the reply
 * whose calls may be open there. An open call always belongs to the last reply.
 */
async function findReplyBefore(log: StreamLog, session: string, place: number): Promise<number> {
  for (let end = place; end > 0; end = Math.max(0, end - BEFORE)) {
    const start = Math.max(0, end - BEFORE)
    const { events } = await log.read(session, start, end - start)
    const last = events.findLast(({ type }) => type === 'agent.message' || type === 'run.settled')
    if (last) return last.type === 'agent.message' ? last.seq - 1 : place
  }
  return place
}

/** The place in this session, out of the places in a tree. */
function ownPlace(places: Readonly<Record<string, number>>, id: string): number | undefined {
  return Object.hasOwn(places, id) ? places[id] : undefined
}
