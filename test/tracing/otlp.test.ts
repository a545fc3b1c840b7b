// Traces to a collector: a real HTTP server that looks at what it gets, and answers well, badly, late or not at all.
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/ports/system.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { type OtlpOptions, otlp, type Sink, type Span, spansOf } from '../../src/tracing/index.ts'
import { stage, tracerOn } from './stage.ts'
import { proposal, simple, Tale } from './tale.ts'

type Seen = { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: string }
type Reply = (response: ServerResponse, n: number) => void
const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

describe('an export', () => {
  it('B-TRACE-26: is OTLP as JSON: ids in hex, times as strings of nanoseconds, kinds and codes as numbers', async () => {
    const { seen, endpoint } = await collector()
    const tale = simple()
    tale.begin()
    tale.ask()
    const seq = tale.reply([proposal('drop')], { cost: 2_000_000 })
    const failure = { kind: 'Denied', message: 'no' } as const
    tale.add({ type: 'agent.tool_result', call: `${seq}.0`, status: 'denied', content: 'no', failure })
    const spans = spansOf([tale])
    await give(otlp({ endpoint, env: {} }), spans)
    expect(seen).toHaveLength(1)
    expect(seen[0]?.url).toBe('/v1/traces')
    expect(seen[0]?.headers['content-type']).toBe('application/json')
    const { resourceSpans } = JSON.parse(seen[0]?.body ?? '') as Body
    expect(resourceSpans).toHaveLength(1)
    expect(resourceSpans[0]?.resource.attributes).toEqual([{ key: 'service.name', value: { stringValue: 'terret' } }])
    expect(resourceSpans[0]?.scopeSpans[0]?.scope.name).toBe('terret')
    const sent = resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    const closed = spans.filter((span) => span.endedAt !== null)
    expect(sent.map(({ spanId }) => spanId)).toEqual(closed.map(({ spanId }) => spanId))
    expect(closed).toHaveLength(spans.length - 1)
    for (const span of sent) checkSpan(span)
    const [run, chat] = sent
    expect(run).toMatchObject({ kind: 1, status: {}, startTimeUnixNano: '1020000000', events: [] })
    expect(run).not.toHaveProperty('parentSpanId')
    expect(chat).toMatchObject({ kind: 3, parentSpanId: run?.spanId, endTimeUnixNano: '1040000000' })
    expect(chat?.attributes).toContainEqual({ key: 'gen_ai.usage.input_tokens', value: { intValue: '100' } })
    expect(sent.at(-2)?.attributes).toContainEqual({ key: 'terret.cost_usd', value: { doubleValue: 2 } })
    expect(sent.at(-1)).toMatchObject({ status: { code: 2, message: 'Denied' } })
    expect(sent.at(-1)?.events).toMatchObject([
      { name: 'exception', timeUnixNano: expect.stringMatching(/^\d+000000$/) as string },
    ])
  })

  it('B-TRACE-32: tells a collector as a list how a reply ended that is not whole', async () => {
    const { seen, endpoint } = await collector()
    const tale = new Tale('cut')
    tale.begin()
    tale.ask()
    tale.reply([], { finish: 'length' })
    await give(otlp({ endpoint, env: {} }), spansOf([tale]))
    const value = { arrayValue: { values: [{ stringValue: 'length' }] } }
    expect(seen[0]?.body).toContain(JSON.stringify({ key: 'gen_ai.response.finish_reasons', value }))
  })

  it('B-TRACE-26: is never empty: without a span that has ended nothing is sent', async () => {
    const { seen, endpoint } = await collector()
    const tale = new Tale('open')
    tale.begin()
    await give(otlp({ endpoint, env: {} }), spansOf([tale]))
    expect(seen).toEqual([])
  })

  it('B-TRACE-26: that is large is sent in parts', async () => {
    const { seen, endpoint } = await collector()
    const [run] = spansOf([simple()])
    const big = Array.from({ length: 40 }, (_, i) => ({
      ...run,
      spanId: String(i),
      attributes: { text: 'x'.repeat(200_000) },
    }))
    await give(otlp({ endpoint, env: {} }), big as Span[])
    expect(seen.length).toBeGreaterThan(1)
    expect(seen.every(({ body }) => body.length < 5_000_000)).toBe(true)
    const sent = seen.flatMap(({ body }) => (JSON.parse(body) as Body).resourceSpans[0]?.scopeSpans[0]?.spans ?? [])
    expect(sent.map(({ spanId }) => spanId)).toEqual(big.map(({ spanId }) => spanId))
  })

  it('B-TRACE-27: goes where the variables of OpenTelemetry say, unless it is told otherwise', async () => {
    const { seen, endpoint } = await collector()
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/base/` }
    const exact = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/exact?tenant=1` }
    const headers = { OTEL_EXPORTER_OTLP_HEADERS: 'X-Key=a%20b, x-other=c' }
    const named = { OTEL_SERVICE_NAME: 'mail' }
    await give(otlp({ env: { ...base, ...headers, ...named } }), spansOf([simple()]))
    await give(otlp({ env: { ...base, ...exact } }), spansOf([simple()]))
    await give(
      otlp({ endpoint, headers: { 'x-key': 'mine' }, env: { ...base, ...exact, ...headers } }),
      spansOf([simple()]),
    )
    expect(seen.map(({ url }) => url)).toEqual(['/base/v1/traces', '/exact?tenant=1', '/v1/traces'])
    expect(seen.map((one) => [one.headers['x-key'], one.headers['x-other']])).toEqual([
      ['a b', 'c'],
      [undefined, undefined],
      ['mine', 'c'],
    ])
    expect(seen[0]?.body).toContain('"stringValue":"mail"')
  })

  it('B-TRACE-27: cannot be set up for an address or a header that is none', () => {
    for (const options of [
      { endpoint: 'ftp://x' },
      { endpoint: 'nonsense' },
      { headers: { 'a b': 'c' } },
      { headers: { a: 'b\nc' } },
    ])
      expect(() => otlp({ env: {}, ...(options as OtlpOptions) })).toThrow(/collector/)
  })

  it.each([429, 502, 503, 504])('B-TRACE-28: is tried again after %s', async (status) => {
    const { seen, endpoint } = await collector((response, n) => response.writeHead(n < 2 ? status : 200).end('{}'))
    const { clock, waits } = impatient()
    await give(otlp({ endpoint, env: {} }), spansOf([simple()]), clock)
    expect(seen).toHaveLength(3)
    expect(waits).toHaveLength(2)
    expect((waits[1] ?? 0) / (waits[0] ?? 1)).toBe(2)
  })

  it('B-TRACE-28: is given up after five tries, and waits as long as it is told, but not for ever', async () => {
    const { seen, endpoint } = await collector((response, n) => {
      response.writeHead(503, { 'retry-after': n === 0 ? '7' : '86400' }).end()
    })
    const { clock, waits } = impatient()
    await expect(give(otlp({ endpoint, env: {} }), spansOf([simple()]), clock)).rejects.toThrow(
      'answered 503 (tried 5 times)',
    )
    expect(seen).toHaveLength(5)
    expect(waits).toEqual([7_000, 30_000, 30_000, 30_000])
  })

  it('B-TRACE-28: that cannot be reached, or that is not answered in time, is tried again', async () => {
    const { seen, endpoint } = await collector((response, n) => {
      if (n === 0) response.destroy()
      else if (n > 1) response.end('{}')
    })
    const { clock, waits } = impatient(5)
    await give(otlp({ endpoint, timeoutMs: 5, env: {} }), spansOf([simple()]), clock)
    expect(seen).toHaveLength(3)
    expect(waits).toHaveLength(2)
  })

  it.each([
    ['a refusal', 400, ''],
    ['a body that is too large', 413, ''],
    ['a redirect', 302, ''],
    ['a part that was rejected', 200, '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"x"}}'],
  ])('B-TRACE-29: is not tried again after %s', async (_, status, body) => {
    const other = await collector()
    const { seen, endpoint } = await collector((response) =>
      response.writeHead(status, { location: other.endpoint }).end(body),
    )
    await expect(give(otlp({ endpoint, env: {} }), spansOf([simple()]))).rejects.toThrow(/answered|rejected 2/)
    expect([seen.length, other.seen.length]).toEqual([1, 0])
  })

  it('B-TRACE-29: that fails says so without the key', async () => {
    const { endpoint } = await collector((response) => response.writeHead(401).end('Bearer KEY-123'))
    const sink = otlp({
      endpoint: endpoint.replace('//', '//user:KEY-123@'),
      headers: { authorization: 'KEY-123' },
      env: {},
    })
    const error = await give(sink, spansOf([simple()])).catch((reason: unknown) => reason)
    expect(`${String(error)} ${sink.name}`).toContain('answered 401')
    expect(`${String(error)} ${sink.name}`).not.toContain('KEY-123')
  })

  it('B-TRACE-30: has instructions and tools on the span of the run alone, and only if content is captured', async () => {
    const { seen, endpoint } = await collector()
    const set = stage(['ANSWER-TEXT'], { instructions: 'INSTRUCTION-TEXT' })
    const tracer = tracerOn(set.store, [otlp({ endpoint, env: {}, capture: 'content' }), otlp({ endpoint, env: {} })])
    await set.tell(tracer, await set.run())
    await tracer.close()
    await set.harness.close()
    const [with_ = '', without = ''] = seen.map(({ body }) => body).toSorted((a, b) => b.length - a.length)
    expect(without).not.toMatch(/-TEXT/)
    const [run, chat] = (JSON.parse(with_) as Body).resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    expect(JSON.stringify(run)).toContain('INSTRUCTION-TEXT')
    expect(JSON.stringify(chat)).toContain('ANSWER-TEXT')
    expect(JSON.stringify(chat)).not.toContain('INSTRUCTION-TEXT')
  })
})

