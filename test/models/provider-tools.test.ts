// Tools that a provider runs itself: how they are asked for, what their calls and results become, and what goes back to whom. The
// recorded streams come from a real server, and each request is held to the strict server's rules.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  codeExecution,
  defineTool,
  type Endpoint,
  type FaultCode,
  fileSearch,
  type HostedOptions,
  memory,
  model,
  type ProviderTool,
  webFetch,
  webSearch,
} from '../../src/index.ts'
import type { Part } from '../../src/kernel/content.ts'
import { findBrokenRule } from '../../src/testing/provider-rules.ts'
import { bytesOf } from './aisdk-stage.ts'
import type { Dialect } from '../../src/testing/index.ts'
import { eventsOf, harnessOf, ofType } from './hosted-stage.ts'
import { z } from 'zod'

type Body = {
  readonly tools?: readonly object[]
  readonly tool_choice?: unknown
  readonly include?: readonly string[]
  readonly messages: readonly { readonly role: string; readonly content: readonly object[] }[]
  readonly input: readonly { readonly type: string }[]
}
type Asked = { readonly headers: Readonly<Record<string, string>>; readonly body: Body }

/** A server that gives these recordings in turn, and what it was asked. A request that breaks a published rule is refused. */
async function playing(dialect: Dialect, ...streams: readonly (Uint8Array | string)[]) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Body
      const headers = request.headers as Record<string, string>
      asked.push({ headers, body })
      const issued = { signatures: new Map(), items: new Map(), responses: new Map() }
      const wrong = findBrokenRule(dialect, { headers, body: body as never, issued })
      if (wrong) return void response.writeHead(400).end(JSON.stringify({ error: wrong.refusal }))
      response.setHeader('content-type', 'text/event-stream').end(streams[Math.min(asked.length, streams.length) - 1])
    })
  })
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, url }
}

const NAMES = { messages: 'anthropic:claude-opus-4-6', responses: 'openai:gpt-5.2', chat: 'openrouter:some/model' }

function at(url: string, dialect: Dialect, options: HostedOptions) {
  return model(NAMES[dialect], { key: 'k', baseUrl: dialect === 'messages' ? url : `${url}/v1`, ...options })
}

const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

/** An answer of Messages made of these blocks. */
function answer(blocks: readonly object[], stop = 'end_turn', searches = 0): string {
  const usage = { input_tokens: 9, output_tokens: 9, server_tool_use: { web_search_requests: searches } }
  return [
    event('message_start', { message: { id: 'msg_1', content: [], usage } }),
    ...blocks.flatMap((content_block, index) => [
      event('content_block_start', { index, content_block }),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', { delta: { stop_reason: stop }, usage }),
    event('message_stop', {}),
  ].join('')
}

const ASKED = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'tides' } }
const FOUND = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [
    { type: 'web_search_result', url: 'https://a.example/', title: 'A', encrypted_content: 'EnC+/=', odd: [1, null] },
  ],
}
const citation = (url: string) => {
  return { type: 'web_search_result_location', url, title: 'A', cited_text: 'noon', encrypted_index: 'Ix==' }
}
const CITED = {
  type: 'text',
  text: 'At noon.',
  citations: [citation('https://a.example/'), citation('javascript:alert(1)')],
}
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } }

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: () => 'seen',
})
/** A tool of ours with the name of the provider's. */
const ownSearch = defineTool({
  name: 'web_search',
  description: 'Searches.',
  input: z.object({ query: z.string() }),
  effect: 'read',
  execute: () => 'ours ran',
})

