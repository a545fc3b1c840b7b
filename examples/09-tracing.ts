// 09 · Tracing: what an agent and its child did, as spans in a file. They are made from the log, and can be made again.
// Run it: README.md here says how.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted } from 'terret'
import { localTraces, readTrace, readTree, type SpanRecord, spansOf, tracing } from 'terret/tracing'

const folder = mkdtempSync(join(tmpdir(), 'terret-example-'))
const weather = defineTool({
  name: 'get_weather',
  description: 'Current weather for a city',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: async ({ city }) => ({ city, celsius: 4 }),
})

// A script stands for the model: the agent gives a task to a child, and calls a tool that does not exist.
const model = scripted(({ session, messages }) => {
  const asked = messages.some((message) => message.role === 'tool')
  const usage = { inputTokens: 200, outputTokens: 10 }
  if (asked) return { text: 'It is 4 °C in Oslo.', usage }
  if (session.includes('~')) return { calls: [{ tool: 'get_weather', args: { city: 'Oslo' } }], usage }
  const calls = [
    { tool: 'subagent', args: { task: 'Find out the weather in Oslo.' } },
    { tool: 'send_mail', args: { to: 'ana' } },
  ]
  return { calls, usage }
})

const store = memory()
const traces = localTraces({ dir: folder, name: 'example', env: {} })
const harness = new Harness({ model, tools: [weather], subagents: true, store, tracing: tracing({ sinks: [traces] }) })
const { sessionId } = await harness.run('What is the weather in Oslo? Tell Ana.')
await harness.close()

const [file = ''] = readdirSync(traces.folder)
const spans = await readTrace(join(traces.folder, file))
print(null, '')
const again = spansOf(await readTree(store, sessionId))
console.log(
  `The log gives the same ${again.filter((span, i) => span.spanId === spans[i]?.span_id).length} spans again.`,
)
rmSync(folder, { recursive: true })

function print(parent: string | null, indent: string): void {
  for (const span of spans.filter((one) => one.parent_id === parent)) {
    console.log(`${indent}${span.name}${about(span)}`)
    print(span.span_id, `${indent}  `)
  }
}

function about({ attributes }: SpanRecord): string {
  const summary = attributes['terret.summary']
  const tokens = attributes['gen_ai.usage.total_tokens']
  if (summary !== undefined) return ` · ${summary}`
  return tokens === undefined ? '' : ` · ${tokens} tokens`
}
