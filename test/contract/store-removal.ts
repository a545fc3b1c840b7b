// The contract of a Store: sessions that are taken out for good, what goes with them, and what must stay.
import { describe, expect, it } from 'vitest'
import type { Event, OwnerBody } from '../../src/kernel/event.ts'
import type { Blob, Charge, CompleteStore } from '../../src/ports/store.ts'
import { lifeOf } from '../../src/stores/plan/plan-writes.ts'
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
  outcome,
  ownerWrite,
  seqs,
  START,
  TTL,
  write,
} from './fixture.ts'

const blob = (hash: string, ...bytes: number[]): Blob => ({ hash, media: 'a/b', data: new Uint8Array(bytes) })

/** A session that begins with this event. */
async function beginning(store: CompleteStore, session: string, over: object): Promise<void> {
  const body = { type: 'session.created', agent: 'a', planner: 'model', ...over } as OwnerBody
  await store.commit([ownerWrite(store, { session, worker: '', epoch: 0, seq: 0 }, [body])])
}

const forked = (store: CompleteStore, session: string, origin: string): Promise<void> =>
  beginning(store, session, { fork: { session: origin, seq: 1 } })

/** A root that waits, with two children, one below the other. */
async function family(store: CompleteStore): Promise<void> {
  await create(store, 'root', { due: START })
  await create(store, 'root~1.0', { root: 'root', due: START })
  await create(store, 'root~1.0~1.0', { root: 'root' })
  await admit(store, 'root', message('m'))
}

