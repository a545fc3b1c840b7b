// The exchange over real sockets: connections that are kept, refused, reset and sent elsewhere.
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { fetchTransport, httpTransport, type Transport } from '../../src/models/http/transport.ts'
import { model } from '../../src/index.ts'
import { bytesOf } from './aisdk-stage.ts'
import { callContext, request } from './context.ts'
import { ANSWER, bodyOf, KEY, overHttp, PAUSED, say, served, START, STREAMED } from './exchange-stage.ts'

const TRANSPORTS: readonly (readonly [string, Transport])[] = [
  ['our own client', httpTransport],
  ['a fetch', fetchTransport(fetch)],
]
const SAID = { type: 'reply', parts: [{ type: 'text', text: 'Hi.' }] }

describe.each(TRANSPORTS)('over HTTP with %s', (_name, transport) => {
  it.each([301, 302, 303, 307, 308])(
    'B-EXCHANGE-15: a redirect (%i) is refused, and no other host sees the key',
    async (status) => {
      const other = await served((_request, response) => {
        response.writeHead(200, STREAMED).end(ANSWER)
      })
      const { url } = await served((_request, response) => {
        response.writeHead(status, { location: `${other.url}/v1/messages?key=abc` }).end()
      })
      const answer = await overHttp(url, { transport })
      expect(answer).toMatchObject({ type: 'failure', class: 'bad_request', retryable: false })
      expect(answer.type === 'failure' && answer.message).toContain(new URL(other.url).host)
      expect(answer.type === 'failure' && answer.message).not.toContain('key=abc')
      expect(other.requests).toEqual([])
    },
  )

  it('B-EXCHANGE-16: a server that is not there is trouble with the network, and named', async () => {
    const free = createServer()
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    for (const host of ['127.0.0.1', 'localhost']) {
      const answer = await overHttp(`http://${host}:${port}`, { transport })
      expect(answer).toMatchObject({ type: 'failure', class: 'network', retryable: true })
      expect(answer.type === 'failure' && answer.message).toContain('ECONNREFUSED')
    }
  })

  it('B-EXCHANGE-16: a connection that is cut in a stream is trouble with the network, with the text so far', async () => {
    const { url } = await served((_request, response) => {
      response.writeHead(200, STREAMED)
      response.write(START + say('Half'), () => setImmediate(() => response.destroy()))
    })
    const answer = await overHttp(url, { transport })
    expect(answer).toMatchObject({ type: 'failure', class: 'network', retryable: true, partial: 'Half' })
  })

  it("B-EXCHANGE-20: the provider's own end ends the call, and an open connection is left soon after", async () => {
    let left = false
    const { url } = await served((_request, response) => {
      response.on('close', () => {
        left = true
      })
      response.writeHead(200, STREAMED).write(ANSWER)
    })
    const began = Date.now()
    expect(await overHttp(url, { transport })).toMatchObject(SAID)
    expect(Date.now() - began).toBeLessThan(900)
    await expect.poll(() => left, { timeout: 5_000 }).toBe(true)
  })

  it('B-EXCHANGE-17: a server that goes on for ever after its answer is left, and the answer counts', async () => {
    let left = false
    const { url } = await served((_request, response) => {
      response.on('close', () => {
        left = true
      })
      response.writeHead(200, STREAMED).write(ANSWER)
    })
    const deadlines = { firstByteMs: 20_000, idleMs: 50, stalledMs: 20_000 }
    expect(await overHttp(url, { transport, deadlines })).toMatchObject(SAID)
    await expect.poll(() => left).toBe(true)
  })
})

it.each([
  ['messages', 'anthropic:claude-x', ''],
  ['responses', 'openai:gpt-x', '/v1'],
  ['chat', 'groq:m', '/v1'],
  ['chat', 'ollama:m', '/v1'],
] as const)("B-EXCHANGE-20: the provider's own end ends a call over %s to %s", async (dialect, name, path) => {
  const { url } = await served((_request, response) => {
    response.writeHead(200, STREAMED).write(bytesOf(`${dialect}/text`))
  })
  const began = Date.now()
  const answer = await model(name, { baseUrl: url + path, key: KEY }).call(request(), callContext().context)
  expect(answer).toMatchObject({ type: 'reply', finish: 'stop' })
  expect(Date.now() - began).toBeLessThan(2_000)
})

describe('a paused turn', () => {
  async function paused(...answers: readonly string[]) {
    const bodies: { readonly messages: readonly unknown[] }[] = []
    const { url } = await served((request, response) => {
      const answer = answers[bodies.length] ?? PAUSED
      bodies.push(JSON.parse(bodyOf(request)) as { messages: unknown[] })
      response.writeHead(200, STREAMED).end(answer)
    })
    return { url, bodies }
  }

  it('B-MESSAGES-36: a turn that the provider pauses goes on with its content sent back, and is one reply', async () => {
    const { url, bodies } = await paused(PAUSED, PAUSED, ANSWER)
    expect(await overHttp(url)).toEqual({
      type: 'reply',
      parts: [
        { type: 'text', text: 'I search. ' },
        { type: 'provider', tool: 'web_search', opaque: expect.anything() as object },
        { type: 'text', text: 'I search. ' },
        { type: 'provider', tool: 'web_search', opaque: expect.anything() as object },
        { type: 'text', text: 'Hi.' },
      ],
      calls: [],
      finish: 'stop',
      usage: { inputTokens: 15, outputTokens: 17, contextTokens: 5 },
    })
    const content = [
      { type: 'text', text: 'I search. ' },
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { q: 1 } },
    ]
    expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 2, 2])
    expect(bodies[1]?.messages[1]).toEqual({ role: 'assistant', content })
    expect(bodies[2]?.messages[1]).toEqual({ role: 'assistant', content: [...content, ...content] })
    expect(bodies[2]?.messages[0]).toEqual(bodies[0]?.messages[0])
  })

  it('B-MESSAGES-36: a turn that is paused for ever ends as cut off, and one that breaks has what was said', async () => {
    const endless = await paused()
    expect(await overHttp(endless.url)).toMatchObject({ type: 'reply', finish: 'length' })
    expect(endless.bodies).toHaveLength(17)
    const { url } = await paused(PAUSED, START + say('And'))
    expect(await overHttp(url)).toMatchObject({ type: 'failure', class: 'network', partial: 'I search. And' })
  })
})

describe('connections', () => {
  it('B-EXCHANGE-14: two calls in a row use one connection', async () => {
    const { url, server, requests } = await served((_request, response) => {
      response.writeHead(200, STREAMED).end(ANSWER)
    })
    let sockets = 0
    server.on('connection', () => {
      sockets += 1
    })
    expect(await overHttp(url)).toMatchObject(SAID)
    expect(await overHttp(url)).toMatchObject(SAID)
    expect([requests.length, sockets]).toEqual([2, 1])
    // The end of the body may come a little later than the end that the provider says.
    const slow = await served((_request, response) => {
      response.writeHead(200, STREAMED).write(ANSWER)
      setTimeout(() => response.end(': bye\n\n'), 20)
    })
    let others = 0
    slow.server.on('connection', () => {
      others += 1
    })
    expect(await overHttp(slow.url)).toMatchObject(SAID)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await overHttp(slow.url)).toMatchObject(SAID)
    expect(others).toBe(1)
    expect(requests[1]?.headers).toMatchObject({ 'x-api-key': KEY, 'content-type': 'application/json' })
  })
})
