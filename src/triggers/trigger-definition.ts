// Triggers as a harness sees them: the graphs that decide about events from outside, and the way in. The harness loads
// this file alone; create-triggers.ts makes the object, and only a host that wants triggers imports it.
import type { Graph } from '../graphs/graph-definition.ts'
import { Fault } from '../kernel/failure.ts'
import type { Check } from '../options.ts'
import type { SessionAccess } from '../sessions/await-run.ts'
import type { TriggerEnvelope, TriggerReceipt } from '../sessions/trigger-envelope.ts'

/** What `createTriggers` of `terret/triggers` makes. */
export type Triggers = {
  /** The names of the sources. */
  readonly sources: readonly string[]
  /** One graph for each source. */
  readonly graphs: readonly Graph[]
  /** Writes the session and its message in one commit. */
  readonly accept: (place: TriggerPlace, envelope: TriggerEnvelope) => Promise<TriggerReceipt>
}
export type TriggerPlace = Pick<SessionAccess, 'services' | 'worker'>

export const triggersCheck: Check = (value) => {
  const { sources, graphs, accept } = (value ?? {}) as Partial<Triggers>
  if (Array.isArray(sources) && Array.isArray(graphs) && typeof accept === 'function') return null
  return 'is no set of triggers: make it with createTriggers(…) of terret/triggers'
}

/** The label of a session that names its source. */
export const TRIGGER_LABEL = 'trigger'

const places = new WeakMap<object, TriggerPlace>()

/** A harness with triggers leaves here what `deadTriggers` needs. */
export function registerTriggers(harness: object, place: TriggerPlace): void {
  places.set(harness, place)
}

export function triggerPlaceOf(harness: object): TriggerPlace {
  const place = places.get(harness)
  if (place) return place
  throw new Fault('invalid_config', 'This is no harness of this process that has triggers. Give one with triggers.')
}
