// The tables of events and who may use them: dropped when they are empty, detached by hand, and used by a role that owns nothing.
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { admit, begin, create, message, note, outcome, seqs, write } from '../contract/fixture.ts'
import { noPostgres, PASSWORD } from './server.ts'
import { database, type Database } from './stage.ts'

function opened(url: string) {
  const store = postgres(url)
  onTestFinished(() => store.close())
  return store
}

const tablesOf = async ({ server, name }: Database): Promise<readonly string[]> => {
  const text = "select relname from pg_class where relname ~ '^events_[0-9]+$' and relkind = 'r' order by 1"
  return (await server.query<{ relname: string }>(text, name)).map(({ relname }) => relname)
}
const jump = ({ server, name }: Database, n: number) => server.query(`select setval('terret.numbers', ${n})`, name)

describe.skipIf(noPostgres)('tables of events', () => {
  it('B-OPS-14: one whose sessions are all gone is dropped, and no other', async () => {
    const place = await database()
    const store = opened(place.url)
    await create(store, 'a')
    await jump(place, 150_000)
    await create(store, 'b')
    await jump(place, 205_000)
    await create(store, 'c')
    expect(await tablesOf(place)).toEqual(['events_0', 'events_1', 'events_2'])
    expect(await store.freeRooms()).toEqual({ dropped: [], left: [] })
    await store.remove('a', 'ana')
    await store.remove('b', 'ana')
    // A commit under way may still have a number of the second.
    expect(await store.freeRooms()).toEqual({ dropped: ['events_0'], left: [] })
    await jump(place, 215_000)
    expect(await store.freeRooms()).toEqual({ dropped: ['events_1'], left: [] })
    expect(await tablesOf(place)).toEqual(['events_2'])
    await create(store, 'a')
    expect(await seqs(store, 'a')).toEqual([1])
    expect(await store.freeRooms()).toEqual({ dropped: [], left: [] })
  })

  it('B-OPS-15: one that is detached by hand is said by its sessions, harms no other, and attached again they go on', async () => {
    const place = await database()
    const { server, name } = place
    const store = opened(place.url)
    const owner = await begin(store, 'old')
    await write(store, owner, [note('x')])
    await jump(place, 150_000)
    await create(store, 'new')
    const before = await store.read('old', 0)
    await server.query('alter table terret.events detach partition terret.events_0', name)
    const { events, damaged } = await store.read('old', 0)
    expect(events).toEqual([])
    expect(damaged).toEqual({
      seq: 1,
      reason:
        'its events are in the table events_0, which is not attached to this store. Attach it again, or restore it from where it is kept',
    })
    const [refused, fine] = await Promise.all([
      outcome(write(store, owner, [note('y')])),
      outcome(admit(store, 'new', message('m'))),
    ])
    expect([refused, fine]).toEqual(['session_damaged', 'ok'])
    await server.query(
      'alter table terret.events attach partition terret.events_0 for values from (0) to (100000)',
      name,
    )
    expect(await store.read('old', 0)).toEqual(before)
    await write(store, owner, [note('z')])
    expect(await seqs(store, 'old')).toEqual([1, 2, 3])
  })

  it('B-OPS-16: a role with the rights of grants.sql does all that a worker does, and cannot change an event', async () => {
    const place = await database()
    const { server, name } = place
    const role = `worker_${name}`
    const own = opened(place.url)
    await create(own, 's')
    await server.query(`create role ${role} login password '${PASSWORD}'`)
    onTestFinished(async () => {
      await server.query(`drop owned by ${role}`, name)
      await server.query(`drop role ${role}`)
    })
    const grants = readFileSync(new URL('../../examples/several-machines/grants.sql', import.meta.url), 'utf8')
    await server.query(grants.replaceAll('terret_worker', role), name)
    const url = server.url(name, `${role}:${PASSWORD}`)
    const store = opened(url)
    const owner = await begin(store, 'mine', 'w')
    const charges = [
      { type: 'hold', key: 'k', accounts: ['day'], amount: 3 },
      { type: 'settle', key: 'k', amount: 1 },
    ] as const
    await write(store, owner, [note('x')], { charges })
    await store.release('mine', owner.epoch)
    await jump(place, 250_000)
    await create(store, 'later')
    expect(await tablesOf(place)).toContain('events_2')
    await store.remove('mine', 'ana')
    await store.remove('s', 'ana')
    expect(await seqs(store, 'later')).toEqual([1])
    expect(await store.freeRooms()).toEqual({ dropped: [], left: [{ table: 'events_0', why: 'denied' }] })
    expect((await store.health()).network?.server.connections).toBeGreaterThan(0)
    const pg = (await import('pg')).default
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      for (const text of [
        "update terret.events set body = 'x'",
        'truncate terret.events',
        'delete from terret.events',
        "update terret.events_2 set body = 'x'",
        'truncate terret.events_2',
        'drop table terret.events_2',
        'alter table terret.events disable trigger all',
      ])
        await expect(client.query(text)).rejects.toThrow(/permission denied|must be owner|never (deleted|changed)/)
    } finally {
      await client.end()
    }
  })
})
