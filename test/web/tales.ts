// Real sessions for the tests of views: made by a harness with a scripted model, on a clock that can be set, and served by a real server.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, scripted, sqlite, type Script } from '../../src/index.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import { type Served, served } from '../server/served.ts'

const HOUR = 3_600_000
/** Markup, directions, escapes and blanks that are not seen. */
export const HOSTILE = '</script><img src=x onerror=alert(1)> \u202Egnp.exe \u001B[31mred \u200B\u2028end'

const search = defineTool({
  name: 'search',
  description: 'Search the news',
  input: z.object({ query: z.string() }),
  effect: 'read',
  execute: async ({ query }) => {
    await new Promise((done) => setTimeout(done, 120))
    return `3 items for ${query}. ${'Rain, then sun. '.repeat(40)}`
  },
})
const publish = defineTool({
  name: 'publish',
  description: 'Publish a page',
  input: z.object({ path: z.string(), content: z.string() }),
  effect: 'once',
  approval: 'ask',
  execute: async ({ path }) => `${path} is online`,
})
const broken = defineTool({
  name: 'weather',
  description: 'The weather',
  input: z.object({ place: z.string() }),
  effect: 'read',
  execute: async () => {
    throw new Error(`no such place: ${HOSTILE}`)
  },
})

const usage = (inputTokens: number, cachedTokens: number, outputTokens = 180) => ({
  inputTokens,
  outputTokens,
  cachedTokens,
})

const script: Script = (request) => {
  const { messages } = request
  const [first] = messages
  const text = first?.role === 'user' && first.parts[0]?.type === 'text' ? first.parts[0].text : ''
  if (text.includes('Find out')) return { text: 'It rains in Oslo.', delayMs: 400, usage: usage(320, 0, 40), cost: 700 }
  const taken = messages.filter(({ role }) => role === 'assistant').length
  if (taken === 0)
    return {
      text: `I look for **what is new** first. ${HOSTILE}`,
      delayMs: 300,
      usage: usage(1_240, 0),
      cost: 3_100,
      calls: [
        { tool: 'search', args: { query: 'news' } },
        { tool: 'search', args: { query: 'weather' } },
        { tool: 'weather', args: { place: 'Atlantis' } },
      ],
    }
  if (taken === 1)
    return {
      delayMs: 250,
      usage: usage(2_900, 1_200),
      cost: 4_200,
      calls: [{ tool: 'subagent', args: { agent: 'researcher', task: 'Find out about the rain.' } }],
    }
  if (taken === 2)
    return {
      text: 'Now I publish it.',
      delayMs: 350,
      usage: usage(3_300, 2_800),
      cost: 2_600,
      calls: [{ tool: 'publish', args: { path: 'news.html', content: `<h1>News</h1>\n${HOSTILE}` } }],
    }
  return { text: 'The page is online.', delayMs: 200, usage: usage(3_700, 100), cost: 9_900 }
}

const { node, mapNode, graph } = withState({
  topic: last(''),
  sources: last<readonly string[]>([]),
  facts: last<readonly string[]>([]),
  drafts: last(0),
})
const report = graph({
  name: 'report',
  nodes: {
    plan: node({
      effect: 'read',
      reads: ({ topic }) => ({ topic }),
      run: ({ topic }) => ({ sources: [`${topic} now`, `${topic} then`] }),
    }),
    search: mapNode({
      effect: 'read',
      over: ({ sources }) => sources,
      run: (source) => `One page says of ${source}: rain.`,
      take: (results) => ({ facts: results.flatMap((result) => (result.ok ? [result.value] : [])) }),
    }),
    draft: node({
      effect: 'read',
      reads: ({ drafts }) => ({ drafts }),
      run: ({ drafts }) => ({ drafts: drafts + 1 }),
    }),
    review: node({ effect: 'read', reads: ({ drafts }) => ({ drafts }), run: () => ({}) }),
    publish: node({ approval: 'ask', reads: ({ drafts }) => ({ drafts }), run: () => ({}) }),
  },
  edges: [
    [START, 'plan'],
    ['plan', 'search'],
    ['search', 'draft'],
    ['draft', 'review'],
    { from: 'review', to: ['draft', 'publish'], by: ({ drafts }) => (drafts < 2 ? 'draft' : 'publish') },
    ['publish', END],
  ],
})

/** A server whose sessions wait hours in a moment. */
export async function tales(pages: string): Promise<Served & { later(hours: number): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-views-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const one = await served(script, {
    folder,
    store: sqlite(join(folder, 'terret.db'), { clock }),
    harness: {
      system: { clock },
      tools: [search, publish, broken],
      graphs: [report],
      models: {
        named: { other: scripted([{ text: `It rains on. ${HOSTILE}`, usage: usage(900, 0), cost: 20_000 }], 'other') },
      },
      subagents: {
        researcher: { description: 'finds things out', model: scripted(script), toolAccess: { allow: ['search'] } },
      },
    },
    serve: { pages },
  })
  return {
    ...one,
    later: (hours) => {
      ahead += hours * HOUR
    },
  }
}

/** Search, a child, two hours until somebody allows the page, and an hour later one more message. */
export async function newsIn(one: Awaited<ReturnType<typeof tales>>, id = 'news'): Promise<string> {
  const { harness } = one.host
  const session = await harness.open({ id })
  await session.send('Publish the news.')
  const parked = await session.run()
  const [gate] = parked.pending
  one.later(2)
  if (gate) await session.decide({ ...gate, allow: true, by: 'ana' })
  await session.run()
  one.later(1)
  await session.send('Thank you. Once more?')
  await session.run()
  return id
}

/** It stands at its gate. */
export async function reportIn(one: Awaited<ReturnType<typeof tales>>): Promise<string> {
  const session = await one.host.harness.open({ id: 'report', agent: 'report' })
  await session.send({ topic: 'The weather' })
  await session.run()
  return 'report'
}
