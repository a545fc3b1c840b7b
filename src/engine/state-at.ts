// A session as it was after any event of its log: folded from the nearest snapshot before it. What a reader had to fold from far away
// leaves snapshots behind, so that the next reader has not so far to go.
import { Fault } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../kernel/session.ts'
import type { Snapshot, Store } from '../ports/store.ts'
import { checkCount } from '../stores/plan/count.ts'
import { SNAPSHOT_SPAN } from '../stores/plan/snapshots.ts'
import { damaged } from '../view/history.ts'
import { foldedIn } from './session-cache.ts'

const PAGE = 1_000
/** Snapshots that are written at once. */
const KEPT_AT_ONCE = 16

type Log = Pick<Store, 'read' | 'snapshot' | 'keep'>

/** After event `seq`; before the first event for 0. `session_missing`, `session_damaged`, or `invalid_input` where the log ends before. */
export async function stateAt(store: Log, id: string, seq: number): Promise<Session> {
  checkCount('at', seq)
  const from = await nearest(store, id, seq)
  const s = open(from)
  const far = seq - from.seq > 2 * SNAPSHOT_SPAN
  let passed: (Snapshot & { readonly at: number })[] = []
  // Also for 0: a session that is not there has no state.
  do {
    const page = await store.read(id, s.seq, Math.min(PAGE, seq - s.seq))
    for (const event of page.events) {
      take(s, event)
      if (far && s.seq % SNAPSHOT_SPAN === 0)
        passed.push({ seq: s.seq, at: s.at, version: FOLD_VERSION, body: JSON.stringify(s) })
    }
    if (page.damaged) throw damaged(id, page.damaged)
    if (page.events.length === 0 && s.seq < seq)
      throw new Fault('invalid_input', `Session ${id} ends at event ${s.seq}: there is no event ${seq}.`)
    if (passed.length >= KEPT_AT_ONCE || s.seq >= seq) {
      await keep(store, id, passed)
      passed = []
    }
    if (s.seq < seq) await new Promise((resolve) => setImmediate(resolve))
  } while (s.seq < seq)
  return s
}

/** A snapshot of an older fold, or one that is not what it says, is passed over. */
async function nearest(store: Log, id: string, seq: number): Promise<Session> {
  for (let upTo = seq; upTo > 0; ) {
    const found = await store.snapshot(id, upTo)
    if (found === null) return EMPTY
    const folded = foldedIn(found)
    if (folded !== null) return folded.session
    upTo = found.seq - 1
  }
  return EMPTY
}

/** A file that cannot be written can still be read. */
async function keep(store: Log, id: string, snapshots: Parameters<Store['keep']>[1]): Promise<void> {
  if (snapshots.length > 0) await store.keep(id, snapshots).catch(() => {})
}
