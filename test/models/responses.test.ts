// The Responses protocol, answers: recordings in test/recordings/responses, written by hand from the published formats, become
// exactly one reply or failure. What requests look like is in responses-encode.test.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Delta, ModelFailure, Reply } from '../../src/ports/model.ts'
import { parseEvents, UNFRAMED } from '../../src/models/http/framing.ts'
import type { ModelTarget, WireEvent } from '../../src/models/protocols/protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'

const folder = new URL('../recordings/responses/', import.meta.url)
const target: ModelTarget = { endpoint: 'openai', model: 'gpt-5.2', settings: {}, quirks: {} }
const chaining: ModelTarget = { ...target, settings: { chain: true } }

function recorded(name: string): readonly WireEvent[] {
  return parseEvents(UNFRAMED, readFileSync(new URL(`${name}.sse`, folder)))[1]
}

type Played = { readonly answer: Reply | ModelFailure; readonly deltas: readonly Delta[] }

function play(events: readonly WireEvent[], to = target): Played {
  const deltas: Delta[] = []
  let state = responsesProtocol.begin(to)
  for (const event of events) {
    const [next, more] = responsesProtocol.step(state, event)
    state = next
    deltas.push(...more)
  }
  return { answer: responsesProtocol.finish(state), deltas }
}

function replyTo(name: string, to = target): Reply {
  const { answer } = play(recorded(name), to)
  expect(answer.type).toBe('reply')
  return answer as Reply
}

/** What a viewer has seen of each part, in the order the parts began. */
function seen(deltas: readonly Delta[]): readonly string[] {
  const parts = new Map<number, string>()
  for (const { kind, part, text } of deltas) parts.set(part, (parts.get(part) ?? `${kind}: `) + text)
  return [...parts].sort(([a], [b]) => a - b).map(([, text]) => text)
}

function item(type: string, more: object): WireEvent {
  return { event: '', data: JSON.stringify({ type: `response.${type}`, ...more }) }
}

const names = readdirSync(folder).map((name) => name.replace('.sse', ''))

