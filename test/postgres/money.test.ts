// Money that several processes hold at once: never over a limit, and a refusal only where it does not fit.
import { describe, expect, it } from 'vitest'
import type { Fault } from '../../src/kernel/failure.ts'
import type { Charge } from '../../src/ports/store.ts'
import { create } from '../contract/fixture.ts'
import type { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { until } from '../until.ts'
import { newSchema, openPostgres, readOf } from './opened.ts'
import { noPostgres } from './server.ts'

const hold = (key: string, amount: number, ...accounts: string[]): Charge => ({ type: 'hold', key, amount, accounts })
const limit = (account: string, to: number): Charge => ({ type: 'limit', account, limit: to })

describe.skipIf(noPostgres)('money in several processes', () => {
  it('B-PG-5: ten that hold on one limit at once never exceed it, fill it, and each refusal says how it stood', async () => {
    const schema = newSchema()
    const stores = await Promise.all(Array.from({ length: 10 }, () => openPostgres({ schema })))
    const [first] = stores as [(typeof stores)[0]]
    for (let i = 0; i < 10; i++) await create(first, `s${i}`)
    const beside = (i: number, ...charges: Charge[]) =>
      (stores[i] as PostgresStore).commit([{ session: `s${i}`, lane: 'inbox', events: [], charges }])
    await beside(0, limit('day', 100))
    let over = 0
    const details: string[] = []
    const held = await Promise.all(
      stores.map(async (_, i) => {
        let mine = 0
        for (let k = 0; k < 6; k++) {
          try {
            await beside(i, hold(`s${i}:${k}`, 3, 'day', `own${i}`))
            mine += 1
          } catch (error) {
            expect(error).toMatchObject({ code: 'over_budget' })
            details.push((error as Fault).detail)
          }
          const { held: now = 0, spent = 0 } = (await first.account('day')) ?? {}
          if (now + spent > 100) over += 1
        }
        return mine
      }),
    )
    expect(over).toBe(0)
    expect(held.reduce((sum, mine) => sum + mine, 0)).toBe(33)
    expect(details).toHaveLength(60 - 33)
    expect(new Set(details)).toEqual(new Set(['day: limit 100, spent 0, held 99, asked 3']))
    expect(await first.account('day')).toMatchObject({ held: 99, spent: 0 })
    // All of it settled at once, by all: nothing is lost between them.
    await Promise.all(
      held.flatMap((_, i) =>
        Array.from({ length: 6 }, (_each, k) => beside(i, { type: 'settle', key: `s${i}:${k}`, amount: 2 })),
      ),
    )
    expect(await first.account('day')).toEqual({ id: 'day', limit: 100, held: 0, spent: 66, assumed: 0 })
    for (const [i, mine] of held.entries())
      expect(await first.account(`own${i}`)).toEqual(
        mine === 0 ? null : { id: `own${i}`, limit: null, held: 0, spent: 2 * mine, assumed: 0 },
      )
  })

  it('B-PG-24: a commit that moves money reads the accounts it names, however many there are', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 's')
    const beside = (on: PostgresStore, ...charges: Charge[]) =>
      on.commit([{ session: 's', lane: 'inbox', events: [], charges }])
    await Promise.all(Array.from({ length: 2_000 }, (_, i) => beside(store, limit(`a${i}`, 100))))
    const read = (): Promise<number> => readOf(schema, 'accounts')
    const before = await read()
    const other = await openPostgres({ schema })
    for (let i = 0; i < 20; i++) {
      await beside(other, hold(`h${i}`, 3, 'a7', 'a8'))
      await beside(other, { type: 'settle', key: `h${i}`, amount: 2 })
    }
    await other.close()
    await until(async () => expect(await read()).toBeGreaterThan(before))
    expect((await read()) - before).toBeLessThan(40 * 20)
  })

  it('B-PG-5: the same hold by several at once is one hold, and closing it twice pays once', async () => {
    const schema = newSchema()
    const stores = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ schema })))
    const [first] = stores as [(typeof stores)[0]]
    await create(first, 's')
    const all = (charge: Charge) =>
      Promise.all(stores.map((store) => store.commit([{ session: 's', lane: 'inbox', events: [], charges: [charge] }])))
    await all(hold('k', 5, 'day'))
    expect(await first.account('day')).toMatchObject({ held: 5 })
    await all({ type: 'settle', key: 'k', amount: 4 })
    expect(await first.account('day')).toMatchObject({ held: 0, spent: 4 })
  })

  it('B-PG-5: what frees and holds in one commit fits exactly, although others move the account', async () => {
    const schema = newSchema()
    const stores = await Promise.all([openPostgres({ schema }), openPostgres({ schema })])
    const [first] = stores
    for (const i of [0, 1]) await create(first, `s${i}`)
    const beside = (i: number, ...charges: Charge[]) =>
      (stores[i] as PostgresStore).commit([{ session: `s${i}`, lane: 'inbox', events: [], charges }])
    await beside(0, limit('day', 20), hold('s0:0', 10, 'day'))
    await beside(1, hold('s1:0', 10, 'day'))
    await Promise.all(
      [0, 1].map(async (i) => {
        for (let k = 0; k < 15; k++)
          await beside(i, { type: 'free', key: `s${i}:${k}` }, hold(`s${i}:${k + 1}`, 10, 'day'))
      }),
    )
    expect(await first.account('day')).toMatchObject({ held: 20, spent: 0 })
  })

  it('B-PG-5: a limit that is raised by what was spent elsewhere counts what is spent there when it is set', async () => {
    const schema = newSchema()
    const [left, right] = [await openPostgres({ schema }), await openPostgres({ schema })]
    await create(left, 's')
    const beside = (store: typeof left, ...charges: Charge[]) =>
      store.commit([{ session: 's', lane: 'inbox', events: [], charges }])
    await beside(left, hold('r0', 1, 'more'), { type: 'settle', key: 'r0', amount: 1 })
    for (let i = 1; i <= 10; i++) {
      await Promise.all([
        beside(right, hold(`r${i}`, 1, 'more'), { type: 'settle', key: `r${i}`, amount: 1 }),
        beside(left, { type: 'limit', account: 'acc', limit: 100, raisedBy: 'more' }),
      ])
      const { limit: set } = (await left.account('acc')) ?? {}
      expect([100 + i, 101 + i]).toContain(set)
      await beside(left, { type: 'limit', account: 'acc', limit: 100, raisedBy: 'more' })
      expect(await left.account('acc')).toMatchObject({ limit: 101 + i })
    }
  })
})
