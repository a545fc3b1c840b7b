// A program of its own on the store of the command line: one agent without a name, and a tool that only it has. `hang`: the tool says
// that it was called, and never returns.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Harness, type Request, scripted, sqlite } from '../../src/index.ts'

const [, , file = '', folder = '', journal = '', how = ''] = process.argv

const pay = defineTool({
  name: 'pay',
  description: 'Pays an invoice.',
  input: z.object({ invoice: z.string() }),
  effect: 'idempotent',
  execute: async ({ invoice }) => {
    appendFileSync(journal, `${how} ${invoice}\n`)
    if (how === 'hang') await new Promise(() => setInterval(() => {}, 60_000))
    return `paid ${invoice}`
  },
})

const answer = (request: Request) =>
  request.messages.some(({ role }) => role === 'tool')
    ? { text: 'The invoice is paid.' }
    : { calls: [{ tool: 'pay', args: { invoice: 'A-7' } }] }

const harness = new Harness({
  model: scripted(Array.from({ length: 4 }, () => answer)),
  tools: [pay],
  store: sqlite(file),
  worker: { leaseMs: 1_000 },
})
const session = await harness.open({ id: 'billing-session', folder, reuse: true })
const result = how === 'hang' ? await session.run('Pay A-7.') : await session.run()
process.stdout.write(`${JSON.stringify({ status: result.status, text: result.text })}\n`)
await harness.close()
