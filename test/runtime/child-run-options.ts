// A process that runs one session with options, metadata and a context until it rests, for run-options-kill.test.ts, which kills it
// after the commit that it is told. Every request and every context that was built adds a line to a file.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite } from '../../src/index.ts'
import { killable } from './killable.ts'

const [file = '', session = '', lines = '', last = '0'] = process.argv.slice(2)

function note(line: object): void {
  appendFileSync(lines, `${JSON.stringify(line)}\n`)
}

const model = scripted(({ messages }) => {
  const turns = messages.filter(({ role }) => role === 'assistant').length
  return turns < 2
    ? { calls: [{ tool: 'look', args: { n: turns } }] }
    : { calls: [{ tool: 'final_result', args: { turns } }] }
})
const chosen: typeof model = {
  ...model,
  call: (request, context) => {
    note({ seq: request.seq, request })
    return model.call(request, context)
  },
}
const tool = (name: string) =>
  defineTool({ name, description: name, input: z.object({ n: z.number() }), effect: 'read', execute: () => 'seen' })
const store = killable(sqlite(file), Number(last))
const harness = new Harness({
  model: scripted(() => ({ text: 'the wrong model' })),
  models: { named: { chosen } },
  tools: [tool('look'), tool('touch')],
  instructions: 'Be brief.',
  store,
  worker: { leaseMs: 2_000 },
  deps: ({ metadata }) => {
    note({ built: metadata })
    return {}
  },
})
const known = (await store.card(session)) !== null
const handle = known ? harness.session(session) : await harness.open({ id: session, metadata: { tenant: 'acme' } })
const before = (await handle.events()).events.some(({ type }) => type === 'user.message')
const result = before
  ? await handle.run()
  : await handle.run('go', {
      model: 'chosen',
      instructions: 'Be odd.',
      tools: ['look'],
      limits: { modelRequests: 9 },
      output: { schema: z.object({ turns: z.number() }), mode: 'tool' },
      metadata: { user: 'ann' },
    })
await harness.close()
await store.close()
const output = result.status === 'completed' ? result.output : null
process.stdout.write(JSON.stringify({ status: result.status, output, metadata: result.metadata }))
