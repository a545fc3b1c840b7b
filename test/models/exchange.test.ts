// One request and what it came to: deadlines by a clock that only the test moves, clients that do not listen, and answers of
// every shape. What real sockets do is exchange-http.test.ts.
import { describe, expect, it } from 'vitest'
import type { ModelFailure, Reply } from '../../src/ports/model.ts'
import {
  ANSWER,
  answered,
  DEADLINES,
  END,
  KEY,
  OVERLOADED,
  PING,
  played,
  say,
  START,
  STREAMED,
} from './exchange-stage.ts'

const SAID = { type: 'reply', parts: [{ type: 'text', text: 'Hi.' }], finish: 'stop' }
const timeout = (message: string) => ({
  type: 'failure',
  class: 'timeout',
  message: expect.stringContaining(message) as string,
})

describe('deadlines', () => {
  it('B-EXCHANGE-1: without a first byte it ends at its deadline, and not before', async () => {
    const { pass, answer, clock } = await played()
    await pass(DEADLINES.firstByteMs - 1)
    expect(answer()).toBeNull()
    await pass(1)
    expect(answer()).toMatchObject({ ...timeout('No answer within 1000 ms.'), retryable: true })
    expect(clock.waiting).toBe(0)
  })

  it('B-EXCHANGE-2: a stream that falls silent ends at its deadline, and any byte starts that anew', async () => {
    const { sink, say: give, pass, answer } = await played()
    sink.head(200, STREAMED)
    await pass(DEADLINES.idleMs - 1)
    give(START)
    await pass(DEADLINES.idleMs - 1)
    give(':')
    await pass(DEADLINES.idleMs - 1)
    expect(answer()).toBeNull()
    await pass(1)
    expect(answer()).toMatchObject(timeout('The stream was silent for 2000 ms.'))
  })

  it('B-EXCHANGE-2: silence counts from the last byte, also where it is bounded more tightly than the first', async () => {
    const {
      sink,
      say: give,
      pass,
      answer,
    } = await played({ deadlines: { ...DEADLINES, firstByteMs: 60_000, idleMs: 50 } })
    await pass(40_000)
    sink.head(200, STREAMED)
    give(START)
    await pass(49)
    expect(answer()).toBeNull()
    await pass(1)
    expect(answer()).toMatchObject(timeout('silent for 50 ms'))
  })

  it.each([
    ['pings', PING],
    ['comments', ': still here\n\n'],
    ['half a line', 'x'],
  ])('B-EXCHANGE-3: %s keep the connection and not the call', async (_name, noise) => {
    const { sink, say: give, pass, answer } = await played()
    sink.head(200, STREAMED)
    give(START)
    for (let at = 0; at < 9; at++) {
      await pass(500)
      give(noise)
    }
    expect(answer()).toBeNull()
    await pass(500)
    expect(answer()).toMatchObject(timeout('The stream said nothing for 5000 ms.'))
  })

  it('B-EXCHANGE-3: an event that says something starts that anew, and an answer that comes slowly is waited for', async () => {
    const { sink, say: give, pass, answer, end, clock } = await played()
    sink.head(200, STREAMED)
    give(START)
    for (let at = 0; at < 20; at++) {
      await pass(1_900)
      give(say('.'))
    }
    give(END)
    await end()
    expect(answer()).toMatchObject({ type: 'reply', parts: [{ text: '.'.repeat(20) }] })
    expect(clock.waiting).toBe(0)
  })
})

