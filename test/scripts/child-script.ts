// A process that runs a cell until it rests, for kill.long.test.ts, which kills it on the way. It writes down each call
// that is made. At the place where it is to be killed it prints a line and waits; otherwise it prints how the run ended.
import { appendFileSync } from 'node:fs'
import { Harness, type Priced, scripted } from '../../src/index.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import { createScripts } from '../../src/scripts/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { defineTool } from '../../src/tools/core/tool.ts'
import { objectField, textField } from '../../src/tools/core/argument-schema.ts'

const [file = '', journal = '', session = '', script = '', stopAfter = ''] = process.argv.slice(2)
let made = 0

/** The call is written down before it is made, as a provider would know of it. */
async function done(what: string): Promise<void> {
  appendFileSync(journal, `${what}\n`)
  made += 1
  if (made !== Number(stopAfter)) return
  process.stdout.write('here\n')
  await new Promise(() => {})
}

const input = objectField({ to: textField('Whom.') })
const execute = async ({ to }: { readonly to: string }): Promise<string> => {
  await done(`send ${to}`)
  return `sent to ${to}`
}
const send = defineTool({ name: 'send', description: 'Sends.', input, approval: 'ask', execute })
const post = defineTool({ name: 'post', description: 'Posts.', input, execute })

const own = scripted(async ({ messages, tools }) => {
  if (tools.length === 0) {
    const [part] = messages[0]?.role === 'user' ? messages[0].parts : []
    await done(part?.type === 'text' ? part.text : '')
    return { text: 'yes', usage: { inputTokens: 10, outputTokens: 8 }, cost: 100 }
  }
  const result = messages.findLast((message) => message.role === 'tool')
  return result === undefined
    ? { calls: [{ tool: 'script', args: { script } }] }
    : `told: ${result.role === 'tool' && typeof result.content === 'string' ? result.content : ''}`
})
/** Each question holds the price of its input and of ten tokens, and costs a hundred micros. */
const profile = () => Promise.resolve({ ...FREE_PROFILE, price: { input: 2, output: 10 } })
const able = { name: 'priced', native: 'no' } as const
const model: Priced = { ...own, able, outputTokensMax: 10, secrets: {}, profile }
const scripts = createScripts({ mode: 'on', limits: { modelCalls: 2_000, toolCalls: 2_000 } })
const harness = new Harness({
  model,
  store: sqlite(file),
  secrets: {},
  tools: [send, post, scripts.tool],
  graphs: [scripts.planner],
  budget: { treeUsd: 1 },
  worker: { graceMs: 50 },
})
const handle = await harness.open({ id: session, reuse: true })
const known = (await handle.events()).events.some(({ type }) => type === 'user.message')
const { status, text } = await (known ? handle.run() : handle.run('go'))
process.stdout.write(`${JSON.stringify({ status, text })}\n`)
await harness.close()
