// 15 · One service for many tenants: whose session it is, what its tools get, and what one run has of its own.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Harness, scripted, type ToolContext } from 'terret'

/** What tools work with. Built for each run, from what the caller said of it. */
type Deps = { readonly orders: readonly string[]; readonly close: () => void }

const ORDERS: Readonly<Record<string, readonly string[]>> = { acme: ['17 bolts', '3 wheels'], globex: ['1 laser'] }

const listOrders = defineTool({
  name: 'list_orders',
  description: 'The open orders of this customer',
  input: z.object({}),
  effect: 'read',
  execute: (_args, context: ToolContext) => (context.deps as Deps).orders.join(', '),
})

const textOf = (content: unknown): string => (typeof content === 'string' ? content : 'a long text')

const model = scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: `Open: ${textOf(last.content)}.` }
  return { calls: [{ tool: 'list_orders', args: {} }] }
})
const counting = scripted(() => ({ calls: [{ tool: 'final_result', args: { open: 2 } }] }))

const harness = new Harness({
  model,
  models: { named: { counting } },
  tools: [listOrders],
  deps: ({ metadata }): Deps => {
    const { tenant } = z.object({ tenant: z.string() }).parse(metadata)
    return { orders: ORDERS[tenant] ?? [], close: () => console.log(`closed what was built for ${tenant}`) }
  },
})

for (const tenant of ['acme', 'globex']) {
  const session = await harness.open({ metadata: { tenant }, labels: { tenant } })
  const { text, metadata } = await session.run('What is open?', { metadata: { request: `r-${tenant}` } })
  console.log(`${text} ${JSON.stringify(metadata)}`)
}

const acme = (await harness.list({ order: 'id', limit: 500, where: { tenant: 'acme' } })).cards
console.log(`sessions of acme: ${acme.length}`)

// One run with a model, a shape of the answer and limits of its own.
const output = { schema: z.object({ open: z.number() }) }
const result = await harness.run('Count them.', {
  model: 'counting',
  output,
  limits: { modelRequests: 3 },
  labels: { tenant: 'acme' },
})
console.log(result.status === 'completed' ? result.output : result.stopReason)
await harness.close()
