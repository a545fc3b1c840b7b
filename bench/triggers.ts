// `triggers`: 10,000 deliveries come in at 1,000 a second, to SQLite, each as a session and a message in one commit. What a sender
// waits for its 202 is measured, and how the heap grows. Nothing drives them: that is the work of a worker.
import { join } from 'node:path'
import { Harness } from '../src/harness.ts'
import { offline } from '../src/models/local/offline.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { createTriggers } from '../src/triggers/index.ts'
import { openBare } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'

const DELIVERIES = 10_000
const WARM_UP = 500
const SECONDS = 10
const TICK_MS = 10
const PAYLOAD = JSON.stringify({
  action: 'opened',
  issue: { number: 1347, title: 'Found a bug', body: 'x'.repeat(900) },
})

const accept: Case = async (folder) => {
  const store = sqlite(join(folder, `triggers-${process.pid}.db`))
  const harness = new Harness({
    model: offline(),
    store,
    worker: { drives: false },
    triggers: createTriggers({ models: [offline()], sources: { code: {} } }),
  })
  const deliver = (i: number) =>
    harness.trigger({ source: 'code', label: 'issues.opened', payload: PAYLOAD, dedupeKey: `delivery-${i}` })
  await Promise.all(Array.from({ length: WARM_UP }, (_, i) => deliver(DELIVERIES + i)))
  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed
  const [begun, cpu] = [performance.now(), cpuMs()]
  const waits: number[] = []
  const open: Promise<void>[] = []
  for (let sent = 0; sent < DELIVERIES; ) {
    const due = Math.min(DELIVERIES, Math.ceil(((performance.now() - begun) / (SECONDS * 1_000)) * DELIVERIES))
    for (; sent < due; sent++) {
      const at = performance.now()
      open.push(deliver(sent).then(() => void waits.push(performance.now() - at)))
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
  }
  await Promise.all(open)
  const wallMs = performance.now() - begun
  const usedMs = cpuMs() - cpu
  globalThis.gc?.()
  const grown = (process.memoryUsage().heapUsed - heap) / 1024 / 1024
  const { cards } = await store.page({ order: 'made', limit: 1 })
  const health = await store.health()
  await harness.close()
  await store.close()
  const sorted = waits.toSorted((a, b) => a - b)
  return {
    p50: sorted[DELIVERIES / 2] ?? Number.NaN,
    p99: sorted[Math.floor(DELIVERIES * 0.99)] ?? Number.NaN,
    perSecond: (DELIVERIES * 1_000) / wallMs,
    cpuMs: usedMs / DELIVERIES,
    heapMB: grown,
    kept: cards.length > 0 && health.sessions === DELIVERIES + WARM_UP ? 1 : 0,
  }
}

/** One transaction of two rows for each delivery, of about as many bytes. */
const bare: Case = async (folder) => {
  const floor = openBare(join(folder, `triggers-floor-${process.pid}.db`))
  const waits: number[] = []
  for (let i = 0; i < WARM_UP * 4; i++) {
    const at = performance.now()
    floor.insert([PAYLOAD.slice(0, 300), PAYLOAD])
    waits.push(performance.now() - at)
  }
  floor.close()
  return { p99: waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.99)] ?? Number.NaN }
}

export const triggers: Family = {
  repetitions: 3,
  cases: { accept, bare },
  figures: [
    {
      name: 'triggers',
      unit: 'ms p99',
      target: 50,
      value: (median) => median('accept.p99'),
      floor: (median) => median('bare.p99'),
      note: (median) =>
        `p50 ${median('accept.p50').toFixed(1)} ms, ${median('accept.cpuMs').toFixed(2)} ms CPU each, ${median('accept.perSecond').toFixed(0)}/s, heap +${median('accept.heapMB').toFixed(1)} MB, all on disk: ${median('accept.kept') === 1}`,
    },
  ],
}
