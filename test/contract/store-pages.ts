// The contract of a Store: what cards say of their logs, pages of cards, and snapshots for any position.
import { describe, expect, it } from 'vitest'
import type { Event, InboxBody, OwnerBody } from '../../src/kernel/event.ts'
import type { CardQuery, Snapshot, CompleteStore } from '../../src/ports/store.ts'
import type { Restoration } from '../../src/stores/plan/plan-writes.ts'
import { admit, begin, card, claim, create, creation, type MakeFixture, message, note } from './fixture.ts'
import { outcome, ownerWrite, START, write } from './fixture.ts'

type Created = Extract<OwnerBody, { type: 'session.created' }>

function created(over: Partial<Created> = {}): Created {
  return { type: 'session.created', agent: 'a', planner: 'model', ...over }
}

export function describeFacts(make: MakeFixture): void {
  describe('what a card says of its log', () => {
    it('B-CARD-7: a card says its title, time, owner and tokens, read from the log, whatever a writer says', async () => {
      const { store, clock } = await make()
      const lies = { title: 'a lie', owner: 'mallory', created: 1, tokens: 99 }
      await store.commit([creation(store, 's', { card: card('s', lies) })])
      expect(await store.card('s')).toEqual({ ...card('s'), seq: 1, at: START, created: START, tokens: 0 })
      clock.advance(10)
      await admit(store, 's', { ...message('m0'), parts: [] } as ReturnType<typeof message>)
      await admit(store, 's', message('m1', 'first words'), message('m2', 'other words'))
      const owner = await claim(store, 's', 'w1')
      const usage = { inputTokens: 100, outputTokens: 20 }
      await write(store, owner, [
        { type: 'agent.message', parts: [], calls: [], verdict: { type: 'continue' }, usage },
        { type: 'model.failed', class: 'lost', message: 'x', retryable: true, usage },
        { type: 'agent.tool_result', call: '1.0', status: 'ok', content: 'x', usage },
        { type: 'context.compacted', usage: { inputTokens: Number.NaN, outputTokens: -5 } },
      ])
      expect(await store.card('s')).toMatchObject({ title: 'first words', created: START, tokens: 360 })
      expect(await store.card('s')).not.toHaveProperty('owner')
      const [listed] = await store.list({ limit: 1 })
      expect(listed).toEqual(await store.card('s'))
    })

    it('B-CARD-7: a fork has the title of its origin, a child that of its first message', async () => {
      const { store } = await make()
      await create(store, 's')
      await admit(store, 's', message('m', 'the origin'))
      const fork = { session: 's', seq: 1 }
      const parent = { session: 's', call: '1.0', root: 's', depth: 1 } as const
      const made = (id: string, body: Created) =>
        ownerWrite(store, { session: id, worker: '', epoch: 0, seq: 0 }, [body])
      await store.commit([
        made('f', created({ fork })),
        made('named', created({ fork, metadata: { title: 'its own' } })),
      ])
      await store.commit([made('s~1.0', created({ fork, parent }))])
      await admit(store, 'f', message('m', 'later'))
      await admit(store, 's~1.0', message('m', 'dig'))
      const titles = ['f', 'named', 's~1.0'].map(async (id) => (await store.card(id))?.title)
      expect(await Promise.all(titles)).toEqual(['the origin', 'its own', 'dig'])
    })

    it('B-TITLE-1: the latest title that a session was given counts, over the host and the first message, and search finds it', async () => {
      const { store } = await make()
      const rename = (id: string, title: string): InboxBody => ({ type: 'user.rename', id, title })
      await store.commit([
        ownerWrite(store, { session: 's', worker: '', epoch: 0, seq: 0 }, [
          created({ metadata: { title: 'the host' } }),
        ]),
      ])
      const titles: unknown[] = []
      const given = async (...bodies: readonly InboxBody[]): Promise<void> => {
        await admit(store, 's', ...bodies)
        titles.push((await store.card('s'))?.title)
      }
      await given(rename('r1', 'Before it began'))
      await given(message('m1', 'first words'))
      await given(rename('r2', 'One'), rename('r3', 'Two'))
      await given(rename('r2', 'One'))
      for (const [i, nothing] of ['', ' \n ', '\u200b\u2800\u202e\u0007'].entries())
        await given(rename(`n${i}`, nothing))
      expect(titles).toEqual(['Before it began', 'Before it began', 'Two', 'Two', 'Two', 'Two', 'Two'])
      const hostile = `\u001b]0;owned\u0007\u202eFix\nthe   ${'x'.repeat(1_000_000)}`
      await given(rename('big', hostile))
      expect(titles.at(-1)).toMatch(/^\]0;ownedFix the x{1,80}…$/)
      await given(rename('last', 'Straße nach Köln'))
      const found = async (q: string) =>
        (await store.page({ q, limit: 10, order: 'newest' })).cards.map(({ session }) => session)
      expect([await found('köln STRASSE'), await found('köln'), await found('owned'), await found('first')]).toEqual([
        [],
        ['s'],
        [],
        [],
      ])
      const fork = ownerWrite(store, { session: 'f', worker: '', epoch: 0, seq: 0 }, [
        created({ fork: { session: 's', seq: 2 } }),
      ])
      await store.commit([fork])
      await admit(store, 'f', rename('r', 'A way of its own'))
      expect((await store.card('f'))?.title).toBe('A way of its own')
      expect((await store.card('s'))?.title).toBe('Straße nach Köln')
    })

    it('B-TITLE-2: a title makes no session due, and does not stop the worker that holds the session', async () => {
      const { store, clock } = await make()
      const rename = (id: string): InboxBody => ({ type: 'user.rename', id, title: `Title ${id}` })
      await create(store, 'still')
      await admit(store, 'still', rename('a'))
      expect(await store.card('still')).toMatchObject({ due: null, title: 'Title a', seq: 2, status: 'idle' })
      expect((await store.due(10)).sessions).toEqual([])
      await create(store, 's', { due: clock.time + 5_000 })
      const owner = await claim(store, 's', 'w1')
      const before = await store.card('s')
      await admit(store, 's', rename('b'))
      expect(await store.card('s')).toEqual({ ...before, seq: 2, at: clock.time, title: 'Title b' })
      // The log has one order: what the worker writes next follows the title.
      await expect(write(store, owner, [note('x')])).rejects.toMatchObject({ code: 'conflict' })
      owner.seq = 2
      await write(store, owner, [note('y')])
      expect(await store.card('s')).toMatchObject({ seq: 3, title: 'Title b' })
    })

    it('B-TITLE-3: a title that a log brings along stays, though what the host of the file said is not believed', async () => {
      const { store } = await make()
      const history = (renamed: boolean): readonly Event[] => [
        { ...created({ metadata: { title: 'what a file says' } }), seq: 1, at: START - 5, epoch: 0 },
        { ...message('m', 'the first words'), seq: 2, at: START - 4, epoch: 0 },
        ...(renamed
          ? [{ type: 'user.rename', id: 'r', title: ' Given\nby hand ', seq: 3, at: START - 3, epoch: 0 } as const]
          : []),
        { type: 'session.imported', from: 'x', seq: renamed ? 4 : 3, at: START, epoch: 1 },
      ]
      const restored = (id: string, renamed: boolean): Restoration => {
        const whole = { session: id, lane: 'owner', epoch: 0, expectedSeq: 0, events: [], card: card(id) } as const
        return { ...whole, history: history(renamed) }
      }
      await store.commit([restored('x', true), restored('y', false)])
      const titles = ['x', 'y'].map(async (id) => (await store.card(id))?.title)
      expect(await Promise.all(titles)).toEqual(['Given by hand', 'the first words'])
      // The id is taken in the restored log too.
      await admit(store, 'x', { type: 'user.rename', id: 'r', title: ' Given\nby hand ' })
      expect(await store.card('x')).toMatchObject({ seq: 4 })
    })

    it('B-CARD-9: the owner is what the host says, and an import believes only the importer', async () => {
      const { store } = await make()
      const made = (id: string, owner: string) =>
        ownerWrite(store, { session: id, worker: '', epoch: 0, seq: 0 }, [
          created({ metadata: { owner, title: ' T\n1 ' } }),
        ])
      await store.commit([made('s', 'ana'), made('long', 'x'.repeat(129)), made('lines', 'a\nb')])
      expect(await store.card('s')).toMatchObject({ owner: 'ana', title: 'T 1' })
      for (const id of ['long', 'lines']) expect(await store.card(id)).not.toHaveProperty('owner')
      const history: Event[] = [
        { ...created({ metadata: { owner: 'mallory', title: 'what a file says' } }), seq: 1, at: START - 5, epoch: 0 },
        { ...message('m', 'the first words'), seq: 2, at: START - 4, epoch: 0 },
      ]
      const arrival = (metadata: { readonly owner: string } | undefined): Event => {
        const said = metadata ? { metadata } : {}
        return { type: 'session.imported', from: 'x', ...said, seq: 3, at: START, epoch: 1 }
      }
      const restored = (id: string, metadata?: { readonly owner: string }): Restoration => {
        const whole = { session: id, lane: 'owner', epoch: 0, expectedSeq: 0, events: [], card: card(id) } as const
        return { ...whole, history: [...history, arrival(metadata)] }
      }
      await store.commit([restored('x'), restored('y', { owner: 'bob' })])
      expect(await store.card('x')).toMatchObject({ title: 'the first words', created: START - 5 })
      expect(await store.card('x')).not.toHaveProperty('owner')
      expect(await store.card('y')).toMatchObject({ title: 'the first words', owner: 'bob' })
    })
  })
}

