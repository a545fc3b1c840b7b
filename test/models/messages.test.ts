// Anthropic's Messages API, the reading half: recorded streams written by hand from the published formats, and what becomes
// of them. The writing half is messages-encode.test.ts.
import { describe, expect, it } from 'vitest'
import type { Delta, ModelFailure, Reply } from '../../src/ports/model.ts'
import type { ModelTarget, WireEvent } from '../../src/models/protocols/protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import { framed, recording } from './sse.ts'

const target: ModelTarget = { endpoint: 'anthropic', model: 'claude-opus-4-6', settings: {}, quirks: {} }

type Heard = { readonly reply: Reply | ModelFailure; readonly deltas: readonly Delta[] }

function hear(events: readonly WireEvent[]): Heard {
  let state = messagesProtocol.begin(target)
  const deltas: Delta[] = []
  for (const event of events) {
    const [next, said] = messagesProtocol.step(state, event)
    state = next
    deltas.push(...said)
  }
  return { reply: messagesProtocol.finish(state), deltas }
}

const play = (name: string): Heard => hear(recording(`messages/${name}`))
const send = (...data: readonly unknown[]): readonly WireEvent[] =>
  data.map((value) => ({ event: '', data: JSON.stringify(value) }))

const block = (index: number, content_block: unknown) => ({ type: 'content_block_start', index, content_block })
const text = (index: number, said: unknown) => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'text_delta', text: said },
})
const args = (index: number, partial_json: unknown) => ({
  type: 'content_block_delta',
  index,
  delta: { type: 'input_json_delta', partial_json },
})
const stop = (index: number) => ({ type: 'content_block_stop', index })
const call = (index: number, id: unknown, name: unknown, input: unknown = {}) =>
  block(index, { type: 'tool_use', id, name, input })
const ended = (stop_reason: string | null, usage?: unknown) => [
  { type: 'message_delta', delta: { stop_reason }, usage },
  { type: 'message_stop' },
]
const said = (index: number, words: string) => [
  block(index, { type: 'text', text: '' }),
  text(index, words),
  stop(index),
]
const opaque = (at: number, data: unknown) => ({ by: 'anthropic', model: 'claude-opus-4-6', at, data })

