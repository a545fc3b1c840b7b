// Plans the removal of a session: what goes with it, and when it is refused, decided before anything changes. Pure;
// every store applies the same plan. Removing the rows is the stores' own (memory-store.ts, sqlite/drop-session.ts).
import { Fault } from '../../kernel/failure.ts'
import { type AccountChanges, type AccountBook, planCharges } from './plan-charges.ts'
import { checkId, compareIds } from './store-ids.ts'
import { sessionMissingFault } from './plan-writes.ts'

/** The present state that the plan needs. */
export interface RemovalView extends AccountBook {
  /** The root of an existing session, also of a damaged one. */
  rootOf(session: string): string | null
  /** All sessions with this root. */
  family(root: string): readonly string[]
  /** The last seq of its log. */
  endOf(session: string): number | null
  /** True if a living worker holds its lease. */
  isDriven(session: string): boolean
  /** The existing sessions that were forked from this one. */
  forksOf(session: string): readonly string[]
}

/** What a store has to take out so that a session is gone with its children, and what its accounts are then. */
export type RemovalPlan = {
  /** The named session first, then its children by id. */
  readonly sessions: readonly string[]
  /** The holds that were still open, settled at their full amount, because the outcome of their calls is unknown. */
  readonly book: AccountChanges | null
}

/** The expected last seq of each removed log. */
export type ExpectedEnds = ReadonlyMap<string, number>

/** Plans the removal of a session with its children, or throws the fault that says why it cannot be removed now. */
export function planRemoval(session: string, by: string, house: RemovalView, ends?: ExpectedEnds): RemovalPlan {
  checkId('session id', session)
  checkId('name of who removes it', by)
  const root = house.rootOf(session)
  if (root === null) throw sessionMissingFault(session)
  if (root !== session && house.rootOf(root) !== null) {
    const text = `Session ${session} is a part of session ${root}. Remove that one, with all its parts.`
    throw new Fault('invalid_input', text)
  }
  const children = house.family(session).filter((id) => id !== session)
  const sessions = [session, ...children.sort(compareIds)]
  const leaving = new Set(sessions)
  let book: AccountChanges | null = null
  for (const id of sessions) {
    if (ends && house.endOf(id) !== ends.get(id))
      throw new Fault('conflict', `Session ${id} has grown since it was looked at. Nothing was removed.`)
    if (house.isDriven(id)) {
      throw new Fault('session_busy', `Session ${id} is being driven. Interrupt it, or try again when it rests.`)
    }
    const fork = house.forksOf(id).find((other) => !leaving.has(other))
    if (fork !== undefined)
      throw new Fault(
        'conflict',
        `Session ${fork} was forked from session ${id} and reads its log. Remove that one first.`,
      )
    for (const [key, { amount }] of house.holdsOf(id))
      book = planCharges(book, house, id, [{ type: 'settle', key, amount, assumed: true }])
  }
  return { sessions, book }
}