describe('an end from outside', () => {
  it('B-EXCHANGE-4: a client that ignores its signal is not waited for, and nothing it brings later is shown', async () => {
    const { sink, say: give, stop, answer, deltas, orders, fail, clock } = await played()
    sink.head(200, STREAMED)
    give(START + say('a'))
    stop.abort(new Error('enough'))
    await fail(new Error('too late'))
    expect(answer()).toEqual({
      type: 'failure',
      class: 'other',
      message: expect.stringContaining('stopped') as string,
      retryable: false,
      partial: 'a',
    })
    expect(orders[0]?.signal.aborted).toBe(true)
    expect(() => give(say('b'))).toThrow('over')
    expect(deltas.map(({ text }) => text)).toEqual(['a'])
    expect(clock.waiting).toBe(0)
  })

  it('B-EXCHANGE-4: so it is with one that outlives its deadline', async () => {
    const { pass, answer, sink, say: give, end, deltas, orders } = await played()
    await pass(DEADLINES.firstByteMs)
    expect(orders[0]?.signal.aborted).toBe(true)
    sink.head(200, STREAMED)
    expect(() => give(ANSWER)).toThrow('over')
    await end()
    expect(answer()).toMatchObject(timeout('No answer'))
    expect(deltas).toEqual([])
  })

  it('B-EXCHANGE-5: a call that was stopped before it began is not made, and leaves nothing behind', async () => {
    const { orders, answer, clock } = await played({}, { stopped: true })
    expect(orders).toEqual([])
    expect(answer()).toMatchObject({ type: 'failure', class: 'other', retryable: false })
    expect(clock.waiting).toBe(0)
  })

  it('B-EXCHANGE-6: what the provider said to the end counts, however the connection ends', async () => {
    for (const [said, expected] of [
      [ANSWER, SAID],
      [START + say('a') + OVERLOADED, { class: 'server', message: 'overloaded_error: Overloaded', partial: 'a' }],
      [OVERLOADED, { class: 'server', message: 'overloaded_error: Overloaded', retryable: true }],
    ] as const) {
      const broken = await played()
      broken.sink.head(200, STREAMED)
      broken.say(said)
      await broken.fail(new Error('read ECONNRESET'))
      expect(broken.answer()).toMatchObject(expected)
      const silent = await played()
      silent.sink.head(200, STREAMED)
      silent.say(said)
      await silent.pass(DEADLINES.idleMs)
      expect(silent.answer()).toMatchObject(expected)
    }
  })

  it('B-EXCHANGE-6: an error answer that breaks off is still the error that its status says', async () => {
    const { sink, say: give, fail, answer } = await played()
    sink.head(429, { 'retry-after': '3' })
    give('{"error":{"mess')
    await fail(new Error('read ECONNRESET'))
    expect(answer()).toMatchObject({
      class: 'rate_limit',
      retryAfterMs: 3_000,
      message: expect.stringContaining('429') as string,
    })
  })

  it('B-EXCHANGE-7: trouble after something was shown has the text so far', async () => {
    for (const [said, partial] of [
      [START, undefined],
      [START + say('Hi'), 'Hi'],
    ] as const) {
      const { sink, say: give, fail, answer } = await played()
      sink.head(200, STREAMED)
      give(said)
      await fail(new Error('read ECONNRESET'))
      expect(answer()).toMatchObject({
        class: 'network',
        retryable: true,
        message: expect.stringContaining('ECONNRESET') as string,
      })
      expect((answer() as ModelFailure).partial).toBe(partial)
    }
    expect(await answered(200, STREAMED, START + say('Hi'))).toMatchObject({
      class: 'network',
      retryable: true,
      partial: 'Hi',
    })
    expect(await answered(200, STREAMED, '')).toMatchObject({ class: 'network', retryable: true })
  })
})

const SHAPES: readonly (readonly [number, string, ModelFailure['class'], string])[] = [
  [400, '{"type":"error","error":{"type":"invalid_request_error","message":"bad field"}}', 'bad_request', 'bad field'],
  [
    400,
    '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9"}}',
    'overflow',
    'long',
  ],
  [400, '{"error":{"code":"context_length_exceeded","message":"no","type":"x"}}', 'overflow', 'context_length'],
  [401, '{"error":{"message":"who?","code":"invalid_api_key"}}', 'auth', 'who?'],
  [402, '{"error":{"code":402,"message":"Insufficient credits"}}', 'auth', 'Insufficient credits'],
  [403, 'Forbidden', 'auth', 'Forbidden'],
  [404, '{"error":"model not found"}', 'bad_request', 'model not found'],
  [408, '', 'server', 'HTTP 408'],
  [413, '<html>too large</html>', 'overflow', 'too large'],
  [422, '{"detail":"field required"}', 'bad_request', 'field required'],
  [422, '{"detail":[{"loc":["body"]}]}', 'bad_request', 'body'],
  [429, '[{"error":{"status":"RESOURCE_EXHAUSTED","message":"quota of the minute"}}]', 'rate_limit', 'quota of'],
  [429, '{"error":{"code":"insufficient_quota","message":"pay"}}', 'auth', 'pay'],
  [429, '', 'rate_limit', 'HTTP 429'],
  [500, 'null', 'server', 'HTTP 500'],
  [502, '<html><body>Bad gateway</body></html>', 'server', 'Bad gateway'],
  [503, '{"message":"warming up"}', 'server', 'warming up'],
  [529, '{"type":"error","error":{"type":"overloaded_error","message":""}}', 'server', 'overloaded_error'],
  [418, '"teapot"', 'bad_request', 'teapot'],
  [204, '', 'other', 'HTTP 204'],
]

