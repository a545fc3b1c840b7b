// The example of docs/guide/what-if.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { defineTool, Harness, memory, type Model } from '../../src/index.ts'
import { whatIf } from '../../src/replay.ts'
import { z } from 'zod'

/** Any model will do. This one is a rule, so that the example runs offline. */
const rule: Model = {
  name: 'rule',
  call: async ({ instructions, messages }) => {
    const done = messages.flatMap((message) => (message.role === 'tool' ? [message.tool] : []))
    const failed = messages.some((message) => message.role === 'tool' && !message.ok)
    const wanted = [...(instructions.includes('Look at the order') ? ['find_order'] : []), 'refund']
    const next = failed ? undefined : wanted.find((tool) => !done.includes(tool))
    const text = failed ? 'I could not do that. I pass it on to a person.' : 'You get your money back.'
    if (next === undefined)
      return { type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }
    const call = { id: next, tool: next, args: JSON.stringify({ order: 'A-1' }) }
    return { type: 'reply', parts: [], calls: [call], finish: 'calls', usage: null }
  },
}

const input = z.object({ order: z.string() })
const agent = {
  model: rule,
  instructions: 'Refund what customers ask for.',
  tools: [
    defineTool({
      name: 'find_order',
      description: 'Finds an order.',
      input,
      effect: 'read',
      execute: ({ order }) => `${order}: delivered yesterday`,
    }),
    defineTool({ name: 'refund', description: 'Pays an order back.', input, execute: () => 'paid back 20 €' }),
  ],
}

// What happened: the agent refunded without a look at the order.
const store = memory()
const harness = new Harness({ ...agent, store })
const { sessionId: session } = await harness.run('I want my money back for A-1.')
await harness.close()

// What if it had been told to look first? Everything up to event 2, the customer's message, stays as it was.
const careful = { ...agent, instructions: 'Look at the order before you refund it.' }
const first = await whatIf({ store, session }, { at: 2, agent: careful })
console.log(first.drift, first.missing[0]?.tool, '|', first.text)

// The look at the order was never recorded. It only reads, so it may run.
const second = await whatIf({ store, session }, { at: 2, agent: careful, tools: { find_order: 'recorded_or_live' } })
const changed = second.diff.pairs.filter(({ differs }) => differs.length > 0).length
console.log(second.drift, `${changed} step differs |`, second.text)

// What if the bank had declined? A function stands in for the tool, and no money moves.
const declined = async () => {
  throw new Error('declined')
}
const third = await whatIf({ store, session }, { at: 2, agent, tools: { refund: declined } })
console.log(third.drift, third.settled?.type, '|', third.text)
console.log(JSON.stringify(third.toCase('declined').input))
