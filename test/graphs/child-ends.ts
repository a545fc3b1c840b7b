// A process that runs a graph until it rests, for kill-ends.long.test.ts: it kills itself right after its n-th commit is on disk. Without a
// number it prints how the run ended. `delegate` is the delegation whose reviewer never approves, `saga` a run that fails and is undone,
// `stop` a run that is stopped and has a finalizer.
import { appendFileSync } from 'node:fs'
import { delegateAgents, delegateGraph, END, type Graph, last, START, withState } from '../../src/graphs/index.ts'
import { defineTool, Harness, type Result, type CompleteStore } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { objectField } from '../../src/tools/core/argument-schema.ts'
import { storeWith } from '../../sim/store-with.ts'
import { delegateCrew, NO } from './delegate-crew.ts'

const [file = '', which = '', killAt = '0'] = process.argv.slice(2)
const SESSION = 'killed'
const { node, graph } = withState({ word: last('') })

/** Writes down that it ran, with its key. */
function ran(name: string, key: string): void {
  appendFileSync(`${file}.journal`, `${name} ${key}\n`)
}

const act = (name: string) =>
  node({
    effect: 'idempotent',
    run: (_args, { key }) => {
      ran(name, key)
      return { word: name }
    },
  })

const saga = graph({
  name: 'saga',
  nodes: {
    book: act('book'),
    note: act('note'),
    pay: act('pay'),
    send: node({
      effect: 'idempotent',
      run: () => {
        throw new Error('No post today.')
      },
    }),
    unbook: act('unbook'),
    refund: act('refund'),
  },
  edges: [
    [START, 'book'],
    ['book', 'note'],
    ['note', 'pay'],
    ['pay', 'send'],
    ['send', END],
  ],
  onFailure: { book: 'unbook', pay: 'refund' },
})

const stop = graph({
  name: 'stop',
  nodes: {
    first: act('first'),
    second: node({
      effect: 'idempotent',
      run: async (_args, { key, signal }) => {
        ran('second', key)
        const over = new Promise((resolve) => signal.addEventListener('abort', resolve))
        await harness.session(SESSION).interrupt()
        await over
        throw new Error('stopped')
      },
    }),
    sum: node({ effect: 'read', reads: ({ word }) => ({ word }), run: ({ word }) => ({ word: `so far: ${word}` }) }),
  },
  edges: [
    [START, 'first'],
    ['first', 'second'],
    ['second', END],
  ],
  onInterrupt: 'sum',
})

const work = defineTool({
  name: 'work',
  description: 'Works.',
  input: objectField({}),
  effect: 'idempotent',
  execute: (_args, { key }) => {
    ran('work', key)
    return 'worked'
  },
})

/** Each execution works once and then answers; what it says does not depend on how often a process began. */
const { model } = delegateCrew({ review: () => NO })
const worker: typeof model = {
  ...model,
  call: (request, context) => {
    const works = request.instructions.startsWith('You do') && !request.messages.some(({ role }) => role === 'tool')
    if (!works && !request.instructions.startsWith('You do')) return model.call(request, context)
    const calls = works ? [{ id: 'w', tool: 'work', args: '{}' }] : []
    const parts = works ? [] : [{ type: 'text' as const, text: 'Done.' }]
    return Promise.resolve({ type: 'reply', parts, calls, finish: works ? 'calls' : 'stop', usage: null })
  },
}

const graphs: Readonly<Record<string, Graph>> = { delegate: delegateGraph(), saga, stop }
const store = sqlite(file)
const harness = new Harness({
  model: worker,
  tools: [work],
  subagents: delegateAgents,
  graphs: Object.values(graphs),
  store: killing(store),
  secrets: {},
  worker: { leaseMs: 1_000 },
})
const result = await started()
const failure = result.status === 'failed' ? result.failure.message : ''
const output = 'output' in result ? result.output : null
process.stdout.write(`${JSON.stringify({ status: result.status, output, failure })}\n`)
await harness.close()
await store.close()

/** The first process opens the session; the next ones continue it. */
async function started(): Promise<Result> {
  await harness.open({ id: SESSION, agent: which })
  const { events } = await harness.session(SESSION).events()
  if (events.some(({ type }) => type === 'user.message')) return harness.session(SESSION).run()
  return harness.session(SESSION).run(which === 'delegate' ? { goal: 'Light it.' } : {}, { id: 'begin' })
}

function killing(inner: CompleteStore): CompleteStore {
  let commits = 0
  return storeWith(inner, {
    commit: async (writes) => {
      const receipts = await inner.commit(writes)
      commits += 1
      if (commits === Number(killAt)) process.kill(process.pid, 'SIGKILL')
      return receipts
    },
  })
}
