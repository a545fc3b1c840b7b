// Lists of sessions over HTTP by outcome and time, what waits below a root, and answers in fewer bytes.
import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { chooseEncoding } from '../../src/server/compress-answer.ts'
import type { OpenedAnswer, PendingAnswer, SessionPage, WireError } from '../../src/server/wire.ts'
import { connect } from '../../src/client/index.ts'
import { card, creation } from '../contract/fixture.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { DIST } from '../web/stage.ts'
import { type Served, served } from './served.ts'

describe('lists of sessions over HTTP', () => {
  it('B-LISTED-2: failures behind a thousand newer sessions are found by outcome and time, over the wire and with the client', async () => {
    const one = await served([], { harness: { worker: { drives: false } } })
    const { store } = one.host
    const made = (id: string, over: Parameters<typeof card>[1]) => creation(store, id, { card: card(id, over) })
    const failed = Array.from({ length: 20 }, (_, i) => `failed${i}`)
    await store.commit(failed.map((id) => made(id, { outcome: 'failed', cause: `reason of ${id}` })))
    const until = store.now() + 1
    await new Promise((resolve) => setTimeout(resolve, 5))
    await store.commit(Array.from({ length: 1_000 }, (_, i) => made(`n${i}`, { outcome: 'completed' })))
    const page = (query: string) => one.json<SessionPage>('GET', `/v1/sessions?${query}`)
    const { sessions, next } = await page('outcome=failed,halted&limit=200')
    expect([sessions.length, next]).toEqual([20, null])
    expect(sessions[0]).toMatchObject({ outcome: 'failed', cause: 'reason of failed19' })
    expect((await page(`until=${until}&limit=200`)).sessions).toHaveLength(20)
    expect((await page(`outcome=failed&since=${until}`)).sessions).toHaveLength(0)
    const client = connect({ url: one.server.url, token: one.tokens.own })
    expect((await client.list({ outcome: ['failed', 'quarantined'], until })).cards).toHaveLength(20)
    for (const query of ['outcome=broken', 'outcome=', 'since=x', 'outcome=failed&root=n1', 'since=1&order=id']) {
      const { status, text } = await one.ask('GET', `/v1/sessions?${query}`)
      expect([query, status, (JSON.parse(text) as WireError).error.code]).toEqual([query, 400, 'invalid_input'])
    }
  })

  it('B-LISTED-3: what waits comes with the roots it waits under, also where a child asks', async () => {
    const publish = tool('publish', { approval: 'ask', effect: 'once' })
    const one = await served(
      [
        { calls: [{ tool: 'subagent', args: { task: 'Publish it.', agent: 'worker' } }] },
        { calls: [{ tool: 'publish', args: {} }] },
      ],
      { harness: { tools: [publish], subagents: { worker: { description: 'publishes' } } } },
    )
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
    const answer = await until(async () => {
      const found = await one.json<PendingAnswer>('GET', '/v1/pending')
      if (found.pending.length === 0) throw new Error('nothing waits')
      return found
    })
    expect(answer.next).toBeNull()
    expect(answer.pending[0]?.sessionId).not.toBe(session)
    expect(answer.sessions.map((each) => each.session)).toEqual([session])
  })

  it('B-LISTED-4: a page of what waits says after which session the next one begins, and splits no session; the client reads all pages', async () => {
    const publish = tool('publish', { approval: 'ask', effect: 'once' })
    const two = { calls: [1, 2].map((n) => ({ tool: 'publish', args: { n } })) }
    const one = await served(() => two, { harness: { tools: [publish] } })
    const ids = ['a', 'b', 'c']
    for (const id of ids) await one.json('POST', '/v1/sessions', { body: { id, input: 'Go.' } })
    const page = (query: string) => one.json<PendingAnswer>('GET', `/v1/pending?${query}`)
    await until(async () => expect((await page('')).pending).toHaveLength(6))
    const seen: (readonly [readonly string[], string | null])[] = []
    for (let cursor = '', at = 0; at < 3; at++) {
      const { pending, next } = await page(`limit=1&cursor=${cursor}`)
      seen.push([pending.map(({ sessionId, callId }) => `${sessionId} ${callId.split('.')[1] ?? ''}`).toSorted(), next])
      cursor = next ?? ''
    }
    expect(seen).toEqual([
      [['a 0', 'a 1'], 'a'],
      [['b 0', 'b 1'], 'b'],
      [['c 0', 'c 1'], null],
    ])
    expect((await page('limit=3')).next).toBe('b')
    expect((await page('limit=6')).next).toBeNull()
    const queries: string[] = []
    const counting: typeof fetch = (url, init) => {
      queries.push(new URL(new Request(url, init).url).search)
      return fetch(url, init)
    }
    const client = connect({ url: one.server.url, token: one.tokens.own, fetch: counting })
    const found = async (filter: { readonly limit?: number; readonly after?: string }) =>
      (await client.pending(filter)).map(({ sessionId }) => sessionId).join('')
    expect([await found({}), await found({ limit: 3 }), await found({ after: 'a', limit: 1 })]).toEqual([
      'aabbcc',
      'aabb',
      'bb',
    ])
    expect(queries).toEqual(['?limit=1000', '?limit=3', '?cursor=a&limit=1'])
  })
})

