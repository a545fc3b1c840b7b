// A model of the AI SDK that fails: one failure of the right class, never a throw, and no call from half an answer.
import { type LanguageModelV3, type LanguageModelV3StreamPart, LoadAPIKeyError } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'
import type { LanguageModelV4StreamPart } from 'ai-sdk-provider-v4'
import { describe, expect, it } from 'vitest'
import type { Delta, ModelFailure, Reply } from '../../src/index.ts'
import { type AiSdkModel, type AiSdkSettings, fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import {
  bytesOf,
  client,
  type Dialect,
  finish,
  mock,
  mockV4,
  modelOf,
  streamed,
  type Version,
  VERSIONS,
} from './aisdk-stage.ts'
import { callContext, request } from './context.ts'
import { FakeClock, settled } from './fake-clock.ts'

const ask = (model: AiSdkModel): Promise<Reply | ModelFailure> =>
  fromAiSdk(model).call(request(), callContext().context)

type Refusal = { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> }

function refusing(version: Version, dialect: Dialect, { status, body, headers = {} }: Refusal) {
  return modelOf(dialect, client(() => new Response(body, { status, headers })).fetch, version)
}

const throwing = (error: unknown): LanguageModelV3 =>
  new MockLanguageModelV3({
    doStream: async () => {
      throw error
    },
  })

describe.each(VERSIONS)('a failing model of the AI SDK, specification %s', (version) => {
  it.each([
    ['messages', 529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 'server', true],
    [
      'messages',
      401,
      '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
      'auth',
      false,
    ],
    [
      'messages',
      400,
      '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9"}}',
      'overflow',
      false,
    ],
    [
      'responses',
      400,
      '{"error":{"message":"Bad schema","type":"invalid_request_error","code":null}}',
      'bad_request',
      false,
    ],
    [
      'responses',
      429,
      '{"error":{"message":"Slow down","type":"tokens","code":"rate_limit_exceeded"}}',
      'rate_limit',
      true,
    ],
    ['chat', 503, 'upstream connect error', 'server', true],
    ['chat', 404, '{"error":{"message":"no such model"}}', 'bad_request', false],
  ] as const)('B-AISDK-12: %s answers %i %s: that is %s', async (dialect, status, body, expected, retryable) => {
    const answer = await ask(refusing(version, dialect, { status, body }))
    expect(answer).toMatchObject({ type: 'failure', class: expected, retryable })
    expect(answer).toMatchObject({ message: expect.stringContaining(`HTTP ${status}`) as string })
  })

  it('B-AISDK-13: how long to wait is kept as the provider says it', async () => {
    const body = '{"error":{"message":"Slow down"}}'
    expect(await ask(refusing(version, 'chat', { status: 429, body, headers: { 'retry-after': '7' } }))).toMatchObject({
      retryAfterMs: 7_000,
    })
    expect(
      await ask(refusing(version, 'chat', { status: 429, body, headers: { 'retry-after-ms': '70' } })),
    ).toMatchObject({ retryAfterMs: 70 })
    expect(
      await ask(refusing(version, 'chat', { status: 429, body, headers: { 'retry-after': '9999' } })),
    ).toMatchObject({ retryAfterMs: 9_999_000 })
  })

  it('B-AISDK-14: whatever is thrown is one failure with a message', async () => {
    const unreachable = modelOf(
      'chat',
      client(() => Promise.reject(new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }))).fetch,
      version,
    )
    expect(await ask(unreachable)).toMatchObject({ class: 'network', retryable: true })
    const keyless = throwing(new LoadAPIKeyError({ message: 'The key is missing.' }))
    expect(await ask(keyless)).toMatchObject({ class: 'auth', retryable: false, message: 'The key is missing.' })
    for (const thrown of [new Error(''), 'words', null, undefined, 7, { message: 'an object' }, Object.create(null)]) {
      const answer = await ask(throwing(thrown))
      expect(answer).toMatchObject({ type: 'failure', message: expect.stringMatching(/./) as string })
    }
  })

  it('B-AISDK-15: an error in the stream is named by what the provider says, and keeps what was said before it', async () => {
    const { fetch } = client(() => streamed(bytesOf('messages/overloaded')))
    expect(await ask(modelOf('messages', fetch, version))).toMatchObject({ class: 'server' })
    const text: readonly LanguageModelV3StreamPart[] = [
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'Half' },
    ]
    const wrong: readonly LanguageModelV3StreamPart[] = [
      { type: 'error', error: { type: 'rate_limit_error', message: 'Slow' } },
    ]
    expect(await ask(mock([...wrong, finish('error')]))).toMatchObject({ class: 'rate_limit', retryable: true })
    expect(await ask(mock([...text, ...wrong, finish('stop')]))).toMatchObject({
      class: 'rate_limit',
      retryable: true,
      partial: 'Half',
    })
    expect(await ask(mock([{ type: 'error', error: 'odd' }]))).toMatchObject({ class: 'server', message: 'odd' })
    const broken = new ReadableStream<LanguageModelV3StreamPart>({
      pull(controller) {
        controller.error(new TypeError('terminated'))
      },
    })
    expect(await ask(new MockLanguageModelV3({ doStream: { stream: broken } }))).toMatchObject({ class: 'network' })
  })

  it('B-AISDK-16: without the end that the provider says there is no reply, and no call without its own end', async () => {
    const call: readonly LanguageModelV3StreamPart[] = [
      { type: 'tool-input-start', id: 'a', toolName: 'delete_all' },
      { type: 'tool-input-delta', id: 'a', delta: '' },
    ]
    expect(await ask(mock([...call]))).toMatchObject({ class: 'network', retryable: true, partial: '' })
    expect(await ask(mock([...call, finish('stop')]))).toMatchObject({ class: 'network' })
    expect(
      await ask(
        mock([
          { type: 'text-start', id: '0' },
          { ...finish('other'), finishReason: { unified: 'other', raw: undefined } },
        ]),
      ),
    ).toMatchObject({
      class: 'network',
      retryable: true,
    })
    expect(await ask(mock([...call, finish('length')]))).toMatchObject({ type: 'reply', calls: [], finish: 'length' })
  })

  it.each([
    ['messages', 'parallel'],
    ['chat', 'parallel-tools'],
    ['responses', 'parallel-tools'],
  ] as const)('B-AISDK-17: %s/%s cut anywhere gives all of its calls or none', async (dialect, name) => {
    const bytes = bytesOf(`${dialect}/${name}`)
    const whole = (await ask(modelOf(dialect, client(() => streamed(bytes)).fetch, version))) as Reply
    expect(whole.calls.length).toBeGreaterThan(1)
    for (let end = 0; end < bytes.length; end += 29) {
      const answer = await ask(modelOf(dialect, client(() => streamed(bytes.subarray(0, end))).fetch, version))
      if (answer.type === 'reply') expect(answer.calls).toEqual(whole.calls)
      else expect(answer.message).not.toBe('')
    }
  })

  it('B-AISDK-18: an abort ends the call at once, also with a client that takes no notice, and reaches the client', async () => {
    const { fetch, sent } = client(() => new Promise<Response>(() => {}))
    const heard = callContext()
    const answer = fromAiSdk(modelOf('messages', fetch, version)).call(request(), heard.context)
    await new Promise(setImmediate)
    heard.stop()
    expect(await answer).toMatchObject({
      type: 'failure',
      class: 'other',
      message: expect.stringContaining('stopped') as string,
    })
    expect(sent[0]?.signal?.aborted).toBe(true)
    const late = callContext()
    late.stop()
    expect(await fromAiSdk(modelOf('messages', fetch, version)).call(request(), late.context)).toMatchObject({
      type: 'failure',
    })
    expect(sent).toHaveLength(1)
  })
})

