// A compaction that a test writes into a log that no worker holds.
import { ownerWrite } from '../../src/runtime/commit/owner-write.ts'
import type { CompleteStore } from '../../src/index.ts'
import { fold } from '../../src/kernel/fold.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { eventsOf } from '../models/hosted-stage.ts'

/** Cuts what is shown, as a compaction does. */
export async function compact(
  store: CompleteStore,
  id: string,
  more: { cut?: number; cleared?: number },
): Promise<void> {
  const claim = await store.claim(id, 'compacts', 10_000)
  const session = (await eventsOf(store, id)).reduce(fold, EMPTY)
  const here = { now: store.now(), epoch: claim?.epoch ?? 0 }
  const write = ownerWrite(id, session, [{ type: 'context.compacted', ...more }], here)
  await store.commit([{ ...write, release: true }])
}
