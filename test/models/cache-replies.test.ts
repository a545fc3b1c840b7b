// The response cache: what is kept, for whom, and what a hit costs.
import { describe, expect, it } from 'vitest'
import {
  cacheReplies,
  type CacheRepliesOptions,
  fallback,
  Fault,
  Harness,
  type Model,
  type ModelFailure,
  memory,
  model,
  type Reply,
  type Request,
  type ResponseStore,
  scripted,
} from '../../src/index.ts'
import { callContext, request, userSays } from './context.ts'
import { FakeClock } from './fake-clock.ts'
import { chaosOf, eventsOf, harnessOf, KEY, noting, ofType } from './hosted-stage.ts'
import { tracing } from '../../src/tracing/index.ts'

const usage = { inputTokens: 100, outputTokens: 10 }
const says = (text: string, more: Partial<Reply> = {}): Reply => ({
  type: 'reply',
  parts: [{ type: 'text', text }],
  calls: [],
  finish: 'stop',
  usage,
  cost: 7,
  ...more,
})

/** A model that counts how often it is asked, and answers with the number unless told otherwise. */
function counting(answer: (n: number) => Reply | ModelFailure | Promise<Reply | ModelFailure> = (n) => says(`${n}`)) {
  const asked: Request[] = []
  const model: Model = {
    name: 'test:m',
    call: async (each) => {
      asked.push(each)
      return answer(asked.length)
    },
  }
  return { model, asked }
}

const options: CacheRepliesOptions = { namespace: 'a' }
const text = (answer: Reply | ModelFailure): string =>
  answer.type === 'reply'
    ? answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    : answer.message

