// A clock that is faster than the real one by a factor.
import type { Clock } from '../../src/ports/system.ts'

const SPEED = 300

/** `begin`: its time at the real moment `origin`. */
export function fastClock(begin: number, origin: number): Clock {
  return {
    now: () => Math.floor(begin + (Date.now() - origin) * SPEED),
    timer: (ms, fire) => {
      const timer = setTimeout(fire, Math.min(ms / SPEED, 2 ** 31 - 1))
      return () => clearTimeout(timer)
    },
  }
}
