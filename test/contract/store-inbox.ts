// The contract of a Store: the inbox, its idempotency, sends to other sessions, and closed sessions.
import { describe, expect, it } from 'vitest'
import type { InboxBody } from '../../src/kernel/event.ts'
import {
  admit,
  begin,
  card,
  create,
  type MakeFixture,
  message,
  note,
  outcome,
  ownerWrite,
  seqs,
  TTL,
  write,
} from './fixture.ts'

export function describeInbox(make: MakeFixture): void {
  describe('the inbox', () => {
    it('B-STORE-30: the store stamps an inbox event with the next seq, its own time and epoch 0', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      clock.advance(7)
      const forged: InboxBody = Object.assign(message('m1'), { seq: 77, at: 1, epoch: 5 })
      expect(await admit(store, 's', forged, message('m2'))).toEqual({ seqs: [2, 3], duplicate: false })
      const stamp = { at: clock.time, epoch: 0 }
      expect((await store.read('s', 1)).events).toEqual([
        { ...message('m1'), ...stamp, seq: 2 },
        { ...message('m2'), ...stamp, seq: 3 },
      ])
    })

    it('B-STORE-31: the same id and body again is the same event: its seq, and nothing written', async () => {
      const { store } = await make()
      await create(store, 's')
      await admit(store, 's', message('m1'))
      expect(await admit(store, 's', message('m1'))).toEqual({ seqs: [2], duplicate: true })
      const { type, id, ...rest } = message('m1') as Extract<InboxBody, { type: 'user.message' }>
      expect(await admit(store, 's', { when: rest.when, parts: rest.parts, id, type })).toEqual({
        seqs: [2],
        duplicate: true,
      })
      expect(await admit(store, 's', message('m1'), message('m2'))).toEqual({ seqs: [2, 3], duplicate: false })
      expect(await admit(store, 's', message('m3'), message('m3'))).toEqual({ seqs: [4, 4], duplicate: false })
      expect(await seqs(store, 's')).toEqual([1, 2, 3, 4])
    })

    it('B-STORE-31: the same id in two sessions is two events', async () => {
      const { store } = await make()
      await create(store, 'a')
      await create(store, 'b')
      expect((await admit(store, 'a', message('m'))).duplicate).toBe(false)
      expect((await admit(store, 'b', message('m'))).duplicate).toBe(false)
    })

    it('B-STORE-32: the same id with another body is refused', async () => {
      const { store } = await make()
      await create(store, 's')
      await admit(store, 's', message('m1', 'one'))
      expect(await outcome(admit(store, 's', message('m1', 'two')))).toBe('id_reused')
      expect(await outcome(admit(store, 's', message('m2', 'one'), message('m2', 'two')))).toBe('id_reused')
      expect(await seqs(store, 's')).toEqual([1, 2])
    })

    it('B-STORE-33: many senders of the same event at once all get the same seq, and one event is written', async () => {
      const { store } = await make()
      await create(store, 's')
      const receipts = await Promise.all(Array.from({ length: 20 }, () => admit(store, 's', message('m'))))
      expect(new Set(receipts.map((receipt) => receipt.seqs[0]))).toEqual(new Set([2]))
      expect(receipts.filter((receipt) => !receipt.duplicate)).toHaveLength(1)
      expect(await seqs(store, 's')).toEqual([1, 2])
    })

    it('B-STORE-34: time in the log never goes back, also when the clock does', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')], {})
      const ahead = ownerWrite(store, owner, [note('from a clock that runs ahead')])
      const events = ahead.events.map((event) => ({ ...event, at: clock.time + 60_000 }))
      await store.commit([{ ...ahead, events }])
      clock.time -= 3_600_000
      await admit(store, 's', message('m'))
      const times = (await store.read('s', 0)).events.map((event) => event.at)
      expect(times).toEqual([...times].sort((a, b) => a - b))
    })

    it('B-STORE-35: a session that is not there or closed accepts nothing, but what it accepted is still answered', async () => {
      const { store } = await make()
      expect(await outcome(admit(store, 'none', message('m')))).toBe('session_missing')
      const owner = await begin(store, 's')
      await admit(store, 's', message('m1'))
      owner.seq = 2
      await write(store, owner, [{ type: 'session.closed' }], { card: card('s', { status: 'terminated' }) })
      expect(await outcome(admit(store, 's', message('m2')))).toBe('session_closed')
      expect(await admit(store, 's', message('m1'))).toEqual({ seqs: [2], duplicate: true })
      expect(await outcome(write(store, owner, [note('x')]))).toBe('session_closed')
      expect(await outcome(write(store, owner, []))).toBe('session_closed')
      const last = { card: card('s', { status: 'terminated' }), release: true } as const
      expect(await outcome(write(store, owner, [], last))).toBe('ok')
      expect(await seqs(store, 's')).toEqual([1, 2, 3])
    })

    it('B-STORE-36: an inbox event makes its session due in the same transaction', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time + 60_000 })
      await create(store, 't')
      expect((await store.due(9)).sessions).toEqual([])
      await admit(store, 's', message('m'))
      clock.advance(5)
      await admit(store, 't', message('m'))
      expect((await store.due(9)).sessions).toEqual(['s', 't'])
      expect(await store.card('s')).toMatchObject({ due: clock.time - 5, seq: 2, at: clock.time - 5 })
    })

    it('B-STORE-37: sends reach other sessions in the same commit, and once however often they are repeated', async () => {
      const { store } = await make()
      const child = await begin(store, 'child')
      await create(store, 'parent')
      const sends = [{ session: 'parent', event: message('answer') }]
      await write(store, child, [note('done')], { sends })
      await write(store, child, [note('again')], { sends })
      expect((await store.read('parent', 1)).events).toMatchObject([{ id: 'answer', seq: 2, epoch: 0 }])
      expect((await store.due(9)).sessions).toEqual(['parent'])
      const other = [{ session: 'parent', event: message('answer', 'other') }]
      expect(await outcome(write(store, child, [note('x')], { sends: other }))).toBe('id_reused')
    })

    it('B-STORE-37: a send to a session that is not there refuses the whole commit; one to a closed session is dropped', async () => {
      const { store } = await make()
      const child = await begin(store, 'child')
      const sends = [{ session: 'parent', event: message('answer') }]
      expect(await outcome(write(store, child, [note('x')], { sends }))).toBe('session_missing')
      expect(await seqs(store, 'child')).toEqual([1])
      const parent = await begin(store, 'parent')
      await write(store, parent, [{ type: 'session.closed' }], { card: card('parent', { status: 'terminated' }) })
      expect(await outcome(write(store, child, [note('x')], { sends }))).toBe('ok')
      expect(await seqs(store, 'parent')).toEqual([1, 2])
    })

    it('B-STORE-37: a send to the session itself comes after its own events', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')], { sends: [{ session: 's', event: message('self') }] })
      expect((await store.read('s', 0)).events.map((event) => event.type)).toEqual([
        'session.created',
        'note.added',
        'user.message',
      ])
    })
  })
}

