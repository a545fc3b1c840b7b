// Rows that somebody changed behind the store's back: a damaged session is read up to the damage, never written, and harms no other.
import { describe, expect, it } from 'vitest'
import type { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { admit, begin, create, message, note, outcome, StillClock, TTL, write } from '../contract/fixture.ts'
import { meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

/** As no program may: the triggers are off. */
const force = (text: string) => meddle(`begin; set local session_replication_role = replica; ${text}; commit`)

async function prepared(): Promise<{
  readonly store: PostgresStore
  readonly again: () => Promise<PostgresStore>
  readonly schema: string
  readonly clock: StillClock
}> {
  const [schema, clock] = [newSchema(), new StillClock()]
  const store = await openPostgres({ schema, clock })
  const owner = await begin(store, 's')
  for (let i = 0; i < 5; i++) await write(store, owner, [note(`${i}`)])
  await store.release('s', owner.epoch)
  await create(store, 'other', { due: clock.time })
  await admit(store, 's', message('m'))
  return { store, again: () => openPostgres({ schema, clock }), schema, clock }
}

describe.skipIf(noPostgres)('a damaged session', () => {
  it.each(['owner', 'title', 'agent'])(
    'B-PG-29: whose %s was changed beside its log is shown as damaged and not acted on',
    async (column) => {
      const { again, schema } = await prepared()
      await force(`update ${schema}.sessions set ${column} = 'bob' where id = 's'`)
      const store = await again()
      const damaged = await store.card('s')
      expect([damaged?.owner, damaged?.trouble?.reason]).toEqual([undefined, expect.stringContaining('checksum')])
      expect(await outcome(admit(store, 's', message('new')))).toBe('session_damaged')
      expect(await outcome(admit(store, 'other', message('new')))).toBe('ok')
    },
  )

  it.each([
    ['a changed body', (s: string) => `update ${s}.events set body = replace(body, '"2"', '"3"') where seq = 4`, 4],
    ['an event that is missing in the middle', (s: string) => `delete from ${s}.events where seq = 4`, 4],
    [
      "events in each other's place",
      (s: string) => `update ${s}.events set seq = seq + 90 where seq in (3, 4);
      update ${s}.events set seq = case seq when 93 then 4 else 3 end where seq > 90`,
      3,
    ],
    ['a log that was cut', (s: string) => `delete from ${s}.events where seq >= 6`, 6],
    [
      'an event of another session',
      (s: string) => `update ${s}.events e set body = o.body, sum = o.sum from ${s}.events o
      where e.seq = 4 and o.n <> e.n and o.seq = 1`,
      4,
    ],
    ['a body that is no JSON', (s: string) => `update ${s}.events set body = '{' where seq = 4`, 4],
  ] as const)('B-PG-10: by %s is read up to there, and says where', async (_, change, seq) => {
    const { again, schema } = await prepared()
    await force(change(schema))
    const store = await again()
    const page = await store.read('s', 0)
    expect(page.events.map((event) => event.seq)).toEqual(Array.from({ length: seq - 1 }, (_each, i) => i + 1))
    expect(page.damaged).toMatchObject({ seq })
    // Once it was found, nothing is written to it, and nobody is kept busy with it.
    for (const asked of [admit(store, 's', message('new')), store.claim('s', 'w', TTL)])
      expect(await outcome(asked)).toBe('session_damaged')
    expect((await store.due(9)).sessions).toEqual(['other'])
    expect([...(await store.take('w', TTL, { limit: 9 })).keys()]).toEqual(['other'])
    expect(await outcome(admit(store, 'other', message('m')))).toBe('ok')
    expect((await store.read('s', 0, 2)).damaged).toBeUndefined()
  })

  it('B-PG-10: a log that does not end as its session says is not written, whether it was read or not', async () => {
    const { again, schema } = await prepared()
    await force(`delete from ${schema}.events where seq = 7`)
    const store = await again()
    expect(await outcome(admit(store, 's', message('new')))).toBe('session_damaged')
    expect(await outcome(admit(store, 'other', message('new')))).toBe('ok')
    expect((await store.read('s', 0)).damaged).toMatchObject({ seq: 7 })
    expect(await outcome(store.remove('s', 'ann'))).toBe('ok')
  })

  it.each(['9007199254740993', '9223372036854775807'])(
    'B-PG-10: an epoch of %s, which no number holds, is damage of this session alone; its log is read',
    async (epoch) => {
      const { again, schema } = await prepared()
      await force(`update ${schema}.sessions set epoch = ${epoch} where id = 's'`)
      const store = await again()
      const both = [outcome(admit(store, 's', message('new'))), outcome(admit(store, 'other', message('new')))]
      expect(await Promise.all(both)).toEqual(['session_damaged', 'ok'])
      expect((await store.read('s', 0)).events).toHaveLength(7)
      expect((await store.card('s'))?.trouble?.reason).toContain('damaged')
      expect(await store.list({ limit: 9 })).toHaveLength(2)
      expect([...(await store.take('w', TTL, { limit: 9 })).keys()]).toEqual(['other'])
    },
  )

  it('B-PG-10: a card or a trouble that cannot be read is damage, and listed as such', async () => {
    const { again, schema } = await prepared()
    await force(`update ${schema}.sessions set card = '{' where id = 's'`)
    const store = await again()
    expect(await store.card('s')).toMatchObject({ session: 's', status: 'requires_action' })
    expect(await outcome(admit(store, 's', message('new')))).toBe('session_damaged')
    await force(`update ${schema}.sessions set trouble = 'x' where id = 'other'`)
    expect((await store.card('other'))?.trouble?.reason).toContain('damaged')
  })

  it('B-PG-10: a blob or a snapshot that does not match its sum is not given', async () => {
    const { store, schema, clock } = await prepared()
    const owner = await begin(store, 't')
    const blobs = [{ hash: 'h', media: 'a/b', data: new Uint8Array([1, 2]) }]
    await write(store, owner, [note('x')], { blobs, snapshot: { seq: 2, version: 1, body: '{"a":1}' } })
    await store.keep('t', [{ seq: 1, version: 1, body: '{}', at: clock.time }])
    await force(
      `update ${schema}.blobs set data = '\\x0103'; update ${schema}.snapshots set body = '{"a":2}' where seq = 2`,
    )
    expect(await outcome(store.blob('h'))).toBe('store_damaged')
    expect(await store.snapshot('t')).toBeNull()
    expect(await store.snapshot('t', 9)).toMatchObject({ seq: 1 })
  })
})