describe('the deadlines of a model of the AI SDK', () => {
  type Push = (part: LanguageModelV4StreamPart) => Promise<void>

  /** A model whose stream is in the hands of the test, and a clock that only the test moves. */
  async function played(settings: AiSdkSettings = {}) {
    const clock = new FakeClock()
    const deltas: string[] = []
    let control: ReadableStreamDefaultController<LanguageModelV4StreamPart> | null = null
    let cancelled = false
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (controller) => {
        control = controller
      },
      cancel: () => {
        cancelled = true
      },
    })
    const { model, asked } = mockV4(stream)
    let answer: Reply | ModelFailure | null = null
    const context = {
      signal: new AbortController().signal,
      clock,
      emit: ({ text }: Delta) => deltas.push(text),
      sleep: () => Promise.resolve(),
    }
    void fromAiSdk(model, settings)
      .call(request(), context)
      .then((told) => {
        answer = told
      })
    await settled()
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms)
      await settled()
    }
    const push: Push = async (part) => {
      control?.enqueue(part)
      await settled()
    }
    return {
      clock,
      deltas,
      asked,
      pass,
      push,
      answer: () => answer,
      cancelled: () => cancelled,
      end: () => control?.close(),
    }
  }

  const said = (delta: string) => ({ type: 'text-delta', id: '0', delta }) as const

  it('B-AISDK-19: it has the deadlines of every other model, and they can be set', async () => {
    const silent = fromAiSdk(modelOf('messages', client(() => new Promise<Response>(() => {})).fetch))
    const clock = new FakeClock()
    let answer: Reply | ModelFailure | null = null
    void silent.call(request(), { ...callContext().context, clock }).then((told) => {
      answer = told
    })
    await settled()
    clock.advance(59_999)
    await settled()
    expect(answer).toBeNull()
    clock.advance(1)
    await settled()
    const message = expect.stringContaining('60000 ms') as string
    expect(answer).toMatchObject({ class: 'timeout', retryable: true, message })
    expect(clock.waiting).toBe(0)
    const idle = await played({ deadlines: { idleMs: 500 } })
    await idle.push(said('Half'))
    await idle.pass(499)
    await idle.push(said(' of'))
    await idle.pass(499)
    expect(idle.answer()).toBeNull()
    await idle.pass(1)
    expect(idle.answer()).toMatchObject({
      class: 'timeout',
      message: expect.stringContaining('silent for 500 ms') as string,
      partial: 'Half of',
    })
    expect(idle.asked[0]?.abortSignal?.aborted).toBe(true)
    expect(idle.clock.waiting).toBe(0)
    expect(() => fromAiSdk(mock([]), { deadlines: { idleMs: 'soon' } } as unknown as AiSdkSettings)).toThrow('idleMs')
  })

  it('B-AISDK-19: pings keep the connection and not the call', async () => {
    const { push, pass, answer } = await played()
    await push(said('Half'))
    for (let at = 0; at < 17; at++) {
      await pass(10_000)
      await push({ type: 'ping' })
    }
    expect(answer()).toBeNull()
    await pass(10_000)
    expect(answer()).toMatchObject({
      class: 'timeout',
      message: expect.stringContaining('said nothing for 180000 ms') as string,
    })
  })

  it("B-AISDK-20: the provider's own end ends the call, and a stream that stays open is left", async () => {
    const open = await played()
    await open.push(said('Done.'))
    await open.push(finish('stop'))
    expect(open.answer()).toMatchObject({ type: 'reply', parts: [{ text: 'Done.' }] })
    expect(open.asked[0]?.abortSignal?.aborted).toBe(false)
    await open.pass(1_000)
    expect(open.asked[0]?.abortSignal?.aborted).toBe(true)
    expect(open.clock.waiting).toBe(0)
    const closed = await played()
    await closed.push(finish('stop'))
    closed.end()
    await settled()
    expect(closed.clock.waiting).toBe(0)
    expect(closed.asked[0]?.abortSignal?.aborted).toBe(false)
  })
})
