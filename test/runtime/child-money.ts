// A process that runs one session under a budget until it rests, for money-process.long.test.ts, which kills it on the way. It says
// how the run ended.
import { z } from 'zod'
import { defineTool, Harness, model } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { startedOrResumed } from './killable.ts'

const [file = '', url = '', session = '', usd = '0'] = process.argv.slice(2)
const store = sqlite(file)
const look = defineTool({
  name: 'look',
  description: 'looks at a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: () => 'It is cold.',
})
const harness = new Harness({
  breaker: false,
  model: model('anthropic:claude-x', { baseUrl: url, key: 'test-key-123', outputTokensMax: 500 }),
  tools: [look],
  store,
  budget: { sessionUsd: Number(usd) },
  worker: { leaseMs: 2_000 },
})
const result = await startedOrResumed(harness, session, 'Look at every city there is.')
process.stdout.write(`${JSON.stringify({ status: result.status, pending: result.pending })}\n`)
await harness.close()
await store.close()
