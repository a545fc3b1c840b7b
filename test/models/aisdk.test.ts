// Any language model of the AI SDK behind our port: what it says and what it is sent. Its failures are aisdk-failure.test.ts.
import { createAnthropic } from '@ai-sdk/anthropic'
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, Harness, type Message, type Part, type Reply, type Request } from '../../src/index.ts'
import { type AiSdkModel, type AiSdkSettings, fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import type { Protocol } from '../../src/models/protocols/protocol.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { bytesOf, client, type Dialect, finish, mock, mockV4, modelOf, streamed, VERSIONS } from './aisdk-stage.ts'
import { callContext, request, userSays } from './context.ts'
import { recording } from './sse.ts'

const protocols = {
  messages: messagesProtocol,
  chat: chatProtocol,
  responses: responsesProtocol,
} as unknown as Readonly<Record<Dialect, Protocol<unknown>>>

async function ask(model: AiSdkModel, more: Partial<Request> = {}, settings: AiSdkSettings = {}) {
  const heard = callContext()
  const answer = await fromAiSdk(model, settings).call(request(more), heard.context)
  if (answer.type !== 'reply') throw new Error(answer.message)
  return { reply: answer, deltas: heard.deltas }
}

/** The content of a reply that both sides report: without zero counts, and without the spelling of empty arguments. */
function said({ parts, calls, finish: end, usage }: Reply) {
  // The AI SDK hands over the sum of all rounds alone.
  const counts = Object.entries(usage ?? {}).filter(([name, count]) => count !== 0 && name !== 'contextTokens')
  return {
    text: parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
    reasoning: parts.flatMap((part) => (part.type === 'reasoning' && part.text !== '' ? [part.text] : [])),
    calls: calls.map(({ id, tool, args }) => ({ id, tool, args: args === '' ? '{}' : args })),
    finish: end,
    usage: usage && Object.fromEntries(counts),
  }
}

function own(dialect: Dialect, name: string): Reply {
  const protocol = protocols[dialect]
  let state = protocol.begin({ endpoint: dialect, model: 'm', settings: {}, quirks: {} })
  for (const event of recording(`${dialect}/${name}`)) state = protocol.step(state, event)[0]
  return protocol.finish(state) as Reply
}

/** The reply as the next request has it, with a result for each of its calls. */
function history({ parts, calls }: Reply): readonly Message[] {
  const shown = calls.map(({ id, tool, args }, i) => ({
    key: `2.${i}`,
    id,
    tool,
    args: JSON.parse(args || '{}') as never,
  }))
  const results = shown.map(({ key, id, tool }, i): Message => {
    return { role: 'tool', seq: 3 + i, call: key, id, tool, ok: i === 0, content: `result ${i}` }
  })
  return [userSays('Look.'), { role: 'assistant', seq: 2, parts, calls: shown }, ...results, userSays('Go on.', 9)]
}

const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }]

const same: readonly (readonly [Dialect, string])[] = [
  ...['text', 'thinking', 'redacted', 'interleaved', 'tool', 'parallel', 'no-arguments', 'late-input', 'length'].map(
    (name) => ['messages', name] as const,
  ),
  ...['length-in-call', 'refusal', 'unicode', 'empty', 'prefilled', 'compaction', 'text-between'].map(
    (name) => ['messages', name] as const,
  ),
  ...['text', 'tool', 'parallel-tools', 'tool-no-args', 'length', 'length-in-call', 'unicode', 'empty'].map(
    (name) => ['chat', name] as const,
  ),
  ...['content-filter', 'mistral-thinking', 'no-done'].map((name) => ['chat', name] as const),
  ...['text', 'one-tool-encrypted', 'parallel-tools', 'no-args', 'length', 'length-in-call', 'refusal', 'unicode'].map(
    (name) => ['responses', name] as const,
  ),
]

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

