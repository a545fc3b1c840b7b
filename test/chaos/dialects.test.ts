// The three dialects as the providers publish them: the order of their events, and what the AI SDK's own readers make of them.
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import type { Chaos, ChaosModelReply, Dialect } from '../../src/testing/index.ts'
import { chaosFor, DIALECTS, json, PATHS, post, split, streamOf, type WireEvent } from './wire.ts'

const reply: ChaosModelReply = {
  reasoning: 'I think a bit.',
  text: 'Hällo 🌍, all of you.',
  calls: [
    { tool: 'look', args: { at: 'é', deep: [1] } },
    { tool: 'wait', args: {} },
  ],
  usage: { inputTokens: 120, outputTokens: 34, cachedTokens: 100, reasoningTokens: 5 },
  deltas: 3,
}

function typesOf(events: readonly WireEvent[]): readonly string[] {
  return events.map(({ data }) => (JSON.parse(data) as { type: string }).type)
}

/** How often each comes in a row does not matter here. */
function runsOf(values: readonly string[]): readonly string[] {
  return values.filter((value, at) => value !== values[at - 1])
}

describe('the streams', () => {
  it('B-CHAOS-2: Messages begins and ends its message and each block of it, and signs its thinking', async () => {
    const events = await streamOf(await chaosFor([reply]), 'messages')
    expect(events.every(({ event, data }) => (JSON.parse(data) as { type: string }).type === event)).toBe(true)
    const block = ['content_block_start', 'content_block_delta', 'content_block_stop']
    expect(runsOf(typesOf(events).filter((type) => type !== 'ping'))).toEqual([
      'message_start',
      ...block,
      ...block,
      ...block,
      ...block,
      'message_delta',
      'message_stop',
    ])
    const deltas = events.flatMap(({ data }) => {
      const { type, delta } = JSON.parse(data) as { type: string; delta?: { type: string } }
      return type === 'content_block_delta' && delta ? [delta.type] : []
    })
    expect(runsOf(deltas)).toEqual(['thinking_delta', 'signature_delta', 'text_delta', 'input_json_delta'])
  })

  it('B-CHAOS-2: Responses counts its events, and adds and finishes every item and part', async () => {
    const events = await streamOf(await chaosFor([reply]), 'responses')
    const numbers = events.map(({ data }) => (JSON.parse(data) as { sequence_number: number }).sequence_number)
    expect(numbers).toEqual([...events.keys()])
    const args = ['response.function_call_arguments.delta', 'response.function_call_arguments.done']
    const call = ['response.output_item.added', ...args, 'response.output_item.done']
    expect(events.every(({ event, data }) => (JSON.parse(data) as { type: string }).type === event)).toBe(true)
    const expected =
      'response.created response.in_progress response.output_item.added response.reasoning_summary_part.added ' +
      'response.reasoning_summary_text.delta response.reasoning_summary_text.done ' +
      'response.reasoning_summary_part.done response.output_item.done ' +
      'response.output_item.added response.content_part.added response.output_text.delta ' +
      'response.output_text.done response.content_part.done response.output_item.done'
    expect(runsOf(typesOf(events))).toEqual([...expected.split(' '), ...call, ...call, 'response.completed'])
  })

  it('B-CHAOS-2: Chat sends chunks of one id, the finish, the usage if it was asked for, and [DONE]', async () => {
    const chaos = await chaosFor([reply, reply])
    const events = await streamOf(chaos, 'chat', { stream_options: { include_usage: true } })
    expect(events.at(-1)?.data).toBe('[DONE]')
    type Chunk = { id: string; object: string; choices: { finish_reason: string | null }[]; usage: unknown }
    const chunks = events.slice(0, -1).map(({ data }) => JSON.parse(data) as Chunk)
    expect(new Set(chunks.map(({ id, object }) => `${id} ${object}`)).size).toBe(1)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 120, completion_tokens: 34 } })
    expect(chunks.at(-2)).toMatchObject({ choices: [{ delta: {}, finish_reason: 'tool_calls' }], usage: null })
    expect(chunks.slice(0, -2).every(({ choices }) => choices[0]?.finish_reason === null)).toBe(true)
    const uncounted = await streamOf(chaos, 'chat')
    expect(uncounted.some(({ data }) => data.includes('"usage"'))).toBe(false)
  })

  it('B-CHAOS-2: signed reasoning in Chat comes as reasoning_details, redacted thinking in Messages as its data', async () => {
    const signed = { reasoning: { text: 'hm', signature: 'sig' }, text: 'x' }
    const hidden = { reasoning: { text: '', signature: 'data', redacted: true as const }, text: 'x' }
    const chaos = await chaosFor([signed, hidden])
    const chunks = (await streamOf(chaos, 'chat')).map(({ data }) => data).join('\n')
    expect(chunks).toContain('"type":"reasoning.text","text":"","signature":"sig"')
    const events = (await streamOf(chaos, 'messages')).map(({ data }) => data).join('\n')
    expect(events).toContain('"content_block":{"type":"redacted_thinking","data":"data"}')
  })

  it.each([
    ['messages', 'max_tokens', 'refusal'],
    ['responses', 'max_output_tokens', 'response.refusal.delta'],
    ['chat', '"finish_reason":"length"', '"refusal":"no"'],
  ] as const)('B-CHAOS-2: %s ends for length and with a refusal in its own words', async (dialect, length, refusal) => {
    const chaos = await chaosFor([
      { text: 'so', finish: 'length' },
      { text: 'no', finish: 'refusal' },
    ])
    expect((await streamOf(chaos, dialect)).map(({ data }) => data).join('\n')).toContain(length)
    expect((await streamOf(chaos, dialect)).map(({ data }) => data).join('\n')).toContain(refusal)
  })
})

