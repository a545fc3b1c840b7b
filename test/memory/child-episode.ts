// A process that runs a session with episodes on, for episode-kill.long.test.ts, which kills it where it stops. It prints the episodes there are.
import { join } from 'node:path'
import { type CompleteStore, Harness, scripted, sqlite } from '../../src/index.ts'
import { memoryPlugin, openMemory } from '../../src/memory/index.ts'
import { storeWith } from '../../sim/store-with.ts'

const [folder = '', stop = '', runs = '0'] = process.argv.slice(2)

function here(): Promise<never> {
  process.stdout.write('here\n')
  return new Promise(() => setInterval(() => {}, 60_000))
}

const inner = sqlite(join(folder, 'terret.db'))
let isWritten = false
const commit: CompleteStore['commit'] = async (writes) => {
  // The first commit after the episode was written is the consumer's own.
  if (stop === 'written' && isWritten) return here()
  const ends = JSON.stringify(writes).includes('"run.settled"')
  const receipts = await inner.commit(writes)
  return stop === 'settled' && ends ? here() : receipts
}
const store = storeWith(inner, { commit })
const memory = openMemory({ file: join(folder, 'learnings.db'), store })
const plugin = memoryPlugin(memory, { episodes: true })
const consumers = (plugin.consumers ?? []).map((consumer) => ({
  ...consumer,
  run: async (...given: Parameters<typeof consumer.run>) => {
    await consumer.run(...given)
    isWritten = true
  },
}))
const harness = new Harness({ model: scripted(() => 'It is at 10.0.0.7.'), store, plugins: [{ ...plugin, consumers }] })
await harness.open({ id: 's', reuse: true })
for (let n = 0; n < Number(runs); n++) await harness.session('s').run('Where is staging?')
await harness.work({ idleMs: 300 })
await harness.close()
const episodes = await memory.episodes('default')
process.stdout.write(`${JSON.stringify(episodes.map(({ asked, answer }) => ({ asked, answer })))}\n`)
await memory.close()
await inner.close()
