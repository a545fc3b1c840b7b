// The settings of a model: where each goes on the wire, which are refused, and what the AI SDK makes of the same.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Fault, type HostedOptions, model } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import { endpoints } from '../../src/models/http/endpoints.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import type { Protocol, RequestSettings, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import type { Request } from '../../src/ports/model.ts'
import { bodyOf, KEY, noting, stage } from './hosted-stage.ts'

const look = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } } as const
const asked: Request = {
  session: 's',
  seq: 9,
  instructions: 'Be kind.',
  tools: [look],
  allow: 'all',
  boost: false,
  messages: [{ role: 'user', seq: 1, parts: [{ type: 'text', text: 'Hi' }] }],
}
const after: Request = {
  ...asked,
  messages: [
    ...asked.messages,
    { role: 'assistant', seq: 2, parts: [], calls: [{ key: '2.0', id: 'a', tool: 'look', args: {} }] },
    { role: 'tool', seq: 3, call: '2.0', id: 'a', tool: 'look', ok: true, content: 'dark' },
  ],
}

type Body = Readonly<Record<string, Json>>
const protocols: Readonly<Record<string, Protocol<unknown>>> = {
  messages: messagesProtocol,
  responses: responsesProtocol,
  chat: chatProtocol,
}

/** The body for a model of a listed host. */
function sent(name: string, settings: RequestSettings, request: Request = asked): Body {
  const [host = '', id = ''] = name.split(':')
  const { protocol = 'chat', quirks = {} } = endpoints[host] ?? {}
  const target: ModelTarget = { endpoint: host, model: id, settings, quirks }
  return JSON.parse((protocols[protocol] as Protocol<unknown>).encode(request, target).body) as Body
}

/** The body that the AI SDK would send. */
async function sdkSent(
  make: (fetch: typeof globalThis.fetch) => LanguageModelV3,
  options: Partial<LanguageModelV3CallOptions>,
): Promise<Body> {
  let body: Body = {}
  const fetch: typeof globalThis.fetch = (_url, init) => {
    body = JSON.parse(init?.body as string) as Body
    return Promise.resolve(new Response('{}', { status: 400 }))
  }
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }]
  const tool = { type: 'function' as const, name: 'look', inputSchema: { type: 'object', properties: {} } } as const
  await Promise.resolve(make(fetch).doStream({ prompt, tools: [tool], ...options })).catch(() => {})
  return body
}

const pick = (body: Body, ...fields: readonly string[]): Body =>
  Object.fromEntries(fields.flatMap((field) => (body[field] === undefined ? [] : [[field, body[field]]])))

const FIELDS = 'temperature top_p seed stop stop_sequences tool_choice parallel_tool_calls service_tier'.split(' ')
const three = {
  temperature: 0.5,
  seed: 7,
  stop: ['END'],
  parallelToolCalls: false,
  toolChoice: { tool: 'look' },
} as const
const sampled: Partial<LanguageModelV3CallOptions> = {
  temperature: 0.5,
  stopSequences: ['END'],
  toolChoice: { type: 'tool', toolName: 'look' },
}

