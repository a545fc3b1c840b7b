// How long a schema of the user may take to check a value. One that checks asynchronously may never answer: what waits for it goes on
// without it. The check itself cannot be stopped, and whatever it says later is not read.
import type { Clock } from '../../ports/system.ts'

const CHECK_MS = 60_000
/** The end of a sentence. */
export const CHECK_LATE = `the check took longer than ${CHECK_MS / 1_000} seconds`

export async function checkedInTime<T>(clock: Clock, check: Promise<T>, late: () => T): Promise<T> {
  let cancel = (): void => {}
  const over = new Promise<T>((resolve) => {
    cancel = clock.timer(CHECK_MS, () => resolve(late()))
  })
  try {
    return await Promise.race([check, over])
  } finally {
    cancel()
  }
}
