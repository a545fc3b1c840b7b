// Stores that lack a capability: the store in memory with it taken away keeps the contract of what is left, and each
// fallback keeps what the decision record promises.
import { describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { CardQuery, CompleteStore } from '../../src/ports/store.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { describeStore } from '../contract/store.ts'
import {
  admit,
  begin,
  CAPABILITIES,
  claim,
  create,
  type Fixture,
  message,
  note,
  outcome,
  StillClock,
  TTL,
  write,
} from '../contract/fixture.ts'
import { coreOf, without } from '../contract/without.ts'

function whole(): Fixture {
  const clock = new StillClock()
  return { clock, store: memory({ clock }) }
}

for (const absent of CAPABILITIES)
  describeStore(
    `memory without ${absent}`,
    async () => without(whole(), absent),
    CAPABILITIES.filter((name) => name !== absent),
  )
describeStore('memory with the core alone', async () => without(whole(), ...CAPABILITIES), [])

describe('a complete store', () => {
  it('B-CORE-1: a store that has every capability itself is used as it is, and any other is completed once', () => {
    const { store } = whole()
    expect(completeStore(store)).toBe(store)
    const core = coreOf(store, CAPABILITIES)
    const complete = completeStore(core)
    expect(completeStore(core)).toBe(complete)
    expect(completeStore(complete)).toBe(complete)
  })

  it('B-CORE-2: a harness runs on the core alone, hears what it waits for, and another harness goes on', async () => {
    const core = coreOf(memory(), CAPABILITIES)
    const model = scripted(() => 'done')
    const harness = new Harness({ model, store: core, secrets: {} })
    const { sessionId, status } = await harness.run('go')
    expect(status).toBe('completed')
    await harness.close()
    const other = new Harness({ model, store: core, secrets: {} })
    const stop = new AbortController()
    const working = other.work({ signal: stop.signal })
    await (await other.open({ id: 'b' })).send('go')
    expect((await other.session('b', { stored: true }).result({ waitMs: 10_000 }))?.status).toBe('completed')
    expect((await other.list()).cards.map((found) => found.session).toSorted()).toEqual(['b', sessionId].toSorted())
    expect((await other.health()).ok).toBe(true)
    stop.abort()
    await working
    await other.close()
  })
})

describe('without workers', () => {
  it('B-CORE-3: a lease lives until it is released, however long that is', async () => {
    const { store, clock } = without(whole(), 'workers')
    const owner = await begin(store, 's')
    clock.advance(100 * TTL)
    expect(await store.claim('s', 'w2', TTL)).toBeNull()
    expect(await store.extend('w1', TTL)).toEqual(new Map([['s', owner.epoch]]))
    await write(store, owner, [note('x')], { release: true })
    expect(await store.extend('w1', TTL)).toEqual(new Map())
    expect((await claim(store, 's', 'w2')).epoch).toBe(owner.epoch + 1)
    expect([store.reach, store.now(), await store.holders('h')]).toEqual(['process', clock.time, []])
    expect(await store.expire('w2', { host: 'h', pid: 1, started: 1 })).toBe(false)
  })
})

describe('without notifications', () => {
  const heardOf = (store: CompleteStore) => {
    const heard: string[] = []
    store.watch('s', (news) => heard.push(news === null ? 'null' : news.map(({ seq }) => seq).join()))
    store.watchCards((session) => heard.push(`card ${session}`))
    store.watchDue(() => heard.push('due'))
    return heard
  }

  it('B-CORE-4: a watcher gets the events that an owner wrote, and null for what the store stamped', async () => {
    const { store } = without(whole(), 'notifications')
    const owner = await begin(store, 's')
    const heard = heardOf(store)
    await write(store, owner, [note('1'), note('2')])
    await admit(store, 's', message('m'))
    await admit(store, 's', message('m'))
    expect(heard).toEqual(['2,3', 'card s', 'null', 'card s', 'due'])
    owner.seq = 4
    heard.length = 0
    const sends = [{ session: 's', event: message('self') }]
    await write(store, owner, [note('3')], { sends })
    expect(heard).toEqual(['null', 'card s', 'due'])
  })

  it('B-CORE-4: what another process writes is heard within a second, and nothing is looked at while nobody listens', async () => {
    const { store, clock } = whole()
    const shared = { ...coreOf(store, ['notifications']), workers: { ...workersOf(store), reach: 'machine' as const } }
    const here = completeStore(shared, { clock, steady: clock })
    await create(store, 's')
    expect(clock.waiting).toBe(0)
    const heard = heardOf(here)
    const told = async (): Promise<readonly string[]> => {
      clock.advance(1_000)
      await new Promise((done) => setTimeout(done, 5))
      return heard.splice(0)
    }
    await told()
    expect(await told()).toEqual([])
    await admit(store, 's', message('m'))
    expect(await told()).toEqual(['null', 'card s', 'due'])
    await store.remove('s', 'ann')
    expect(await told()).toEqual(['null', 'card s', 'due'])
    await here.close()
    clock.advance(1_000)
    expect(clock.waiting).toBe(0)
  })
})

describe('without snapshots', () => {
  it('B-CORE-5: there is none, and those that are written or kept are dropped', async () => {
    const { store } = without(whole(), 'snapshots')
    const owner = await begin(store, 's')
    const made = { seq: 2, version: 1, body: '{}' }
    await write(store, owner, [note('x')], { snapshot: made })
    await store.keep('s', [{ ...made, at: store.now() }])
    expect([await store.snapshot('s'), await store.snapshot('s', 2)]).toEqual([null, null])
  })
})

describe('without search', () => {
  it('B-CORE-6: pages are those of a store that has search, for sessions of different moments', async () => {
    const { store, clock } = whole()
    const plain = without({ store, clock }, 'search').store
    for (let i = 0; i < 700; i++) {
      clock.time += 1
      const root = `s${(i * 37) % 1_000}`
      const over = { agent: i % 3 === 0 ? 'a' : 'b', outcome: i % 5 === 0 ? 'failed' : 'completed' } as const
      await create(store, root, { ...over, root, folder: i % 2 === 0 ? '/one' : '/two' })
      if (i % 50 === 0) await create(store, `${root}~1.0`, { root, parent: root })
    }
    for (let i = 0; i < 700; i += 7) {
      clock.time += 1
      await admit(store, `s${(i * 37) % 1_000}`, message('m', `words ${i}`))
    }
    const queries: readonly Omit<CardQuery, 'behind'>[] = [
      { order: 'newest', limit: 100 },
      { order: 'made', limit: 333 },
      { order: 'made', limit: 9_999 },
      { order: 'newest', limit: 10, agent: 'a', folder: '/one', outcome: ['failed'] },
      { order: 'made', limit: 10, q: 'words 7' },
      { order: 'newest', limit: 10, parent: 's0' },
      { order: 'newest', limit: 50, since: clock.time - 60, until: clock.time - 5 },
    ]
    for (const query of queries)
      expect([query, await pagesOf(plain, query)]).toEqual([query, await pagesOf(store, query)])
    expect((await plain.page({ order: 'newest', limit: 0 })).next).not.toBeNull()
    expect(await outcome(plain.page({ order: 'newest', limit: -1 }))).toBe('invalid_input')
  })

  it('B-CORE-6: of one moment every session is on one page, in the same order each time', async () => {
    const { store } = without(whole(), 'search')
    const ids = Array.from({ length: 40 }, (_, i) => `s${10 + i}`)
    for (const id of ids) await create(store, id)
    const found = await pagesOf(store, { order: 'made', limit: 7 })
    expect(found.flat().toSorted()).toEqual(ids)
    expect(await pagesOf(store, { order: 'made', limit: 7 })).toEqual(found)
  })

  it('B-CORE-6: a message is found in the log of its session, by the id of its sender alone', async () => {
    const { store } = without(whole(), 'search')
    const owner = await begin(store, 's')
    await write(
      store,
      owner,
      Array.from({ length: 1_200 }, () => note('x')),
    )
    await admit(store, 's', message('late'))
    expect(await store.sent('s', 'late')).toBe(1_202)
    expect([await store.sent('s', 'x'), await store.sent('none', 'late')]).toEqual([null, null])
  })
})

describe('without upkeep', () => {
  it('B-CORE-7: a removal is refused, none is listed, and the condition is counted from the cards', async () => {
    const { store, clock } = without(whole(), ...CAPABILITIES)
    await create(store, 's', { due: clock.time - 500 })
    await create(store, 't', { due: clock.time - 900 })
    await begin(store, 'driven')
    expect(await outcome(store.remove('s', 'ann'))).toBe('unsupported')
    expect(await store.removals(9)).toEqual([])
    const counted = { sessions: 3, leases: 1, due: 2, waitedMs: 900 }
    expect(await store.health()).toEqual({ durability: 'unknown', schema: null, ...counted })
  })
})

describe('without deltas', () => {
  it('B-CORE-8: no worker has an address, and there is no channel to other machines', async () => {
    const { store } = without(whole(), 'deltas')
    await begin(store, 's')
    await store.announce('w1', 'socket', TTL)
    expect([await store.address('s'), 'post' in store]).toEqual([null, false])
  })
})

function workersOf(store: CompleteStore): NonNullable<ReturnType<typeof coreOf>['workers']> {
  return {
    reach: store.reach,
    now: () => store.now(),
    extend: (worker, ttlMs) => store.extend(worker, ttlMs),
    holders: (host) => store.holders(host),
    expire: (worker, process) => store.expire(worker, process),
  }
}

async function pagesOf(
  store: CompleteStore,
  query: Omit<CardQuery, 'behind'>,
): Promise<readonly (readonly string[])[]> {
  const all: string[][] = []
  for (let behind: CardQuery['behind']; ; ) {
    const { cards, next } = await store.page({ ...query, ...(behind ? { behind } : {}) })
    all.push(cards.map(({ session }) => session))
    if (next === null) return all
    behind = next
  }
}
