// The contract of a Store: cards, and the queries by index: which sessions are due, when the next one is, and which exist.
import { describe, expect, it } from 'vitest'
import type { Card, CardFilter, CardQuery, CompleteStore } from '../../src/ports/store.ts'
import {
  admit,
  begin,
  card,
  claim,
  create,
  creation,
  type MakeFixture,
  message,
  note,
  START,
  TTL,
  write,
} from './fixture.ts'

export function describeIndexes(make: MakeFixture): void {
  describe('cards', () => {
    it('B-STORE-50: a card is what the owner last wrote, with the seq, time and due of the present', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      clock.advance(10)
      const written = card('s', {
        status: 'running',
        cost: 12,
        asks: ['2.0'],
        waits: ['2.1'],
        wakes: 1,
        outcome: 'failed',
      })
      await write(store, owner, [note('x')], { card: { ...written, due: clock.time + 5, root: 'r' } })
      const now = { seq: 2, at: clock.time, due: clock.time + 5 }
      const told = { created: START, tokens: 0 }
      expect(await store.card('s')).toEqual({ ...written, root: 'r', ...now, ...told })
      await admit(store, 's', message('m'))
      const later = { seq: 3, at: clock.time, due: clock.time, title: 'hello' }
      expect(await store.card('s')).toEqual({ ...written, root: 'r', ...told, ...later })
      expect(await store.card('none')).toBeNull()
    })

    it('B-STORE-168: a card that differs only in an outage, labels or urgency is written', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      const due = clock.time + 60_000
      const away = (tries: number) =>
        card('s', { status: 'rescheduling', due, outage: { reason: 'it is away', tries, begins: false } })
      await write(store, owner, [note('x')], { card: away(1) })
      await write(store, owner, [note('x')], { card: away(2) })
      expect(await store.card('s')).toMatchObject({ outage: { tries: 2 } })
      await write(store, owner, [note('x')], { card: card('s', { status: 'rescheduling', due, urgent: true }) })
      const told = await store.card('s')
      expect(told).toMatchObject({ urgent: true })
      expect(told).not.toHaveProperty('outage')
      const labels = { team: 'blue' }
      await write(store, owner, [note('x')], { card: card('s', { status: 'rescheduling', due, urgent: true, labels }) })
      expect(await store.card('s')).toMatchObject({ urgent: true, labels })
    })

    it('B-STORE-51: list goes by id, in pages, and filters by status and root', async () => {
      const { store } = await make()
      for (const id of ['b', 'ä', 'a', 'Z', '🦙', '\uffff']) await create(store, id, { root: id === 'a' ? 'b' : id })
      const owner = await claim(store, 'b', 'w1')
      await write(store, owner, [note('x')], { card: card('b', { status: 'running' }) })
      const ids = async (filter: Partial<CardFilter>) =>
        (await store.list({ limit: 99, ...filter })).map((found) => found.session)
      const all = ['Z', 'a', 'b', 'ä', '\uffff', '🦙']
      expect(await ids({})).toEqual(all)
      expect(await ids({ limit: 2 })).toEqual(['Z', 'a'])
      expect(await ids({ limit: 2, after: 'a' })).toEqual(['b', 'ä'])
      expect(await ids({ status: 'running' })).toEqual(['b'])
      expect(await ids({ status: 'idle' })).toEqual(all.filter((id) => id !== 'b'))
      expect(await ids({ root: 'b' })).toEqual(['a', 'b'])
      expect(await ids({ root: 'b', status: 'idle' })).toEqual(['a'])
      expect(await ids({ root: 'b', status: 'idle', after: 'a' })).toEqual([])
      expect((await store.list({ limit: 1, status: 'running' }))[0]).toMatchObject({ seq: 2, root: 'b' })
    })

    it('B-STORE-150: with the order `newest` a page goes by the last event of roots, newest first, and filters by status', async () => {
      const { store, clock } = await make()
      for (const id of ['b', 'c', 'a', 'child']) {
        clock.time += 1.25
        await create(store, id, { root: id === 'child' ? 'a' : id })
      }
      await create(store, 'A')
      clock.time += 0.5
      const owner = await claim(store, 'c', 'w1')
      await write(store, owner, [note('x')], { card: card('c', { status: 'running' }) })
      const newest = await cardsBy(store, 'newest', { limit: 9 })
      expect(newest.map((found) => found.session)).toEqual(['c', 'A', 'a', 'b'])
      for (const found of newest) expect(found).toEqual(await store.card(found.session))
      expect((await cardsBy(store, 'newest', { limit: 2 })).map((found) => found.session)).toEqual(['c', 'A'])
      expect(await cardsBy(store, 'newest', { limit: 9, status: 'running' })).toMatchObject([{ session: 'c', seq: 2 }])
      expect(await cardsBy(store, 'newest', { limit: 9, status: 'terminated' })).toEqual([])
    })
  })

  describe('sessions that wait', () => {
    it('B-PAGELIST-1: list finds the sessions that may wait for a person, with all other filters, as they wait and no longer', async () => {
      const { store } = await make()
      const waiting: Readonly<Record<string, Partial<Card>>> = {
        a: { status: 'requires_action' },
        b: { status: 'running', asks: ['2.0'] },
        c: { status: 'running', waits: ['2.0'] },
        d: { status: 'idle', outcome: 'limit' },
      }
      const calm: Readonly<Record<string, Partial<Card>>> = {
        e: { status: 'idle', outcome: 'completed' },
        f: { status: 'running', outcome: 'limit' },
        g: { status: 'rescheduling', due: 5 },
        h: { status: 'terminated', outcome: 'limit' },
      }
      for (const [id, over] of Object.entries({ ...calm, ...waiting }))
        await create(store, id, { ...over, labels: { team: id < 'c' ? 'blue' : 'red' }, folder: `/${id}` })
      const ids = async (filter: Partial<CardFilter> = {}) =>
        (await store.list({ waiting: true, limit: 99, ...filter })).map(({ session }) => session)
      expect(await ids()).toEqual(['a', 'b', 'c', 'd'])
      expect(await ids({ limit: 2 })).toEqual(['a', 'b'])
      expect(await ids({ after: 'b' })).toEqual(['c', 'd'])
      expect(await ids({ status: 'running' })).toEqual(['b', 'c'])
      expect(await ids({ where: { team: 'red' } })).toEqual(['c', 'd'])
      expect(await ids({ folder: '/b' })).toEqual(['b'])
      expect(await ids({ root: 'd' })).toEqual(['d'])
      expect(await ids({ parent: 'a' })).toEqual([])
      const owner = await claim(store, 'a', 'w1')
      await write(store, owner, [note('x')], { card: card('a', { status: 'running' }) })
      expect(await ids()).toEqual(['b', 'c', 'd'])
    })

    it('B-PAGELIST-1: what is below many roots comes by root and then by id, with no root among it', async () => {
      const { store } = await make()
      // One id begins with another, and the order by ids alone would mix the two trees.
      for (const root of ['a', 'a-b', 'c'])
        for (const id of [root, `${root}~3.0`, `${root}~3.0~2.1`]) await create(store, id, { root })
      const below = async (roots: readonly string[], limit = 99) =>
        (await store.listBelow?.(roots, limit))?.map(({ session }) => session) ?? null
      const all = ['a~3.0', 'a~3.0~2.1', 'a-b~3.0', 'a-b~3.0~2.1']
      // A store in memory does without.
      if (store.listBelow === undefined) return
      expect(await below(['a-b', 'a', 'none', '\0'])).toEqual(all)
      expect(await below(['a', 'a-b'], 3)).toEqual(all.slice(0, 3))
      expect(await below([])).toEqual([])
    })
  })

  describe('sessions that wait for a time', () => {
    it('B-PAGELIST-16: they come by that time, roots and children, driven or not, without lanes of consumers', async () => {
      const { store } = await make()
      const waits = { status: 'rescheduling' } as const
      const given: Readonly<Record<string, Parameters<typeof create>[2]>> = {
        late: { ...waits, due: START + 9_000, labels: { team: 'red' } },
        soon: { ...waits, due: START + 1_000 },
        hurries: { ...waits, due: START + 5_000, urgent: true, labels: { team: 'red' } },
        'soon~3.0': { ...waits, due: START + 3_000, root: 'soon' },
        driven: { status: 'running', due: START + 4_000 },
        calm: { status: 'idle' },
        over: { status: 'terminated', due: START + 1_500 },
      }
      for (const [id, over] of Object.entries(given)) await create(store, id, over)
      const agent = 'consumer:log'
      const lane = creation(store, 'lane', { card: card('lane', { ...waits, due: START + 2_000, agent }) })
      await store.commit([{ ...lane, events: lane.events.map((event) => ({ ...event, agent })) }])
      await claim(store, 'driven', 'w1')
      // A store in memory does without.
      if (store.listWaking === undefined) return
      const ids = async (...asked: Parameters<NonNullable<typeof store.listWaking>>) =>
        (await store.listWaking?.(...asked))?.map(({ session }) => session)
      expect(await ids(9)).toEqual(['soon', 'soon~3.0', 'driven', 'hurries', 'late'])
      expect(await ids(2)).toEqual(['soon', 'soon~3.0'])
      expect(await ids(9, { team: 'red' })).toEqual(['hurries', 'late'])
      expect(await ids(9, { team: 'r\0d' })).toEqual([])
    })

    it('B-PAGELIST-17: a page of cards has children too where that is asked for', async () => {
      const { store } = await make()
      for (const id of ['a', 'a~3.0', 'b']) await create(store, id, { root: id[0] ?? '' })
      const ids = async (more: Partial<CardQuery>) =>
        (await cardsBy(store, 'newest', { limit: 9, ...more })).map(({ session }) => session).sort()
      expect(await ids({})).toEqual(['a', 'b'])
      expect(await ids({ children: true })).toEqual(['a', 'a~3.0', 'b'])
    })
  })

  describe('folders and parents', () => {
    it('B-STORE-166: list filters by folder, together with status and root', async () => {
      const { store } = await make()
      for (const id of ['c', 'a']) await create(store, id, { folder: '/one' })
      await create(store, 'b', { folder: '/one', status: 'running' })
      await create(store, 'b~1.0', { root: 'b' })
      await create(store, 'x', { folder: '/two' })
      const ids = async (filter: Partial<CardFilter>) =>
        (await store.list({ limit: 99, folder: '/one', ...filter })).map((found) => found.session)
      expect(await ids({})).toEqual(['a', 'b', 'c'])
      expect(await ids({ after: 'a', limit: 1 })).toEqual(['b'])
      expect(await ids({ status: 'running' })).toEqual(['b'])
      expect(await ids({ root: 'b' })).toEqual(['b'])
      expect(await ids({ root: 'a', status: 'running' })).toEqual([])
      for (const folder of ['/', '/one/', '/One', '']) expect(await ids({ folder })).toEqual([])
    })

    it('B-CARD-1: list finds the children of one session, with status, root and labels', async () => {
      const { store } = await make()
      const labels = { team: 'blue' }
      await create(store, 'p', { labels })
      await create(store, 'p~9.0', { root: 'p', parent: 'p', status: 'running' })
      await create(store, 'p~2.0', { root: 'p', parent: 'p', labels })
      await create(store, 'p~2.0~3.0', { root: 'p', parent: 'p~2.0' })
      const ids = async (filter: Partial<CardFilter>) =>
        (await store.list({ limit: 99, parent: 'p', ...filter })).map((found) => found.session)
      expect(await ids({})).toEqual(['p~2.0', 'p~9.0'])
      expect(await ids({ after: 'p~2.0' })).toEqual(['p~9.0'])
      expect(await ids({ status: 'running' })).toEqual(['p~9.0'])
      expect(await ids({ where: labels })).toEqual(['p~2.0'])
      expect(await ids({ where: { team: 'red' } })).toEqual([])
      expect(await ids({ parent: 'p~2.0' })).toEqual(['p~2.0~3.0'])
      for (const none of [{ root: 'q' }, { folder: '/one' }, { parent: 'q' }, { parent: '' }])
        expect(await ids(none)).toEqual([])
    })
  })

  describe('due times', () => {
    it('B-STORE-53: a session that a worker drives is not due, until it is released', async () => {
      const { store, clock } = await make()
      for (const id of ['a', 'b']) await create(store, id, { due: clock.time - 5 })
      const owner = await claim(store, 'a', 'w1')
      expect((await store.due(9)).sessions).toEqual(['b'])
      await store.release('a', owner.epoch)
      expect((await store.due(9)).sessions).toEqual(['a', 'b'])
    })

    it('B-DIST-1: due names only sessions of the agents that are asked for, and the next due time is not after theirs', async () => {
      const { store, clock } = await make()
      const now = clock.time
      await create(store, 'a1', { agent: 'a', due: now - 9 })
      await create(store, 'b1', { agent: 'b', due: now - 7 })
      await create(store, 'a2', { agent: 'a', due: now - 5 })
      await create(store, 'd1', { agent: 'd', due: now + 10 })
      expect((await store.due(9, ['a'])).sessions).toEqual(['a1', 'a2'])
      expect((await store.due(2, ['b', 'a'])).sessions).toEqual(['a1', 'b1'])
      expect((await store.due(9, ['d', "a'"])).sessions).toEqual([])
      expect((await store.due(9, [])).sessions).toEqual([])
      expect((await store.due(0, ['d'])).next).toBeLessThanOrEqual(now + 10)
    })

    it('B-STORE-54: the next due time is when due will find something', async () => {
      const { store, clock } = await make()
      const now = clock.time
      expect(await store.due(0)).toEqual({ sessions: [], next: null })
      await create(store, 'never')
      expect(await store.due(9)).toEqual({ sessions: [], next: null })
      await create(store, 'later', { due: now + 10 })
      expect(await store.due(9)).toEqual({ sessions: [], next: now + 10 })
      await create(store, 'driven', { due: now - 5 })
      expect((await store.due(0)).next).toBe(now - 5)
      const { next } = await store.due(9)
      expect(next).toBeLessThanOrEqual(now)
      await claim(store, 'driven', 'w1')
      expect((await store.due(0)).next).toBe(now + 10)
    })

    it('B-STORE-52: due names the sessions whose time has come, the longest waiting first', async () => {
      const { store, clock } = await make()
      const now = clock.time
      await create(store, 'later', { due: now + 10 })
      await create(store, 'second', { due: now - 1 })
      await create(store, 'first', { due: now - 9 })
      await create(store, 'never')
      await create(store, 'now', { due: now })
      expect((await store.due(99)).sessions).toEqual(['first', 'second', 'now'])
      expect((await store.due(2)).sessions).toEqual(['first', 'second'])
      clock.advance(10)
      expect((await store.due(99)).sessions).toEqual(['first', 'second', 'now', 'later'])
    })
  })
}

