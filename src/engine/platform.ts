// The real clock, timers and chance: the only place of the engine that touches them. Tests and the simulator hand in their own.
import { randomUUID } from 'node:crypto'
import type { Clock, Random } from '../ports/system.ts'
import { steadyNow } from '../stores/plan/clock.ts'

/** It cannot be set. The machine's clock, which can, is the store's. */
export const systemClock: Clock = {
  now: steadyNow,
  timer(ms, fire) {
    const handle = setTimeout(fire, Math.min(ms, 2 ** 31 - 1))
    return () => clearTimeout(handle)
  },
}

export const systemRandom: Random = { id: () => randomUUID(), fraction: () => Math.random() }
