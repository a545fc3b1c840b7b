// The connections of a Postgres store against a real server and a network that is hurt. A table of its own stands for the store.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { optionsChecker } from '../../src/options.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { CONNECT_OPTIONS, type ConnectOptions } from '../../src/stores/postgres/connect-options.ts'
import { parseHosts, withUrlOptions } from '../../src/stores/postgres/database-hosts.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { StaleError, UnknownOutcomeError } from '../../src/stores/postgres/sql.ts'
import { until } from '../until.ts'
import { noPostgres, PASSWORD } from './server.ts'
import { database, proxyTo } from './stage.ts'

function connections(options: ConnectOptions): PostgresConnections {
  const made = new PostgresConnections(options)
  onTestFinished(() => made.close())
  return made
}

/** The fault of what was refused, which never says the password. */
async function faultOf(work: Promise<unknown>): Promise<Fault> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(Fault)
  const fault = error as Fault
  expect(`${fault.message} ${fault.detail} ${fault.stack} ${JSON.stringify(fault)}`).not.toContain(PASSWORD)
  expect(fault.message.split('\n')).toHaveLength(1)
  return fault
}

const add = (n: number) => ['add', 'insert into t select $1::bigint', [n]] as const
const all = ['all', 'select n from t order by n', []] as const

