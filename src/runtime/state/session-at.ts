// A session as it was after any event of its log, folded from the nearest snapshot before it. A long fold stores
// snapshots on its way, so that the next reader is faster.
import { Fault } from '../../kernel/failure.ts'
import { open, take } from '../../kernel/fold.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../../kernel/session.ts'
import type { Snapshot, CompleteStore } from '../../ports/store.ts'
import { checkCount } from '../../stores/plan/check-count.ts'
import { SNAPSHOT_SPAN } from '../../stores/plan/snapshot-span.ts'
import { damagedFault } from '../../view/session-history.ts'
import { readUsableSnapshot } from './session-cache.ts'

const PAGE = 1_000
/** How many snapshots are written at once. */
const KEPT_AT_ONCE = 16

type SnapshotStore = Pick<CompleteStore, 'read' | 'snapshot' | 'keep'>

/**
 * The state after event `seq`; for 0, before the first event. Throws `session_missing`, `session_damaged`, or
 * `invalid_input` where the log ends before.
 */
export async function stateAt(store: SnapshotStore, id: string, seq: number): Promise<Session> {
  checkCount('at', seq)
  const from = await readNearestSnapshot(store, id, seq)
  const s = open(from)
  const far = seq - from.seq > 2 * SNAPSHOT_SPAN
  let passed: (Snapshot & { readonly at: number })[] = []
  // The log is read for 0 too: a missing session has no state.
  do {
    const page = await store.read(id, s.seq, Math.min(PAGE, seq - s.seq))
    for (const event of page.events) {
      take(s, event)
      if (far && s.seq % SNAPSHOT_SPAN === 0)
        passed.push({ seq: s.seq, at: s.at, version: FOLD_VERSION, body: JSON.stringify(s) })
    }
    if (page.damaged) throw damagedFault(id, page.damaged)
    if (page.events.length === 0 && s.seq < seq)
      throw new Fault('invalid_input', `Session ${id} ends at event ${s.seq}: there is no event ${seq}.`)
    if (passed.length >= KEPT_AT_ONCE || s.seq >= seq) {
      await saveSnapshots(store, id, passed)
      passed = []
    }
    if (s.seq < seq) await new Promise((resolve) => setImmediate(resolve))
  } while (s.seq < seq)
  return s
}

/** A snapshot of an older fold, or with another seq than it says, is skipped. */
async function readNearestSnapshot(store: SnapshotStore, id: string, seq: number): Promise<Session> {
  for (let upTo = seq; upTo > 0; ) {
    const found = await store.snapshot(id, upTo)
    if (found === null) return EMPTY
    const folded = readUsableSnapshot(found)
    if (folded !== null) return folded.session
    upTo = found.seq - 1
  }
  return EMPTY
}

/** A file that cannot be written can still be read. */
async function saveSnapshots(
  store: SnapshotStore,
  id: string,
  snapshots: Parameters<CompleteStore['keep']>[1],
): Promise<void> {
  if (snapshots.length > 0) await store.keep(id, snapshots).catch(() => {})
}
