// How the model answers in one run: settings that come with the message, on the wire of hosted models, models of the AI SDK and chains.
import { simulateReadableStream } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  fallback,
  Harness,
  type HarnessOptions,
  memory,
  model,
  type Request,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'

/** A host of chat completions that notes each body and says "Hi". */
function chatHost() {
  const bodies: Record<string, unknown>[] = []
  const send: typeof fetch = async (_url, init) => {
    bodies.push(JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as Record<string, unknown>)
    const chunks = [
      { choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } },
    ]
    const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`)
    return new Response(lines.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
  return { bodies, send }
}

function harnessWith(options: Partial<HarnessOptions> & Pick<HarnessOptions, 'model'>): Harness {
  const harness = new Harness(options)
  onTestFinished(() => harness.close())
  return harness
}

const SETTINGS = { temperature: 0.2, topP: 0.9, outputTokensMax: 321, seed: 7, stop: ['END'] } as const

describe('settings of one run', () => {
  it('B-SETTINGS-1: they are in the requests of that run, over those of the model, and in no other', async () => {
    const { bodies, send } = chatHost()
    const harness = harnessWith({ model: model('ollama:qwen3', { fetch: send, temperature: 1 }) })
    const session = await harness.open()
    expect(await session.run('Hello', { settings: SETTINGS })).toMatchObject({ status: 'completed', text: 'Hi' })
    await session.run('Again')
    const [first, second] = bodies
    expect(first).toMatchObject({ temperature: 0.2, top_p: 0.9, max_tokens: 321, seed: 7, stop: ['END'] })
    expect(second).toMatchObject({ temperature: 1 })
    expect(Object.keys(second ?? {})).not.toContain('seed')
  })

  it('B-SETTINGS-2: a model of the AI SDK and a chain take them too, and a model of your own finds them in the request', async () => {
    const calls: object[] = []
    const sdk = new MockLanguageModelV3({
      doStream: async (options) => {
        calls.push(options)
        return {
          stream: simulateReadableStream({
            chunks: [
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: 'Hi' },
              { type: 'text-end', id: '1' },
              {
                type: 'finish',
                finishReason: { unified: 'stop', raw: 'stop' },
                usage: {
                  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                  outputTokens: { total: 1, text: 1, reasoning: 0 },
                },
              },
            ],
          }),
        }
      },
    })
    const chain = harnessWith({ model: fallback(fromAiSdk(sdk, { temperature: 1 }), scripted(['no'])) })
    expect(await chain.run('Hello', { settings: SETTINGS })).toMatchObject({ text: 'Hi' })
    expect(calls[0]).toMatchObject({
      temperature: 0.2,
      topP: 0.9,
      maxOutputTokens: 321,
      seed: 7,
      stopSequences: ['END'],
    })
    const seen: Request['settings'][] = []
    const own = scripted((request) => {
      seen.push(request.settings)
      return 'Hi'
    })
    await harnessWith({ model: own }).run('Hello', { settings: { temperature: 0 } })
    expect(seen).toEqual([{ temperature: 0 }])
  })

  it('B-SETTINGS-3: they are recorded with the message, so another worker goes on with them, and a fork of the open run too', async () => {
    const store: CompleteStore = memory()
    const seen: Request['settings'][] = []
    const answer = scripted((request) => {
      seen.push(request.settings)
      return 'Hi'
    })
    const queue = harnessWith({ model: answer, store, worker: { drives: false } })
    const session = await queue.open()
    await session.send('Hello', { settings: SETTINGS })
    await queue.close()
    const worker = harnessWith({ model: answer, store })
    await worker.session(session.id).run()
    expect(seen).toEqual([SETTINGS])
    const { events } = await worker.session(session.id).events()
    expect(events.find(({ type }) => type === 'user.message')).toMatchObject({ options: { settings: SETTINGS } })
  })

  it('B-SETTINGS-4: what a model is known not to take, and what is no value, is refused before anything is written', async () => {
    const harness = harnessWith({ model: model('openai:gpt-5.1', { key: 'k' }) })
    const session = await harness.open()
    await expect(session.run('Hello', { settings: { seed: 1 } })).rejects.toThrow(/openai:gpt-5.1 cannot take `seed`/)
    await expect(session.run('Hello', { settings: { temperature: 9 } })).rejects.toThrow(
      /"settings\.temperature".*from 0 to 2/,
    )
    const misspelled = { temprature: 1 } as object
    await expect(session.run('Hello', { settings: misspelled })).rejects.toThrow(/did you mean "settings\.temperature"/)
    await expect(session.run('Hello', { settings: { outputTokensMax: 0 } })).rejects.toThrow(/whole number of tokens/)
    expect((await session.events()).events).toHaveLength(1)
  })

  it('B-SETTINGS-6: thinking that leaves no room for the answer is refused before anything is written, for a model and for a run', async () => {
    const claude = 'anthropic:claude-sonnet-4-5'
    const tight = /cannot do `reasoning`.*`outputTokensMax` is \d+.*Set it to \d+ or more/
    for (const own of [
      { reasoning: 'high', outputTokensMax: 2_047 },
      { reasoning: { budgetTokens: 4_000 }, outputTokensMax: 4_000 },
    ] as const) {
      expect(() => model(claude, { key: 'k', ...own })).toThrow(tight)
      const session = await harnessWith({ model: model(claude, { key: 'k' }) }).open()
      await expect(session.run('Hello', { settings: own })).rejects.toThrow(tight)
      expect((await session.events()).events).toHaveLength(1)
    }
    expect(() => model(claude, { key: 'k', reasoning: 'high', outputTokensMax: 2_048 })).not.toThrow()
    expect(() =>
      model('anthropic:claude-opus-4-6', { key: 'k', reasoning: 'high', outputTokensMax: 500 }),
    ).not.toThrow()
  })

  it('B-SETTINGS-7: a tool that must be called and that the run does not have is refused before anything is written, with the tools there are', async () => {
    const { bodies, send } = chatHost()
    const asked = model('ollama:qwen3', { fetch: send })
    const look = defineTool({ name: 'look', description: 'x', input: z.object({}), effect: 'read', execute: () => 'x' })
    const session = await harnessWith({ model: asked, tools: [look] }).open()
    const settings = { toolChoice: { tool: 'lok' } }
    await expect(session.run('Hello', { settings })).rejects.toThrow(/toolChoice names the tool "lok".*It has: look\./)
    const none = { tools: [], settings: { toolChoice: { tool: 'look' } } }
    await expect(session.run('Hello', none)).rejects.toThrow(/"look".*It has none/)
    expect([(await session.events()).events.length, bodies.length]).toEqual([1, 0])
  })

  it('B-SETTINGS-5: a budget holds money for the longest answer that the settings allow', async () => {
    const { bodies, send } = chatHost()
    const prices = { 'ollama:*': { input: 1, output: 1_000 } }
    const asked = model('ollama:qwen3', { fetch: send, prices, outputTokensMax: 100 })
    const harness = harnessWith({ model: asked, budget: { runUsd: 1 } })
    expect(await harness.run('Hello')).toMatchObject({ status: 'completed' })
    const long = await harness.run('Hello', { settings: { outputTokensMax: 100_000 } })
    expect(long).toMatchObject({ status: 'limit', limit: 'usd' })
    expect(bodies).toHaveLength(1)
  })
})
