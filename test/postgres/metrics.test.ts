// What a store in a database counts, with two stores on one database as two processes would have it.
import { describe, expect, it, onTestFinished } from 'vitest'
import { metricsText } from '../../src/server/metrics.ts'
import { postgres, type PostgresOptions } from '../../src/stores/postgres/postgres.ts'
import { admit, begin, create, message, note, TTL, write } from '../contract/fixture.ts'
import { until } from '../until.ts'
import { noPostgres } from './server.ts'
import { database, proxyTo } from './stage.ts'

async function opened(options: PostgresOptions) {
  const store = postgres(options)
  onTestFinished(() => store.close())
  await store.open()
  const met = async () => {
    const { network } = await store.health()
    if (!network) throw new Error('a store in a database says nothing of its network')
    return network
  }
  return { store, met }
}

describe.skipIf(noPostgres)('the numbers of a store in a database', () => {
  it('B-OPS-2: writes, claims and those in vain are counted for the process that made them', async () => {
    const { url } = await database()
    const [one, two] = await Promise.all([opened({ url }), opened({ url })])
    await create(one.store, 's')
    await admit(one.store, 's', message('m'))
    expect(await one.store.claim('s', 'a', TTL)).not.toBeNull()
    expect(await two.store.claim('s', 'b', TTL)).toBeNull()
    expect((await one.met()).claims).toEqual({ asked: 1, vain: 0 })
    expect((await two.met()).claims).toEqual({ asked: 1, vain: 1 })
    await create(two.store, 't')
    await admit(two.store, 't', message('m'))
    expect([...((await two.store.take?.('b', TTL, { limit: 5 })) ?? [])]).toHaveLength(1)
    expect((await two.met()).claims).toEqual({ asked: 2, vain: 1 })
    const { written, moved, lost, server } = await one.met()
    expect([written, moved, lost]).toEqual([3, 0, 0])
    expect(server.connectionsMax).toBeGreaterThanOrEqual(server.connections)
    expect(server.connections).toBeGreaterThanOrEqual(2)
    expect(server.frozenAge).toBeGreaterThan(0)
  })

  it('B-OPS-2: an answer that was lost is counted, and the connection that was made for it', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const { store, met } = await opened({ url: server.url(name, undefined, proxy.port) })
    await create(store, 's')
    const { connects } = await met()
    let left = 1
    proxy.loses = (text) => /insert into/.test(text) && left-- > 0
    await admit(store, 's', message('m'))
    const after = await met()
    expect(after.lost).toBe(1)
    expect(after.connects).toBeGreaterThan(connects)
    expect(await store.sent('s', 'm')).toBe(2)
  })

  it('B-OPS-3: news is measured from its commit to its being heard, and a forged time is not counted', async () => {
    const { server, name, url } = await database()
    const [one, two] = await Promise.all([opened({ url }), opened({ url })])
    const owner = await begin(one.store, 's')
    let told = 0
    two.store.watch('s', () => void (told += 1))
    await until(async () => {
      await write(one.store, owner, [note('x')])
      expect((await two.met()).news.heard).toBeGreaterThan(0)
    })
    const { heard, lagMs, lagMsMax } = (await two.met()).news
    expect(told).toBeGreaterThan(0)
    expect(lagMs).toBeGreaterThanOrEqual(0)
    expect(lagMsMax).toBeLessThanOrEqual(lagMs)
    expect((await one.met()).news.heard).toBe(0)
    for (const on of ['-1e300', '"now"', '1', 'null'])
      await server.query(`select pg_notify('terret_terret', '{"by":"x","on":${on},"at":[["s",1]]}')`, name)
    await write(one.store, owner, [note('y')])
    await until(async () => expect((await two.met()).news.heard).toBeGreaterThan(heard))
    expect((await two.met()).news.lagMsMax).toBeLessThan(60_000)
  })

  it('B-OPS-3: without hints it is measured by the look that found it', async () => {
    const { url } = await database()
    const [one, two] = await Promise.all([opened({ url, hints: false }), opened({ url, hints: false })])
    const owner = await begin(one.store, 's')
    await two.store.card('s')
    two.store.watch('s', () => {})
    await until(async () => {
      await write(one.store, owner, [note('x')])
      expect((await two.met()).news.missed).toBeGreaterThan(0)
    })
    const { heard, missed } = (await two.met()).news
    expect(heard).toBe(missed)
  })

  it('B-OPS-4: as Prometheus reads them, each with its type, and no id or name', async () => {
    const { url } = await database()
    const { store } = await opened({ url })
    await create(store, 'secret-session')
    const about = { trouble: null, now: 0, code: 'x', drives: true, claims: { asked: 0, vain: 0 }, accounts: [] }
    const text = metricsText({ ok: true, writeMs: 1.5, ...about, store: await store.health() }, 3)
    expect(text).toContain('# TYPE terret_due gauge\nterret_due 0\n')
    expect(text).toContain('terret_sessions 1\n')
    expect(text).toContain('terret_write_seconds 0.0015\n')
    expect(text).not.toContain('secret')
    for (const line of text.trimEnd().split('\n'))
      expect(line).toMatch(
        /^(# HELP terret_\w+ .+|# TYPE terret_\w+ (gauge|counter)|terret_\w+ -?\d+(\.\d+)?(e[+-]?\d+)?)$/,
      )
    const samples = text.split('\n').filter((line) => line.startsWith('terret_'))
    expect(new Set(samples.map((line) => line.split(' ')[0])).size).toBe(samples.length)
    const down = metricsText({ ok: false, writeMs: null, ...about, store: null }, 0)
    expect(down.split('\n').filter((line) => line.startsWith('terret_'))).toEqual(['terret_up 0', 'terret_driving 0'])
  })
})