describe.skipIf(noPostgres)('a connection', () => {
  it('B-PGNET-2: reads numbers, lists, bytes and texts as they were written', async () => {
    const { url } = await database()
    const { lane } = connections({ url })
    const values = [2 ** 53 - 1, ['a', 'ü"{},\\', null], [1, 2], Buffer.from([0, 255]), 1.5, true]
    const types = ['bigint', 'text[]', 'bigint[]', 'bytea', 'float8', 'boolean']
    const text = `select ${types.map((type, i) => `$${i + 1}::${type} as c${i}`).join(', ')}, '{}'::bigint[] as none`
    const [row] = await lane.ask('values', text, values)
    const [c0, c1, c2, c3, c4, c5] = values
    expect(row).toEqual({ c0, c1, c2, c3, c4, c5, none: [] })
    const beyond = await faultOf(lane.ask('beyond', 'select 9007199254740993 as n'))
    expect(beyond.code).toBe('store_damaged')
  })

  it('B-PGNET-3: a guard that fails is Stale, and nothing of its statement is done', async () => {
    const { url, server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const { lane } = connections({ url })
    const guarded = 'with i as (insert into t values (1) returning 1) select 1 / (count(*) = 2)::int from i'
    await expect(lane.ask('guarded', guarded)).rejects.toBeInstanceOf(StaleError)
    expect(await lane.ask(...all)).toEqual([])
  })

  it('B-PGNET-4: a write whose answer is lost is Unknown on the lane, and was done', async () => {
    const { url: _, server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const proxy = await proxyTo(server)
    const { lane } = connections({ url: server.url(name, undefined, proxy.port) })
    proxy.loses = (text) => text.startsWith('insert')
    const unknown = await lane.ask(...add(1)).then(
      () => null,
      (error: unknown) => error,
    )
    expect(unknown).toBeInstanceOf(UnknownOutcomeError)
    expect((unknown as UnknownOutcomeError).fault.code).toBe('store_busy')
    expect(proxy.lost).toBe(1)
    proxy.loses = () => false
    expect(await lane.ask(...all)).toEqual([{ n: 1 }])
  })

  it('B-PGNET-4: a read whose answer is lost is asked again', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const { reader } = connections({ url: server.url(name, undefined, proxy.port) })
    proxy.loses = (text) => text.includes('as once') && proxy.lost < 2
    expect(await reader.ask('once', 'select 7 as once')).toEqual([{ once: 7 }])
    expect(proxy.lost).toBe(2)
  })

  it('B-PGNET-5: a server that comes back within its patience is waited for, and one that does not is store_busy', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const url = server.url(name, undefined, proxy.port)
    const { lane, reader } = connections({ url })
    await lane.ask('ready', 'select 1')
    proxy.refuses = true
    proxy.cut()
    const asked = reader.ask('one', 'select 1 as n')
    const again = lane.ask('one', 'select 1 as n').catch(() => lane.ask('one', 'select 1 as n'))
    await until(() => expect(proxy.open).toBe(0))
    proxy.refuses = false
    expect(await asked).toEqual([{ n: 1 }])
    expect(await again).toEqual([{ n: 1 }])
    const short = connections({ url: server.url(name, undefined, 1), patienceMs: 100 })
    const fault = await faultOf(short.open())
    expect(fault.code).toBe('store_busy')
    expect(fault.message).toContain('127.0.0.1:1')
  })

  it('B-PGNET-6: a peer that is silently dead is found by time-outs, and its late packets do what they did', async () => {
    const { server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const proxy = await proxyTo(server)
    const url = server.url(name, undefined, proxy.port)
    const { lane } = connections({ url, statementTimeoutMs: 500, patienceMs: 1_500, connectTimeoutMs: 1_000 })
    await lane.ask('one', 'select 1')
    proxy.goDark()
    await expect(lane.ask(...add(5))).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect((await faultOf(lane.ask(...all))).code).toBe('store_busy')
    proxy.goLight()
    await until(async () => expect(await server.query('select n from t', name)).toEqual([{ n: '5' }]))
    await until(async () => expect(await lane.ask(...all)).toEqual([{ n: 5 }]))
  })

  it('B-PGNET-7: a transaction is whole or not there, runs again after trouble, and nothing of others gets into it', async () => {
    const { url, server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const { lane } = connections({ url })
    let tries = 0
    const done = lane.transaction(async (sql) => {
      tries += 1
      await sql.ask(...add(1))
      if (tries === 1)
        await server.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`,
        )
      await sql.ask(...add(2))
      return sql.ask<{ n: number }>(...all)
    })
    const other = lane.ask(...add(3))
    expect(await done).toEqual([{ n: 1 }, { n: 2 }])
    await other
    expect(tries).toBe(2)
    const refused = lane.transaction(async (sql) => {
      await sql.ask(...add(9))
      throw new Fault('conflict', 'no')
    })
    expect((await faultOf(refused)).code).toBe('conflict')
    expect(await lane.ask(...all)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
  })

  it('B-PGNET-7: a transaction that passes over a statement that failed is not taken for done', async () => {
    const { url, server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const { lane } = connections({ url })
    const careless = lane.transaction(async (sql) => {
      await sql.ask(...add(1))
      await sql.ask('', 'select 1 / 0').catch(() => {})
    })
    await expect(careless).rejects.toThrow('goes on after one of its statements failed')
    expect(await lane.ask(...all)).toEqual([])
  })

  it('B-PGNET-7: a transaction whose commit is not answered is Unknown, and was done', async () => {
    const { server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const proxy = await proxyTo(server)
    const { lane } = connections({ url: server.url(name, undefined, proxy.port) })
    proxy.loses = (text) => text === 'commit'
    await expect(lane.transaction((sql) => sql.ask(...add(1)))).rejects.toBeInstanceOf(UnknownOutcomeError)
    expect(await server.query('select n from t', name)).toEqual([{ n: '1' }])
  })

  it('B-PGNET-8: locks that others keep, and statements that take too long, are said plainly', async () => {
    const { url, server, name } = await database()
    await server.query('create table t (n bigint)', name)
    const { lane, reader } = connections({ url, statementTimeoutMs: 100, patienceMs: 0 })
    const other = connections({ url })
    await other.lane.transaction(async (sql) => {
      await sql.ask('lock', 'lock table t in exclusive mode')
      const fault = await faultOf(lane.ask(...add(1)))
      expect(fault.code).toBe('store_busy')
      expect(fault.message).toMatch(/took too long|kept their locks/)
    })
    const slow = await faultOf(reader.ask('slow', 'select pg_sleep(30)'))
    expect(slow.message).toContain('took too long')
    expect(await lane.ask(...all)).toEqual([])
  })

  it('B-PGNET-9: closed, it waits for what was asked, refuses what is asked then, and leaves no connection', async () => {
    const { url, server, name } = await database()
    const made = connections({ url })
    const slow = made.reader.ask('slow', 'select 1 as n from pg_sleep(0.1)')
    await made.open()
    await made.close()
    expect(await slow).toEqual([{ n: 1 }])
    expect((await faultOf(made.lane.ask('one', 'select 1'))).code).toBe('store_closed')
    const left = `select pid from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`
    await until(async () => expect(await server.query(left, name)).toEqual([]))
  })
})

describe.skipIf(noPostgres)('what cannot be used', () => {
  const check = optionsChecker<ConnectOptions>('postgres', CONNECT_OPTIONS)

  it('B-PGNET-10: misspelled options and parameters are refused', () => {
    expect(() => check({ ulr: 'x' })).toThrow('Unknown option "ulr" of postgres: did you mean "url"?')
    expect(() => check({})).toThrow('The option "url" of postgres is missing.')
    expect(() => check({ url: 'postgres://h/d', patienceMs: -1 })).toThrow('"patienceMs"')
    expect(() => parseHosts('postgres://h/d?sslmod=require')).toThrow('did you mean "sslmode"?')
    expect(() => parseHosts('postgres://h/d?sslmode=requir')).toThrow(
      '"sslmode" in the URL of the database must be one of',
    )
  })

  it('B-PGNET-10: pooled and direct may stand in the URL; what is given beside it counts more, and the driver sees neither', () => {
    const url = 'postgres://u:p%40w@pool:6432/d?sslmode=disable&pooled=true&direct=one:1,two'
    const own = withUrlOptions({ url })
    expect(own).toEqual({ url, pooled: true, direct: url.replace('pool:6432', 'one:1,two') })
    expect(parseHosts(own.direct ?? '').map((host) => host.url)).toEqual([
      'postgres://u:p%40w@one:1/d?sslmode=disable',
      'postgres://u:p%40w@two/d?sslmode=disable',
    ])
    expect(withUrlOptions({ url, pooled: false, direct: 'postgres://x/d' })).toEqual({
      url,
      pooled: false,
      direct: 'postgres://x/d',
    })
    expect(parseHosts('postgres://pool/d?pooled=true')[0]?.url).toBe('postgres://pool/d')
    const plain = 'postgres:///d?host=/run/postgresql'
    expect(withUrlOptions({ url: plain })).toEqual({ url: plain })
    expect(() => parseHosts('postgres://h/d?poold=true')).toThrow('did you mean "pooled"?')
    expect(() => withUrlOptions({ url: 'postgres://h/d?pooled=yes' })).toThrow(
      '"pooled" in the URL of the database must be',
    )
    expect(() => withUrlOptions({ url: 'postgres://h/d?direct=postgres://h2/d' })).toThrow('must be the server itself')
    for (const made of ['?pooled=yes', '?direct=u:p@h']) expect(() => postgres(`postgres://h/d${made}`)).toThrow(Fault)
  })

  it.each([
    '',
    'mysql://h/d',
    `postgres://u:${PASSWORD}/x@h/d`,
    `postgres://u:${PASSWORD}?@h/d`,
    `u:${PASSWORD}@h`,
    `postgres://u:%zz${PASSWORD}@h/d`,
    `postgres://u:${PASSWORD}@h:99999/d`,
  ])('B-PGNET-10: the URL %j is refused without a word of it', (url) => {
    expect(() => parseHosts(url)).toThrow(/^The URL of the database cannot be read/)
    try {
      parseHosts(url)
    } catch (error) {
      expect(String(error)).not.toContain(PASSWORD)
    }
  })

  it('B-PGNET-10: several hosts, a user with special characters, and no user are read', () => {
    const hosts = parseHosts('postgresql://a%40b:p@one:1,two/d%20b?sslmode=disable')
    expect(hosts.map(({ host, user, database: name }) => [host, user, name])).toEqual([
      ['one:1', 'a@b', 'd b'],
      ['two:5432', 'a@b', 'd b'],
    ])
    expect(parseHosts('postgres:///d?host=/run/postgresql')[0]?.host).toBe('/run/postgresql')
  })

  it('B-PGNET-11: a wrong password, user, database and host are one sentence each, at once', async () => {
    const { server, name } = await database()
    const wrong = [
      [server.url(name, `postgres:${PASSWORD}x`), 'refused the user "postgres"'],
      [server.url(name, `nobody:${PASSWORD}`), 'refused the user "nobody"'],
      [server.url('nowhere'), 'There is no database "nowhere"'],
      [`postgres://postgres:${PASSWORD}@nowhere.invalid:1/d`, 'is not known'],
      [`${server.url(name)}?sslmode=verify-full`, 'No safe connection'],
      [`${server.url(name)}?sslmode=verify-full&sslrootcert=/nowhere`, 'No safe connection'],
    ] as const
    for (const [url, sentence] of wrong) {
      const fault = await faultOf(connections({ url }).open())
      expect(fault.code).toBe('invalid_config')
      expect(fault.message).toContain(sentence)
    }
  })

  it('B-PGNET-11: an old server and a database of another encoding are refused', async () => {
    const { server, name } = await database()
    const proxy = await proxyTo(server)
    const [{ v } = { v: '' }] = await server.query<{ v: string }>(`select current_setting('server_version_num') as v`)
    proxy.replaced = [v, `12${v.slice(2)}`]
    const old = await faultOf(connections({ url: server.url(name, undefined, proxy.port) }).open())
    expect([old.code, old.message]).toEqual([
      'store_unsupported',
      expect.stringContaining('is Postgres 12, and 13 is the least'),
    ])
    const ascii = await database(`encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`)
    const encoding = await faultOf(connections({ url: ascii.url }).open())
    expect([encoding.code, encoding.message]).toEqual(['store_unsupported', expect.stringContaining('SQL_ASCII')])
  })

  it('B-PGNET-11: a missing right names the user and the right, and nothing is written', async () => {
    const { server, name } = await database()
    const role = `weak_${name}`
    await server.query(
      `create role ${role} login password '${PASSWORD}'; revoke create on schema public from public`,
      name,
    )
    onTestFinished(async () => void (await server.query(`drop role ${role}`)))
    const { lane } = connections({ url: server.url(name, `${role}:${PASSWORD}`) })
    const fault = await faultOf(lane.transaction((sql) => sql.ask('', 'create table public.t (n int)')))
    expect(fault.code).toBe('io_error')
    expect(fault.message).toContain(`"${role}" lacks a right`)
  })
})
