// Routes of a harness: which model answers for a workload, what is refused, and what the log says of a fallback. Scripted models,
// and hosted ones where a profile is looked up.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Event,
  fallback,
  Harness,
  type HarnessOptions,
  memory,
  model,
  type Priced,
  type Request,
  routeProfiles,
  type Script,
  scripted,
  sqlite,
  type CompleteStore,
} from '../../src/index.ts'
import { recordingOf } from '../../src/replay.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import { parallelLlmTool } from '../../src/tools/index.ts'
import { makeFile } from '../stores/folder.ts'
import { GOOD_SUMMARY } from '../context/long-stage.ts'

const PICTURE = { type: 'image', data: Buffer.from('89504e470d0a1a0a', 'hex'), media: 'image/png' } as const
const ROOT = '.'

function harnessOf(options: HarnessOptions): Harness {
  const harness = new Harness({ secrets: {}, ...options })
  onTestFinished(() => harness.close())
  return harness
}

async function logOf(store: CompleteStore, session: string): Promise<readonly Event[]> {
  return (await store.read(session, 0, 1_000)).events
}

async function repliesOf(store: CompleteStore, session: string) {
  return (await logOf(store, session)).filter((event) => event.type === 'agent.message')
}

/** A model of a provider that sees nothing. */
const blind = (): Priced => model('deepseek:deepseek-chat', { key: 'sk-blind-0123456789' })

