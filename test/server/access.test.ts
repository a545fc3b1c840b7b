// Tokens that are dropped, made anew or out of time; what an access log says; and what a caller learns of sessions of others.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openAccessLog } from '../../src/cli/serve/access-log.ts'
import { parseSpanMs } from '../../src/cli/time-flags.ts'
import type { AccessEntry } from '../../src/server/access.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import type { WireHealth, OpenedAnswer, SessionPage, TokenMade } from '../../src/server/wire.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { until } from '../until.ts'
import { served, streamed } from './served.ts'

const DAY_MS = 86_400_000

describe('a token', () => {
  it('B-TOKEN-1: of a dropped name is refused until somebody says that it inherits, and then reaches what that one opened', async () => {
    const one = await served(['Hello.'])
    const ann = { name: 'ann', role: 'operator', reach: 'own' } as const
    const first = await one.json<TokenMade>('POST', '/v1/tokens', { body: ann })
    await one.json('POST', '/v1/sessions', { token: first.token, body: { input: 'secret' } })
    await one.json('DELETE', '/v1/tokens/ann')
    for (const name of ['ann', ' ann ', 'аnn']) {
      const again = await one.ask('POST', '/v1/tokens', { body: { ...ann, name } })
      expect([name, again.status, again.text]).toEqual([name, 409, expect.stringContaining('say inherit')])
    }
    const other = await one.json<TokenMade>('POST', '/v1/tokens', { body: { ...ann, name: 'ann2' } })
    expect((await one.json<SessionPage>('GET', '/v1/sessions', { token: other.token })).sessions).toEqual([])
    const heir = await one.json<TokenMade>('POST', '/v1/tokens', { body: { ...ann, inherit: true } })
    expect((await one.json<SessionPage>('GET', '/v1/sessions', { token: heir.token })).sessions).toHaveLength(1)
  })

  it('B-TOKEN-1: a name that an older version dropped is known by its sessions', async () => {
    const one = await served(['Hello.'])
    await one.host.harness.open({ id: 'old', labels: { owner: 'ann' } })
    const body = { name: 'ann', role: 'operator', reach: 'own' }
    expect((await one.ask('POST', '/v1/tokens', { body })).status).toBe(409)
    expect((await one.ask('POST', '/v1/tokens', { body: { ...body, inherit: true } })).status).toBe(201)
  })

  it('B-TOKEN-2: is good until its time is over, and its streams end then', async () => {
    const entries: AccessEntry[] = []
    const one = await served(['Hello.'], { serve: { onAccess: (entry) => void entries.push(entry) } })
    const body = { name: 'ci', role: 'viewer', expiresMs: 1_500 }
    const { token, expires = 0, made } = await one.json<TokenMade>('POST', '/v1/tokens', { body })
    expect(expires - made).toBe(1_500)
    expect((await one.ask('GET', '/v1/me', { token })).status).toBe(200)
    const { id } = await one.host.harness.open()
    const stream = streamed(one.server.port, `/v1/sessions/${id}/stream`, { authorization: `Bearer ${token}` })
    await until(() => expect(stream.over()).toBe(true))
    expect(stream.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'token' } })
    const late = await one.ask('GET', '/v1/me', { token })
    const unknown = await one.ask('GET', '/v1/me', { token: 'x'.repeat(43) })
    expect([late.status, late.text]).toEqual([401, unknown.text])
    expect(entries.at(-1)).toMatchObject({ type: 'refused', status: 401, name: null })
  })

  it('B-TOKEN-2: its time is kept in the file, and another process sees it', async () => {
    const one = await served([])
    const { token } = one.tokens.make({ name: 'ci', role: 'viewer', expiresMs: DAY_MS }, 1_000)
    const elsewhere = new TokenRegistry(join(one.folder, 'tokens.json'), 'owner', withFileLock)
    expect(elsewhere.principalOf(token, 1_000 + DAY_MS - 1).name).toBe('ci')
    expect(() => elsewhere.principalOf(token, 1_000 + DAY_MS)).toThrow('needs a token')
    expect(elsewhere.list()).toMatchObject([{ name: 'ci', expires: 1_000 + DAY_MS }])
  })

  it.each([
    ['30d', 30 * DAY_MS],
    ['12h', DAY_MS / 2],
    ['5m', 300_000],
  ])('B-TOKEN-3: --expires %s is %d ms', (text, ms) => expect(parseSpanMs('expires', text)).toBe(ms))

  it.each(['', '0d', '30', '1w', '-1d', '99999d', '1.5h'])('B-TOKEN-3: --expires "%s" is refused', (text) => {
    expect(() => parseSpanMs('expires', text)).toThrow('such as 30m, 12h or 30d')
  })
})

