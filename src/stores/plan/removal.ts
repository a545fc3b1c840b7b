// What removing a session takes with it, and when it is refused, decided before anything changes. Pure; every store applies the same.
// It is not how rows go: memory.ts and sqlite/remove.ts do that.
import { Fault } from '../../kernel/failure.ts'
import { type AccountChanges, type Ledger, planCharges } from './charges.ts'
import { checkId, compareIds } from './id.ts'
import { missingSession } from './plan.ts'

/** What must be known of the present. */
export interface Household extends Ledger {
  /** The root of a session that is there. A damaged one is there too. */
  rootOf(session: string): string | null
  /** All sessions with this root. */
  family(root: string): readonly string[]
  /** Where its log ends. */
  endOf(session: string): number | null
  /** A live worker holds its lease. */
  isDriven(session: string): boolean
  /** The sessions that were forked from this one and are there. */
  forksOf(session: string): readonly string[]
}

export type Leaving = {
  /** The one that was named, then its children by id. */
  readonly sessions: readonly string[]
  /** Holds that were still open, settled at all they held: the outcome of their calls is unknown. */
  readonly book: AccountChanges | null
}

/** Where the logs of all that goes must end. */
export type Ends = ReadonlyMap<string, number>

export function planRemoval(session: string, by: string, house: Household, ends?: Ends): Leaving {
  checkId('session id', session)
  checkId('name of who removes it', by)
  const root = house.rootOf(session)
  if (root === null) throw missingSession(session)
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
