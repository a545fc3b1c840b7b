// Rows that another program keeps locked, in a store in Postgres: what needs them waits, and nothing else does.
import { describe, expect, it } from 'vitest'
import { admit, begin, create, message, note, seqs, TTL, write } from '../contract/fixture.ts'
import { connections, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

/** Keeps what `text` locks until `during` is over. */
async function whileLocked<T>(text: string, during: () => Promise<T>): Promise<T> {
  const other = await connections()
  await other.open()
  return other.lane.transaction(async (sql) => {
    await sql.ask('', text)
    return during()
  })
}

describe.skipIf(noPostgres)('a row that another program keeps locked', () => {
  it('B-PGLOCK-1: of a session holds up no commit of another session and no heartbeat, and its own commit is done afterwards', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    const owners = await Promise.all(['a', 'b', 'c'].map((id) => begin(store, id)))
    const [a, b, c] = owners as [(typeof owners)[0], (typeof owners)[0], (typeof owners)[0]]
    const waiting = await whileLocked(`select 1 from ${schema}.sessions where id = 'a' for update`, async () => {
      const together = owners.map((owner) => write(store, owner, [note('first')]))
      const [first, ...others] = together
      await Promise.all(others)
      const later = admit(store, 'a', message('later'))
      for (const owner of [b, c, b, c]) await write(store, owner, [note('next')])
      expect([...(await store.extend('w1', TTL)).keys()].sort()).toEqual(['a', 'b', 'c'])
      return { first, later }
    })
    await Promise.all([waiting.first, waiting.later])
    const types = (await store.read('a', 0)).events.map(({ type }) => type)
    expect(types).toEqual(['session.created', 'note.added', 'user.message'])
    expect([await seqs(store, 'b'), await seqs(store, 'c')]).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ])
    expect(a.epoch).toBe(1)
  })

  it('B-PGLOCK-2: of an account holds up only what moves money there, also by a hold that was made before', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    for (const id of ['a', 'b', 'c']) await create(store, id)
    const hold = (session: string, key: string, account: string) =>
      store.commit([
        { session, lane: 'inbox', events: [], charges: [{ type: 'hold', key, accounts: [account], amount: 1 }] },
      ])
    await Promise.all([hold('a', 'k1', 'day'), hold('c', 'k2', 'other')])
    const free = (session: string, key: string) =>
      store.commit([{ session, lane: 'inbox', events: [], charges: [{ type: 'free', key }] }])
    const waiting = await whileLocked(`select 1 from ${schema}.accounts where id = 'day' for update`, async () => {
      const held = [hold('b', 'k3', 'day'), free('a', 'k1')]
      await Promise.all([free('c', 'k2'), admit(store, 'b', message('m'))])
      await hold('c', 'k4', 'other')
      await store.extend('w1', TTL)
      expect((await store.account('day'))?.held).toBe(1)
      return held
    })
    await Promise.all(waiting)
    expect((await store.account('day'))?.held).toBe(1)
    expect((await store.account('other'))?.held).toBe(1)
  })

  it('B-PGLOCK-3: is waited for no longer than the patience of the store, and what is asked then is done', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema, patienceMs: 300 })
    for (const id of ['a', 'b']) await create(store, id)
    await whileLocked(`select 1 from ${schema}.sessions where id = 'a' for update`, async () => {
      const [a, b] = await Promise.allSettled([admit(store, 'a', message('m')), admit(store, 'b', message('m'))])
      expect([a.status, b.status]).toEqual(['rejected', 'fulfilled'])
      expect(a).toMatchObject({ reason: { code: 'store_busy' } })
    })
    await admit(store, 'a', message('m'))
    expect(await seqs(store, 'a')).toEqual([1, 2])
  })
})
