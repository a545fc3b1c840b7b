// A harness whose handler blocks the event loop for as long as it is told. Started by watchdog.long.test.ts.
import { defineTool, Harness, scripted } from '../../src/index.ts'

const [blockMs = '2000', watchdogMs = '200', end] = process.argv.slice(2)
const input = { type: 'object', properties: {} }
const pause = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms))

let free = (): void => {}
const freed = new Promise<void>((resolve) => {
  free = resolve
})
const idle = defineTool({ name: 'idle', description: 'waits', input, effect: 'read', execute: () => freed })
const crunch = defineTool({
  name: 'crunch',
  description: 'blocks',
  input,
  effect: 'read',
  execute: async () => {
    // The thread takes a moment to start, and a loop that turns is not reported.
    await pause(1_000)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockMs))
    await pause(500)
    free()
    return 'done'
  },
})

const model = scripted([{ calls: [{ tool: 'idle' }, { tool: 'crunch' }] }, 'over'])
const harness = new Harness({ model, tools: [idle, crunch], worker: { watchdogMs: Number(watchdogMs) } })
const session = await harness.open({ id: 'child' })
console.log((await session.run('go')).text)
if (end === 'close') await harness.close()
