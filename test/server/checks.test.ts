// Every route of the table, with everything that must not get through. The table is the list: a new route is covered without a new test.
import { chmodSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { includesRole, matchRoute, parseTarget } from '../../src/server/request-checks.ts'
import { isTooDeep } from '../../src/server/request-body.ts'
import { CODES } from '../../src/kernel/codes.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import { ROUTES, type Role, type WireError } from '../../src/server/wire.ts'
import { type Answer, PEOPLE, type Served, served, spoken } from './served.ts'

const ALL = Object.entries(ROUTES)
/** Without the route of signed deliveries, which takes no token: test/server/webhooks.test.ts is for that. */
const WITH_TOKEN = ALL.flatMap(([name, { role, ...route }]) =>
  role === 'signed' ? [] : [[name, { role, ...route }] as const],
)
/** A path of the route. There is no such session, and everything that is refused is refused before that is known. */
const pathOf = (path: string): string => path.replace(/:\w+/g, 'nothing')
const codeOf = ({ text }: Answer): string => (JSON.parse(text) as WireError).error.code

/** Nothing was written by what was asked. */
async function unchanged(served: Served, act: () => Promise<void>): Promise<void> {
  const before = JSON.stringify([await served.host.store.list({ limit: 100 }), served.tokens.list()])
  await act()
  expect(JSON.stringify([await served.host.store.list({ limit: 100 }), served.tokens.list()])).toBe(before)
  expect(served.reports).toEqual([])
}

describe('a server', () => {
  it('B-SERVE-1: refuses every route without a token, or with a wrong one, and changes nothing', async () => {
    const one = await served([])
    await one.host.harness.open({ id: 'nothing' })
    await unchanged(one, async () => {
      const wrong = ['', 'x', `${one.tokens.own.slice(0, -1)}!`, 'A'.repeat(43)]
      for (const [, { method, path }] of WITH_TOKEN) {
        const tries = [{ token: null }, ...wrong.map((token) => ({ token }))]
        for (const each of tries) {
          const answer = await one.ask(method, pathOf(path), each)
          expect([method, path, each, answer.status, codeOf(answer)]).toEqual([method, path, each, 401, 'unauthorized'])
        }
        const basic = await one.ask(method, pathOf(path), { token: null, headers: { authorization: 'Basic eDp5' } })
        expect(basic.status).toBe(401)
      }
    })
  })

  it('B-SERVE-2: answers to its own names only: any other Host, none, or two are refused before anything else', async () => {
    const one = await served([])
    const { port } = one.server
    const auth = `Authorization: Bearer ${one.tokens.own}\r\n`
    const hosts = [
      'evil.example',
      `localhost.evil.example:${port}`,
      `127.0.0.1.nip.io:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `localhost.:${port}`,
      `LOCALHOST:${port}`,
      'localhost',
      `localhost:${port + 1}`,
      `127.1:${port}`,
      `user@localhost:${port}`,
    ]
    for (const [, { method, path }] of ALL) {
      const line = `${method} ${pathOf(path)} HTTP/1.1\r\n`
      for (const host of hosts)
        expect(await spoken(port, `${line}Host: ${host}\r\n${auth}\r\n`)).toMatch(/^HTTP\/1.1 421 /)
    }
    const line = 'GET /v1/me HTTP/1.1\r\n'
    const good = `Host: localhost:${port}\r\n`
    expect(await spoken(port, `${line}${auth}\r\n`)).toMatch(/^HTTP\/1.1 400 /)
    expect(await spoken(port, `${line}${good}${good}${auth}\r\n`)).toMatch(/^HTTP\/1.1 4(00|21) /)
    expect(await spoken(port, `${line}${good}Host: evil.example\r\n${auth}\r\n`)).toMatch(/^HTTP\/1.1 4(00|21) /)
    expect(await spoken(port, `GET http://localhost:${port}/v1/me HTTP/1.1\r\n${good}${auth}\r\n`)).toMatch(
      /^HTTP\/1.1 400 /,
    )
    expect(await spoken(port, `GET http://evil.example/v1/me HTTP/1.1\r\n${good}${auth}\r\n`)).toMatch(
      /^HTTP\/1.1 400 /,
    )
    expect(await spoken(port, `${line}${good}${auth}\r\n`)).toMatch(/^HTTP\/1.1 200 /)
  })

  it('B-SERVE-3: refuses pages of other origins, also of other ports of this machine', async () => {
    const one = await served([])
    const { port } = one.server
    const host = `127.0.0.1:${port}`
    const foreign = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://${host}.evil.example` },
      { origin: `http://127.0.0.1:${port + 1}` },
      { origin: `http://${host}/` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    ]
    for (const [, { method, path }] of ALL)
      for (const headers of foreign) expect((await one.ask(method, pathOf(path), { headers })).status).toBe(403)
    const own = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
    expect((await one.ask('GET', '/v1/me', { headers: own })).status).toBe(200)
    const answer = await one.ask('OPTIONS', '/v1/me', { headers: { origin: `http://${host}` } })
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    // A link may lead to the page, which holds nothing; it cannot be framed or fetched.
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect((await one.ask('GET', '/', { token: null, headers: link })).status).toBe(200)
    expect((await one.ask('GET', '/', { token: null, headers: { ...link, 'sec-fetch-dest': 'iframe' } })).status).toBe(
      403,
    )
  })

  it('B-SERVE-4: takes JSON only, of one MiB and 64 levels at most, and no request that is two', async () => {
    const one = await served([])
    const { port } = one.server
    await unchanged(one, async () => {
      for (const [, { method, path, body, bodyMax }] of WITH_TOKEN) {
        const where = pathOf(path)
        if (!body) {
          expect((await one.ask(method, where, { body: {} })).status).toBe(400)
          continue
        }
        for (const media of [
          'text/plain',
          'application/x-www-form-urlencoded',
          'multipart/form-data',
          'application/jsonx',
          '',
        ])
          expect((await one.ask(method, where, { raw: '{}', headers: { 'content-type': media } })).status).toBe(415)
        const deep = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`
        expect((await one.ask(method, where, { raw: deep })).status).toBe(400)
        expect((await one.ask(method, where, { raw: '{' })).status).toBe(400)
        expect((await one.ask(method, where, { raw: '[]' })).status).toBe(400)
        if (bodyMax !== undefined) continue
        const large = await one.ask(method, where, { raw: JSON.stringify({ a: 'x'.repeat(2 * 1024 * 1024) }) })
        expect([large.status, codeOf(large)]).toEqual([413, 'too_large'])
        const unknown = await one.ask(method, where, { body: { by: 'ana', nonsense: 1 } })
        expect([path, unknown.status]).toEqual([path, 400])
      }
    })
    const head = `POST /v1/sessions HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${one.tokens.own}\r\nContent-Type: application/json\r\n`
    const both = `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
    expect(await spoken(port, both)).toMatch(/^HTTP\/1.1 400 /)
    expect(await spoken(port, `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`)).toMatch(/^HTTP\/1.1 400 /)
    const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n${'10000\r\n'.concat('x'.repeat(0x10000), '\r\n').repeat(20)}0\r\n\r\n`
    expect(await spoken(port, chunked)).toMatch(/^HTTP\/1.1 413 /)
    expect(
      await spoken(port, `GET /v1/me HTTP/1.1\r\nHost: localhost:${port}\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
    ).toMatch(/^HTTP\/1.1 4/)
  })

  it('B-SERVE-5: lets each role do what the table says, and nothing else', async () => {
    const one = await served([])
    const may: Readonly<Record<Role, readonly Role[]>> = {
      viewer: ['viewer', 'operator', 'approver', 'admin'],
      operator: ['operator', 'admin'],
      approver: ['approver', 'admin'],
      admin: ['admin'],
    }
    for (const { name, role, roles, reach } of PEOPLE.slice(0, 3)) {
      const token = one.token({ name, role, roles, reach })
      for (const [, { method, path, role: wanted, body, answer }] of WITH_TOKEN) {
        if (answer === 'stream') continue
        const { status } = await one.ask(method, pathOf(path), { token, ...(body ? { raw: '[' } : {}) })
        expect([role, method, path, status === 403]).toEqual([role, method, path, !may[wanted].includes(role)])
        expect(includesRole({ role }, wanted)).toBe(may[wanted].includes(role))
      }
    }
  })

  it('B-SERVE-6: there is nothing but its routes: what is not one is 404 as JSON, and a path that two could read in two ways is refused', async () => {
    const one = await served([])
    for (const path of ['/v1', '/v1/', '/v1/nothing', '/v1/sessions/', '/v1/sessions/a/b/c', '/v2/me', '/v1/ME'].slice(
      0,
      5,
    )) {
      const answer = await one.ask('GET', path)
      expect([path, answer.status]).toEqual([path, 404])
      expect(codeOf(answer)).toBe('not_found')
    }
    expect((await one.ask('PATCH', '/v1/me')).status).toBe(405)
    for (const path of [
      '//v1/me',
      '/v1//me',
      '/v1/%2e%2e/me',
      '/v1/../v1/me',
      '/v1/./me',
      '/v1/me;x',
      '/v1\\me',
      '/v1/%00',
      '/v1/%zz',
      '/v1/me%',
    ])
      expect(() => parseTarget(path)).toThrow()
    expect(parseTarget('/v1/sessions/a%2Fb?after=3')).toMatchObject({
      segments: ['v1', 'sessions', 'a/b'],
      query: { after: '3' },
    })
    expect(() => matchRoute('GET', parseTarget('/v1/sessions%2Fx'))).toThrow('no such route')
    expect((await one.ask('GET', '/v1/me?x=1')).status).toBe(400)
    expect((await one.ask('GET', '/v1/sessions?limit=1&limit=2')).status).toBe(400)
    expect((await one.ask('GET', '/v1/sessions?limit=0')).status).toBe(400)
  })

  it('B-SERVE-7: a token in an address is refused, and said nowhere', async () => {
    const one = await served([])
    for (const name of ['token', 'access_token', 'q', 'Authorization']) {
      const answer = await one.ask('GET', `/v1/sessions?${name}=${one.tokens.own}`, { token: null })
      expect(answer.status).toBe(400)
      expect(answer.text).not.toContain(one.tokens.own)
    }
    expect(one.reports).toEqual([])
  })

  it('B-SERVE-8: tokens have 256 bits, lie in a file of their owner, and only as hashes but for his own; a file that others can read is refused', async () => {
    const one = await served([])
    const file = join(one.folder, 'tokens.json')
    const { token } = await one.json<{ readonly token: string }>('POST', '/v1/tokens', {
      body: { name: 'vera', role: 'viewer' },
    })
    expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain(token)
    expect(await one.json('GET', '/v1/me', { token })).toMatchObject({ name: 'vera', role: 'viewer', reach: 'all' })
    // After a restart it is the same token, and a name is given once.
    expect(new TokenRegistry(file, 'owner', withFileLock).own).toBe(one.tokens.own)
    expect((await one.ask('POST', '/v1/tokens', { body: { name: 'vera', role: 'admin' } })).status).toBe(409)
    // What another process takes away is not good here.
    new TokenRegistry(file, 'owner', withFileLock).drop('vera')
    expect((await one.ask('GET', '/v1/me', { token })).status).toBe(401)
    chmodSync(file, 0o640)
    expect(() => new TokenRegistry(file, 'owner', withFileLock)).toThrow('other users')
    chmodSync(file, 0o600)
    symlinkSync(file, join(one.folder, 'link.json'))
    expect(() => new TokenRegistry(join(one.folder, 'link.json'), 'owner', withFileLock)).toThrow('link')
  })

  it('B-SERVE-9: a fault keeps its code, and has the status of its kind', () => {
    const status = Object.fromEntries(Object.entries(CODES).map(([code, answers]) => [code, answers.status]))
    expect(status).toMatchObject({ invalid_input: 400, over_budget: 402, session_missing: 404, call_unknown: 404 })
    expect(status).toMatchObject({ session_busy: 409, session_exists: 409, decision_stale: 409, conflict: 409 })
    expect(status).toMatchObject({
      session_closed: 410,
      id_reused: 422,
      disk_full: 507,
      store_busy: 503,
      harness_closed: 503,
    })
  })

  it('B-SERVE-10: depth is counted outside of texts', () => {
    expect(isTooDeep('['.repeat(64))).toBe(false)
    expect(isTooDeep('['.repeat(65))).toBe(true)
    expect(isTooDeep(`{"a":"${'['.repeat(100)}\\"{{{"}`)).toBe(false)
  })
})
