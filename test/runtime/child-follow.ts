// A process that drives the session "one" of an SQLite file, for follow-process.long.test.ts, which follows it from outside. Its model says
// words slowly; told to `stall` it never ends its reply, and waits to be killed. `trouble` leaves
// a session as an attempt does that failed before it had written anything.
import { setTimeout as pause } from 'node:timers/promises'
import { Harness, type Model } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { startedOrResumed } from './killable.ts'

const [file = '', how = ''] = process.argv.slice(2)
const words = Array.from({ length: 40 }, (_, i) => `word ${i}, `)
const model: Model = {
  name: 'slow',
  call: async (_request, context) => {
    for (const [i, text] of words.entries()) {
      context.emit({ kind: 'text', part: 0, text })
      await pause(2)
      if (how === 'stall' && i === words.length / 2) await pause(60_000)
    }
    const parts = [{ type: 'text', text: words.join('') }] as const
    return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
  },
}
const store = sqlite(file)
const harness = new Harness({ model, store, worker: { leaseMs: 500 } })
if (how === 'trouble') {
  const claim = await store.claim('theirs', 'w', 1_000)
  await store.release('theirs', claim?.epoch ?? 0, { attempts: 1, reason: 'no luck', until: store.now() + 60_000 })
} else if (how === 'remove') await harness.remove('one')
else await startedOrResumed(harness, 'one', 'Say it.')
process.stdout.write('done\n')
await harness.close()
await store.close()
