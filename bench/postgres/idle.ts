// `postgres.idle`: how often a worker asks the database when nothing is due, counted on its way there.
import { setTimeout as sleep } from 'node:timers/promises'
import { Harness, scripted } from '../../src/index.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { Proxy } from '../../test/postgres/proxy.ts'
import type { Case, Family } from '../family.ts'
import { lacks, onGround } from './ground.ts'

const SETTLE_MS = 5_000
const IDLE_MS = 20_000

const worker: Case = (folder) =>
  onGround(folder, async ({ server }) => {
    const proxy = await Proxy.to(server.port)
    const store = postgres(server.url(undefined, undefined, proxy.port))
    const harness = new Harness({ model: scripted(() => 'done'), store })
    const stop = new AbortController()
    const worked = harness.work({ signal: stop.signal })
    await sleep(SETTLE_MS)
    const before = proxy.asked.length
    await sleep(IDLE_MS)
    const asked = proxy.asked.length - before
    stop.abort()
    await worked
    await harness.close()
    await store.close()
    await proxy.close()
    return { perSecond: (asked * 1_000) / IDLE_MS }
  })

export const idle: Family = {
  repetitions: 1,
  lacks,
  cases: { worker },
  figures: [
    {
      name: 'postgres.idle',
      unit: 'asks a second',
      target: 3,
      value: (median) => median('worker.perSecond'),
      floor: () => 0,
    },
  ],
}