describe('the routes', () => {
  it.each(DIALECTS)('B-CHAOS-1: %s is answered with and without /v1, streamed or whole', async (dialect) => {
    const chaos = await chaosFor(['one', 'two', 'three'])
    const whole = await post(chaos, dialect)
    expect(whole.headers.get('content-type')).toBe('application/json')
    expect(JSON.stringify(await json(whole))).toContain('one')
    const streamed = await post(chaos, dialect, { stream: true })
    expect(streamed.headers.get('content-type')).toContain('text/event-stream')
    expect(split(await streamed.text()).length).toBeGreaterThan(2)
    const short = await fetch(chaos.url + PATHS[dialect].replace('/v1', ''), { method: 'POST', body: '{}' })
    expect(await short.text()).toContain('three')
  })

  it('B-CHAOS-1: another path, another method and a body that is no JSON are refused and take no reply', async () => {
    const chaos = await chaosFor(['only'])
    expect((await fetch(`${chaos.url}/v1/embeddings`, { method: 'POST', body: '{}' })).status).toBe(404)
    expect((await fetch(`${chaos.url}/v1/messages`)).status).toBe(404)
    const broken = await fetch(`${chaos.url}/v1/messages`, { method: 'POST', body: '{"a":' })
    expect(broken.status).toBe(400)
    expect(await broken.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    expect(await (await post(chaos, 'messages')).text()).toContain('only')
    expect(chaos.requests.map(({ body }) => body !== null)).toEqual([false, true])
  })
})

/** What the AI SDK read, streamed or whole. */
type Read = { text: string; reasoning: string; calls: (readonly [string, unknown])[]; finish: string; usage: unknown }

const READERS: Readonly<Record<Dialect, (chaos: Chaos) => LanguageModelV3>> = {
  messages: ({ url }) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'k' })('claude-sonnet-4-5'),
  responses: ({ url }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }).responses('gpt-5'),
  chat: ({ url }) => createOpenAICompatible({ name: 'chaos', baseURL: `${url}/v1`, includeUsage: true })('some-model'),
}

const question: LanguageModelV3CallOptions = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
  tools: ['look', 'wait'].map((name) => ({ type: 'function', name, inputSchema: { type: 'object', properties: {} } })),
}

async function readStream(model: LanguageModelV3): Promise<Read> {
  const { stream } = await model.doStream(question)
  const read: Read = { text: '', reasoning: '', calls: [], finish: '', usage: null }
  for await (const part of stream) {
    if (part.type === 'text-delta') read.text += part.delta
    if (part.type === 'reasoning-delta') read.reasoning += part.delta
    if (part.type === 'tool-call') read.calls.push([part.toolName, JSON.parse(part.input)])
    if (part.type === 'error') throw new Error('the reader saw an error', { cause: part.error })
    if (part.type === 'finish') {
      read.finish = part.finishReason.unified
      read.usage = [part.usage.inputTokens.total, part.usage.inputTokens.cacheRead, part.usage.outputTokens.total]
    }
  }
  return read
}

async function readWhole(model: LanguageModelV3): Promise<Read> {
  const { content, finishReason, usage } = await model.doGenerate(question)
  const read: Read = { text: '', reasoning: '', calls: [], finish: finishReason.unified, usage: null }
  for (const part of content) {
    if (part.type === 'text') read.text += part.text
    if (part.type === 'reasoning') read.reasoning += part.text
    if (part.type === 'tool-call') read.calls.push([part.toolName, JSON.parse(part.input)])
  }
  return { ...read, usage: [usage.inputTokens.total, usage.inputTokens.cacheRead, usage.outputTokens.total] }
}

describe('the AI SDK', () => {
  const expected: Read = {
    text: 'Hällo 🌍, all of you.',
    reasoning: 'I think a bit.',
    calls: [
      ['look', { at: 'é', deep: [1] }],
      ['wait', {}],
    ],
    finish: 'tool-calls',
    usage: [120, 100, 34],
  }

  it.each(DIALECTS)('B-CHAOS-3: reads a stream of %s as the script has it', async (dialect) => {
    const chaos = await chaosFor([reply, { text: 'a', finish: 'length' }], { strict: true })
    const model = READERS[dialect](chaos)
    expect(await readStream(model)).toEqual(expected)
    expect(await readStream(model)).toMatchObject({ text: 'a', calls: [], finish: 'length' })
  })

  it.each(DIALECTS)('B-CHAOS-3: reads a whole answer of %s as the script has it', async (dialect) => {
    const chaos = await chaosFor([reply], { strict: true })
    expect(await readWhole(READERS[dialect](chaos))).toEqual(expected)
  })

  it.each(DIALECTS)('B-CHAOS-3: reads the troubles of %s, and knows which of them to try again', async (dialect) => {
    const chaos = await chaosFor([{ status: 'overloaded' }, { status: 'overflow' }, { status: 'rate_limited' }])
    const model = READERS[dialect](chaos)
    for (const isRetryable of [true, false, true]) {
      await expect(model.doStream(question)).rejects.toMatchObject({ name: 'AI_APICallError', isRetryable })
    }
  })
})
