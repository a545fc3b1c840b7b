// A session as its log meant it after an earlier event: the fold that the kernel decides from, as plain JSON. It reads the store and
// drives nothing.
import type { Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { FOLD_VERSION, type Session } from '../../kernel/session.ts'
import type { Store } from '../../ports/store.ts'
import { cloneJson } from '../../effects/clone-json.ts'
import { stateAt } from '../../engine/state-at.ts'
import { shown } from '../../options.ts'
import { missingSession } from '../../stores/plan/plan.ts'

/** `seq` is the last event in it; `version` is that of the fold: another version of terret may fold the same log otherwise. */
export type FoldedState = Frozen<{ seq: number; version: number; session: Session }>

/** After the event `at`, or after the last one where the log is shorter. */
export async function foldedAt(store: Store, id: string, at: number): Promise<FoldedState> {
  if (!(Number.isSafeInteger(at) && at >= 0))
    throw new Fault('invalid_input', `A state is asked for by the seq of an event, not ${shown(at)}.`)
  const card = await store.card(id)
  if (card === null) throw missingSession(id)
  const session = await stateAt(store, id, Math.min(at, card.seq))
  return { seq: session.seq, version: FOLD_VERSION, session: cloneJson(session) }
}
