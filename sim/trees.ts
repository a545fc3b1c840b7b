// The worktrees of the simulation: in a part of the seeds the root sessions work in a folder whose worktrees must be
// swept when a run ends. No git is asked: what counts is when the runtime sweeps, and that it does.
import { isLaneAgent } from '../src/view/lanes.ts'
import type { Event } from '../src/kernel/event.ts'
import type { ChildWorktrees } from '../src/runtime/state/runtime-ports.ts'
import type { SimProcess } from './process.ts'
import { Chance } from './scheduler.ts'
import type { Fail, Leases, Watched } from './watched.ts'

const SHARE = 0.3
const FOLDER = '/tree'
const LOST_MAX = 3

/** The folder of the root sessions of this seed. Its own chance, so that the other seeds are as they were. */
export function folderIn(seed: number): string | undefined {
  return new Chance(seed ^ 0x7ee5).yes(SHARE) ? FOLDER : undefined
}

export class Trees {
  /** How many sweeps began, and how many runs ended with one. */
  readonly seen = { sweeps: 0, ends: 0 }
  readonly #sessions: ReadonlyMap<string, Watched>
  readonly #leases: Leases
  readonly #complain: (rule: string) => void
  /** The sessions whose worktrees were swept since their end was announced. */
  readonly #swept = new Set<string>()
  /** The attempt that announced the end of the open run last. A message may have taken that end back since. */
  readonly #announced = new Map<string, number>()

  constructor(sessions: ReadonlyMap<string, Watched>, leases: Leases, complain: (rule: string) => void) {
    this.#sessions = sessions
    this.#leases = leases
    this.#complain = complain
  }

  /** The worktrees as one process finds them. */
  of(process: SimProcess): ChildWorktrees {
    return {
      exist: () => true,
      settle: async (_store, session) => {
        this.seen.sweeps += 1
        this.#check(session, process.name)
        await process.sleep(process.chance.between(0, 30))
        this.#swept.add(session)
        return null
      },
    }
  }

  /** D1: what is done at an end has an intent on disk, of the attempt that does it. */
  #check(session: string, worker: string): void {
    const { run, closing } = this.#sessions.get(session)?.fold ?? {}
    const lease = this.#leases.get(session)
    // A process that lost the session a moment ago may not know it yet: a sweep may be done twice.
    if (lease?.worker !== worker) return
    if (run ? this.#announced.get(session) !== lease.epoch : !closing)
      this.#complain(`E1 ${session}: swept without an intent`)
  }

  take(session: string, { fold: { folder, run, agent } }: Watched, e: Event, fail: Fail): void {
    if (e.type === 'run.started') this.#announced.delete(session)
    if (e.type === 'run.ending') {
      this.#announced.set(session, e.epoch)
      this.#swept.delete(session)
    }
    if (e.type !== 'run.settled' || run === null || folder !== FOLDER || isLaneAgent(agent)) return
    this.seen.ends += 1
    if (!this.#swept.has(session) && (run.ending?.tries ?? 0) < LOST_MAX) fail('E2 a run ends and its worktrees stay')
  }
}