describe('Messages: what a stream says', () => {
  it('B-MESSAGES-18: text blocks become text parts, one each, and their deltas are told as they come', () => {
    const { reply, deltas } = play('text')
    expect(reply).toEqual({
      type: 'reply',
      parts: [{ type: 'text', text: 'The kettle is on.' }],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 25, outputTokens: 15, cachedTokens: 0, cacheWriteTokens: 0 },
    })
    expect(deltas).toEqual([
      { kind: 'text', part: 0, text: 'The kettle' },
      { kind: 'text', part: 0, text: ' is on.' },
    ])
    expect(play('unicode').reply).toMatchObject({
      parts: [{ text: 'Grüße 😀 aus 東京 👩‍🚀\u0000\u2028"\\' }],
      finish: 'stop',
    })
    expect(play('empty').reply).toMatchObject({ type: 'reply', parts: [], calls: [], finish: 'stop' })
    const started = hear(send(block(0, { type: 'text', text: 'Hel' }), text(0, 'lo'), stop(0), ...ended('end_turn')))
    expect(started.reply).toMatchObject({ parts: [{ type: 'text', text: 'Hello' }] })
    expect(started.deltas.map((delta) => delta.text).join('')).toBe('Hello')
  })

  it('B-MESSAGES-19: a thought keeps the signed block of the provider unchanged, with the number of calls before it', () => {
    const { reply, deltas } = play('thinking')
    expect(reply).toMatchObject({
      parts: [
        {
          type: 'reasoning',
          text: '27 times 4 is 108.',
          opaque: opaque(0, {
            type: 'thinking',
            thinking: '27 times 4 is 108.',
            signature: 'EqQBHandWrittenSignature/one+two==',
          }),
        },
        { type: 'text', text: '108' },
      ],
      usage: { inputTokens: 40, outputTokens: 31, reasoningTokens: 22 },
    })
    expect(deltas.map(({ kind, part }) => `${kind} ${part}`)).toEqual(['reasoning 0', 'reasoning 0', 'text 1'])
    const hidden = { type: 'thinking', thinking: '', signature: 'ErUBHandWrittenOmitted==' }
    expect(play('thinking-omitted').reply).toMatchObject({
      parts: [{ type: 'reasoning', text: '', opaque: opaque(0, hidden) }, { text: 'Yes.' }],
    })
    const redacted = { type: 'redacted_thinking', data: 'EmwKAhgBEgyHandWrittenRedactedData0123456789==' }
    expect(play('redacted').reply).toMatchObject({
      parts: [{ text: 'First the plain part.' }, { text: '', opaque: opaque(0, redacted) }, { type: 'text' }],
    })
    expect(play('interleaved').reply).toMatchObject({
      parts: [{ opaque: { at: 0, data: { signature: 'sigRevenue==' } } }, { opaque: { at: 1 } }],
      calls: [{ id: 'toolu_01Revenue' }, { id: 'toolu_02Costs' }],
    })
    const unsigned = hear(send(block(0, { type: 'thinking', thinking: 'hm' }), stop(0), ...ended('max_tokens')))
    expect(unsigned.reply).toMatchObject({ parts: [{ type: 'reasoning', text: 'hm' }], finish: 'length' })
    expect(unsigned.reply).toMatchObject({ parts: [{ opaque: opaque(0, null) }] })
  })

  it('B-MESSAGES-20: the arguments of calls are the text as it was streamed, and none at all is an empty text', () => {
    const { reply, deltas } = play('tool')
    expect(reply).toMatchObject({
      parts: [{ type: 'text', text: 'I look that up.' }],
      calls: [{ id: 'toolu_01HandWeather', tool: 'get_weather', args: '{"city": "Zürich", "days": 3}' }],
      finish: 'calls',
    })
    expect(deltas.map(({ kind, part }) => `${kind} ${part}`)).toEqual([
      'text 0',
      'arguments 1',
      'arguments 1',
      'arguments 1',
    ])
    expect(play('parallel').reply).toMatchObject({
      calls: [
        { id: 'toolu_01A', tool: 'read', args: '{"path":"a.txt"}' },
        { id: 'toolu_01B', tool: 'read', args: '{"path":"b.txt"}' },
        { id: 'toolu_01C', tool: 'list', args: '{}' },
      ],
      finish: 'calls',
    })
    expect(play('no-arguments').reply).toMatchObject({ calls: [{ tool: 'now', args: '' }], finish: 'calls' })
    const given = hear(send(call(0, undefined, 'now', { zone: 'UTC' }), stop(0), ...ended('tool_use')))
    expect(given.reply).toMatchObject({ calls: [{ id: '', tool: 'now', args: '{"zone":"UTC"}' }] })
  })

  it('B-MESSAGES-21: a stop reason says how the reply ended: cut, refused, with calls or done', () => {
    expect(play('length').reply).toMatchObject({ parts: [{ text: 'Quantum physics is the' }], finish: 'length' })
    expect(play('length-in-call').reply).toMatchObject({
      calls: [{ tool: 'write', args: '{"path": "poem.txt", "text": "Roses are' }],
      finish: 'length',
    })
    expect(play('refusal').reply).toMatchObject({ parts: [{ text: 'Let me look' }], calls: [], finish: 'refusal' })
    const finish = (reason: string | null): unknown => {
      const { reply } = hear(send(...said(0, 'x'), ...ended(reason)))
      return 'finish' in reply ? reply.finish : reply.message
    }
    expect(['end_turn', 'stop_sequence', 'tool_use', null, 'news_to_us'].map(finish)).toEqual(Array(5).fill('stop'))
    expect(['max_tokens', 'model_context_window_exceeded', 'pause_turn'].map(finish)).toEqual(Array(3).fill('length'))
  })

  it('B-MESSAGES-22: what the provider ran itself is never a call of ours but a part, and its citations are sources', () => {
    expect(play('server-tools').reply).toMatchObject({
      type: 'reply',
      parts: [
        { type: 'provider', tool: 'web_search', opaque: { at: 0, data: { input: { query: 'tides at Brest' } } } },
        {
          type: 'provider',
          tool: 'web_search',
          opaque: { at: 0, data: { content: [{ encrypted_content: 'Eo4BHand' }] } },
        },
        { type: 'reasoning', text: '', opaque: { data: { citations: [{ encrypted_index: 'Eo8BHand' }] } } },
        { type: 'text', text: 'High water is at noon.' },
        { type: 'source', url: 'https://tides.example/brest', title: 'Tides' },
      ],
      calls: [],
      finish: 'length',
      usage: { inputTokens: 10_682, outputTokens: 510, cachedTokens: 0, cacheWriteTokens: 0, webSearches: 1 },
      paused: [
        {
          type: 'server_tool_use',
          id: 'srvtoolu_01Search',
          name: 'web_search',
          input: { query: 'tides at Brest' },
        },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_01Search', content: [{ title: 'Tides' }] },
        {
          type: 'text',
          text: 'High water is at noon.',
          citations: [{ type: 'web_search_result_location', encrypted_index: 'Eo8BHand' }],
        },
      ],
    })
    expect(play('server-tools').deltas).toEqual([{ kind: 'text', part: 0, text: 'High water is at noon.' }])
  })
})

