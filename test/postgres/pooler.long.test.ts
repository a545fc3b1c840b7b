// A store's connections behind a real pooler in transaction mode, where no setting and no named statement lasts.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { steadyClock } from '../../src/stores/plan/system-clock.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { NotificationListener } from '../../src/stores/postgres/notification-listener.ts'
import type { ConnectOptions } from '../../src/stores/postgres/connect-options.ts'
import { StaleError, UnknownOutcomeError } from '../../src/stores/postgres/sql.ts'
import { until } from '../until.ts'
import { noPooler, pooler } from './pooler.ts'
import { Proxy } from './proxy.ts'
import { noPostgres } from './server.ts'
import { database } from './stage.ts'

function connections(options: ConnectOptions): PostgresConnections {
  const made = new PostgresConnections(options)
  onTestFinished(() => made.close())
  return made
}

describe.skipIf(noPostgres || noPooler)('behind a pooler in transaction mode', () => {
  it('B-PGNET-21: with `pooled`, many processes share few connections, and no setting is left on any', async () => {
    const { server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const port = await pooler(server, 2)
    const url = server.url(name, undefined, port)
    const processes = Array.from({ length: 4 }, () => connections({ url, pooled: true }))
    const each = processes.flatMap(({ lane, reader }, p) =>
      Array.from({ length: 25 }, async (_, i) => {
        await lane.ask('add', 'insert into t values ($1)', [p * 25 + i])
        const [row] = await reader.ask<{ n: number; ms: string }>(
          'get',
          `select n, current_setting('statement_timeout') as ms from t where n = $1`,
          [p * 25 + i],
        )
        expect(row).toEqual({ n: p * 25 + i, ms: '8s' })
      }),
    )
    await Promise.all(each)
    const [first] = processes
    const guard = 'with i as (insert into t values (-1) returning 1) select 1 / (count(*) = 2)::int from i'
    await expect(first?.lane.ask('guard', guard)).rejects.toBeInstanceOf(StaleError)
    await first?.lane.transaction(async (sql) => {
      await sql.ask('add', 'insert into t values ($1)', [100])
      expect(await sql.ask('all', 'select count(*) as n from t')).toEqual([{ n: 101 }])
    })
    expect(await server.query('select count(*)::int as n, count(distinct n)::int as d from t', name)).toEqual([
      { n: 101, d: 101 },
    ])
    const bare = new pg.Client({ connectionString: url })
    await bare.connect()
    const { rows } = await bare.query(
      "select current_setting('statement_timeout') as a, current_setting('synchronous_commit') as b",
    )
    await bare.end()
    expect(rows).toEqual([{ a: '0', b: 'on' }])
  })

  it('B-POOL-1: each statement and each transaction has the settings that it has without a pooler, on a server with its own defaults', async () => {
    const { server, name } = await database()
    const port = await pooler(server, 2)
    const direct = connections({ url: server.url(name) })
    const pooled = connections({ url: server.url(name, undefined, port), pooled: true })
    const names = `'jit','plan_cache_mode','enable_seqscan','enable_sort','synchronous_commit','statement_timeout','lock_timeout','idle_in_transaction_session_timeout'`
    const text = `select string_agg(name || '=' || setting, ' ' order by name) as settings from pg_settings where name in (${names})`
    type Row = { readonly settings: string }
    for (const role of ['lane', 'reader', 'heartbeat'] as const) {
      for (const unsorted of [false, true]) {
        const [[want], [got]] = await Promise.all([
          direct[role].ask<Row>('', text, [], { unsorted }),
          pooled[role].ask<Row>('', text, [], { unsorted }),
        ])
        expect(got).toEqual(want)
        // No statement of a store is long enough to be worth compiling, which takes seconds where it is estimated too high.
        expect(got?.settings).toContain('jit=off')
      }
      const inside = await Promise.all(
        [direct, pooled].map((all) => all[role].transaction((sql) => sql.ask<Row>('', text))),
      )
      expect(inside[1]).toEqual(inside[0])
    }
  })

  it('B-PGNET-21: a write whose answer is lost is Unknown', async () => {
    const { server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const proxy = await Proxy.to(await pooler(server, 2))
    onTestFinished(() => proxy.close())
    const { lane } = connections({ url: server.url(name, undefined, proxy.port), pooled: true })
    proxy.loses = (text) => text === 'commit'
    await expect(lane.ask('add', 'insert into t values (1)')).rejects.toBeInstanceOf(UnknownOutcomeError)
    proxy.loses = () => false
    expect(await lane.ask('all', 'select n from t')).toEqual([{ n: 1 }])
  })

  it('B-PGNET-21: without `pooled` it is refused, and the sentence names the option', async () => {
    const { server, name } = await database()
    const url = server.url(name, undefined, await pooler(server, 2))
    await expect(connections({ url }).open()).rejects.toThrow(/set the option pooled, or \?pooled=true in its URL/)
  })

  it('B-PGNET-21: hints are heard where the server itself is named, and elsewhere there is no ear', async () => {
    const { server, name } = await database()
    const url = server.url(name, undefined, await pooler(server, 2))
    expect(connections({ url, pooled: true }).ear).toBeNull()
    const { ear, reader } = connections({ url, pooled: true, direct: server.url(name) })
    const heard: string[] = []
    if (ear) await new NotificationListener(ear, steadyClock).listen('c', (text) => void heard.push(text))
    await reader.ask('hint', 'select pg_notify($1, $2)', ['c', 'x'])
    await until(() => expect(heard).toEqual(['x']))
  })
})
