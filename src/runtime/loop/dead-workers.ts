// The other workers of this host: it ends the leases of those whose process is gone, so that their sessions need not
// wait. It takes no session: afterwards they are due, as after any lease that ran out. A wrong judgement is safe
// because epochs fence (decision 43).
import type { ProcessId, CompleteStore } from '../../ports/store.ts'
import type { Clock, Processes } from '../../ports/system.ts'

/** One check costs one read and a few system calls. */
const EVERY_MS_MAX = 1_000

export type PeersOptions = {
  readonly store: CompleteStore
  readonly clock: Clock
  /** Absent: nothing is known of processes, and leases end by the clock. */
  readonly processes?: Processes | undefined
  readonly leaseMs?: number
}

/**
 * `ended`: how many leases were ended. `again`: when to check next; never while no other process of this host holds a
 * session.
 */
type PeerCheck = { readonly ended: number; readonly again: number }

const NO_PEERS: PeerCheck = { ended: 0, again: Number.POSITIVE_INFINITY }

export class Peers {
  readonly #options: PeersOptions
  readonly #everyMs: number
  #next = Number.NEGATIVE_INFINITY

  constructor(options: PeersOptions) {
    this.#options = options
    this.#everyMs = Math.min(EVERY_MS_MAX, (options.leaseMs ?? Number.POSITIVE_INFINITY) / 10)
  }

  /** Checks at most once in this many milliseconds, however often it is called. */
  async look(): Promise<PeerCheck> {
    const { clock } = this.#options
    if (!ownProcessId(this.#options)) return NO_PEERS
    const now = clock.now()
    if (now < this.#next) return { ended: 0, again: this.#next }
    this.#next = now + this.#everyMs
    const { ended, living } = await expireDeadWorkers(this.#options)
    return { ended, again: living > 0 ? this.#next : Number.POSITIVE_INFINITY }
  }
}

/** The identity of this process for its peers; undefined where there is none, or where peers could not use it. */
export function ownProcessId({ store, processes }: Pick<PeersOptions, 'store' | 'processes'>): ProcessId | undefined {
  return (store.reach !== 'process' && processes?.self()) || undefined
}

/**
 * Ends the leases of this host's workers whose process is gone. `living` counts the other processes, without this one.
 */
export async function expireDeadWorkers(
  options: Pick<PeersOptions, 'store' | 'processes'>,
): Promise<{ readonly ended: number; readonly living: number }> {
  const { store, processes } = options
  const self = ownProcessId(options)
  if (!self || !processes) return { ended: 0, living: 0 }
  const holders = await store.holders(self.host)
  const others = holders.filter(({ process: { pid, started } }) => pid !== self.pid || started !== self.started)
  const dead = others.filter(({ process }) => processes.isGone(process))
  let ended = 0
  for (const { worker, process } of dead) if (await store.expire(worker, process)) ended += 1
  return { ended, living: others.length - dead.length }
}
