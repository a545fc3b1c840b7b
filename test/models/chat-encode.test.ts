// Chat Completions, the writing half: a conversation as a body, for hosts that differ. The reading half is chat.test.ts.
import { describe, expect, it } from 'vitest'
import type { Json, Part } from '../../src/kernel/content.ts'
import type { Request } from '../../src/ports/model.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { endpoints } from '../../src/models/http/endpoints.ts'
import type { Quirks, RequestSettings, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { refusals } from './chat-rules.ts'

type Body = { readonly [key: string]: unknown; readonly messages: readonly { readonly [key: string]: unknown }[] }

const to = (endpoint: string, settings: RequestSettings = {}, model = 'm', quirks?: Quirks): ModelTarget => ({
  endpoint,
  model,
  settings,
  quirks: quirks ?? endpoints[endpoint]?.quirks ?? {},
})
const ask = (messages: readonly Message[], rest: Partial<Request> = {}): Request => ({
  session: 's',
  seq: 9,
  instructions: '',
  tools: [],
  allow: 'all',
  boost: false,
  messages,
  ...rest,
})
const bodyOf = (request: Request, target: ModelTarget): Body =>
  JSON.parse(chatProtocol.encode(request, target).body) as Body
const messagesOf = (messages: readonly Message[], target: ModelTarget) => bodyOf(ask(messages), target).messages

const says = (seq: number, ...parts: readonly (string | Part)[]): Message => ({
  role: 'user',
  seq,
  parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)),
})
const answers = (
  seq: number,
  parts: readonly Part[],
  ...calls: readonly (readonly [string, string, Json])[]
): Message => ({
  role: 'assistant',
  seq,
  parts,
  calls: calls.map(([id, tool, args], i) => ({ key: `${seq}.${i}`, id, tool, args })),
})
const result = (seq: number, call: string, content: string, ok = true): Message => ({
  role: 'tool',
  seq,
  call,
  id: 'x',
  tool: 'wind',
  ok,
  content,
})
const text = (said: string): Part => ({ type: 'text', text: said })
const thought = (said: string, opaque?: Json): Part =>
  opaque === undefined ? { type: 'reasoning', text: said } : { type: 'reasoning', text: said, opaque }
const tool = (name: string, parameters: Json = { type: 'object', properties: {} }) => ({
  name,
  description: 'd',
  parameters,
})
const closed: Json = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}
const noon: readonly Message[] = [
  says(1, 'Wind at noon?'),
  answers(2, [text('I look.')], ['call_1', 'wind', { at: 'noon' }]),
  result(3, '2.0', 'calm'),
]

