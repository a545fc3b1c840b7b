// Chat Completions, the reading half: recorded streams written by hand from the published formats, and what becomes of them.
// How streams end is chat-end.test.ts, the writing half chat-encode.test.ts.
import { describe, expect, it } from 'vitest'
import { callPiece, delta, play, replyOf } from './chat-heard.ts'

const callsOf = (...data: readonly unknown[]) => {
  const reply = replyOf(...data, delta({}, 'tool_calls'))
  return reply.type === 'reply' ? reply.calls.map(({ id, tool, args }) => [id, tool, args]) : reply
}
const opaque = (at: number, data: unknown) => ({ by: 'openrouter', model: 'm', at, data })

describe('Chat: what a stream says', () => {
  it('B-CHAT-1: pieces of content are one text part, told as they come', () => {
    const { reply, deltas } = play('text')
    expect(reply).toEqual({
      type: 'reply',
      parts: [{ type: 'text', text: 'The harbour opens at six.' }],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 1210, outputTokens: 6, cachedTokens: 1024, reasoningTokens: 0 },
    })
    expect(deltas).toEqual([
      { kind: 'text', part: 0, text: 'The harbour' },
      { kind: 'text', part: 0, text: ' opens at six.' },
    ])
  })

  it('B-CHAT-2: pieces of a call are put together by index, and its arguments stay the text they were', () => {
    const { reply, deltas } = play('tool')
    expect(reply).toEqual({
      type: 'reply',
      parts: [],
      calls: [{ id: 'call_Tide01', tool: 'tide_table', args: '{"port":"Brest"}' }],
      finish: 'calls',
      usage: { inputTokens: 80, outputTokens: 15 },
    })
    expect(deltas.map(({ kind, part, text }) => [kind, part, text])).toEqual([
      ['arguments', 0, '{"port":'],
      ['arguments', 0, '"Brest"}'],
    ])
  })

  it('B-CHAT-2: pieces of several calls may come mixed, and calls stand in the order of their start', () => {
    const { reply, deltas } = play('parallel-tools')
    expect(reply).toMatchObject({
      parts: [{ type: 'text', text: 'Both at once.' }],
      calls: [
        { id: 'call_p0', tool: 'tide_table', args: '{"port":"Brest"}' },
        { id: 'call_p1', tool: 'wind', args: '{"at":"noon"}' },
      ],
      finish: 'calls',
      usage: null,
    })
    expect(deltas.map(({ part }) => part)).toEqual([0, 2, 1, 2])
  })

  it('B-CHAT-2: a call without arguments has none, and is a call', () => {
    expect(play('tool-no-args').reply).toMatchObject({
      calls: [{ id: 'chatcmpl-tool-9f', tool: 'now', args: '' }],
      finish: 'calls',
    })
  })

  it('B-CHAT-3: a new id with a name is a new call, also under the same index; a repeated id is not', () => {
    expect(
      callsOf(callPiece(0, 'a', 'wind', '{}'), callPiece(0, 'b', 'wind', '{"x":'), callPiece(0, '', null, '1}')),
    ).toEqual([
      ['a', 'wind', '{}'],
      ['b', 'wind', '{"x":1}'],
    ])
    expect(callsOf(callPiece(0, 'a', 'wind', '{"x"'), callPiece(0, 'a', 'wind', ':1}'))).toEqual([
      ['a', 'wind', '{"x":1}'],
    ])
    expect(callsOf(callPiece(0, 'a', 'wind', '{"x"'), callPiece(0, 'other', '', ':1}'))).toEqual([
      ['a', 'wind', '{"x":1}'],
    ])
    expect(play('moonshot').reply).toMatchObject({
      calls: [{ id: 'functions.wind:0', tool: 'wind', args: '{"at":"noon"}' }],
      usage: { inputTokens: 19, outputTokens: 21, cachedTokens: 10 },
    })
  })

  it('B-CHAT-3: without ids, a name again after whole arguments is a new call', () => {
    expect(play('ollama-calls').reply).toMatchObject({
      parts: [{ type: 'reasoning', text: 'Ask twice.' }],
      calls: [
        { id: '', tool: 'wind', args: '{"at":"noon"}' },
        { id: '', tool: 'wind', args: '{"at":"dusk"}' },
      ],
    })
    expect(callsOf(callPiece(0, '', 'wind', '{}'), callPiece(0, '', 'wind', ''))).toEqual([['', 'wind', '{}']])
    expect(callsOf(callPiece(0, '', 'wind', '{"x"'), callPiece(0, '', 'wind', ':1}'))).toEqual([
      ['', 'wind', '{"x":1}'],
    ])
  })

  it('B-CHAT-3: without an index, an id or a name begins a call and anything else goes on with the last one', () => {
    const bare = (id: string | undefined, name: string | undefined, args: unknown) =>
      callPiece(undefined, id, name, args)
    expect(callsOf(bare('a', 'wind', '{"x"'), bare(undefined, undefined, ':1}'), bare('b', 'now', { y: 2 }))).toEqual([
      ['a', 'wind', '{"x":1}'],
      ['b', 'now', '{"y":2}'],
    ])
    expect(callsOf(bare('null', 'wind', '{}'), bare('null', 'now', '{}'))).toEqual([
      ['', 'wind', '{}'],
      ['', 'now', '{}'],
    ])
  })

  it('B-CHAT-3: the old form of one function call is a call', () => {
    expect(play('legacy-function').reply).toMatchObject({
      calls: [{ id: '', tool: 'wind', args: '{"at":"noon"}' }],
      finish: 'calls',
    })
  })

  it('B-CHAT-4: a refusal and a content filter are a refusal, with what was said', () => {
    expect(play('refusal').reply).toMatchObject({
      parts: [{ type: 'text', text: "I'm sorry, I can't help with that." }],
      finish: 'refusal',
    })
    expect(play('content-filter').reply).toMatchObject({ parts: [{ text: 'Once upon' }], finish: 'refusal' })
    expect(replyOf(delta({ content: 'x' }, 'content_filter: SAFETY'))).toMatchObject({ finish: 'refusal' })
  })

  it('B-CHAT-4: what was asked for before a refusal is not asked for any more', () => {
    const asked = callPiece(0, 'c1', 'wipe', '{"all":true}')
    expect(replyOf(asked, delta({}, 'content_filter'))).toMatchObject({ parts: [], calls: [], finish: 'refusal' })
    expect(replyOf(asked, delta({ refusal: 'No.' }, 'stop'))).toMatchObject({ calls: [], finish: 'refusal' })
  })

  it('B-CHAT-5: an answer that ran out of room is told as such, and a cut call keeps what came of it', () => {
    expect(play('length').reply).toMatchObject({ parts: [{ text: 'First, the' }], finish: 'length' })
    expect(play('length-in-call').reply).toMatchObject({
      calls: [{ id: 'call_cut', tool: 'write', args: '{"path":"a.txt","content":"one tw' }],
      finish: 'length',
    })
    expect(replyOf(delta({ content: 'x' }, 'model_length'))).toMatchObject({ finish: 'length' })
  })
})

