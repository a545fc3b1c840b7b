// The consumers of a seed: one keeps what it is told, and one throws and hangs. Both live in every process. What they are told is compared
// with the runs that settled. In a part of the seeds.
import { laneAgents } from '../src/consumers/lane-agents.ts'
import { foldQueue } from '../src/queues/item-queue.ts'
import type { Consumer } from '../src/runtime/hooks/consumers.ts'
import type { SettledRun } from '../src/runtime/hooks/settled-run.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { isLaneAgent } from '../src/view/lanes.ts'
import { readTranscript } from '../src/view/session-history.ts'
import type { Invariants } from './invariants.ts'
import type { SimProcess } from './process.ts'
import { Chance } from './scheduler.ts'

const SHARE = 0.4
/** A hang ends soon, and the second failure is the last. */
const LIMITS = { timeoutMs: 40, attempts: 2 } as const

/** Whether this seed has consumers. Its own chance, so that the other seeds are as they were. */
export function hasListeners(seed: number): boolean {
  return new Chance(seed ^ 0xc0de).yes(SHARE)
}

type ToldRuns = { readonly begun: number[]; readonly done: Set<number> }

export class Listeners {
  readonly names = ['keeps', 'fails'] as const
  readonly violations: string[] = []
  readonly tally = { told: 0, again: 0, failed: 0, dead: 0 }
  readonly #invariants: Invariants
  /** For each consumer and session. */
  readonly #told = new Map<string, ToldRuns>()
  /** The effect of a consumer that is idempotent, by its key. */
  readonly #effects = new Map<string, number>()

  constructor(invariants: Invariants) {
    this.#invariants = invariants
  }

  /** The agents of the lanes in this process. */
  agentsIn(process: SimProcess): ReadonlyMap<string, Agent> {
    const consumers = this.names.map(
      (name): Consumer => ({ name, ...LIMITS, run: (settled, { key }) => this.#tell(process, name, settled, key) }),
    )
    const { store, clock } = process
    return laneAgents(consumers, { harness: () => null, store, clock, report: () => {} })
  }

  async #tell(process: SimProcess, name: string, { session, seq, outcome }: SettledRun, key: string): Promise<void> {
    const { chance } = process
    const of = `${name} ${session}`
    const told = this.#told.get(of) ?? { begun: [], done: new Set() }
    this.#told.set(of, told)
    const runs = this.#invariants.ended.get(session) ?? []
    if (!runs.some((run) => run.seq === seq && run.outcome === outcome.type))
      this.violations.push(`C1 ${of} is told of run ${seq} before its end is on disk`)
    if (told.begun.includes(seq)) this.tally.again += 1
    else {
      const last = told.begun.at(-1) ?? 0
      if (last > seq) this.violations.push(`C2 ${of} is told of run ${seq} after run ${last}`)
      told.begun.push(seq)
    }
    this.tally.told += 1
    await process.sleep(chance.between(0, 20))
    if (name === 'fails' && chance.yes(0.4)) {
      this.tally.failed += 1
      if (chance.yes(0.3)) await new Promise(() => {})
      throw new Error('simulated')
    }
    this.#effects.set(`${name} ${key}`, 1)
    told.done.add(seq)
    if (process.falters()) await new Promise(() => {})
  }

  /** At rest: each run was told to each consumer, and took effect or is a dead letter. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const wrong: string[] = []
    const dead = new Set<string>()
    for (const [id, { fold }] of this.#invariants.sessions()) {
      if (!isLaneAgent(fold.agent)) continue
      const { transcript } = await readTranscript(store, { id, upTo: fold.seq })
      const queue = foldQueue(transcript.messages)
      for (const key of queue.waiting.keys()) wrong.push(`C4 ${id} rests, and ${key} waits`)
      for (const key of queue.dead.keys()) dead.add(`${fold.agent.slice('consumer:'.length)} ${key}`)
    }
    this.tally.dead = dead.size
    for (const [session, runs] of this.#invariants.ended)
      for (const { seq } of runs)
        for (const name of this.names) {
          const key = `${name} settled:${session}:${seq}`
          const told = this.#told.get(`${name} ${session}`)
          // A run may be given up without being told, where processes died just before that.
          if (dead.has(key)) continue
          if (!told?.begun.includes(seq)) wrong.push(`C3 ${name} is not told of run ${seq} of ${session}`)
          else if (!this.#effects.has(key)) wrong.push(`C5 ${key} took no effect and is no dead letter`)
        }
    return wrong
  }
}
