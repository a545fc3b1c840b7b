// Where a server is at its edge: watched for long, without room on its disk in the middle of a run, and asked for what makes no sense.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { EventsAnswer, OpenedAnswer, SessionAnswer, SessionPage } from '../../src/server/wire.ts'
import type { Database } from '../../src/stores/sqlite/driver.ts'
import { tool } from '../runtime/scene.ts'
import { driverOf, makeFile, open } from '../stores/folder.ts'
import { until } from '../until.ts'
import { type Served, served, spoken, streamed } from './served.ts'

async function opened(one: Served, input?: string): Promise<string> {
  const body = input === undefined ? {} : { input }
  return (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body })).session
}

/** As many as an hour has. */
const BEATS = 240

describe('a server', () => {
  it('B-SERVE-46: watched for as many beats as an hour has, an idle session is as it was: its log, its card and its epoch', async () => {
    const one = await served(['Done.'], { serve: { sse: { beatMs: 5 } } })
    const session = await opened(one, 'Go.')
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const before = [await one.host.store.card(session), (await one.host.store.read(session, 0)).events]
    const headers = { authorization: `Bearer ${one.tokens.own}` }
    const alone = streamed(one.server.port, `/v1/sessions/${session}/stream`, headers)
    const body = JSON.stringify({ sessions: { [session]: 0 }, cards: true, deltas: true })
    const many = streamed(one.server.port, '/v1/stream', { ...headers, 'content-type': 'application/json' }, body)
    await until(() => expect(Math.min(alone.beats(), many.beats())).toBeGreaterThan(BEATS))
    expect([await one.host.store.card(session), (await one.host.store.read(session, 0)).events]).toEqual(before)
    expect([alone.over(), many.over(), one.reports]).toEqual([false, false, []])
    for (const stream of [alone, many]) stream.cut()
  })

  it('B-SERVE-47: without room on the disk a run stops where it is, reads go on and health says it; with room again the run goes on and does nothing twice', async () => {
    let full = false
    // As SQLite says it when the write-ahead log cannot grow: for every write, and for no read.
    const changed = (db: Database): Database => ({
      ...db,
      get isTransaction() {
        return db.isTransaction
      },
      prepare: (sql) => {
        const real = db.prepare(sql)
        const get: typeof real.get = (...values) => {
          if (full)
            throw Object.assign(new Error('database or disk is full'), { errcode: 13, code: 'ERR_SQLITE_ERROR' })
          return real.get(...values)
        }
        return sql === 'BEGIN IMMEDIATE'
          ? { get, run: (...values) => real.run(...values), all: (...values) => real.all(...values) }
          : real
      },
    })
    const store = open(makeFile(), { loadDriver: () => driverOf(changed) })
    const ran: number[] = []
    const fills = tool('fill', {
      execute: ({ n }) => {
        full = ran.push(n) === 1
        return 'filled'
      },
    })
    const script = [{ calls: [{ tool: 'fill', args: { n: 1 } }] }, 'Done.']
    const one = await served(script, { store, harness: { tools: [fills] } })
    const session = await opened(one, 'Go.')
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ ok: false }))
    const page = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events`)
    expect(page.events.some(({ type }) => type === 'agent.tool_result' || type === 'run.settled')).toBe(false)
    expect((await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)).card.status).toBe('running')
    expect(
      (await one.ask('POST', `/v1/sessions/${session}/messages`, { body: { input: 'x'.repeat(300_000) } })).status,
    ).toBe(507)
    full = false
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ ok: true, trouble: null }))
    await until(async () =>
      expect((await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)).card.outcome).toBe('completed'),
    )
    const { events } = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events`)
    expect(events.filter(({ type }) => type === 'agent.tool_result')).toHaveLength(1)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
  })

  it('B-SERVE-49: what makes no sense is refused with one sentence and a stable code, and changes nothing', async () => {
    const one = await served([])
    for (let n = 0; n < 3; n += 1) await opened(one)
    const before = (await one.json<SessionPage>('GET', '/v1/sessions')).sessions
    const refused = async (...ask: Parameters<Served['ask']>) => {
      const { status, text } = await one.ask(...ask)
      const { error } = JSON.parse(text) as { readonly error: { readonly code: string; readonly message: string } }
      expect(error.message).toMatch(/^[A-Z].*\.$/s)
      return [status, error.code]
    }
    expect(await refused('GET', '/v1/sessions/..%2f..%2fetc%2fpasswd')).toEqual([404, 'session_missing'])
    expect(await refused('GET', '/v1/sessions/a%2Fb/events')).toEqual([404, 'session_missing'])
    expect(await refused('GET', '/v1/sessions/a/b/events')).toEqual([404, 'not_found'])
    const { next } = await one.json<SessionPage>('GET', '/v1/sessions?limit=1&status=idle')
    expect(
      await refused('GET', `/v1/sessions?limit=1&status=running&cursor=${encodeURIComponent(next ?? '')}`),
    ).toEqual([400, 'invalid_input'])
    expect(await refused('GET', '/v1/sessions?cursor=nonsense')).toEqual([400, 'invalid_input'])
    for (const raw of ['[]', '["a"]', 'null', '"x"', '7', '{"input":1'])
      expect([raw, ...(await refused('POST', '/v1/sessions', { raw }))]).toEqual([raw, 400, 'invalid_input'])
    const head = `GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1:${one.server.port}\r\n`
    const bearer = `Authorization: Bearer ${one.tokens.own}\r\n`
    expect(await spoken(one.server.port, `${head}${bearer}Connection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 200/)
    expect(await spoken(one.server.port, `${head}${bearer}${bearer}\r\n`)).toMatch(/^HTTP\/1.1 401/)
    expect((await one.json<SessionPage>('GET', '/v1/sessions')).sessions).toEqual(before)
  })

  it('B-SERVE-50: a reader that takes nothing is left, and may come back where it was', async () => {
    const one = await served([], { harness: { worker: { drives: false } }, serve: { sse: { stalledMs: 100 } } })
    const session = await opened(one, 'Go.')
    const parts = [{ type: 'text', text: 'x'.repeat(500_000) }] as const
    for (let n = 0; n < 30; n += 1) {
      const event = { type: 'user.message', id: `m${n}`, parts, when: 'after' } as const
      await one.host.store.commit([{ session, lane: 'inbox', events: [event] }])
    }
    const socket = connect(one.server.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    const head = `Host: 127.0.0.1:${one.server.port}\r\nAuthorization: Bearer ${one.tokens.own}`
    socket.write(`GET /v1/sessions/${session}/stream HTTP/1.1\r\n${head}\r\n\r\n`)
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 1 }))
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 0 }))
    socket.destroy()
    const back = streamed(one.server.port, `/v1/sessions/${session}/stream?after=3`, {
      authorization: `Bearer ${one.tokens.own}`,
    })
    await until(() => expect(back.frames.find(({ event }) => event === 'event')?.id).toBe('4'))
    back.cut()
  })
})