describe('Chat: the conversation as messages', () => {
  it('B-CHAT-16: instructions are the system, a text is a text, and results follow their calls as they are', () => {
    const { path, body } = chatProtocol.encode(
      ask([...noon, says(4, 'And at dusk?', 'Hurry.')], { instructions: 'Be brief.' }),
      to('xai'),
    )
    expect(path).toBe('/chat/completions')
    expect((JSON.parse(body) as Body).messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Wind at noon?' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'wind', arguments: '{"at":"noon"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'calm' },
      { role: 'user', content: 'And at dusk?\n\nHurry.' },
    ])
  })

  it('B-CHAT-16: a call without words has null for content, and a message of which nothing is left is not sent', () => {
    const foreign = { by: 'other', model: 'm', at: 0, data: { reasoning_details: [] } }
    const log = [
      says(1, 'a'),
      answers(2, [], ['c', 'now', {}]),
      result(3, '2.0', ''),
      answers(4, [thought('', foreign)]),
    ]
    expect(messagesOf(log, to('xai')).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'a'],
      ['assistant', null],
      ['tool', '(no output)'],
    ])
  })

  it('B-CHAT-17: pictures and documents are shown, and what a host cannot see is said in words', () => {
    const picture: Part = { type: 'data', media: 'image/png', data: 'aGVsbG8=' }
    const paper: Part = { type: 'data', media: 'application/pdf', data: 'aGVsbG8=', name: 'a.pdf' }
    const odd: Part = { type: 'data', media: 'audio/wav', data: 'aGVsbG8=', name: 'a.wav' }
    expect(messagesOf([says(1, 'See', picture, paper, odd)], to('openrouter'))[0]?.content).toEqual([
      { type: 'text', text: 'See' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGVsbG8=' } },
      { type: 'input_audio', input_audio: { data: 'aGVsbG8=', format: 'wav' } },
    ])
    expect(messagesOf([says(1, 'Hear', odd)], to('groq'))[0]?.content).toBe(
      'Hear\n\n[file a.wav (audio/wav, 5 bytes) cannot be shown to this model]',
    )
    expect(messagesOf([says(1, 'See', picture)], to('deepseek'))[0]?.content).toBe(
      'See\n\n[file without a name (image/png, 5 bytes) cannot be shown to this model]',
    )
  })

  it('B-CHAT-18: the messages of one request are the start of the next one, byte for byte', () => {
    const log = [
      ...noon,
      answers(4, [thought('hm'), text('Calm.')]),
      says(5, 'Thanks'),
      answers(6, [], ['call_1', 'wind', {}]),
    ]
    for (const name of Object.keys(endpoints)) {
      const target = to(name, {}, 'anthropic/claude-sonnet-4.5')
      const list = (length: number): string => {
        const { body } = chatProtocol.encode(ask(log.slice(0, length), { instructions: 'Be brief.' }), target)
        return body.slice(body.indexOf('"messages":['), -2)
      }
      for (const length of [1, 3, 4, 5]) expect(list(6).startsWith(list(length))).toBe(true)
      expect(list(6)).toBe(list(6))
    }
  })

  it('B-CHAT-18: what was kept for one host, id or result is not sent for another', () => {
    const message = answers(2, [thought('deep'), text('ok')], ['call_1', 'wind', {}])
    const log = [says(1, 'a'), message, result(3, '2.0', 'calm')]
    const own = chatProtocol.encode(ask(log), to('deepseek')).body
    expect(chatProtocol.encode(ask(log), to('mistral')).body).toContain('"000002000"')
    expect(chatProtocol.encode(ask(log), to('deepseek')).body).toBe(own)
    expect(own).toContain('"reasoning_content":"deep"')
    expect(chatProtocol.encode(ask(log), to('groq')).body).toContain('"reasoning":"deep"')
    const cleared = [says(1, 'a'), message, result(3, '2.0', 'gone')]
    expect(chatProtocol.encode(ask(cleared), to('deepseek')).body).toContain('"gone"')
    const before = answers(0, [], ['call_1', 'wind', {}])
    expect(chatProtocol.encode(ask(log), to('deepseek')).body).toBe(own)
    expect(messagesOf([before, ...log], to('deepseek'))[3]?.tool_calls).toMatchObject([{ id: 'call_2_0' }])
  })

  it('B-CHAT-19: a name that the model made up and half a character do not spoil the request', () => {
    const log = [
      says(1, 'half \ud83d of it'),
      answers(2, [], ['c1', 'functions.wind', { at: '\ud83d' }], ['c2', '', {}]),
      result(3, '2.0', 'cut \ude00'),
    ]
    const { body } = chatProtocol.encode(ask(log), to('xai'))
    expect(refusals(body)).toEqual([])
    expect((JSON.parse(body) as Body).messages[1]?.tool_calls).toMatchObject([
      { function: { name: 'functions_wind' } },
      { function: { name: 'unnamed' } },
    ])
  })

  it('B-CHAT-20: ids are such as the host takes, and Mistral gets an assistant between results and a user', () => {
    const messages = messagesOf([...noon, says(4, 'note'), says(5, 'more')], to('mistral'))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user', 'user'])
    expect(messages[1]?.tool_calls).toMatchObject([{ id: '000002000' }])
    expect(messages[2]?.tool_call_id).toBe('000002000')
    const long = [says(1, 'a'), answers(2, [], ['x'.repeat(41), 'wind', {}]), result(3, '2.0', 'calm')]
    expect(messagesOf(long, to('groq'))[2]?.tool_call_id).toBe('call_2_0')
    expect(messagesOf(long, to('openrouter'))[2]?.tool_call_id).toBe('x'.repeat(41))
    const kept = [says(1, 'a'), answers(2, [], ['D6X1kRf9a', 'wind', {}]), result(3, '2.0', 'calm')]
    expect(messagesOf(kept, to('mistral'))[2]?.tool_call_id).toBe('D6X1kRf9a')
  })
})

