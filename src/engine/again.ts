// Asking a store again that was busy: what it was asked may have been done, and only its answer lost. For all that is written beside a
// run; the driver (drive.ts) is more patient and asks again itself.
import { Fault } from '../kernel/failure.ts'
import type { Receipt, Store, Write } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { systemClock } from './platform.ts'
import { sleep } from './sleep.ts'

type Known = { readonly store: Store; readonly clock?: Clock | undefined }

/** The store has been patient itself. Asked again at least once, since only that tells what became of the first time. */
const PATIENCE_MS = 2_000
const WAIT_MS = 100

/** The very same writes again: what was written already gets its receipts, and nothing is written twice. */
export function commit({ store, clock }: Known, writes: readonly Write[]): Promise<readonly Receipt[]> {
  return again(clock, () => store.commit(writes))
}

/** Asks until the store is not busy, for a while. `act` is told whether it was asked before: then that may have been done. */
export async function again<T>(clock: Clock = systemClock, act: (before: boolean) => Promise<T>): Promise<T> {
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
