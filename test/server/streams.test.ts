// Streams: every event once however often the connection is lost, what is being said from the middle on, many sessions at once and what
// is gone.
import { describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/index.ts'
import type { OpenedAnswer } from '../../src/server/wire.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { type Frame, type Served, served, streamed } from './served.ts'

const auth = (one: Served, more = {}): Record<string, string> => ({
  authorization: `Bearer ${one.tokens.own}`,
  ...more,
})

async function opened(one: Served, input: string | null = 'Go.'): Promise<string> {
  const body = input === null ? {} : { input }
  return (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body })).session
}

const seqsOf = (frames: readonly Frame[]): readonly number[] =>
  frames.filter(({ event }) => event === 'event').map(({ data }) => data['seq'] as number)

async function settled(one: Served, session: string): Promise<readonly Event[]> {
  return until(async () => {
    const { events } = await one.host.store.read(session, 0)
    expect(events.at(-1)?.type).toBe('run.settled')
    return events
  })
}

describe('a stream', () => {
  it('B-SERVE-21: cut at every frame and opened again with the last id, it has every event once (F53)', async () => {
    const one = await served([{ calls: [{ tool: 'look', args: { n: 1 } }] }, 'Done.'], {
      harness: { tools: [tool('look')] },
    })
    const session = await opened(one)
    const log = await settled(one, session)
    const seen: number[] = []
    for (let last = 0; last < log.length; ) {
      const headers = auth(one, last > 0 ? { 'last-event-id': String(last) } : {})
      // `after` says something else: the header counts.
      const stream = streamed(one.server.port, `/v1/sessions/${session}/stream?after=0`, headers)
      await until(() => expect(seqsOf(stream.frames).length).toBeGreaterThan(0))
      stream.cut()
      const next = stream.frames.find(({ event }) => event === 'event')
      expect(stream.frames[0]).toMatchObject({ event: 'hello', data: { store: one.host.storeId, head: log.length } })
      expect(next?.id).toBe(String(next?.data['seq']))
      last = next?.data['seq'] as number
      seen.push(last)
    }
    expect(seen).toEqual(log.map(({ seq }) => seq))
  })

  it('B-SERVE-22: a cursor beyond the log, or of another store, is refused (409), never answered from elsewhere', async () => {
    const one = await served(['Done.'])
    const session = await opened(one)
    await settled(one, session)
    const path = `/v1/sessions/${session}/stream`
    const beyond = await one.ask('GET', path, { headers: { 'last-event-id': '999' } })
    expect([beyond.status, beyond.text]).toEqual([409, expect.stringContaining('store changed')])
    const other = await one.ask('GET', `${path}?store=other`)
    expect([other.status, other.text]).toEqual([409, expect.stringContaining('store changed')])
    const many = await one.ask('POST', '/v1/stream', { body: { sessions: { [session]: 999 } } })
    expect(many.status).toBe(409)
    expect((await one.ask('GET', path, { headers: { 'last-event-id': 'x' } })).status).toBe(400)
  })

  it('B-SERVE-23: one that comes in the middle of a reply gets what was said so far, once, and then the rest', async () => {
    const deltas = Array.from({ length: 40 }, (_, i) => `word${i} `)
    const one = await served([{ deltas, stall: true }])
    const session = await opened(one)
    const first = streamed(one.server.port, `/v1/sessions/${session}/stream`, auth(one))
    const text = (frames: readonly Frame[]): string => {
      let said = ''
      for (const { event, data } of frames) {
        if (event !== 'delta') continue
        expect(data['offset']).toBe(said.length)
        said += data['text'] as string
      }
      return said
    }
    await until(() => expect(text(first.frames)).toBe(deltas.join('')))
    const late = streamed(one.server.port, `/v1/sessions/${session}/stream`, auth(one))
    await until(() => expect(text(late.frames)).toBe(deltas.join('')))
    expect(late.frames.filter(({ event, id }) => event === 'delta' && id !== undefined)).toEqual([])
    const none = streamed(one.server.port, `/v1/sessions/${session}/stream?deltas=0`, auth(one))
    await until(() => expect(seqsOf(none.frames)).toEqual(seqsOf(late.frames)))
    expect(none.frames.some(({ event }) => event === 'delta')).toBe(false)
    for (const stream of [first, late, none]) stream.cut()
    await one.json('POST', `/v1/sessions/${session}/interrupt`)
  })

  it('B-SERVE-24: watching a session changes nothing of it: neither its log nor its epoch', async () => {
    const one = await served(['Done.'])
    const session = await opened(one)
    await settled(one, session)
    const before = JSON.stringify(await one.host.store.card(session))
    const streams = Array.from({ length: 20 }, () =>
      streamed(one.server.port, `/v1/sessions/${session}/stream`, auth(one)),
    )
    await until(() => expect(streams.every(({ frames }) => seqsOf(frames).length > 3)).toBe(true))
    await one.json('GET', `/v1/sessions/${session}`)
    await one.json('GET', `/v1/sessions/${session}/result`)
    expect(JSON.stringify(await one.host.store.card(session))).toBe(before)
    expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 20 })
    for (const stream of streams) stream.cut()
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 0 }))
  })

  it('B-SERVE-25: one stream has many sessions and the cards that change; one that is removed is gone', async () => {
    const one = await served(['One.', 'Two.', 'Three.'])
    const [a, b] = [await opened(one), await opened(one)]
    const [logA] = await Promise.all([settled(one, a), settled(one, b)])
    const body = JSON.stringify({ sessions: { [a]: 0, [b]: 2, 'not-there': 0 }, cards: true })
    const headers = auth(one, { 'content-type': 'application/json' })
    const stream = streamed(one.server.port, '/v1/stream', headers, body)
    const of = (session: string) =>
      stream.frames.filter(({ event, data }) => event === 'event' && data['session'] === session)
    await until(() => expect([of(a).length, of(b)[0]?.data['seq']]).toEqual([logA.length, 3]))
    expect(stream.frames.filter(({ event }) => event === 'gone')).toMatchObject([{ data: { session: 'not-there' } }])
    expect(stream.frames.some(({ id }) => id !== undefined)).toBe(false)
    const c = await opened(one)
    await until(() =>
      expect(
        stream.frames.some(
          ({ event, data }) => event === 'card' && data['session'] === c && data['outcome'] === 'completed',
        ),
      ).toBe(true),
    )
    await one.json('DELETE', `/v1/sessions/${b}`)
    await until(() =>
      expect(
        stream.frames.filter(({ event, data }) => event === 'gone' && data['session'] === b).length,
      ).toBeGreaterThan(0),
    )
    await one.json('POST', `/v1/sessions/${a}/messages`, { body: { input: 'Still there?' } })
    await until(() => expect(of(a).length).toBeGreaterThan(logA.length))
    stream.cut()
  })

  it('B-SERVE-26: a token that is dropped ends its streams, and a server that closes says bye to all', async () => {
    const one = await served(['Done.'])
    const session = await opened(one)
    await settled(one, session)
    const vera = one.token({ name: 'vera', role: 'viewer' })
    const hers = streamed(one.server.port, `/v1/sessions/${session}/stream`, { authorization: `Bearer ${vera}` })
    const mine = streamed(one.server.port, `/v1/sessions/${session}/stream`, auth(one))
    await until(() => expect([hers.frames.length, mine.frames.length].every((n) => n > 0)).toBe(true))
    await one.json('DELETE', '/v1/tokens/vera')
    await until(() => expect(hers.over()).toBe(true))
    expect(hers.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'token' } })
    expect(mine.over()).toBe(false)
    await one.server.close()
    await until(() => expect(mine.over()).toBe(true))
    expect(mine.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'closing' } })
  })
})
