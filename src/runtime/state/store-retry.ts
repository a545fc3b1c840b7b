// Retrying a store that was busy: the first try may have succeeded, with only its answer lost. For all writes beside a
// run; the driver (drive.ts) is more patient and retries itself.
import { Fault } from '../../kernel/failure.ts'
import type { Receipt, Store, Write } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { runtimeClock } from './machine.ts'
import { sleep } from './sleep.ts'

type StoreWithClock = { readonly store: Store; readonly clock?: Clock | undefined }

/**
 * The store has already waited itself. There is at least one retry, because only it can tell whether the first try
 * succeeded.
 */
const PATIENCE_MS = 2_000
const WAIT_MS = 100

/**
 * Retries exactly the same writes: those that succeeded already return their receipts, and nothing is written twice.
 */
export function commitWithRetry(
  { store, clock }: StoreWithClock,
  writes: readonly Write[],
): Promise<readonly Receipt[]> {
  return retryWhileBusy(clock, () => store.commit(writes))
}

/**
 * Retries while the store is busy, for a while. `act` learns whether it ran before: then that try may have succeeded.
 */
export async function retryWhileBusy<T>(clock: Clock = runtimeClock, act: (before: boolean) => Promise<T>): Promise<T> {
  const begun = clock.now()
  for (let before = false; ; before = true) {
    try {
      return await act(before)
    } catch (error) {
      if (!isBusy(error) || (before && clock.now() - begun >= PATIENCE_MS)) throw error
      await sleep(clock, WAIT_MS)
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Fault && error.code === 'store_busy'
}
