// `postgres.idle`: how often a worker asks the database when nothing is due. Each statement is a transaction of its own, and Postgres
// counts those.
import { setTimeout as sleep } from 'node:timers/promises'
import { Harness, scripted } from '../../src/index.ts'
import type { Case, Family } from '../family.ts'
import { lacks, numberOf, onGround } from './ground.ts'

/** A server process tells what it counted once a second at most. */
const SETTLE_MS = 5_000
const IDLE_MS = 20_000

const COUNT = 'select xact_commit + xact_rollback from pg_stat_database where datname = current_database()'

const worker: Case = (folder) =>
  onGround(folder, async ({ store, bare }) => {
    const harness = new Harness({ model: scripted(() => 'done'), store })
    const stop = new AbortController()
    const worked = harness.work({ signal: stop.signal })
    await sleep(SETTLE_MS)
    const before = await numberOf(bare, COUNT)
    await sleep(IDLE_MS)
    // Without the question that counted before.
    const asked = (await numberOf(bare, COUNT)) - before - 1
    stop.abort()
    await worked
    await harness.close()
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
