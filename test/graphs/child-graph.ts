// A process that runs a graph until it rests, for kill.test.ts, which kills it on the way. At the place where it is to be killed it
// prints a line and waits; without a place it prints how the run ended.
import { appendFileSync } from 'node:fs'
import { append, END, last, START, send, withState } from '../../src/graphs/index.ts'
import { Harness, type Result, scripted, type CompleteStore } from '../../src/index.ts'
import type { Write } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { moment } from './moment.ts'
import { storeWith } from '../../sim/store-with.ts'

const [file = '', journal = '', session = '', place = '', word = ''] = process.argv.slice(2)

/** Of the first superstep, and of the other two branches. */
const fourResults = moment()
let results = 0

const { node, graph } = withState({ facts: append<string>(), draft: last<string>() })

/** Writes down that it ran, with its key. At the place of the kill it waits. */
async function done(name: string, key: string): Promise<void> {
  appendFileSync(journal, `${name} ${key}\n`)
  if (place !== name) return
  process.stdout.write(`${place}\n`)
  await new Promise(() => {})
}

const report = graph({
  name: 'report',
  nodes: {
    plan: node({
      run: async (_args, { key }) => {
        await done('plan', key)
        return { facts: ['planned'] }
      },
    }),
    left: node({
      run: async (_args, { key }) => {
        await done('left', key)
        return { facts: ['left'] }
      },
    }),
    fetch: node({
      effect: 'idempotent',
      run: async ({ n }: { readonly n: number }, { key }) => {
        // The one that is killed waits until the results of the others are on disk.
        if (place === `fetch-${n}`) await fourResults.here
        await done(`fetch-${n}`, key)
        return { facts: [`fetched ${n}`] }
      },
    }),
    write: node({
      reads: ({ facts }) => ({ facts }),
      run: async ({ facts }, { key }) => {
        await done('write', key)
        return { draft: facts.join(', ') }
      },
    }),
  },
  edges: [
    [START, 'plan'],
    [START, 'left'],
    { from: 'plan', to: ['fetch'], by: () => [0, 1, 2].map((n) => send('fetch', { n })) },
    [['left', 'fetch'], 'write'],
    ['write', END],
  ],
})

const store = sqlite(file)
const harness = new Harness({
  model: scripted([]),
  graphs: [report],
  store: halting(store),
  secrets: {},
  worker: { leaseMs: 1_000 },
})
const result = await started(session)
const failure = result.status === 'failed' ? result.failure.message : ''
process.stdout.write(
  `${JSON.stringify({ status: result.status, output: 'output' in result ? result.output : null, failure })}\n`,
)
await harness.close()
await store.close()

/** The first process opens the session; the next ones continue it, or send it an input. */
async function started(id: string): Promise<Result> {
  if ((await store.card(id)) !== null) return harness.session(id).run(word === '' ? undefined : word)
  await harness.open({ id, agent: 'report' })
  return harness.session(id).run({})
}

/** A store whose commit at the chosen place reaches the disk but never returns to its caller. */
function halting(inner: CompleteStore): CompleteStore {
  const commit: CompleteStore['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    for (const write of writes) results += write.events.filter(({ type }) => type === 'agent.tool_result').length
    if (results === 4) fourResults.come()
    if (place !== 'reply' || !writes.some(asksForFetch)) return receipts
    process.stdout.write('reply\n')
    return new Promise(() => {})
  }
  return storeWith(inner, { commit })
}

function asksForFetch(write: Write): boolean {
  if (write.lane !== 'owner') return false
  return write.events.some(
    (event) => event.type === 'agent.message' && event.calls.some(({ tool }) => tool === 'fetch'),
  )
}