describe('settings on the wire', () => {
  it('B-SETTING-1: each setting goes into the field that the protocol has for it', () => {
    expect(pick(sent('groq:m', { ...three, topP: 0.9, serviceTier: 'flex' }), ...FIELDS)).toEqual({
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ['END'],
      tool_choice: { type: 'function', function: { name: 'look' } },
      parallel_tool_calls: false,
      service_tier: 'flex',
    })
    expect(sent('mistral:m', { seed: 7 })).toMatchObject({ random_seed: 7 })
    const openai = { topP: 0.9, parallelToolCalls: false, toolChoice: 'required', serviceTier: 'priority' } as const
    expect(pick(sent('openai:gpt-4.1', openai), ...FIELDS)).toEqual({
      top_p: 0.9,
      tool_choice: 'required',
      parallel_tool_calls: false,
      service_tier: 'priority',
    })
    const claude = { topP: 0.9, stop: ['END'], parallelToolCalls: false, serviceTier: 'standard_only' } as const
    expect(pick(sent('anthropic:claude-sonnet-4-5', claude), ...FIELDS)).toEqual({
      top_p: 0.9,
      stop_sequences: ['END'],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      service_tier: 'standard_only',
    })
    for (const name of ['groq:m', 'openai:gpt-4.1', 'anthropic:claude-sonnet-4-5']) {
      const plain = pick(sent(name, {}), ...FIELDS)
      expect(plain).not.toHaveProperty('temperature')
      expect(Object.keys(plain).length).toBeLessThan(2)
    }
  })

  it('B-SETTING-1: the AI SDK puts the same settings into the same fields', async () => {
    const key = { apiKey: 'none' }
    const openaiOptions = { openai: { parallelToolCalls: false, serviceTier: 'priority' } }
    const completions = await sdkSent((fetch) => createOpenAI({ ...key, fetch }).chat('gpt-4.1'), {
      ...sampled,
      seed: 7,
      providerOptions: openaiOptions,
    })
    expect(pick(sent('groq:m', { ...three, serviceTier: 'priority' }), ...FIELDS)).toEqual(pick(completions, ...FIELDS))
    const response = await sdkSent((fetch) => createOpenAI({ ...key, fetch }).responses('gpt-4.1'), {
      temperature: 0.5,
      toolChoice: { type: 'required' },
      providerOptions: openaiOptions,
    })
    const settings = {
      temperature: 0.5,
      parallelToolCalls: false,
      toolChoice: 'required',
      serviceTier: 'priority',
    } as const
    expect(pick(sent('openai:gpt-4.1', settings), ...FIELDS)).toEqual(pick(response, ...FIELDS))
    const message = await sdkSent((fetch) => createAnthropic({ ...key, fetch })('claude-sonnet-4-5'), {
      ...sampled,
      providerOptions: { anthropic: { disableParallelToolUse: true } },
    })
    const { seed: _, ...rest } = three
    expect(pick(sent('anthropic:claude-sonnet-4-5', rest), ...FIELDS)).toEqual(pick(message, ...FIELDS))
  })

  it('B-SETTING-2: a demanded call is demanded once, after a message of the user, and none forbids all', () => {
    for (const name of ['groq:m', 'openai:gpt-4.1', 'anthropic:claude-sonnet-4-5']) {
      const choice = (toolChoice: RequestSettings['toolChoice'], request = asked): string =>
        JSON.stringify(sent(name, toolChoice === undefined ? {} : { toolChoice }, request)['tool_choice'] ?? null)
      expect(choice('required')).toMatch(/required|any/)
      expect(choice({ tool: 'look' })).toContain('look')
      expect(choice('none')).toContain('none')
      for (const over of ['required', { tool: 'look' }, 'auto'] as const) {
        expect(choice(over, after)).toBe(choice(undefined, after))
      }
      expect(choice('none', after)).toContain('none')
      expect(choice('required', { ...asked, allow: 'none' })).toContain('none')
      expect(choice('required', { ...asked, tools: [] })).toBe('null')
    }
  })

  it('B-SETTING-2: a run whose first call is demanded comes to its end, and a tool that there is not is said', async () => {
    const script = [{ calls: [{ tool: 'look', args: { city: 'Oslo' } }] }, 'Snow.']
    const { harness, chaos } = await stage(script, {
      tools: [noting().tool],
      hosted: { name: 'anthropic:claude-sonnet-4-5', toolChoice: 'required' },
    })
    expect(await harness.run('Weather?')).toMatchObject({ status: 'completed', text: 'Snow.' })
    const choices = chaos.requests.map((request) => (bodyOf(request).tool_choice as { type: string }).type)
    expect(choices).toEqual(['any', 'auto'])
    expect(chaos.requests.flatMap(({ refused }) => refused ?? [])).toEqual([])
    const lost = await stage([], { tools: [noting().tool], hosted: { toolChoice: { tool: 'lok' } } })
    const result = await lost.harness.run('Weather?')
    expect(result).toMatchObject({ status: 'failed', failure: { message: expect.stringContaining('"lok"') as string } })
    expect(lost.chaos.requests).toEqual([])
  })

  it('B-SETTING-3: the time in the prompt cache is in each mark, and an hour is paid for as an hour', async () => {
    for (const name of ['anthropic:claude-sonnet-4-5', 'openrouter:anthropic/claude-sonnet-4.5']) {
      const hour = JSON.stringify(sent(name, { cache: { ttl: '1h' } }))
      const marks = hour.match(/"cache_control":\{[^}]*\}/g) ?? []
      expect(marks.length).toBeGreaterThan(0)
      expect(new Set(marks)).toEqual(new Set(['"cache_control":{"type":"ephemeral","ttl":"1h"}']))
      expect(sent(name, { cache: { ttl: '5m' } })).toEqual(sent(name, {}))
      expect(JSON.stringify(sent(name, { cache: false }))).not.toContain('cache_control')
    }
    const cost = async (cache: HostedOptions['cache']): Promise<number> => {
      const options = cache === undefined ? {} : { cache }
      const { cost } = await model('anthropic:claude-sonnet-4-5', { key: KEY, ...options }).profile()
      return cost({ inputTokens: 1_000, outputTokens: 0, cacheWriteTokens: 1_000 })
    }
    expect(await cost(undefined)).toBe(3_750)
    expect(await cost({ ttl: '1h' })).toBe(6_000)
  })

  it('B-SETTING-4: the own body is merged into tools, thinking and other objects, and replaces the rest', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' }
    const body = {
      tools: [search],
      thinking: { display: 'summarized' },
      output_config: { task: 1 },
      metadata: { a: 'b' },
    }
    const claude = sent('anthropic:claude-opus-4-6', { reasoning: 'high', body })
    expect(claude['tools']).toEqual([expect.objectContaining({ name: 'look' }), search])
    expect(claude).toMatchObject({
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: 'high', task: 1 },
      metadata: { a: 'b' },
    })
    expect(sent('anthropic:claude-opus-4-6', { body: { tools: [search] } }, { ...asked, tools: [] })['tools']).toEqual([
      search,
    ])
    const more = { include: ['x'], reasoning: { summary: 'detailed' }, store: true, tools: [{ type: 'web_search' }] }
    const openai = sent('openai:gpt-5.2', { reasoning: 'low', body: more })
    expect(openai).toMatchObject({
      include: ['reasoning.encrypted_content', 'x'],
      reasoning: { effort: 'low', summary: 'detailed' },
      store: true,
      tools: [{ name: 'look' }, { type: 'web_search' }],
    })
    expect(sent('groq:m', { body: { stream_options: { other: true }, tools: [] } })).toMatchObject({
      stream_options: { include_usage: true, other: true },
      tools: [{ type: 'function' }],
    })
  })
})

