// The server as a part of another program: over `node:http`, and as a handler of requests of the web, at the root and under a path.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { Harness, memory, type Script, scripted } from '../../src/index.ts'
import { type AccessEntry, serve, type ServeOptions } from '../../src/server/index.ts'
import { spoken, streamed } from './served.ts'
import { until } from '../until.ts'

const TOKEN = 'a'.repeat(43)

async function mounted(script: Script, options: Partial<ServeOptions> = {}) {
  const harness = new Harness({ model: scripted(script), program: 'shop' })
  const entries: AccessEntry[] = []
  const server = await serve({ harness, token: TOKEN, onAccess: (entry) => void entries.push(entry), ...options })
  onTestFinished(async () => {
    await server.close()
    await harness.close()
  })
  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    server.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
  return { harness, server, entries, ask }
}

type Opened = { readonly session: string }

describe('a mounted server', () => {
  it('B-MOUNT-1: opens a session of one’s own harness with a Request, which drives it, and streams it', async () => {
    const { ask, harness } = await mounted([{ text: 'Hello from the shop.' }])
    const opened = await ask('POST', '/v1/sessions', { input: 'Hi.' })
    expect(opened.status).toBe(201)
    const { session } = (await opened.json()) as Opened
    const result = await ask('GET', `/v1/sessions/${session}/result?wait=10`)
    expect(await result.json()).toMatchObject({ result: { text: 'Hello from the shop.' } })
    expect((await harness.session(session, { stored: true }).status({ include: ['card'] })).card.program).toBe('shop')
    const stream = await ask('GET', `/v1/sessions/${session}/stream`)
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    const reader = stream.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined
    let text = ''
    while (!text.includes('run.settled')) text += new TextDecoder().decode((await reader?.read())?.value)
    expect(text).toContain('event: hello')
    await reader?.cancel()
  })

  it('B-MOUNT-2: has the checks of `terret serve`: the name of the host, the page, the token, the role and the body', async () => {
    const { ask, entries, server } = await mounted([], { names: ['agents.example.com'] })
    const status = async (path: string, headers: Record<string, string>) =>
      (await ask('GET', path, undefined, headers)).status
    expect(await status('/v1/me', {})).toBe(200)
    expect(await status('/v1/me', { host: 'agents.example.com' })).toBe(200)
    expect(await status('/v1/me', { host: 'agents.example.com:8443' })).toBe(200)
    expect(await status('/v1/me', { host: 'evil.example' })).toBe(421)
    expect(await status('/v1/me', { host: 'localhost.evil.example' })).toBe(421)
    expect(await status('/v1/me', { origin: 'http://evil.example' })).toBe(403)
    expect(await status('/v1/me', { 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await status('/v1/me', { authorization: '' })).toBe(401)
    expect(await status('/v1/me', { authorization: `Bearer ${'b'.repeat(43)}` })).toBe(401)
    expect((await ask('POST', '/v1/sessions', { what: 1 })).status).toBe(400)
    const broken = new Request('http://localhost/v1/sessions', {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'text/plain' },
      body: '{}',
    })
    expect((await server.fetch(broken)).status).toBe(415)
    expect(entries.map(({ type, status: code }) => [type, code])).toEqual([
      ['signed_in', undefined],
      ['refused', 421],
      ['refused', 421],
      ['refused', 403],
      ['refused', 403],
      ['refused', 401],
      ['refused', 401],
    ])
    expect(JSON.stringify(entries)).not.toMatch(/[ab]{43}/)
  })

  it('B-MOUNT-3: answers under its path in node:http, Hono and a handler whose path was taken away', async () => {
    const { server } = await mounted([{ text: 'Hello.' }], { base: '/terret' })
    const http = createServer((request, response) => {
      if (request.url?.startsWith('/terret')) server.listener(request, response)
      else response.end('the shop')
    })
    await new Promise<void>((up) => http.listen(0, '127.0.0.1', up))
    onTestFinished(() => void http.close())
    const { port } = http.address() as AddressInfo
    const authorization = `Bearer ${TOKEN}`
    const url = `http://127.0.0.1:${port}`
    expect(await (await fetch(url)).text()).toBe('the shop')
    const client = connect({ url: `${url}/terret`, token: TOKEN })
    const session = await client.open()
    await session.send('Hi.')
    expect((await session.result({ waitMs: 10_000 }))?.text).toBe('Hello.')
    const stream = streamed(port, `/terret/v1/sessions/${session.id}/stream`, { authorization })
    await until(() => expect(stream.frames.some(({ data }) => data['type'] === 'run.settled')).toBe(true))
    stream.cut()
    expect(
      await spoken(port, `GET /terret/v1/me HTTP/1.1\r\nHost: evil\r\nAuthorization: ${authorization}\r\n\r\n`),
    ).toContain(' 421 ')
    const app = new Hono()
    app.all('/terret/*', (c) => server.fetch(c.req.raw))
    const headers = { authorization, host: 'localhost' }
    expect((await app.request('http://localhost/terret/v1/me', { headers })).status).toBe(200)
    expect((await app.request('http://localhost/terret/v1/nothing', { headers })).status).toBe(404)
    // As Express calls it: `url` is what follows the path.
    expect((await server.fetch(new Request('http://localhost/v1/me', { headers }))).status).toBe(200)
  })

  it('B-MOUNT-4: over a store alone it shows and records, opens nothing, and says who drives each session', async () => {
    const store = memory()
    const owner = new Harness({ model: scripted([{ text: 'One.' }]), store, program: 'shop' })
    onTestFinished(() => owner.close())
    const { sessionId } = await owner.run('Hi.')
    const server = await serve({ store, token: TOKEN })
    onTestFinished(() => server.close())
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const ask = async (path: string, body?: unknown) =>
      server.fetch(
        new Request(`http://localhost${path}`, {
          headers,
          ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        }),
      )
    const elsewhere = 'It waits for a worker of agent "default" of the program "shop".'
    expect(await (await ask(`/v1/sessions/${sessionId}`)).json()).toMatchObject({ card: { elsewhere } })
    expect(await (await ask(`/v1/sessions/${sessionId}/messages`, { input: 'More.' })).json()).toMatchObject({
      elsewhere,
    })
    expect((await ask(`/v1/sessions/${sessionId}/wake`, {})).status).toBe(409)
    expect((await ask('/v1/sessions', { input: 'New.' })).status).toBe(400)
    expect((await ask('/v1/agents')).status).toBe(200)
  })

  it('B-MOUNT-5: says in one sentence what is wrong with its options', async () => {
    const harness = new Harness({ model: scripted([]) })
    onTestFinished(() => harness.close())
    await expect(serve({ harness, base: 'terret/' })).rejects.toThrow('"base" of serve is a path such as "/terret"')
    await expect(serve({ harness, token: 'short' })).rejects.toThrow('"token" of serve has 43')
    await expect(serve({})).rejects.toThrow('Give serve a harness, or a store')
    await expect(serve({ harness: {} as Harness })).rejects.toThrow('is no harness')
    await expect(serve({ harness, port: 1 } as ServeOptions)).rejects.toThrow('Unknown option "port" of serve')
  })

  it('B-MOUNT-6: a body that was read before says where to mount it', async () => {
    const { server } = await mounted([])
    const http = createServer((request, response) => {
      request.resume().once('end', () => server.listener(request, response))
    })
    await new Promise<void>((up) => http.listen(0, '127.0.0.1', up))
    onTestFinished(() => void http.close())
    const { port } = http.address() as AddressInfo
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const answer = await fetch(`http://127.0.0.1:${port}/v1/sessions`, { method: 'POST', headers, body: '{}' })
    expect(await answer.text()).toContain('Mount the server before body parsers')
  })

  it('B-MOUNT-7: closing ends its streams and refuses what comes then', async () => {
    const { ask, server, harness } = await mounted([])
    const { id } = await harness.open()
    const stream = await ask('GET', `/v1/sessions/${id}/stream`)
    await server.close()
    expect(await stream.text()).toContain('event: bye')
    expect((await ask('GET', '/v1/me')).status).toBe(503)
  })
})
