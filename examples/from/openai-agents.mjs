// Look an order up, refund it after a yes, and the yes is delivered twice: with the OpenAI Agents SDK for JavaScript.
// It needs: npm install @openai/agents@0.20.0 zod
import { Agent, RunState, Runner, Usage, tool } from '@openai/agents'
import { z } from 'zod'

const paid = []
const parameters = z.object({ order: z.number() })
const lookUp = tool({
  name: 'look_up',
  description: 'Look an order up',
  parameters,
  execute: async () => 'A lamp, 40.00.',
})
const refund = tool({
  name: 'refund',
  description: 'Pay an order back',
  parameters,
  needsApproval: true,
  execute: async ({ order }) => `paid back ${paid.push(order)}`,
})

/** A model that does the next thing, by how many results the input shows. */
const replies = ['look_up', 'refund']
const model = {
  async getResponse({ input }) {
    const results = input.filter(({ type }) => type === 'function_call_result').length
    const name = replies[results]
    const status = 'completed'
    const call = { type: 'function_call', callId: `c${results}`, name, arguments: '{"order":17}', status }
    const content = [{ type: 'output_text', text: 'Order 17 is paid back.' }]
    const answer = { type: 'message', role: 'assistant', status, content }
    return { usage: new Usage(), output: [name ? call : answer] }
  },
  async *getStreamedResponse() {},
}
const agent = new Agent({ name: 'shop', instructions: 'You help customers of a shop.', model, tools: [lookUp, refund] })
const runner = new Runner({ tracingDisabled: true })

// The question. The host keeps the state, as one text.
const first = await runner.run(agent, 'The lamp of order 17 came broken.')
const [question] = first.interruptions
console.log('asked:', question.name, question.arguments)
const saved = first.state.toString()

// The yes. It is delivered twice, and each delivery begins with what was saved.
async function deliverYes() {
  const state = await RunState.fromString(agent, saved)
  state.approve(state.getInterruptions()[0])
  const { finalOutput } = await runner.run(agent, state)
  return finalOutput
}
console.log('first yes:', await deliverYes())
console.log('second yes:', await deliverYes())
console.log('paid:', paid.length)