describe('settings that are refused', () => {
  const make = (name: string, options: object) => () => model(name, { key: KEY, ...options })

  it('B-SETTING-5: a setting that a model or its host is known not to take is refused when the model is made', () => {
    for (const [name, options, words] of [
      ['anthropic:claude-opus-4-8', { temperature: 0.5 }, '`temperature`'],
      ['anthropic:claude-sonnet-4-5', { topP: 0.5, reasoning: 'low' }, '`topP`'],
      ['anthropic:claude-sonnet-4-5', { topP: 0.5, temperature: 1 }, 'not both'],
      ['anthropic:claude-sonnet-4-5', { seed: 1 }, '`seed`'],
      ['anthropic:claude-sonnet-4-5', { serviceTier: 'priority' }, 'it takes "auto" or "standard_only"'],
      ['anthropic:claude-opus-5', { toolChoice: 'required' }, '`toolChoice`'],
      ['anthropic:claude-sonnet-4-5', { toolChoice: { tool: 'a' }, reasoning: 'low' }, '`toolChoice`'],
      ['openai:gpt-5', { temperature: 0.5 }, '`temperature`'],
      ['openai:gpt-5.1', { temperature: 0.5, reasoning: 'high' }, '`temperature`'],
      ['openai:gpt-4.1', { seed: 1 }, '`seed`'],
      ['openai:gpt-4.1', { stop: ['a'] }, '`stop`'],
      ['openai:gpt-4.1', { cache: { ttl: '1h' } }, '`cache`'],
      ['openrouter:x-ai/grok', { cache: { ttl: '1h' } }, '`cache`'],
      ['mistral:m', { serviceTier: 'flex' }, '`serviceTier`'],
      ['deepseek:m', { parallelToolCalls: false }, '`parallelToolCalls`'],
    ] as const) {
      expect(make(name, options)).toThrow(words)
      expect(make(name, options)).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    }
    for (const [name, options] of [
      ['anthropic:claude-opus-4-6', { temperature: 0.5 }],
      ['anthropic:some-alias', { temperature: 0.5, toolChoice: 'required' }],
      ['anthropic:claude-opus-5', { toolChoice: 'none' }],
      ['openai:gpt-5.1', { temperature: 0.5 }],
      ['openai:gpt-4.1', { temperature: 0.5, topP: 0.5 }],
      ['xai:grok', { serviceTier: 'whatever', seed: 1 }],
    ] as const) {
      expect(make(name, options)).not.toThrow()
    }
  })

  it('B-SETTING-6: a value that no host could take is refused with one sentence', () => {
    for (const options of [
      { temperature: 3 },
      { topP: 1.1 },
      { topP: '1' },
      { seed: 1.5 },
      { stop: [] },
      { stop: 'END' },
      { stop: [' '] },
      { toolChoice: 'any' },
      { toolChoice: { tool: '' } },
      { toolChoice: { name: 'a' } },
      { toolChoice: null },
      { parallelToolCalls: 'no' },
      { cache: { ttl: '2h' } },
      { cache: {} },
      { serviceTier: '' },
      { top_p: 1 },
    ]) {
      expect(make('groq:m', options)).toThrow(Fault)
    }
  })
})