type Attribute = { readonly key: string; readonly value: Readonly<Record<string, unknown>> }
type Sent = {
  readonly traceId: string
  readonly spanId: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly events: readonly object[]
}
type Body = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly scope: { readonly name: string }; readonly spans: readonly Sent[] }[]
  }[]
}

function checkSpan(span: Sent): void {
  expect(span.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(span.spanId).toMatch(/^[0-9a-f]{16}$/)
  expect([span.startTimeUnixNano, span.endTimeUnixNano].every((time) => /^[1-9]\d*000000$/.test(time))).toBe(true)
  expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true)
  for (const { key, value } of span.attributes) {
    const [kind, ...more] = Object.keys(value)
    expect([key, more]).toEqual([key, []])
    expect(['stringValue', 'intValue', 'doubleValue', 'boolValue']).toContain(kind)
    if (kind === 'intValue') expect(value['intValue']).toMatch(/^-?\d+$/)
  }
}

async function collector(reply: Reply = (response) => response.end('{}')): Promise<{ seen: Seen[]; endpoint: string }> {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const n =
        seen.push({ url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() }) - 1
      reply(response, n)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { seen, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function give(sink: Sink, spans: readonly Span[], clock: Clock = runtimeClock): Promise<void> {
  try {
    await sink.export(spans, { texts: new Map(), clock, signal: new AbortController().signal })
  } finally {
    await sink.close()
  }
}

/** A clock by which no wait between two tries takes time. Deadlines of requests are real, but only a short one ever comes. */
function impatient(deadlineMs = 10_000): { readonly clock: Clock; readonly waits: number[] } {
  const waits: number[] = []
  const timer: Clock['timer'] = (ms, fire) => {
    if (ms === deadlineMs) return runtimeClock.timer(deadlineMs === 10_000 ? 600_000 : 200, fire)
    waits.push(ms)
    return runtimeClock.timer(0, fire)
  }
  return { clock: { now: () => runtimeClock.now(), timer }, waits }
}
