// 02 · An approval: the run parks before a risky call, in a file, and goes on when somebody has decided.
// Run it: README.md here says how.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite } from 'terret'

const folder = mkdtempSync(join(tmpdir(), 'terret-example-'))
const file = join(folder, 'sessions.db')

const publish = defineTool({
  name: 'publish',
  description: 'Publish a page',
  input: z.object({ page: z.string() }),
  effect: 'once', // never twice: after a crash in the window its outcome is `unknown`
  approval: 'ask',
  execute: ({ page }) => `${page} is online`,
})

// One process asks.
const store = sqlite(file)
const model = scripted([{ calls: [{ tool: 'publish', args: { page: 'news.html' } }] }])
const harness = new Harness({ model, tools: [publish], store })
const parked = await harness.run('Publish the news.')
const [call] = parked.pending
console.log(`${parked.status}: ${call?.tool} ${JSON.stringify(call?.args)}`)
await harness.close()
await store.close()

// Later, another one decides and goes on.
const again = sqlite(file)
const later = new Harness({ model: scripted(['The news are online.']), tools: [publish], store: again })
const session = later.session(parked.sessionId)
await session.decide({ callId: call?.callId ?? '', allow: true, by: 'ana', why: 'read it twice' })
const result = await session.run()
console.log(`${result.status}: ${result.text}`)
await later.close()
await again.close()
rmSync(folder, { recursive: true })
