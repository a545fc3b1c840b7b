// The result of the last run, read and not driven: also for callers on a harness that drives nothing.
import { headOf, seenBelow } from '../../riders/children/tree.ts'
import { sleep } from '../../engine/sleep.ts'
import { attended, type Place, resultOf } from '../await-run.ts'
import { Collector, type Result } from '../result.ts'

const PAGE = 1_000
/** What a child does is no news of its parent. */
const LOOK_MS = 500

/** Null while the session works, and before its first run. With `waitMs` that is waited for. */
export function lastResult(place: Place, waitMs: number): Promise<Result | null> {
  const { id, services, worker } = place
  const { store, clock } = services
  const end = clock.now() + waitMs
  return attended(worker, async (reader) => {
    let stale = (): void => {}
    const unwatch = store.watch(id, () => stale())
    try {
      for (;;) {
        const news = new Promise<void>((resolve) => {
          stale = resolve
          reader.wake = resolve
        })
        const looked = await seenBelow(worker.heads, id, { now: store.now() }, worker.lingerMs)
        if (looked.type === 'rested') return await resultAt(place, looked)
        const left = end - clock.now()
        if (left <= 0 || worker.closed) return null
        await Promise.race([news, sleep(clock, Math.min(left, LOOK_MS))])
      }
    } finally {
      unwatch()
    }
  })
}

async function resultAt(place: Place, looked: Parameters<typeof resultOf>[2]): Promise<Result | null> {
  const { id, services } = place
  const { began, seq, last } = await headOf(services.store, id)
  if (began === 0 && last === null) return null
  const collector = new Collector(id, null)
  for (let after = Math.max(0, began - 1); after < seq; ) {
    const { events } = await services.store.read(id, after, Math.min(PAGE, seq - after))
    for (const event of events) collector.take(event)
    if (events.length === 0) break
    after += events.length
  }
  return resultOf(place, collector, looked)
}