describe('tools of the provider', () => {
  it('B-SERVERTOOL-1: stand beside tools of ours, and are written as the AI SDK writes them', async () => {
    const every: ProviderTool[] = [
      webSearch({ maxUses: 3, allowedDomains: ['a.example'], location: { city: 'Brest', country: 'FR' } }),
      webFetch({ maxUses: 2, blockedDomains: ['b.example'], citations: true, contentTokensMax: 900 }),
      codeExecution(),
    ]
    const { asked, url } = await playing('messages', answer([{ type: 'text', text: 'Hi.' }]))
    const harness = harnessOf({
      model: at(url, 'messages', { providerTools: every, headers: { 'anthropic-beta': 'own-beta' } }),
      tools: [look],
    })
    await (await harness.open({ id: 's' })).run('hello')
    const { tools } = createAnthropic({ apiKey: 'k' })
    const sdk = await sent(createAnthropic({ apiKey: 'k', fetch: keep })('claude-opus-4-6'), [
      provider(
        'web_search',
        tools.webSearch_20250305({
          maxUses: 3,
          allowedDomains: ['a.example'],
          userLocation: { type: 'approximate', city: 'Brest', country: 'FR' },
        }),
      ),
      provider(
        'web_fetch',
        tools.webFetch_20250910({
          maxUses: 2,
          blockedDomains: ['b.example'],
          citations: { enabled: true },
          maxContentTokens: 900,
        }),
      ),
      provider('code_execution', tools.codeExecution_20250825()),
    ])
    const written = asked[0]?.body.tools ?? []
    expect(written[0]).toMatchObject({ name: 'look' })
    expect(unmarked(written.slice(1))).toEqual(sdk)
    expect(asked[0]?.headers['anthropic-beta']?.split(',')).toEqual(
      expect.arrayContaining(['own-beta', 'web-fetch-2025-09-10', 'code-execution-2025-08-25']),
    )
  })

  it('B-SERVERTOOL-1: are written for OpenAI as the AI SDK writes them, with what their results need', async () => {
    const every = [
      webSearch({ contextSize: 'low', allowedDomains: ['a.example'], location: { country: 'FR' } }),
      codeExecution(),
      fileSearch({ vectorStores: ['vs_1'], resultsMax: 4 }),
    ]
    const { asked, url } = await playing('responses', bytesOf('responses/unknown-events'))
    const harness = harnessOf({ model: at(url, 'responses', { providerTools: every }), tools: [look] })
    await (await harness.open({ id: 's' })).run('hello')
    const { tools } = createOpenAI({ apiKey: 'k' })
    const sdk = await sent(createOpenAI({ apiKey: 'k', fetch: keep }).responses('gpt-5.2'), [
      provider(
        'web_search',
        tools.webSearch({
          searchContextSize: 'low',
          filters: { allowedDomains: ['a.example'] },
          userLocation: { type: 'approximate', country: 'FR' },
        }),
      ),
      provider('code_interpreter', tools.codeInterpreter()),
      provider('file_search', tools.fileSearch({ vectorStoreIds: ['vs_1'], maxNumResults: 4 })),
    ])
    expect(asked[0]?.body.tools?.slice(1)).toEqual(sdk)
    expect(asked[0]?.body.include).toEqual(
      expect.arrayContaining(['code_interpreter_call.outputs', 'file_search_call.results']),
    )
  })

  it('B-SERVERTOOL-2: their calls are parts and never run here, and go back byte for byte with what the text cites', async () => {
    const replies = [answer([ASKED, FOUND, CITED, CALL], 'tool_use', 1), answer([{ type: 'text', text: 'Done.' }])]
    const { asked, url } = await playing('messages', ...replies)
    const store = memory()
    const harness = harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()] }), tools: [look], store })
    const session = await harness.open({ id: 's' })
    const result = await session.run('when?')
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(result.calls.map(({ tool }) => tool)).toEqual(['look'])
    const events = await eventsOf(store, session.id)
    expect(ofType(events, 'agent.tool_use')).toHaveLength(1)
    const [, said] = asked[1]?.body.messages ?? []
    expect(JSON.stringify(said?.content)).toBe(JSON.stringify([ASKED, FOUND, CITED, CALL]))
    // The two requests of the run begin alike, and so does a third.
    await session.run('again')
    expect(JSON.stringify(asked[2]?.body.messages[1])).toBe(JSON.stringify(said))
  })

  it('B-SERVERTOOL-2: an item of OpenAI goes back whole and in its place', async () => {
    const { asked, url } = await playing('responses', bytesOf('responses/unknown-events'))
    const harness = harnessOf({ model: at(url, 'responses', { providerTools: [webSearch()] }) })
    const session = await harness.open({ id: 's' })
    await session.run('when?')
    await session.run('and now?')
    const item = {
      id: 'ws_unk14',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'tide tables' },
    }
    expect(asked[1]?.body.input.map(({ type }) => type)).toEqual(['message', 'web_search_call', 'message', 'message'])
    expect(asked[1]?.body.input[1]).toEqual(item)
  })

  it('B-SERVERTOOL-3: half of a pair is left out, and nothing of it goes to another provider', async () => {
    const cut = await playing('messages', answer([{ type: 'text', text: 'I look. ' }, ASKED], 'max_tokens'))
    const store = memory()
    const halved = harnessOf({ model: at(cut.url, 'messages', { providerTools: [webSearch()] }), store })
    const session = await halved.open({ id: 's' })
    await session.run('when?')
    await session.run('again')
    expect(cut.asked[1]?.body.messages[1]?.content).toEqual([{ type: 'text', text: 'I look. ' }])

    const full = await playing('messages', answer([ASKED, FOUND, CITED]))
    const shared = memory()
    const first = harnessOf({ model: at(full.url, 'messages', { providerTools: [webSearch()] }), store: shared })
    await (await first.open({ id: 's' })).run('when?')
    const other = await playing('responses', bytesOf('responses/unknown-events'))
    const second = harnessOf({ model: at(other.url, 'responses', {}), store: shared })
    await second.session('s').run('again')
    expect(JSON.stringify(other.asked[0]?.body.input)).not.toMatch(/srvtoolu|EnC|Ix==/)
    expect(JSON.stringify(other.asked[0]?.body.input)).toContain('At noon.')
  })

  it('B-SERVERTOOL-4: a host without the tool, or with another form of it, is refused at construction', () => {
    const wrong = (name: string, tools: unknown, more: object = {}): unknown => {
      try {
        model(name, { key: 'k', providerTools: tools as ProviderTool[], ...more })
        return null
      } catch (error) {
        const { code, message } = error as { readonly code: FaultCode; readonly message: string }
        return `${code}: ${message}`
      }
    }
    expect(wrong('groq:llama', [webSearch()])).toMatch(
      /^invalid_config: groq:llama has no web_search of its own: .*webSearchTool/,
    )
    expect(wrong('openai:gpt-5.2', [webFetch()])).toMatch(/^invalid_config: openai:gpt-5.2 has no web_fetch/)
    expect(wrong('anthropic:claude-x', [fileSearch({ vectorStores: ['v'] })])).toMatch(/has no file_search/)
    expect(wrong('openai:gpt-5.2', [webSearch({ maxUses: 1 })])).toMatch(/takes no `maxUses`/)
    expect(wrong('anthropic:claude-x', [webSearch({ contextSize: 'low' })])).toMatch(/takes no `contextSize`/)
    expect(wrong('anthropic:claude-x', [webSearch({ allowedDomains: ['a'], blockedDomains: ['b'] })])).toMatch(
      /not both/,
    )
    expect(wrong('anthropic:claude-x', [webSearch(), webSearch()])).toMatch(/twice/)
    expect(wrong('anthropic:claude-x', [{ type: 'web_search', maxUse: 1 }])).toMatch(/^invalid_config: .*maxUse/)
    expect(wrong('anthropic:claude-x', 'web_search')).toMatch(/must be a list/)
    expect(wrong('anthropic:claude-x', [null])).toMatch(/takes what webSearch\(\)/)
    const own: Endpoint = {
      name: 'own',
      protocol: 'messages',
      baseUrl: 'http://h',
      keys: [],
      keyHeader: 'x-api-key',
      quirks: {},
      headers: {},
    }
    expect(wrong('own:m', [webSearch()], { endpoints: [own] })).toMatch(/^invalid_config: own:m has no web_search/)
    const able = { ...own, quirks: { providerTools: ['web_search'] } }
    expect(wrong('own:m', [webSearch()], { endpoints: [able] })).toBeNull()
    expect(() => webSearch({ maxUses: 0 })).toThrow(/maxUses/)
    expect(() => fileSearch({} as never)).toThrow(/vectorStores/)
  })

  it('B-SERVERTOOL-5: a tool of ours with the same name is not offered to a host that has its own', async () => {
    const { asked, url } = await playing('messages', answer([{ type: 'text', text: 'Hi.' }]))
    const harness = harnessOf({
      model: at(url, 'messages', { providerTools: [webSearch()] }),
      tools: [ownSearch, look],
    })
    await (await harness.open({ id: 's' })).run('hello')
    expect(names(asked[0])).toEqual(['look', 'web_search'])
    expect(asked[0]?.body.tools?.[1]).toMatchObject({ type: 'web_search_20250305' })
    const plain = harnessOf({ model: at(url, 'messages', {}), tools: [ownSearch, look] })
    await (await plain.open({ id: 's' })).run('hello')
    expect(asked[1]?.body.tools?.[0]).toMatchObject({ name: 'web_search', description: 'Searches.' })
  })

  it('B-SERVERTOOL-6: what a reply cites are its sources, each page once, and no address of a script', async () => {
    const { url } = await playing('messages', answer([ASKED, FOUND, CITED, CITED]))
    const store = memory()
    const harness = harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()] }), store })
    const session = await harness.open({ id: 's' })
    const result = await session.run('when?')
    const source = { type: 'source', url: 'https://a.example/', title: 'A' }
    expect(result.sources).toEqual([source])
    const [reply] = ofType(await eventsOf(store, session.id), 'agent.message')
    expect(reply?.parts.filter(({ type }) => type === 'source')).toEqual([source])
  })

  it('B-SERVERTOOL-6: annotations and lists of Chat Completions are sources', async () => {
    const chunk = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
    const choice = (delta: object, more: object = {}) => ({ choices: [{ index: 0, delta, ...more }] })
    const annotation = { type: 'url_citation', url_citation: { url: 'https://a.example/', title: 'A' } }
    const listed = {
      citations: ['https://b.example/', 'ftp://c.example/'],
      search_results: [{ url: 'https://b.example/', title: 'B' }],
    }
    const stream = [
      chunk({ ...choice({ content: 'Noon.' }), ...listed }),
      chunk({ ...choice({ content: ' Yes.' }), ...listed }),
      chunk(choice({ content: '', annotations: [annotation] }, { finish_reason: 'stop' })),
      'data: [DONE]\n\n',
    ]
    const { url } = await playing('chat', stream.join(''))
    const result = await (await harnessOf({ model: at(url, 'chat', {}) }).open({ id: 's' })).run('when?')
    expect(result.text).toBe('Noon. Yes.')
    expect(result.sources).toEqual([
      { type: 'source', url: 'https://b.example/', title: 'B' },
      { type: 'source', url: 'https://a.example/', title: 'A' },
    ])
  })

  it('B-SERVERTOOL-7: searches of the provider are counted and cost money', async () => {
    const { url } = await playing('messages', answer([ASKED, FOUND, CITED], 'end_turn', 2))
    const store = memory()
    const prices = { 'anthropic:*': { input: 0, output: 0, webSearch: 25 } }
    const harness = harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()], prices }), store })
    const session = await harness.open({ id: 's' })
    expect((await session.run('when?')).cost.micros).toBe(50_000)
    const [reply] = ofType(await eventsOf(store, session.id), 'agent.message')
    expect(reply?.usage).toMatchObject({ webSearches: 2 })
    // Without a price of one's own it is what both providers publish: 10 dollars for a thousand.
    const free = { 'anthropic:*': { input: 0, output: 0 } }
    const plain = harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()], prices: free }) })
    expect((await (await plain.open({ id: 's' })).run('when?')).cost.micros).toBe(20_000)
  })

  it('B-SERVERTOOL-8: a refused block of a provider tool is left out, and the session goes on', async () => {
    const good = answer([ASKED, FOUND, CITED])
    let refused = 0
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (!Buffer.concat(chunks).includes('srvtoolu_1')) return void response.end(good)
        refused += 1
        const message = '`web_search` tool use with id `srvtoolu_1` was found without a corresponding block'
        response
          .writeHead(400)
          .end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }))
      })
    })
    await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const session = await harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()] }) }).open({ id: 's' })
    await session.run('when?')
    expect(await session.run('again')).toMatchObject({ status: 'completed', text: 'At noon.' })
    expect(refused).toBe(1)
  })

  it('B-SERVERTOOL-9: a block with a secret in it is not kept', async () => {
    const told = {
      ...FOUND,
      content: [{ type: 'web_search_result', url: 'https://a.example/', title: 'hush-hush-1234567' }],
    }
    const { asked, url } = await playing('messages', answer([ASKED, told, CITED]))
    const store = memory()
    const secrets = { TOKEN: 'hush-hush-1234567' }
    const harness = harnessOf({ model: at(url, 'messages', { providerTools: [webSearch()] }), store, secrets })
    const session = await harness.open({ id: 's' })
    await session.run('when?')
    await session.run('again')
    const events = await eventsOf(store, session.id)
    expect(JSON.stringify(events)).not.toContain('hush-hush')
    const parts: readonly Part[] = ofType(events, 'agent.message')[0]?.parts ?? []
    expect(parts).toContainEqual({ type: 'provider', tool: 'web_search', opaque: null })
    expect(JSON.stringify(asked[1]?.body.messages)).not.toContain('srvtoolu')
  })
})

function names(asked: Asked | undefined): readonly unknown[] {
  return (asked?.body.tools ?? []).map((tool) => (tool as { readonly name?: string }).name)
}

/** The mark for the prompt cache is ours. */
function unmarked(tools: readonly object[]): readonly object[] {
  return tools.map((tool) => Object.fromEntries(Object.entries(tool).filter(([name]) => name !== 'cache_control')))
}

let kept: readonly object[] = []
const keep: typeof fetch = (_url, init) => {
  kept = (JSON.parse(init?.body as string) as { readonly tools: readonly object[] }).tools
  return Promise.resolve(new Response('', { status: 400 }))
}

function provider(name: string, tool: unknown) {
  const { id, args } = tool as { readonly id: `${string}.${string}`; readonly args: Record<string, unknown> }
  return { type: 'provider' as const, id, name, args }
}

type Sdk = ReturnType<ReturnType<typeof createAnthropic>>

/** The tools as the AI SDK sends them. */
async function sent(sdk: Sdk, tools: readonly ReturnType<typeof provider>[]): Promise<readonly object[]> {
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }]
  await sdk.doStream({ prompt, tools: [...tools] }).then(
    () => {},
    () => {},
  )
  return kept
}