describe('the access log', () => {
  it('B-TOKEN-4: has a line of JSON for each sign-in and each refusal, and no token; it is bounded', async () => {
    const entries: AccessEntry[] = []
    const one = await served(['Hello.'], { serve: { onAccess: (entry) => void entries.push(entry) } })
    const viewer = one.token({ name: 'vera', role: 'viewer' })
    await one.ask('GET', '/v1/me', { token: viewer })
    await one.ask('GET', '/v1/health', { token: viewer })
    await one.ask('POST', '/v1/sessions', { token: viewer, body: {} })
    await one.ask('GET', '/v1/sessions', { token: 'y'.repeat(43) })
    await one.ask('GET', '/v1/sessions', { headers: { host: 'evil.example' } })
    expect(entries).toEqual([
      {
        at: expect.any(Number) as number,
        type: 'signed_in',
        from: '127.0.0.1',
        route: null,
        name: 'vera',
        role: 'viewer',
      },
      expect.objectContaining({ type: 'refused', status: 403, code: 'forbidden', route: 'open', name: 'vera' }),
      expect.objectContaining({ type: 'refused', status: 401, code: 'unauthorized', name: null }),
      expect.objectContaining({ type: 'refused', status: 421, code: 'bad_host', name: null }),
    ])
    expect(JSON.stringify(entries)).not.toContain(viewer)
    const write = openAccessLog({ folder: one.folder }, 500)
    for (let i = 0; i < 40; i++) for (const entry of entries) write(entry)
    const file = join(one.folder, 'access.log')
    for (const each of [file, `${file}.1`]) {
      expect(statSync(each).size).toBeLessThan(1_000)
      expect(statSync(each).mode & 0o077).toBe(0)
      for (const line of readFileSync(each, 'utf8').trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('type')
    }
  })

  it('B-TOKEN-4: a log that cannot be written stops no request', async () => {
    const fail = (): never => {
      throw new Error('no room')
    }
    const one = await served([], { serve: { onAccess: fail } })
    expect((await one.ask('GET', '/v1/me')).status).toBe(200)
    expect(one.reports).toEqual(['access: Error: no room'])
  })
})

describe('a session of somebody else', () => {
  it('B-SERVE-100: is counted neither by metrics nor by health for a token with the reach own', async () => {
    const one = await served(['Hello.'])
    const ann = one.token({ name: 'ann', role: 'viewer', reach: 'own' })
    await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    expect((await one.ask('GET', '/metrics')).text).toContain('terret_sessions 1\n')
    const { status, text } = await one.ask('GET', '/metrics', { token: ann })
    expect([status, text]).toEqual([403, expect.stringContaining('forbidden')])
    expect(await one.json<WireHealth>('GET', '/v1/health')).toMatchObject({ sessions: 1 })
    const health = await one.json<WireHealth>('GET', '/v1/health', { token: ann })
    expect(health).toMatchObject({ ok: true, due: 0, driving: 0, streams: 0 })
    for (const name of ['sessions', 'leases', 'bytes', 'waitedMs', 'network']) expect(health).not.toHaveProperty(name)
  })

  it('B-TOKEN-5: is told from a missing one by no route, no id and no key', async () => {
    const one = await served(['Hello.', 'Hello.'])
    const ann = one.token({ name: 'ann', role: 'operator', reach: 'own' })
    const eve = one.token({ name: 'eve', role: 'operator', reach: 'own' })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token: ann, body: { id: 'ann:plans' } })
    const { session: own } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token: eve, body: {} })
    const routes: readonly (readonly [string, string, unknown])[] = [
      ['GET', '', undefined],
      ['POST', '/messages', { input: 'x' }],
      ['POST', '/commands', { commands: [{ type: 'cancel' }] }],
      ['POST', '/answers', { callId: '1.0', content: 'x' }],
      ['POST', '/interrupt', {}],
      ['POST', '/wake', {}],
      ['POST', '/fork', {}],
      ['POST', '/undo', {}],
      ['GET', '/pins', undefined],
      ['POST', '/pins', { text: 'Only UTC.' }],
      ['DELETE', '/pins/1', undefined],
      ['POST', '/close', {}],
    ]
    for (const [method, path, body] of routes)
      for (const key of [{}, { 'idempotency-key': 'k' }]) {
        const ask = (id: string) => {
          const asked = { token: eve, headers: key, ...(body === undefined ? {} : { body }) }
          return one.ask(method, `/v1/sessions/${encodeURIComponent(id)}${path}`, asked)
        }
        const [theirs, none] = [await ask(session), await ask('ann:other')]
        expect([path, theirs.status, theirs.text.replaceAll(session, 'ID')]).toEqual([
          path,
          none.status,
          none.text.replaceAll('ann:other', 'ID'),
        ])
      }
    const open = (path: string, id: string) => one.ask('POST', path, { token: eve, body: { id } })
    for (const path of ['/v1/sessions', `/v1/sessions/${own}/fork`]) {
      const [theirs, none] = [await open(path, session), await open(path, 'ann:other')]
      expect([theirs.status, theirs.text]).toEqual([none.status, none.text])
      expect(theirs.status).toBe(400)
    }
    const below = async (sessionId: string) => {
      const body = { callId: '1.0', content: 'x', sessionId }
      const { status, text } = await one.ask('POST', `/v1/sessions/${own}/answers`, { token: eve, body })
      return [status, text.replaceAll(sessionId, 'ID')]
    }
    expect(await below(session)).toEqual(await below('ann:other'))
  })
})