describe('routes of a harness', () => {
  it('B-ROUTE-15: an agent, a subagent and a run have the model of the workload that they ask for, or its neighbour, or else the agent’s (S2-56)', async () => {
    const routes = { chat: scripted(() => 'chat says', 'c'), agentic: scripted(() => 'agentic says', 'a') }
    const coding = harnessOf({ model: 'hint:coding', models: { routes } })
    expect((await coding.run('Go.')).text).toBe('agentic says')
    const plain = harnessOf({ model: scripted(() => 'own says', 'own'), models: { routes } })
    for (const [hint, text] of [
      ['burst', 'chat says'],
      ['summarization', 'chat says'],
      ['reasoning', 'agentic says'],
      ['vision', 'own says'],
    ] as const)
      expect((await plain.run('Go.', { model: `hint:${hint}` })).text).toBe(text)
    const bare = harnessOf({ model: scripted(() => 'own says', 'own'), models: { routes: { vision: blindless() } } })
    expect((await bare.run('Go.', { model: 'hint:coding' })).text).toBe('own says')
    const small = { description: 'small', model: 'hint:burst' }
    const own = scripted((request) => {
      const last = request.messages.at(-1)
      if (last?.role === 'tool') return `told: ${JSON.stringify(last.content)}`
      return { calls: [{ tool: 'subagent', args: { agent: 'small', task: 'Say.' } }] }
    }, 'own')
    const parent = harnessOf({
      model: own,
      models: { routes },
      subagents: { small, other: { ...small, model: 'hint:chat' } },
    })
    const rows = await parent.agents()
    expect(rows.map(({ name, model }) => [name, model])).toEqual([
      ['default', 'own'],
      ['subagent', 'own'],
      ['small', 'c'],
      ['other', 'c'],
    ])
    expect(rows[0]?.setup).toMatchObject({ routes: { chat: 'c', agentic: 'a' } })
    expect((await parent.run('Go.')).text).toBe('told: "chat says"')
    const none = harnessOf({ model: own, subagents: { small } })
    const row = (await none.agents()).find(({ name }) => name === 'small')
    expect(row).toMatchObject({ name: 'small', model: 'own', setup: { model: 'own' } })
    expect(row?.setup).not.toHaveProperty('routes')
  })

  it('B-ROUTE-15: parallel_llm asks the model of its route, and pays for it', async () => {
    const asked: string[] = []
    const burst = scripted((request) => {
      asked.push(JSON.stringify(request.messages))
      return { text: 'Short.', cost: 7 }
    }, 'b')
    const main: Script = (request) =>
      request.messages.at(-1)?.role === 'tool'
        ? { text: 'Done.', cost: 1 }
        : {
            calls: [{ tool: 'parallel_llm', args: { source: { type: 'inline', prompts: ['One?', 'Two?'] } } }],
            cost: 1,
          }
    const tools = [parallelLlmTool({ root: ROOT, model: 'hint:burst' })]
    const result = await harnessOf({ model: scripted(main, 'm'), tools, models: { routes: { burst } } }).run('Go.')
    expect([result.text, result.cost.micros, asked.length]).toEqual(['Done.', 16, 2])
    // A prompt that the neighbour answered says so.
    const down = scripted(() => ({ error: 'server', message: 'down' }), 'down')
    const chat = scripted(() => 'Chat.', 'c')
    const stood = await harnessOf({ model: scripted(main, 'm'), tools, models: { routes: { burst: down, chat } } }).run(
      'Go.',
    )
    expect(JSON.parse(stood.calls[0]?.content as string)).toMatchObject({
      results: [{ ok: true, result: 'Chat.', fallback_from: 'burst' }, { ok: true }],
    })
    // Without a route it is the agent's own model.
    const alone: Script = (request) =>
      request.tools.length === 0 ? 'Mine.' : request.messages.at(-1)?.role === 'tool' ? 'End.' : main(request, 0)
    const own = await harnessOf({ model: scripted(alone, 'm'), tools }).run('Go.')
    expect([own.text, own.calls[0]?.content]).toEqual(['End.', expect.stringContaining('Mine.')])
    expect(() => parallelLlmTool({ root: ROOT, model: 'hint:brst' as 'hint:burst' })).toThrow(/"model"/)
  })

  it('B-ROUTE-16: a route that names itself, a ring, a route or a workload that there is not, and a blind model for pictures are refused when the harness is made', () => {
    const own = scripted([], 'own')
    const made = (options: Partial<HarnessOptions>) => () => new Harness({ model: own, ...options })
    expect(made({ models: { routes: { chat: 'hint:chat' } } })).toThrow(/ring: "chat" → "chat"\. Name a model/)
    expect(made({ models: { routes: { chat: 'hint:burst', burst: 'hint:coding', coding: 'hint:chat' } } })).toThrow(
      /"chat" → "burst" → "coding" → "chat"/,
    )
    expect(made({ models: { routes: { burst: 'hint:chat' } } })).toThrow(
      /there is no route "chat"\. Set models\.routes\.chat/,
    )
    expect(made({ models: { routes: { chat: 'hint:brust' } } })).toThrow(/no workload "brust"\. Did you mean "burst"/)
    expect(made({ models: { routes: { chatt: own } as never } })).toThrow(/"chatt".*"chat"/)
    expect(made({ models: { routes: { chat: 7 } as never } })).toThrow(/is no model/)
    expect(made({ models: { routes: { vision: blind() } } })).toThrow(
      /"vision" is deepseek:deepseek-chat, which takes no pictures/,
    )
    expect(made({ model: 'hint:coding', models: { routes: { chat: own } } })).toThrow(
      /Set models\.routes\.coding or models\.routes\.agentic/,
    )
    expect(made({ model: 'hint:coding' })).toThrow(/No model is set for "coding"/)
    expect(made({ subagents: { eye: { description: 'e', model: 'hint:vision' } } })).toThrow(
      /Set models\.routes\.vision\./,
    )
    expect(() => fallback('hint:chat')).toThrow(/asks for a route/)
    // A route may be the same as another one.
    expect(made({ model: 'hint:burst', models: { routes: { chat: own, burst: 'hint:chat' } } })).not.toThrow()
  })

  it('B-ROUTE-17: a run that asks for vision with a picture is refused before anything is written, with what to set, unless there is a route for it', async () => {
    const [store, own] = [memory(), scripted(() => 'own says', 'own')]
    const routes = { chat: scripted(() => 'chat says', 'c'), agentic: scripted(() => 'agentic says', 'a') }
    const harness = harnessOf({ model: own, models: { routes }, store })
    const session = await harness.open()
    const seen = [{ type: 'text', text: 'What is it?' }, PICTURE] as const
    await expect(session.run(seen, { model: 'hint:vision' })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('Set models.routes.vision.') as string,
    })
    expect(await logOf(store, session.id)).toHaveLength(1)
    await expect(harness.run('Go.', { model: 'hint:sight' })).rejects.toThrow(/no workload "sight"/)
    const eyes = harnessOf({ model: own, models: { routes: { ...routes, vision: scripted(() => 'a cat', 'v') } } })
    expect((await eyes.run(seen, { model: 'hint:vision' })).text).toBe('a cat')
  })

  it('B-ROUTE-18: when a route is down its neighbour answers, the log says so, and the prefix of the session stays', async () => {
    const store = sqlite(makeFile())
    onTestFinished(() => store.close())
    let down = true
    const burst = scripted(() => (down ? { error: 'server', message: 'down' } : 'burst says'), 'b')
    const routes = { burst, chat: scripted(() => 'chat says', 'c') }
    const harness = harnessOf({ model: 'hint:burst', models: { routes }, store, instructions: 'Be short.' })
    const session = await harness.open()
    expect((await session.run('One.')).text).toBe('chat says')
    down = false
    expect((await session.run('Two.')).text).toBe('burst says')
    const events = await logOf(store, session.id)
    const [first, second] = await repliesOf(store, session.id)
    expect(first).toMatchObject({ route: 'c', fallback_from: 'burst' })
    expect(second).toMatchObject({ route: 'b' })
    expect(second).not.toHaveProperty('fallback_from')
    const [begun, later] = events.filter((event) => event.type === 'run.started')
    expect(begun).toMatchObject({ model: 'b' })
    expect(later).toMatchObject({ since: begun?.seq, instructions: begun?.instructions, toolset: begun?.toolset })
    // Run once more from its log, it says the same.
    const recording = recordingOf(events, { tools: [], results: 'recorded' })
    const fresh = memory()
    const again = harnessOf({ model: recording.model, store: fresh, instructions: 'Be short.' })
    const copy = await again.open()
    expect((await recording.run(copy, fresh)).divergence).toBeNull()
    expect((await repliesOf(fresh, copy.id))[0]).toMatchObject({ route: 'c', fallback_from: 'burst' })
    // A model that cannot take the request is one that another answers for.
    const visible = { chat: scripted(() => 'I see.', 'c'), burst: blind() }
    const shown = await harnessOf({ model: 'hint:burst', models: { routes: visible }, store }).run([PICTURE])
    expect(await repliesOf(store, shown.sessionId)).toMatchObject([{ route: 'c', fallback_from: 'burst' }])
    // A plain chain has no routes to name.
    const chain = fallback(scripted([{ error: 'server' }], 'x'), scripted(['y says'], 'y'))
    const other = await harnessOf({ model: chain, store }).run('Go.')
    expect((await repliesOf(store, other.sessionId))[0]).not.toHaveProperty('fallback_from')
  })

  it('B-ROUTE-19: summaries of a full context are made by the route for them, of what its window takes; else by the session’s own model', async () => {
    const read: Request[] = []
    const long = 'x'.repeat(30_000)
    const summarizer: Priced = {
      ...scripted((request) => {
        read.push(request)
        return { text: GOOD_SUMMARY.replace('## Goal\n', '## Goal\nGo on. '), cost: 3 }
      }, 'sum'),
      able: { name: 'sum', native: 'no' },
      outputTokensMax: 1_000,
      secrets: {},
      profile: async () => ({ price: { input: 1, output: 1 }, known: true, contextTokens: 2_000, cost: () => 3 }),
    }
    const own: Request[] = []
    const main = scripted((request) => {
      if (request.instructions !== CONTEXT_SUMMARY_PROMPT) return 'Yes.'
      own.push(request)
      return GOOD_SUMMARY
    }, 'm')
    const harness = harnessOf({ model: main, models: { routes: { summarization: summarizer } } })
    const session = await harness.open()
    for (let i = 0; i < 8; i++) await session.run(`${i} ${long}`)
    expect(await session.compact()).toMatchObject({ summary: expect.stringContaining('Go on.') as string })
    expect([read.length, own.length]).toEqual([1, 0])
    expect(JSON.stringify(read[0]?.messages).length).toBeLessThan(8_000)
    // The log says which model made it, and which route it stood in for.
    const { events } = await session.events({ limit: 1_000 })
    expect(events.findLast(({ type }) => type === 'context.compacted')).toMatchObject({ cost: 3 })
    const chat = scripted(() => ({ text: GOOD_SUMMARY.replace('## Goal\n', '## Goal\nTold by chat. '), cost: 2 }), 'c')
    const down = scripted([{ error: 'server', message: 'down' }], 'down')
    const routed = harnessOf({ model: main, models: { routes: { summarization: down, chat } } })
    const third = await routed.open()
    for (let i = 0; i < 8; i++) await third.run(`${i} ${long}`)
    expect(await third.compact()).toMatchObject({ summary: expect.stringContaining('Told by chat.') as string })
    const compacted = (await third.events({ limit: 1_000 })).events.find(({ type }) => type === 'context.compacted')
    expect(compacted).toMatchObject({ route: 'c', fallback_from: 'summarization', cost: 2 })
    const plain = harnessOf({ model: main })
    const other = await plain.open()
    for (let i = 0; i < 8; i++) await other.run(`${i} ${long}`)
    await other.compact()
    expect(own).toHaveLength(1)
  })

  it('B-ROUTE-20: each workload has a profile: window, pictures, reasoning and price, where known; a price of zero is a price', async () => {
    const key = 'sk-profile-0123456789'
    const prices = { 'openai:gpt-5': { input: 0, output: 0 }, 'mistral:*': { input: 1, output: 2 } }
    const profiles = await routeProfiles({
      chat: model('openai:gpt-5', { key, prices }),
      burst: model('mistral:nobody-knows', { key, prices }),
      agentic: blind(),
      coding: 'hint:agentic',
      vision: scripted([], 'eyes'),
    })
    const by = Object.fromEntries(profiles.map((each) => [each.workload, each]))
    expect(by['chat']).toMatchObject({
      of: 'chat',
      profile: {
        model: 'openai:gpt-5',
        windowKnown: true,
        images: true,
        reasoning: true,
        price: { input: 0, output: 0 },
      },
      behind: 'mistral:nobody-knows',
    })
    expect(by['chat']?.profile?.priceKnown).toBe(true)
    expect(by['burst']?.profile).toMatchObject({ contextTokens: null, windowKnown: false, priceKnown: true })
    expect(by['summarization']).toMatchObject({ of: 'chat', behind: null })
    expect(by['reasoning']).toMatchObject({ of: 'agentic', profile: { images: false }, behind: null })
    expect(by['coding']).toMatchObject({ of: 'coding', behind: null, profile: { model: 'deepseek:deepseek-chat' } })
    expect(by['vision']?.profile).toMatchObject({ model: 'eyes', images: null, reasoning: null, priceKnown: false })
    const [, none] = await routeProfiles({ vision: scripted([], 'eyes') })
    expect(none).toEqual({ workload: 'burst', of: null, profile: null, behind: null })
  })

  it('B-ROUTE-21: the key of a route is a secret, also before the route was asked', async () => {
    const store = memory()
    const routes = { summarization: blind() }
    const harness = harnessOf({ model: scripted(() => 'I say sk-blind-0123456789.', 'm'), models: { routes }, store })
    const { sessionId, text } = await harness.run('The key is sk-blind-0123456789.')
    expect(JSON.stringify([text, await logOf(store, sessionId)])).not.toContain('sk-blind')
  })
})

it('B-ROUTE-22: the program of the guide runs as it stands there, and prints what the guide says', () => {
  const guide = text('../../docs/guide/models.md')
  const section = guide.slice(guide.indexOf('## Routes'))
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(section) ?? []
  const [, printed = ''] = /It prints:\n\n```\n([\s\S]*?)```/.exec(section) ?? []
  const example = text('./guide-routes.ts')
  expect(code.replace("'terret'", "'../../src/index.ts'")).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/models/guide-routes.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe(printed)
})

function text(file: string): string {
  return readFileSync(new URL(file, import.meta.url), 'utf8')
}

function blindless() {
  return scripted(() => 'eyes say', 'eyes')
}