describe('Chat: reasoning that goes back', () => {
  const details = [
    { type: 'reasoning.text', text: 'deep \ud83d', signature: 's+/=', format: 'anthropic-claude-v1', index: 0 },
    { type: 'reasoning.encrypted', data: 'AAA', id: null, index: 1 },
  ]
  const signed = { by: 'openrouter', model: 'm', at: 0, data: { reasoning_details: details } }
  const log = [says(1, 'a'), answers(2, [thought('deep', signed), text('ok')]), says(3, 'b')]

  it('B-CHAT-21: signed details go back to the endpoint they came from, to the letter', () => {
    const { body } = chatProtocol.encode(ask(log), to('openrouter'))
    expect(body).toContain(`"reasoning_details":${JSON.stringify(details)}`)
    expect(messagesOf(log, to('openrouter'))[1]).toMatchObject({ role: 'assistant', content: 'ok' })
  })

  it('B-CHAT-21: elsewhere the text is told as a thought, and what is sealed or its own is left out', () => {
    expect(messagesOf(log, to('openrouter', { reasoning: 'off' }))[1]).toEqual({ role: 'assistant', content: 'ok' })
    for (const target of [to('groq'), to('deepseek')]) {
      expect(messagesOf(log, target)[1]).toEqual({
        role: 'assistant',
        content: '<thinking>\ndeep\n</thinking>\n\nok',
      })
    }
    const sealed = [says(1, 'a'), answers(2, [thought('', signed), text('ok')])]
    expect(messagesOf(sealed, to('groq'))[1]).toEqual({ role: 'assistant', content: 'ok' })
  })

  it("B-CHAT-22: reasoning that nobody signed goes back beside calls, in the host's own field", () => {
    const plain = [says(1, 'a'), answers(2, [thought('hm'), text('ok')], ['c', 'wind', {}]), result(3, '2.0', 'calm')]
    const sent = (name: string) => messagesOf(plain, to(name))[1]
    expect(sent('deepseek')).toMatchObject({ content: 'ok', reasoning_content: 'hm' })
    expect(sent('vllm')).toMatchObject({ content: 'ok', reasoning: 'hm' })
    expect(sent('openrouter')).toMatchObject({ content: 'ok', reasoning: 'hm' })
    expect(sent('xai')).toMatchObject({ content: 'ok' })
    const xai = { by: 'xai', model: 'm', at: 0, data: null }
    const known = [says(1, 'a'), answers(2, [thought('hm', xai), text('ok')], ['c', 'wind', {}])]
    expect(messagesOf(known, to('deepseek'))[1]).toMatchObject({ content: 'ok', reasoning_content: 'hm' })
    expect(messagesOf(known, to('xai'))[1]).toMatchObject({ content: 'ok' })
    expect(messagesOf(known, to('gemini'))[1]).toMatchObject({ content: '<thinking>\nhm\n</thinking>\n\nok' })
    const final = [says(1, 'a'), answers(2, [thought('hm'), text('ok')]), says(3, 'b')]
    expect(messagesOf(final, to('deepseek'))[1]).toEqual({ role: 'assistant', content: 'ok' })
  })

  it('B-CHAT-22: hosts that refuse a call without its reasoning get a field that is not empty', () => {
    const foreign = [says(1, 'a'), answers(2, [thought('deep', signed)], ['c', 'wind', {}]), result(3, '2.0', 'calm')]
    expect(messagesOf(noon, to('moonshot'))[1]).toMatchObject({ reasoning_content: ' ' })
    expect(messagesOf(foreign, to('deepseek'))[1]).toMatchObject({
      content: '<thinking>\ndeep\n</thinking>',
      reasoning_content: ' ',
    })
    expect(messagesOf(noon, to('deepseek', { reasoning: 'off' }))[1]).not.toHaveProperty('reasoning_content')
  })

  it('B-CHAT-34: Mistral gets its thoughts back as parts of the content, and only the model that wrote them', () => {
    const mistral = { by: 'mistral', model: 'magistral', at: 0, data: null }
    const parts = [thought('hm', mistral), text('ok')]
    const both = [says(1, 'a'), answers(2, parts), says(3, 'b'), answers(4, parts.slice(0, 1), ['c', 'wind', {}])]
    const own = messagesOf(both, to('mistral', {}, 'magistral'))
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }
    expect(own[1]).toEqual({ role: 'assistant', content: [thinking, { type: 'text', text: 'ok' }] })
    expect(own[3]).toMatchObject({ content: [thinking], tool_calls: [{}] })
    expect(messagesOf(both, to('mistral', {}, 'other'))[1]).toEqual({ role: 'assistant', content: 'ok' })
    expect(messagesOf(both, to('cerebras'))[1]).toEqual({
      role: 'assistant',
      content: '<thinking>\nhm\n</thinking>\n\nok',
    })
  })

  it("B-CHAT-8: Gemini's signature goes back with its call, and to no other provider", () => {
    const extra = { google: { thought_signature: 'sig==' } }
    const mark = { by: 'gemini', model: 'm', at: 1, data: { extra_content: extra } }
    const calls = [says(1, 'a'), answers(2, [thought('', mark)], ['c', 'wind', {}], ['d', 'wind', {}])]
    const sent = (target: ModelTarget) => messagesOf(calls, target)[1]?.tool_calls as readonly object[]
    expect(sent(to('gemini'))[1]).toEqual({
      id: 'd',
      type: 'function',
      function: { name: 'wind', arguments: '{}' },
      extra_content: extra,
    })
    expect(sent(to('gemini', { reasoning: 'off' }))[1]).toHaveProperty('extra_content')
    expect(sent(to('gemini'))[0]).not.toHaveProperty('extra_content')
    expect(JSON.stringify(sent(to('groq')))).not.toContain('sig==')
  })
})

