// The contract of a Store: the answer of a commit was lost, and its writer asks again with the very same write.
import { describe, expect, it } from 'vitest'
import type { Write } from '../../src/ports/store.ts'
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
  write,
} from './fixture.ts'

export function describeRepeats(make: MakeFixture): void {
  describe('a write that is asked for again', () => {
    it('B-STORE-175: the same owner write gets its receipts again, and the log has it once', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      const made = ownerWrite(store, owner, [note('1'), { type: 'agent.tool_use', call: '1.0' }])
      const [first] = await store.commit([made])
      clock.advance(5)
      expect(await store.commit([made])).toEqual([{ ...first, duplicate: true }])
      owner.seq = 3
      await admit(store, 's', message('m'))
      owner.seq = 4
      await write(store, owner, [note('2')])
      expect(await store.commit([made])).toEqual([{ ...first, duplicate: true }])
      expect(await seqs(store, 's')).toEqual([1, 2, 3, 4, 5])
    })

    it('B-STORE-175: so does one that gave the lease back, and one whose session another worker has by now', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const made = ownerWrite(store, owner, [note('1')], {
        release: true,
        card: card('s', { status: 'requires_action' }),
      })
      await store.commit([made])
      expect((await store.commit([made]))[0]).toEqual({ seqs: [2], duplicate: true })
      const next = await claim(store, 's', 'w2')
      await write(store, { ...next, seq: 2 }, [note('2')])
      expect((await store.commit([made]))[0]).toEqual({ seqs: [2], duplicate: true })
      // It goes on as the loser that it is.
      expect(await outcome(write(store, { ...owner, seq: 3 }, [note('3')]))).toBe('lease_lost')
      expect(await store.card('s')).toMatchObject({ seq: 3, status: 'idle' })
    })

    it('B-STORE-175: what came with it is done once: letters, births, money and blobs', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await create(store, 'parent')
      const blob = { hash: 'h', media: 'text/plain', data: new Uint8Array([1]) }
      const writes: readonly Write[] = [
        ownerWrite(store, owner, [note('1')], {
          sends: [{ session: 'parent', event: message('letter') }],
          charges: [{ type: 'hold', key: 'k', accounts: ['day'], amount: 5 }],
          blobs: [blob],
        }),
        creation(store, 'child', { card: card('child', { root: 's', parent: 's' }) }),
        {
          session: 'child',
          lane: 'inbox',
          events: [message('task')],
          charges: [{ type: 'limit', account: 'run:child:1', limit: 9 }],
        },
      ]
      const receipts = await store.commit(writes)
      owner.seq = 2
      await write(store, owner, [note('2')], { charges: [{ type: 'settle', key: 'k', amount: 3 }] })
      const raised = { type: 'limit', account: 'run:child:1', limit: 20 } as const
      await store.commit([{ session: 'child', lane: 'inbox', events: [], charges: [raised] }])
      expect(await store.commit(writes)).toEqual(receipts.map((receipt) => ({ ...receipt, duplicate: true })))
      expect(await store.account('day')).toMatchObject({ held: 0, spent: 3 })
      expect(await store.account('run:child:1')).toMatchObject({ limit: 20 })
      expect(await Promise.all(['s', 'parent', 'child'].map((id) => seqs(store, id)))).toEqual([
        [1, 2, 3],
        [1, 2],
        [1, 2],
      ])
    })

    it('B-STORE-175: twice at the same time is once', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const made = ownerWrite(store, owner, [note('1')])
      const both = await Promise.all([store.commit([made]), store.commit([made])])
      expect(both.map(([receipt]) => receipt?.duplicate)).toEqual([false, true])
      const fresh = creation(store, 'new')
      const births = await Promise.all([store.commit([fresh]), store.commit([fresh])])
      expect(births.map(([receipt]) => receipt?.duplicate)).toEqual([false, true])
      expect([await seqs(store, 's'), await seqs(store, 'new')]).toEqual([[1, 2], [1]])
    })

    it('B-STORE-176: another write in its place is refused as before', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      const made = ownerWrite(store, owner, [note('1'), note('2')])
      await store.commit([made])
      const other = ownerWrite(store, owner, [note('1'), note('3')])
      for (const changed of [other, ownerWrite(store, owner, [note('2'), note('1')])])
        expect(await outcome(store.commit([changed]))).toBe('conflict')
      const longer = ownerWrite(store, owner, [note('1'), note('2'), note('3')])
      expect(await outcome(store.commit([longer]))).toBe('conflict')
      expect(await outcome(store.commit([creation(store, 's', { events: other.events })]))).toBe('session_exists')
      expect(await seqs(store, 's')).toEqual([1, 2, 3])
    })
  })
}
