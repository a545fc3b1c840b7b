// A process with triggers on a store: `node child-worker.js STORE EFFECTS MODE`. It delivers one event five times; `hang` waits for ever inside the
// effect, to be killed there. Each effect is a line in the file EFFECTS.
import { appendFileSync } from 'node:fs'
import { Harness, scripted, sqlite } from '../../src/index.ts'
import { createTriggers } from '../../src/triggers/index.ts'

const [path = '', effects = '', mode = ''] = process.argv.slice(2)

const store = sqlite(path)
const harness = new Harness({
  model: scripted(() => 'x'),
  store,
  worker: { leaseMs: 2_000 },
  triggers: createTriggers({
    models: [scripted(() => '{"action":"notify","prompt":"The disk is full.","reason":"So."}')],
    sources: { disk: {} },
    notify: async (notice, { key }) => {
      appendFileSync(effects, `${mode} ${key} ${notice.text}\n`)
      process.stdout.write('notified\n')
      if (mode === 'hang') await new Promise(() => setInterval(() => {}, 1_000))
    },
  }),
})
const deliver = () => harness.trigger({ source: 'disk', label: 'full', payload: '99 %', dedupeKey: 'evt_1' })
const sent = await Promise.all([deliver(), deliver(), deliver(), deliver(), deliver()])
process.stdout.write(`${JSON.stringify(sent)}\n`)
await harness.work({ idleMs: mode === 'hang' ? 60_000 : 3_000 })
await harness.close()
await store.close()