async function cardsBy(
  store: CompleteStore,
  order: CardQuery['order'],
  query: Omit<CardQuery, 'order'>,
): Promise<readonly Card[]> {
  return (await store.page({ ...query, order })).cards
}

export function describeOrders(make: MakeFixture): void {
  describe('lists in other orders', () => {
    it('B-STORE-166: list filters by folder, with status and root: by id, the newest first, or the last made first', async () => {
      const { store, clock } = await make()
      for (const [id, folder] of Object.entries({ b: '/one', c: '/one', a: '/one', x: '/one/two', y: null })) {
        clock.time += 1
        await create(store, id, folder === null ? {} : { folder })
      }
      await create(store, 'b~1.0', { root: 'b' })
      clock.time += 1
      const owner = await claim(store, 'c', 'w1')
      await write(store, owner, [note('x')], { card: card('c', { status: 'running', folder: '/one' }) })
      await admit(store, 'c', message('m'))
      const ids = async (filter: Partial<CardFilter>) =>
        (await store.list({ limit: 99, folder: '/one', ...filter })).map((found) => found.session)
      const idsBy = async (order: CardQuery['order'], query: Partial<CardQuery> = {}) =>
        (await cardsBy(store, order, { limit: 99, folder: '/one', ...query })).map((found) => found.session)
      expect(await ids({})).toEqual(['a', 'b', 'c'])
      expect(await ids({ after: 'a', limit: 1 })).toEqual(['b'])
      expect(await idsBy('newest')).toEqual(['c', 'a', 'b'])
      expect(await idsBy('newest', { limit: 2 })).toEqual(['c', 'a'])
      expect(await idsBy('newest', { status: 'idle' })).toEqual(['a', 'b'])
      expect(await idsBy('made')).toEqual(['a', 'c', 'b'])
      expect(await idsBy('made', { limit: 2 })).toEqual(['a', 'c'])
      expect(await idsBy('made', { status: 'idle' })).toEqual(['a', 'b'])
      const made = await cardsBy(store, 'made', { limit: 99 })
      expect(made.map((found) => found.session)).toEqual(['y', 'x', 'a', 'c', 'b'])
      expect(await cardsBy(store, 'made', { limit: 9, status: 'running' })).toEqual([await store.card('c')])
      expect(await ids({ status: 'running' })).toEqual(['c'])
      expect(await ids({ root: 'b' })).toEqual(['b'])
      expect(await ids({ root: 'b', status: 'running' })).toEqual([])
      for (const folder of ['/', '/one/', '/One', '']) expect(await ids({ folder })).toEqual([])
      expect(await store.card('c')).toMatchObject({ folder: '/one', seq: 3 })
      expect(await store.card('b~1.0')).not.toHaveProperty('folder')
      await store.remove('a', 'somebody')
      await create(store, 'a', { folder: '/one' })
      expect(await idsBy('made')).toEqual(['a', 'c', 'b'])
      await store.remove('b', 'somebody')
      await create(store, 'b', { folder: '/one' })
      expect(await idsBy('made')).toEqual(['b', 'a', 'c'])
    })

    it('B-CARD-1: list finds the children of one session, with status, root, folder and labels: by id, the newest or the last made first', async () => {
      const { store, clock } = await make()
      const labels = { team: 'blue' }
      await create(store, 'p', { labels, folder: '/one' })
      for (const id of ['p~9.0', 'p~2.0', 'p~2.1']) {
        clock.time += 1
        await create(store, id, { root: 'p', parent: 'p', ...(id === 'p~9.0' ? { task: 'dig' } : { labels }) })
      }
      await create(store, 'p~2.0~3.0', { root: 'p', parent: 'p~2.0' })
      await create(store, 'q')
      clock.time += 1
      const owner = await claim(store, 'p~2.0', 'w1')
      const running = card('p~2.0', { status: 'running', root: 'p', parent: 'p', task: 'find', labels })
      await write(store, owner, [note('x')], { card: running })
      const ids = async (filter: Partial<CardFilter>) =>
        (await store.list({ limit: 99, parent: 'p', ...filter })).map((found) => found.session)
      const idsBy = async (order: CardQuery['order'], query: Partial<CardQuery> = {}) =>
        (await cardsBy(store, order, { limit: 99, parent: 'p', ...query })).map((found) => found.session)
      expect(await ids({})).toEqual(['p~2.0', 'p~2.1', 'p~9.0'])
      expect(await ids({ after: 'p~2.0', limit: 1 })).toEqual(['p~2.1'])
      expect(await idsBy('newest')).toEqual(['p~2.0', 'p~2.1', 'p~9.0'])
      expect(await idsBy('made', { limit: 2 })).toEqual(['p~2.1', 'p~2.0'])
      expect(await ids({ status: 'running' })).toEqual(['p~2.0'])
      expect(await idsBy('newest', { status: 'idle' })).toEqual(['p~2.1', 'p~9.0'])
      expect(await ids({ where: labels })).toEqual(['p~2.0', 'p~2.1'])
      expect(await ids({ where: { team: 'red' } })).toEqual([])
      expect(await ids({ root: 'p' })).toHaveLength(3)
      for (const none of [{ root: 'q' }, { folder: '/one' }, { parent: 'q' }, { parent: '' }])
        expect(await ids(none)).toEqual([])
      expect(await ids({ parent: 'p~2.0' })).toEqual(['p~2.0~3.0'])
      const told = { created: START + 2, tokens: 0 }
      expect(await store.card('p~2.0')).toEqual({ ...running, seq: 2, at: clock.time, due: null, ...told })
      expect(await store.card('p~9.0')).toMatchObject({ parent: 'p', task: 'dig' })
      expect(await store.card('p')).not.toHaveProperty('parent')
      await store.release('p~2.0', owner.epoch)
      await store.remove('p', 'somebody')
      expect(await ids({})).toEqual([])
    })
  })
}

