// A worker process for wake-process.long.test.ts: it drives what is due in a file. A session that is told to note notes its name once,
// one that is told to kill kills the process before anything of its run is written, one that is told to die does so in a tool
// that it calls again and again, one that is told to be slow takes its time, one that is told to hang gets no answer in the first
// process that asks, and one that meets a busy provider waits.
import { appendFileSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Harness, type Hook, scripted, type Step } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const [file = '', journal = '', provider = 'well', leaseMs = '30000', idleMs = ''] = process.argv.slice(2)

const note = defineTool({
  name: 'note',
  description: 'writes down who called it',
  input: z.object({}),
  effect: 'once',
  execute: (_args, { session }) => {
    appendFileSync(journal, `${session}\n`)
    return 'noted'
  },
})

const poison: Hook = {
  type: 'user_prompt_submit',
  run: ({ prompt }) => {
    if (!prompt.includes('kill')) return
    process.stdout.write('killed\n')
    process.kill(process.pid, 'SIGKILL')
  },
}

const die = defineTool({
  name: 'die',
  description: 'kills its process',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: () => {
    process.stdout.write('killed\n')
    process.kill(process.pid, 'SIGKILL')
  },
})

const model = scripted(async ({ messages }): Promise<Step> => {
  const last = messages.at(-1)
  const [first] = messages
  const task = first?.role === 'user' && first.parts[0]?.type === 'text' ? first.parts[0].text : ''
  if (task === 'die') return { calls: [{ tool: 'die', args: { n: messages.length } }] }
  if (task === 'hang' && !readFileSync(journal, 'utf8').includes('hung')) {
    appendFileSync(journal, 'hung\n')
    await new Promise(() => setTimeout(() => {}, 600_000))
  }
  if (task === 'slow') await new Promise((resolve) => setTimeout(resolve, 600))
  if (last?.role === 'tool') return 'done'
  if (provider === 'busy') return { error: 'rate_limit', message: 'Come back later.', retryAfterMs: 1_500 }
  const asked = last?.role === 'user' && last.parts.some((part) => part.type === 'text' && part.text.includes('note'))
  return asked ? { calls: [{ tool: 'note' }] } : 'done'
})

const store = sqlite(file)
const harness = new Harness({
  model,
  tools: [note, die],
  store,
  hooks: [poison],
  secrets: {},
  worker: { leaseMs: Number(leaseMs), lingerMs: 0 },
})
process.stdout.write('up\n')
const worked = await harness.work(idleMs === '' ? {} : { idleMs: Number(idleMs) })
process.stdout.write(`${JSON.stringify(worked)}\n`)
await harness.close()
await store.close()