describe.each(VERSIONS)('a model of the AI SDK, specification %s', (version) => {
  it.each(same)('B-AISDK-1: over the same bytes it says what our own protocol says: %s/%s', async (dialect, name) => {
    const { fetch } = client(() => streamed(bytesOf(`${dialect}/${name}`)))
    const { reply } = await ask(modelOf(dialect, fetch, version))
    expect(said(reply)).toEqual(said(own(dialect, name)))
  })

  it('B-AISDK-2: text, reasoning and arguments come piece by piece, numbered by the parts they add up to', async () => {
    const { fetch } = client(() => streamed(bytesOf('messages/interleaved')))
    const { reply, deltas } = await ask(modelOf('messages', fetch, version))
    const pieces = (kind: string): string =>
      deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('|')
    expect(pieces('text').replaceAll('|', '')).toBe(said(reply).text.join(''))
    expect(pieces('reasoning').replaceAll('|', '')).toBe(said(reply).reasoning.join(''))
    expect(pieces('arguments').replaceAll('|', '')).toBe(reply.calls.map(({ args }) => args).join(''))
    expect(deltas.length).toBeGreaterThan(reply.parts.length)
    const numbers = deltas.map(({ part }) => part)
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  })

  it('B-AISDK-3: signed and redacted reasoning goes back to its provider as it came, and to others as text or not at all', async () => {
    for (const [name, block] of [
      ['interleaved', 'thinking'],
      ['redacted', 'redacted_thinking'],
    ] as const) {
      const { reply } = await ask(
        modelOf('messages', client(() => streamed(bytesOf(`messages/${name}`))).fetch, version),
      )
      const again = client(() => streamed(bytesOf('messages/text')))
      const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 2_000 } } }
      await ask(
        modelOf('messages', again.fetch, version),
        { messages: history(reply), tools },
        { providerOptions: thinking },
      )
      const blocks = recording(`messages/${name}`).flatMap(
        ({ data }) => /"(?:signature|data)":"([^"]+)"/.exec(data)?.[1] ?? [],
      )
      const body = JSON.stringify(again.sent[0]?.body)
      expect(body).toContain(`"type":"${block}"`)
      for (const signature of blocks) expect(body).toContain(signature)
      const elsewhere = client(() => streamed(bytesOf('chat/text')))
      await ask(modelOf('chat', elsewhere.fetch, version), { messages: history(reply), tools })
      const told = JSON.stringify(elsewhere.sent[0]?.body)
      for (const signature of blocks) expect(told).not.toContain(signature)
      expect(told.includes('<thinking>')).toBe(said(reply).reasoning.length > 0)
    }
  })

  it('B-AISDK-3: reasoning that nobody signed goes back as reasoning, and to another provider as text, once', async () => {
    const model = mock(
      [
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'Deep down.' },
        { type: 'reasoning-end', id: 'r' },
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'Well.' },
        { type: 'text-end', id: '0' },
        finish('stop'),
      ],
      [finish('stop')],
    )
    const { reply } = await ask(model)
    await ask(model, { messages: history(reply) })
    expect(model.doStreamCalls[1]?.prompt[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Deep down.' },
        { type: 'text', text: 'Well.' },
      ],
    })
    const elsewhere = client(() => streamed(bytesOf('chat/text')))
    await ask(modelOf('chat', elsewhere.fetch, version), { messages: history(reply) })
    expect(JSON.stringify(elsewhere.sent[0]?.body).split('Deep down.')).toHaveLength(2)
    const host = client(() => streamed(bytesOf('chat/deepseek-thinking')))
    const again = client(() => streamed(bytesOf('chat/text')))
    const thought = await ask(modelOf('chat', host.fetch, version))
    await ask(modelOf('chat', again.fetch, version), { messages: history(thought.reply) })
    expect(JSON.stringify(again.sent[0]?.body)).toContain('"reasoning_content":"I need the date."')
    expect(JSON.stringify(again.sent[0]?.body)).not.toContain('<thinking>')
  })

  it('B-AISDK-6: a file that the provider cannot take is told in words, and the session goes on', async () => {
    const { fetch, sent } = client(() => streamed(bytesOf('messages/text')))
    const sound: Part = { type: 'data', media: 'audio/wav', data: 'AAAA', name: 'a.wav' }
    const { reply } = await ask(modelOf('messages', fetch, version), {
      messages: [{ role: 'user', seq: 1, parts: [sound] }],
    })
    expect(reply.finish).toBe('stop')
    expect(JSON.stringify(sent[0]?.body)).toContain('[file a.wav (audio/wav, 3 bytes) cannot be shown to this model]')
  })

  it('B-AISDK-7: native output asks for JSON of the schema, tool output appends the tool and forces nothing', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const output = { mode: 'native', name: 'final_result', schema, strict: false } as const
    const native = client(() => streamed(bytesOf('responses/text')))
    await ask(modelOf('responses', native.fetch, version), { output, tools })
    expect(native.sent[0]?.body).toMatchObject({
      text: { format: { type: 'json_schema', name: 'final_result', strict: false, schema } },
      tools: [{ name: 'look', strict: false }],
    })
    const model = mock([finish('stop')])
    await ask(model, { output: { ...output, mode: 'tool' }, tools, allow: 'none' })
    expect(model.doStreamCalls[0]?.tools?.map((tool) => tool.name)).toEqual(['look', 'final_result'])
    expect(model.doStreamCalls[0]).not.toHaveProperty('toolChoice')
    expect(model.doStreamCalls[0]).not.toHaveProperty('responseFormat')
  })
})

