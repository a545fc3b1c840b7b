// The example of docs/guide/scripts.md, run by guide.test.ts.
import { defineTool, Harness, memory, scripted } from '../../src/index.ts'
import { createScripts } from '../../src/scripts/index.ts'

const prices: Record<string, number> = { apple: 3, pear: 4, plum: 2 }
const price = defineTool({
  name: 'price',
  description: 'The price of a fruit.',
  input: { type: 'object', properties: { fruit: { type: 'string' } }, required: ['fruit'] },
  effect: 'read',
  execute: async ({ fruit }: { fruit: string }) => String(prices[fruit] ?? 0),
})

// A model would write this.
const program = `
const fruits = ['apple', 'pear', 'plum']
const found = await Promise.all(fruits.map((fruit) => tool_call('price', { fruit })))
return found.reduce((sum, each) => sum + Number(each), 0)`
const model = scripted([{ calls: [{ tool: 'script', args: { script: program } }] }, 'They cost 9 together.'])

const scripts = createScripts() // mode: 'ask'
const harness = new Harness({ model, store: memory(), tools: [price, scripts.tool], graphs: [scripts.planner] })

const first = await harness.run('What do an apple, a pear and a plum cost?')
const [asked] = await harness.pending()
console.log(first.status, asked?.tool)
const { script = '' } = (asked?.args ?? {}) as { script?: string }
console.log(script.trim().split('\n').length, 'lines to read')

const session = harness.session(first.sessionId)
await session.decide({ callId: asked?.callId ?? '', allow: true, by: 'ann' })
const result = await session.run()
console.log(result.status === 'completed' ? result.output : result.status)
await harness.close()
