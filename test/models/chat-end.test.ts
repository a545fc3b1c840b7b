// Chat Completions: how a stream ends, well or badly, and answers that come whole.
import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { callPiece, delta, hear, play, replyOf, send, target } from './chat-heard.ts'
import { recording } from './sse.ts'

describe('Chat: how a stream ends', () => {
  it('B-CHAT-11: a reason to stop is an end without [DONE], and [DONE] is one without a reason', () => {
    expect(play('no-done').reply).toMatchObject({
      parts: [
        { type: 'reasoning', text: 'Easy.' },
        { type: 'text', text: 'Six.' },
      ],
      finish: 'stop',
    })
    expect(replyOf(delta({ content: 'x' }), '[DONE]')).toMatchObject({ type: 'reply', finish: 'stop' })
    expect(replyOf(callPiece(0, 'a', 'now', ''), ' [DONE]')).toMatchObject({ type: 'reply', finish: 'calls' })
    expect(play('empty').reply).toEqual({
      type: 'reply',
      parts: [],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 9, outputTokens: 0 },
    })
  })

  it('B-CHAT-11: without either there is no reply, and no call of it runs', () => {
    expect(play('cut').reply).toEqual({
      type: 'failure',
      class: 'network',
      message: expect.stringContaining('ended') as string,
      retryable: true,
      partial: 'I will write',
    })
    expect(replyOf(callPiece(0, 'a', 'write', '{"path":'), '[DONE]')).toMatchObject({
      type: 'failure',
      class: 'network',
    })
    expect(hear([]).reply).toMatchObject({ type: 'failure', class: 'network' })
  })

  it('B-CHAT-11: every recording cut before its end is a failure, at every event', () => {
    for (const file of readdirSync(new URL('../recordings/chat', import.meta.url))) {
      const events = recording(`chat/${file.replace('.sse', '')}`)
      const end = events.findIndex(({ data }) => data === '[DONE]' || /"finish_reason":"[a-z]/.test(data))
      for (let at = 0; at < end; at++) expect(hear(events.slice(0, at)).reply.type).toBe('failure')
    }
  })

  it("B-CHAT-12: an error inside a stream is a failure of the host's own class, with the text so far", () => {
    expect(play('error-mid-stream').reply).toEqual({
      type: 'failure',
      class: 'server',
      message: 'server_error: Provider disconnected unexpectedly',
      retryable: true,
      partial: 'The first',
    })
    expect(play('error-rate-limit').reply).toMatchObject({ class: 'rate_limit', retryable: true })
    expect(replyOf({ error: { code: 402, message: 'Insufficient credits' } })).toMatchObject({ class: 'auth' })
    expect(replyOf({ error: { code: '400', type: 'BadRequestError', message: 'no' } })).toMatchObject({
      class: 'bad_request',
    })
    expect(replyOf({ error: { message: "This model's maximum context length is 4096 tokens" } })).toMatchObject({
      class: 'overflow',
    })
  })

  it('B-CHAT-12: an error may be a sentence, an event or the chunk itself', () => {
    expect(replyOf({ error: 'the runner has terminated' })).toMatchObject({
      class: 'server',
      message: 'the runner has terminated',
    })
    expect(
      replyOf({ object: 'error', message: 'engine is dead', type: 'InternalServerError', code: 500 }),
    ).toMatchObject({
      class: 'server',
      retryable: true,
    })
    expect(hear([{ event: 'error', data: '{"message":"slow down","code":429}' }]).reply).toMatchObject({
      class: 'rate_limit',
    })
    expect(replyOf({ error: {} })).toMatchObject({ class: 'server', retryable: true })
    expect(replyOf(delta({ content: 'x' }, 'insufficient_system_resource'))).toMatchObject({
      class: 'server',
      message: expect.stringContaining('insufficient_system_resource') as string,
      partial: 'x',
    })
  })

  it('B-CHAT-13: what is not understood is ignored, and of two reasons to stop the graver one counts', () => {
    expect(play('oddities')).toEqual({
      reply: { type: 'reply', parts: [{ type: 'text', text: 'Cut' }], calls: [], finish: 'length', usage: null },
      deltas: [{ kind: 'text', part: 0, text: 'Cut' }],
    })
    expect(replyOf(callPiece(0, 'a', 'now', '{}'), delta({}, 'tool_calls'), delta({}, 'stop'))).toMatchObject({
      finish: 'calls',
    })
  })

  it('B-CHAT-13: characters that were split between chunks are whole again', () => {
    expect(play('unicode').reply).toMatchObject({ parts: [{ type: 'text', text: '港 e\u0301 🚢 \u2028end' }] })
  })

  it('B-CHAT-14: an event that cannot be read makes the reply a failure, never half a reply', () => {
    const damaged = replyOf(delta({ content: 'ab' }), '{"choices":[{"delta":{"con', delta({}, 'stop'), '[DONE]')
    expect(damaged).toMatchObject({ type: 'failure', class: 'network', retryable: true, partial: 'ab' })
    const many = Array.from({ length: 300 }, (_, i) => callPiece(i, `c${i}`, 'now', '{}'))
    expect(replyOf(...many, delta({}, 'tool_calls'))).toMatchObject({ type: 'failure', class: 'network' })
  })

  it('B-CHAT-14: a step never throws and never changes the state it was given', () => {
    const shapes: readonly unknown[] = [null, 0, '', 'x', [], {}, [null], { a: 1 }, true]
    const fields = ['content', 'refusal', 'tool_calls', 'function_call', 'reasoning', 'reasoning_details', 'role']
    const strange = shapes.flatMap((shape) => [
      ...fields.map((field) => delta({ [field]: shape })),
      { choices: shape, usage: shape, error: null, x_groq: shape },
      { choices: [shape] },
      { choices: [{ delta: shape, message: shape, finish_reason: shape, index: shape }] },
      delta({ tool_calls: [{ index: shape, id: shape, function: shape, extra_content: shape }] }),
      delta({ tool_calls: [{ index: 0, function: { name: shape, arguments: shape } }] }),
      delta({ reasoning_details: [{ type: shape, text: shape, index: shape, signature: shape }] }),
      delta({
        content: [
          { type: 'text', text: shape },
          { type: 'thinking', thinking: shape },
        ],
      }),
    ])
    const frozen = (value: unknown): unknown => {
      if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(frozen)
      return value
    }
    let state = chatProtocol.begin(target)
    for (const event of [...recording('chat/openrouter-signed').slice(0, 6), ...send(...strange)]) {
      frozen(state)
      state = chatProtocol.step(state, event)[0]
    }
    expect(chatProtocol.finish(state).type).toBe('failure')
  })
})

