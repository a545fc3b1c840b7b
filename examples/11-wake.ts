// 11 · A session that wakes itself, and a worker process that drives whatever is due in the file.
// Run it: README.md here says how.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { defineTool, Harness, output, scripted, sqlite } from 'terret'

// What a call asks to be woken for is written in the same commit as its result.
const remind = defineTool({
  name: 'remind',
  description: 'Look at this session again later',
  input: z.object({ inMs: z.number(), reason: z.string() }),
  effect: 'read',
  execute: ({ inMs, reason }, { clock }) => {
    const wake = { type: 'wake.scheduled', due: clock.now() + inMs, reason, key: reason } as const
    return output({ content: `You will look again: ${reason}`, follows: [wake] })
  },
})

/** The same agent in every process: the sessions are in the file. */
function open(file: string) {
  const model = scripted(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'The dough rests.'
    const text = last?.role === 'user' ? last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : ''
    if (text.includes('take it out')) return 'The bread is out of the oven.'
    return { calls: [{ tool: 'remind', args: { inMs: 300, reason: 'take it out' } }] }
  })
  const store = sqlite(file)
  return { store, harness: new Harness({ model, tools: [remind], store }) }
}

const [mode = '', given = ''] = process.argv.slice(2)
if (mode === 'worker') {
  // Any number of these may run. It sleeps to the next wake, and ends when nothing was due for a second.
  const { harness, store } = open(given)
  const { looks } = await harness.work({ idleMs: 1_000 })
  console.log(`worker: ${looks} looked at`)
  await harness.close()
  await store.close()
} else {
  const folder = mkdtempSync(join(tmpdir(), 'terret-wake-'))
  const { harness, store } = open(join(folder, 'terret.db'))
  const session = await harness.open()
  console.log(`${(await session.run('Bake a bread.')).text}`)
  const [card] = (await harness.list({ order: 'id', limit: 500 })).cards
  console.log(`${card?.status}, ${card?.wakes} wake`)
  const script = fileURLToPath(import.meta.url)
  spawnSync(process.execPath, [script, 'worker', join(folder, 'terret.db')], { stdio: 'inherit' })
  console.log(`${(await session.run()).text}`)
  await harness.close()
  await store.close()
  rmSync(folder, { recursive: true })
}
