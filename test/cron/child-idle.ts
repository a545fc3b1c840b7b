// A worker over an SQLite file with as many waiting jobs as the second argument says. It prints what they cost it while
// none is due. Run by idle.long.test.ts.
import { Harness, scripted } from '../../src/index.ts'
import { cron, cronPlanner } from '../../src/cron/index.ts'
import type { CompleteStore, OwnerWrite } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const [file = '', count = '0', seconds = '5'] = process.argv.slice(2)
const BATCH = 500

/** The session of a job as it lies in the store between its times. */
function waitingJob(store: CompleteStore, n: number): OwnerWrite {
  const session = `cron.job-${n}`
  const at = store.now()
  const due = at + 3_600_000 + n * 1_000
  const stamp = { at, epoch: 0 }
  const rest = { asks: [], waits: [], wakes: 1, outcome: null } as const
  return {
    session,
    lane: 'owner',
    epoch: 0,
    expectedSeq: 0,
    events: [
      { ...stamp, seq: 1, type: 'session.created', agent: 'cron', planner: 'cron' },
      { ...stamp, seq: 2, type: 'wake.scheduled', due, reason: 'The next time of the job.', key: `cron:${due}` },
    ],
    card: { session, agent: 'cron', root: session, status: 'rescheduling', due, seq: 2, at, cost: 0, ...rest },
  }
}

const memoryMb = (): number => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 1e6
}

const store = sqlite(file) as CompleteStore
const harness = new Harness({ model: scripted(() => 'Done.'), store, graphs: [cronPlanner()] })
await cron(harness).add({ name: 'real', line: '0 3 1 1 *', prompt: 'Go.' })
const before = memoryMb()
for (let from = 0; from < Number(count); from += BATCH)
  await store.commit(Array.from({ length: BATCH }, (_, i) => waitingJob(store, from + i)))
const working = harness.work()
await new Promise((resolve) => setTimeout(resolve, 2_000))
const begun = process.cpuUsage()
const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1_000))
const { user, system } = process.cpuUsage(begun)
const cpuMsPerS = (user + system) / 1_000 / Number(seconds)
process.stdout.write(`${JSON.stringify({ timers, cpuMsPerS, grownMb: memoryMb() - before })}\n`)
await harness.close()
await working
await store.close()