describe('a model of the AI SDK', () => {
  it('B-AISDK-4: what a provider keeps with a text or a call goes back with it (such as the signatures of Gemini)', async () => {
    const [of, at] = [{ p: { sig: 'text' } }, { p: { sig: 'call' } }]
    const parts: readonly LanguageModelV3StreamPart[] = [
      { type: 'text-start', id: '0', providerMetadata: of },
      { type: 'text-delta', id: '0', delta: 'Well.' },
      { type: 'text-end', id: '0' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: '{}' },
      { type: 'tool-call', toolCallId: 'b', toolName: 'look', input: '{"n":2}', providerMetadata: at },
      { type: 'reasoning-start', id: 'r', providerMetadata: { p: { sig: 'after' } } },
      { type: 'reasoning-end', id: 'r' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'So.' },
      { type: 'text-end', id: '0' },
      finish('tool-calls'),
    ]
    const model = mock(parts, [finish('stop')])
    const { reply } = await ask(model)
    expect(reply).toMatchObject({ finish: 'calls', calls: [{ id: 'a' }, { id: 'b', args: '{"n":2}' }] })
    await ask(model, { messages: JSON.parse(JSON.stringify(history(reply))) as Message[] })
    expect(model.doStreamCalls[1]?.prompt[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'text', text: 'Well.', providerOptions: of },
        { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: {} },
        { type: 'tool-call', toolCallId: 'b', toolName: 'look', input: { n: 2 }, providerOptions: at },
        { type: 'reasoning', text: '', providerOptions: { p: { sig: 'after' } } },
        { type: 'text', text: 'So.' },
      ],
    })
  })

  it('B-AISDK-5: a request becomes a prompt: instructions, files, and each call with exactly one result', async () => {
    const model = mock([finish('stop')])
    const image: Part = { type: 'data', media: 'image/png', data: 'AAAA', name: 'a.png' }
    const calls = ['', 'x'.repeat(99)].map((id, i) => ({ key: `2.${i}`, id, tool: 'no such', args: 'text' }))
    await ask(
      model,
      {
        instructions: 'Be brief.',
        tools,
        allow: 'none',
        boost: true,
        messages: [
          { role: 'user', seq: 1, parts: [{ type: 'text', text: 'Look.' }, image] },
          { role: 'assistant', seq: 2, parts: [], calls },
          { role: 'tool', seq: 3, call: '2.0', id: '', tool: 'no such', ok: false, content: 'No.' },
        ],
      },
      { outputTokensMax: 100, temperature: 0, providerOptions: { p: { a: 1 } } },
    )
    expect(model.doStreamCalls[0]).toMatchObject({
      maxOutputTokens: 200,
      temperature: 0,
      providerOptions: { p: { a: 1 } },
      toolChoice: { type: 'none' },
      tools: [{ type: 'function', name: 'look', inputSchema: { type: 'object' } }],
      prompt: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look.' },
            { type: 'file', mediaType: 'image/png', data: 'AAAA', filename: 'a.png' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { toolCallId: 'call_2_0', toolName: 'no_such', input: { arguments: 'text' } },
            { toolCallId: 'call_2_1' },
          ],
        },
        {
          role: 'tool',
          content: [
            { toolCallId: 'call_2_0', output: { type: 'error-text', value: '[failed: error]\nNo.' } },
            { toolCallId: 'call_2_1', output: { type: 'error-text' } },
          ],
        },
      ],
    })
  })

  it('B-AISDK-8: it drives a harness like any other model: tools, structured output, tokens and cost', async () => {
    const call = (toolName: string, input: string) =>
      ({ type: 'tool-call', toolCallId: toolName, toolName, input }) as const
    const model = mock(
      [call('look', '{}'), finish('tool-calls')],
      [call('final_result', '{"city":"Oslo"}'), finish('tool-calls')],
    )
    const look = defineTool({
      name: 'look',
      description: 'd',
      input: z.object({}),
      effect: 'read',
      execute: () => 'rain',
    })
    const prices = { 'mock:m': { input: 1, output: 10 } }
    const harness = new Harness({
      model: fromAiSdk(model, { prices }),
      tools: [look],
      output: { schema: z.object({ city: z.string() }) },
    })
    open.push(harness)
    const result = await harness.run('Where?')
    expect(result).toMatchObject({ status: 'completed', output: { city: 'Oslo' }, cost: { micros: 400 } })
    expect(result.usage).toMatchObject({ inputTokens: 200, outputTokens: 20, modelRequests: 2, toolCalls: 1 })
  })

  it('B-AISDK-9: an unknown provider is not free, and one that tells its own price is believed', async () => {
    expect((await ask(mock([finish('stop')]))).reply.cost).toBe(60 * 3 + 40 * 0.3 + 10 * 15)
    const known = { ...finish('stop'), providerMetadata: { router: { usage: { cost: 0.000_012_3 } } } }
    expect((await ask(mock([known]))).reply.cost).toBe(13)
    const { reply } = await ask(mock([finish('stop')]))
    expect(reply).toMatchObject({
      route: 'mock.chat:m',
      usage: { inputTokens: 100, outputTokens: 10, cachedTokens: 40 },
    })
  })

  it('B-AISDK-10: what the provider runs itself is no call of ours', async () => {
    const { reply } = await ask(
      mock([
        { type: 'tool-input-start', id: 's', toolName: 'web_search', providerExecuted: true },
        { type: 'tool-input-delta', id: 's', delta: '{"q":1}' },
        { type: 'tool-input-end', id: 's' },
        { type: 'tool-call', toolCallId: 's', toolName: 'web_search', input: '{"q":1}', providerExecuted: true },
        { type: 'tool-result', toolCallId: 's', toolName: 'web_search', result: 'found' },
        { type: 'source', sourceType: 'url', id: 'u', url: 'https://example.com' },
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'Found.' },
        { type: 'text-end', id: '0' },
        finish('stop'),
      ]),
    )
    expect(reply).toMatchObject({
      calls: [],
      finish: 'stop',
      parts: [
        { type: 'provider', opaque: { data: { of: 'input', value: { q: 1 } } } },
        { type: 'provider', opaque: { data: { of: 'result', value: 'found' } } },
        { type: 'text', text: 'Found.' },
        { type: 'source', url: 'https://example.com' },
      ],
    })
  })

  it('B-AISDK-11: models of specification v3 and v4 are taken, and nothing else', () => {
    for (const version of VERSIONS) {
      expect(fromAiSdk(modelOf('messages', fetch, version)).name).toBe('anthropic.messages:claude-sonnet-4-5')
    }
    for (const wrong of [{ specificationVersion: 'v2' }, { specificationVersion: 'v5' }, 'openai/gpt-5.1', null]) {
      expect(() => fromAiSdk(wrong as unknown as AiSdkModel)).toThrow(Fault)
      expect(() => fromAiSdk(wrong as unknown as AiSdkModel)).toThrow('specification v3 or v4')
    }
  })

  it('B-SETTING-8: it takes the settings that every model has', async () => {
    const end = [finish('stop')]
    const model = mock(end, end, end)
    const settings = { topP: 0.5, seed: 7, stop: ['END'], toolChoice: { tool: 'look' }, headers: { 'x-team': 'a' } }
    await ask(model, { tools }, settings)
    expect(model.doStreamCalls[0]).toMatchObject({
      topP: 0.5,
      seed: 7,
      stopSequences: ['END'],
      toolChoice: { type: 'tool', toolName: 'look' },
      headers: { 'x-team': 'a' },
    })
    await ask(model, { tools }, { toolChoice: 'none' })
    expect(model.doStreamCalls[1]).toMatchObject({ toolChoice: { type: 'none' } })
    await expect(ask(model, { tools }, { toolChoice: { tool: 'lok' } })).rejects.toThrow('"lok"')
  })

  it('B-AISDK-21: a model of specification v4 gets files with their tag, and its own parts and ends are understood', async () => {
    const image: Part = { type: 'data', media: 'image/png', data: 'AAAA', name: 'a.png' }
    const { model, asked } = mockV4([
      { type: 'ping' },
      { type: 'custom', kind: 'mock.compaction' },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'A picture.' },
      { type: 'text-end', id: '0' },
      finish('stop'),
    ])
    const { reply } = await ask(model, { messages: [{ role: 'user', seq: 1, parts: [image] }] })
    expect(reply).toMatchObject({ finish: 'stop', parts: [{ type: 'text', text: 'A picture.' }] })
    const file = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' }, filename: 'a.png' }
    expect(asked[0]?.prompt).toEqual([{ role: 'user', content: [file] }])
    const { fetch, sent } = client(() => streamed(bytesOf('messages/text')))
    await ask(modelOf('messages', fetch, 'v4'), { messages: [{ role: 'user', seq: 1, parts: [image] }] })
    expect(JSON.stringify(sent[0]?.body)).toContain('"data":"AAAA"')
    const interrupted = mockV4([{ ...finish('stop'), finishReason: { unified: 'interrupted', raw: undefined } }])
    const { context } = callContext()
    expect(await fromAiSdk(interrupted.model).call(request(), context)).toMatchObject({ class: 'network' })
  })

  it.each(VERSIONS)(
    'B-AISDK-22: tools that the provider runs are parts, go back in pairs, and cite sources (%s)',
    async (version) => {
      const stream = Buffer.from(bytesOf('messages/server-tools')).toString().replace('pause_turn', 'end_turn')
      const { fetch, sent } = client(() => streamed(Buffer.from(stream)))
      const model = modelOf('messages', fetch, version)
      const { webSearch_20250305: search } = createAnthropic({ apiKey: 'k' }).tools
      const settings = { providerTools: { web_search: search({ maxUses: 2 }) } }
      const ours = [...tools, { name: 'web_search', description: 'Ours.', parameters: { type: 'object' } }]
      const { reply } = await ask(model, { tools: ours }, settings)
      expect(reply.calls).toEqual([])
      expect(reply.parts.map(({ type }) => type)).toEqual(['provider', 'provider', 'reasoning', 'text', 'source'])
      expect(reply.parts.at(-1)).toEqual({ type: 'source', url: 'https://tides.example/brest', title: 'Tides' })
      expect(reply.usage).toMatchObject({ webSearches: 1 })
      await ask(model, { tools: ours, messages: history(reply) }, settings)
      const [first, second] = sent.map(({ body }) => body as { tools: object[]; messages: { content: object[] }[] })
      expect(first?.tools).toMatchObject([{ name: 'look' }, { type: 'web_search_20250305', max_uses: 2 }])
      expect(second?.messages[1]?.content).toMatchObject([
        { type: 'server_tool_use', id: 'srvtoolu_01Search', input: { query: 'tides at Brest' } },
        {
          type: 'web_search_tool_result',
          tool_use_id: 'srvtoolu_01Search',
          content: [{ encrypted_content: 'Eo4BHand' }],
        },
        { type: 'text', citations: [{ encrypted_index: 'Eo8BHand' }] },
      ])
      // Half of a pair, and what another provider ran, is left out.
      await ask(model, { messages: history({ ...reply, parts: reply.parts.slice(1) }) }, settings)
      expect(JSON.stringify(sent[2]?.body)).not.toContain('srvtoolu')
      await ask(modelOf('responses', client(() => streamed(bytesOf('responses/text'))).fetch), {
        messages: history(reply),
      })
      expect(() => fromAiSdk(modelOf('responses', fetch), settings)).toThrow(
        expect.objectContaining({ code: 'invalid_config' }) as Error,
      )
      expect(() => fromAiSdk(model, { providerTools: { web_search: {} } })).toThrow(/provider package/)
    },
  )
})
