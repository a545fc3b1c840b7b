// The Responses protocol, requests: what is sent, what is left out and what never changes. Answers are in responses.test.ts.
import { describe, expect, it } from 'vitest'
import type { Json, Part } from '../../src/kernel/content.ts'
import type { Request, ToolSchema } from '../../src/ports/model.ts'
import { CLEARED, type Message } from '../../src/kernel/transcript.ts'
import type { Quirks, RequestSettings, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { isStrict } from '../../src/models/protocols/strict-schema.ts'

type Body = Readonly<Record<string, Json>> & { readonly input: readonly Readonly<Record<string, Json>>[] }

const target = (settings: RequestSettings = {}, quirks: Quirks = {}): ModelTarget => {
  return { endpoint: 'openai', model: 'gpt-5.2', settings, quirks }
}

function request(messages: readonly Message[], more: Partial<Request> = {}): Request {
  const plain = {
    session: 'session-1',
    seq: 9,
    instructions: 'Be brief.',
    tools: [],
    allow: 'all',
    boost: false,
  } as const
  return { ...plain, messages, ...more }
}

function sent(messages: readonly Message[], to = target(), more: Partial<Request> = {}): Body {
  return JSON.parse(responsesProtocol.encode(request(messages, more), to).body) as Body
}

const user = (seq: number, ...parts: readonly (string | Part)[]): Message => ({
  role: 'user',
  seq,
  parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)),
})

type Call = { readonly id: string; readonly tool?: string; readonly args?: Json }

const agent = (seq: number, parts: readonly (string | Part)[], calls: readonly Call[] = []): Message => ({
  role: 'assistant',
  seq,
  parts: parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part)),
  calls: calls.map(({ id, tool = 'look', args = {} }, i) => ({ key: `${seq}.${i}`, id, tool, args })),
})

const result = (seq: number, call: string, content: string, ok = true): Message => {
  return { role: 'tool', seq, call, id: '', tool: 'look', ok, content }
}

function kept(data: Json, at = 0, by = 'openai', model = 'gpt-5.2'): Part {
  return { type: 'reasoning', text: '', opaque: { by, model, at, data } }
}

const sealed = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gAAA==', odd: [{ b: 1, a: null }] }
const tool: ToolSchema = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }
const closed: Json = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}

