// Makes the triggers of a harness from the options of a host: a graph for each source, and the way in.
import { acceptTrigger } from './accept-trigger.ts'
import { MinuteSlots } from './source-caps.ts'
import { checkTriggers, completeSource, type TriggersOptions } from './source-options.ts'
import type { Triggers } from './trigger-definition.ts'
import { triggerGraph } from './trigger-graph.ts'

/** For `triggers` of a harness: events from outside become sessions that a triage without tools decides about. */
export function createTriggers(options: TriggersOptions): Triggers {
  checkTriggers(options)
  const sources = new Map(
    Object.entries(options.sources).map(([name, own]) => [name, completeSource(name, own, options)]),
  )
  const slots = new MinuteSlots()
  return {
    sources: [...sources.keys()],
    graphs: [...sources.values()].map(triggerGraph),
    accept: (place, envelope) => acceptTrigger({ ...place, sources, slots }, envelope),
  }
}
