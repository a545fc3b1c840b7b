// A process that runs one long session, for reading.test.ts, which kills it in the middle and reads it from outside.
import { z } from 'zod'
import { defineTool, Harness, scripted } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { killable, startedOrResumed } from './killable.ts'

const [file = '', last = '0'] = process.argv.slice(2)
const store = sqlite(file)
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})
const model = scripted(({ messages }) => {
  const said = messages.filter(({ role }) => role === 'assistant').length
  return said < 180 ? { calls: [{ tool: 'look' }] } : 'Done.'
})
const harness = new Harness({
  model,
  tools: [look],
  store: killable(store, Number(last)),
  breaker: false,
  limits: { modelRequests: 300 },
})
const { status } = await startedOrResumed(harness, 'long', 'Look.')
process.stdout.write(status)
await harness.close()
await store.close()
