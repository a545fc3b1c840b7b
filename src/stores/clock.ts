// The real clock of the stores. The only file here that touches the machine's time; everything else gets a Clock handed in.
// It is not a scheduler: timers never keep the process alive, unless holdProcess says so.
import type { Clock } from '../kernel/ports.ts'

let latest = 0

export const systemClock: Clock = {
  /** Never goes back within the process, also when somebody sets the machine's clock back. */
  now() {
    const now = Date.now()
    if (now > latest) latest = now
    return latest
  },
  timer(ms, fire) {
    const timer = setTimeout(fire, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Keeps the process alive until the returned function is called: for a commit that waits for its turn. */
export function holdProcess(): () => void {
  const timer = setInterval(() => {}, 2 ** 30)
  return () => clearInterval(timer)
}
