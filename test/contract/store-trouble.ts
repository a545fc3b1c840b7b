// The contract of a Store: the order of due sessions, and how a session whose attempts keep failing is left alone.
import { describe, expect, it } from 'vitest'
import { admit, begin, card, claim, create, type MakeFixture, message, note, TTL, write } from './fixture.ts'

export function describeTrouble(make: MakeFixture): void {
  describe('urgency', () => {
    it('B-STORE-56: what was sent or begun, and urgent wakes, are due before other wakes, however long these have waited (S4-21)', async () => {
      const { store, clock } = await make()
      const wake = { status: 'rescheduling', due: clock.time - 900 } as const
      await create(store, 'wake', wake)
      await create(store, 'begun', { status: 'running', due: clock.time - 5 })
      await create(store, 'sent')
      await create(store, 'both', wake)
      await admit(store, 'sent', message('m'))
      await admit(store, 'both', message('m'))
      expect((await store.due(9)).sessions).toEqual(['both', 'begun', 'sent', 'wake'])
      expect((await store.due(3)).sessions).toEqual(['both', 'begun', 'sent'])
      expect((await store.due(0)).next).toBe(clock.time - 900)
      await create(store, 'urgent', { status: 'rescheduling', due: clock.time - 3, urgent: true })
      expect((await store.due(9)).sessions).toEqual(['both', 'begun', 'urgent', 'sent', 'wake'])
      await write(store, await claim(store, 'urgent', 'w1'), [], { card: card('urgent', { due: null }), release: true })
      // Its owner took what was sent, and a wake is left.
      await write(store, await claim(store, 'both', 'w1'), [note('x')], { card: card('both', wake), release: true })
      expect((await store.due(9)).sessions).toEqual(['begun', 'sent', 'wake', 'both'])
    })
  })

  describe('attempts that fail', () => {
    it('B-STORE-58: a session that is given back with trouble is put off, and never brought forward', async () => {
      const { store, clock } = await make()
      const trouble = { attempts: 2, reason: 'Bug: why', until: clock.time + 2_000 }
      for (const [id, due] of [
        ['now', clock.time],
        ['later', clock.time + 9_000],
        ['never', null],
      ] as const) {
        await create(store, id, { due })
        await store.release(id, (await claim(store, id, 'w1')).epoch, trouble)
        expect(await store.card(id)).toMatchObject({ trouble })
      }
      expect((await store.due(9)).sessions).toEqual([])
      expect((await store.due(0)).next).toBe(clock.time + 2_000)
      clock.advance(9_000)
      expect((await store.due(9)).sessions).toEqual(['now', 'later'])
      expect(await store.claim('now', 'w1', TTL)).toMatchObject({ failed: 2 })
      expect((await store.list({ limit: 9 })).map((found) => found.trouble?.attempts)).toEqual([2, 2, 2])
    })

    it('B-STORE-59: with trouble and no time it is due no more, until something is sent or its owner writes (F29)', async () => {
      const { store, clock } = await make()
      const trouble = { attempts: 5, reason: 'Bug: why', until: null }
      for (const id of ['sent', 'woken']) {
        await create(store, id, { due: clock.time })
        await store.release(id, (await claim(store, id, 'w1')).epoch, trouble)
        expect(await store.card(id)).toMatchObject({ due: null, trouble })
      }
      expect((await store.due(9)).sessions).toEqual([])
      expect((await store.due(0)).next).toBeNull()
      await admit(store, 'sent', message('m'))
      expect((await store.due(9)).sessions).toEqual(['sent'])
      expect(await store.card('sent')).not.toHaveProperty('trouble')
      expect(await store.claim('sent', 'w1', TTL)).toMatchObject({ failed: 0 })
      const owner = await claim(store, 'woken', 'w1')
      await write(store, owner, [note('x')], { card: card('woken', { due: clock.time }), release: true })
      expect((await store.due(9)).sessions).toEqual(['woken'])
      expect(await store.card('woken')).not.toHaveProperty('trouble')
    })

    it('B-STORE-59: what is sent while the last attempt fails keeps the session due', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time })
      const owner = await claim(store, 's', 'w1')
      await admit(store, 's', message('m'))
      await store.release('s', owner.epoch, { attempts: 5, reason: 'Bug: why', until: null })
      expect((await store.due(9)).sessions).toEqual(['s'])
      expect(await store.claim('s', 'w1', TTL)).toMatchObject({ failed: 0 })
    })
  })
}

