// A process that runs sessions with extraction on, for extract.long.test.ts, which kills it where it stops. It prints how often its model was asked
// for facts about `s`, what is learned, how many extractions the log of `s` has, and for how many of them money was counted.
import { join } from 'node:path'
import { Harness, scripted, sqlite, type CompleteStore } from '../../src/index.ts'
import { EXTRACTOR } from '../../src/memory/extraction.ts'
import { memoryPlugin, openMemory } from '../../src/memory/index.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import type { Priced } from '../../src/models/http/hosted-model.ts'
import { storeWith } from '../../sim/store-with.ts'

const [folder = '', stop = '', session = ''] = process.argv.slice(2)

function here(): Promise<never> {
  process.stdout.write('here\n')
  return new Promise(() => setInterval(() => {}, 60_000))
}

const inner = sqlite(join(folder, 'terret.db'))
const commit: CompleteStore['commit'] = async (writes) => {
  const said = JSON.stringify(writes)
  if (stop === 'answered' && said.includes('extracted')) return here()
  const receipts = await inner.commit(writes)
  return stop === 'written' && said.includes('extracted') ? here() : receipts
}
const store = storeWith(inner, { commit })
let asked = 0
const model: Priced = {
  ...scripted(async ({ instructions, session: of }) => {
    if (instructions !== EXTRACTOR) return { text: 'Done.', cost: 0 }
    if (of === 's') asked += 1
    if (stop === 'in the model') await here()
    const facts = [{ kind: 'lesson', title: 'Staging', detail: 'It is at 10.0.0.7.', from: [2] }]
    return { text: JSON.stringify({ facts }), usage: { inputTokens: 1, outputTokens: 1 }, cost: 100 }
  }),
  able: { name: 'scripted', native: 'no' },
  outputTokensMax: 100,
  secrets: {},
  profile: async () => ({ ...FREE_PROFILE, price: { input: 1, output: 1 } }),
}
const memory = openMemory({ file: join(folder, 'learnings.db'), store })
const extract = { tokens: 1, calls: 0, runs: 1 }
const plugins = [memoryPlugin(memory, { extract })]
const harness = new Harness({ model, store, plugins, budget: { sessionUsd: 1 } })
await harness.open({ id: session })
await harness.session(session).run('Where is staging?')
await harness.close()
const { events } = await inner.read('s', 0)
const marks = events.filter((event) => event.type === 'note.added' && event.text.includes('extracted')).length
const learned = (await memory.list('default')).length
const { spent = 0, assumed = 0 } = (await inner.account('session:s')) ?? {}
process.stdout.write(`${asked} ${learned} ${marks} x ${(assumed > 0 ? 1 : 0) + (spent - assumed > 0 ? 1 : 0)}\n`)
await memory.close()
await inner.close()
