// A process that runs a session whose titles a model gives, for kill.long.test.ts, which kills it where it stops. Each request
// for a title adds a line to a file, so that requests can be counted over all processes.
import { appendFileSync } from 'node:fs'
import { sessionTitles } from '../../src/consumers/index.ts'
import { type CompleteStore, Harness, scripted, sqlite } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'

/** `stop`: where it waits to be killed. `runs`: how many runs it begins. */
export type TitleOrder = {
  readonly file: string
  readonly lines: string
  readonly stop: 'while it asks' | 'before the title' | 'after the title' | 'nowhere'
  readonly runs: number
}

const order = JSON.parse(process.argv[2] ?? '{}') as TitleOrder

function here(): Promise<never> {
  process.stdout.write('here\n')
  return new Promise(() => setInterval(() => {}, 60_000))
}

const inner = sqlite(order.file)
const commit: CompleteStore['commit'] = async (writes) => {
  const names = JSON.stringify(writes).includes('"user.rename"')
  if (names && order.stop === 'before the title') return here()
  const receipts = await inner.commit(writes)
  return names && order.stop === 'after the title' ? here() : receipts
}
const namer = scripted(async () => {
  appendFileSync(order.lines, 'asked\n')
  return order.stop === 'while it asks' ? here() : `Title by ${process.pid}`
})
const store = storeWith(inner, { commit })
const harness = new Harness({
  model: scripted(() => 'done'),
  store,
  plugins: [{ name: 'p', consumers: [sessionTitles({ model: namer })] }],
})
await harness.open({ id: 's', reuse: true })
for (let n = 0; n < order.runs; n++) await harness.session('s').run(`run ${n}`)
await harness.work({ idleMs: 300 })
await harness.close()
await inner.close()
process.stdout.write('ended\n')
