// The same program as the others here, with Terret: look an order up, refund it after a yes, and the yes is delivered twice.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite } from 'terret'

const folder = mkdtempSync(join(tmpdir(), 'terret-refund-'))
const file = join(folder, 'agent.db')
const paid: number[] = []
const input = z.object({ order: z.number() })
const lookUp = defineTool({
  name: 'look_up',
  description: 'Look an order up',
  input,
  effect: 'read',
  execute: () => 'A lamp, 40.00.',
})
const refund = defineTool({
  name: 'refund',
  description: 'Pay an order back',
  input,
  effect: 'once',
  approval: 'ask',
  execute: ({ order }) => `paid back ${paid.push(order)}`,
})

/** A model that does the next thing, by how many results the request shows. */
const replies = ['look_up', 'refund']
const model = scripted(({ messages }) => {
  const next = replies[messages.filter(({ role }) => role === 'tool').length]
  return next === undefined ? 'Order 17 is paid back.' : { calls: [{ tool: next, args: { order: 17 } }] }
})

/** What each process of the program does first. */
function start() {
  const store = sqlite(file)
  const harness = new Harness({ model, tools: [lookUp, refund], store })
  return { session: harness.session('order-17'), harness, close: () => harness.close().then(() => store.close()) }
}

// The question. The file keeps the session.
const asking = start()
await asking.harness.open({ id: 'order-17' })
const [question] = (await asking.session.run('The lamp of order 17 came broken.')).pending
if (question === undefined) throw new Error('Nothing was asked.')
console.log('asked:', question.tool, JSON.stringify(question.args))
const { callId, digest = '' } = question // they go out with the question, and come back with the yes
await asking.close()

// The yes. It is delivered twice, each time to a harness of its own.
async function deliverYes(): Promise<string> {
  const { session, close } = start()
  try {
    await session.decide({ callId, digest, allow: true, by: 'ana' })
    return (await session.run()).text
  } finally {
    await close()
  }
}
console.log('first yes:', await deliverYes())
console.log('second yes:', await deliverYes().catch((error: { code: string }) => error.code))
console.log('paid:', paid.length)
rmSync(folder, { recursive: true })
