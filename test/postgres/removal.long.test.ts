// Removal against everything that may happen at the same moment in other processes: forks, letters, claims, children, references to blobs.
import { describe, expect, it } from 'vitest'
import type { OwnerBody } from '../../src/kernel/event.ts'
import type { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { admit, card, create, creation, message, note, outcome, ownerWrite, TTL } from '../contract/fixture.ts'
import { runs } from '../runs.ts'
import { meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

const blob = { hash: 'h', media: 'a/b', data: new Uint8Array([1, 2, 3]) }
const part = { type: 'blob', hash: 'h', bytes: 3, media: 'a/b' } as const

/** Each may go before the removal or after it. `after`: how it is refused then, or `ok`. */
const rivals: Readonly<
  Record<
    string,
    { readonly act: (store: PostgresStore) => Promise<unknown>; readonly after: string; readonly bars?: string }
  >
> = {
  fork: {
    act: (store) => {
      const body = {
        type: 'session.created',
        agent: 'a',
        planner: 'model',
        fork: { session: 's', seq: 1 },
      } as OwnerBody
      return store.commit([ownerWrite(store, { session: 'fork', worker: '', epoch: 0, seq: 0 }, [body])])
    },
    after: 'session_missing',
    bars: 'conflict',
  },
  letter: { act: (store) => admit(store, 's', message('late')), after: 'session_missing' },
  claim: { act: (store) => store.claim('s', 'w', TTL), after: 'session_missing', bars: 'session_busy' },
  'a blob that came with another': {
    act: (store) => store.commit([{ session: 'other', lane: 'inbox', events: [message('b')], blobs: [blob] }]),
    after: 'ok',
  },
  'a letter that refers to a blob': {
    act: (store) => admit(store, 'other', { type: 'user.message', id: 'r', parts: [part], when: 'next' }),
    after: 'ok',
  },
  'money beside the log': {
    act: (store) =>
      store.commit([
        {
          session: 's',
          lane: 'inbox',
          events: [],
          charges: [{ type: 'hold', key: 'k2', accounts: ['day'], amount: 2 }],
        },
      ]),
    after: 'session_missing',
  },
  child: {
    act: (store) =>
      store.commit([
        creation(store, 's~2.0', { card: card('s~2.0', { root: 's', parent: 's' }) }),
        { session: 's', lane: 'inbox', events: [message('c')] },
      ]),
    after: 'session_missing',
  },
  removal: { act: (store) => store.remove('s', 'bob'), after: 'session_missing', bars: 'session_missing' },
}

/** What is left must hang together, whoever was first. */
async function check(schema: string, store: PostgresStore, gone: boolean): Promise<void> {
  const [loose] = await meddle<Record<string, number>>(`select
    (select count(*) from ${schema}.events e where not exists (select 1 from ${schema}.sessions s where s.n = e.n))::int as events,
    (select count(*) from ${schema}.inbox i where not exists (select 1 from ${schema}.sessions s where s.n = i.n))::int as inbox,
    (select count(*) from ${schema}.blob_refs r where not exists (select 1 from ${schema}.sessions s where s.n = r.n))::int as refs,
    (select count(*) from ${schema}.blobs b where not exists (select 1 from ${schema}.blob_refs r where r.hash = b.hash))::int as blobs,
    (select count(*) from ${schema}.holds h where not exists (select 1 from ${schema}.sessions s where s.id = h.session))::int as holds,
    (select count(*) from ${schema}.forks f where not exists (select 1 from ${schema}.sessions s where s.id = f.origin))::int as forks`)
  expect(loose).toEqual({ events: 0, inbox: 0, refs: 0, blobs: 0, holds: 0, forks: 0 })
  const day = await store.account('day')
  // What was held is spent, or still held: never lost, never twice.
  expect(((day?.held ?? 0) + (day?.spent ?? 0)) % 5).toBe(day?.held === 7 || day?.spent === 7 ? 2 : 0)
  if (gone) expect(day?.held).toBe(0)
  for (const id of ['s', 's~1.0', 'other', 'fork']) {
    const page = await store.read(id, 0).catch(() => null)
    expect(page?.damaged).toBeUndefined()
  }
}

describe.skipIf(noPostgres)('a removal', () => {
  it.each(Object.keys(rivals))(
    'B-PG-6: against %s at the same moment: one goes first, and all hangs together',
    async (name) => {
      const { act, after, bars } = rivals[name] as (typeof rivals)[string]
      const schema = newSchema()
      const [left, right] = [await openPostgres({ schema }), await openPostgres({ schema })]
      const seen = new Set<string>()
      for (let round = 0; round < runs(50); round++) {
        await create(left, 's')
        await create(left, 's~1.0', { root: 's' })
        if (round === 0) await create(left, 'other')
        const hold = { type: 'hold', key: 'k', accounts: ['day', 'session:s'], amount: 5 } as const
        await left.commit([{ session: 's~1.0', lane: 'inbox', events: [message('m')], charges: [hold], blobs: [blob] }])
        const pair = round % 2 === 0 ? [left.remove('s', 'ann'), act(right)] : [act(right), left.remove('s', 'ann')]
        const codes = await Promise.all(pair.map((promise) => outcome(promise)))
        const [removed, other] = (round % 2 === 0 ? codes : codes.toReversed()) as [string, string]
        seen.add(`${removed} ${other}`)
        if (bars !== undefined && removed !== 'ok') expect([removed, other]).toEqual([bars, 'ok'])
        else expect(removed).toBe('ok')
        if (other !== 'ok') expect(other).toBe(after)
        await check(schema, right, removed === 'ok' || name === 'removal')
        await clear(left)
      }
      expect(seen.size).toBeGreaterThan(0)

      async function clear(store: PostgresStore): Promise<void> {
        await store.release('s', (await store.claim('s', 'w', TTL).catch(() => null))?.epoch ?? 0)
        for (const id of ['fork', 's', 's~2.0', 'other']) await outcome(store.remove(id, 'clear'))
        await create(store, 'other')
        await meddle(`delete from ${schema}.accounts`)
      }
    },
  )

  it('B-PG-6: a removed session is out of the tables, and its removal says so', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 's')
    await admit(store, 's', message('m', 'a secret'))
    await store.commit([{ session: 's', lane: 'inbox', events: [], blobs: [blob] }])
    await store.remove('s', 'ann')
    for (const table of [
      'sessions',
      'events',
      'inbox',
      'snapshots',
      'finds',
      'labels',
      'forks',
      'blobs',
      'blob_refs',
      'holds',
    ])
      expect(await meddle(`select * from ${schema}.${table}`)).toEqual([])
    expect(await store.removals(9)).toMatchObject([{ session: 's', by: 'ann', events: 2 }])
    await create(store, 's')
    expect(
      await outcome(store.commit([ownerWrite(store, { session: 's', worker: '', epoch: 1, seq: 1 }, [note('x')])])),
    ).toBe('lease_lost')
  })
})
