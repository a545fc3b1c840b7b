// Bounds the time that a user's schema takes to check a value. An asynchronous check may never answer: then its caller
// goes on without it. The check itself cannot be stopped, and its late answer is ignored.
import type { Clock } from '../../ports/system.ts'

const CHECK_MS = 60_000
/** The end of an error sentence. */
export const CHECK_LATE = `the check took longer than ${CHECK_MS / 1_000} seconds`

export async function checkInTime<T>(clock: Clock, check: Promise<T>, late: () => T): Promise<T> {
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
