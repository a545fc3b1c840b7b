// The example of docs/guide/cron.md, run by guide.test.ts.
import { Harness, offline, sqlite } from '../../src/index.ts'
import { cron, cronPlanner } from '../../src/cron/index.ts'

const store = sqlite('reports.db')
const harness = new Harness({ model: offline(), store, graphs: [cronPlanner()] })
const jobs = cron(harness)

const job = await jobs.add({
  name: 'nightly',
  line: '0 3 * * *', // minute, hour, day of month, month, day of week
  zone: 'Europe/Oslo',
  prompt: 'Write the report of the night.',
})
console.log(job.name, job.on, job.next.length)

if (process.argv[2] === 'work')
  await harness.work() // fires jobs until the process ends
else {
  const run = await jobs.run('nightly') // now, whatever the line says
  if ('session' in run) console.log((await harness.session(run.session).run()).status)
}
await harness.close()
await store.close()