describe('Chat: what stands around the conversation', () => {
  const tools = [tool('wind', closed), tool('now', {})]

  it('B-CHAT-23: tools are listed with the same bytes whatever is allowed, and none allowed is told by the choice', () => {
    const request = ask(noon, { tools })
    const all = chatProtocol.encode(request, to('xai')).body
    const none = chatProtocol.encode({ ...request, allow: 'none' }, to('xai')).body
    expect(none.replace('"tool_choice":"none",', '')).toBe(all)
    expect(none).not.toBe(all)
    expect(chatProtocol.encode({ ...request, allow: 'writers' }, to('xai')).body).toBe(all)
    expect(
      chatProtocol.encode({ ...request, allow: 'none' }, to('xai', {}, 'm', { lacks: ['tool_choice', 'strict'] })).body,
    ).toBe(all)
    expect(bodyOf(ask(noon, { allow: 'none' }), to('xai'))).not.toHaveProperty('tool_choice')
    expect(bodyOf(ask(noon), to('xai'))).not.toHaveProperty('tools')
  })

  it('B-CHAT-23: a tool is strict only if its schema is and the host knows the word', () => {
    expect(bodyOf(ask(noon, { tools }), to('openrouter')).tools).toEqual([
      { type: 'function', function: { name: 'wind', description: 'd', parameters: closed, strict: true } },
      { type: 'function', function: { name: 'now', description: 'd', parameters: { type: 'object', properties: {} } } },
    ])
    expect(chatProtocol.encode(ask(noon, { tools }), to('groq')).body).not.toContain('strict')
    expect(chatProtocol.encode(ask(noon, { tools }), to('openrouter')).body).toContain('"strict":true')
  })

  it("B-CHAT-24: a final answer is asked for by the host's schema, or as a last tool", () => {
    const output = { mode: 'native', name: 'final_result', schema: closed, strict: true } as const
    expect(bodyOf(ask(noon, { output }), to('openrouter')).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'final_result', schema: closed, strict: true },
    })
    expect(bodyOf(ask(noon, { output }), to('groq')).response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'final_result', schema: closed },
    })
    expect(bodyOf(ask(noon, { output }), to('deepseek'))).not.toHaveProperty('response_format')
    const listed = bodyOf(ask(noon, { tools, output: { ...output, mode: 'tool' } }), to('xai'))
    expect((listed.tools as readonly { function: { name: string } }[]).map((entry) => entry.function.name)).toEqual([
      'wind',
      'now',
      'final_result',
    ])
    expect(listed).not.toHaveProperty('tool_choice')
  })

  it('B-CHAT-24: the last tool is forced only when no other may be called, and never on a model that thinks', () => {
    const output = { mode: 'tool', name: 'final_result', schema: closed, strict: true } as const
    const forced = { type: 'function', function: { name: 'final_result' } }
    expect(bodyOf(ask(noon, { output }), to('xai')).tool_choice).toEqual(forced)
    expect(bodyOf(ask(noon, { output, tools, allow: 'none' }), to('xai')).tool_choice).toEqual(forced)
    expect(bodyOf(ask(noon, { output }), to('moonshot', { reasoning: 'off' })).tool_choice).toEqual(forced)
    expect(bodyOf(ask(noon, { output }), to('moonshot'))).not.toHaveProperty('tool_choice')
    expect(bodyOf(ask(noon, { output }), to('openrouter'))).not.toHaveProperty('tool_choice')
  })

  it("B-CHAT-25: settings go into the fields that the host has, and the caller's own fields win", () => {
    const settings = { outputTokensMax: 100, temperature: 0.5 }
    expect(bodyOf(ask(noon), to('groq', settings))).toMatchObject({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 100,
      temperature: 0.5,
    })
    const mistral = bodyOf(ask(noon, { boost: true }), to('mistral', settings))
    expect(mistral).toMatchObject({ max_tokens: 200 })
    expect(mistral).not.toHaveProperty('stream_options')
    expect(bodyOf(ask(noon, { boost: true }), to('groq'))).not.toHaveProperty('max_completion_tokens')
    const { body } = chatProtocol.encode(ask(noon), to('groq', { ...settings, body: { temperature: 1, seed: 7 } }))
    expect(body.endsWith(',"temperature":1,"seed":7}')).toBe(true)
    expect(body.match(/"temperature"/g)).toHaveLength(1)
  })

  it('B-CHAT-25: reasoning is asked for as each host wants to be asked', () => {
    const asked = (name: string, reasoning: NonNullable<RequestSettings['reasoning']>) => {
      const { reasoning: object, reasoning_effort, thinking } = bodyOf(ask(noon), to(name, { reasoning }))
      return object ?? reasoning_effort ?? thinking
    }
    expect(asked('openrouter', 'high')).toEqual({ effort: 'high' })
    expect(asked('openrouter', 'off')).toEqual({ effort: 'none' })
    expect(asked('openrouter', { budgetTokens: 2000 })).toEqual({ max_tokens: 2000 })
    expect(asked('groq', 'low')).toBe('low')
    expect(asked('groq', { budgetTokens: 8000 })).toBe('medium')
    expect(asked('gemini', 'off')).toBe('none')
    expect(asked('deepseek', 'off')).toEqual({ type: 'disabled' })
    expect(asked('mistral', 'high')).toBeUndefined()
  })

  it('B-CHAT-26: only models of Anthropic get marks for the cache, and the marks never move', () => {
    const request = ask(noon, { instructions: 'Be brief.' })
    const claude = to('openrouter', {}, 'anthropic/claude-sonnet-4.5')
    expect(bodyOf(request, claude)).toMatchObject({ cache_control: { type: 'ephemeral' } })
    expect(bodyOf(request, claude).messages[0]).toEqual({
      role: 'system',
      content: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
    })
    expect(JSON.stringify(bodyOf(request, claude).messages.slice(1))).not.toContain('cache_control')
    for (const target of [
      to('openrouter', {}, 'openai/gpt-5'),
      to('openrouter', { cache: false }, 'anthropic/claude-sonnet-4.5'),
      to('groq', {}, 'claude'),
    ]) {
      expect(chatProtocol.encode(request, target).body).not.toContain('cache_control')
    }
  })

  it('B-CHAT-27: whatever the log holds, no host has a published reason to refuse the request', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'AAA' }]
    const log = [
      says(1, '   '),
      says(2, 'go', { type: 'data', media: 'image/png', data: 'aGVsbG8=' }),
      answers(3, [], ['', 'wind', {}], ['dup', 'odd name!', { a: [1] }], ['dup', 'x'.repeat(90), {}]),
      result(4, '3.1', 'second', false),
      says(5, '<harness_notice>soon</harness_notice>'),
      answers(6, [thought('', { by: 'openrouter', model: 'm', at: 0, data: { reasoning_details: details } })]),
      answers(7, [thought('why'), text(' ')], ['functions.wind:0', 'wind', {}]),
      result(8, '7.0', ''),
      result(9, '1.0', 'stray'),
      answers(10, []),
      says(11, 'more'),
    ] as const
    const output = { mode: 'tool', name: 'final_result', schema: closed, strict: true } as const
    for (const { name, protocol } of Object.values(endpoints)) {
      if (protocol !== 'chat') continue
      for (const settings of [{}, { reasoning: 'high', outputTokensMax: 9 } as const]) {
        const target = to(name, settings, 'anthropic/claude-sonnet-4.5')
        for (const rest of [{}, { tools: [tool('wind', closed)], allow: 'none' as const }, { output }]) {
          const { body } = chatProtocol.encode(ask(log, { instructions: 'Be brief.', ...rest }), target)
          expect([name, ...refusals(body, name)]).toEqual([name])
        }
      }
    }
  })

  it('B-CHAT-27: the rules do refuse what breaks them', () => {
    const bad = {
      stream_options: {},
      tools: [],
      tool_choice: 'none',
      messages: [
        { role: 'user', content: '' },
        { role: 'assistant', content: null },
        { role: 'assistant', content: null, tool_calls: [] },
        { role: 'assistant', content: null, tool_calls: [{ id: '', type: 'function', function: { name: 'a b' } }] },
        { role: 'tool', tool_call_id: 'nobody', content: 'x' },
        { role: 'user', content: 'x' },
        { role: 'robot', content: 'x' },
      ],
    }
    const broken = new Set(refusals(JSON.stringify(bad), 'mistral').map((why) => why.split(' ')[0]))
    expect(broken).toEqual(new Set('C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C15'.split(' ')))
  })
})
