// The contract of a Store: what holds when the machine's clock was wrong for a while, or is set.
import { describe, expect, it } from 'vitest'
import {
  admit,
  begin,
  card,
  claim,
  create,
  type Fixture,
  type MakeFixture,
  message,
  note,
  outcome,
  TTL,
  write,
} from './fixture.ts'

const YEARS_MS = 10 * 365 * 24 * 3_600_000
const HOUR_MS = 3_600_000

/** A worker that held the session when the clock was ahead, and was lost. */
async function lostAhead({ store, clock }: Fixture, ms: number): Promise<void> {
  clock.time += ms
  const owner = await begin(store, 's')
  await write(store, owner, [note('x')], { card: card('s', { status: 'running', due: clock.time }) })
  clock.time -= ms
}

export function describeClocks(make: MakeFixture): void {
  describe('clocks that are wrong', () => {
    it.each([YEARS_MS, HOUR_MS])(
      'B-CLOCK-1: a lease that lies ahead (%i ms) is taken as past, and the card says so',
      async (ms) => {
        const fixture = await make()
        const { store, clock } = fixture
        await lostAhead(fixture, ms)
        expect((await store.due(9)).sessions).toEqual(['s'])
        expect(await store.claim('s', 'w2', TTL)).toMatchObject({ epoch: 2, until: clock.time + TTL })
        const { trouble } = (await store.card('s')) ?? {}
        expect(trouble?.reason).toContain(new Date(clock.time + ms).toISOString())
        expect(trouble?.reason).toContain('a clock that was ahead')
      },
    )

    it('B-CLOCK-1: a lease as long as it was asked for is believed, however long that is', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      await store.claim('s', 'w1', YEARS_MS)
      await store.extend('w1', TTL)
      clock.time -= 50_000
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
    })

    it('B-CLOCK-3: so it is when nothing was asked for while the clock was ahead, and only something written', async () => {
      const { store, clock } = await make()
      expect((await store.due(9)).sessions).toEqual([])
      clock.time += HOUR_MS
      await create(store, 's', { due: clock.time + 500 })
      clock.time -= HOUR_MS
      expect((await store.due(9)).sessions).toEqual(['s'])
    })

    it('B-CLOCK-3: so is what was held while others looked for such times, when it is given back', async () => {
      const { store, clock } = await make()
      expect((await store.due(9)).sessions).toEqual([])
      clock.time += HOUR_MS
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')], { card: card('s', { status: 'running', due: clock.time + 500 }) })
      clock.time -= HOUR_MS
      await store.extend('w1', TTL)
      expect((await store.due(9)).sessions).toEqual([])
      await store.release('s', owner.epoch)
      expect((await store.due(9)).sessions).toEqual(['s'])
      expect((await store.card('s'))?.trouble?.reason).toContain('a clock that was ahead')
    })

    it('B-CLOCK-2: after the clock was set back, a heartbeat or a commit of the worker makes its lease good again', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      clock.time -= HOUR_MS
      await store.extend('w1', TTL)
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      clock.time -= HOUR_MS
      await store.commit([{ ...stamped(owner, clock.time + 2 * HOUR_MS), card: card('s') }])
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      clock.advance(TTL)
      expect(await store.claim('s', 'w2', TTL)).not.toBeNull()
    })

    it('B-CLOCK-3: what was put off by a clock that was ahead is due now and says so; a far wake of a right clock stays', async () => {
      const { store, clock } = await make()
      const far = clock.time + YEARS_MS
      await create(store, 'far', { due: far })
      clock.time += YEARS_MS
      await create(store, 'slept', { due: clock.time + 60_000 })
      await create(store, 'sent')
      await admit(store, 'sent', message('m'))
      expect((await store.due(9)).sessions).toEqual(['sent', 'far'])
      clock.time -= YEARS_MS
      expect((await store.due(9)).sessions.toSorted()).toEqual(['sent', 'slept'])
      expect((await store.card('slept'))?.trouble).toMatchObject({ until: clock.time })
      expect(await store.card('far')).toMatchObject({ due: far })
      expect(await store.card('far')).not.toHaveProperty('trouble')
    })

    it('B-CLOCK-3: so is what a worker held that was lost after its clock was right again', async () => {
      const { store, clock } = await make()
      clock.time += HOUR_MS
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')], { card: card('s', { status: 'rescheduling', due: clock.time + 400 }) })
      clock.time -= HOUR_MS
      await store.extend('w1', TTL)
      expect((await store.due(9)).sessions).toEqual([])
      clock.advance(TTL)
      expect((await store.due(9)).sessions).toEqual(['s'])
    })

    it('B-CLOCK-3: so is what a worker puts off whose clock was ahead when it began, and is right now', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      const ahead = clock.time + HOUR_MS
      expect((await store.due(9)).sessions).toEqual([])
      const put = { card: card('s', { status: 'rescheduling', due: ahead + 400 }), release: true } as const
      await store.commit([{ ...stamped(owner, ahead), ...put }])
      expect((await store.due(9)).sessions).toEqual(['s'])
    })

    it('B-CLOCK-4: an event written when the clock is behind its log says what the clock said', async () => {
      const { store, clock } = await make()
      clock.time += YEARS_MS
      const owner = await begin(store, 's')
      const ahead = clock.time
      clock.time -= YEARS_MS
      await admit(store, 's', message('m'))
      expect((await store.read('s', 1)).events).toMatchObject([{ at: ahead, wall: clock.time, epoch: 0 }])
      // The same again is the same, whatever the clock says now.
      clock.time += 5
      expect(await admit(store, 's', message('m'))).toMatchObject({ duplicate: true })
      expect(await store.card('s')).toMatchObject({ due: clock.time - 5 })
      // Work that is open is found now, and not when its log's time has come.
      const newer = await claim(store, 's', 'w2')
      expect(newer.epoch).toBe(owner.epoch + 1)
      const write = { ...stamped(newer, ahead), card: card('s', { status: 'running', due: ahead }) }
      await store.commit([write])
      clock.advance(TTL)
      expect((await store.due(9)).sessions).toEqual(['s'])
    })
  })
}

export function describeClockRemovals(make: MakeFixture): void {
  describe('removal after a wrong clock', () => {
    it('B-CLOCK-1: a session whose lease lies ahead can be removed', async () => {
      const fixture = await make()
      await lostAhead(fixture, YEARS_MS)
      expect(await outcome(fixture.store.remove('s', 'ann'))).toBe('ok')
    })

    it('B-CLOCK-1: a session whose lease is as long as it was asked for cannot be removed', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      await store.claim('s', 'w1', YEARS_MS)
      await store.extend('w1', TTL)
      clock.time -= 50_000
      expect(await outcome(store.remove('s', 'ann'))).toBe('session_busy')
    })
  })
}

function stamped({ session, epoch, seq }: Awaited<ReturnType<typeof begin>>, at: number) {
  const events = [{ ...note('x'), seq: seq + 1, at, epoch }]
  return { session, lane: 'owner', epoch, expectedSeq: seq, events } as const
}
