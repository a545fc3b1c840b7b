// The contract of a Store: the log, its order, atomic commits, blobs and snapshots.
import { describe, expect, it } from 'vitest'
import type { OwnerEvent } from '../../src/kernel/event.ts'
import {
  admit,
  begin,
  card,
  create,
  creation,
  type MakeFixture,
  message,
  note,
  outcome,
  ownerWrite,
  seqs,
  write,
} from './fixture.ts'

export function describeLog(make: MakeFixture): void {
  describe('the log', () => {
    it('B-STORE-1: an owner write with epoch 0 and expected seq 0 creates a session, whose events are read back as written', async () => {
      const { store } = await make()
      const made = creation(store, 's')
      const [receipt] = await store.commit([made])
      expect(receipt).toEqual({ seqs: [1], duplicate: false })
      expect(await store.read('s', 0)).toEqual({ events: made.events })
    })

    it('B-STORE-13: an intent is read back as written, whatever its key is', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const keys = ['3.0', '12.345', '', '3.', 'a"b', '3.0\n', '\\', '1.2","type":"x', 'ä.0', '⟦']
      const intents = keys.map((call) => ({ type: 'agent.tool_use', call }) as const)
      const written = ownerWrite(store, owner, intents)
      await store.commit([written])
      expect((await store.read('s', 1)).events).toEqual(written.events)
    })

    it('B-STORE-2: creating a session that exists is refused, and changes nothing', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      clock.advance(1)
      expect(await outcome(create(store, 's', { status: 'running' }))).toBe('session_exists')
      expect(await seqs(store, 's')).toEqual([1])
      expect((await store.card('s'))?.status).toBe('idle')
    })

    it('B-STORE-3: a commit over several sessions happens as a whole or not at all', async () => {
      const { store } = await make()
      const [a, b] = [await begin(store, 'a'), await begin(store, 'b')]
      const good = ownerWrite(store, a, [note('1')], {
        charges: [{ type: 'hold', key: 'k', accounts: ['acc'], amount: 5 }],
        blobs: [{ hash: 'h', media: 'text/plain', data: new Uint8Array([1]) }],
        snapshot: { seq: 2, version: 1, body: '{}' },
        card: card('a', { status: 'running', due: 5 }),
        sends: [{ session: 'b', event: message('sent') }],
      })
      const bad = ownerWrite(store, { ...b, epoch: b.epoch + 1 }, [note('2')])
      expect(await outcome(store.commit([good, bad]))).toBe('lease_lost')
      expect([await seqs(store, 'a'), await seqs(store, 'b')]).toEqual([[1], [1]])
      expect(await store.account('acc')).toBeNull()
      expect(await store.blob('h')).toBeNull()
      expect(await store.snapshot('a')).toBeNull()
      expect(await store.card('a')).toMatchObject({ status: 'idle', due: null, seq: 1 })
      await store.commit([ownerWrite(store, a, [note('1')]), ownerWrite(store, b, [note('2')])])
      expect([await seqs(store, 'a'), await seqs(store, 'b')]).toEqual([
        [1, 2],
        [1, 2],
      ])
    })

    it('B-STORE-3: one commit may write to one session several times, each on top of the last', async () => {
      const { store } = await make()
      const inbox = { session: 's', lane: 'inbox', events: [message('m1'), message('m2')] } as const
      const receipts = await store.commit([creation(store, 's'), inbox])
      expect(receipts.map((receipt) => receipt.seqs)).toEqual([[1], [2, 3]])
    })

    it('B-STORE-4: an owner write that expects the log to end elsewhere is refused with conflict', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await admit(store, 's', message('m'))
      expect(await outcome(store.commit([ownerWrite(store, owner, [note('x')])]))).toBe('conflict')
      owner.seq = 2
      expect(await outcome(write(store, owner, [note('x')]))).toBe('ok')
      expect(await seqs(store, 's')).toEqual([1, 2, 3])
    })

    it('B-STORE-5: owner events that do not continue the log are refused', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const stamp = (over: Partial<OwnerEvent>) => {
        const made = ownerWrite(store, owner, [note('x')])
        return store.commit([{ ...made, events: made.events.map((event) => ({ ...event, ...over }) as OwnerEvent) }])
      }
      for (const over of [{ seq: 3 }, { seq: 1 }, { at: 5 }, { at: Number.NaN }, { epoch: 7 }, { epoch: 0 }]) {
        expect(await outcome(stamp(over))).toBe('invalid_input')
      }
      expect(await outcome(stamp({}))).toBe('ok')
    })

    it('B-STORE-5: an owner write may carry a card and no events', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [], { card: card('s', { status: 'requires_action', asks: ['1.0'] }) })
      expect(await store.card('s')).toMatchObject({ status: 'requires_action', asks: ['1.0'], seq: 1 })
      expect(await outcome(store.commit([creation(store, 'new', { events: [] })]))).toBe('invalid_input')
    })

    it('B-STORE-6: read returns what comes after a seq, at most so many, in order', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, ['a', 'b', 'c', 'd'].map(note))
      const read = async (after: number, limit?: number) =>
        (await store.read('s', after, limit)).events.map((e) => e.seq)
      expect(await read(0, 2)).toEqual([1, 2])
      expect(await read(3)).toEqual([4, 5])
      expect(await read(2, 1)).toEqual([3])
      expect(await read(5)).toEqual([])
      expect(await read(99)).toEqual([])
      expect(await outcome(store.read('none', 0))).toBe('session_missing')
    })

    it('B-STORE-6: the events of sessions that write in turns are read back whole, from any place', async () => {
      const { store } = await make()
      const owners = await Promise.all(['a', 'b', 'c'].map((session) => begin(store, session)))
      for (let round = 0; round < 60; round++) {
        await Promise.all(owners.map((owner, i) => write(store, owner, [note(`${round}.${i}`), note('é"\n🦙')])))
      }
      const all = (await store.read('b', 0)).events
      expect(all.map((event) => event.seq)).toEqual(Array.from({ length: 121 }, (_, i) => i + 1))
      expect(all.filter((event) => 'text' in event && event.text.endsWith('.1'))).toHaveLength(60)
      for (const after of [1, 2, 30, 31, 90, 119, 120]) {
        expect((await store.read('b', after)).events).toEqual(all.slice(after))
        expect((await store.read('b', after, 7)).events).toEqual(all.slice(after, after + 7))
      }
    })

    it('B-FOLLOW-11: read with a bound on bytes gives as many events as fit, and one at least', async () => {
      const { store } = await make()
      const owners = await Promise.all(['s', 'other'].map((session) => begin(store, session)))
      // In turns, so that the events of one session do not lie side by side.
      const sizes = [[10], [4_000], [10], [10], [50_000], [10], Array.from({ length: 700 }, () => 100)]
      for (const each of sizes) {
        const notes = each.map((size) => note('x'.repeat(size)))
        await Promise.all(owners.map((owner) => write(store, owner, notes)))
      }
      const all = (await store.read('s', 0)).events
      for (const bytesMax of [0, 1, 1_000, 5_000, 60_000, 10_000_000]) {
        const got: unknown[] = []
        for (let after = 0; after < all.length; ) {
          const { events, damaged } = await store.read('s', after, 600, bytesMax)
          expect(damaged).toBeUndefined()
          expect(events.length).toBeGreaterThan(0)
          if (events.length > 1) expect(JSON.stringify(events).length).toBeLessThan(bytesMax + 2_000)
          got.push(...events)
          after += events.length
        }
        expect(got).toEqual(all)
      }
      expect((await store.read('s', 2, undefined, 5_000)).events).toHaveLength(3)
      expect((await store.read('s', 5, 1, 10_000_000)).events).toHaveLength(1)
      expect((await store.read('s', all.length, 10, 10)).events).toEqual([])
      expect(await outcome(store.read('s', 0, 10, -1))).toBe('invalid_input')
    })

    it('B-STORE-14: a place or a bound that is no whole number from 0 on is refused, and the session stays healthy', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      for (const wrong of [Number.NaN, -1, 1.5, 'abc', '1', null, Number.POSITIVE_INFINITY] as number[]) {
        expect(await outcome(store.read('s', wrong))).toBe('invalid_input')
        expect(await outcome(store.read('s', 0, wrong))).toBe('invalid_input')
        expect(await outcome(store.list({ limit: wrong }))).toBe('invalid_input')
        expect(await outcome(store.due(wrong))).toBe('invalid_input')
        expect(await outcome(store.removals(wrong))).toBe('invalid_input')
      }
      expect(await store.read('s', 0, 0)).toEqual({ events: [] })
      expect(await outcome(write(store, owner, [note('still written on')]))).toBe('ok')
      expect(await seqs(store, 's')).toEqual([1, 2])
    })

    it('B-STORE-7: an event of an unknown type is kept as it is', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const strange = { type: 'future.thing', deep: { ['__proto__']: [1, null, '\u0000\ud800'] } }
      await write(store, owner, [strange as never])
      const [event] = (await store.read('s', 1)).events
      expect(event).toMatchObject({ ...strange, seq: 2, epoch: owner.epoch })
    })

    it('B-STORE-8: a caller cannot change the log through an object it holds', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const made = ownerWrite(store, owner, [note('as written')])
      await store.commit([made])
      Object.assign(made.events[0] ?? {}, { text: 'changed' })
      const [read] = (await store.read('s', 1)).events
      Object.assign(read ?? {}, { text: 'changed' })
      expect((await store.read('s', 1)).events).toMatchObject([{ text: 'as written' }])
    })
  })

  describe('what stands beside the log', () => {
    it('B-STORE-9: a blob is kept once, by its hash, in the same commit', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const blob = { hash: 'sha256:1', media: 'image/png', data: new Uint8Array([0, 1, 255]) }
      const empty = { hash: 'sha256:0', media: 'text/plain', data: new Uint8Array() }
      await write(store, owner, [note('x')], { blobs: [blob, empty] })
      await store.commit([{ session: 's', lane: 'inbox', events: [message('m')], blobs: [blob] }])
      blob.data[0] = 9
      const read = await store.blob('sha256:1')
      expect(read).toMatchObject({ hash: 'sha256:1', media: 'image/png' })
      expect([...(read?.data ?? [])]).toEqual([0, 1, 255])
      expect((await store.blob('sha256:0'))?.data).toHaveLength(0)
      expect(await store.blob('sha256:2')).toBeNull()
    })

    it('B-STORE-11: a closed store refuses everything, and may be closed again', async () => {
      const { store } = await make()
      await create(store, 's')
      await store.close()
      await store.close()
      expect(await outcome(create(store, 't'))).toBe('store_closed')
      expect(await outcome(store.read('s', 0))).toBe('store_closed')
      expect(await outcome(store.claim('s', 'w', 1))).toBe('store_closed')
      store.watch('s', () => {})()
    })

    it('B-STORE-12: the clock of the store is that of the machine, also when it is set back', async () => {
      const { store, clock } = await make()
      clock.time -= 5_000
      expect(store.now()).toBe(clock.time)
    })
  })
}

export function describeNewestSnapshot(make: MakeFixture): void {
  describe('the newest snapshot', () => {
    it('B-STORE-10: the last snapshot is returned as written, and a session without one has none', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      expect(await store.snapshot('s')).toBeNull()
      expect(await store.snapshot('none')).toBeNull()
      await write(store, owner, [note('1')], { snapshot: { seq: 2, version: 1, body: '{"a":"é"}' } })
      await write(store, owner, [note('2')], { snapshot: { seq: 3, version: 2, body: '{"b":1}' } })
      await write(store, owner, [note('3')])
      expect(await store.snapshot('s')).toEqual({ seq: 3, version: 2, body: '{"b":1}' })
    })
  })
}
