// A process that runs one session with options, metadata and a context until it rests, for run-options-kill.test.ts, which kills it
// after the commit that it is told. Every request and every context that was built adds a line to a file.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite, type Store } from '../../src/index.ts'

const [file = '', session = '', lines = '', last = '0'] = process.argv.slice(2)

function note(line: object): void {
  appendFileSync(lines, `${JSON.stringify(line)}\n`)
}

/** After so many commits it says so and waits to be killed. */
function killable(inner: Store): Store {
  let commits = 0
  const commit: Store['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    commits += 1
    if (commits !== Number(last)) return receipts
    process.stdout.write('here\n')
    return new Promise(() => setInterval(() => {}, 60_000))
  }
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'commit') return commit
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
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
const store = killable(sqlite(file))
const harness = new Harness({
  model: scripted(() => ({ text: 'the wrong model' })),
  models: { chosen },
  tools: [tool('look'), tool('touch')],
  instructions: 'Be brief.',
  store,
  worker: { leaseMs: 2_000 },
  context: ({ metadata }) => {
    note({ built: metadata })
    return {}
  },
})
const known = (await store.card(session)) !== null
const handle = known ? harness.session(session) : await harness.open({ id: session, metadata: { tenant: 'acme' } })
const before = (await handle.read()).events.some(({ type }) => type === 'user.message')
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
