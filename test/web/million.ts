// A log of a million events in a real SQLite file, as a very long session would have left it: for tests and measurements that need one.
// It takes about 30 seconds and 230 MB of disk, so it is made once for each file of tests that uses it, and only by long tests.
import { buildLog } from '../../bench/log.ts'
import type { CompleteStore } from '../../src/kernel/index.ts'
import { SNAPSHOT_SPAN } from '../../src/stores/plan/snapshot-span.ts'

export const MILLION = 1_000_000

/** Its last request is still open, and nobody drives it: give its server a harness with `drives: false`. */
export async function million(store: CompleteStore, id = 'million', events = MILLION): Promise<void> {
  await buildLog(store, { id, events, snapshotEvery: SNAPSHOT_SPAN })
}
