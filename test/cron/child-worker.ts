// A worker process with cron jobs in an SQLite file. Its clock runs SPEED times as fast as the real one, and all
// processes count from one moment, so their clocks agree. Run and killed by processes.long.test.ts.
import { Harness, scripted } from '../../src/index.ts'
import { cronPlanner } from '../../src/cron/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { fastClock } from './fast-clock.ts'

const [file = '', begin = '0', origin = '0'] = process.argv.slice(2)
const clock = fastClock(Number(begin), Number(origin))
const harness = new Harness({
  model: scripted(() => 'Done.'),
  store: sqlite(file, { clock }),
  program: 'cron',
  graphs: [cronPlanner()],
  system: { clock },
  worker: { leaseMs: 30 * 60_000 },
})
process.stdout.write('ready\n')
await harness.work()
