// The exchange over real sockets: connections that are kept, refused, reset and sent elsewhere.
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { fetchTransport, httpTransport, type Transport } from '../../src/models/http/transport.ts'
import { ANSWER, KEY, overHttp, say, served, START, STREAMED } from './exchange-stage.ts'

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
    expect(requests[1]?.headers).toMatchObject({ 'x-api-key': KEY, 'content-type': 'application/json' })
  })
})
