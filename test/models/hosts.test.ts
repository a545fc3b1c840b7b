// Hosts by name: Azure by its own address, others through the AI SDK, what a host offers, and how many tokens it counts.
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CAUTIOUS } from '../../src/models/price.ts'
import { countTokens, Fault, listModels, model, offline, type Reply } from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import { callContext, request, userSays } from './context.ts'
import { KEY } from './hosted-stage.ts'

type Heard = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A real server that gives the same answer to everything. */
async function serving(status: number, body: unknown): Promise<{ url: string; heard: Heard[] }> {
  const heard: Heard[] = []
  const server = createServer((asked, answer) => {
    let text = ''
    asked.on('data', (chunk: Buffer) => (text += chunk.toString()))
    asked.on('end', () => {
      heard.push({ method: asked.method ?? '', url: asked.url ?? '', headers: asked.headers, body: text })
      answer.writeHead(status, { 'content-type': 'application/json' })
      answer.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard }
}

const events = (...all: readonly object[]): string => all.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')

describe('hosts by name', () => {
  it('B-HOST-1: Azure is reached at the address of the own resource, with its own header for the key', async () => {
    const asked: { url: string; headers: Headers }[] = []
    const fetch: typeof globalThis.fetch = (url, init) => {
      asked.push({ url: url instanceof Request ? url.url : String(url), headers: new Headers(init?.headers) })
      return Promise.resolve(new Response('{}', { status: 400 }))
    }
    const env = { AZURE_RESOURCE_NAME: 'my-team', AZURE_OPENAI_API_KEY: KEY }
    const azure = model('azure:gpt-4.1', { env, fetch })
    await azure.call(request(), callContext().context)
    expect(asked[0]?.url).toBe('https://my-team.openai.azure.com/openai/v1/responses')
    expect(asked[0]?.headers.get('api-key')).toBe(KEY)
    expect(asked[0]?.headers.get('authorization')).toBeNull()
    expect(azure.secrets).toEqual({ AZURE_OPENAI_API_KEY: KEY })
    for (const name of [undefined, '', 'evil.example.org/x', 'a@b']) {
      const make = () => model('azure:gpt-4.1', { env: { ...env, AZURE_RESOURCE_NAME: name }, fetch })
      expect(make).toThrow(Fault)
      expect(make).toThrow('Set AZURE_RESOURCE_NAME')
    }
    expect(() => model('azure:gpt-4.1', { env: {}, baseUrl: 'https://proxy.example.org/v1' })).not.toThrow()
  })

  it('B-HOST-2: Bedrock and Vertex name the package of the AI SDK that they need, and their keys are secrets', async () => {
    const env = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'AKIA-1', AWS_SECRET_ACCESS_KEY: 'secret-1' }
    for (const [name, of] of [
      ['bedrock:anthropic.claude-sonnet-4-5', '@ai-sdk/amazon-bedrock'],
      ['vertex:gemini-2.5-pro', '@ai-sdk/google-vertex'],
    ] as const) {
      const named = model(name, { env })
      const answer = await named.call(request(), callContext().context)
      expect(answer).toMatchObject({ type: 'failure', class: 'bad_request', retryable: false })
      expect(answer).toHaveProperty('message', expect.stringContaining(`npm install ${of}.`))
      expect((await named.profile()).price.input).toBeGreaterThan(0)
      expect(() => model(name, { reasoning: 'low' })).toThrow('providerOptions')
      expect(() => model(name, { outputTokensMax: 0 })).toThrow(Fault)
    }
    expect(model('bedrock:a', { env }).secrets).toEqual({
      AWS_ACCESS_KEY_ID: 'AKIA-1',
      AWS_SECRET_ACCESS_KEY: 'secret-1',
    })
    expect(() => model('bedrok:a')).toThrow('bedrock')
  })

  it('B-HOST-3: google: is Gemini by its own protocol, with PDFs, thoughts and their signatures', async () => {
    const bodies: { contents: { role: string; parts: Record<string, unknown>[] }[] }[] = []
    const parts = [
      [{ text: 'I look.', thought: true }],
      [{ functionCall: { name: 'look', args: { city: 'Oslo' } }, thoughtSignature: 'c2lnbmVk' }],
    ]
    const chunks = parts.map((said) => ({ candidates: [{ content: { role: 'model', parts: said } }] }))
    const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 }
    const end = { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }], usageMetadata }
    const fetch: typeof globalThis.fetch = (_url, init) => {
      bodies.push(JSON.parse(init?.body as string) as (typeof bodies)[number])
      const headers = { 'content-type': 'text/event-stream' }
      return Promise.resolve(new Response(events(...chunks, end), { headers }))
    }
    const gemini = model('google:gemini-2.5-pro', { key: KEY, fetch, temperature: 0 })
    expect(gemini.secrets).toEqual({ GOOGLE_KEY: KEY })
    const pdf = { type: 'data', media: 'application/pdf', data: 'JVBERi0=' } as const
    const first = { role: 'user', seq: 1, parts: [{ type: 'text', text: 'Read.' }, pdf] } as const
    const look = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }
    const reply = (await gemini.call(request({ messages: [first], tools: [look] }), callContext().context)) as Reply
    expect(reply).toMatchObject({
      type: 'reply',
      finish: 'calls',
      route: 'google:gemini-2.5-pro',
      calls: [{ tool: 'look' }],
    })
    expect(reply.cost).toBeGreaterThan(0)
    // The name is one line less than the package by hand, and nothing else.
    const byHand = fromAiSdk(createGoogleGenerativeAI({ apiKey: KEY, fetch })('gemini-2.5-pro'), { temperature: 0 })
    await byHand.call(request({ messages: [first], tools: [look] }), callContext().context)
    expect(bodies.pop()).toEqual(bodies[0])
    expect(bodies[0]?.contents[0]?.parts).toContainEqual({
      inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' },
    })
    const calls = reply.calls.map(({ id, tool, args }, i) => ({
      key: `2.${i}`,
      id,
      tool,
      args: JSON.parse(args) as never,
    }))
    const again = [
      first,
      { role: 'assistant', seq: 2, parts: reply.parts, calls } as const,
      { role: 'tool', seq: 3, call: '2.0', id: calls[0]?.id ?? '', tool: 'look', ok: true, content: 'cold' } as const,
      userSays('Go on.', 4),
    ]
    await gemini.call(request({ messages: again, tools: [look] }), callContext().context)
    const sent = bodies[1]?.contents.find(({ role }) => role === 'model')?.parts ?? []
    expect(sent).toContainEqual(
      expect.objectContaining({
        thoughtSignature: 'c2lnbmVk',
        functionCall: expect.objectContaining({ args: { city: 'Oslo' } }) as object,
      }),
    )
  })
})

