// A process with readers that read a little and then no more, for follow.long.test.ts: what its memory does while a lot is written and
// said, and how long an event takes to a reader that reads. Prints one line of JSON.
import { Harness, type Model } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const [file = ''] = process.argv.slice(2)
const DEAD = 50
const ROUNDS = 6
const model: Model = {
  name: 'talker',
  call: async (_request, context) => {
    for (let i = 0; i < 4_000; i++) {
      context.emit({ kind: 'text', part: 0, text: 'x'.repeat(500) })
      if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const parts = [{ type: 'text', text: 'Done.' }] as const
    return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
  },
}
const store = sqlite(file)
const harness = new Harness({ model, store, context: { compaction: false } })
const talking = await harness.open({ id: 'talking' })
const growing = await harness.open({ id: 'growing' })
for (let i = 0; i < DEAD; i++) {
  void hearOne()
  await growing.follow().next()
  harness.watch()
}

/** Reads until something is said, and listens from then on without reading. */
async function hearOne(): Promise<void> {
  const items = talking.follow({ deltas: true })
  for (let step = await items.next(); !step.done; step = await items.next()) if (step.value.type === 'delta') return
}

const sent = new Map<number, number>()
const waits: number[] = []
const honest = growing.follow()
const reading = (async () => {
  for await (const item of honest) {
    const at = item.type === 'event' ? sent.get(item.event.seq) : undefined
    if (at !== undefined) waits.push(performance.now() - at)
  }
})()
const memory: { readonly rss: number; readonly heap: number }[] = []
let n = 0
for (let round = 0; round < ROUNDS; round++) {
  await talking.run('Talk.')
  for (let i = 0; i < 1_000; i++) {
    n += 1
    const parts = [{ type: 'text' as const, text: `${n} ${'y'.repeat(2_000)}` }]
    const at = performance.now()
    const event = { type: 'user.message' as const, id: `m${n}`, parts, when: 'after' as const }
    const [receipt] = await store.commit([{ session: 'growing', lane: 'inbox', events: [event] }])
    sent.set(receipt?.seqs[0] ?? 0, at)
  }
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  memory.push({ rss, heap: heapUsed })
}
while (waits.length < n) await new Promise((resolve) => setTimeout(resolve, 10))
await honest.return?.()
await reading
waits.sort((a, b) => a - b)
process.stdout.write(`${JSON.stringify({ memory, events: n, p99Ms: waits[Math.floor(waits.length * 0.99)] })}\n`)
await harness.close()
await store.close()
