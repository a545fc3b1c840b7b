// The contract of a Store: which watchers hear which events of a commit, within the process.
import { describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import { admit, begin, card, claim, create, type MakeFixture, message, note, outcome, write } from './fixture.ts'

export function describeNews(make: MakeFixture): void {
  describe('news', () => {
    it('B-STORE-60: a session may be watched before it is there', async () => {
      const { store } = await make()
      const heard: number[] = []
      store.watch('s', (news) => heard.push(...(news ?? []).map((event) => event.seq)))
      await create(store, 's')
      expect(heard).toEqual([1])
    })

    it('B-STORE-60: news of a commit is told by the time its promise resolves', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      let told = false
      store.watch('s', () => {
        told = true
      })
      await write(store, owner, [note('x')])
      expect(told).toBe(true)
    })

    it('B-STORE-62: due listeners are called when a session may have become due, and not while a worker just runs', async () => {
      const { store, clock } = await make()
      let calls = 0
      const leave = store.watchDue(() => {
        calls += 1
      })
      const called = async (act: () => Promise<unknown>) => {
        const before = calls
        await act()
        return calls > before
      }
      expect(await called(() => create(store, 's'))).toBe(false)
      expect(await called(() => create(store, 't', { due: clock.time + 10 }))).toBe(true)
      expect(await called(() => admit(store, 's', message('m')))).toBe(true)
      const owner = await claim(store, 's', 'w1')
      clock.advance(5)
      expect(await called(() => write(store, owner, [note('1')], { card: card('s', { due: clock.time }) }))).toBe(false)
      expect(await called(() => admit(store, 's', message('m2')))).toBe(true)
      owner.seq += 1
      expect(await called(() => write(store, owner, [note('2')], { card: card('s', { due: clock.time }) }))).toBe(false)
      expect(await called(() => store.release('s', owner.epoch))).toBe(true)
      const again = await claim(store, 's', 'w1')
      const rest = { release: true, card: card('s') } as const
      expect(await called(() => write(store, again, [note('3')], rest))).toBe(false)
      leave()
      expect(await called(() => admit(store, 's', message('m3')))).toBe(false)
    })
  })
}

export function describeEventNews(make: MakeFixture): void {
  describe('news with their events', () => {
    it('B-STORE-60: a watcher of a session gets the events of each commit that grew it, in order, until it leaves', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await create(store, 'other')
      const heard: (readonly Event[] | null)[] = []
      const leave = store.watch('s', (news) => heard.push(news))
      await write(store, owner, [note('1'), note('2')])
      await admit(store, 's', message('m'))
      await admit(store, 's', message('m'))
      await admit(store, 'other', message('m'))
      owner.seq = 4
      expect(await outcome(write(store, { ...owner, epoch: 9 }, [note('x')]))).toBe('lease_lost')
      await write(store, owner, [], { card: card('s', { status: 'running' }) })
      expect(heard.map((news) => news?.map((event) => event.seq))).toEqual([[2, 3], [4]])
      leave()
      leave()
      await write(store, owner, [note('3')])
      expect(heard).toHaveLength(2)
    })

    it('B-STORE-61: a listener that commits does not make others hear things out of order', async () => {
      const { store } = await make()
      await create(store, 's')
      const first: number[] = []
      const second: number[] = []
      let more: Promise<unknown> = Promise.resolve()
      store.watch('s', (news) => {
        for (const { seq } of news ?? []) first.push(seq)
        if (first.length === 1) more = admit(store, 's', message('m2'))
      })
      store.watch('s', (news) => second.push(...(news ?? []).map((event) => event.seq)))
      await admit(store, 's', message('m1'))
      await more
      expect([first, second]).toEqual([
        [2, 3],
        [2, 3],
      ])
    })
  })
}

export function describeCardNews(make: MakeFixture): void {
  describe('news of cards', () => {
    it('B-FOLLOW-16: watchers of cards are told of each session that a commit, a release or a removal touches, until they leave', async () => {
      const { store } = await make()
      const told = new Set<string>()
      const leave = store.watchCards((session) => told.add(session))
      const touched = async (act: () => Promise<unknown>) => {
        told.clear()
        await act()
        return [...told]
      }
      expect(await touched(() => create(store, 's'))).toEqual(['s'])
      await create(store, 't')
      expect(await touched(() => admit(store, 's', message('m')))).toEqual(['s'])
      const owner = await claim(store, 's', 'w1')
      expect(await touched(() => write(store, owner, [note('1')]))).toEqual(['s'])
      expect(await touched(() => write(store, owner, [], { card: card('s', { status: 'running' }) }))).toEqual(['s'])
      const trouble = { attempts: 1, reason: 'no luck', until: null }
      expect(await touched(() => store.release('s', owner.epoch, trouble))).toEqual(['s'])
      expect(await touched(() => store.remove('t', 'me'))).toEqual(['t'])
      leave()
      expect(await touched(() => admit(store, 's', message('m2')))).toEqual([])
    })
  })
}
