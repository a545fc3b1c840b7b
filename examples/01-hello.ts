// 01 · The first run: a model, a tool, an answer. Offline: the model is scripted, so it needs no key.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Harness, scripted } from 'terret'

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

const harness = new Harness({ model, tools: [weather] })

const stream = harness.stream('What should I wear in Oslo?')
for await (const event of stream) console.log(`${String(event.seq).padStart(3)}  ${event.type}`)

const result = await stream.result
console.log(`\n${result.status}: ${result.text}`)
await harness.close()
