// A process that runs a suite of 200 cases with 5 trials on a store: `node child-suite.js STORE`. It says `trial` for each that has its
// verdict, and at the end the counts and the cost.
import { scripted, sqlite } from '../../src/index.ts'
import { defineSuite, runSuite } from '../../src/evals/index.ts'

const [path = ''] = process.argv.slice(2)

const store = sqlite(path)
const usage = { inputTokens: 10, outputTokens: 1 }
const suite = defineSuite({
  name: 'killed',
  agent: { model: scripted(() => ({ text: 'right', cost: 1_000, usage, delayMs: 2 })), worker: { leaseMs: 2_000 } },
  cases: Array.from({ length: 200 }, (_, i) => ({ id: `case-${i}`, input: `Question ${i}` })),
  trials: 5,
  parallel: 8,
  scorers: [({ text }) => text === 'right'],
})
const { counts, cost, status } = await runSuite(suite, { store, onTrial: () => process.stdout.write('trial\n') })
process.stdout.write(`${JSON.stringify({ counts, cost, status })}\n`)
await store.close()
