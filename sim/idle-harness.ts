// A harness over the store and the clock of a simulated process, for verbs alone: the workers of the simulation drive its sessions.
import { Harness, type HarnessOptions } from '../src/harness.ts'
import type { SimProcess } from './process.ts'
import type { Chance } from './scheduler.ts'

export const NEVER = { name: 'never', call: () => Promise.reject(new Error('The harness drives nothing.')) }

/** Its ids come from this chance, so that a seed gives the same ones each time. */
export function buildIdleHarness(
  { store, clock }: SimProcess,
  chance: Chance,
  more: Pick<HarnessOptions, 'subagents' | 'triggers'>,
): Harness {
  const random = { id: () => `h${chance.between(0, 1e9)}`, fraction: () => chance.fraction() }
  return new Harness({
    model: NEVER,
    store,
    system: { clock, random },
    secrets: {},
    worker: { drives: false },
    ...more,
  })
}