/** All pages, one after the other. */
async function pages(store: CompleteStore, query: Omit<CardQuery, 'behind'>): Promise<readonly (readonly string[])[]> {
  const all: string[][] = []
  for (let behind: CardQuery['behind']; ; ) {
    const { cards, next } = await store.page({ ...query, ...(behind ? { behind } : {}) })
    all.push(cards.map(({ session }) => session))
    if (next === null) return all
    behind = next
  }
}

const snapshotAt = (seq: number, version = 1): Snapshot => ({ seq, version, body: JSON.stringify({ seq }) })

export function describePages(make: MakeFixture): void {
  describe('pages of cards', () => {
    it('B-CARD-10: pages go newest first or the last made first, and have every session once, also those of one moment', async () => {
      const { store, clock } = await make()
      for (const id of ['a', 'b', 'c']) await create(store, id)
      await create(store, 'a~1.0', { root: 'a', parent: 'a' })
      clock.advance(1)
      await create(store, 'd')
      await admit(store, 'a', message('m'))
      const page = (order: CardQuery['order'], limit: number) => pages(store, { order, limit })
      expect(await page('newest', 2)).toEqual([
        ['d', 'a'],
        ['c', 'b'],
      ])
      expect(await page('newest', 3)).toEqual([['d', 'a', 'c'], ['b']])
      expect(await page('newest', 9)).toEqual([['d', 'a', 'c', 'b']])
      expect(await page('made', 3)).toEqual([['d', 'c', 'b'], ['a']])
      expect(await pages(store, { order: 'newest', limit: 1, parent: 'a' })).toEqual([['a~1.0']])
      const first = await store.page({ order: 'newest', limit: 2 })
      clock.advance(1)
      await admit(store, 'b', message('m'))
      await store.remove('d', 'somebody')
      const rest = await store.page({ order: 'newest', limit: 9, behind: first.next ?? { at: 0, n: 0 } })
      expect(rest.cards.map(({ session }) => session)).toEqual(['c'])
      expect((await store.page({ order: 'newest', limit: 0 })).cards).toEqual([])
      const bad = { at: Number.NaN, n: 1 }
      expect(await outcome(store.page({ order: 'newest', limit: 1, behind: bad }))).toBe('invalid_input')
      expect(await outcome(store.page({ order: 'newest', limit: -1 }))).toBe('invalid_input')
    })

    it('B-CONSUME-8: a page leaves out lanes of consumers, unless it names the agent of one, or of all', async () => {
      const { store } = await make()
      await create(store, 'a')
      await create(store, 'consumer.x.1', { agent: 'consumer:x' })
      await create(store, 'consumer.y.1', { agent: 'consumer:y' })
      const ids = (query: Partial<CardQuery>) => pages(store, { order: 'made', limit: 9, ...query })
      expect(await ids({})).toEqual([['a']])
      expect(await ids({ q: 'consumer' })).toEqual([[]])
      expect(await ids({ agent: 'consumer:x' })).toEqual([['consumer.x.1']])
      expect(await ids({ agent: 'consumer:' })).toEqual([['consumer.y.1', 'consumer.x.1']])
    })

    it('B-CARD-11: a page filters by everything together, and finds words in title, agent, id and labels', async () => {
      const { store } = await make()
      const made = (id: string, owner: string, over: Parameters<typeof card>[1] = {}, title?: string) => {
        const metadata = { owner, ...(title === undefined ? {} : { title }) }
        const at = { session: id, worker: '', epoch: 0, seq: 0 }
        return ownerWrite(store, at, [created({ metadata })], { card: card(id, over) })
      }
      await store.commit([
        made('s1', 'ana', { agent: 'coder', labels: { team: 'blue' } }, 'Fix the FLAKY test'),
        made('s2', 'ana', { agent: 'coder', status: 'running' }, 'Größe *?[x]'),
        made('s3', 'bob', { agent: 'writer', labels: { team: 'blue' }, folder: '/one' }),
      ])
      const found = async (over: Partial<CardQuery>) =>
        (await pages(store, { order: 'made', limit: 9, ...over })).flat()
      expect(await found({ owner: 'ana' })).toEqual(['s2', 's1'])
      expect(await found({ owner: 'ana', where: { team: 'blue' } })).toEqual(['s1'])
      expect(await found({ agent: 'coder', status: 'running', owner: 'ana' })).toEqual(['s2'])
      expect(await found({ agent: 'coder', status: 'running', owner: 'bob' })).toEqual([])
      expect(await found({ where: { team: 'blue' }, folder: '/one', agent: 'writer' })).toEqual(['s3'])
      for (const [q, ids] of Object.entries({
        flaky: ['s1'],
        'test fix': ['s1'],
        'fix nothing': [],
        'TEAM=BLUE': ['s3', 's1'],
        writ: ['s3'],
        S2: ['s2'],
        GRÖSSE: [],
        größe: ['s2'],
        GRÖßE: ['s2'],
        '*': ['s2'],
        '[x]': ['s2'],
        't?': [],
        '%': [],
        "' OR 1=1": [],
        ' ': ['s3', 's2', 's1'],
      }))
        expect([q, await found({ q })]).toEqual([q, ids])
      expect(await found({ q: 'team', owner: 'ana' })).toEqual(['s1'])
      expect(await outcome(store.page({ order: 'newest', limit: 1, q: 'x'.repeat(201) }))).toBe('invalid_input')
      expect(await outcome(store.page({ order: 'newest', limit: 1, q: 'x'.repeat(1_000_000) }))).toBe('invalid_input')
      // A title that comes later, and a session that is gone.
      await create(store, 'late')
      await admit(store, 'late', message('m', 'at last'))
      expect(await found({ q: 'at last' })).toEqual(['late'])
      await store.remove('s1', 'somebody')
      expect(await found({ q: 'flaky' })).toEqual([])
    })
  })
}

