// Look an order up, refund it after a yes, and the yes is delivered twice: with the AI SDK 6.
// It needs: npm install ai@6.0.326 zod
import { generateText, stepCountIs, tool } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { z } from 'zod'

const paid = []
const inputSchema = z.object({ order: z.number() })
const tools = {
  look_up: tool({ description: 'Look an order up', inputSchema, execute: () => 'A lamp, 40.00.' }),
  refund: tool({
    description: 'Pay an order back',
    inputSchema,
    needsApproval: true,
    execute: ({ order }) => `paid back ${paid.push(order)}`,
  }),
}

/** A model that does the next thing, by how many results the prompt shows. */
const usage = { inputTokens: { total: 20 }, outputTokens: { total: 5 } }
const replies = ['look_up', 'refund']
const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const parts = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []))
    const results = parts.filter(({ type }) => type === 'tool-result').length
    const toolName = replies[results]
    const content = toolName
      ? [{ type: 'tool-call', toolCallId: `c${results}`, toolName, input: '{"order":17}' }]
      : [{ type: 'text', text: 'Order 17 is paid back.' }]
    return { content, finishReason: { unified: toolName ? 'tool-calls' : 'stop' }, usage, warnings: [] }
  },
})
const settings = { model, tools, stopWhen: stepCountIs(5) }

// The question. The host keeps the messages.
const messages = [{ role: 'user', content: 'The lamp of order 17 came broken.' }]
const first = await generateText({ ...settings, messages })
const request = first.content.find(({ type }) => type === 'tool-approval-request')
console.log('asked:', request.toolCall.toolName, JSON.stringify(request.toolCall.input))
const saved = JSON.stringify([...messages, ...first.response.messages])

// The yes. It is delivered twice, and each delivery begins with what was saved.
async function deliverYes() {
  const yes = { type: 'tool-approval-response', approvalId: request.approvalId, approved: true }
  const again = [...JSON.parse(saved), { role: 'tool', content: [yes] }]
  return (await generateText({ ...settings, messages: again })).text
}
console.log('first yes:', await deliverYes())
console.log('second yes:', await deliverYes())
console.log('paid:', paid.length)