export function describeDueOfWorkers(make: MakeFixture): void {
  describe('due times with several workers', () => {
    it('B-STORE-53: a session that a worker drives is not due, until the lease has expired or was released', async () => {
      const { store, clock } = await make()
      const now = clock.time
      for (const id of ['a', 'b', 'c']) await create(store, id, { due: now - 5 })
      const a = await claim(store, 'a', 'w1')
      await claim(store, 'b', 'w2')
      expect((await store.due(99)).sessions).toEqual(['c'])
      await store.release('a', a.epoch)
      expect((await store.due(99)).sessions).toEqual(['a', 'c'])
      clock.advance(TTL)
      expect((await store.due(99)).sessions).toEqual(['a', 'b', 'c'])
      expect((await store.due(1)).sessions).toEqual(['a'])
      await store.extend('w2', TTL)
      expect((await store.due(99)).sessions).toEqual(['a', 'c'])
    })

    it('B-DIST-1: due names only sessions of the agents that are asked for, also of workers that were lost, and the next due time is not after theirs', async () => {
      const { store, clock } = await make()
      const now = clock.time
      for (const [id, agent, at] of [
        ['a1', 'a', -9],
        ['b1', 'b', -7],
        ['a2', 'a', -5],
        ['c1', 'c', -3],
      ] as const)
        await create(store, id, { agent, due: now + at })
      await create(store, 'd1', { agent: 'd', due: now + 10 })
      expect((await store.due(9)).sessions).toEqual(['a1', 'b1', 'a2', 'c1'])
      expect((await store.due(9, ['a'])).sessions).toEqual(['a1', 'a2'])
      expect((await store.due(2, ['c', 'b', 'a'])).sessions).toEqual(['a1', 'b1'])
      expect((await store.due(9, ['d', "a'"])).sessions).toEqual([])
      expect((await store.due(9, [])).sessions).toEqual([])
      expect((await store.due(0, ['d'])).next).toBeLessThanOrEqual(now + 10)
      await claim(store, 'b1', 'lost')
      await claim(store, 'c1', 'lost')
      expect((await store.due(9, ['b', 'c'])).sessions).toEqual([])
      clock.advance(TTL + 1)
      expect((await store.due(9, ['b'])).sessions).toEqual(['b1'])
      expect((await store.due(9, ['c', 'd'])).sessions).toEqual(['c1', 'd1'])
    })

    it('B-STORE-54: the next due time is when due will find something: a due time, or the end of the lease that hides it', async () => {
      const { store, clock } = await make()
      const now = clock.time
      expect((await store.due(0)).next).toBeNull()
      await create(store, 'never')
      expect((await store.due(0)).next).toBeNull()
      await create(store, 'driven', { due: now - 5 })
      expect((await store.due(0)).next).toBe(now - 5)
      const owner = await claim(store, 'driven', 'w1')
      expect((await store.due(0)).next).toBe(now + TTL)
      await create(store, 'later', { due: now + 10 })
      expect((await store.due(0)).next).toBe(now + 10)
      const far = card('driven', { due: now + 2 * TTL })
      await write(store, owner, [note('x')], { card: far })
      await write(store, await claim(store, 'later', 'w1'), [], { release: true })
      expect((await store.due(0)).next).toBe(now + 2 * TTL)
    })

    it('B-STORE-55: a session that was due and still is keeps its place; one that no longer is loses it', async () => {
      const { store, clock } = await make()
      await create(store, 'old', { due: clock.time })
      const owner = await claim(store, 'old', 'w1')
      clock.advance(10)
      await create(store, 'new', { due: clock.time })
      clock.advance(10)
      await admit(store, 'old', message('m'))
      owner.seq = 2
      await write(store, owner, [note('x')], { card: card('old', { status: 'running', due: clock.time }) })
      clock.advance(TTL)
      expect((await store.due(9)).sessions).toEqual(['new', 'old'].reverse())
      await write(store, owner, [note('y')], { card: card('old', { due: clock.time + 1 }), release: true })
      expect((await store.due(9)).sessions).toEqual(['new'])
      await write(store, await claim(store, 'old', 'w1'), [], { card: card('old') })
      expect(await store.card('old')).toMatchObject({ due: null })
    })
  })
}