export function describeRemoval(make: MakeFixture): void {
  describe('removal', () => {
    it('B-STORE-130: a removed session is gone with its children: nothing of it is listed, due, read or accepted', async () => {
      const { store } = await make()
      await family(store)
      const owner = await claim(store, 'root', 'w1')
      await write(store, owner, [note('x')], { snapshot: { seq: 2, version: 1, body: '{}' }, release: true })
      await create(store, 'root-2')
      const removed = await store.remove('root', 'ann')
      expect(removed.map(({ session }) => session)).toEqual(['root', 'root~1.0', 'root~1.0~1.0'])
      for (const { session } of removed) {
        expect([await store.card(session), await store.snapshot(session), await store.address(session)]).toEqual([
          null,
          null,
          null,
        ])
        expect(await outcome(store.read(session, 0))).toBe('session_missing')
        expect(await outcome(admit(store, session, message('m')))).toBe('session_missing')
        expect(await outcome(store.claim(session, 'w2', TTL))).toBe('session_missing')
        expect(await outcome(store.remove(session, 'ann'))).toBe('session_missing')
      }
      expect([(await store.due(9)).sessions, (await store.due(0)).next]).toEqual([[], null])
      expect((await store.list({ limit: 9 })).map(({ session }) => session)).toEqual(['root-2'])
      expect(await store.list({ limit: 9, root: 'root' })).toEqual([])
      expect(await store.extend('w1', TTL)).toEqual(new Map())
    })

    it('B-STORE-131: blobs go with the last session that refers to them, and with none before', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const all = ['own', 'both', 'sent', 'attached', 'answered'].map((hash) => blob(hash, 1, 2, 3))
      await write(store, owner, [note('x')], { blobs: all, release: true })
      const other = await begin(store, 'other')
      await write(store, other, [note('x')], { blobs: [blob('both', 1, 2, 3)], release: true })
      const part = (hash: string) => ({ type: 'blob', hash, bytes: 3, media: 'a/b' }) as const
      await admit(store, 'other', { type: 'user.message', id: 'm', parts: [part('sent')], when: 'next' })
      await beginning(store, 'third', { attachments: [{ ...part('attached'), name: 'a file' }] })
      const answer = { type: 'user.message', id: 'n', parts: [part('answered')], when: 'next' } as const
      await write(store, await claim(store, 'third', 'w1'), [], { sends: [{ session: 'other', event: answer }] })
      await store.remove('s', 'ann')
      const left = await Promise.all(all.map(async ({ hash }) => ((await store.blob(hash)) ? hash : '')))
      expect(left).toEqual(['', 'both', 'sent', 'attached', 'answered'])
      await store.remove('other', 'ann')
      expect([await store.blob('both'), await store.blob('sent'), await store.blob('answered')]).toEqual([
        null,
        null,
        null,
      ])
      expect(await store.blob('attached')).not.toBeNull()
    })

    it('B-STORE-169: asked for a session, gives only what this session or another of its tree refers to', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')], { blobs: [blob('h', 1)], release: true })
      const below = { ...card('s~1'), root: 's' }
      const created = { seq: 1, at: START, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' } as const
      const parent = { session: 's', call: '1.0', root: 's', depth: 1 }
      const born = { session: 's~1', lane: 'owner', epoch: 0, expectedSeq: 0, card: below } as const
      await store.commit([{ ...born, events: [{ ...created, parent }], blobs: [blob('k', 2)] }])
      await begin(store, 'other')
      const seen = async (of: string) =>
        [await store.blob('h', of), await store.blob('k', of)].map((each) => each !== null)
      expect(await seen('s')).toEqual([true, true])
      expect(await seen('s~1')).toEqual([true, true])
      expect(await seen('other')).toEqual([false, false])
      expect(await seen('nowhere')).toEqual([false, false])
    })

    it('B-STORE-131: what came with one log of an import stays as long as any of its logs', async () => {
      const { store } = await make()
      const log = (session: string, over: object) => {
        const created = { seq: 1, at: START, epoch: 0, type: 'session.created', agent: 'a', planner: 'model', ...over }
        const still = { lane: 'owner', epoch: 0, expectedSeq: 0, events: [], card: card(session) } as const
        return { session, ...still, history: [created as Event] }
      }
      const child = { ...log('fork', { fork: { session: 'origin', seq: 1 } }), blobs: [blob('h', 1)] }
      await store.commit([child, log('origin', {})])
      await store.remove('fork', 'ann')
      expect(await store.blob('h')).not.toBeNull()
      await store.remove('origin', 'ann')
      expect(await store.blob('h')).toBeNull()
    })

    it('B-STORE-132: money stays spent, and what was held counts as spent; accounts of the session alone go with it', async () => {
      const { store } = await make()
      const own = ['run:s:2', 'session:s', 'tree:s', 'raised:run:s:2', 'raised:session:s', 'raised:tree:s']
      const others = ['day:s:19675', 'run:s', 'run:s:2:3', 'session:s2', 'tree:s~1.0', 'x', 'raised:day:s:1']
      const owner = await begin(store, 's')
      const holds: Charge[] = [
        { type: 'hold', key: 's:2', accounts: [...own, ...others], amount: 30 },
        { type: 'hold', key: 's:3', accounts: ['x'], amount: 5 },
      ]
      await write(store, owner, [note('x')], { charges: [...holds, { type: 'settle', key: 's:3', amount: 2 }] })
      await write(store, owner, [note('y')], { release: true })
      await store.remove('s', 'ann')
      expect(await Promise.all(own.map((id) => store.account(id)))).toEqual(own.map(() => null))
      for (const id of others) {
        const spent = id === 'x' ? 32 : 30
        expect(await store.account(id)).toEqual({ id, limit: null, held: 0, spent, assumed: 30 })
      }
      // Nothing can settle it again.
      const next = await begin(store, 'next')
      await write(store, next, [note('x')], { charges: [{ type: 'free', key: 's:2' }] })
      expect(await store.account('day:s:19675')).toMatchObject({ held: 0, spent: 30 })
    })

    it('B-OPS-9: told where the logs must end, a removal is refused if one has grown, or another was made', async () => {
      const { store } = await make()
      await family(store)
      const cards = await store.list({ root: 'root', limit: 9 })
      const ends = new Map(cards.map(({ session, seq }) => [session, seq]))
      const [child = ''] = [...ends.keys()].filter((id) => id !== 'root')
      for (const wrong of [
        new Map(),
        new Map([...ends, [child, 99]]),
        new Map([...ends].filter(([id]) => id !== child)),
      ])
        expect(await outcome(store.remove('root', 'ann', wrong))).toBe('conflict')
      await admit(store, child, message('late'))
      expect(await outcome(store.remove('root', 'ann', ends))).toBe('conflict')
      expect(await store.list({ root: 'root', limit: 9 })).toHaveLength(cards.length)
      ends.set(child, (ends.get(child) ?? 0) + 1)
      expect(await store.remove('root', 'ann', ends)).toHaveLength(cards.length)
    })

    it('B-STORE-134: while a fork reads through one of them the removal is refused, and a removed session cannot be forked', async () => {
      const { store } = await make()
      await family(store)
      await forked(store, 'fork', 'root~1.0')
      await forked(store, 'fork-2', 'fork')
      expect(await outcome(store.remove('root', 'ann'))).toBe('conflict')
      await expect(store.remove('root', 'ann')).rejects.toThrow(/\bfork\b.*root~1\.0/)
      expect(await outcome(store.remove('fork', 'ann'))).toBe('conflict')
      for (const session of ['fork-2', 'fork', 'root']) expect(await outcome(store.remove(session, 'ann'))).toBe('ok')
      expect(await outcome(forked(store, 'fork-3', 'root'))).toBe('session_missing')
      expect(await store.list({ limit: 9 })).toEqual([])
    })

    it('B-STORE-135: a child goes with its root, and alone only when its root is gone', async () => {
      const { store } = await make()
      await family(store)
      expect(await outcome(store.remove('root~1.0', 'ann'))).toBe('invalid_input')
      await create(store, 'lone', { root: 'never there' })
      expect(await outcome(store.remove('lone', 'ann'))).toBe('ok')
      for (const [session, by] of [
        ['none', 'ann'],
        ['', 'ann'],
        ['root', ''],
      ] as const)
        expect(await outcome(store.remove(session, by))).toBe(session === 'none' ? 'session_missing' : 'invalid_input')
      expect(await store.card('root')).not.toBeNull()
    })

    it('B-STORE-136: each removal is logged with who did it, how much it was, and nothing of what it was', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('a secret ü')], { blobs: [blob('h', 1, 2, 3)], release: true })
      const { events } = await store.read('s', 0)
      const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 3)
      const removed = { session: 's', agent: 'a', events: 2, bytes, at: clock.time, by: 'ann' }
      expect(await store.remove('s', 'ann')).toEqual([removed])
      clock.advance(5)
      await family(store)
      await store.remove('root', 'bob')
      const all = await store.removals(9)
      expect(all.map(({ session, by }) => `${session} ${by}`)).toEqual([
        'root~1.0~1.0 bob',
        'root~1.0 bob',
        'root bob',
        's ann',
      ])
      expect(all[3]).toEqual(removed)
      expect(await store.removals(1)).toEqual(all.slice(0, 1))
    })

    it('B-STORE-139: asked at once with other work, each is done in its turn and as a whole', async () => {
      const { store } = await make()
      for (const session of ['a', 'b', 'c', 'd']) await create(store, session)
      const owner = await claim(store, 'd', 'w1')
      const results = await Promise.all([
        outcome(admit(store, 'a', message('m'))),
        outcome(store.remove('a', 'ann')),
        outcome(admit(store, 'a', message('n'))),
        outcome(store.remove('b', 'ann')),
        outcome(create(store, 'b')),
        outcome(forked(store, 'fork', 'c')),
        outcome(store.remove('c', 'ann')),
        outcome(store.remove('d', 'ann')),
        outcome(write(store, owner, [note('x')])),
      ])
      const expected = ['ok', 'ok', 'session_missing', 'ok', 'ok', 'ok', 'conflict', 'session_busy', 'ok']
      expect(results).toEqual(expected)
      expect((await store.list({ limit: 9 })).map(({ session }) => session)).toEqual(['b', 'c', 'd', 'fork'])
      for (const [session, length] of [
        ['b', 1],
        ['c', 1],
        ['d', 2],
        ['fork', 1],
      ] as const) {
        const page = await store.read(session, 0)
        expect([page.damaged, page.events.length]).toEqual([undefined, length])
      }
      expect((await store.removals(9)).map(({ session, events }) => `${session} ${events}`)).toEqual(['b 1', 'a 2'])
    })

    it('B-STORE-140: what is written after a removal, and beside it, is read back whole', async () => {
      const { store } = await make()
      const owners = await Promise.all(['a', 'b', 'c'].map((session) => begin(store, session)))
      const [a, b, c] = owners as [(typeof owners)[0], (typeof owners)[0], (typeof owners)[0]]
      for (let i = 0; i < 40; i++) for (const owner of owners) await write(store, owner, [note(`${i}`)])
      await store.release('c', c.epoch)
      await store.remove('c', 'ann')
      await write(store, a, [note('after')])
      await Promise.all([write(store, a, [note('x')]), write(store, b, [note('y')])])
      await create(store, 'd')
      await store.release('b', b.epoch)
      await Promise.all([store.remove('b', 'ann'), admit(store, 'd', message('m')), write(store, a, [note('z')])])
      await admit(store, 'd', message('n'))
      for (const session of ['a', 'd']) {
        const page = await store.read(session, 0)
        expect(page.damaged).toBeUndefined()
        expect(page.events.map(({ seq }) => seq)).toEqual(page.events.map((_, i) => i + 1))
      }
      expect([(await seqs(store, 'a')).length, (await seqs(store, 'd')).length]).toEqual([44, 3])
    })
  })
}

