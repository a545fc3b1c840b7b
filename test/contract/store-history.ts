// The contract of a Store: a session that comes with the log it had in another store.
import { describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import type { Restoration } from '../../src/stores/plan/plan-writes.ts'
import {
  admit,
  card,
  claim,
  create,
  creation,
  type MakeFixture,
  message,
  note,
  outcome,
  seqs,
  START,
  write,
} from './fixture.ts'

/** A log as two workers left it. */
function history(): readonly Event[] {
  return [
    { seq: 1, at: START - 50, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' },
    { seq: 2, at: START - 40, epoch: 0, ...message('m1') },
    { seq: 3, at: START - 30, epoch: 1, ...note('one') },
    { seq: 4, at: START - 30, epoch: 0, ...message('m2') },
    { seq: 5, at: START - 20, epoch: 3, ...note('two') },
  ]
}

function restoring(session: string, events: readonly Event[], over: Partial<Restoration> = {}): Restoration {
  const still = { lane: 'owner', epoch: 0, expectedSeq: 0, events: [], card: card(session) } as const
  return { session, ...still, history: events, ...over }
}

function changed(seq: number, over: object): readonly Event[] {
  return history().map((event) => (event.seq === seq ? { ...event, ...over } : event))
}

export function describeHistory(make: MakeFixture): void {
  describe('a session that comes with its log', () => {
    it('B-PORT-1: the write that creates a session may bring its whole log, which is kept as it was stamped', async () => {
      const { store } = await make()
      await store.commit([restoring('s', history(), { card: card('s', { due: START }) })])
      expect(await store.read('s', 0)).toEqual({ events: history() })
      expect(await store.card('s')).toMatchObject({ seq: 5, at: START - 20 })
      expect((await store.due(10)).sessions).toEqual(['s'])
    })

    it('B-PORT-2: it goes on from there: newer epochs only, the next seq, and messages that were admitted are known', async () => {
      const { store } = await make()
      await store.commit([restoring('s', history())])
      expect(await admit(store, 's', message('m1'))).toEqual({ seqs: [2], duplicate: true })
      expect(await outcome(admit(store, 's', message('m2', 'another text')))).toBe('id_reused')
      const owner = await claim(store, 's', 'w')
      expect(owner.epoch).toBe(4)
      await write(store, owner, [note('three')])
      await admit(store, 's', message('m3'))
      expect(await seqs(store, 's')).toEqual([1, 2, 3, 4, 5, 6, 7])
    })

    it('B-PORT-3: a log that no owner could have written is refused, and nothing of the commit is kept', async () => {
      const { store } = await make()
      const bad: readonly (readonly Event[])[] = [
        changed(3, { seq: 4 }),
        changed(1, { seq: 2 }),
        changed(5, { at: START - 45 }),
        changed(5, { at: Number.NaN }),
        changed(3, { epoch: 4 }),
        changed(5, { epoch: -1 }),
        changed(5, { epoch: 1.5 }),
        changed(4, { id: 'm1' }),
        changed(4, { id: '' }),
        [],
      ]
      for (const events of bad) {
        expect(await outcome(store.commit([creation(store, 'other'), restoring('s', events)]))).toBe('invalid_input')
        expect([await store.card('s'), await store.card('other')]).toEqual([null, null])
      }
      const both = restoring('s', history(), { events: creation(store, 's').events })
      expect(await outcome(store.commit([both]))).toBe('invalid_input')
    })

    it('B-PORT-4: a log does not replace or extend a session that is there', async () => {
      const { store } = await make()
      await create(store, 's')
      expect(await outcome(store.commit([restoring('s', history())]))).toBe('session_exists')
      const owner = await claim(store, 's', 'w')
      const sneaky = restoring('s', history(), { epoch: owner.epoch, expectedSeq: 1 })
      expect(await outcome(store.commit([sneaky]))).toBe('session_exists')
      expect(await outcome(store.commit([restoring('new', history(), { epoch: 3 })]))).toBe('session_missing')
      expect(await seqs(store, 's')).toEqual([1])
    })
  })
}
