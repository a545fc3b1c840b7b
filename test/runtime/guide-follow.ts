// The program of docs/guide/streaming.md, word for word but for this line and its import. follow.test.ts compares and runs it.
import { Harness, memory, scripted } from '../../src/index.ts'

const store = memory()
const worker = new Harness({ model: scripted([{ deltas: ['Tulips, ', 'and ', 'lavender.'] }]), store })
const page = new Harness({ model: scripted([]), store, worker: { drives: false } })
const cards = page.watch()
const session = await worker.open({ id: 'garden' })

let text = ''
for await (const item of page.session('garden').follow({ deltas: true })) {
  if (item.type === 'delta') {
    text = text.slice(0, item.offset) + item.text
    continue
  }
  console.log(item.event.seq, item.event.type)
  if (item.event.type === 'session.created') await session.send('Plan the garden.')
  if (item.event.type === 'model.failed') text = ''
  if (item.event.type === 'run.settled') break
}
console.log(text)

for await (const change of cards) {
  if (change.type !== 'card' || change.card.outcome === null) continue
  console.log(change.card.session, change.card.status, change.card.outcome)
  break
}
await page.close()
await worker.close()