describe('answers', () => {
  it.each(SHAPES)('B-EXCHANGE-8: %i %s is of class %s', async (status, body, kind, words) => {
    const answer = (await answered(status, { 'content-type': 'application/json' }, body)) as ModelFailure
    expect(answer).toMatchObject({ type: 'failure', class: kind, message: expect.stringContaining(words) as string })
    expect(answer.message).toContain(`HTTP ${status}`)
    expect(answer.retryable).toBe(['rate_limit', 'server', 'network', 'timeout'].includes(kind))
    expect(answer.message.length).toBeLessThanOrEqual(1_000)
  })

  it.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'retry-after': 'Sun, 15 Nov 2026 10:00:09 GMT', date: 'Sun, 15 Nov 2026 10:00:00 GMT' }, 9_000],
    [{ 'retry-after': '99999' }, 99_999_000],
    [{ 'retry-after-ms': '1e12' }, 2_592_000_000],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }, undefined],
    [{}, undefined],
  ])('B-EXCHANGE-9: %j asks to wait for %s ms', async (headers, expected) => {
    const answer = await answered(429, headers, '')
    expect((answer as ModelFailure).retryAfterMs).toBe(expected)
  })

  it('B-EXCHANGE-10: an answer without end is not taken in: a stream, a whole answer, an error', async () => {
    const chunk = Buffer.from(`:${'x'.repeat(1024 * 1024)}\n`)
    for (const headers of [STREAMED, { 'content-type': 'application/json' }]) {
      const { sink, fail, answer } = await played()
      sink.head(200, headers)
      const pour = (): void => {
        for (;;) sink.data(chunk)
      }
      expect(pour).toThrow(RangeError)
      await fail(new RangeError('longer'))
      expect(answer()).toMatchObject({ type: 'failure', class: 'network' })
    }
    const { sink, fail, answer } = await played()
    sink.head(503, {})
    expect(() => sink.data(Buffer.alloc(65 * 1024, 'x'))).toThrow(RangeError)
    await fail(new RangeError('longer'))
    expect(answer()).toMatchObject({ class: 'server', message: 'HTTP 503' })
  })

  it('B-EXCHANGE-11: an answer that is JSON and no stream is read as a whole one', async () => {
    const body = { type: 'message', content: [{ type: 'text', text: 'Hi.' }], stop_reason: 'end_turn' }
    expect(await answered(200, { 'content-type': 'application/json' }, JSON.stringify(body))).toMatchObject(SAID)
    const failed = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    expect(await answered(200, {}, JSON.stringify(failed))).toMatchObject({ class: 'server' })
    expect(await answered(200, { 'content-type': 'text/html' }, '<html>')).toMatchObject({ class: 'network' })
  })

  it('B-EXCHANGE-18: an error in JSON keeps its message, also under the type of a stream and in any shape', async () => {
    for (const type of ['text/event-stream', 'Text/Event-Stream; charset=UTF-8', 'application/json', '']) {
      for (const [body, kind, words] of [
        ['{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 'server', 'Overloaded'],
        ['\n {"error":{"message":"slow down","type":"rate_limit_error"}}', 'rate_limit', 'slow down'],
        ['{"error":"no such model"}', 'server', 'no such model'],
        ['{"message":"warming up"}', 'server', 'warming up'],
        ['[{"error":{"status":"RESOURCE_EXHAUSTED","message":"quota"}}]', 'rate_limit', 'quota'],
      ] as const) {
        const answer = await answered(200, { 'content-type': type }, body)
        expect(answer).toMatchObject({ class: kind, message: expect.stringContaining(words) as string })
      }
    }
  })

  it.each(['text/event-stream', 'TEXT/EVENT-STREAM', 'text/plain', 'application/json', 'application/octet-stream', ''])(
    'B-EXCHANGE-19: a stream under the type "%s" is known by its body, in whatever pieces it comes',
    async (type) => {
      const headers = type === '' ? {} : { 'content-type': type }
      for (const before of ['', '\ufeff', '\n\n', ': hello\n\n', 'id: 1\n', 'retry: 10\n\n']) {
        expect(await answered(200, headers, before + ANSWER)).toMatchObject(SAID)
        const { sink, answer, deltas } = await played()
        sink.head(200, headers)
        for (const byte of Buffer.from(before + ANSWER)) sink.data(Uint8Array.of(byte))
        await new Promise((resolve) => setImmediate(resolve))
        expect(answer()).toMatchObject(SAID)
        expect(deltas.map(({ text }) => text)).toEqual(['Hi.'])
      }
      const whole = JSON.stringify({ content: [{ type: 'text', text: 'Hi.' }], stop_reason: 'end_turn' })
      expect(await answered(200, headers, whole)).toMatchObject(SAID)
      expect(await answered(200, headers, 'dat')).toMatchObject({ type: 'failure', class: 'network' })
      expect(await answered(200, headers, 'upstream is down')).toMatchObject({ type: 'failure', class: 'network' })
    },
  )

  it("B-EXCHANGE-20: the provider's own end is the answer at once, and what comes after it is not taken in", async () => {
    for (const [said, expected] of [
      [ANSWER, SAID],
      [OVERLOADED, { class: 'server' }],
    ] as const) {
      const { sink, say: give, answer, pass, end, orders, clock } = await played()
      sink.head(200, STREAMED)
      give(said)
      await pass(0)
      expect(answer()).toMatchObject(expected)
      give('data: [DONE]\n\n')
      expect(orders[0]?.signal.aborted).toBe(false)
      await pass(1_000)
      expect(orders[0]?.signal.aborted).toBe(true)
      await end()
      expect(clock.waiting).toBe(0)
    }
    const { sink, say: give, pass } = await played()
    sink.head(200, STREAMED)
    give(ANSWER)
    await pass(0)
    expect(() => give('x'.repeat(100_000))).toThrow('over')
  })

  it('B-EXCHANGE-12: no text of a failure holds the key, whole or in half, nor is any of them empty', async () => {
    const echoes: readonly (readonly [number, Readonly<Record<string, string>>, string])[] = [
      [401, {}, JSON.stringify({ error: { message: `Incorrect key ${KEY}, or ${KEY}.` } })],
      [401, {}, `${'x'.repeat(290)}${KEY}`],
      [500, {}, ''],
      [200, STREAMED, `data: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message: KEY } })}\n\n`],
      [200, {}, JSON.stringify({ type: 'error', error: { message: KEY } })],
    ]
    for (const headers of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }]) {
      for (const [status, received, body] of echoes) {
        const answer = (await answered(status, received, body, { headers })) as ModelFailure
        expect(answer.type).toBe('failure')
        expect(answer.message).not.toContain(KEY.slice(0, 10))
        expect(answer.message.trim()).not.toBe('')
      }
      const { fail, answer } = await played({ headers })
      await fail(new Error(`bad header ${KEY}`))
      expect((answer() as ModelFailure).message).not.toContain(KEY)
    }
    const { fail: refuse, answer: refused } = await played()
    await refuse(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }))
    expect((refused() as ModelFailure).message).toContain('ECONNREFUSED')
    for (const odd of [new Error(''), 'a text', null, undefined, new AggregateError([])]) {
      const { fail, answer } = await played()
      await fail(odd)
      expect(answer()).toMatchObject({
        class: 'network',
        message: expect.stringMatching(/\w+.* After 0 ms\.$/) as string,
      })
    }
  })

  it('B-EXCHANGE-13: a request has the address, the path, the type and the headers of its caller, which override the others', async () => {
    const headers = { 'x-api-key': KEY, accept: 'text/plain' }
    const { orders, sink, say: give, end, answer } = await played({ url: 'https://proxy.example/a', headers })
    expect(orders[0]?.url.href).toBe('https://proxy.example/a/v1/messages')
    expect(orders[0]?.headers).toMatchObject({ ...headers, 'content-type': 'application/json' })
    expect(JSON.parse(orders[0]?.body ?? '')).toMatchObject({ model: 'm', stream: true })
    sink.head(200, STREAMED)
    give(ANSWER)
    await end()
    expect(answer() as Reply).toMatchObject(SAID)
  })
})
