// How many tokens a model takes: from the table, from its host, and what is said where nobody knows it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fallback, Harness, memory, model } from '../../src/index.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { profileOf } from '../../src/models/price.ts'

type Answers = Readonly<Record<string, unknown>>
type Asked = { readonly paths: string[]; readonly url: string }

/** A host that answers these paths with JSON, and chats with one word. `null` never answers, a text is sent as it is. */
async function host(answers: Answers, wordTokens = 1_500): Promise<Asked> {
  const paths: string[] = []
  const chat = (response: ServerResponse): void => {
    const usage = { prompt_tokens: wordTokens, completion_tokens: 1, total_tokens: wordTokens + 1 }
    const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const said = { ...chunk, choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }], usage }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${JSON.stringify(said)}\n\ndata: [DONE]\n\n`)
  }
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const path = request.url ?? ''
    paths.push(path)
    if (path.endsWith('/chat/completions')) return chat(response)
    const said = answers[path]
    if (said === null) return
    if (said === undefined) return void response.writeHead(404).end('{}')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(typeof said === 'string' ? said : JSON.stringify(said))
  }
  const server = createServer((request, response) => void request.resume().on('end', () => answer(request, response)))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { paths, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

async function windowOf(name: string, url: string): Promise<number | null> {
  const asked = model(name, { baseUrl: url, key: 'k-1234567890' })
  await asked.askWindow?.(runtimeClock)
  return (await asked.profile()).contextTokens
}

describe('the table of windows', () => {
  it.each([
    ['gemini', 'gemini-2.5-pro', 1_048_576],
    ['gemini', 'gemini-2.5-flash-lite', 1_000_000],
    ['gemini', 'gemini-3-pro-preview', 1_048_576],
    ['gemini', 'gemma-3-27b-it', 131_072],
    ['groq', 'llama-3.3-70b-versatile', 131_072],
    ['groq', 'llama-3.1-8b-instant', 131_072],
    ['groq', 'gemma2-9b-it', 8_192],
    ['groq', 'qwen/qwen3-32b', 131_072],
    ['mistral', 'mistral-large-latest', 131_072],
    ['mistral', 'mistral-small-latest', 131_072],
    ['mistral', 'codestral-latest', 256_000],
    ['mistral', 'open-mixtral-8x7b', 32_768],
    ['together', 'meta-llama/Llama-3.3-70B-Instruct-Turbo', 128_000],
    ['together', 'Qwen/Qwen2.5-72B-Instruct-Turbo', 32_768],
    ['together', 'deepseek-ai/DeepSeek-V3', 128_000],
    ['moonshot', 'moonshot-v1-8k', 8_192],
    ['moonshot', 'moonshot-v1-32k', 32_768],
    ['moonshot', 'kimi-k2-turbo-preview', 262_144],
  ])('B-WINDOW-1: knows %s:%s', async (provider, id, tokens) => {
    expect((await profileOf(provider, id)).contextTokens).toBe(tokens)
  })

  it('B-WINDOW-1: what the user sets counts first, and a name that nobody knows stays unknown', async () => {
    const table = { 'gemini:gemini-2.5-pro': { input: 1, output: 1, contextTokens: 5_000 } }
    expect((await profileOf('gemini', 'gemini-2.5-pro', table)).contextTokens).toBe(5_000)
    expect((await profileOf('groq', 'of-tomorrow')).contextTokens).toBeNull()
    expect((await profileOf('of-nobody', 'gemini-2.5-pro')).contextTokens).toBeNull()
  })
})

describe('a host that is asked', () => {
  it.each([
    [
      'groq:new-model',
      {
        data: [
          { id: 'other', context_window: 5 },
          { id: 'new-model', context_window: 64_000 },
        ],
      },
    ],
    ['mistral:new-model', { data: [{ id: 'new-model', max_context_length: 64_000 }] }],
    ['together:new-model', [{ id: 'new-model', context_length: 64_000 }]],
    ['moonshot:new-model', { data: [{ id: 'new-model', context_length: 64_000 }] }],
    ['vllm:new-model', { data: [{ id: 'new-model', max_model_len: 64_000 }] }],
  ])('B-WINDOW-2: says it in its list of models: %s', async (name, list) => {
    const { url, paths } = await host({ '/v1/models': list })
    expect(await windowOf(name, url)).toBe(64_000)
    expect(paths).toEqual(['/v1/models'])
  })

  it('B-WINDOW-2: of Ollama, what the model file sets counts, then what is loaded, then what the model was made for', async () => {
    const info = { model_info: { 'general.architecture': 'qwen3', 'qwen3.context_length': 40_960 } }
    const show = (parameters?: string) => ({ '/api/show': { ...info, parameters } })
    const ps = { '/api/ps': { models: [{ name: 'qwen3:latest', context_length: 4_096 }] } }
    const set = 'stop    "<|im_end|>"\nnum_ctx                        8192'
    for (const [answers, tokens] of [
      [{ ...show(set), ...ps }, 8_192],
      [{ ...show(), ...ps }, 4_096],
      [show(), 40_960],
      [{}, null],
    ] as const) {
      const { url } = await host(answers)
      expect(await windowOf('ollama:qwen3', url)).toBe(tokens)
    }
  })

  it('B-WINDOW-3: that says nonsense, or nothing, has said nothing', async () => {
    const odd: readonly unknown[] = [
      'no json',
      [],
      {},
      { data: 5 },
      { data: [{ id: 'new-model', context_window: -1 }] },
      { data: [{ id: 'new-model', context_window: '64000' }] },
      { data: [{ id: 'new-model', context_window: 1e15 }] },
      { data: [null, 5, { id: 5 }] },
    ]
    for (const list of odd) {
      const { url } = await host({ '/v1/models': list })
      expect([list, await windowOf('groq:new-model', url)]).toEqual([list, null])
    }
    expect(await windowOf('groq:new-model', 'http://127.0.0.1:1/v1')).toBeNull()
  })

  it('B-WINDOW-3: that never answers is waited for 5 seconds by the clock, and not longer', async () => {
    const { url } = await host({ '/v1/models': null })
    const waits: number[] = []
    const asked = model('groq:new-model', { baseUrl: url, key: 'k-1234567890' })
    await asked.askWindow?.({
      ...runtimeClock,
      timer: (ms, then) => {
        waits.push(ms)
        return runtimeClock.timer(1, then)
      },
    })
    expect(waits).toEqual([5_000])
    expect((await asked.profile()).contextTokens).toBeNull()
  })

  it('B-WINDOW-2: is asked once, also in a chain, and not where a table says it', async () => {
    const { url, paths } = await host({ '/v1/models': { data: [{ id: 'new-model', context_window: 64_000 }] } })
    const [unknown, known] = ['groq:new-model', 'groq:llama-3.3-70b-versatile'].map((name) =>
      model(name, { baseUrl: url, key: 'k-1234567890' }),
    ) as [ReturnType<typeof model>, ReturnType<typeof model>]
    const chain = fallback(known, unknown)
    await Promise.all([
      chain.askWindow?.(runtimeClock),
      chain.askWindow?.(runtimeClock),
      known.askWindow?.(runtimeClock),
    ])
    expect((await chain.profile()).contextTokens).toBe(64_000)
    expect(paths).toEqual(['/v1/models'])
  })
})

describe('a run', () => {
  it('B-WINDOW-2: asks for the window when the session is long enough, and shows it; not where it is set', async () => {
    for (const [compaction, asks] of [
      [{}, true],
      [{ windowTokens: 20_000 }, false],
    ] as const) {
      const { url, paths } = await host({ '/v1/models': { data: [{ id: 'new-model', context_window: 64_000 }] } })
      const harness = new Harness({
        model: model('groq:new-model', { baseUrl: url, key: 'k-1234567890' }),
        store: memory(),
        context: { compaction },
      })
      onTestFinished(() => harness.close())
      const session = await harness.open()
      for (let i = 0; i < 3; i++) expect(await session.run(`Hello ${i}.`)).toMatchObject({ status: 'completed' })
      expect(paths.filter((path) => path === '/v1/models').length).toBe(asks ? 1 : 0)
      expect((await session.status({ include: ['contextReport'] })).contextReport.window).toBe(asks ? 64_000 : 20_000)
    }
  })

  it('B-WINDOW-4: says once for each model of the process that its window is unknown', async () => {
    const { url } = await host({})
    const told: string[] = []
    const runs = async (name: string): Promise<void> => {
      const harness = new Harness({
        model: model(name, { baseUrl: url, key: 'k-1234567890' }),
        store: memory(),
        onError: (where, error) => void told.push(`${where} ${String(error)}`),
      })
      onTestFinished(() => harness.close())
      const session = await harness.open()
      for (let i = 0; i < 3; i++) await session.run('Hello.')
    }
    for (const name of ['groq:first-unknown', 'groq:first-unknown', 'groq:second-unknown']) await runs(name)
    expect(told.map((text) => /groq:\S+/.exec(text)?.[0])).toEqual(['groq:first-unknown', 'groq:second-unknown'])
  })
})
