// A harness over the store and the clock of a simulated process, for verbs alone: the workers of the simulation drive its sessions.
import { Harness, type HarnessOptions } from '../src/harness.ts'
import { Fault } from '../src/kernel/failure.ts'
import type { Stage } from './people.ts'
import type { SimProcess } from './process.ts'
import { deskOf, OTHER, programOf } from './programs.ts'
import type { Chance } from './scheduler.ts'

export const NEVER = { name: 'never', call: () => Promise.reject(new Error('The harness drives nothing.')) }

/** Its ids come from this chance, so that a seed gives the same ones each time. */
export function buildIdleHarness(
  { name, store, clock }: SimProcess,
  chance: Chance,
  more: Pick<HarnessOptions, 'subagents' | 'triggers' | 'budget'>,
): Harness {
  const random = { id: () => `${deskOf(name)}${chance.between(0, 1e9)}`, fraction: () => chance.fraction() }
  return new Harness({
    model: NEVER,
    store,
    system: { clock, random },
    secrets: {},
    worker: { drives: false },
    ...(programOf(name) === OTHER ? { program: OTHER } : {}),
    ...more,
  })
}

/** What passes by itself, or with the next try. */
const PASSES = new Set([
  'disk_full',
  'store_busy',
  'io_error',
  'session_busy',
  'lease_lost',
  'harness_closed',
  'session_elsewhere',
])
/** A process that died never answers. */
const PATIENCE_MS = 300

/** The harnesses of all processes, where people ask for things until one of them answers. */
export class Desks {
  readonly #stage: Stage
  readonly #desks: { readonly process: SimProcess; readonly harness: Harness }[] = []

  constructor(stage: Stage) {
    this.#stage = stage
  }

  add(process: SimProcess, more: Pick<HarnessOptions, 'subagents' | 'budget'>): void {
    this.#desks.push({ process, harness: buildIdleHarness(process, this.#stage.actor.chance, more) })
  }

  /** The answer, or the refusal that no second try would change. Null when the seed is over. */
  async ask<T>(
    act: (harness: Harness) => Promise<T>,
  ): Promise<{ readonly answer: T } | { readonly refused: string } | null> {
    const { actor, over } = this.#stage
    while (!over()) {
      const alive = this.#desks.filter(({ process }) => process.alive)
      if (alive.length > 0) {
        const { harness } = actor.chance.pick(alive)
        const asked = await Promise.race([
          act(harness).then((answer) => ({ answer }), refusalOf),
          actor.sleep(PATIENCE_MS).then(() => null),
        ])
        if (asked !== null && !('refused' in asked && PASSES.has(asked.refused))) return asked
      }
      await actor.sleep(actor.chance.between(5, 40))
    }
    return null
  }
}

function refusalOf(error: unknown): { readonly refused: string } {
  if (error instanceof Fault) return { refused: error.code }
  throw error
}
