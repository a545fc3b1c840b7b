// The state of a session after an earlier event: the fold from which the kernel decides, as plain JSON. It reads the
// store and drives nothing.
import type { Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { FOLD_VERSION, type Session } from '../../kernel/session.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { cloneJson } from '../../runtime/state/clone-json.ts'
import { stateAt } from '../../runtime/state/session-at.ts'
import { describeValue } from '../../options.ts'
import { sessionMissingFault } from '../../stores/plan/plan-writes.ts'

/** The state of a session after one of its events. */
export type FoldedState = Frozen<{
  /** The last event in it. */
  seq: number
  /** The version of the fold. Another version of terret may fold the same log differently. */
  version: number
  /** The state as the kernel decides from it, as plain JSON. */
  session: Session
}>

/** The state after the event `at`, or after the last event if the log is shorter. */
export async function readFoldedState(store: CompleteStore, id: string, at: number): Promise<FoldedState> {
  if (!(Number.isSafeInteger(at) && at >= 0))
    throw new Fault('invalid_input', `A state is asked for by the seq of an event, not ${describeValue(at)}.`)
  const card = await store.card(id)
  if (card === null) throw sessionMissingFault(id)
  const session = await stateAt(store, id, Math.min(at, card.seq))
  return { seq: session.seq, version: FOLD_VERSION, session: cloneJson(session) }
}