describe('Messages: how a message begins and what it counts', () => {
  const opens = (id: unknown, more: object = {}) => ({ type: 'message_start', message: { id, content: [], ...more } })

  it('B-MESSAGES-34: a second message with another id is a broken stream, and the same one again is nothing', () => {
    const second = hear(
      send(opens('msg_1'), ...said(0, 'One.'), opens('msg_2'), ...said(1, 'Two.'), ...ended('end_turn')),
    )
    const message = expect.stringContaining('second message') as string
    expect(second.reply).toMatchObject({ type: 'failure', class: 'network', retryable: true, message })
    const again = hear(send(opens('msg_1'), ...said(0, 'One.'), opens('msg_1'), ...ended('end_turn')))
    expect(again.reply).toMatchObject({ type: 'reply', parts: [{ text: 'One.' }] })
    const nameless = hear(send(opens(undefined), opens(null), ...said(0, 'One.'), ...ended('end_turn')))
    expect(nameless.reply).toMatchObject({ type: 'reply', parts: [{ text: 'One.' }] })
  })

  it('B-MESSAGES-35: calls and texts that the start of a message holds are read, once, before those that are streamed', () => {
    const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' }
    const content = [
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 1 }, caller },
      { type: 'tool_use', id: 'toolu_b', name: 'look', input: { at: 2 }, caller },
    ]
    const start = opens('msg_1', { content, stop_reason: 'tool_use' })
    const whole = hear(send(start, ...ended(null)))
    expect(whole.reply).toMatchObject({
      finish: 'calls',
      parts: [{ type: 'text', text: 'I look.' }],
      calls: [
        { id: 'toolu_a', tool: 'look', args: '{"at":1}' },
        { id: 'toolu_b', tool: 'look', args: '{"at":2}' },
      ],
    })
    expect(whole.deltas).toEqual([{ kind: 'text', part: 0, text: 'I look.' }])
    const more = hear(
      send(start, call(0, 'toolu_b', 'look'), args(0, '{"at":9}'), stop(0), ...said(1, 'Done.'), ...ended('tool_use')),
    )
    expect(more.reply).toMatchObject({ calls: [{ id: 'toolu_a' }, { id: 'toolu_b', args: '{"at":2}' }] })
    expect(more.deltas.at(-1)).toEqual({ kind: 'text', part: 3, text: 'Done.' })
    const odd = opens('msg_1', { content: [{ type: 'tool_use', id: 'toolu_a' }] })
    expect(hear(send(odd, ...ended('tool_use'))).reply).toMatchObject({ type: 'failure', class: 'network' })
  })

  it('B-MESSAGES-36: a paused turn with calls of ours ends with them, and a whole answer is paused like a stream', () => {
    const asked = hear(send(call(0, 'toolu_a', 'look'), args(0, '{}'), stop(0), ...ended('pause_turn')))
    expect(asked.reply).toMatchObject({ finish: 'calls', calls: [{ id: 'toolu_a' }] })
    expect(asked.reply).not.toHaveProperty('paused')
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'sig' },
      { type: 'thinking', thinking: 'cut', signature: '' },
      { type: 'text', text: ' ' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 1 } },
    ]
    const whole = messagesProtocol.whole(JSON.stringify({ content, stop_reason: 'pause_turn' }), target)
    expect(whole).toMatchObject({ paused: [content[0], content[3]] })
  })

  it('B-MESSAGES-37: rounds that compact the context are counted, those of other models are not, and the last round is the length of the request', () => {
    const usage = (iterations: unknown, more: object = {}): unknown => {
      const told = { input_tokens: 10, output_tokens: 2, iterations, ...more }
      const { reply } = hear(send(...said(0, 'x'), ...ended('end_turn', told)))
      return 'usage' in reply ? reply.usage : reply
    }
    const round = (type: string, input_tokens: unknown, output_tokens: unknown, more: object = {}) => {
      return { type, input_tokens, output_tokens, ...more }
    }
    expect(usage([round('compaction', 1_000, 50), round('message', 10, 2)])).toEqual({
      inputTokens: 1_010,
      outputTokens: 52,
      contextTokens: 10,
    })
    const cached = { cache_read_input_tokens: 5 }
    expect(usage([round('message', 10, 2, cached), round('message', 20, 3, cached)], cached)).toEqual({
      inputTokens: 40,
      outputTokens: 5,
      cachedTokens: 10,
      contextTokens: 25,
    })
    const plain = { inputTokens: 10, outputTokens: 2 }
    expect(usage([round('advisor_message', 900, 90), round('message', 10, 2)])).toEqual(plain)
    expect(usage([round('message', 900, 90), round('fallback_message', 10, 2)])).toEqual(plain)
    for (const odd of [null, [], 'x', [3], {}]) expect(usage(odd)).toEqual(plain)
    expect(usage([round('message', '10', 2)])).toBeNull()
  })
})