describe('requests of the Responses protocol', () => {
  it('B-RESPONSES-16: a request is stateless, streams, and holds exactly what was asked for', () => {
    const { path, headers, body } = responsesProtocol.encode(request([user(1, 'Hi')], { tools: [tool] }), target())
    expect([path, headers]).toEqual(['/responses', {}])
    expect(JSON.parse(body)).toEqual({
      model: 'gpt-5.2',
      stream: true,
      store: false,
      include: ['reasoning.encrypted_content'],
      instructions: 'Be brief.',
      tools: [{ type: 'function', ...tool, strict: false }],
      parallel_tool_calls: true,
      prompt_cache_key: 'session-1',
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }],
    })
  })

  it('B-RESPONSES-17: calls and their results stand in pairs after what was said, failures as text that says so', () => {
    const log = [user(1, 'Go'), agent(2, ['Looking.'], [{ id: 'c1', args: { a: 1 } }]), result(3, '2.0', 'no', false)]
    expect(sent(log).input.slice(1)).toEqual([
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Looking.' }] },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'c1', output: '[failed: error]\nno' },
    ])
  })

  it('B-RESPONSES-18: the input of a request is the start of the next one, byte for byte, however often it is written', () => {
    const log = [
      user(1, 'Go'),
      agent(2, [kept(sealed), 'Looking.'], [{ id: 'c1' }, { id: 'c1' }, { id: 'x'.repeat(80) }]),
      result(3, '2.0', 'a'),
      result(4, '2.1', 'b'),
      result(5, '2.2', 'c'),
      user(6, 'And?'),
      agent(7, ['Done.']),
      user(8, 'Thanks'),
    ]
    const lengths = [1, 5, 6, 7, 8]
    const fresh = (): readonly Message[] => structuredClone(log)
    const input = (messages: readonly Message[]): string => {
      const { body } = responsesProtocol.encode(request(messages), target())
      return body.slice(body.indexOf('"input":['), -2)
    }
    const written = lengths.map((length) => input(log.slice(0, length)))
    written.slice(1).forEach((next, i) => expect(next.startsWith(`${written[i]},`)).toBe(true))
    lengths.forEach((length, i) => {
      expect(input(log.slice(0, length))).toBe(written[i])
      expect(input(fresh().slice(0, length))).toBe(written[i])
    })
  })

  it('B-RESPONSES-19: what was written for one endpoint, or before a result changed, is not sent in another place', () => {
    const log = [agent(2, [kept(sealed), 'Hi'], [{ id: 'c1' }]), result(3, '2.0', 'long')]
    expect(JSON.stringify(sent(log))).toContain('gAAA==')
    expect(JSON.stringify(sent(log, { ...target(), endpoint: 'azure' }))).not.toContain('gAAA==')
    expect(JSON.stringify(sent(log))).toContain('gAAA==')
    const cleared = [log[0] as Message, result(3, '2.0', CLEARED)]
    expect(sent(cleared).input.at(-1)).toEqual({ type: 'function_call_output', call_id: 'c1', output: CLEARED })
  })

  it('B-RESPONSES-20: reasoning items go back whole and in their place, to the endpoint they came from', () => {
    const second = { ...sealed, id: 'rs_2' }
    const parts = [
      kept(sealed),
      kept({ phase: 'commentary' }),
      'First.',
      kept(second, 1),
      kept({ phase: null }, 2),
      'Last.',
    ]
    const log = [agent(2, parts, [{ id: 'c1' }, { id: 'c2' }]), result(3, '2.0', 'a'), result(4, '2.1', 'b')]
    const said = (text: string, more = {}): Json => {
      return { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }], ...more }
    }
    const call = (id: string): Json => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })
    const items = [sealed, said('First.', { phase: 'commentary' }), call('c1'), second, call('c2'), said('Last.')]
    expect(sent(log).input.slice(0, 6)).toEqual(items)
    expect(responsesProtocol.encode(request(log), target()).body).toContain(JSON.stringify(sealed))
  })

  it('B-RESPONSES-21: reasoning of another provider becomes text, or nothing if only its owner can read it, and its own never does', () => {
    const thought: Part = { type: 'reasoning', text: 'Hm.', opaque: { by: 'openai', model: 'm', at: 0, data: sealed } }
    const texts = (parts: readonly (string | Part)[], to = target()): Json | undefined => {
      return sent([agent(2, parts)], to).input.find((item) => item['role'] === 'assistant')?.['content']
    }
    const thinking = { type: 'output_text', text: '<thinking>\nHm.\n</thinking>' }
    const yes = { type: 'output_text', text: 'Yes.' }
    expect(texts([thought, 'Yes.'], { ...target(), endpoint: 'azure' })).toEqual([thinking, yes])
    expect(texts([thought, 'Yes.'], target({ reasoning: 'off' }))).toEqual([yes])
    expect(texts([{ type: 'reasoning', text: 'Hm.' }, 'Yes.'])).toEqual([yes])
    expect(texts([kept(sealed, 0, 'azure'), kept({ type: 'thinking', signature: 'x' }), 'Yes.'])).toEqual([yes])
    // The item that the thought led to is missing.
    expect(texts([thought])).toBeUndefined()
    expect(texts([thought], { ...target(), endpoint: 'azure' })).toEqual([thinking])
    expect(sent([user(1, 'a'), agent(2, [kept(sealed)]), user(3, 'b')]).input).toHaveLength(2)
  })

  it('B-RESPONSES-22: efforts are told to models that reason, and nothing about reasoning to those that never do', () => {
    const to = (reasoning: RequestSettings['reasoning'] & {}): Json | undefined =>
      sent([user(1, 'a')], target({ reasoning }))['reasoning']
    expect(to('high')).toEqual({ effort: 'high', summary: 'auto' })
    expect(to('off')).toEqual({ effort: 'none' })
    // What cannot stop reasoning is told the least that it takes, or nothing.
    const least = (model: string): Json | undefined =>
      sent([user(1, 'a')], { ...target({ reasoning: 'off' }), model })['reasoning']
    for (const model of ['gpt-5', 'gpt-5-mini', 'gpt-5-nano-2025-08-07'])
      expect(least(model)).toEqual({ effort: 'minimal' })
    for (const model of ['o3', 'o4-mini', 'gpt-5-codex']) expect(least(model)).toEqual({ effort: 'low' })
    for (const model of ['gpt-5.1', 'gpt-5.2-mini']) expect(least(model)).toEqual({ effort: 'none' })
    for (const model of ['gpt-5-pro', 'gpt-5.2-pro', 'o3-pro']) expect(least(model)).toBeUndefined()
    expect(to({ budgetTokens: 1_024 })).toEqual({ effort: 'low', summary: 'auto' })
    expect(to({ budgetTokens: 32_000 })).toEqual({ effort: 'high', summary: 'auto' })
    for (const plain of [
      { ...target({ reasoning: 'high' }), model: 'gpt-4.1-mini' },
      target({ reasoning: 'high' }, { lacks: ['reasoning'] }),
    ]) {
      const body = sent([agent(1, [kept(sealed), 'Hi'])], plain)
      expect([body['reasoning'], body['include']]).toEqual([undefined, undefined])
      expect(JSON.stringify(body)).not.toContain('gAAA==')
    }
  })

  it('B-RESPONSES-23: a chained request names the stored response and sends only what came after it', () => {
    const first = agent(2, [kept(sealed), 'Looking.', kept({ response: 'resp_1' }, 1)], [{ id: 'c1' }])
    const log = [user(1, 'Go'), first, result(3, '2.0', 'found'), user(4, 'Hurry')]
    const body = sent(log, target({ chain: true }), { tools: [tool] })
    expect(body).toMatchObject({ store: true, previous_response_id: 'resp_1', instructions: 'Be brief.' })
    expect(body['tools']).toHaveLength(1)
    expect(body.input).toEqual([
      { type: 'function_call_output', call_id: 'c1', output: 'found' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hurry' }] },
    ])
    const unchained = sent(log, target({ chain: false }))
    expect(unchained['previous_response_id']).toBeUndefined()
    expect(unchained.input).toHaveLength(6)
    expect(unchained.input[1]).toEqual(sealed)
    expect(JSON.stringify(unchained)).not.toContain('resp_1')
    expect(sent([user(1, 'Go')], target({ chain: true }))).toMatchObject({ store: true, input: [{ role: 'user' }] })
  })

  it('B-RESPONSES-24: nothing is chained to a response that is not this log: another model, a mapped id, a compacted log', () => {
    const stored = (response = 'resp_1', model = 'gpt-5.2', by = 'openai'): Part => kept({ response }, 0, by, model)
    const previous = (log: readonly Message[]): Json | undefined =>
      sent(log, target({ chain: true }))['previous_response_id']
    const go = user(1, 'Go')
    expect(previous([go, agent(2, ['a', stored()]), user(3, 'b')])).toBe('resp_1')
    expect(previous([go, agent(2, ['a', stored()]), user(3, 'b'), agent(4, ['c']), user(5, 'd')])).toBe('resp_1')
    expect(previous([go, agent(2, ['a', stored('resp_1', 'gpt-5')]), user(3, 'b')])).toBeUndefined()
    expect(previous([go, agent(2, ['a', stored('resp_1', 'gpt-5.2', 'azure')]), user(3, 'b')])).toBeUndefined()
    expect(previous([go, agent(2, ['a', stored()])])).toBeUndefined()
    expect(previous([go, agent(2, [stored()], [{ id: '' }]), result(3, '2.0', 'x')])).toBeUndefined()
    const summary = user(9, 'Summary')
    expect(previous([summary, agent(2, ['a', stored()]), user(3, 'b')])).toBeUndefined()
    expect(
      previous([summary, agent(2, ['a', stored()]), user(3, 'b'), agent(12, ['c', stored('r2')]), user(13, 'd')]),
    ).toBe('r2')
    const old = [agent(2, [], [{ id: 'c1' }]), result(3, '2.0', CLEARED)]
    expect(previous([go, ...old, agent(4, ['a', stored()]), user(5, 'b')])).toBeUndefined()
  })

  it('B-RESPONSES-25: a tool is strict only if its schema can be kept to the letter', () => {
    const strict = (parameters: Json, quirks: Quirks = {}): Json => {
      const [listed] = sent([user(1, 'a')], target({}, quirks), { tools: [{ ...tool, parameters }] })['tools'] as Json[]
      return (listed as Record<string, Json>)['strict'] ?? 'not said'
    }
    expect(strict(closed)).toBe(true)
    expect(strict(closed, { lacks: ['strict'] })).toBe('not said')
    const nested = (inner: Json): Json => ({
      ...(closed as object),
      properties: { a: { type: 'array', items: inner } },
    })
    expect(isStrict(nested(closed))).toBe(true)
    expect(isStrict(nested({ anyOf: [closed, { type: 'null' }] }))).toBe(true)
    const open = [
      { ...(closed as object), required: [] },
      { ...(closed as object), additionalProperties: true },
      { type: 'object', properties: {} },
      { ...(closed as object), properties: { a: { type: 'string', minLength: 1 } } },
      { ...(closed as object), properties: { a: { type: 'string', format: 'uri' } } },
      { ...(closed as object), properties: { a: { oneOf: [{ type: 'string' }] } } },
      { ...(closed as object), properties: { a: {} } },
      { ...(closed as object), properties: { a: { description: 'anything' } } },
      { ...(closed as object), properties: { a: { type: 'array' } } },
      { ...(closed as object), properties: { a: { $ref: '#/$defs/A', description: 'one of them' } } },
    ] as Json[]
    for (const schema of open) {
      expect(isStrict(schema)).toBe(false)
      expect(isStrict(nested(schema))).toBe(false)
      expect(strict(schema)).toBe(false)
    }
    expect(isStrict({ anyOf: [closed] })).toBe(false)
    expect(isStrict({ ...(closed as object), $defs: { b: { type: 'object' } } })).toBe(false)
  })

  it('B-RESPONSES-26: tools stay listed when none may be used, and an output comes as a format or as one more tool', () => {
    const messages = [user(1, 'a')]
    const output = { name: 'final_result', schema: closed, strict: true }
    const none = sent(messages, target(), { tools: [tool], allow: 'none' })
    expect(none).toMatchObject({ tools: [{ name: 'look' }], tool_choice: 'none' })
    expect(sent(messages, target(), { tools: [tool], allow: 'writers' })['tool_choice']).toBeUndefined()
    expect(
      sent(messages, target({}, { lacks: ['tool_choice'] }), { tools: [tool], allow: 'none' })['tool_choice'],
    ).toBeUndefined()
    const asTool = sent(messages, target(), { tools: [tool], output: { mode: 'tool', ...output } })
    expect(asTool['tools']).toMatchObject([
      { name: 'look' },
      { name: 'final_result', parameters: closed, strict: true },
    ])
    expect(asTool['tool_choice']).toBeUndefined()
    const forced = { type: 'function', name: 'final_result' }
    expect(sent(messages, target(), { output: { mode: 'tool', ...output } })['tool_choice']).toEqual(forced)
    const last = sent(messages, target(), { tools: [tool], allow: 'none', output: { mode: 'tool', ...output } })
    expect(last['tool_choice']).toEqual(forced)
    const native = { type: 'json_schema', name: 'final_result', schema: closed, strict: true }
    expect(sent(messages, target(), { output: { mode: 'native', ...output } })['text']).toEqual({ format: native })
    const loose: Json = { type: 'object', properties: { a: {} } }
    expect(sent(messages, target(), { output: { mode: 'native', ...output, schema: loose } })['text']).toEqual({
      format: { ...native, schema: loose, strict: false },
    })
  })

  it('B-RESPONSES-27: pictures and files are sent as such, and what the model cannot see is named', () => {
    const data = (media: string, name?: string): Part => ({
      type: 'data',
      media,
      data: 'AAAA',
      ...(name ? { name } : {}),
    })
    const content = (parts: readonly Part[], quirks: Quirks = {}): Json | undefined => {
      return sent([user(1, ...parts)], target({}, quirks)).input[0]?.['content']
    }
    expect(
      content([data('image/png'), data('application/pdf', 'a.pdf'), data('text/plain'), data('video/mp4', 'v')]),
    ).toEqual([
      { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,AAAA' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' },
      { type: 'input_file', filename: 'file.txt', file_data: 'data:text/plain;base64,AAAA' },
      { type: 'input_text', text: '[file v (video/mp4, 3 bytes) cannot be shown to this model]' },
    ])
    expect(content([data('image/png'), data('application/pdf', 'a.pdf')], { lacks: ['images', 'files'] })).toEqual([
      { type: 'input_text', text: '[file without a name (image/png, 3 bytes) cannot be shown to this model]' },
      { type: 'input_text', text: '[file a.pdf (application/pdf, 3 bytes) cannot be shown to this model]' },
    ])
  })

  it('B-RESPONSES-28: nothing goes out that the provider refuses: names, ids, keys, sizes and empty fields', () => {
    const log = [agent(2, [' '], [{ id: 'x'.repeat(80), tool: 'functions.look up!' }]), result(3, '2.0', '')]
    const bare = { ...tool, parameters: { type: 'object' } }
    const body = sent(log, target({ outputTokensMax: 1 }), {
      session: `é${'s'.repeat(90)}`,
      instructions: ' ',
      tools: [bare],
    })
    expect(body).toMatchObject({ max_output_tokens: 16, prompt_cache_key: 's'.repeat(64) })
    expect(body['instructions']).toBeUndefined()
    expect(body['tools']).toMatchObject([{ parameters: { type: 'object', properties: {} } }])
    expect(body.input).toEqual([
      { type: 'function_call', call_id: 'call_2_0', name: 'functions_look_up_', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_2_0', output: '(no output)' },
    ])
    expect(sent([]).input).toHaveLength(1)
    expect(sent([user(1, 'a')])['tools']).toBeUndefined()
    expect(sent([user(1, 'a')], target({ cache: false }))['prompt_cache_key']).toBeUndefined()
  })

  it('B-RESPONSES-29: a boost doubles the output, and fields of the caller come last and win', () => {
    const settings = { outputTokensMax: 1_000, temperature: 0.2, body: { service_tier: 'flex', store: true } } as const
    const { body } = responsesProtocol.encode(request([user(1, 'a')], { boost: true }), target(settings))
    expect(JSON.parse(body)).toMatchObject({
      max_output_tokens: 2_000,
      temperature: 0.2,
      service_tier: 'flex',
      store: true,
    })
    expect(body.endsWith('"service_tier":"flex","store":true}')).toBe(true)
    expect(sent([user(1, 'a')], target(), { boost: true })['max_output_tokens']).toBeUndefined()
    const named = target({ outputTokensMax: 50 }, { outputTokensField: 'max_tokens' })
    expect(sent([user(1, 'a')], named)).toMatchObject({ max_tokens: 50 })
  })
})
