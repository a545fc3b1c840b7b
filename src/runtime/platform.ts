// The real clock, timers and chance: the only place of the engine that touches them. Tests and the simulator hand in their own.
import { randomUUID } from 'node:crypto'
import type { Clock, Random } from '../kernel/ports.ts'

/** Wall time that never goes back within this process. */
export const systemClock: Clock = {
  now: monotone(),
  timer(ms, fire) {
    const handle = setTimeout(fire, Math.min(ms, 2 ** 31 - 1))
    return () => clearTimeout(handle)
  },
}

export const systemRandom: Random = { id: () => randomUUID(), fraction: () => Math.random() }

function monotone(): () => number {
  let last = 0
  return () => {
    const now = Date.now()
    if (now > last) last = now
    return last
  }
}
