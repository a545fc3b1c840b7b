// A worker that drives one session of an SQLite store: claims it as soon as it can, starts a model call, and prints its own
// worker id. Then it waits to be killed. Run by live-process.long.test.ts.
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import type { Card } from '../../src/ports/store.ts'
import type { OwnerBody } from '../../src/kernel/event.ts'
import { SharedLive } from '../../src/live/shared-live.ts'
import { socketTransport } from '../../src/live/socket-transport.ts'
import { runtimeClock as clock } from '../../src/runtime/state/machine.ts'

const [file = '', folder = '', worker = ''] = process.argv.slice(2)
const leaseMs = 500
const session = 's'
const store = sqlite(file)
const live = new SharedLive({ store, clock, openTransport: async () => socketTransport(folder) })

if ((await store.card(session)) === null) await write(0, 0, { type: 'session.created', agent: 'a', planner: 'p' })
await live.serve(worker, leaseMs)
const epoch = await claim()
const { seq } = (await store.card(session)) ?? { seq: 0 }
await write(epoch, seq, { type: 'model.started', shows: [], allow: 'all', held: 0 })
for (let i = 0; i < 300; i++) {
  live.publish(session, seq + 1, { kind: 'text', part: 0, text: `${worker} ${i}, ` })
  await pause(1)
}
process.stdout.write('said\n')
await pause(60_000)

async function claim(): Promise<number> {
  for (;;) {
    const claimed = await store.claim(session, worker, leaseMs)
    if (claimed) return claimed.epoch
    await pause(20)
  }
}

async function write(as: number, expectedSeq: number, body: OwnerBody): Promise<void> {
  const at = store.now()
  const end = { seq: expectedSeq + 1, at }
  const none = { due: null, cost: 0, asks: [], waits: [], wakes: 0, outcome: null }
  const card: Card = { session, agent: 'a', root: session, status: 'running', ...end, ...none }
  const events = [{ ...body, ...end, epoch: as }]
  await store.commit([{ session, lane: 'owner', epoch: as, expectedSeq, events, card }])
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}
