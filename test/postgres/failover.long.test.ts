// A primary that dies or stops, and a standby that takes its place, under processes that go on. A table of its own stands for the
// store: each number is written once, and what was acknowledged must be there.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import type { ConnectOptions } from '../../src/stores/postgres/connect-options.ts'
import { buildNetwork } from '../../src/stores/postgres/network.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { UnknownOutcomeError } from '../../src/stores/postgres/sql.ts'
import { until } from '../until.ts'
import { noPostgres, PASSWORD, type Server, urlOf } from './server.ts'
import { ownServer, ownStandby } from './stage.ts'

function connections(options: ConnectOptions): PostgresConnections {
  const made = new PostgresConnections(options)
  onTestFinished(() => made.close())
  return made
}

async function pair(): Promise<{ readonly old: Server; readonly next: Server; readonly url: string }> {
  const old = await ownServer()
  await old.query('create table t (n bigint primary key)')
  const next = await ownStandby(old)
  // The standby is named first, so that it is not the order that finds the primary.
  return { old, next, url: urlOf([next, old]) }
}

const where = ['where', 'select inet_server_port() as port', []] as const

/** Writes numbers, one after the other, until it is stopped. An answer that was lost is asked again, as the store's lane does. */
function writer(all: PostgresConnections) {
  const acknowledged: number[] = []
  let stopped = false
  const write = async (n: number): Promise<void> => {
    const patience = all.patience()
    for (;;) {
      try {
        await all.lane.ask('add', 'insert into t values ($1) on conflict do nothing', [n], { patience })
        return
      } catch (error) {
        if (!(error instanceof UnknownOutcomeError)) throw error
        await patience.after(error.fault)
      }
    }
  }
  const done = (async () => {
    for (let n = 1; !stopped; n++) {
      await write(n)
      acknowledged.push(n)
    }
  })()
  // Whoever stops it is told.
  done.catch(() => {})
  return {
    acknowledged,
    /** Until it has written so many more. */
    more: (count: number) => {
      const from = acknowledged.length
      return until(() => expect(acknowledged.length).toBeGreaterThanOrEqual(from + count))
    },
    stop: () => {
      stopped = true
      return done
    },
  }
}

