// A process that gets an exported session as JSON on stdin, and tells how a what-if of it went. Run by process.long.test.ts, which
// does the same in its own process.
import { pathToFileURL } from 'node:url'
import { Harness, memory, type HarnessOptions } from '../../src/index.ts'
import { archiveOf, type Portable, readLog, whatIf } from '../../src/replay.ts'
import { talking, type Talk, turnOf, world } from './stage.ts'

const TALK: Talk = (request) => {
  const last = request.messages.findLast(({ role }) => role === 'user')
  if (JSON.stringify(last).includes('bank'))
    return turnOf(request) === 0 ? { calls: [{ tool: 'look', args: { what: 'bank' } }] } : 'Open.'
  if (turnOf(request) === 0) return { calls: [{ tool: 'look', args: { what: 'invoice' } }] }
  if (turnOf(request) === 1) return { calls: [{ tool: 'subagent', args: { task: 'bank?' } }] }
  const careful = request.instructions.includes('careful')
  if (turnOf(request) === 2 && careful) return { calls: [{ tool: 'look', args: { what: 'twice' } }] }
  return turnOf(request) === (careful ? 3 : 2) ? { calls: [{ tool: 'pay', args: { to: 'ann', amount: 3 } }] } : 'Done.'
}

export function payingAgent(instructions: string): HarnessOptions {
  const { look, pay } = world()
  return { model: talking(TALK), tools: [look, pay], subagents: true, instructions, secrets: {} }
}

export async function exported(): Promise<Portable> {
  const store = memory()
  const harness = new Harness({ ...payingAgent('Pay.'), store })
  const { sessionId } = await harness.run('Pay the invoice.')
  await harness.close()
  return (await archiveOf(store, sessionId)).records
}

/** Everything but the times. */
export async function told(file: Portable): Promise<unknown> {
  const tried = await whatIf(file, { at: 6, agent: payingAgent('Be careful.') })
  const { store, session, toCase, ...plain } = tried
  const logs = []
  for (const card of await store.list({ root: session, limit: 100 })) logs.push(await readLog(store, card.session))
  const text = JSON.stringify([plain, toCase('careful'), logs], (key, value: unknown) =>
    key === 'at' || key === 'ms' ? 0 : value,
  )
  return JSON.parse(text)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  process.stdout.write(JSON.stringify(await told(JSON.parse(Buffer.concat(chunks).toString()) as Portable)))
}
