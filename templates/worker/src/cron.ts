// `npm run cron`: sets the job, which any worker fires. `npm run cron -- now` fires it at once, and waits for its end.
import { cron } from 'terret/cron'
import { openHarness } from './harness.ts'

const { harness, store } = openHarness({ drives: process.argv[2] === 'now' })
const job = await cron(harness).add({
  name: 'nightly',
  line: '0 3 * * *',
  zone: 'Europe/Oslo',
  prompt: 'Report on what happened today.',
  missed: 'once', // no worker was there: one report when one is back
})
console.log(`${job.name}: ${job.next.map((at) => new Date(at).toISOString()).join(', ')}`)
if (process.argv[2] === 'now') {
  const run = await cron(harness).run('nightly')
  if ('session' in run) {
    const { status, text } = await harness.session(run.session).run()
    console.log(`${status}: ${text}`)
  } else console.log('An earlier run still works.')
}
await harness.close()
await store.close()
