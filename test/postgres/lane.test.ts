// How the Postgres store writes: one statement for what is asked together, again when the present has moved, and nothing half.
import { describe, expect, it } from 'vitest'
import type { WriteSql, PostgresValue } from '../../src/stores/postgres/sql.ts'
import { WriteQueue } from '../../src/stores/postgres/write-queue.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import {
  admit,
  begin,
  card,
  claim,
  create,
  creation,
  message,
  note,
  outcome,
  ownerWrite,
  seqs,
  TTL,
  write,
} from '../contract/fixture.ts'
import { connections, meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

/** Runs `before` each time a batch is about to be written. */
function meddling(before: (times: number) => Promise<void>): (sql: WriteSql) => WriteSql {
  let times = 0
  const hooked = <S extends Pick<WriteSql, 'ask'>>(sql: S): S => ({
    ...sql,
    ask: async (name: string, text: string, values?: readonly PostgresValue[]) => {
      if (name.startsWith('write')) await before(times++)
      return sql.ask<never>(name, text, values)
    },
  })
  return (sql) => ({ ...hooked(sql), transaction: (work) => sql.transaction((inner) => work(hooked(inner))) })
}

describe.skipIf(noPostgres)('the lane of a Postgres store', () => {
  it('B-PG-12: what is asked as the last of it ends is done too, however soon after', async () => {
    const { lane: sql } = await connections()
    const lane = new WriteQueue({ sql, now: () => 0, heardNow: () => 0, askedAt: () => 0, asideMs: 0, after: () => {} })
    for (let hops = 0; hops < 20; hops++) {
      await lane.alone(async () => {})
      for (let i = 0; i < hops; i++) await Promise.resolve()
      await lane.alone(async () => {})
    }
  })

  it('B-PG-12: what is asked in one moment is one statement, what is asked meanwhile the next, and a refusal spoils no other', async () => {
    const store = await openPostgres()
    const ids = Array.from({ length: 20 }, (_, i) => `s${i}`)
    await Promise.all(ids.map((id) => create(store, id)))
    expect(store.counts.written).toBe(1)
    const owners = await Promise.all(ids.map((session) => store.claim(session, 'w', TTL)))
    expect(store.counts.written).toBe(2)
    const written = ids.map((session, i) =>
      outcome(
        write(store, { session, worker: 'w', epoch: (owners[i]?.epoch ?? 0) + (i === 7 ? 1 : 0), seq: 1 }, [note('x')]),
      ),
    )
    const later = Promise.all([outcome(admit(store, 's0', message('m'))), outcome(admit(store, 'none', message('m')))])
    expect(await Promise.all(written)).toEqual(ids.map((_, i) => (i === 7 ? 'lease_lost' : 'ok')))
    expect(await later).toEqual(['ok', 'session_missing'])
    expect(store.counts.written).toBe(3)
    expect(await seqs(store, 's0')).toEqual([1, 2, 3])
  })

  it('B-PG-12: an owner that goes on where it left off is written without reading anything first', async () => {
    const asked: string[] = []
    const change = (sql: WriteSql): WriteSql => ({
      ...sql,
      ask: (name: string, text: string, values?: readonly PostgresValue[]) => {
        asked.push(name.split(' ')[0] ?? '')
        return sql.ask<never>(name, text, values)
      },
    })
    const store = await openPostgres({ change })
    const owner = await begin(store, 's')
    asked.length = 0
    for (let i = 0; i < 3; i++) await write(store, owner, [note(`${i}`)])
    expect(asked).toEqual(['write', 'write', 'write'])
  })

  it('B-PG-13: when another process was faster, it is read, planned and written again, and refused if it must be', async () => {
    const schema = newSchema()
    const other = await openPostgres({ schema })
    await create(other, 's')
    const store = await openPostgres({
      schema,
      change: meddling(async (times) => void (times === 1 && (await admit(other, 's', message('other'))))),
    })
    const owner = await claim(store, 's', 'w1')
    // It was planned on what it remembered, and the log has grown.
    expect(await outcome(write(store, owner, [note('x')]))).toBe('conflict')
    owner.seq = 2
    await write(store, owner, [note('x')])
    expect(store.counts.moved).toBe(1)
    expect(await seqs(other, 's')).toEqual([1, 2, 3])
    await other.claim('s', 'w1', TTL)
    expect(await outcome(write(store, owner, [note('y')]))).toBe('lease_lost')
  })

  it('B-PG-13: when others are always faster, it holds them off the third time', async () => {
    const schema = newSchema()
    const other = await openPostgres({ schema })
    await create(other, 's')
    let held: Promise<unknown> = Promise.resolve()
    const change = meddling(async (times) => {
      const sent = admit(other, 's', message(`other ${times}`))
      if (times < 2) await sent
      else held = sent
    })
    const store = await openPostgres({ schema, change })
    expect(await admit(store, 's', message('mine'))).toEqual({ seqs: [4], duplicate: false })
    await held
    expect(store.counts).toMatchObject({ written: 1, moved: 2 })
    expect(await seqs(other, 's')).toEqual([1, 2, 3, 4, 5])
  })

  it('B-PG-13: a session that two processes make at once is made by one', async () => {
    const schema = newSchema()
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ schema })))
    const body = (i: number) => ({ type: 'session.created', agent: `a${i}`, planner: 'model' }) as const
    const made = stores.map((store, i) =>
      outcome(store.commit([ownerWrite(store, { session: 's', worker: '', epoch: 0, seq: 0 }, [body(i)])])),
    )
    expect((await Promise.all(made)).sort()).toEqual(['ok', 'session_exists', 'session_exists', 'session_exists'])
  })

  it('B-PG-14: events cannot be changed by any program, and deleted only with their session, whose removal is logged', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 's')
    for (const table of ['events', 'events_0']) {
      await expect(meddle(`update ${schema}.${table} set body = '{}'`)).rejects.toThrow('events are never changed')
      await expect(meddle(`delete from ${schema}.${table}`)).rejects.toThrow('events are never deleted')
      await expect(meddle(`truncate ${schema}.${table}`)).rejects.toThrow('events are never changed')
    }
    await store.remove('s', 'ann')
    expect(await meddle(`select * from ${schema}.events`)).toEqual([])
  })

  it('B-PG-17: the events of the next 100,000 sessions get a table of their own when the first of them is made, by any process', async () => {
    const schema = newSchema()
    const stores = await Promise.all([openPostgres({ schema }), openPostgres({ schema })])
    await create(stores[0], 'first')
    await meddle(`select setval('${schema}.numbers', 99998)`)
    await Promise.all(stores.flatMap((store, i) => [0, 1, 2].map((j) => create(store, `s${i}${j}`))))
    for (const id of ['s00', 's02', 's10', 's12']) expect(await seqs(stores[0], id)).toEqual([1])
    const parts = await meddle<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits where inhparent = '${schema}.events'::regclass order by 1`,
    )
    expect(parts.map(({ name }) => name)).toEqual([`${schema}.events_0`, `${schema}.events_1`])
  })

  it('B-PG-9: trouble in the middle of a commit leaves nothing of it, and the store goes on', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    const owner = await begin(store, 's')
    await create(store, 'other')
    // As a disk that is full when the last part is written.
    await meddle(`create function ${schema}.full() returns trigger language plpgsql as $$ begin
      raise exception 'no space left' using errcode = '53100'; end $$;
      create trigger full_disk before insert on ${schema}.inbox for each row execute function ${schema}.full()`)
    const writes = [
      ownerWrite(store, owner, [note('x')], {
        sends: [{ session: 'other', event: message('m') }],
        charges: [{ type: 'hold', key: 'k', accounts: ['day'], amount: 5 }],
        blobs: [{ hash: 'h', media: 'a/b', data: new Uint8Array([1]) }],
        card: card('s', { status: 'running' }),
      }),
      creation(store, 'new'),
    ]
    await expect(store.commit(writes)).rejects.toMatchObject({ code: 'disk_full' })
    expect([await seqs(store, 's'), await seqs(store, 'other'), await store.card('new')]).toEqual([[1], [1], null])
    expect([await store.account('day'), await store.blob('h')]).toEqual([null, null])
    expect(await store.card('s')).toMatchObject({ status: 'idle', seq: 1 })
    await meddle(`drop trigger full_disk on ${schema}.inbox`)
    await store.commit(writes)
    expect([await seqs(store, 's'), await seqs(store, 'other')]).toEqual([
      [1, 2],
      [1, 2],
    ])
  })

  it('B-PG-9: a lock that another program keeps is waited for no longer than the connection allows, and nothing is half done', async () => {
    const schema = newSchema()
    const between = await connections({ patienceMs: 0 })
    const store = new PostgresStore(between, { schema })
    await store.open()
    await create(store, 's')
    await between.lane.ask('', 'set lock_timeout = 100')
    const other = await connections()
    await other.open()
    await other.lane.transaction(async (sql) => {
      await sql.ask('', `select 1 from ${schema}.sessions for update`)
      await expect(admit(store, 's', message('m'))).rejects.toMatchObject({ code: 'store_busy' })
    })
    expect(await seqs(store, 's')).toEqual([1])
    await admit(store, 's', message('m'))
    expect(await seqs(store, 's')).toEqual([1, 2])
    await Promise.all([store.close(), other.close()])
  })
})
