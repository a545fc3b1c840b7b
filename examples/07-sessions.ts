// 07 · A session while it works: steer it, pause it, let it go on, look at it, and fork it from an earlier event.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Fault, Harness, scripted } from 'terret'

// A tool that takes its time: it is done when the measuring tape is back.
let begun = (): void => {}
let done = (): void => {}
const measuring = new Promise<void>((resolve) => (begun = resolve))
const measured = new Promise<void>((resolve) => (done = resolve))
const measure = defineTool({
  name: 'measure',
  description: 'Measure the garden',
  input: z.object({}),
  effect: 'read',
  execute: async () => {
    begun()
    await measured
    return '12 by 8 metres'
  },
})

const model = scripted([
  { calls: [{ tool: 'measure' }] },
  'Tulips and lavender on 96 square metres, and no roses.',
  'Buy 200 bulbs and 40 lavender plants.',
  'Roses along the south wall, lavender in front of them.',
])
const florist = scripted(['Peonies. Always peonies.'])
const harness = new Harness({ model, tools: [measure], models: { named: { florist } } })
const session = await harness.open()

const running = session.run('Plan the garden.')
await measuring

// The run is open: one message joins it, one waits for its end, and nothing more starts for now.
await session.send('No roses, please.', { id: 'roses' })
const again = await session.send('No roses, please.', { id: 'roses' })
await session.send('What must I buy?', { when: 'after' })
await session.send([{ type: 'pause' }])
console.log(`sent twice, taken once: ${again.duplicate}`)
try {
  await session.send('Me first!', { when: 'idle' })
} catch (error) {
  console.log(`refused: ${error instanceof Fault ? error.code : 'no reason'}`)
}
done()
const paused = await running
console.log(`${paused.status} (${paused.stopReason}): measure ${paused.calls[0]?.status}`)

// A batch is taken whole or not at all. This one lets the run go on.
await session.send([{ type: 'resume' }])
const last = await session.run()
console.log(`${last.status}: ${last.text}`)
for (const message of await session.messages()) {
  if (message.role === 'tool') continue
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  if (text !== '') console.log(`  ${message.role}: ${text}`)
}

// A fork goes on from an event of this session, and this session does not know it.
const { events } = await session.events()
const first = events.find((event) => event.type === 'run.settled')
const at = first?.seq ?? 1
const fork = await session.fork({ id: 'with-roses', at })
console.log(`fork: ${(await fork.run('And if I wanted roses?')).text}`)
console.log(`here ${(await session.messages()).length} messages, there ${(await fork.messages()).length}`)

// The same call with the same id is the same fork; with other options it is refused. Another fork goes on with another model.
const same = await session.fork({ id: 'with-roses', at })
console.log(`forked twice, made once: ${same.id === fork.id && (await same.messages()).length > 0}`)
const other = await session.fork({ id: 'with-roses' }).catch((error: unknown) => error)
console.log(`refused: ${other instanceof Fault ? other.code : 'no reason'}`)
const bought = await session.fork({ at, model: 'florist' })
console.log(`florist: ${(await bought.run('And you?')).text}`)

// Looking drives nothing: the result of the last run, and what the log meant at an earlier event.
const { session: then } = await session.status({ at: 2 })
console.log(`read again: ${(await session.result())?.text} (at event 2: ${then.inputs.length} message waits)`)
await harness.close()