describe('Chat: reasoning', () => {
  it("B-CHAT-6: OpenRouter's signed details are merged by index and kept exactly", () => {
    const { reply, deltas } = play('openrouter-signed')
    const details = [
      {
        type: 'reasoning.text',
        text: 'The tide turns at noon.',
        format: 'anthropic-claude-v1',
        index: 0,
        signature: 'EqQBCkgIAhABGAIiQL7+signed/by+them==',
      },
    ]
    expect(reply).toEqual({
      type: 'reply',
      parts: [
        { type: 'reasoning', text: 'The tide turns at noon.', opaque: opaque(0, { reasoning_details: details }) },
        { type: 'text', text: 'I will look.' },
      ],
      calls: [{ id: 'toolu_01Abc', tool: 'tide_table', args: '{"port": "Brest"}' }],
      finish: 'calls',
      usage: { inputTokens: 5200, outputTokens: 90, cachedTokens: 4096, cacheWriteTokens: 1000, reasoningTokens: 30 },
      cost: 4124,
    })
    expect(deltas.map(({ kind, part }) => `${kind} ${part}`)).toEqual([
      'reasoning 0',
      'reasoning 0',
      'text 1',
      'arguments 2',
    ])
  })

  it('B-CHAT-6: encrypted details stand beside summaries, in the order they came', () => {
    const details = [
      { type: 'reasoning.summary', summary: '**Weighing both ports**', format: 'openai-responses-v1', index: 0 },
      {
        type: 'reasoning.encrypted',
        data: 'gAAAAABsealed==',
        id: 'rs_0a1b',
        format: 'openai-responses-v1',
        index: 0,
      },
    ]
    expect(play('openrouter-encrypted').reply).toMatchObject({
      parts: [
        { type: 'reasoning', text: '**Weighing both ports**', opaque: opaque(0, { reasoning_details: details }) },
        { type: 'text', text: 'Brest.' },
      ],
      finish: 'stop',
      cost: 2150,
    })
  })

  it('B-CHAT-6: text after a signature is the next block', () => {
    const piece = (fields: unknown) => delta({ reasoning_details: [fields] })
    const text = (index: number, said: string | null, signature?: string) =>
      piece({ type: 'reasoning.text', text: said, signature, index })
    expect(
      replyOf(text(0, 'a'), text(0, null, 's1'), text(0, 'b'), text(1, 'c'), text(0, '', 's2'), delta({}, 'stop')),
    ).toEqual({
      type: 'reply',
      parts: [
        {
          type: 'reasoning',
          text: 'abc',
          opaque: opaque(0, {
            reasoning_details: [
              { type: 'reasoning.text', text: 'a', signature: 's1', index: 0 },
              { type: 'reasoning.text', text: 'b', signature: 's2', index: 0 },
              { type: 'reasoning.text', text: 'c', index: 1 },
            ],
          }),
        },
      ],
      calls: [],
      finish: 'stop',
      usage: null,
    })
  })

  it('B-CHAT-6: a fragment that says nothing of a field leaves it as it is', () => {
    const text = (fields: unknown) =>
      delta({ reasoning_details: [{ type: 'reasoning.text', index: 0, ...Object(fields) }] })
    const reply = replyOf(
      text({ text: 'a', id: 'r1' }),
      text({ id: null, signature: 's' }),
      text({ signature: null }),
      '[DONE]',
    )
    expect(reply).toMatchObject({
      parts: [{ opaque: { data: { reasoning_details: [{ text: 'a', id: 'r1', signature: 's', index: 0 }] } } }],
    })
  })

  it('B-CHAT-7: unsigned reasoning is text, whatever field it came in', () => {
    expect(play('deepseek-thinking').reply).toMatchObject({
      parts: [{ type: 'reasoning', text: 'I need the date.' }],
      calls: [{ id: 'call_00_date', tool: 'get_date', args: '{}' }],
      usage: { inputTokens: 300, outputTokens: 60, cachedTokens: 256, reasoningTokens: 40 },
    })
    expect(play('mistral-thinking').reply).toMatchObject({
      parts: [
        { type: 'reasoning', text: 'Two ports, one tide.' },
        { type: 'text', text: 'Looking it up.' },
      ],
      calls: [
        { id: 'D6X1kRf9a', tool: 'tide_table', args: '{"port": "Brest"}' },
        { id: 'Zq08sLm2T', tool: 'tide_table', args: '{"port": "Dover"}' },
      ],
    })
    const unsigned = replyOf(
      delta({ reasoning: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'a' }] }, 'stop'),
    )
    expect(unsigned).toMatchObject({ parts: [{ type: 'reasoning', text: 'a' }] })
    for (const { reply } of [play('deepseek-thinking'), play('mistral-thinking'), { reply: unsigned }]) {
      expect(reply).toMatchObject({ parts: { 0: { opaque: opaque(0, null) } } })
    }
  })

  it('B-CHAT-7: reasoning that comes twice under two names is counted once', () => {
    expect(replyOf(delta({ reasoning: 'once', reasoning_content: 'once', content: 'x' }, 'stop'))).toMatchObject({
      parts: [{ text: 'once' }, { text: 'x' }],
    })
    expect(replyOf(delta({ content: 'x' }), delta({ reasoning: 'late' }, 'stop'))).toMatchObject({
      parts: [{ text: 'x' }, { text: 'late' }],
    })
  })

  it("B-CHAT-8: Gemini's signature of a call is kept, and says which call it belongs to", () => {
    expect(play('gemini-signature').reply).toEqual({
      type: 'reply',
      parts: [
        {
          type: 'reasoning',
          text: '',
          opaque: opaque(0, { extra_content: { google: { thought_signature: 'CiQB+signature/of+google==' } } }),
        },
      ],
      calls: [
        { id: 'function-call-1111', tool: 'tide_table', args: '{"port":"Brest"}' },
        { id: 'function-call-2222', tool: 'tide_table', args: '{"port":"Dover"}' },
      ],
      finish: 'calls',
      usage: { inputTokens: 90, outputTokens: 85 },
    })
  })
})

