// The result of the last run, read without driving, also for a harness that drives nothing.
import { readSessionHead, reportTreeRest } from '../../runtime/state/session-tree.ts'
import { sleep } from '../../runtime/state/sleep.ts'
import { keepStoreOpenFor, type SessionAccess, buildResult } from '../await-run.ts'
import { ResultCollector, type Result } from '../../runtime/state/run-result.ts'

const PAGE = 1_000
/** A child's work gives its parent no news, so the session is read at this pace. */
const LOOK_MS = 500

/** Null while the session works, and before its first run. `waitMs` waits for the result. */
export function readLastResult(place: SessionAccess, waitMs: number): Promise<Result | null> {
  const { id, services, worker } = place
  const { store, clock } = services
  const end = clock.now() + waitMs
  return keepStoreOpenFor(worker, async (reader) => {
    let stale = (): void => {}
    const unwatch = store.watch(id, () => stale())
    try {
      for (;;) {
        const news = new Promise<void>((resolve) => {
          stale = resolve
          reader.wake = resolve
        })
        const looked = await reportTreeRest(worker.heads, id, { now: store.now() }, worker.lingerMs)
        if (looked.type === 'rested') return await collectResult(place, looked)
        const left = end - clock.now()
        if (left <= 0 || worker.closed) return null
        await Promise.race([news, sleep(clock, Math.min(left, LOOK_MS))])
      }
    } finally {
      unwatch()
    }
  })
}

async function collectResult(place: SessionAccess, looked: Parameters<typeof buildResult>[2]): Promise<Result | null> {
  const { id, services } = place
  const { began, seq, last } = await readSessionHead(services.store, id)
  if (began === 0 && last === null) return null
  const collector = new ResultCollector(id, null)
  for (let after = Math.max(0, began - 1); after < seq; ) {
    const { events } = await services.store.read(id, after, Math.min(PAGE, seq - after))
    for (const event of events) collector.take(event)
    if (events.length === 0) break
    after += events.length
  }
  return buildResult(place, collector, looked)
}
