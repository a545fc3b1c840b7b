// 06 · Hooks: your own code around a run. One holds a call back, one masks what a tool returns, one keeps an audit.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Harness, type Hook, scripted } from 'terret'

const customer = defineTool({
  name: 'customer',
  description: 'What is known of a customer',
  input: z.object({ id: z.number() }),
  effect: 'read',
  execute: ({ id }) => `Customer ${id}: Ana Berg, card 4929 1234 5678 9012, waits for 40 dollars.`,
})

const refund = defineTool({
  name: 'refund',
  description: 'Pay money back',
  input: z.object({ id: z.number(), dollars: z.number() }),
  effect: 'once',
  execute: ({ id, dollars }) => `Customer ${id} got ${dollars} dollars.`,
})

// Before a call starts: a reason holds it back. The model reads the reason, and nothing runs.
const noLargeRefunds: Hook = {
  type: 'before_tool_call',
  tools: ['refund'],
  strict: true, // if it throws, the run ends instead of going on without it
  run: ({ args }) => ((args as { dollars: number }).dollars > 50 ? { cancel: 'more than 50 dollars' } : undefined),
}

// After a call, before its result is written anywhere: change it in place.
const noCardNumbers: Hook = {
  type: 'after_tool_call',
  strict: true,
  run: ({ output }) => {
    output.content = output.content.replace(/\b(?:\d{4} ){3}\d{4}\b/g, '[card]')
  },
}

// Once, when the run has ended, however it ended.
const audit: Hook = {
  type: 'run_end',
  run: ({ result }) => {
    for (const { tool, args, status } of result.calls) console.log(`audit: ${tool} ${JSON.stringify(args)} ${status}`)
    console.log(`audit: ${result.stopReason}, ${result.usage.cancelledToolCalls} held back`)
  },
}

const model = scripted([
  { calls: [{ tool: 'customer', args: { id: 7 } }] },
  { calls: [{ tool: 'refund', args: { id: 7, dollars: 400 } }] },
  { calls: [{ tool: 'refund', args: { id: 7, dollars: 40 } }] },
  'I paid 40 dollars back.',
])
const hooks = [noLargeRefunds, noCardNumbers, audit]
const harness = new Harness({ model, tools: [customer, refund], hooks })
const result = await harness.run('Pay customer 7 back what they wait for.')
for (const { content } of result.calls) console.log(`read:  ${typeof content === 'string' ? content : content.hash}`)
console.log(`${result.status}: ${result.text}`)
await harness.close()
