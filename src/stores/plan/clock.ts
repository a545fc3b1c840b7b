// The real clock of the stores. The only file here that touches the machine's time; everything else gets a Clock handed in.
// It is not a scheduler: timers never keep the process alive, unless holdProcess says so.
import type { Clock } from '../../ports/system.ts'

/** What all processes of this machine agree on: its clock, which can be set. For labels, leases and due times. */
export const systemClock: Clock = {
  now: () => Date.now(),
  timer(ms, fire) {
    const timer = setTimeout(fire, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

const BEGAN = Date.now() - process.uptime() * 1_000

/** The time at which this process began, and how long it has been running: it cannot be set. For everything that lasts. */
export function steadyNow(): number {
  return Math.floor(BEGAN + process.uptime() * 1_000)
}

/** How long this process has been running, with fractions of a millisecond. */
export function upMs(): number {
  return process.uptime() * 1_000
}

export const steadyClock: Clock = { ...systemClock, now: steadyNow }

/** Keeps the process alive until the returned function is called: for a commit that waits for its turn. */
export function holdProcess(): () => void {
  const timer = setInterval(() => {}, 2 ** 30)
  return () => clearInterval(timer)
}
