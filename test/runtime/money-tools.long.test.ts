// Models that a tool asks are paid by the run: held for, settled, counted. Real HTTP to the chaos server, on both stores. What the
// tool itself makes of its prompts is tools/parallel-llm.test.ts.
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ChaosReply, type ChaosRequest, serverError } from '../../src/testing/index.ts'
import {
  defineTool,
  type Model,
  type Price,
  type Priced,
  type Request,
  scripted,
  stopAtUsd,
  type CompleteStore,
} from '../../src/index.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { parallelLlmTool } from '../../src/tools/agents/parallel-llm.ts'
import { chaosOf, eventsOf, harnessOf, hosted, ofType, STORAGES, storeOf } from '../models/hosted-stage.ts'
import { tmpdir } from 'node:os'
import { until } from '../until.ts'

const PRICE: Price = { input: 2, output: 10 }
const HOSTED = { prices: { 'anthropic:*': PRICE }, outputTokensMax: 1_000 }
const USAGE = { inputTokens: 100, outputTokens: 50 }
const COST = 700
const PROMPT = { inputTokens: 1_000, outputTokens: 200 }
const PROMPT_COST = 4_000

const asksAll = (prompts: number) => ({
  calls: [{ tool: 'parallel_llm', args: { source: { type: 'inline', prompts: words(prompts) }, max_concurrency: 1 } }],
  usage: USAGE,
})
const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `prompt ${i}`)
const isPrompt = ({ body }: ChaosRequest): boolean => !JSON.stringify(body).includes('parallel_llm')

const asking = (text: string, session = 'x'): Request => ({
  session,
  seq: 0,
  instructions: '',
  tools: [],
  allow: 'none',
  boost: false,
  messages: [{ role: 'user', seq: 0, parts: [{ type: 'text', text }] }],
})

async function accounts(store: CompleteStore, id: string) {
  const [run] = ofType(await eventsOf(store, id), 'run.started')
  const day = Math.floor(store.now() / 86_400_000)
  const names = [`run:${id}:${run?.seq}`, `session:${id}`, `tree:${id}`, `day:default:${day}`]
  return Promise.all(names.map((name) => store.account(name)))
}

