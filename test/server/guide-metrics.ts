// The program of docs/guide/metrics.md, word for word but for this line and its imports. run-counts.test.ts compares and runs it.
import { z } from 'zod'
import { defineTool, Harness, scripted } from '../../src/index.ts'
import { serve } from '../../src/server/index.ts'

const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  input: z.object({ order: z.string() }),
  approval: 'ask',
  execute: ({ order }) => `refunded ${order}`,
})
const harness = new Harness({
  model: scripted([
    { text: 'Hello.', usage: { inputTokens: 900, outputTokens: 12, cachedTokens: 700 }, cost: 1_500 },
    { calls: [{ tool: 'refund', args: { order: 'A-7' } }] },
  ]),
  tools: [refund],
})
const token = 'a'.repeat(43)
const server = await serve({ harness, token })

await harness.run('Hi.')
await harness.run('Refund A-7.')

const headers = { authorization: `Bearer ${token}` }
const page = await server.fetch(new Request('http://localhost/metrics', { headers }))
for (const line of (await page.text()).split('\n'))
  if (/^terret_(runs_total.*completed|\w+_tokens_total|approvals_waiting)/.test(line)) console.log(line)

await server.close()
await harness.close()