describe('what a host offers', () => {
  it('B-HOST-4: models come with the window that the host says, else that of the table, and with the price that counts', async () => {
    const list = {
      data: [
        { id: 'gpt-4.1', object: 'model' },
        { id: 'own-tune', object: 'model' },
        { id: 'priced', context_length: 1000, pricing: { prompt: '0.000001', completion: '0.000002' } },
        { id: 7 },
        null,
      ],
    }
    const { url, heard } = await serving(200, list)
    const offer = await listModels('openai', { key: KEY, baseUrl: url })
    expect(offer).toEqual({
      type: 'models',
      models: [
        {
          id: 'gpt-4.1',
          contextTokens: expect.any(Number) as number,
          price: expect.objectContaining({ input: 2, output: 8 }) as object,
        },
        { id: 'own-tune', price: CAUTIOUS, assumed: true },
        { id: 'priced', contextTokens: 1000, price: CAUTIOUS, assumed: true },
      ],
    })
    expect(heard[0]).toMatchObject({
      method: 'GET',
      url: '/models',
      headers: { authorization: `Bearer ${KEY}` },
      body: '',
    })
    await listModels('anthropic', { key: KEY, baseUrl: url })
    expect(heard[1]).toMatchObject({
      url: '/v1/models?limit=1000',
      headers: { 'x-api-key': KEY, 'anthropic-version': '2023-06-01' },
    })
    const together = await serving(200, [{ id: 'm', pricing: { input: 0.5, output: 1 } }])
    expect(await listModels('together', { key: KEY, baseUrl: together.url })).toMatchObject({
      models: [{ id: 'm', price: CAUTIOUS, assumed: true }],
    })
    // Its answers say what they cost.
    const router = await serving(200, list)
    expect(await listModels('openrouter', { key: KEY, baseUrl: router.url })).toMatchObject({
      models: [{}, {}, { id: 'priced', price: { input: 1, output: 2 } }],
    })
    const gemini = await serving(200, { data: [{ id: 'models/gemini-x' }] })
    expect(await listModels('gemini', { key: KEY, baseUrl: gemini.url })).toMatchObject({
      models: [{ id: 'gemini-x' }],
    })
  })

  it('B-ERROR2-5: the price that is listed is the one that is charged: your own, that of the table, or the cautious one', async () => {
    const usage = { inputTokens: 1_000_000, outputTokens: 1_000_000 }
    const { url } = await serving(200, {
      data: [{ id: 'gpt-4.1', pricing: { input: 9, output: 9 } }, { id: 'own-tune' }],
    })
    for (const prices of [{}, { 'openai:*': { input: 5, output: 7 } }]) {
      const options = { key: KEY, baseUrl: url, prices }
      const offer = await listModels('openai', options)
      if (offer.type === 'failure') throw new Error(offer.message)
      for (const { id, price } of offer.models) {
        const { cost } = await model(`openai:${id}`, options).profile()
        expect([id, cost(usage)]).toEqual([id, (price.input + price.output) * 1_000_000])
      }
    }
    const own = await serving(200, { data: [{ id: 'qwen3' }] })
    expect(await listModels('ollama', { baseUrl: own.url })).toMatchObject({
      models: [{ price: { input: 0, output: 0 } }],
    })
  })

  it('B-HOST-5: trouble of a host is one failure without the key, and the answer is bounded', async () => {
    const refused = await serving(401, { error: { message: `Wrong key ${KEY}` } })
    const answer = await listModels('openai', { key: KEY, baseUrl: refused.url })
    expect(answer).toMatchObject({ type: 'failure', class: 'auth', message: 'HTTP 401: Wrong key [key]' })
    for (const body of ['<html>', '{}', '"text"', '[', 'x'.repeat(9 * 1024 * 1024)]) {
      const odd = await serving(200, body)
      expect(await listModels('openai', { key: KEY, baseUrl: odd.url })).toMatchObject({ type: 'failure' })
    }
    expect(await listModels('openai', { key: KEY, baseUrl: 'http://127.0.0.1:9' })).toMatchObject({ class: 'network' })
    expect(await listModels('openai', { env: {} })).toMatchObject({ class: 'auth' })
    await expect(listModels('nowhere')).rejects.toThrow(Fault)
    await expect(listModels('offline')).rejects.toThrow(Fault)
    const silent = createServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      silent.closeAllConnections()
      silent.close()
    })
    const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const late = await listModels('openai', { key: KEY, baseUrl, deadlines: { firstByteMs: 50 } })
    expect(late).toMatchObject({ type: 'failure', message: expect.stringContaining('50 ms') as string })
  })

  it('B-HOST-6: tokens are counted by the host where it counts, estimated elsewhere, and it is said which', async () => {
    const { url, heard } = await serving(200, { input_tokens: 42 })
    const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }]
    const claude = model('anthropic:claude-sonnet-4-5', { key: KEY, baseUrl: url, outputTokensMax: 9, stop: ['END'] })
    expect(await countTokens(claude, { instructions: 'Be kind.', tools, messages: [userSays('Hi')] })).toEqual({
      tokens: 42,
      exact: true,
    })
    const sent = JSON.parse(heard[0]?.body ?? '') as object
    expect(heard[0]?.url).toBe('/v1/messages/count_tokens')
    expect(Object.keys(sent).sort()).toEqual(['messages', 'model', 'system', 'tool_choice', 'tools'])
    expect(await countTokens(model('openai:gpt-5.2', { key: KEY, baseUrl: url }), 'Hi')).toEqual({
      tokens: 42,
      exact: true,
    })
    expect(heard[1]?.url).toBe('/responses/input_tokens')
    expect(Object.keys(JSON.parse(heard[1]?.body ?? '') as object).sort()).toEqual(['input', 'model'])
    expect(await countTokens(model('groq:m', { key: KEY, baseUrl: url }), 'x'.repeat(300))).toEqual({
      tokens: 100,
      exact: false,
    })
    expect(await countTokens(offline(), 'abc')).toMatchObject({ exact: false })
    expect(heard).toHaveLength(2)
    const down = await serving(404, { error: { message: 'no such path' } })
    const guess = await countTokens(model('anthropic:claude-x', { key: KEY, baseUrl: down.url }), 'abc')
    expect(guess).toEqual({ tokens: 1, exact: false, why: 'HTTP 404: no such path' })
    await expect(countTokens(claude, { mesages: [] } as object)).rejects.toThrow('messages')
  })
})
