// 12 · Memory: one session learns something and schedules a look, a later one recalls it. A model extracts facts that were not noted. The
// files are projections of the log.
// Run it: README.md here says how.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Harness, scripted, sqlite } from 'terret'
import { directiveTool, memoryPlugin, openMemory } from 'terret/memory'

const home = mkdtempSync(join(tmpdir(), 'terret-memory-'))
const store = sqlite(join(home, 'terret.db'))
const memory = openMemory({ file: join(home, 'learnings.db'), store })
const dir = join(home, 'sessions')

const model = scripted([
  {
    calls: [
      {
        tool: 'loop_directive',
        args: {
          outcome: 'sleep',
          summary: 'Deployed to staging; the smoke tests run.',
          wakes: [{ reason: 'did the smoke tests pass?', delay_seconds: 600, key: 'smoke' }],
          learnings: [
            {
              kind: 'lesson',
              title: 'Staging needs the VPN',
              detail: 'Deploys to staging fail without it.',
              promote: true,
            },
          ],
        },
      },
    ],
  },
  'Deployed. I will look at the smoke tests in ten minutes.',
  ({ messages }) => {
    const [note] = messages[0]?.role === 'user' ? messages[0].parts : []
    console.log(`\nthe model reads before the question:\n${note?.type === 'text' ? note.text : ''}`)
    return 'Switch the VPN on first.'
  },
  'It is up.',
])
// Another model is asked after a run what later sessions should know. The numbers are low, so that two runs are enough here.
const facts = [{ kind: 'lesson', title: 'Server', detail: 'The user deploys the server to staging first.', from: [2] }]
const extract = { model: scripted([JSON.stringify({ facts })]), tokens: 1, calls: 1, runs: 2 }
const plugins = [memoryPlugin(memory, { dir, extract })]
const harness = new Harness({ model, store, tools: [directiveTool({ store })], plugins })

const first = await harness.run('Deploy the server to staging.')
console.log(`first: ${first.text}`)
console.log(readFileSync(join(dir, first.sessionId, 'working-buffer.md'), 'utf8'))

// Another session of the same agent knows what the first one learned, and nothing of what it is doing.
const second = await harness.run('How do I deploy to staging?')
console.log(`second: ${second.text}`)

// The files are made from the log: delete them, wake the session, and they are the same again.
const before = readFileSync(join(dir, first.sessionId, 'checkpoint.json'), 'utf8')
rmSync(join(dir, first.sessionId), { recursive: true })
await harness.work({ session: first.sessionId })
console.log(`the same bytes again: ${readFileSync(join(dir, first.sessionId, 'checkpoint.json'), 'utf8') === before}`)

await memory.promote('default', { file: join(home, 'MEMORY.md') })
console.log(readFileSync(join(home, 'MEMORY.md'), 'utf8'))

// After the second run of the first session facts are extracted. Closing waits for that. Each fact names the events it is from.
await harness.session(first.sessionId).run('Is it up?')
await harness.close()
for (const { title, from } of await memory.list('default')) console.log(`learned: ${title} (${from.length} sources)`)
await memory.close()
await store.close()
rmSync(home, { recursive: true })
