// The real clock, timers and randomness: the only place of the runtime that touches them. Tests and the simulator pass
// their own.
import { randomUUID } from 'node:crypto'
import type { Clock, Random } from '../../ports/system.ts'
import { steadyNow } from '../../stores/plan/system-clock.ts'

/** This clock cannot be set. The store's is the machine's clock, which can. */
export const runtimeClock: Clock = {
  now: steadyNow,
  timer(ms, fire) {
    const handle = setTimeout(fire, Math.min(ms, 2 ** 31 - 1))
    return () => clearTimeout(handle)
  },
}

export const systemRandom: Random = { id: () => randomUUID(), fraction: () => Math.random() }
