// Answers of the database that are lost: whatever was asked, it is done once, and the caller gets what it would have got.
import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { type WriteSql, UnknownOutcomeError } from '../../src/stores/postgres/sql.ts'
import type { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import {
  begin,
  card,
  create,
  creation,
  message,
  note,
  ownerWrite,
  START,
  StillClock,
  TTL,
} from '../contract/fixture.ts'
import { emptySchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

/** Loses the answer of the statement that is `next` from now, after it was done. */
class Loser {
  next = 0
  lost = 0

  readonly change = (sql: WriteSql): WriteSql => ({
    ask: async (...asked: Parameters<WriteSql['ask']>) => {
      this.next -= 1
      const rows = await sql.ask<never>(...asked)
      if (this.next !== 0) return rows
      this.lost += 1
      throw new UnknownOutcomeError(new Fault('store_busy', 'The answer was lost.'))
    },
    transaction: (work) => sql.transaction(work),
  })
}

const blob = { hash: 'h', media: 'a/b', data: new Uint8Array([1, 2]) }

/** What is done, on a store with the sessions `s` (held by w1), `parent` and `old` (with a child and money). */
const acts: Readonly<Record<string, (store: PostgresStore) => Promise<unknown>>> = {
  'creating a session': (store) => store.commit([creation(store, 'new')]),
  'births, letters and blobs with an owner write': (store) =>
    store.commit([
      ownerWrite(store, { session: 's', worker: 'w1', epoch: 1, seq: 1 }, [note('1'), note('2')], {
        sends: [{ session: 'parent', event: message('letter') }],
        blobs: [blob],
        snapshot: { seq: 3, version: 1, body: '{}' },
      }),
      creation(store, 's~1.0', { card: card('s~1.0', { root: 's', parent: 's' }) }),
      { session: 's~1.0', lane: 'inbox', events: [message('task')] },
    ]),
  charges: (store) =>
    store.commit([
      ownerWrite(store, { session: 's', worker: 'w1', epoch: 1, seq: 1 }, [note('1')], {
        charges: [
          { type: 'limit', account: 'fresh', limit: 9 },
          { type: 'hold', key: 'k2', accounts: ['day', 'fresh'], amount: 4 },
          { type: 'settle', key: 'k2', amount: 3 },
          { type: 'hold', key: 'k3', accounts: ['day', 'fresh'], amount: 5 },
        ],
      }),
    ]),
  'money beside the log': (store) =>
    store.commit([
      { session: 's', lane: 'inbox', events: [], charges: [{ type: 'hold', key: 'k4', accounts: ['day'], amount: 4 }] },
    ]),
  'letters alone': (store) =>
    store.commit([{ session: 'parent', lane: 'inbox', events: [message('a'), message('b')] }]),
  'the rest of a session, which gives its lease back': (store) =>
    store.commit([
      ownerWrite(store, { session: 's', worker: 'w1', epoch: 1, seq: 1 }, [note('end')], {
        release: true,
        card: card('s', { due: START + 5 }),
      }),
    ]),
  removal: (store) => store.remove('old', 'ann'),
  'a lease that is given back': (store) => store.release('s', 1, { attempts: 2, reason: 'why', until: START + 50 }),
  'due sessions that are taken': async (store) => [...(await store.take('w2', TTL, { limit: 1 }))],
}

async function prepare(store: PostgresStore): Promise<void> {
  await begin(store, 's')
  await create(store, 'parent', { due: START - 1 })
  await create(store, 'old')
  await create(store, 'old~1.0', { root: 'old' })
  const hold = { type: 'hold', key: 'k1', accounts: ['day', 'session:old'], amount: 7 } as const
  await store.commit([{ session: 'old', lane: 'inbox', events: [message('m')], charges: [hold], blobs: [blob] }])
}

/** All that can be read, but for which write found itself done. */
async function everything(store: PostgresStore): Promise<unknown> {
  const logs = await Promise.all(
    ['s', 's~1.0', 'parent', 'old', 'new'].map(async (id) => [
      await store.read(id, 0).catch((error: Fault) => error.code),
      await store.card(id),
      await store.snapshot(id),
    ]),
  )
  const accounts = await Promise.all(['day', 'fresh', 'session:old'].map((id) => store.account(id)))
  return {
    logs,
    accounts,
    removals: await store.removals(9),
    due: (await store.due(9)).sessions,
    blob: await store.blob('h'),
  }
}

const alike = (answer: unknown): unknown =>
  JSON.parse(JSON.stringify(answer ?? null).replaceAll('"duplicate":true', '"duplicate":false'))

describe.skipIf(noPostgres)('an answer of the database that is lost', () => {
  it.each(Object.keys(acts))('B-PG-3: %s is done once, whichever of its answers was lost', async (name) => {
    const act = acts[name] as (store: PostgresStore) => Promise<unknown>
    const clock = new StillClock()
    const run = async (next: number) => {
      const loser = new Loser()
      const store = await openPostgres({ clock, schema: await emptySchema(), change: loser.change })
      await prepare(store)
      loser.next = next
      const answer = alike(await act(store))
      return { lost: loser.lost, answer, found: await everything(store), counts: store.counts }
    }
    const expected = await run(0)
    expect(expected.lost).toBe(0)
    let lost = 0
    for (let next = 1; ; next++) {
      const found = await run(next)
      if (found.lost === 0) break
      lost += 1
      expect([found.answer, found.found]).toEqual([expected.answer, expected.found])
      expect(found.counts.lost).toBe(1)
    }
    expect(lost).toBeGreaterThan(0)
  })

  it('B-PG-3: a heartbeat is asked for again on its own connection, and twice is as good as once', async () => {
    const clock = new StillClock()
    const once = await openPostgres({ clock, schema: await emptySchema() })
    await prepare(once)
    const held = [...(await once.extend('w1', TTL))]
    const found = await everything(once)
    expect([...(await once.extend('w1', TTL))]).toEqual(held)
    expect(await everything(once)).toEqual(found)
  })

  it('B-PG-3: a store is opened, whichever of its first answers is lost', async () => {
    for (let next = 1; ; next++) {
      const loser = new Loser()
      loser.next = next
      await openPostgres({ change: loser.change })
      if (loser.lost === 0) break
    }
  })

  it('B-PG-3: a claim whose answer was lost is claimed anew by the same worker, and its earlier epoch is dead', async () => {
    const loser = new Loser()
    const store = await openPostgres({ change: loser.change })
    await create(store, 's')
    loser.next = 2
    expect(await store.claim('s', 'w1', TTL)).toMatchObject({ epoch: 2 })
    expect(loser.lost).toBe(1)
    expect([...(await store.extend('w1', TTL))]).toEqual([['s', 2]])
  })

  it('B-PG-3: a database that never answers is said plainly, and the store goes on when it does', async () => {
    let dark = false
    const unanswered = (): void => {
      if (dark) throw new UnknownOutcomeError(new Fault('store_busy', 'The database does not answer.'))
    }
    const change = (sql: WriteSql): WriteSql => ({
      ask: async (...asked: Parameters<WriteSql['ask']>) => {
        unanswered()
        return sql.ask<never>(...asked)
      },
      transaction: async (work) => {
        unanswered()
        return sql.transaction(work)
      },
    })
    const store = await openPostgres({ change })
    await create(store, 's')
    dark = true
    await expect(store.commit([{ session: 's', lane: 'inbox', events: [message('m')] }])).rejects.toThrow(
      'does not answer',
    )
    dark = false
    await store.commit([{ session: 's', lane: 'inbox', events: [message('m')] }])
    expect((await store.read('s', 1)).events).toHaveLength(1)
  })
})
