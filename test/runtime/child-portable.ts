// A process that gets a session as JSON on stdin, imports it into its own store, approves what is asked and resumes it. It prints
// what it saw. Run by portable.test.ts.
import { memory, scripted, Harness } from '../../src/index.ts'
import { importSession } from '../../src/archive/portable.ts'
import { payTool } from './portable-stage.ts'

const chunks: Buffer[] = []
for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
const value: unknown = JSON.parse(Buffer.concat(chunks).toString())
const store = memory()
const paid: number[] = []
const seen: string[] = []
const model = scripted((request) => {
  seen.push(...request.messages.map((message) => message.role))
  return 'Paid, over here.'
})
const { session: id, status } = await importSession(store, value)
const harness = new Harness({ model, tools: [payTool(paid)], store, secrets: {} })
const session = harness.session(id)
await session.send([{ type: 'resume' }])
const { pending } = await session.run()
for (const { callId, digest = '' } of pending) await session.decide({ callId, allow: true, by: 'ann', digest })
const result = await session.run()
process.stdout.write(`${JSON.stringify({ status, pending, paid, seen, ended: result.status, text: result.text })}\n`)
await harness.close()