describe('Messages: what goes wrong in a stream', () => {
  it('B-MESSAGES-23: an error in the middle of a stream is a failure of its class, with the text so far', () => {
    const failed = { type: 'failure', class: 'server', retryable: true, partial: 'I was about' }
    expect(play('overloaded').reply).toMatchObject({ ...failed, message: 'overloaded_error: Overloaded' })
    const classes = (code: string, message = 'x'): unknown => {
      const { reply } = hear(
        send({ type: 'error', error: { type: code, message } }, ...said(0, 'late'), ...ended(null)),
      )
      return 'class' in reply ? reply.class : reply.finish
    }
    expect(classes('rate_limit_error')).toBe('rate_limit')
    expect(classes('authentication_error')).toBe('auth')
    expect(classes('invalid_request_error', 'prompt is too long: 205000 tokens > 200000 maximum')).toBe('overflow')
    expect(hear([{ event: 'error', data: '{"error":"gone"}' }]).reply).toMatchObject({ class: 'server' })
  })

  it('B-MESSAGES-24: without the provider’s own end, or with an event that cannot be read, no call comes out of it', () => {
    const cut = { type: 'failure', class: 'network', retryable: true, partial: 'I delete it.' }
    expect(play('cut-off').reply).toMatchObject(cut)
    expect(hear([]).reply).toMatchObject({ class: 'network' })
    const damaged = [
      ...send(...said(0, 'so')),
      { event: '', data: '{"type":"content_bl' },
      ...send(...ended('end_turn')),
    ]
    expect(hear(damaged).reply).toMatchObject({ class: 'network', retryable: true, partial: 'so' })
    const odd = [
      send(call(0, 'a', 'rm'), args(0, 7), stop(0), ...ended('tool_use')),
      send(call(0, 'a', 'rm'), args(0, '{"path":"/'), ...ended('tool_use')),
      send(call(0, 'a', 12), stop(0), ...ended('tool_use')),
      send({ type: 'content_block_start', index: 0 }, ...ended('tool_use')),
    ]
    for (const events of odd) expect(hear(events).reply).toMatchObject({ type: 'failure', class: 'network' })
    expect(hear(send(call(0, 'a', 'rm'), args(0, '{"pa'), ...ended('max_tokens'))).reply).toMatchObject({
      finish: 'length',
      calls: [{ args: '{"pa' }],
    })
  })

  it('B-MESSAGES-25: unknown events, blocks and fields are ignored, and so is what comes twice or too late', () => {
    expect(play('unknown').reply).toMatchObject({
      parts: [{ type: 'text', text: 'Still here' }],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 30, outputTokens: 6 },
    })
    const strange = [...framed('data: [DONE]\n\nevent: ping\n\ndata: null\n\ndata: 5\n\ndata: [1]')]
    const twice = send(...said(0, 'one'), ...said(0, 'two'), text(0, 'three'), ...ended('end_turn'), { type: 'error' })
    expect(hear([...strange, ...twice]).reply).toMatchObject({ parts: [{ type: 'text', text: 'one' }], finish: 'stop' })
    const woven = [
      call(0, 'a', 'x'),
      call(1, 'b', 'y'),
      args(0, '{"n":'),
      args(1, '{}'),
      args(0, '1}'),
      stop(1),
      stop(0),
    ]
    expect(hear(send(...woven, ...ended('tool_use'))).reply).toMatchObject({
      calls: [
        { id: 'a', args: '{"n":1}' },
        { id: 'b', args: '{}' },
      ],
    })
  })

  it('B-MESSAGES-30: no event makes it throw, however strange', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const values = [
      null,
      true,
      -1,
      1e300,
      '',
      'text',
      [],
      {},
      { type: 'text' },
      { type: 'tool_use', name: 'x', input: 3 },
    ]
    const types = ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta']
    const events: WireEvent[] = [
      ...types.flatMap((type) =>
        values.map((v) => ({ event: '', data: JSON.stringify({ type, index: v, delta: v }) })),
      ),
      ...types.flatMap((type) =>
        values.flatMap((v) => send({ type, index: 0, content_block: v, message: v, usage: v })),
      ),
      ...['text', 'thinking', 'input_json', 'signature'].flatMap((kind) =>
        values.flatMap((v) =>
          send({
            ...text(0, v),
            delta: { type: `${kind}_delta`, text: v, thinking: v, partial_json: v, signature: v },
          }),
        ),
      ),
    ]
    const nested = {
      event: '',
      data: `{"type":"content_block_start","index":9,"content_block":{"type":"tool_use","name":"x","input":{"a":${deep}}}}`,
    }
    for (const event of [...events, nested, { event: '', data: deep }]) hear([...send(...said(0, 'x')), event, event])
    expect(hear([nested, ...send(stop(9), ...ended('tool_use'))]).reply).toMatchObject({ class: 'network' })
    expect(hear(events).reply.type).toBe('failure')
  })
})

