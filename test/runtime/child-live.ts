// A process that drives a session: lines on stdin tell it what to say, and it answers by lines on stdout. When stdin ends
// it has nothing left to do and must exit by itself, even with readers still connected. Run by live-process.long.test.ts.
import { createInterface } from 'node:readline'
import { SharedLive } from '../../src/live/shared-live.ts'
import { socketTransport } from '../../src/live/socket-transport.ts'
import { runtimeClock as clock } from '../../src/runtime/state/machine.ts'
import { Directory } from './live-directory.ts'

export type Order =
  | { readonly type: 'say'; readonly seq: number; readonly pieces: readonly string[] }
  | { readonly type: 'finish'; readonly seq: number }
  /** Calls of 64 KiB each, one after the other, with room for the socket between them. Answers the most memory used. */
  | { readonly type: 'flood'; readonly calls: number }
  | { readonly type: 'follow'; readonly address: string }
  | { readonly type: 'close' }

export type Answer =
  | { readonly type: 'address'; readonly address: string }
  | { readonly type: 'heard'; readonly text: string }
  | { readonly type: 'flooded'; readonly grewBytes: number }

const session = 's'
const directory = new Directory()
const live = new SharedLive({
  store: directory,
  clock,
  openTransport: async () => socketTransport(process.argv[2] ?? ''),
})

await live.serve('w', 60_000)
answer({ type: 'address', address: directory.addresses.get('w') ?? '' })
for await (const line of createInterface({ input: process.stdin })) await obey(JSON.parse(line) as Order)

async function obey(order: Order): Promise<void> {
  if (order.type === 'say') say(order.seq, order.pieces)
  if (order.type === 'finish') live.finish(session, order.seq)
  if (order.type === 'flood') answer({ type: 'flooded', grewBytes: await flood(order.calls) })
  if (order.type === 'close') await live.close()
  if (order.type !== 'follow') return
  directory.addresses.set('other', order.address)
  directory.owner = 'other'
  live.subscribe(session, ({ text }) => answer({ type: 'heard', text }))
}

function say(seq: number, pieces: readonly string[]): void {
  for (const text of pieces) live.publish(session, seq, { kind: 'text', part: 0, text })
}

async function flood(calls: number): Promise<number> {
  const before = usedBytes()
  const pieces = Array.from({ length: 64 }, () => 'x'.repeat(1024))
  let most = 0
  for (let seq = 2; seq < 2 + calls; seq++) {
    say(seq, pieces)
    await new Promise((done) => setImmediate(done))
    if (seq % 64 === 0) most = Math.max(most, usedBytes())
  }
  return most - before
}

function usedBytes(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function answer(text: Answer): void {
  process.stdout.write(`${JSON.stringify(text)}\n`)
}