export function describeSentEvents(make: MakeFixture): void {
  describe('messages by id', () => {
    it('B-VERB-50: an event is found by its id without reading the log, in its own session alone', async () => {
      const { store } = await make()
      await create(store, 's')
      await create(store, 'other')
      await admit(store, 's', message('m1'), message('m2'))
      expect(await store.sent('s', 'm1')).toBe(2)
      expect(await store.sent('s', 'm2')).toBe(3)
      for (const [session, id] of [
        ['s', 'm3'],
        ['other', 'm1'],
        ['none', 'm1'],
        ['s', ''],
      ] as const)
        expect(await store.sent(session, id)).toBeNull()
      await store.remove('s', 'ana')
      expect(await store.sent('s', 'm1')).toBeNull()
    })
  })
}

export function describeHealth(make: MakeFixture): void {
  describe('health', () => {
    it('B-VERB-50: the store counts its sessions, those that are held and those that are due', async () => {
      const { store, clock } = await make()
      expect(await store.health()).toMatchObject({ sessions: 0, leases: 0, due: 0 })
      for (const session of ['a', 'b', 'c']) await create(store, session)
      await admit(store, 'a', message('m'))
      await admit(store, 'b', message('m'))
      expect(await store.health()).toMatchObject({ sessions: 3, leases: 0, due: 2 })
      await store.claim('a', 'w', TTL)
      const { bytes, durability } = await store.health()
      expect(await store.health()).toMatchObject({ sessions: 3, leases: 1, due: 1 })
      expect([bytes !== undefined && bytes > 0, durability !== '']).toEqual([true, true])
      clock.advance(TTL + 1)
      expect(await store.health()).toMatchObject({ leases: 0, due: 2 })
    })

    it('B-OPS-1: the store says how long what is due has waited for a worker, the longest of it', async () => {
      const { store, clock } = await make()
      expect(await store.health()).toMatchObject({ due: 0, waitedMs: 0 })
      for (const session of ['a', 'b']) {
        await create(store, session)
        await admit(store, session, message('m'))
        clock.advance(5_000)
      }
      expect(await store.health()).toMatchObject({ due: 2, waitedMs: 10_000 })
      await store.claim('a', 'w', TTL)
      expect(await store.health()).toMatchObject({ due: 1, waitedMs: 5_000 })
      await store.claim('b', 'w', TTL)
      expect(await store.health()).toMatchObject({ due: 0, waitedMs: 0 })
      // A session waits from the end of its lost worker's lease on.
      clock.advance(TTL + 7_000)
      expect(await store.health()).toMatchObject({ due: 2, waitedMs: 7_000 })
    })
  })
}