describe('Messages: what a stream costs, and how it is kept', () => {
  it('B-MESSAGES-26: input counts what was read from and written to the cache, late numbers win, and absurd ones are none', () => {
    expect(play('late-input').reply).toMatchObject({
      usage: { inputTokens: 10_250, outputTokens: 7, cachedTokens: 10_000, cacheWriteTokens: 200 },
    })
    expect(play('no-usage').reply).toMatchObject({ usage: null })
    const usage = (told: unknown): unknown => {
      const { reply } = hear(send(...said(0, 'x'), ...ended('end_turn', told)))
      return 'usage' in reply ? reply.usage : reply
    }
    expect(usage({ input_tokens: 1, output_tokens: 2, cache_read_input_tokens: null })).toEqual({
      inputTokens: 1,
      outputTokens: 2,
    })
    const absurd = [-1, '12', 1.5, 1e30, true, {}]
    for (const n of absurd) expect(usage({ input_tokens: n, output_tokens: 2 })).toBeNull()
    for (const n of absurd) expect(usage({ input_tokens: 1, output_tokens: 2, cache_read_input_tokens: n })).toBeNull()
    expect(usage({ output_tokens: 2 })).toBeNull()
    const paid = (cost: unknown) => hear(send(...said(0, 'x'), ...ended('end_turn', { cost }))).reply
    expect(paid(0.000_123)).toMatchObject({ cost: 123 })
    expect(paid(0.000_000_1)).toMatchObject({ cost: 1 })
    expect(paid(-1)).not.toHaveProperty('cost')
  })

  it('B-MESSAGES-27: a state is never changed: every start of a stream can be gone on from again', () => {
    for (const name of ['interleaved', 'unknown', 'tool', 'redacted']) {
      const events = recording(`messages/${name}`)
      const states = [messagesProtocol.begin(target)]
      for (const event of events) states.push(messagesProtocol.step(states.at(-1) as (typeof states)[0], event)[0])
      const once = states.map((state) => JSON.stringify(messagesProtocol.finish(state)))
      states.forEach((state, from) => {
        messagesProtocol.step(state, { event: '', data: '{"type":"error"}' })
        let other = state
        for (const event of events.slice(from)) other = messagesProtocol.step(other, event)[0]
        expect(JSON.stringify(messagesProtocol.finish(other))).toBe(once.at(-1))
      })
      expect(states.map((state) => JSON.stringify(messagesProtocol.finish(state)))).toEqual(once)
    }
  })

  it('B-MESSAGES-28: deltas are numbered by the parts and calls of the reply and add up to them', () => {
    for (const name of ['text', 'thinking', 'thinking-omitted', 'redacted', 'interleaved', 'parallel', 'unknown']) {
      const { reply, deltas } = play(name)
      if (reply.type !== 'reply') throw new Error(`${name} is no reply`)
      const sums = new Map<string, string>()
      for (const { kind, part, text: piece } of deltas) {
        sums.set(`${kind} ${part}`, (sums.get(`${kind} ${part}`) ?? '') + piece)
      }
      const spoken = [
        ...reply.parts.map((part) => ('text' in part ? part.text : '')),
        ...reply.calls.map((c) => c.args),
      ]
      expect([...sums.values()].toSorted()).toEqual(spoken.filter((words) => words !== '').toSorted())
      const highest = Math.max(...deltas.map(({ part }) => part))
      expect(highest).toBe(reply.parts.length + reply.calls.length - 1)
    }
    const hushed = hear(send(block(0, { type: 'text', text: '' }), stop(0), ...said(1, 'x'), ...ended('end_turn')))
    expect(hushed.deltas).toEqual([{ kind: 'text', part: 0, text: 'x' }])
  })

  it('B-MESSAGES-29: an answer that came whole is read like a streamed one', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
      { type: 'text', text: 'Looking.' },
      { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } },
      { type: 'tool_use', id: 'toolu_2', name: 'now', input: {} },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    ]
    const usage = { input_tokens: 3, output_tokens: 4 }
    const body = JSON.stringify({ type: 'message', role: 'assistant', content, stop_reason: 'tool_use', usage })
    expect(messagesProtocol.whole(body, target)).toEqual({
      type: 'reply',
      parts: [
        { type: 'reasoning', text: 'hm', opaque: opaque(0, content[0]) },
        { type: 'text', text: 'Looking.' },
        { type: 'provider', tool: 'web_search', opaque: opaque(2, content[4]) },
      ],
      calls: [
        { id: 'toolu_1', tool: 'look', args: '{"at":"x"}' },
        { id: 'toolu_2', tool: 'now', args: '' },
      ],
      finish: 'calls',
      usage: { inputTokens: 3, outputTokens: 4 },
    })
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    expect(messagesProtocol.whole(JSON.stringify(error), target)).toMatchObject({ class: 'server', retryable: true })
    for (const odd of ['<html>', 'null', '{}', '{"content":[7]}']) {
      expect(messagesProtocol.whole(odd, target)).toMatchObject({ type: 'failure', class: 'network' })
    }
  })
})