describe('structured output that Anthropic keeps', () => {
  it('B-SETTING-7: Claude models since 4.5 keep a schema by themselves when asked to, older ones say that they do not', async () => {
    const schema = z.object({ n: z.number().min(1), day: z.string().regex(/^\d+$/).describe('The day') })
    const { harness, chaos } = await stage(['{"n": 4, "day": "2"}'], {
      hosted: { name: 'anthropic:claude-sonnet-4-5' },
      output: { schema, mode: 'native' },
    })
    const result = await harness.run('When?')
    expect(result).toMatchObject({ status: 'completed', output: { n: 4, day: '2' } })
    const { output_config: config, tools } = bodyOf(chaos.requests[0])
    expect(tools).toBeUndefined()
    expect(config).toEqual({
      format: {
        type: 'json_schema',
        schema: expect.objectContaining({
          type: 'object',
          additionalProperties: false,
          properties: {
            n: { type: 'number', description: 'minimum: 1.' },
            day: { type: 'string', description: expect.stringMatching(/^The day\npattern: /) as string },
          },
        }) as object,
      },
    })
    for (const [name, native] of [
      ['claude-sonnet-4-5', 'possible'],
      ['claude-opus-4-1', 'possible'],
      ['claude-opus-5', 'possible'],
      ['claude-fable-5-1', 'possible'],
      ['claude-sonnet-4-20250514', 'no'],
      ['claude-3-5-haiku-latest', 'no'],
      ['some-alias', 'no'],
    ] as const) {
      expect(model(`anthropic:${name}`, { key: KEY }).able.native).toBe(native)
    }
  })
})