describe('answers of the Responses protocol', () => {
  it('B-RESPONSES-1: a text is one part, its deltas add up to it, and the tokens are counted', () => {
    const { answer, deltas } = play(recorded('text'))
    expect(answer).toEqual({
      type: 'reply',
      parts: [{ type: 'text', text: 'The tide turns at nine.' }],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 412, outputTokens: 7, cachedTokens: 384, cacheWriteTokens: 0, reasoningTokens: 0 },
    })
    expect(deltas.map(({ text }) => text)).toEqual(['The tide', ' turns at', ' nine.'])
    expect(seen(deltas)).toEqual(['text: The tide turns at nine.'])
    expect(replyTo('unicode').parts).toEqual([{ type: 'text', text: 'naïve 🚀 日本語 e\u0301 👩‍👩‍👧' }])
  })

  it('B-RESPONSES-2: reasoning is one part with its sections apart, and its item is kept as its last event gave it', () => {
    const { answer, deltas } = play(recorded('reasoning-summary'))
    const text = '**Counting boats**\n\nThree in the harbour.\n\n**Answering**'
    const data = {
      id: 'rs_sum02',
      type: 'reasoning',
      encrypted_content: 'gAAAAABpV2h5IGRvIHlvdSByZWFkIHRoaXM_wz==',
      summary: [
        { type: 'summary_text', text: '**Counting boats**\n\nThree in the harbour.' },
        { type: 'summary_text', text: '**Answering**' },
      ],
    }
    expect(answer).toMatchObject({
      parts: [
        { type: 'reasoning', text, opaque: { by: 'openai', model: 'gpt-5.2', at: 0, data } },
        { type: 'text', text: 'Three.' },
      ],
      usage: { inputTokens: 80, outputTokens: 150, reasoningTokens: 128 },
    })
    expect(seen(deltas)).toEqual([`reasoning: ${text}`, 'text: Three.'])
  })

  it('B-RESPONSES-3: calls keep their ids, their order and the raw text of their arguments', () => {
    expect(replyTo('one-tool-encrypted')).toMatchObject({
      parts: [{ type: 'reasoning', text: '', opaque: { at: 0, data: { id: 'rs_one03' } } }],
      calls: [{ id: 'call_u8Qm2Lr0', tool: 'read_file', args: '{"path":"docs/a \\"b\\".md"}' }],
      finish: 'calls',
      usage: { inputTokens: 1500, cachedTokens: 1024, cacheWriteTokens: 256 },
    })
    const { answer, deltas } = play(recorded('parallel-tools'))
    expect(answer).toMatchObject({
      parts: [{ type: 'text', text: 'Both at once.' }],
      calls: [
        { id: 'call_aaaa1111', args: '{"city":"Kyiv"}' },
        { id: 'call_bbbb2222', args: '{"city":"Oslo"}' },
      ],
    })
    expect(seen(deltas).slice(1)).toEqual(['arguments: {"city":"Kyiv"}', 'arguments: {"city":"Oslo"}'])
    expect(replyTo('no-args').calls.map(({ tool, args }) => [tool, args])).toEqual([
      ['now', '{}'],
      ['whoami', ''],
    ])
  })

  it('B-RESPONSES-4: where a message stood among the calls, what it was for and which response it was are kept with it', () => {
    const { parts, calls } = replyTo('phases', chaining)
    expect(calls.map(({ tool }) => tool)).toEqual(['log', 'disk'])
    const marks = parts.map((part) =>
      part.type === 'reasoning' ? part.opaque : part.type === 'text' ? part.text : null,
    )
    expect(marks).toMatchObject([
      { at: 0, data: { type: 'reasoning', id: 'rs_pha06a' } },
      { at: 0, data: { phase: 'commentary' } },
      'Looking at the log first.',
      { at: 1, data: { type: 'reasoning', id: 'rs_pha06b' } },
      { at: 2, data: { phase: null } },
      'And the disk.',
      { at: 2, data: { response: 'resp_pha06' } },
    ])
    expect(JSON.stringify(replyTo('phases').parts)).not.toContain('resp_pha06')
  })

  it('B-RESPONSES-5: a refusal and a filtered answer end as refusals and call nothing', () => {
    expect(replyTo('refusal')).toMatchObject({ parts: [{ text: "I can't help with that." }], finish: 'refusal' })
    expect(replyTo('content-filter', chaining)).toMatchObject({
      parts: [{ type: 'text', text: 'First you' }],
      calls: [],
      finish: 'refusal',
    })
  })

  it('B-RESPONSES-6: an answer cut at its limit says so; cut arguments stay as they came, and a bare name is no call', () => {
    expect(replyTo('length')).toMatchObject({
      parts: [{ text: 'Once upon a time there was a' }],
      finish: 'length',
      usage: { outputTokens: 16 },
    })
    expect(replyTo('length-in-call', chaining)).toMatchObject({
      parts: [],
      calls: [{ id: 'call_lic10a', args: '{"path":"a.txt","content":"one two thr' }],
      finish: 'length',
    })
  })

  it('B-RESPONSES-7: an error of the provider in the middle is a failure of its class, with the text so far', () => {
    expect(play(recorded('failed')).answer).toEqual({
      type: 'failure',
      class: 'server',
      message: 'server_error: The model failed to generate a response.',
      retryable: true,
      partial: 'Half an ans',
    })
    expect(play(recorded('error')).answer).toMatchObject({ class: 'rate_limit', retryable: true })
    expect(play(recorded('error-nested')).answer).toMatchObject({ class: 'overflow', retryable: false })
    const bare = { event: '', data: '{"error":{"message":"out of memory"}}' }
    expect(play([bare]).answer).toMatchObject({ type: 'failure', message: 'out of memory' })
    expect(play([{ event: 'error', data: '{}' }]).answer).toMatchObject({ type: 'failure' })
    const cancelled = item('completed', { response: { id: 'r', status: 'cancelled', output: [] } })
    expect(play([cancelled]).answer).toMatchObject({ class: 'other' })
  })

  const SEARCHED = {
    id: 'ws_unk14',
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'tide tables' },
  }

  it('B-RESPONSES-8: comments and unknown items leave no trace, and a tool that ran at the provider is no call of ours', () => {
    expect(replyTo('unknown-events')).toEqual({
      type: 'reply',
      parts: [
        { type: 'provider', tool: 'web_search', opaque: { by: 'openai', model: 'gpt-5.2', at: 0, data: SEARCHED } },
        { type: 'text', text: 'High water at six.' },
        { type: 'source', url: 'https://example.org/tides', title: 'Tides' },
      ],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 300, outputTokens: 11, webSearches: 1 },
    })
  })

  it('B-RESPONSES-9: what a host leaves out of its events is taken from its last one, and streamed then', () => {
    const { answer, deltas } = play(recorded('local-sparse'))
    expect(answer).toMatchObject({
      parts: [
        { type: 'reasoning', text: 'User wants a prime.' },
        { type: 'text', text: 'The smallest is 2.' },
      ],
      calls: [{ id: 'call_loc17', tool: 'note', args: '{"n":2}' }],
      finish: 'calls',
    })
    expect((answer as Reply).parts[0]).toMatchObject({ opaque: { by: 'openai', data: null } })
    expect(seen(deltas)).toEqual(['reasoning: User wants a prime.', 'text: The smallest is 2.', 'arguments: {"n":2}'])
    const last = recorded('one-tool-encrypted').slice(-1)
    expect(play(last).answer).toEqual(replyTo('one-tool-encrypted'))
    expect(replyTo('empty')).toEqual({ type: 'reply', parts: [], calls: [], finish: 'stop', usage: null })
  })

  it('B-RESPONSES-10: a stream that breaks off anywhere is a failure with the text so far, never a reply', () => {
    const ends = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error'])
    for (const name of names) {
      const events = recorded(name)
      const end = events.findIndex(({ event, data }) => ends.has(event || (JSON.parse(data) as { type: string }).type))
      for (let length = 0; length <= end; length++) {
        const { answer, deltas } = play(events.slice(0, length))
        const partial = deltas.map(({ kind, text }) => (kind === 'text' ? text : '')).join('')
        expect(answer).toMatchObject({ type: 'failure', class: 'network', retryable: true })
        expect((answer as ModelFailure).partial ?? '').toBe(partial)
      }
    }
  })

  it('B-RESPONSES-11: a damaged stream never throws and never runs a call whose arguments are not whole', () => {
    const events = recorded('one-tool-encrypted')
    const broken = events.map((event, i) => (i === 4 ? { ...event, data: event.data.slice(0, -9) } : event))
    expect(play(broken).answer).toMatchObject({
      class: 'network',
      message: expect.stringContaining('damaged') as string,
    })
    const lost = [
      item('output_item.added', { output_index: 0, item: { type: 'function_call', call_id: 'c', name: 'rm' } }),
      item('function_call_arguments.delta', { output_index: 0, delta: '{"all":true}' }),
      item('completed', { response: { id: 'r', status: 'completed', output: [] } }),
    ]
    expect(play(lost).answer).toMatchObject({ type: 'failure', class: 'network' })
    const turned = [
      item('output_item.added', { output_index: 0, item: { type: 'message', id: 'a' } }),
      item('output_item.done', { output_index: 0, item: { type: 'function_call', call_id: 'c', name: 'rm' } }),
      item('completed', { response: { id: 'r', status: 'completed', output: [] } }),
    ]
    expect(play(turned).answer).toMatchObject({ type: 'failure', class: 'network' })
    const twice = events.map((event, i) => (i === 6 ? { ...event, data: event.data.replace('docs', 'dogs') } : event))
    expect(play(twice).answer).toMatchObject({ type: 'failure', class: 'network' })
    const spaced = events.map((event, i) =>
      i === 6 ? { ...event, data: event.data.replace('path\\":', 'path\\": ') } : event,
    )
    expect(play(spaced).answer.type).toBe('reply')
    const silent = { id: 'r', status: 'completed', output: [{ type: 'function_call', call_id: 'c', name: 'rm' }] }
    expect(play([item('completed', { response: silent })]).answer).toMatchObject({ type: 'failure', class: 'network' })
    const odd = ['null', '7', '"x"', '[]', '{}', '{"type":7}', '{"type":"response.completed"}', '[DONE]', '']
    const values = [null, 7, 'x', [], {}, [7], { type: 'message', content: [7, { text: 7 }] }, { type: 'toString' }]
    const kinds = ['output_item.added', 'output_item.done', 'output_text.delta', 'function_call_arguments.done']
    const strange = kinds.flatMap((kind) =>
      values.map((value) => item(kind, { item: value, delta: value, arguments: value, output_index: value })),
    )
    const all = [...odd.map((data) => ({ event: '', data })), ...strange]
    expect(play(all).answer).toMatchObject({ type: 'failure' })
    expect(play([...all, ...recorded('text')]).answer.type).toBe('reply')
  })

  it('B-RESPONSES-12: events that come twice, late or for nothing known change nothing', () => {
    const events = recorded('parallel-tools')
    const doubled = events.flatMap((event) => (event.event.endsWith('.delta') ? [event] : [event, event]))
    expect(play(doubled).answer).toEqual(replyTo('parallel-tools'))
    const late = item('function_call_arguments.delta', { output_index: 1, delta: 'x' })
    const lost = item('function_call_arguments.delta', { output_index: 9, delta: 'x' })
    const wrong = item('output_text.delta', { output_index: 1, delta: 'x' })
    expect(play([...events.slice(0, -1), late, lost, wrong, ...events.slice(-1)]).answer).toEqual(
      replyTo('parallel-tools'),
    )
    expect(play([...events, late, { event: 'error', data: '{"type":"error","message":"no"}' }]).answer.type).toBe(
      'reply',
    )
  })

  it('B-RESPONSES-13: a state that was stepped from stays as it was', () => {
    const events = recorded('phases')
    let state = responsesProtocol.begin(target)
    const before: { readonly state: typeof state; readonly told: string }[] = []
    for (const event of events) {
      before.push({ state, told: JSON.stringify([state, responsesProtocol.finish(state)]) })
      state = responsesProtocol.step(state, event)[0]
    }
    for (const { state: old, told } of before) expect(JSON.stringify([old, responsesProtocol.finish(old)])).toBe(told)
  })

  it('B-RESPONSES-14: tokens that cannot be true count as unknown, and a price the host tells is rounded up', () => {
    expect(replyTo('own-price')).toMatchObject({ cost: 141, usage: { inputTokens: 8 } })
    const usage = (value: unknown): Reply => {
      const response = { id: 'r', status: 'completed', output: [], usage: value }
      return play([item('completed', { response })]).answer as Reply
    }
    const good = { input_tokens: 3, output_tokens: 4 }
    expect(usage(good).usage).toEqual({ inputTokens: 3, outputTokens: 4 })
    expect(usage({ ...good, input_tokens: -1 }).usage).toBeNull()
    expect(usage({ ...good, output_tokens: '4' }).usage).toBeNull()
    expect(usage({ ...good, output_tokens_details: { reasoning_tokens: 1e300 } }).usage).toBeNull()
    expect(usage({ ...good, input_tokens_details: { cached_tokens: 0.5 } }).usage).toBeNull()
    expect(usage(null).usage).toBeNull()
    expect(usage({ ...good, cost: 0.00014 }).cost).toBe(140)
    expect(usage({ ...good, cost: 1e-9 }).cost).toBe(1)
    expect(usage({ ...good, cost: -1 })).not.toHaveProperty('cost')
  })

  it('B-RESPONSES-15: an answer in one JSON body means what its stream means', () => {
    for (const name of names) {
      const events = recorded(name)
      type Told = { readonly response?: { readonly output: readonly unknown[] } }
      const told = events.map(({ data }) => (data === '[DONE]' ? {} : JSON.parse(data)) as Told)
      const response = told.findLast((said) => said.response !== undefined)?.response
      if (!response || response.output.length === 0) continue
      expect(responsesProtocol.whole(JSON.stringify(response), chaining)).toEqual(play(events, chaining).answer)
    }
    const told =
      '{"error":{"code":"previous_response_not_found","message":"Previous response with id \'r\' not found."}}'
    expect(responsesProtocol.whole(told, target)).toMatchObject({
      class: 'bad_request',
      message: expect.stringContaining('previous_response_not_found') as string,
    })
    expect(responsesProtocol.whole('<html>', target)).toMatchObject({ class: 'network' })
    expect(responsesProtocol.whole('[]', target)).toMatchObject({ class: 'network' })
    expect(responsesProtocol.whole('{"status":"in_progress","output":[]}', target)).toMatchObject({ class: 'network' })
  })
})
