// 10 · Subagents: two researchers work at once, each in a session of its own. One wants to open the archive: that is asked at the top,
// decided there, and the work goes on.
// Run it: README.md here says how.
import { z } from 'zod'
import { defineTool, Harness, type Request, scripted } from 'terret'

const search = defineTool({
  name: 'search',
  description: 'Search the web',
  input: z.object({ query: z.string() }),
  effect: 'read',
  execute: ({ query }) => `One page says of ${query}: 4 °C and rain.`,
})
const archive = defineTool({
  name: 'open_archive',
  description: 'Open a volume of the archive',
  input: z.object({ volume: z.number() }),
  effect: 'once',
  approval: 'ask',
  execute: ({ volume }) => `Volume ${volume}: it was colder a hundred years ago.`,
})

/** What the tools and the children said to a model so far. */
function results({ messages }: Request): readonly string[] {
  return messages.flatMap((message) => {
    return message.role === 'tool' && typeof message.content === 'string' ? [message.content] : []
  })
}

// The one who leads gives two tasks in one reply, and makes one answer of what comes back.
const lead = scripted([
  {
    calls: [
      { tool: 'subagent', args: { agent: 'researcher', task: 'How is the weather in Oslo today?' } },
      { tool: 'subagent', args: { agent: 'researcher', task: 'How was it a hundred years ago?' } },
    ],
  },
  (request) => results(request).join(' '),
])
// The researchers: the same agent twice, each with its own task and nothing of the conversation above.
const researcher = scripted((request) => {
  const [found] = results(request)
  if (found !== undefined) return `I found this. ${found}`
  const old = JSON.stringify(request.messages).includes('hundred years')
  return { calls: [old ? { tool: 'open_archive', args: { volume: 26 } } : { tool: 'search', args: { query: 'Oslo' } }] }
})

const harness = new Harness({
  model: lead,
  tools: [search, archive],
  subagents: {
    researcher: {
      description: 'finds things out',
      model: researcher,
      toolAccess: { allow: ['search', 'open_archive'] },
      limits: { modelRequests: 8 },
    },
  },
})

const parked = await harness.run('Compare the weather in Oslo with that of a hundred years ago.')
const session = harness.session(parked.sessionId)
for (const pending of parked.pending) {
  console.log(
    `${parked.status}: ${pending.tool} ${JSON.stringify(pending.args)}, ${pending.path.length - 1} session below`,
  )
  await session.decide({ ...pending, allow: true, by: 'ana' })
}
const result = await session.run()
console.log(`${result.status}: ${result.text}`)
for (const { agent, status, outcome } of (await harness.list({ order: 'id', limit: 500, root: session.id })).cards)
  console.log(`  ${agent} ${status} ${outcome}`)
await harness.close()
