// A real server, and sessions of every kind in it: made by a scripted model (calls, an approval that waits, a failure, a child, a graph),
// or written into its store as a log. No expectations here.
import { z } from 'zod'
import { append, END, last, START, withState } from '../../src/graphs/index.ts'
import { defineTool, type Json, type Request, type Script, type Step } from '../../src/index.ts'
import { EMPTY, next, open, type OwnerEvent, take } from '../../src/kernel/index.ts'
import type { OpenedAnswer, SessionAnswer } from '../../src/server/wire.ts'
import { type Served, served } from '../server/served.ts'
import type { Tale } from '../tracing/tale.ts'
import { cardOf } from '../../src/view/card.ts'
import { until } from '../until.ts'

const ANSWER = `The page is **ready**. Three things are in it:

1. the weather in Oslo, from *two* sources
2. what changed since last week
3. a [list of sources](https://example.org/sources)

\`\`\`ts
export const degrees = 4
\`\`\`
`

const search = defineTool({
  name: 'search',
  description: 'Search the web',
  input: z.object({ query: z.string(), limit: z.number().default(10) }),
  effect: 'read',
  execute: async ({ query }) =>
    JSON.stringify({ query, found: ['Oslo today: 4 °C and rain.', 'Oslo a century ago: snow.'] }),
})
const publish = defineTool({
  name: 'publish',
  description: 'Publish a page',
  input: z.object({ path: z.string(), text: z.string() }),
  effect: 'once',
  approval: 'ask',
  execute: async ({ path }) => `Published ${path}.`,
})
const broken = defineTool({
  name: 'fetch_page',
  description: 'Fetch a page',
  input: z.object({ url: z.string() }),
  effect: 'read',
  execute: async ({ url }) => {
    throw new Error(`${url} answered 503.`)
  },
})
/** A result of so many megabytes. */
const dump = defineTool({
  name: 'dump',
  description: 'Print very much',
  input: z.object({ mb: z.number() }),
  effect: 'read',
  execute: async ({ mb }) => `THE BEGINNING\n${'0123456789abcde\n'.repeat(mb * 65_536)}THE END`,
})
const takeAll = defineTool({
  name: 'take',
  description: 'Take very much',
  input: z.object({ text: z.string() }),
  effect: 'read',
  execute: async ({ text }) => `${text.length} characters`,
})

const { node, mapNode, graph } = withState({
  topic: last(''),
  sources: last<readonly string[]>([]),
  facts: append<string>(),
})
const report = graph({
  name: 'report',
  nodes: {
    plan: node({
      effect: 'read',
      reads: ({ topic }) => ({ topic }),
      run: ({ topic }) => ({ sources: [`${topic} today`, `${topic} then`] }),
    }),
    search: mapNode({
      effect: 'read',
      over: ({ sources }) => sources,
      run: (source) => `One page says of ${source}: 4 °C and rain.`,
      take: (results) => ({ facts: results.flatMap((result) => (result.ok ? [result.value] : [])) }),
    }),
    publish: node({ approval: 'ask', reads: ({ facts }) => ({ facts }), run: () => undefined }),
  },
  edges: [
    [START, 'plan'],
    ['plan', 'search'],
    ['search', 'publish'],
    ['publish', END],
  ],
})

const USAGE = { inputTokens: 1_180, outputTokens: 142, cachedTokens: 900, reasoningTokens: 61 }
const paid = { usage: USAGE, cost: 1_500 } as const

