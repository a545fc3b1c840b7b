// A process that takes in what sessions taught, and promotes it, while others do the same. Run by learnings.test.ts.
import { sqlite } from '../../src/index.ts'
import { openMemory } from '../../src/memory/index.ts'

const [store = '', file = '', promoted = '', ...sessions] = process.argv.slice(2)
const logs = sqlite(store)
const memory = openMemory({ file, store: logs })
for (const session of sessions) {
  await memory.learn(session)
  await memory.promote('a', { file: promoted })
}
await memory.close()
await logs.close()
