// How the tables of a Postgres store come to be: once, whole, and never over those of another program or of a newer version.
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { SCHEMA_VERSION } from '../../src/stores/postgres/postgres-schema.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { create, outcome, seqs } from '../contract/fixture.ts'
import { connections, meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'
import { sharedServer } from './stage.ts'

async function storeIn(schema: string): Promise<PostgresStore> {
  return new PostgresStore(await connections({ patienceMs: 0 }), { schema })
}

const tablesIn = async (schema: string): Promise<number> => {
  const rows = await meddle<{ tables: string }>(
    `select count(*) as tables from pg_tables where schemaname = '${schema}'`,
  )
  return Number(rows[0]?.tables)
}

describe.skipIf(noPostgres)('the tables of a Postgres store', () => {
  it('B-PG-7: of many processes that open an empty database at once, one makes the tables, and all go on', async () => {
    for (let round = 0; round < 3; round++) {
      const schema = newSchema()
      const stores = await Promise.all(Array.from({ length: 6 }, () => openPostgres({ schema })))
      await Promise.all(stores.map((store, i) => create(store, `s${i}`)))
      for (const [i, store] of stores.entries()) expect(await seqs(store, `s${i}`)).toEqual([1])
      expect(await meddle(`select version from ${schema}.meta`)).toEqual([{ version: SCHEMA_VERSION }])
    }
  })

  it('B-PG-7: a process that is cut off while it makes them leaves nothing, and the next one makes them', async () => {
    const schema = newSchema()
    const store = await storeIn(schema)
    // The first table is made when nobody else makes tables: held back there, by a lock on what it asks for.
    const holder = new pg.Client({ connectionString: (await sharedServer()).url() })
    await holder.connect()
    await holder.query('begin')
    await holder.query(`select pg_advisory_xact_lock(1, hashtext('${schema}.'))`)
    const opening = outcome(store.open()).catch((error: Error) => error.message)
    const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like 'do %${schema}%'`
    let pids: readonly { pid: number }[] = []
    while (pids.length === 0) pids = await meddle<{ pid: number }>(waiting)
    await meddle(`select pg_terminate_backend(${pids[0]?.pid})`)
    expect(await opening).toBe('store_busy')
    await holder.query('rollback')
    await holder.end()
    expect(await tablesIn(schema)).toBe(0)
    await create(await openPostgres({ schema }), 's')
    expect(await tablesIn(schema)).toBeGreaterThan(10)
  })

  it('B-PG-30: tables of version 1 are brought up to date when they are opened, by one of many processes, and keep what they have', async () => {
    const schema = newSchema()
    const first = await openPostgres({ schema })
    await create(first, 's')
    await first.close()
    await meddle(`alter table ${schema}.sessions drop column facts_sum, drop column waiting; drop trigger removals_keep on ${schema}.removals;
      drop trigger removals_whole on ${schema}.removals; drop function ${schema}.keep_removal; update ${schema}.meta set version = 1`)
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ schema })))
    for (const [i, store] of stores.entries()) await create(store, `t${i}`)
    expect(await meddle(`select version from ${schema}.meta`)).toEqual([{ version: SCHEMA_VERSION }])
    expect(await seqs(stores[0] as PostgresStore, 's')).toEqual([1])
    expect(await stores[1]?.remove('s', 'me')).toHaveLength(1)
    await expect(meddle(`delete from ${schema}.removals`)).rejects.toThrow('removals are never changed')
  })

  it('B-PG-30: an upgrade that writes a large table again takes longer than a statement may', async () => {
    const schema = newSchema()
    const first = await openPostgres({ schema })
    await create(first, 's')
    await first.close()
    // The index is made again with its table, and takes two seconds for the one row.
    await meddle(`alter table ${schema}.sessions drop column waiting; update ${schema}.meta set version = 2;
      create function ${schema}.slow(text) returns text language plpgsql immutable as
        'begin perform pg_sleep(2); return $1; end';
      create index on ${schema}.sessions (${schema}.slow(agent))`)
    const store = await openPostgres({ schema, statementTimeoutMs: 1_000, patienceMs: 0 })
    expect(await seqs(store, 's')).toEqual([1])
  })

  it('B-PG-8: tables of a newer version are refused with store_newer, those of another program with store_unsupported, before any write', async () => {
    const schema = newSchema()
    await (await openPostgres({ schema })).close()
    await meddle(`update ${schema}.meta set version = ${SCHEMA_VERSION + 1}`)
    const newer = await storeIn(schema)
    expect(await outcome(newer.open())).toBe('store_newer')
    expect(await outcome(create(newer, 's'))).toBe('store_newer')
    // A refused opening is tried again by the next call.
    await meddle(`update ${schema}.meta set version = ${SCHEMA_VERSION}`)
    expect(await outcome(create(newer, 's'))).toBe('ok')
    await newer.close()
    const foreign = newSchema()
    await meddle(`create schema ${foreign}; create table ${foreign}.sessions (id int)`)
    const store = await storeIn(foreign)
    expect(await outcome(store.open())).toBe('store_unsupported')
    expect(await tablesIn(foreign)).toBe(1)
    await store.close()
  })

  it('B-PG-8: a schema that was made for it beforehand is used', async () => {
    const schema = newSchema()
    await meddle(`create schema ${schema}`)
    await create(await openPostgres({ schema }), 's')
  })
})