function firstOf({ messages }: Request): string {
  const found = messages.find(({ role }) => role === 'user')
  return found && 'parts' in found
    ? (found.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('')
    : ''
}

/** What the model does is in the first message. */
function script(): Script {
  let failures = 0
  return (request): Step => {
    const turn = request.messages.filter(({ role }) => role === 'assistant').length
    const said = firstOf(request)
    if (request.instructions.includes('You research.'))
      return { ...paid, text: 'It rains in Oslo, and it is **4 °C**.' }
    if (said.startsWith('Fail')) return { error: 'auth', message: 'The key was refused (401).' }
    if (said.startsWith('Retry'))
      return failures++ === 0
        ? { error: 'rate_limit', message: 'Too many requests.', retryAfterMs: 10 }
        : { ...paid, text: 'Done.' }
    if (said.startsWith('Delegate')) {
      const child = { tool: 'subagent', args: { agent: 'researcher', task: 'What is the weather in Oslo?' } }
      return turn === 0 ? { ...paid, text: 'I ask the researcher.', calls: [child] } : { ...paid, text: 'It rains.' }
    }
    if (said.startsWith('Script'))
      return turn === 0
        ? { ...paid, text: 'I write a program.', calls: [{ tool: 'script', args: JSON.parse(said.slice(6)) as Json }] }
        : 'Done.'
    if (said.startsWith('Dump'))
      return turn === 0 ? { calls: [{ tool: 'dump', args: { mb: Number(said.slice(5)) } }] } : 'Done.'
    if (said.startsWith('Take'))
      return turn === 0
        ? { calls: [{ tool: 'take', args: { text: `FIRST${'x'.repeat(Number(said.slice(5)))}LAST` } }] }
        : 'Done.'
    if (said.startsWith('Count')) {
      const call = { tool: 'search', args: { query: `number ${turn}`, limit: turn + 1 } }
      return turn < Number(said.slice(6)) ? { ...paid, calls: [call] } : { ...paid, text: 'Counted.' }
    }
    return published(turn)
  }
}

function published(turn: number): Step {
  if (turn === 0)
    return {
      ...paid,
      reasoning: 'The person wants the news of Oslo. I look at two sources before I write anything.',
      text: 'I look for the news first.',
      calls: [
        { tool: 'search', args: { query: 'news of Oslo', limit: 10 } },
        { tool: 'fetch_page', args: { url: 'https://news.example/oslo' } },
      ],
    }
  const args = { path: 'news.html', text: '<h1>Oslo</h1>\n<p>4 °C and rain.</p>\n<script>alert(1)</script>\u202e' }
  return turn === 1
    ? { ...paid, text: 'The page is written. I publish it.', calls: [{ tool: 'publish', args }] }
    : { ...paid, text: ANSWER }
}

export type SessionServer = Served & {
  /** Opens a session with this first message. */
  open(input: unknown, agent?: string): Promise<string>
  answer(session: string): Promise<SessionAnswer>
  /** Until nothing more happens by itself. */
  rests(session: string): Promise<SessionAnswer>
  /** Allows the first call that waits. */
  allows(session: string): Promise<void>
}

export async function sessionServer(options: NonNullable<Parameters<typeof served>[1]> = {}): Promise<SessionServer> {
  const one = await served(script(), {
    ...options,
    harness: {
      tools: [search, publish, broken, dump, takeAll],
      graphs: [report],
      subagents: { researcher: { description: 'finds things out', instructions: 'You research.', tools: [] } },
      ...options.harness,
    },
  })
  const begin: SessionServer['open'] = async (input, agent) => {
    const body = { input, ...(agent === undefined ? {} : { agent }) }
    return (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body })).session
  }
  const answer: SessionServer['answer'] = (id) => one.json('GET', `/v1/sessions/${encodeURIComponent(id)}`)
  const rests: SessionServer['rests'] = (id) =>
    until(async () => {
      const found = await answer(id)
      const { status } = found.card
      if (status === 'running' || status === 'rescheduling' || found.head < 4) throw new Error(`it is ${status}`)
      return found
    })
  const allows: SessionServer['allows'] = async (id) => {
    const { pending } = await rests(id)
    const { callId = '', digest = '' } = pending[0] ?? {}
    const body = { callId, digest, allow: true, why: 'it is true' }
    await one.json('POST', `/v1/sessions/${id}/decisions`, { body })
  }
  return { ...one, open: begin, answer, rests, allows }
}

/** A log as it is, in the store: for what a script does not bring about. Nobody drives it. */
export async function written({ host }: SessionServer, { session, events }: Tale): Promise<string> {
  const state = open(EMPTY)
  for (const event of events) take(state, { ...event, epoch: 0 })
  const card = cardOf(session, state, next(state, { now: state.at, epoch: state.epoch }))
  const all = events.map((event) => ({ ...event, epoch: 0 }) as OwnerEvent)
  await host.store.commit([
    { session, lane: 'owner', epoch: 0, expectedSeq: 0, events: all, card: { ...card, due: null } },
  ])
  return session
}
