// What three of the archetypes need to do their work: the documentation, a search of the web, and when they last ran.
import { expect, it } from 'vitest'
import { loadAgents, subagentsOf } from '../../src/agents/index.ts'
import { defineTool, Harness, memory, type Request, scripted, type Step, type Tool } from '../../src/index.ts'
import { objectField } from '../../src/tools/core/argument-schema.ts'
import { webSearchTool } from '../../src/tools/index.ts'

const { definitions } = await loadAgents()
const read = defineTool({
  name: 'read',
  description: 'Reads.',
  input: objectField({}),
  effect: 'read',
  execute: () => 'ok',
})

function harnessOf(script: (request: Request, taken: number) => Step, tools: readonly Tool[] = [read]) {
  const store = memory()
  const requests: Request[] = []
  const model = scripted((request, taken) => {
    requests.push(request)
    return script(request, taken)
  })
  const { subagents } = subagentsOf(definitions, { tools, store })
  return { harness: new Harness({ model, store, tools, subagents }), requests, store }
}

const call = (tool: string, args: Record<string, string> = {}): Step => ({ calls: [{ tool, args }] })
const textOf = (content: unknown): string => (typeof content === 'string' ? content : '')
const offered = (request: Request | undefined) => (request?.tools ?? []).map(({ name }) => name)

it('B-ARCHETYPE-1: help reads the documentation of the package: its list, its lines and its pages, and no other file', async () => {
  const words: readonly Record<string, string>[] = [
    {},
    { query: 'lossesMax attempts' },
    { page: 'guide/limits' },
    { page: '../../package.json' },
  ]
  const { harness, requests } = harnessOf((_request, taken) => {
    const args = words[taken]
    return args === undefined ? 'It is so.' : call('terret_docs', args)
  })
  const { calls, status } = await harness.run('How often may a worker be lost?', { agent: 'help' })
  expect(status).toBe('completed')
  expect(offered(requests[0])).toContain('terret_docs')
  expect(calls.map((one) => one.status)).toEqual(['ok', 'ok', 'ok', 'error'])
  const said = calls.map(({ content }) => textOf(content))
  expect(said[0]).toContain('guide/quickstart: ')
  expect(said[1]).toMatch(/^guide\/limits:\d+: /m)
  expect(said[2]).toContain('`lossesMax`')
  expect(said[3]).toContain('There is no page')
  // Only the agents that list it have it.
  await harness.run('Hello.')
  expect(offered(requests.at(-1))).not.toContain('terret_docs')
  await harness.close()
})

it('B-ARCHETYPE-2: researcher searches the web where a search is configured, and has no such tool elsewhere', async () => {
  const search = webSearchTool({ endpoint: 'https://search.example.org/?q={query}' })
  for (const [tools, has] of [
    [[read, search], true],
    [[read], false],
  ] as const) {
    const { harness, requests } = harnessOf(() => 'Found.', tools)
    await harness.run('Find it.', { agent: 'researcher' })
    expect(offered(requests[0]).includes('web_search')).toBe(has)
    await harness.close()
  }
})

it('B-ARCHETYPE-3: morning_briefing knows when it last ran, in its own session, beside it and below others, of the same owner', async () => {
  const { harness, store } = harnessOf(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'Today: nothing.' : call('last_run'),
  )
  const asked = async (owner: string): Promise<string | null> => {
    const session = await harness.open({ agent: 'morning_briefing', metadata: { owner } })
    const { calls, status } = await session.run('Brief me.')
    expect([status, calls[0]?.status]).toEqual(['completed', 'ok'])
    return (JSON.parse(textOf(calls[0]?.content)) as { last_run: string | null }).last_run
  }
  expect(await asked('ann')).toBeNull()
  const first = (await store.page({ agent: 'morning_briefing', order: 'newest', limit: 1 })).cards[0]
  expect(await asked('ann')).toBe(new Date(first?.at ?? 0).toISOString())
  expect(await asked('bob')).toBeNull()
  const session = await harness.open({ agent: 'morning_briefing' })
  await session.run('Brief me.')
  const { calls } = await session.run('Brief me.')
  expect(textOf(calls[0]?.content)).toContain('"hours_ago":0')
  await harness.close()
})

it('B-ARCHETYPE-3: a briefing that another session starts finds the one that the session before it started', async () => {
  const { harness } = harnessOf(({ messages }) => {
    const brief = JSON.stringify(messages[0]).includes('Write the briefing')
    if (messages.at(-1)?.role === 'tool') return JSON.stringify(messages.at(-1)).slice(0, 400)
    return brief ? call('last_run') : call('subagent', { task: 'Write the briefing.', agent: 'morning_briefing' })
  })
  const first = await harness.run('Good morning.')
  const second = await harness.run('Good morning.')
  expect([first.text, second.text].map((said) => said.includes('hours_ago'))).toEqual([false, true])
  await harness.close()
})