describe.skipIf(noPostgres)('two hosts', () => {
  it('B-PGNET-22: when the primary is killed and its copy promoted, work goes on there and nothing acknowledged is lost', async () => {
    const { old, next, url } = await pair()
    const all = connections({ url })
    const work = writer(all)
    await work.more(20)
    expect(await all.reader.ask(...where)).toEqual([{ port: old.port }])
    await old.kill()
    await next.promote()
    await work.more(20)
    await work.stop()
    expect(await all.reader.ask(...where)).toEqual([{ port: next.port }])
    const there = await next.query<{ n: string }>('select n from t order by n')
    expect(there.map(({ n }) => Number(n))).toEqual(work.acknowledged)
  })

  it('B-PGNET-23, B-FAULT-9: when a stopped primary wakes after its copy was promoted, nobody writes to it and nobody hears it', async () => {
    const { old, next, url } = await pair()
    const all = connections({ url, statementTimeoutMs: 2_000 })
    const { connections: idle, hints } = buildNetwork({ url }, 'test')
    const news = hints(() => {})
    onTestFinished(() => idle.close())
    onTestFinished(() => news.close())
    await news.start()
    expect(await idle.reader.ask(...where)).toEqual([{ port: old.port }])
    const work = writer(all)
    await work.more(20)
    old.pause()
    const before = work.acknowledged.length
    await next.promote()
    await work.more(20)
    old.resume()
    await work.more(20)
    await work.stop()
    // The old one answers again, and says that it is a primary.
    expect(await old.query('select pg_is_in_recovery() as standby')).toEqual([{ standby: false }])
    const [last] = await old.query<{ n: string }>('select max(n) as n from t')
    expect(Number(last?.n)).toBeLessThanOrEqual(before + 1)
    const there = await next.query<{ n: string }>('select n from t order by n')
    expect(there.map(({ n }) => Number(n))).toEqual(work.acknowledged)
    await until(async () => expect(await idle.reader.ask(...where)).toEqual([{ port: next.port }]))
    await until(async () => expect(await idle.ear?.ask(...where)).toEqual([{ port: next.port }]))
    for (let i = 0; i < 3; i++) expect(await connections({ url }).lane.ask(...where)).toEqual([{ port: next.port }])
    // With the new one gone the old one is not taken: it was replaced.
    await next.kill()
    all.lane.drop()
    const short = all.lane.ask(...where)
    await expect(short).rejects.toThrow('only a primary that was replaced answers')
  })

  it('B-PGNET-24: a write whose wait for the copy was cancelled is Unknown', async () => {
    const { old, next } = await pair()
    const { lane } = connections({ url: old.url() })
    await lane.ask('ready', 'select 1')
    next.pause()
    const lost = lane.ask('add', 'insert into t values (7)').then(
      () => null,
      (error: unknown) => error,
    )
    const waits = "select pid from pg_stat_activity where application_name = 'terret lane' and wait_event = 'SyncRep'"
    const [{ pid } = { pid: 0 }] = await until(async () => {
      const found = await old.query<{ pid: number }>(waits)
      expect(found).toHaveLength(1)
      return found
    })
    await old.query(`select pg_cancel_backend(${pid})`)
    expect(await lost).toBeInstanceOf(UnknownOutcomeError)
    expect(await old.query('select n from t')).toEqual([{ n: '7' }])
    next.resume()
  })

  it('B-PGNET-25: a standby alone is said to be one, and nothing is written', async () => {
    const { old, next } = await pair()
    await old.stop()
    const { lane } = connections({ url: next.url(), patienceMs: 200 })
    await expect(lane.ask('one', 'select 1')).rejects.toThrow(/only a standby answers\. Promote it/)
  })
})

describe.skipIf(noPostgres)('a server with few connections', () => {
  it('B-PGNET-26: that has none free is waited for, and then it is said', async () => {
    const server = await ownServer({
      settings: { max_connections: 5, superuser_reserved_connections: 3, max_wal_senders: 0 },
    })
    await server.query(`create role worker login password '${PASSWORD}'`)
    const url = server.url('postgres', `worker:${PASSWORD}`)
    const first = connections({ url })
    await first.lane.ask('one', 'select 1')
    await first.reader.ask('one', 'select 1')
    const fault = connections({ url, patienceMs: 100 }).open()
    await expect(fault).rejects.toThrow(/no free connection: raise its max_connections/)
    const waits = connections({ url }).lane.ask('one', 'select 1 as n')
    await first.close()
    expect(await waits).toEqual([{ n: 1 }])
  })

  it('B-PGNET-26: is waited for by a whole store too: ten seconds, then `store_busy`, and it goes on when one is free', async () => {
    const server = await ownServer({
      settings: { max_connections: 8, superuser_reserved_connections: 3, max_wal_senders: 0 },
    })
    await server.query(`create role worker login password '${PASSWORD}'; grant create on database postgres to worker`)
    const url = server.url('postgres', `worker:${PASSWORD}`)
    const hogs = Array.from({ length: 5 }, () => new pg.Client({ connectionString: url }))
    for (const hog of hogs) await hog.connect()
    const [store, patient] = [postgres(url), postgres(url)]
    const began = performance.now()
    await expect(store.open()).rejects.toMatchObject({
      code: 'store_busy',
      message: expect.stringMatching(
        /^The database at \S+ could not be used: it has no free connection: raise its max_connections, or use a pooler\. Nothing was written; try again\.$/,
      ) as string,
    })
    // By a clock that may be busy with other tests; less would be a patience that ended early.
    expect(performance.now() - began).toBeGreaterThan(9_900)
    const opening = patient.open()
    await Promise.all(hogs.map((hog) => hog.end()))
    await opening
    await store.open()
    expect(await patient.list({ limit: 1 })).toEqual([])
    await Promise.all([store.close(), patient.close()])
  })
})
