// 08 · Streaming: events and words as they come, a reader who comes later, and one who leaves.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Harness, scripted } from 'terret'

const weather = defineTool({
  name: 'get_weather',
  description: 'Current weather for a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: ({ city }) => ({ city, celsius: 4, sky: 'rain' }),
})

const model = scripted([
  { calls: [{ tool: 'get_weather', args: { city: 'Oslo' } }] },
  { deltas: ['It is 4 °C ', 'and raining. ', 'Wear ', 'a coat.'] },
  { stall: true }, // a model that thinks for ever
])
const harness = new Harness({ model, tools: [weather] })
const session = await harness.open()

// Coarse events always, words as they are said.
const stream = session.stream('What should I wear in Oslo?', { deltas: true })
let events = 0
for await (const event of stream) {
  if (event.type === 'delta') console.log(`       … ${event.text}`)
  else {
    events += 1
    console.log(`${String(event.sequence).padStart(3)}  ${event.type}`)
  }
}
console.log((await stream.result).status)

// A reader that comes later gets the same from the beginning.
const seqs: number[] = []
for await (const event of session.stream()) seqs.push(event.seq)
console.log(`a late reader: ${seqs.length} events, ${seqs.length - events} of them before the question`)

// Leaving a stream that started a run interrupts it.
const endless = session.stream('And tomorrow?')
for await (const event of endless) if (event.type === 'model.started') break
console.log(`left early: ${(await endless.result).status}`)
await harness.close()