describe.each(STORAGES)('models that tools ask, on %s', (storage) => {
  const stage = async (prompts: number, script: (n: number) => ChaosReply, options = {}) => {
    const store = storeOf(storage)
    let asked = 0
    const chaos = await chaosOf((request) => {
      if (isPrompt(request)) return script(asked++)
      return JSON.stringify(request.body).includes('tool_result') ? { text: 'Done.', usage: USAGE } : asksAll(prompts)
    })
    const model = hosted(chaos, 'messages', HOSTED)
    const tool = parallelLlmTool({ model, root: tmpdir() })
    const harness = harnessOf({ model, store, tools: [tool], ...options })
    return { harness, store, asked: () => asked }
  }

  it('B-MONEY-29: what a tool asks is held for before each try and settled after it, on all four accounts', async () => {
    const seen: number[] = []
    const { harness, store } = await stage(
      3,
      (n) => {
        void store
          .account(`day:default:${Math.floor(store.now() / 86_400_000)}`)
          .then((row) => seen.push(row?.held ?? 0))
        return n === 1 ? serverError() : { text: 'Yes.', usage: PROMPT }
      },
      { budget: { runUsd: 1, sessionUsd: 1, treeUsd: 1, dayUsd: 1 } },
    )
    const result = await harness.run('Ask.')
    expect(result).toMatchObject({ status: 'completed', cost: { micros: 2 * COST + 3 * PROMPT_COST } })
    expect(seen).toHaveLength(4)
    // Room for a whole answer, each time.
    expect(Math.min(...seen)).toBeGreaterThan(10_000)
    for (const account of await accounts(store, result.sessionId))
      expect(account).toMatchObject({ limit: 1_000_000, held: 0, spent: result.cost.micros, assumed: 0 })
  })

  it('B-MONEY-29: what does not fit is not asked, and the tool hears which account is empty', async () => {
    const { harness, store, asked } = await stage(6, () => ({ text: 'Yes.', usage: PROMPT }), {
      budget: { sessionUsd: 0.02 },
    })
    const result = await harness.run('Ask.')
    // 700 and twice 4,000 are spent; the third hold of about 10,000 still fits below 20,000, the fourth does not.
    expect(asked()).toBe(3)
    expect(result).toMatchObject({
      status: 'limit',
      limit: 'usd',
      account: 'session',
      cost: { micros: COST + 3 * PROMPT_COST },
    })
    const [call] = ofType(await eventsOf(store, result.sessionId), 'agent.tool_result')
    const { results } = JSON.parse(call?.content as string) as { results: { ok: boolean; error?: string }[] }
    expect(results.map(({ ok }) => ok)).toEqual([true, true, true, false, false, false])
    expect(results[3]?.error).toContain('over budget: the money of the session does not cover this call')
    expect(await store.account(`session:${result.sessionId}`)).toMatchObject({ held: 0, spent: result.cost.micros })
  })

  it('B-MONEY-30: what it used counts in the result, the session and for stop hooks; requests do not', async () => {
    const { harness, store } = await stage(5, () => ({ text: 'Yes.', usage: PROMPT }), { hooks: [stopAtUsd(1)] })
    const result = await harness.run('Ask.')
    expect(result).toMatchObject({
      status: 'completed',
      cost: { micros: 2 * COST + 5 * PROMPT_COST },
      usage: { modelRequests: 2, toolCalls: 1, inputTokens: 200 + 5_000, outputTokens: 100 + 1_000 },
    })
    const [call] = ofType(await eventsOf(store, result.sessionId), 'agent.tool_result')
    expect(call).toMatchObject({ cost: 5 * PROMPT_COST, usage: { inputTokens: 5_000, outputTokens: 1_000 } })
    expect((await store.card(result.sessionId))?.cost).toBe(result.cost.micros)
    // Without a budget nothing is held.
    expect(await accounts(store, result.sessionId)).toEqual([null, null, null, null])
  })

  it('B-MONEY-30: a stop hook hears of it with the next reply', async () => {
    const store = storeOf(storage)
    let turns = 0
    const chaos = await chaosOf((request) => {
      if (isPrompt(request)) return { text: 'Yes.', usage: PROMPT }
      turns += 1
      return asksAll(2)
    })
    const model = hosted(chaos, 'messages', HOSTED)
    const tools = [parallelLlmTool({ model, root: tmpdir() })]
    const harness = harnessOf({ model, store, tools, hooks: [stopAtUsd(0.008)] })
    expect(await harness.run('Ask.')).toMatchObject({ status: 'halted', cost: { micros: 2 * COST + 2 * PROMPT_COST } })
    expect(turns).toBe(2)
  })

  it('B-MONEY-29: a node of a graph that asks a model is paid by the budget too', async () => {
    const store = storeOf(storage)
    const chaos = await chaosOf(() => ({ text: 'Yes.', usage: PROMPT }))
    const model = hosted(chaos, 'messages', HOSTED)
    const said: string[] = []
    const { node, graph } = withState({ done: last(false) })
    const think = node({
      effect: 'read',
      run: async (_args, { askModel }) => {
        for (const text of ['One?', 'Two?']) {
          const answer = await askModel(model, asking(text))
          said.push(answer.type === 'reply' ? 'yes' : answer.message)
        }
        return { done: true }
      },
    })
    const ponder = graph({
      name: 'ponder',
      nodes: { think },
      edges: [
        [START, 'think'],
        ['think', END],
      ],
    })
    const harness = harnessOf({ model, store, graphs: [ponder], budget: { treeUsd: 0.012 } })
    const result = await harness.run({}, { agent: 'ponder' })
    expect(result).toMatchObject({ status: 'completed', cost: { micros: PROMPT_COST } })
    expect(said).toEqual(['yes', 'over budget: the money of the tree does not cover this call'])
    expect(await store.account(`tree:${result.sessionId}`)).toMatchObject({ held: 0, spent: PROMPT_COST })
  })

  it('B-MONEY-35: an invalid reply of a model is a failure for the tool that asked, and no money stays held', async () => {
    const empty = { type: 'reply', calls: [], finish: 'stop', usage: null }
    for (const said of [undefined, { type: 'nonsense' }, { type: 'failure' }, { ...empty, parts: [null] }, empty]) {
      const store = storeOf(storage)
      const junk = { name: 'junk', call: async () => said } as unknown as Model
      const heard: unknown[] = []
      const tool = defineTool({
        name: 'ponder',
        description: 'asks somebody who talks nonsense, and shows a long page',
        input: z.object({}),
        effect: 'read',
        execute: async (_args, { askModel }) => {
          heard.push(await askModel(junk, asking('Well?')))
          return 'A row of text. '.repeat(2_000)
        },
      })
      const own = scripted((request) => {
        const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 1 }
        return heard.length > 0 ? { text: 'Ok.', usage } : { calls: [{ tool: 'ponder' }] }
      })
      const parts = { store, models: { routes: { summarization: junk } }, budget: { sessionUsd: 5 } }
      const tools = { tools: [tool], results: { summarize: true } }
      const once = await harnessOf({ ...parts, ...tools, model: own }).run('Go.')
      expect(once).toMatchObject({ status: 'completed', text: 'Ok.' })
      expect(heard).toMatchObject([{ type: 'failure', message: 'the model answered something that is no reply' }])
      const full = harnessOf({ ...parts, model: own, context: { compaction: { windowTokens: 1_000 } } })
      const session = await full.open()
      const compactions = async () => ofType(await eventsOf(store, session.id), 'context.compacted')
      while ((await compactions()).length === 0)
        expect(await session.run('x'.repeat(400))).toMatchObject({ status: 'completed', text: 'Ok.' })
      const [failed] = await compactions()
      expect(failed).toMatchObject({ failed: 'the model answered something that is no reply' })
      for (const id of [once.sessionId, session.id])
        expect(await store.account(`session:${id}`)).toMatchObject({ held: 0 })
      const turn = await harnessOf({ store, model: junk }).run('Go.')
      expect(turn).toMatchObject({ status: 'failed' })
      expect(JSON.stringify(turn)).toContain('the model answered something that is no reply')
    }
  })

  it('B-MONEY-35: what was held is settled, also where the price of an answer throws', async () => {
    const store = storeOf(storage)
    const reply = { type: 'reply', parts: [], calls: [], finish: 'stop', usage: USAGE } as const
    const cost = (): number => {
      throw new Error('no price')
    }
    const able = { name: 'odd', native: 'no' } as const
    const profile = async () => ({ price: PRICE, known: true, contextTokens: null, cost })
    const odd: Priced = { name: 'odd', able, outputTokensMax: 100, secrets: {}, profile, call: async () => reply }
    const held: unknown[] = []
    const tool = defineTool({
      name: 'ponder',
      description: 'asks somebody who has no price',
      input: z.object({}),
      effect: 'read',
      execute: async (_args, { askModel, session }) => {
        await askModel(odd, asking('Well?')).catch(() => {})
        held.push(await store.account(`session:${session}`))
        return 'No.'
      },
    })
    const own = scripted([{ calls: [{ tool: 'ponder' }] }, 'Done.'])
    const result = await harnessOf({ store, model: own, tools: [tool], budget: { sessionUsd: 5 } }).run('Go.')
    expect(result).toMatchObject({ status: 'completed' })
    expect(held).toMatchObject([{ held: 0 }])
  })

  it('B-MONEY-31: a request whose outcome is never recorded counts at its full hold: the call was given up', async () => {
    const store = storeOf(storage)
    const deaf = { name: 'deaf', call: () => new Promise<never>(() => {}) }
    const tool = defineTool({
      name: 'ponder',
      description: 'asks somebody who never answers',
      input: z.object({}),
      effect: 'read',
      timeoutMs: 200,
      execute: (_args, { askModel }) => askModel(deaf, asking('Well?')),
    })
    const chaos = await chaosOf([
      { calls: [{ tool: 'ponder' }], usage: USAGE },
      { text: 'Done.', usage: USAGE },
    ])
    const harness = harnessOf({
      model: hosted(chaos, 'messages', HOSTED),
      store,
      tools: [tool],
      budget: { sessionUsd: 1 },
      worker: { graceMs: 50 },
    })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', calls: [{ status: 'timeout' }] })
    const account = await store.account(`session:${result.sessionId}`)
    // The cost is estimated: 8,192 output tokens at 15, and a few input tokens.
    expect(account).toMatchObject({ held: 0, spent: 2 * COST + (account?.assumed ?? 0) })
    expect(account?.assumed).toBeGreaterThanOrEqual(122_880)
  })

  it('B-MONEY-31: a request whose outcome is never recorded counts at its full hold: the worker was lost', async () => {
    const store = storeOf(storage)
    let [ran, asked] = [0, 0]
    const deaf = { name: 'deaf', call: () => new Promise<never>(() => void (asked += 1)) }
    const tool = defineTool({
      name: 'ponder',
      description: 'asks somebody who does not answer the first time',
      input: z.object({}),
      effect: 'read',
      execute: (_args, { askModel }) => ((ran += 1) === 1 ? askModel(deaf, asking('Well?')) : 'It is so.'),
    })
    const chaos = await chaosOf([
      { calls: [{ tool: 'ponder' }], usage: USAGE },
      { text: 'Done.', usage: USAGE },
    ])
    const make = () =>
      harnessOf({
        model: hosted(chaos, 'messages', HOSTED),
        store,
        tools: [tool],
        budget: { sessionUsd: 1 },
        worker: { leaseMs: 300 },
      })
    // Its lease is taken away while it waits.
    const first = make()
    const session = await first.open({ id: 'pondering' })
    const lost = session.run('Go.').catch(() => null)
    await until(() => expect(asked).toBe(1))
    const { held = 0 } = (await store.account('session:pondering')) ?? {}
    expect(held).toBeGreaterThanOrEqual(122_880)
    store.extend = () => Promise.resolve(new Map())
    const second = make()
    const result = await until(async () => {
      const again = await second.session('pondering').run()
      expect(again.status).toBe('completed')
      return again
    })
    expect(result).toMatchObject({ text: 'Done.', cost: { micros: 2 * COST } })
    expect(await store.account('session:pondering')).toMatchObject({ held: 0, spent: 2 * COST + held, assumed: held })
    await first.close()
    await lost
  })
})