export function describeOutcomePages(make: MakeFixture): void {
  describe('pages by outcome', () => {
    it('B-LISTED-1: a page filters by how the last run ended and by the time of the last event, however many are newer', async () => {
      const { store, clock } = await make()
      const made = (id: string, over: Parameters<typeof card>[1] = {}) => creation(store, id, { card: card(id, over) })
      await store.commit([
        made('failed', { outcome: 'failed', cause: 'a "quoted" reason \\" }' }),
        made('halted', { labels: { outcome: 'failed', unknown: '1' }, outcome: 'halted' }),
        made('labelled', { labels: { 'a}"': '\\", "outcome":"failed"', outcome: 'failed' }, outcome: 'completed' }),
        made('unknown', { outcome: 'completed', unknown: 1 }),
        made('told', { outcome: 'completed', cause: '"outcome":"failed" "unknown":1 "labels":{' }),
      ])
      await create(store, 'left')
      const owner = await claim(store, 'left', 'w1')
      await store.release('left', owner.epoch, { attempts: 3, reason: 'x', until: null })
      clock.advance(1_000)
      const many = Array.from({ length: 1_500 }, (_, i) => made(`n${i}`, { outcome: 'completed' }))
      await store.commit(many)
      const found = async (over: Partial<CardQuery>) =>
        (await pages(store, { order: 'made', limit: 2, ...over })).flat()
      for (const order of ['made', 'newest'] as const) {
        expect(await found({ order, outcome: ['failed'] })).toEqual(['failed'])
        expect(await found({ order, outcome: ['failed', 'halted'] })).toEqual(['halted', 'failed'])
        expect(await found({ order, outcome: ['unknown'] })).toEqual(['unknown'])
        const all = await found({ order, outcome: ['failed', 'halted', 'unknown', 'quarantined'] })
        expect(all.toSorted()).toEqual(['failed', 'halted', 'left', 'unknown'])
        expect(await found({ order, outcome: ['completed'], until: START + 1_000, status: 'idle' })).toEqual([
          'told',
          'unknown',
          'labelled',
        ])
        expect(await found({ order, outcome: ['failed'], since: START + 1_000 })).toEqual([])
        expect(await found({ order, outcome: ['failed'], since: START, until: START })).toEqual([])
        expect(await found({ order, outcome: [] })).toEqual([])
        expect(await pages(store, { order, limit: 2_000, since: START + 1_000 })).toHaveLength(1)
        expect((await pages(store, { order, limit: 2_000, since: START + 1_000 })).flat()).toHaveLength(1_500)
      }
      expect(await outcome(store.page({ order: 'newest', limit: 1, since: Number.NaN }))).toBe('invalid_input')
    })
  })
}

