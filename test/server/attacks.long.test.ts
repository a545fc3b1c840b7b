// What an outsider with a token tried, and what must come of it.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sqlite } from '../../src/index.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import type { EventsAnswer, OpenedAnswer, UsageAnswer } from '../../src/server/wire.ts'
import { makeOldSession } from '../old-session.ts'
import { until } from '../until.ts'
import { served, spoken, streamed } from './served.ts'
import { forgeFile } from '../../sim/forge-file.ts'
import type { Portable } from '../../src/archive/portable.ts'
import type { Event } from '../../src/kernel/event.ts'

const hashOf = (parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex')

describe('a server, attacked from outside', () => {
  it('B-SERVE-80: a token that another server drops, or makes anew with fewer rights, ends its streams here', async () => {
    const one = await served(['Hello.'])
    const kept = one.token({ name: 'kept', role: 'viewer' })
    const dropped = one.token({ name: 'dropped', role: 'viewer' })
    const lowered = one.token({ name: 'lowered', role: 'admin' })
    const open = (token: string) =>
      streamed(
        one.server.port,
        '/v1/stream',
        { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        '{"cards":true}',
      )
    const [a, b, c] = [open(kept), open(dropped), open(lowered)]
    await until(() => expect([a, b, c].map((each) => each.frames.length > 0)).toEqual([true, true, true]))
    const elsewhere = new TokenRegistry(join(one.folder, 'tokens.json'), 'owner', withFileLock)
    elsewhere.drop('dropped')
    elsewhere.drop('lowered')
    elsewhere.make({ name: 'lowered', role: 'viewer', reach: 'own', inherit: true }, 1)
    await until(() => expect([b.over(), c.over()]).toEqual([true, true]))
    expect(b.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'token' } })
    expect(a.over()).toBe(false)
    a.cut()
  })

  it('B-SERVE-81: a session that somebody else made under the id of a guessed key is not used', async () => {
    const one = await served(['Hello.'])
    const alice = one.token({ name: 'alice', role: 'operator', reach: 'own' })
    const mallory = one.token({ name: 'mallory', role: 'operator' })
    const body = { input: 'secret' }
    const key = hashOf(['alice', 'daily'])
    const start = `${key.slice(0, 8)}-${key.slice(8, 12)}-${key.slice(12, 16)}-${key.slice(16, 20)}-`
    const id = `${start}${hashOf(['open', '{}', JSON.stringify(body)]).slice(0, 12)}`
    const headers = { 'idempotency-key': 'daily' }
    // Another id under the same key stands in nobody's way; the very one is refused.
    await one.json('POST', '/v1/sessions', { token: mallory, body: { id: `${start}000000000000` } })
    expect((await one.ask('POST', '/v1/sessions', { token: alice, body: { input: 'other' }, headers })).status).toBe(
      201,
    )
    const other = { 'idempotency-key': 'weekly' }
    const week = hashOf(['alice', 'weekly'])
    const taken = `${week.slice(0, 8)}-${week.slice(8, 12)}-${week.slice(12, 16)}-${week.slice(16, 20)}-${id.slice(-12)}`
    await one.json('POST', '/v1/sessions', { token: mallory, body: { id: taken } })
    expect((await one.ask('POST', '/v1/sessions', { token: alice, body, headers: other })).status).toBe(422)
    const { head } = await one.json<EventsAnswer>('GET', `/v1/sessions/${taken}/events`, { token: mallory })
    expect(head).toBe(1)
  })

  it('B-SERVE-81: nor is one under the id of a guessed key of /mcp', async () => {
    const one = await served(['Hello.'])
    const alice = one.token({ name: 'alice', role: 'operator', reach: 'own' })
    const mallory = one.token({ name: 'mallory', role: 'operator' })
    const accept = 'application/json, text/event-stream'
    const rpc = (method: string, params: object, session?: string) =>
      one.ask('POST', '/mcp', {
        token: alice,
        body: { jsonrpc: '2.0', id: 1, method, params },
        headers: { accept, ...(session === undefined ? {} : { 'mcp-session-id': session }) },
      })
    const clientInfo = { name: 'test', version: '1' }
    const begun = await rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
    const connection = String(begun.headers['mcp-session-id'])
    const start = (key: string) => rpc('tools/call', { name: 'start', arguments: { input: 'secret', key } }, connection)
    const taken = `mcp-${hashOf(['alice', 'k']).slice(0, 32)}`
    await one.json('POST', '/v1/sessions', { token: mallory, body: { id: taken } })
    expect((await start('k')).text).toContain('id_reused')
    const { head } = await one.json<EventsAnswer>('GET', `/v1/sessions/${taken}/events`, { token: mallory })
    expect(head).toBe(1)
    expect((await start('free')).text).not.toContain('id_reused')
    expect((await start('free')).text).not.toContain('id_reused')
  })

  it('B-SERVE-82: a second spelling of a route or an id is refused', async () => {
    const one = await served(['Hello.'])
    for (const path of ['/%761/me', '/v1/%6de', '/v1/tok%65ns', '/v1/sessions/%61', '/v1/sessions/%7e', '/v1/m%5F'])
      expect([path, (await one.ask('GET', path)).status]).toEqual([path, 400])
    const session = 'a/b %é~c'
    const store = sqlite(join(one.folder, 'terret.db'))
    await makeOldSession(store, session)
    await store.close()
    expect((await one.ask('GET', `/v1/sessions/${encodeURIComponent(session)}`)).status).toBe(200)
  })

  it('B-SERVE-83: pages of large events are whole forwards and backwards, a search stops at its bytes, and a conversation of that size is not read at once', async () => {
    const one = await served(['Hello.'], { harness: { worker: { drives: false } } })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const sizes = [700_000, 10, 300_000, 10, 10, 900_000, 900_000, 10, 500_000, 10]
    for (const [i, size] of sizes.entries())
      await one.json('POST', `/v1/sessions/${session}/messages`, { body: { input: `m${i} ${'x'.repeat(size)}` } })
    const walk = async (from: 'after' | 'before', query: string): Promise<readonly number[]> => {
      const seen: number[] = []
      for (let at: number | null = from === 'after' ? 0 : sizes.length + 2; at !== null; ) {
        const path = `/v1/sessions/${session}/events?${from}=${at}${query}`
        const page: EventsAnswer = await one.json('GET', path)
        const seqs = page.events.map(({ seq }) => seq)
        if (from === 'after') seen.push(...seqs)
        else seen.unshift(...seqs)
        at = page[from]
      }
      return seen
    }
    const all = Array.from({ length: sizes.length + 1 }, (_, i) => i + 1)
    expect(await walk('after', '')).toEqual(all)
    expect(await walk('before', '')).toEqual(all)
    expect(await walk('before', '&q=m5')).toEqual([7])
    for (let i = 0; i < 40; i++)
      await one.json('POST', `/v1/sessions/${session}/messages`, { body: { input: 'y'.repeat(1_000_000) } })
    const first = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events?q=nowhere`)
    expect(first.events).toEqual([])
    expect(first.scanned).toBeLessThan(first.head)
    expect(first.after).toBe(first.scanned)
    const whole = await one.ask('GET', `/v1/sessions/${session}/messages`)
    expect([whole.status, JSON.parse(whole.text)]).toMatchObject([413, { error: { code: 'too_large' } }])
    const { session: fork } = await one.json<OpenedAnswer>('POST', `/v1/sessions/${session}/fork`, { body: {} })
    expect((await one.ask('GET', `/v1/sessions/${fork}/messages`)).status).toBe(413)
  })

  it('B-SERVE-84: a body that breaks off is not reported as an error', async () => {
    const one = await served(['Hello.'])
    const head = `POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:${one.server.port}\r\nAuthorization: Bearer ${one.tokens.own}\r\nContent-Type: application/json\r\n`
    const socket = connect(one.server.port, '127.0.0.1')
    socket.write(`${head}Content-Length: 100\r\n\r\n{"a"`, () => socket.destroy())
    await spoken(one.server.port, `${head}Transfer-Encoding: chunked\r\n\r\n2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`)
    await sleep(50)
    expect((await one.ask('GET', '/v1/me')).status).toBe(200)
    expect(one.reports).toEqual([])
  })

  it('B-SERVE-86: a new session under the id of a removed one has spent nothing', async () => {
    const one = await served([{ text: 'Hello.', usage: { inputTokens: 1, outputTokens: 1 }, cost: 5 }])
    const token = one.token({ name: 'vera', role: 'operator', reach: 'own' })
    const body = { id: 'vera:s' }
    await one.json('POST', '/v1/sessions', { token, body: { ...body, input: 'Hi.' } })
    await one.json('GET', '/v1/sessions/vera:s/result?wait=10')
    expect((await one.json<UsageAnswer>('GET', '/v1/usage', { token })).rows).toHaveLength(1)
    await until(async () => expect((await one.ask('DELETE', '/v1/sessions/vera:s')).status).toBe(200))
    await one.json('POST', '/v1/sessions', { token, body })
    expect((await one.json<UsageAnswer>('GET', '/v1/usage', { token })).rows).toEqual([])
  })

  it('B-SERVE-87: a role of somebody else is refused before the call waits', async () => {
    const one = await served(['Hello.'])
    const bob = one.token({ name: 'bob', role: 'approver', roles: ['helper'] })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const body = { callId: '4.0', allow: true, digest: 'd', role: 'lead' }
    expect((await one.ask('POST', `/v1/sessions/${session}/decisions`, { token: bob, body })).status).toBe(403)
  })

  it('B-SERVE-88: names that no path can have are refused', async () => {
    const one = await served(['Hello.'])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    for (const id of ['.', '..']) {
      expect((await one.ask('POST', '/v1/sessions', { body: { id } })).status).toBe(400)
      expect((await one.ask('POST', `/v1/sessions/${session}/fork`, { body: { id } })).status).toBe(400)
    }
  })

  it('B-SERVE-89: messages, stops, pauses and the end of a session have the name of the token', async () => {
    const one = await served(['Hello.'])
    const otto = one.token({ name: 'otto', role: 'operator' })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const commands = [
      { type: 'message', input: 'a' },
      { type: 'redirect', text: 'b' },
    ]
    await one.json('POST', `/v1/sessions/${session}/commands`, { token: otto, body: { commands } })
    const { events } = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events?types=user.message`)
    expect(events).toMatchObject([{ by: 'otto' }, { by: 'otto' }])
    const said = (path: string, body: object) =>
      one.json('POST', `/v1/sessions/${session}/${path}`, { token: otto, body })
    await said('commands', { commands: [{ type: 'pause', reason: 'lunch' }] })
    await said('commands', { commands: [{ type: 'resume' }] })
    await said('commands', { commands: [{ type: 'cancel' }] })
    await said('interrupt', { mode: 'pause' })
    await said('close', {})
    const stops = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events?types=user.interrupt`)
    expect(stops.events).toMatchObject([
      { mode: 'pause', by: 'otto', why: 'lunch' },
      { mode: 'resume', by: 'otto' },
      { mode: 'stop', by: 'otto' },
      { mode: 'pause', by: 'otto' },
      { mode: 'stop', by: 'otto' },
    ])
  })

  it('B-SERVE-95: with a token file that cannot be used every request is refused, and its path is only in the output of the server', async () => {
    const one = await served(['Hello.'])
    const token = one.tokens.own
    const path = join(one.folder, 'tokens.json')
    const good = readFileSync(path, 'utf8')
    writeFileSync(path, JSON.stringify({ own: token, others: [null] }))
    for (let i = 0; i < 2; i++) {
      const { status, text } = await one.ask('GET', '/v1/sessions', { token })
      expect([status, text.includes(one.folder)]).toEqual([503, false])
    }
    expect(one.reports.join()).toContain(path)
    writeFileSync(path, good)
    expect((await one.ask('GET', '/v1/sessions', { token })).status).toBe(200)
  })

  it('B-SERVE-90: a file with numbers that no store goes on from is refused, and everything can be listed', async () => {
    const one = await served(['Hello.'])
    await one.json('POST', '/v1/sessions', { body: { id: 's', input: 'Hi.' } })
    await one.json('GET', '/v1/sessions/s/result?wait=10')
    const { text } = await one.ask('GET', '/v1/sessions/s/export?format=json')
    const max = Number.MAX_SAFE_INTEGER
    const spoilt: readonly ((event: Record<string, unknown>) => object)[] = [
      (event) => (event['epoch'] === 0 ? event : { ...event, epoch: max }),
      (event) => (event['type'] === 'agent.message' ? { ...event, cost: max } : event),
      (event) =>
        event['type'] === 'agent.message' ? { ...event, usage: { inputTokens: max, outputTokens: 1 } } : event,
    ]
    for (const [i, spoil] of spoilt.entries()) {
      const body = forgeFile(JSON.parse(text) as Portable, (file) => {
        file.session = `t${i}`
        file.events = file.events.map((event) => spoil(event as unknown as Record<string, unknown>) as Event)
      })
      expect([i, (await one.ask('POST', '/v1/import', { body })).status]).toEqual([i, 400])
    }
    for (const path of ['/v1/sessions', '/v1/usage', '/v1/pending'])
      expect((await one.ask('GET', path)).status).toBe(200)
  })

  it('B-SERVE-91: undo without a run says so', async () => {
    const one = await served(['Hello.'])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const { status, text } = await one.ask('POST', `/v1/sessions/${session}/undo`, { body: {} })
    expect([status, text]).toEqual([400, expect.stringContaining('no run yet')])
  })
})