describe('answers in fewer bytes', () => {
  it('B-PAGE2-1: JSON and files are compressed as the client accepts it; a stream of events and a short answer are not', async () => {
    const one = await served([], { serve: { pages: DIST } })
    const { store } = one.host
    await store.commit(Array.from({ length: 50 }, (_, i) => creation(store, `s${i}`, { card: card(`s${i}`) })))
    const plain = await bytesOf(one, '/v1/sessions?limit=50', 'identity')
    expect(plain.encoding).toBeUndefined()
    const list = JSON.parse(plain.bytes.toString()) as SessionPage
    for (const [accepted, encoding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
      ['gzip;q=1, br;q=0.5', 'gzip'],
    ] as const) {
      const { bytes, encoding: had, length, vary } = await bytesOf(one, '/v1/sessions?limit=50', accepted)
      expect([had, length, vary]).toEqual([encoding, String(bytes.length), 'accept-encoding'])
      expect(bytes.length * 3).toBeLessThan(plain.bytes.length)
      const text = (encoding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString()
      expect((JSON.parse(text) as SessionPage).sessions).toEqual(list.sessions)
    }
    expect((await bytesOf(one, '/v1/me', 'gzip')).encoding).toBeUndefined()
    const stream = await headOf(one, '/v1/sessions/s1/stream', 'gzip, br')
    expect([stream['content-type'], stream['content-encoding']]).toEqual([
      'text/event-stream; charset=utf-8',
      undefined,
    ])
    const page = await bytesOf(one, '/', 'br')
    const script = /src="\/([^"]*first[^"]*\.js)"/.exec(brotliIf(page))?.[1] ?? ''
    const [raw, small] = [await bytesOf(one, `/${script}`, 'identity'), await bytesOf(one, `/${script}`, 'br')]
    expect(small.encoding).toBe('br')
    expect(brotliDecompressSync(small.bytes).equals(raw.bytes)).toBe(true)
  })

  it('B-PAGE2-1: what is accepted is read as the header says it', () => {
    const cases: Readonly<Record<string, string | null>> = {
      '': null,
      identity: null,
      'br;q=0': null,
      'gzip;q=0, *': 'br',
      '*;q=0.1': 'br',
      'GZIP;Q=0.5': 'gzip',
      'br;q=x': null,
      'deflate, gzip;q=0.2, br;q=0.1': 'gzip',
    }
    for (const [accepted, encoding] of Object.entries(cases))
      expect([accepted, chooseEncoding(accepted)]).toEqual([accepted, encoding])
    expect(chooseEncoding(undefined)).toBeNull()
  })
})

type Bytes = {
  readonly bytes: Buffer
  readonly encoding: string | undefined
  readonly length: string | undefined
  readonly vary: string | undefined
}

function brotliIf({ bytes, encoding }: Bytes): string {
  return (encoding === 'br' ? brotliDecompressSync(bytes) : bytes).toString()
}

function headersFor(one: Served, accepted: string): Record<string, string> {
  return { authorization: `Bearer ${one.tokens.own}`, 'accept-encoding': accepted }
}

function bytesOf(one: Served, path: string, accepted: string): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    const { port } = one.server
    request({ port, host: '127.0.0.1', path, headers: headersFor(one, accepted) }, (response) => {
      const chunks: Buffer[] = []
      const { headers } = response
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          bytes: Buffer.concat(chunks),
          encoding: headers['content-encoding'],
          length: headers['content-length'],
          vary: headers.vary,
        }),
      )
    })
      .on('error', reject)
      .end()
  })
}

function headOf(one: Served, path: string, accepted: string): Promise<NodeJS.Dict<string | string[]>> {
  return new Promise((resolve, reject) => {
    const { port } = one.server
    request({ port, host: '127.0.0.1', path, headers: headersFor(one, accepted) }, (response) => {
      resolve(response.headers)
      response.destroy()
    })
      .on('error', reject)
      .end()
  })
}