export function describeSnapshots(make: MakeFixture): void {
  describe('snapshots of the past', () => {
    it('B-STORE-171: between two that are kept lie at most 8,192 events, and each position has the newest before it', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      // A snapshot of event n, written with as few events as the store allows.
      const events = Array.from({ length: 18_000 }, () => note(''))
      await write(store, owner, events)
      for (let seq = 1_000; seq <= 18_000; seq += 1_000) await write(store, owner, [], { snapshot: snapshotAt(seq) })
      expect(await store.snapshot('s')).toEqual(snapshotAt(18_000))
      const kept = new Set<number>()
      for (let upTo = 18_000; upTo > 0; ) {
        const found = await store.snapshot('s', upTo)
        if (found === null) break
        expect(found).toEqual(snapshotAt(found.seq))
        kept.add(found.seq)
        upTo = found.seq - 1
      }
      expect([...kept].sort((a, b) => a - b)).toEqual([8_000, 16_000, 18_000])
      expect(await store.snapshot('s', 7_999)).toBeNull()
      expect(await store.snapshot('s', 0)).toBeNull()
      expect(await store.snapshot('none', 5)).toBeNull()
      expect(await outcome(store.snapshot('s', -1))).toBe('invalid_input')
    })
  })
}

export function describeReaderSnapshots(make: MakeFixture): void {
  describe('snapshots of readers', () => {
    it('B-STORE-173: snapshots of a reader serve positions, are never the newest, and those of another log are not kept', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('2'), note('3')], { snapshot: snapshotAt(2) })
      clock.advance(5)
      await write(store, owner, [note('4'), note('5')])
      await store.keep('s', [
        { ...snapshotAt(3), at: START },
        { ...snapshotAt(4), at: START },
        { ...snapshotAt(9), at: START },
      ])
      await store.keep('s', [
        { ...snapshotAt(2), body: '"other"', at: START },
        { ...snapshotAt(5), at: START + 5 },
      ])
      await store.keep('none', [{ ...snapshotAt(1), at: START }])
      expect(await store.snapshot('s')).toEqual(snapshotAt(2))
      expect(await store.snapshot('s', 2)).toEqual(snapshotAt(2))
      expect(await store.snapshot('s', 4)).toEqual(snapshotAt(3))
      expect(await store.snapshot('s', 9)).toEqual(snapshotAt(5))
      await write(store, owner, [], { snapshot: snapshotAt(5, 2) })
      expect(await store.snapshot('s')).toEqual(snapshotAt(5, 2))
      expect(await store.snapshot('s', 3)).toEqual(snapshotAt(3))
      await store.release('s', owner.epoch)
      await store.remove('s', 'somebody')
      await create(store, 's')
      expect(await store.snapshot('s', 9)).toBeNull()
    })
  })
}