export function describeLostAttempts(make: MakeFixture): void {
  describe('attempts that are lost', () => {
    it('B-STORE-56: so it is among the sessions of a worker that was lost', async () => {
      const { store, clock } = await make()
      await create(store, 'wake', { status: 'rescheduling', due: clock.time - 900 })
      await create(store, 'free', { status: 'rescheduling', due: clock.time - 950 })
      await create(store, 'sent')
      await admit(store, 'sent', message('m'))
      for (const id of ['wake', 'sent']) await claim(store, id, 'w1')
      expect((await store.due(9)).sessions).toEqual(['free'])
      clock.advance(TTL)
      expect((await store.due(9)).sessions).toEqual(['sent', 'free', 'wake'])
      expect((await store.due(1)).sessions).toEqual(['sent'])
    })

    it('B-STORE-57: an attempt that is lost before it wrote anything is counted by the next claim, and the card says so', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time })
      for (const failed of [0, 1, 2, 3]) {
        expect(await store.claim('s', `w${failed}`, TTL)).toMatchObject({ failed })
        const { trouble } = (await store.card('s')) ?? {}
        if (failed === 0) expect(trouble).toBeUndefined()
        else
          expect(trouble).toEqual({
            attempts: failed,
            reason: expect.stringContaining('lost') as string,
            until: clock.time,
          })
        clock.advance(TTL)
      }
    })

    it('B-TITLE-2: a title ends no trouble: the tries are counted on, and nobody is asked to look earlier', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time })
      await claim(store, 's', 'lost')
      clock.advance(TTL)
      await claim(store, 's', 'w1')
      const before = await store.card('s')
      expect(before).toHaveProperty('trouble')
      await admit(store, 's', { type: 'user.rename', id: 'r', title: 'A title' })
      expect(await store.card('s')).toEqual({ ...before, seq: 2, at: clock.time, title: 'A title' })
      clock.advance(TTL)
      expect(await store.claim('s', 'w2', TTL)).toMatchObject({ failed: 2 })
    })

    it('B-STORE-57: a whole turn begins a new count, and so does a look that found nothing to do, and mere writing does not', async () => {
      const { store, clock } = await make()
      for (const act of ['grew', 'rested'] as const) {
        await create(store, act, { due: clock.time })
        await claim(store, act, 'lost')
        clock.advance(TTL)
        const owner = await claim(store, act, 'w1')
        expect(await store.card(act)).toHaveProperty('trouble')
        if (act === 'grew') await write(store, owner, [note('x')])
        expect(await store.card(act)).toHaveProperty('trouble')
        await write(
          store,
          owner,
          act === 'grew' ? [note('y')] : [],
          act === 'grew' ? { gained: true } : { release: true },
        )
        expect(await store.card(act)).not.toHaveProperty('trouble')
        clock.advance(TTL)
        expect(await store.claim(act, 'w2', TTL)).toMatchObject({ failed: 0 })
      }
    })

    it('B-STORE-57: a lease that is given back without trouble does not count as an attempt', async () => {
      const { store, clock } = await make()
      await create(store, 's', { due: clock.time })
      await claim(store, 's', 'lost')
      clock.advance(TTL)
      for (let i = 0; i < 3; i++) {
        const { epoch, failed } = (await store.claim('s', 'w', TTL)) ?? { epoch: 0, failed: 9 }
        expect(failed).toBe(1)
        await store.release('s', epoch)
      }
    })

    it('B-STORE-58: a worker that lost the lease changes nothing by giving it back with trouble', async () => {
      const { store, clock } = await make()
      const zombie = await begin(store, 's')
      clock.advance(TTL)
      await claim(store, 's', 'w2')
      const before = await store.card('s')
      await store.release('s', zombie.epoch, { attempts: 5, reason: 'Bug: why', until: null })
      expect(await store.card('s')).toEqual(before)
    })
  })
}