describe('Chat: a whole answer', () => {
  it('B-CHAT-15: one JSON body says the same as a stream', () => {
    const message = {
      role: 'assistant',
      content: 'Looking.',
      reasoning: 'Hm.',
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'now', arguments: '{}' } },
        { id: 'b', type: 'function', function: { name: 'now', arguments: '{}' } },
      ],
    }
    const usage = { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 }
    const body = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage }
    expect(chatProtocol.whole(JSON.stringify(body), target)).toEqual({
      type: 'reply',
      parts: [
        { type: 'reasoning', text: 'Hm.', opaque: { by: target.endpoint, model: target.model, at: 0, data: null } },
        { type: 'text', text: 'Looking.' },
      ],
      calls: [
        { id: 'a', tool: 'now', args: '{}' },
        { id: 'b', tool: 'now', args: '{}' },
      ],
      finish: 'calls',
      usage: { inputTokens: 4, outputTokens: 3 },
    })
  })

  it('B-CHAT-15: a body that is an error, empty or no JSON is a failure', () => {
    expect(chatProtocol.whole('{"error":{"message":"no such model","code":404}}', target)).toMatchObject({
      class: 'bad_request',
    })
    expect(chatProtocol.whole('{"choices":[]}', target)).toMatchObject({ type: 'failure', class: 'network' })
    expect(chatProtocol.whole('<html>502</html>', target)).toMatchObject({ type: 'failure', class: 'network' })
    expect(chatProtocol.whole('[DONE]', target)).toMatchObject({ type: 'failure' })
  })
})
