// The contract of a Store that can `take`: due sessions are found and claimed in one step. A store without it is tested without this.
import { describe, expect, it } from 'vitest'
import type { CompleteStore, TakeOptions } from '../../src/ports/store.ts'
import { admit, claim, create, type MakeFixture, message, outcome, TTL, write, note } from './fixture.ts'

export function describeTake(make: MakeFixture): void {
  describe('take', () => {
    const take = async (
      store: CompleteStore,
      worker: string,
      wanted: TakeOptions,
    ): Promise<readonly (readonly [string, number])[]> => {
      if (!store.take) throw new Error('this store cannot take')
      return [...(await store.take(worker, TTL, wanted))].map(([session, { epoch }]) => [session, epoch] as const)
    }

    it('B-DIST-2: claims what is due in the order of `due`, at most `limit`, and no session for two workers', async () => {
      const { store, clock } = await make()
      for (const [i, id] of ['c', 'a', 'b', 'd'].entries()) await create(store, id, { due: clock.time - 100 * (9 - i) })
      await create(store, 'later', { due: clock.time + 1 })
      await admit(store, 'd', message('m'))
      const order = (await store.due(9)).sessions
      expect(order).toEqual(['d', 'c', 'a', 'b'])
      expect(await take(store, 'w1', { limit: 2 })).toEqual(order.slice(0, 2).map((id) => [id, 1]))
      expect((await store.due(9)).sessions).toEqual(order.slice(2))
      expect(await take(store, 'w2', { limit: 9 })).toEqual(order.slice(2).map((id) => [id, 1]))
      expect(await take(store, 'w3', { limit: 9 })).toEqual([])
      expect(await store.claim('c', 'w3', TTL)).toBeNull()
      const [held] = await take(store, 'w1', { limit: 0 })
      expect(held).toBeUndefined()
      expect(await outcome(take(store, 'w1', { limit: -1 }))).toBe('invalid_input')
      // The claims are leases as any other: they write, they end, and what was held is taken with a higher epoch.
      const seq = (await store.card('c'))?.seq ?? 0
      await write(store, { session: 'c', worker: 'w1', epoch: 1, seq }, [note('x')], {
        card: { ...(await cardOf(store, 'c')), due: clock.time },
      })
      clock.advance(TTL + 1)
      expect(await take(store, 'w3', { limit: 9, agents: ['a'] })).toContainEqual(['c', 2])
    })

    it('B-DIST-3: takes only what is of these agents, and with `fresh` nothing that failed before', async () => {
      const { store, clock } = await make()
      const due = clock.time - 1
      for (const [id, agent] of [
        ['a1', 'a'],
        ['b1', 'b'],
        ['a2', 'a'],
        ['c1', 'c'],
      ] as const)
        await create(store, id, { due, agent })
      const lost = await claim(store, 'a1', 'lost')
      const failed = await claim(store, 'a2', 'w0')
      await store.release('a2', failed.epoch, { attempts: 2, reason: 'it broke', until: due })
      clock.advance(TTL + 1)
      expect(await take(store, 'w1', { limit: 9, agents: ['a', 'b'], fresh: true })).toEqual([['b1', 1]])
      expect(await store.take?.('w1', TTL, { limit: 9, agents: ['a'] })).toEqual(
        new Map([
          ['a1', { epoch: lost.epoch + 1, seq: 1, until: clock.time + TTL, failed: 1 }],
          ['a2', { epoch: failed.epoch + 1, seq: 1, until: clock.time + TTL, failed: 2 }],
        ]),
      )
      expect((await store.due(9)).sessions).toEqual(['c1'])
      expect(await take(store, 'w1', { limit: 9, agents: [] })).toEqual([])
    })

    it('B-DIST-24: takes only of the sessions that are named, in the order of `due`', async () => {
      const { store, clock } = await make()
      for (const [i, id] of ['a', 'b', 'c', 'd'].entries()) await create(store, id, { due: clock.time - 9 + i })
      await claim(store, 'a', 'lost')
      clock.advance(TTL + 1)
      expect(await take(store, 'w1', { limit: 9, among: [] })).toEqual([])
      expect(await take(store, 'w1', { limit: 2, among: ['missing', 'nu\0ll', 'd', 'c', 'a'] })).toEqual([
        ['a', 2],
        ['c', 1],
      ])
      expect((await store.due(9)).sessions).toEqual(['b', 'd'])
    })

    it('B-DIST-23: of one tree takes a quarter of `limit` at most while others wait, and the rest of it after them', async () => {
      const { store, clock } = await make()
      const since = clock.time - 1_000
      for (let i = 0; i < 12; i++) await create(store, `big ${10 + i}`, { root: 'big', due: since + i })
      for (const id of ['x', 'y', 'z']) await create(store, id, { due: since + 100 })
      const ids = async (worker: string, limit: number): Promise<readonly string[]> =>
        (await take(store, worker, { limit })).map(([session]) => session)
      expect(await ids('w1', 4)).toEqual(['big 10', 'x', 'y', 'z'])
      await create(store, 'late', { due: since + 200 })
      expect(await ids('w2', 8)).toEqual(['big 11', 'big 12', 'big 13', 'big 14', 'big 15', 'big 16', 'big 17', 'late'])
      // What has input comes first, whatever its tree has.
      await create(store, 'w', { due: since + 300 })
      for (const i of [19, 20, 21]) await admit(store, `big ${i}`, message('m'))
      expect(await ids('w3', 4)).toEqual(['big 19', 'big 20', 'big 21', 'big 18'])
    })

    it.each(['w1', 'w2'])(
      'B-DIST-22: a worker that finds nothing to take has no longer lease for it, and what it held is then for %s',
      async (next) => {
        const { store, clock } = await make()
        await create(store, 's', { due: clock.time })
        expect(await take(store, 'w1', { limit: 9 })).toEqual([['s', 1]])
        for (let i = 0; i < 3; i++) {
          clock.advance(TTL / 4)
          expect(await take(store, 'w1', { limit: 9 })).toEqual([])
        }
        clock.advance(TTL / 4)
        expect(await take(store, next, { limit: 9 })).toEqual([['s', 2]])
      },
    )

    it('B-DIST-3: a worker that takes says which process it is, as one that claims', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time })
      const process = { host: 'h', pid: 7, started: 3 }
      await take(store, 'w1', { limit: 1, process })
      expect(await store.holders('h')).toEqual([{ worker: 'w1', process }])
    })
  })
}

async function cardOf(store: CompleteStore, session: string) {
  const card = await store.card(session)
  if (!card) throw new Error(`there is no card of ${session}`)
  return card
}
