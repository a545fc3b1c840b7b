// A process that runs one session whose context fills, for kill.long.test.ts, which kills it while the summary is made.
import { z } from 'zod'
import { defineTool, Harness, model } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { startedOrResumed } from '../runtime/killable.ts'

const [file = '', url = '', session = ''] = process.argv.slice(2)
const store = sqlite(file)
const look = defineTool({
  name: 'look',
  description: 'looks at a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: ({ city }) => (city === 'Everywhere' ? 'It is cold. '.repeat(3_000) : 'It is cold.'),
})
const prices = { 'anthropic:*': { input: 2, output: 10, contextTokens: 5_000 } }
const harness = new Harness({
  breaker: false,
  results: { compression: 'off' },
  model: model('anthropic:claude-x', { baseUrl: url, key: 'test-key-123', outputTokensMax: 500, prices }),
  tools: [look],
  store,
  budget: { sessionUsd: 10 },
  worker: { leaseMs: 20_000 },
})
const result = await startedOrResumed(harness, session, 'Look at every city there is.')
process.stdout.write(`${JSON.stringify({ status: result.status })}\n`)
await harness.close()
await store.close()
