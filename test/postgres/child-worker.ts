// A worker process of the restore test: drives what is due in a database until it is killed. Run as: url file. Each session calls the
// tool "pay" once, which writes a line into the file, and is done. What fails is told by its code.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Fault, Harness, scripted } from '../../src/index.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'

const [url = '', file = ''] = process.argv.slice(2)

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({}),
  effect: 'once',
  execute: (_input, { session }) => {
    appendFileSync(file, `${session}\n`)
    return 'paid'
  },
})

const model = scripted(({ messages }) => {
  const turns = messages.filter(({ role }) => role === 'assistant').length
  return turns % 2 === 0 ? { calls: [{ tool: 'pay', args: {} }] } : 'done'
})
const tell = (error: unknown): void => void process.send?.(error instanceof Fault ? error.code : String(error))
const harness = new Harness({
  model,
  tools: [pay],
  store: postgres(url),
  worker: { leaseMs: 3_000, onError: (_session, error) => tell(error) },
  onError: (_where, error) => tell(error),
})
process.on('disconnect', () => process.exit())
process.send?.('started')
for (;;) await harness.work().catch(tell)
