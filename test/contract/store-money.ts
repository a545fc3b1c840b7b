// The contract of a Store: holds on accounts, their limits, and how they are settled.
import { describe, expect, it } from 'vitest'
import type { Charge } from '../../src/ports/store.ts'
import { begin, type MakeFixture, note, outcome, type Owner, ownerWrite, seqs, write } from './fixture.ts'

const hold = (key: string, amount: number, ...accounts: string[]): Charge => ({ type: 'hold', key, amount, accounts })
const limit = (account: string, to: number | null) => ({ type: 'limit', account, limit: to }) as const

export function describeMoney(make: MakeFixture): void {
  const start = async () => {
    const { store } = await make()
    const owner = await begin(store, 's')
    const charge = (...charges: Charge[]) => write(store, owner, [note('x')], { charges })
    return { store, owner, charge }
  }

  describe('money', () => {
    it('B-STORE-40: a hold is settled at what the call cost, on every account it names', async () => {
      const { store, charge } = await start()
      await charge(limit('tree', 100), hold('k', 30, 'tree', 'day'))
      expect(await store.account('tree')).toEqual({ id: 'tree', limit: 100, held: 30, spent: 0, assumed: 0 })
      await charge({ type: 'settle', key: 'k', amount: 12 })
      expect(await store.account('tree')).toEqual({ id: 'tree', limit: 100, held: 0, spent: 12, assumed: 0 })
      expect(await store.account('day')).toEqual({ id: 'day', limit: null, held: 0, spent: 12, assumed: 0 })
      expect(await store.account('none')).toBeNull()
    })

    it('B-STORE-40: a lost call settles at its full hold and is counted as assumed; a freed one costs nothing', async () => {
      const { store, charge } = await start()
      await charge(hold('a', 30, 'acc'), hold('b', 5, 'acc'))
      await charge({ type: 'settle', key: 'a', amount: 30, assumed: true }, { type: 'free', key: 'b' })
      expect(await store.account('acc')).toEqual({ id: 'acc', limit: null, held: 0, spent: 30, assumed: 30 })
    })

    it('B-STORE-41: a hold over the limit of any account refuses the whole commit', async () => {
      const { store, owner, charge } = await start()
      await charge(limit('small', 50), limit('big', 1000), hold('a', 40, 'small', 'big'))
      expect(await outcome(charge(hold('b', 11, 'big', 'small')))).toBe('over_budget')
      expect(await outcome(charge(hold('b', 5, 'small'), hold('c', 6, 'small')))).toBe('over_budget')
      expect(await seqs(store, 's')).toHaveLength(owner.seq)
      expect(await store.account('big')).toMatchObject({ held: 40 })
      await charge(hold('b', 10, 'big', 'small'))
      await charge({ type: 'settle', key: 'a', amount: 45 })
      expect(await store.account('small')).toMatchObject({ held: 10, spent: 45 })
      expect(await outcome(charge(hold('c', 1, 'small')))).toBe('over_budget')
      await charge(limit('small', null), hold('c', 1_000_000, 'small'))
    })

    it('B-STORE-42: holds made at once never exceed a limit together', async () => {
      const { store } = await start()
      const owners = await Promise.all(Array.from({ length: 10 }, (_, i) => begin(store, `s${i}`)))
      await write(store, owners[0] as Owner, [note('x')], { charges: [limit('acc', 35)] })
      const results = await Promise.all(
        owners.map((owner, i) => {
          const charges = [hold(`k${i}`, 10, 'acc')]
          return outcome(store.commit([ownerWrite(store, owner, [note('y')], { charges })]))
        }),
      )
      expect(results.filter((result) => result === 'ok')).toHaveLength(3)
      expect(results.filter((result) => result === 'over_budget')).toHaveLength(7)
      expect(await store.account('acc')).toMatchObject({ held: 30 })
    })

    it('B-STORE-43: a hold made twice counts once; closing what is not open changes nothing', async () => {
      const { store, charge } = await start()
      await charge(hold('a', 30, 'acc'), hold('a', 30, 'acc'))
      await charge(hold('a', 30, 'acc'))
      expect(await store.account('acc')).toMatchObject({ held: 30 })
      await charge({ type: 'settle', key: 'a', amount: 7 })
      await charge({ type: 'settle', key: 'a', amount: 7 }, { type: 'free', key: 'a' }, { type: 'free', key: 'other' })
      expect(await store.account('acc')).toMatchObject({ held: 0, spent: 7 })
    })

    it('B-STORE-44: what is no amount of money is refused', async () => {
      const { store, charge } = await start()
      for (const amount of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(await outcome(charge(hold('a', amount, 'acc')))).toBe('invalid_input')
        expect(await outcome(charge(limit('acc', amount)))).toBe('invalid_input')
        expect(await outcome(charge({ type: 'settle', key: 'a', amount }))).toBe('invalid_input')
      }
      expect(await outcome(charge(hold('', 1, 'acc')))).toBe('invalid_input')
      expect(await outcome(charge(hold('a', 1, '')))).toBe('invalid_input')
      expect(await store.account('acc')).toBeNull()
    })

    it('B-STORE-45: money may move beside the log, and the session neither grows nor becomes due', async () => {
      const { store, owner, charge } = await start()
      const before = await store.card('s')
      const beside = (...charges: Charge[]) => store.commit([{ session: 's', lane: 'inbox', events: [], charges }])
      await beside(limit('acc', 50), hold('a', 30, 'acc'))
      expect(await store.account('acc')).toMatchObject({ limit: 50, held: 30 })
      expect(await outcome(beside(hold('b', 30, 'acc')))).toBe('over_budget')
      await beside({ type: 'settle', key: 'a', amount: 12 })
      expect(await store.account('acc')).toMatchObject({ held: 0, spent: 12 })
      expect(await store.card('s')).toEqual(before)
      // The owner is not in its way, and it is not in the owner's.
      await charge({ type: 'free', key: 'a' })
      expect(await seqs(store, 's')).toHaveLength(owner.seq)
    })

    it('B-STORE-46: holds of one session whose keys begin alike are settled together, each at all it holds', async () => {
      const { store, charge } = await start()
      const other = await begin(store, 's2', 'w2')
      await write(store, other, [note('x')], { charges: [hold('s:4.0/9', 7, 'acc')] })
      await charge(hold('s:4.0/1', 30, 'acc'), hold('s:4.0/2', 5, 'acc'), hold('s:4.1/1', 3, 'acc'))
      await charge({ type: 'settle', key: 's:4.0/2', amount: 1 }, { type: 'lost', key: 's:4.0/' })
      expect(await store.account('acc')).toMatchObject({ held: 10, spent: 31, assumed: 30 })
      await charge({ type: 'lost', key: 's:4.0/' }, { type: 'settle', key: 's:4.0/1', amount: 2 })
      expect(await store.account('acc')).toMatchObject({ held: 10, spent: 31, assumed: 30 })
    })

    it('B-STORE-47: a limit is raised by what is spent on another account, as it is when the limit is set', async () => {
      const { store, charge } = await start()
      const raised = { ...limit('acc', 50), raisedBy: 'more' } as const
      await charge(raised)
      expect(await store.account('acc')).toMatchObject({ limit: 50 })
      await charge(hold('r', 20, 'more'), { type: 'settle', key: 'r', amount: 20 }, raised, hold('a', 70, 'acc'))
      expect(await store.account('acc')).toMatchObject({ limit: 70, held: 70 })
      await charge({ ...limit('acc', null), raisedBy: 'more' })
      expect(await store.account('acc')).toMatchObject({ limit: null })
    })
  })
}