describe('the response cache', () => {
  it('B-CACHED-1: the same first request is asked once; a hit costs nothing, says so, and comes as deltas', async () => {
    const { model: inner, asked } = counting(() =>
      says('Hello.', { calls: [{ id: 'c', tool: 'look', args: '{"a":1}' }] }),
    )
    const model = cacheReplies(inner, options)
    const first = await model.call(request({ session: 'one', seq: 3 }), callContext().context)
    const hit = await model.call(
      request({ session: 'two', seq: 9, messages: [userSays('Hello.', 5)] }),
      callContext().context,
    )
    expect(first).toMatchObject({ cost: 7, usage })
    expect(first).not.toHaveProperty('cached')
    expect(hit).toEqual({ ...first, cached: true, cost: 0, usage: { inputTokens: 0, outputTokens: 0 } })
    expect(asked).toHaveLength(1)
    const heard = callContext()
    await model.call(request(), heard.context)
    expect(heard.deltas).toEqual([
      { kind: 'text', part: 0, text: 'Hello.' },
      { kind: 'arguments', part: 1, text: '{"a":1}', proposed: { tool: 'look', index: 0 } },
    ])
  })

  it('B-CACHED-2: a request with an earlier turn of the model is not kept and not looked for (AC-81)', async () => {
    const { model: inner, asked } = counting()
    const model = cacheReplies(inner, options)
    const messages = [
      userSays('Hi'),
      { role: 'assistant', seq: 2, parts: [], calls: [] } as const,
      userSays('Go on.', 3),
    ]
    for (const n of [1, 2]) expect(text(await model.call(request({ messages }), callContext().context))).toBe(`${n}`)
    expect(asked).toHaveLength(2)
  })

  it('B-CACHED-3: other instructions, tools, output, settings, models or namespaces are other requests', async () => {
    const store = new Map<string, string>()
    const { model: inner, asked } = counting()
    const shared: ResponseStore = { get: (key) => store.get(key), set: (key, value) => store.set(key, value) }
    const ask = async (each: Partial<Request>, more: Partial<CacheRepliesOptions> = {}, of: Model = inner) =>
      text(await cacheReplies(of, { ...options, store: shared, ...more }).call(request(each), callContext().context))
    const tool = { name: 'look', description: 'Looks.', parameters: {} }
    const output = { mode: 'native', name: 'a', schema: {}, strict: false } as const
    const different: readonly Partial<Request>[] = [
      {},
      { instructions: 'Be brief.' },
      { tools: [tool] },
      { tools: [{ ...tool, description: 'Sees.' }] },
      { output },
      { allow: 'none' },
      { boost: true },
      { messages: [userSays('Other')] },
      { messages: [userSays('Hi'), userSays('Hi', 2)] },
    ]
    for (const [i, each] of different.entries()) expect(await ask(each)).toBe(`${i + 1}`)
    expect(await ask({}, { namespace: 'b' })).toBe('10')
    for (const [i, each] of different.entries()) expect(await ask(each)).toBe(`${i + 1}`)
    const warm = { ...inner, profile: () => Promise.reject(new Error('none')), identity: () => 'secret-setting' }
    expect(await ask({}, {}, warm as unknown as Model)).toBe('11')
    expect(asked).toHaveLength(11)
    expect([...store.keys()].join()).toMatch(/^[0-9a-f]{64}(,[0-9a-f]{64})*$/)
    const settings = [
      {},
      { temperature: 0.5 },
      { body: { user: 'x' } },
      { headers: { 'x-team': 'a' } },
      { baseUrl: 'http://b.example' },
    ]
    const identities = settings.map((each) => model('groq:m', { key: KEY, ...each }).identity?.())
    expect(new Set(identities).size).toBe(settings.length)
    expect(identities.join()).not.toContain(KEY)
    expect(fallback(model('groq:m', { key: KEY }), inner).identity?.()).toContain('test:m')
  })

  it('B-CACHED-4: failures, cut and refused answers, empty ones and those of a fallback are not kept', async () => {
    const down: ModelFailure = { type: 'failure', class: 'server', message: 'down', retryable: true }
    for (const answer of [
      down,
      says('half', { finish: 'length' }),
      says('No.', { finish: 'refusal' }),
      says(' '),
      says('theirs', { route: 'other:m' }),
    ]) {
      const { model: inner, asked } = counting(() => answer)
      const model = cacheReplies(inner, options)
      for (let n = 0; n < 2; n++)
        expect(await model.call(request(), callContext().context)).not.toHaveProperty('cached')
      expect(asked).toHaveLength(2)
    }
    const thrown = counting(() => Promise.reject(new Error('thrown')))
    const model = cacheReplies(thrown.model, options)
    for (let n = 0; n < 2; n++) await expect(model.call(request(), callContext().context)).rejects.toThrow('thrown')
  })

  it('B-CACHED-5: the same request at the same time is one call; if it fails, the next one asks', async () => {
    const gates: ((answer: Reply | ModelFailure) => void)[] = []
    const { model: inner, asked } = counting(() => new Promise((resolve) => gates.push(resolve)))
    const model = cacheReplies(inner, options)
    const calls = [1, 2, 3].map(() => model.call(request(), callContext().context))
    const stop = new AbortController()
    const left = model.call(request(), { ...callContext().context, signal: stop.signal })
    await until(() => gates.length === 1)
    stop.abort()
    expect(await left).toMatchObject({ type: 'failure', message: expect.stringContaining('stopped') as string })
    gates[0]?.({ type: 'failure', class: 'server', message: 'down', retryable: true })
    await until(() => gates.length === 2)
    gates[1]?.(says('Hello.'))
    const answers = await Promise.all(calls)
    expect(answers.map(text)).toEqual(['down', 'Hello.', 'Hello.'])
    expect(answers.map((answer) => 'cached' in answer)).toEqual([false, false, true])
    expect(asked).toHaveLength(2)
  })

  it('B-CACHED-6: answers count for their time, and the least recently used goes first', async () => {
    const { model: inner, asked } = counting()
    const model = cacheReplies(inner, { ...options, ttlMs: 1_000, maxEntries: 2 })
    const clock = new FakeClock()
    const context = { ...callContext().context, clock }
    const ask = async (said: string) => text(await model.call(request({ messages: [userSays(said)] }), context))
    expect([await ask('a'), await ask('b'), await ask('a'), await ask('c')]).toEqual(['1', '2', '1', '3'])
    expect([await ask('a'), await ask('b')]).toEqual(['1', '4'])
    clock.advance(1_000)
    expect(await ask('b')).toBe('5')
    expect(asked).toHaveLength(5)
  })

  it('B-CACHED-7: a store that fails, lies or never answers is a call as without it', async () => {
    const never = new Promise<never>(() => {})
    const odd = [
      '{',
      '{}',
      '[]',
      'null',
      7,
      {},
      '{"type":"reply","parts":[{"type":"text"}],"calls":[],"finish":"stop"}',
    ]
    const gets: readonly (() => unknown)[] = [
      () => {
        throw new Error('down')
      },
      () => Promise.reject(new Error('down')),
      ...odd.map((value) => () => value),
    ]
    for (const get of gets) {
      const { model: inner } = counting()
      const store = { get, set: () => Promise.reject(new Error('full')) }
      expect(text(await cacheReplies(inner, { ...options, store }).call(request(), callContext().context))).toBe('1')
    }
    const clock = new FakeClock()
    const context = { ...callContext().context, clock }
    const slow = cacheReplies(counting().model, { ...options, store: { get: () => never, set: () => never } })
    const answer = slow.call(request(), context)
    await until(() => clock.waiting > 0)
    clock.advance(2_000)
    expect(text(await answer)).toBe('1')
  })

  it('B-CACHED-8: in a harness a hit is free, and the log, the result and the trace say that it is one', async () => {
    const chaos = await chaosOf(['Hello.', { calls: [{ tool: 'look', args: { city: 'Oslo' } }] }, 'Cold.', 'Colder.'])
    const hosted = model('anthropic:claude-sonnet-4-5', { key: KEY, baseUrl: chaos.url })
    const store = memory()
    const spans: { attributes: Readonly<Record<string, unknown>> }[] = []
    const sink = { export: async (made: readonly (typeof spans)[number][]) => void spans.push(...made) }
    const harness = harnessOf({
      model: cacheReplies(hosted, options),
      store,
      tools: [noting().tool],
      tracing: tracing({ sinks: [sink as never] }),
      budget: { runUsd: 1 },
    })
    const first = await harness.run('Hi.')
    const second = await harness.run('Hi.')
    expect(first).toMatchObject({ status: 'completed', text: 'Hello.' })
    expect(first).not.toHaveProperty('cached')
    expect(first.cost.micros).toBeGreaterThan(0)
    expect(second).toMatchObject({ status: 'completed', text: 'Hello.', cached: true, cost: { micros: 0 } })
    expect(chaos.requests).toHaveLength(1)
    const [reply] = ofType(await eventsOf(store, second.sessionId), 'agent.message')
    expect(reply).toMatchObject({ cached: true, cost: 0, usage: { inputTokens: 0, outputTokens: 0 } })
    // A kept call is run anew, and what follows it is asked.
    expect(await harness.run('Weather?')).toMatchObject({ text: 'Cold.' })
    const again = await harness.run('Weather?')
    expect(again).toMatchObject({ text: 'Colder.' })
    expect(again).not.toHaveProperty('cached')
    expect(chaos.requests).toHaveLength(4)
    await harness.close()
    expect(spans.filter(({ attributes }) => attributes['terret.cached'] === true)).toHaveLength(2)
  })

  it('B-CACHED-9: misspelled options, no namespace and a store with a bound of its own are refused', () => {
    const make = (wrong: object) => () => cacheReplies(scripted([]), wrong as CacheRepliesOptions)
    for (const wrong of [
      {},
      { namespace: ' ' },
      { namespace: 'a', ttl: 1 },
      { namespace: 'a', ttlMs: 0 },
      { namespace: 'a', maxEntries: 0 },
      { namespace: 'a', store: {} },
      { namespace: 'a', store: new Map(), maxEntries: 3 },
    ]) {
      expect(make(wrong)).toThrow(Fault)
    }
    expect(() => new Harness({ model: cacheReplies('offline:any', options) })).not.toThrow()
  })
})

async function until(met: () => boolean): Promise<void> {
  for (let n = 0; n < 200 && !met(); n++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(met()).toBe(true)
}
