// A process that runs a session with a consumer, for kill.long.test.ts, which kills it where it stops. Each call of the consumer adds a line to
// a file, so that calls can be counted over all processes.
import { appendFileSync } from 'node:fs'
import { type CompleteStore, type Consumer, Harness, scripted, sqlite } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'

/** `stop`: where it waits to be killed. `has`: whether it has the consumer. `runs`: how many runs it begins. */
export type ConsumeOrder = {
  readonly file: string
  readonly lines: string
  readonly stop: 'before the end' | 'after the end' | 'inside' | 'nowhere'
  readonly has: boolean
  readonly runs: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as ConsumeOrder

function here(): Promise<never> {
  process.stdout.write('here\n')
  return new Promise(() => setInterval(() => {}, 60_000))
}

const inner = sqlite(order.file)
const commit: CompleteStore['commit'] = async (writes) => {
  const ends = JSON.stringify(writes).includes('"run.settled"')
  if (ends && order.stop === 'before the end') return here()
  const receipts = await inner.commit(writes)
  return ends && order.stop === 'after the end' ? here() : receipts
}
const consumer: Consumer = {
  name: 'notes',
  run: async ({ session, prompt }, { key, repeated }) => {
    appendFileSync(order.lines, `${JSON.stringify({ session, prompt, key, repeated })}\n`)
    if (order.stop === 'inside') await here()
  },
}
const store = storeWith(inner, { commit })
const plugins = order.has ? [{ name: 'p', consumers: [consumer] }] : []
const harness = new Harness({ model: scripted(() => 'done'), store, plugins })
await harness.open({ id: 's', reuse: true })
for (let n = 0; n < order.runs; n++) await harness.session('s').run(`run ${n}`)
await harness.work({ idleMs: 300 })
await harness.close()
await inner.close()
process.stdout.write('ended\n')
