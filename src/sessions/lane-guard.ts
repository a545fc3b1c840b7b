// Keeps people and programs from acting on lanes: only a consumer's own messages go there, and decisions about its dead
// letters.
import { Fault } from '../kernel/failure.ts'
import type { CompleteStore } from '../ports/store.ts'
import { isLaneAgent, mayBeLane } from '../view/lanes.ts'
import { readDecision } from '../view/letter-decision.ts'
import { parseJson } from '../view/untrusted-json.ts'

/** Throws for a lane, unless `said` decides about a dead letter. */
export async function refuseLane(
  { store }: { readonly store: Pick<CompleteStore, 'card'> },
  id: string,
  said: unknown = null,
): Promise<void> {
  if (!mayBeLane(id) || (typeof said === 'string' && readDecision(parseJson(said)) !== null)) return
  const card = await store.card(id)
  if (card === null || !isLaneAgent(card.agent)) return
  const text = `Session ${id} holds the runs that a consumer is told of. Nobody can write to it, stop, fork or close it.`
  throw new Fault('invalid_input', text)
}
