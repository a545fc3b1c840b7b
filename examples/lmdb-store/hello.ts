// The quickstart on a store of one's own. Each start runs one more session, and lists those of before.
// Run it: README.md here says how. The folder of the store may be named: `hello.js ./my-sessions`.
import { z } from 'zod'
import { defineTool, Harness, scripted } from 'terret'
import { lmdb } from './lmdb-store.ts'

const weather = defineTool({
  name: 'get_weather',
  description: 'Current weather for a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: async ({ city }) => ({ city, celsius: 4, sky: 'rain' }),
})

const model = scripted([
  { calls: [{ tool: 'get_weather', args: { city: 'Oslo' } }] },
  'It is 4 °C and raining in Oslo. Wear a warm coat that keeps the rain out.',
])

const store = lmdb(process.argv[2] ?? 'sessions.lmdb')
// A second process that has the folder open is told of here, before anything is run.
await store.open()
const harness = new Harness({ model, tools: [weather], store })

const stream = harness.stream('What should I wear in Oslo?')
for await (const event of stream) console.log(`${String(event.seq).padStart(3)}  ${event.type}`)

const result = await stream.result
console.log(`\n${result.status}: ${result.text}`)
for (const card of (await harness.list()).cards) console.log(`${card.session}  ${card.seq} events  ${card.title}`)
await harness.close()
await store.close()
