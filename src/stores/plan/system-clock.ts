// The real clock of the stores. The only file here that touches the machine's time; all other code gets a Clock passed
// in. It is not a scheduler: timers never keep the process alive, unless keepProcessAlive is used.
import type { Clock } from '../../ports/system.ts'

/** The machine's clock, which all its processes share and which can be set. For labels, leases and due times. */
export const systemClock: Clock = {
  now: () => Date.now(),
  timer(ms, fire) {
    const timer = setTimeout(fire, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

// Taken once: to name `process` calls a getter, and the time is asked for several times in each turn.
const uptime = process.uptime.bind(process)
const BEGAN = Date.now() - uptime() * 1_000

/** The start time of this process plus its uptime: it cannot be set. For durations. */
export function steadyNow(): number {
  return Math.floor(BEGAN + uptime() * 1_000)
}

/** The uptime of this process in ms, with fractions. */
export function uptimeMs(): number {
  return uptime() * 1_000
}

export const steadyClock: Clock = { ...systemClock, now: steadyNow }

/** Keeps the process alive until the returned function is called: for a commit that waits for its turn. */
export function keepProcessAlive(): () => void {
  const timer = setInterval(() => {}, 2 ** 30)
  return () => clearInterval(timer)
}
