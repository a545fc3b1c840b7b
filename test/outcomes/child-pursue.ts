// A process that pursues an outcome, for kill.long.test.ts, which kills it before or after one of its commits.
import { Harness, sqlite } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { look, poet, TASK } from './scripts.ts'

/** `stop`: waits to be killed before or after the commit with this number. 0 for none. */
export type PursueOrder = { readonly file: string; readonly stop: number; readonly when: 'before' | 'after' }

const order = JSON.parse(process.argv[2] ?? '{}') as PursueOrder
let commits = 0

function here(): Promise<never> {
  process.stdout.write('here\n')
  return new Promise(() => setInterval(() => {}, 60_000))
}

const inner = sqlite(order.file)
const store = storeWith(inner, {
  commit: async (writes) => {
    commits += 1
    const stops = commits === order.stop
    if (stops && order.when === 'before') return here()
    const receipts = await inner.commit(writes)
    return stops ? here() : receipts
  },
})
const harness = new Harness({ model: poet(), store })
await harness.open({ id: 's', reuse: true })
const session = harness.session('s')
await session.pursue({ ...TASK, id: 'mine', roundsMax: 5 })
const worked = harness.work()
while ((await look(session)).end === null) await new Promise((resolve) => setTimeout(resolve, 5))
await harness.close()
await worked
await inner.close()
process.stdout.write(`ended ${commits}\n`)