export function describeRemovalOfWorkers(make: MakeFixture): void {
  describe('removal with several workers', () => {
    it('B-STORE-133: while one of them is driven the removal is refused and takes nothing; a lost worker is no reason', async () => {
      const { store, clock } = await make()
      await family(store)
      const owner = await claim(store, 'root~1.0', 'w1')
      const before = await store.list({ limit: 9 })
      expect(await outcome(store.remove('root', 'ann'))).toBe('session_busy')
      expect(await store.list({ limit: 9 })).toEqual(before)
      expect(await store.removals(9)).toEqual([])
      const over = { card: card('root~1.0', { root: 'root' }) }
      expect(await outcome(write(store, owner, [note('x')], over))).toBe('ok')
      clock.advance(TTL + 1)
      expect(await outcome(store.remove('root', 'ann'))).toBe('ok')
      expect(await outcome(write(store, owner, [note('late')], over))).toBe('session_missing')
      await store.release('root~1.0', owner.epoch)
    })

    it('B-STORE-137: an id that is used again is another session, and workers and clients of the first cannot write to it', async () => {
      const { store, clock } = await make()
      const zombie = await begin(store, 's', 'w1')
      await admit(store, 's', message('m1', 'before'))
      await write(store, { ...zombie, seq: 2 }, [note('old')])
      clock.advance(TTL + 1)
      await store.remove('s', 'ann')
      await create(store, 's')
      expect(await seqs(store, 's')).toEqual([1])
      expect(await admit(store, 's', message('m1', 'after'))).toEqual({ seqs: [2], duplicate: false })
      const late = ownerWrite(store, { ...zombie, seq: 2 }, [note('late')])
      expect(await outcome(store.commit([late]))).toBe('lease_lost')
      await store.release('s', zombie.epoch)
      expect(await store.extend('w1', TTL)).toEqual(new Map())
      const owner = await claim(store, 's', 'w1')
      expect(owner.epoch).toBeGreaterThan(zombie.epoch)
      expect(lifeOf(owner.epoch)).toBe(lifeOf(zombie.epoch) + 1)
      expect(await outcome(store.commit([late]))).toBe('lease_lost')
      expect(await outcome(write(store, owner, [note('mine')], { release: true }))).toBe('ok')
      // And once more, also for one that comes back with its log.
      await store.remove('s', 'ann')
      const history: Event[] = [
        { seq: 1, at: START, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' },
        { seq: 2, at: START, epoch: 7, ...note('old') },
      ]
      const back = { ...creation(store, 's'), events: [], history }
      await store.commit([back])
      const third = await claim(store, 's', 'w1')
      expect(lifeOf(third.epoch)).toBe(2)
      expect(await outcome(store.commit([late]))).toBe('lease_lost')
      expect(await outcome(write(store, third, [note('on')]))).toBe('ok')
    })
  })
}

export function describeRemovalNews(make: MakeFixture): void {
  describe('news of removals', () => {
    it('B-STORE-138: a watcher is told once, with null; reads then say that it is missing', async () => {
      const { store } = await make()
      await family(store)
      const heard: (readonly Event[] | null)[] = []
      const children: (readonly Event[] | null)[] = []
      store.watch('root', (news) => heard.push(news))
      store.watch('root~1.0', (news) => children.push(news))
      await store.remove('root', 'ann')
      expect([heard, children]).toEqual([[null], [null]])
      expect(await outcome(store.read('root', 2))).toBe('session_missing')
      await create(store, 'root')
      expect(heard.at(-1)).toMatchObject([{ seq: 1 }])
    })
  })
}