describe('Chat: usage and cost', () => {
  it('B-CHAT-9: usage is found wherever a host puts it, and reasoning counts as output', () => {
    expect(play('groq').reply).toMatchObject({
      parts: [{ type: 'reasoning', text: 'A calm day.' }],
      calls: [{ id: 'fc_1' }, { id: 'fc_2' }],
      usage: { inputTokens: 210, outputTokens: 40, cachedTokens: 128 },
    })
    expect(play('xai').reply).toMatchObject({
      usage: { inputTokens: 300, outputTokens: 220, cachedTokens: 256, reasoningTokens: 200 },
      cost: 150,
    })
  })

  const used = (usage: unknown) => {
    const reply = replyOf(delta({ content: 'x' }, 'stop'), { choices: [], usage })
    return reply.type === 'reply' ? reply.usage : reply
  }

  it('B-CHAT-9: numbers that cannot be make the whole usage unknown, and so do missing ones', () => {
    const fine = { prompt_tokens: 5, completion_tokens: 2 }
    expect(used(fine)).toEqual({ inputTokens: 5, outputTokens: 2 })
    expect(used({ ...fine, prompt_tokens: -5 })).toBeNull()
    expect(used({ ...fine, completion_tokens: '2' })).toBeNull()
    expect(used({ ...fine, prompt_tokens_details: { cached_tokens: 1.5 } })).toBeNull()
    expect(used({ ...fine, completion_tokens_details: { reasoning_tokens: 1e300 } })).toBeNull()
    expect(used({ completion_tokens: 2 })).toBeNull()
    expect(used({})).toBeNull()
    expect(play('no-done').reply).toMatchObject({ usage: null })
  })

  it('B-CHAT-9: input counts what was read from a cache, also where a host counts it apart', () => {
    const usage = { prompt_tokens: 5, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 90 } }
    expect(used(usage)).toEqual({ inputTokens: 95, outputTokens: 2, cachedTokens: 90 })
  })

  it('B-CHAT-10: a cost that the host tells is rounded up to a millionth of a dollar', () => {
    const cost = (usage: unknown) => {
      const reply = replyOf(delta({}, 'stop'), { choices: [], usage })
      return reply.type === 'reply' ? reply.cost : reply
    }
    expect(cost({ cost: 0.0011 })).toBe(1100)
    expect(cost({ cost: 0.00000001 })).toBe(1)
    expect(cost({ cost: 0 })).toBe(0)
    expect(cost({ cost: 0.00001, is_byok: true, cost_details: { upstream_inference_cost: 0.002 } })).toBe(2010)
    expect(cost({ cost: 0.00001, is_byok: false, cost_details: { upstream_inference_cost: 0.002 } })).toBe(10)
    expect(cost({ cost_in_usd_ticks: 37_756_000 })).toBe(3776)
    expect(cost({ cost: -1 })).toBeUndefined()
    expect(cost({ cost: 1e300 })).toBeUndefined()
    expect(cost({ cost: 'much' })).toBeUndefined()
  })
})
