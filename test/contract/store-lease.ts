// The contract of a Store: claims and epochs. With several workers: leases that end, heartbeats, and the fencing of a
// worker that lost its lease.
import { describe, expect, it } from 'vitest'
import {
  admit,
  begin,
  card,
  claim,
  create,
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

export function describeClaims(make: MakeFixture): void {
  describe('claims', () => {
    it('B-STORE-20: each claim of a session that was released has a higher epoch', async () => {
      const { store } = await make()
      await create(store, 's')
      const epochs: number[] = []
      for (const worker of ['w1', 'w2', 'w1']) {
        const { epoch } = await claim(store, 's', worker)
        epochs.push(epoch)
        await store.release('s', epoch)
      }
      expect(epochs).toEqual([1, 2, 3])
    })

    it('B-STORE-21: while one worker has the lease no other gets it, and a session that is not there cannot be claimed', async () => {
      const { store } = await make()
      await create(store, 's')
      const first = await store.claim('s', 'w1', TTL)
      expect(first).toMatchObject({ epoch: 1, seq: 1, failed: 0 })
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      expect(await store.extend('w1', TTL)).toEqual(new Map([['s', 1]]))
      expect(await store.extend('w2', TTL)).toEqual(new Map())
      await store.release('s', 1)
      expect(await store.extend('w1', TTL)).toEqual(new Map())
      expect(await outcome(store.claim('none', 'w2', TTL))).toBe('session_missing')
    })

    it('B-STORE-23: a worker that gave its lease back cannot commit, and is told so before any conflict', async () => {
      const { store } = await make()
      const former = await begin(store, 's')
      await store.release('s', former.epoch)
      await write(store, await claim(store, 's', 'w2'), [note('mine')])
      expect(await outcome(write(store, former, [note('late')]))).toBe('lease_lost')
      expect(await outcome(write(store, { ...former, seq: 2 }, [note('late')]))).toBe('lease_lost')
      expect(await seqs(store, 's')).toEqual([1, 2])
    })

    it('B-STORE-21: of many workers that claim at once, one gets the lease', async () => {
      const { store } = await make()
      await create(store, 's')
      const claims = await Promise.all(['a', 'b', 'c', 'd'].map((worker) => store.claim('s', worker, TTL)))
      expect(claims.filter(Boolean)).toHaveLength(1)
    })

    it('B-STORE-22: a second claim by the holder fences its own earlier attempt', async () => {
      const { store } = await make()
      const older = await begin(store, 's')
      const newer = await claim(store, 's', 'w1')
      expect(newer.epoch).toBe(older.epoch + 1)
      expect(await outcome(write(store, older, [note('x')]))).toBe('lease_lost')
      expect(await outcome(write(store, newer, [note('x')]))).toBe('ok')
    })

    it('B-STORE-23: without a lease there is no owner write', async () => {
      const { store } = await make()
      await create(store, 's')
      const nobody = { session: 's', worker: 'w', epoch: 0, seq: 1 }
      expect(await outcome(write(store, nobody, [note('x')]))).toBe('lease_lost')
      expect(await outcome(write(store, { ...nobody, epoch: 1 }, [note('x')]))).toBe('lease_lost')
      expect(await outcome(write(store, { ...nobody, session: 'none', epoch: 1 }, [note('x')]))).toBe('session_missing')
    })

    it('B-STORE-25: a released lease is free at once, and its epoch is dead', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await store.release('s', owner.epoch + 1)
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      await store.release('s', owner.epoch)
      await store.release('s', owner.epoch)
      await store.release('none', 1)
      expect(await outcome(write(store, owner, [note('x')]))).toBe('lease_lost')
      expect(await store.claim('s', 'w2', TTL)).toMatchObject({ epoch: owner.epoch + 1 })
    })

    it('B-STORE-25: a write can release the lease in the same transaction', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await write(store, owner, [note('last')], { release: true, card: card('s', { due: 5 }) })
      expect(await outcome(write(store, owner, [note('x')]))).toBe('lease_lost')
      expect((await store.due(9)).sessions).toEqual(['s'])
      expect(await outcome(claim(store, 's', 'w2'))).toBe('ok')
    })

    it('B-STORE-25: a refused write releases nothing', async () => {
      const { store } = await make()
      const owner = await begin(store, 's')
      await admit(store, 's', message('m'))
      expect(await outcome(store.commit([ownerWrite(store, owner, [note('x')], { release: true })]))).toBe('conflict')
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
    })

    it('B-STORE-28: names that are empty or no text are refused', async () => {
      const { store } = await make()
      await create(store, 's')
      for (const bad of ['', 'a\0b', '\ud800', 'x'.repeat(513)]) {
        expect(await outcome(create(store, bad))).toBe('invalid_input')
        expect(await outcome(admit(store, 's', message(bad)))).toBe('invalid_input')
        expect(await outcome(admit(store, bad, message('m')))).toBe('invalid_input')
        expect(await outcome(store.claim('s', bad, TTL))).toBe('invalid_input')
      }
      await create(store, '__proto__')
      await create(store, 'ü/🦙 %_')
      expect(await seqs(store, '__proto__')).toEqual([1])
      expect(await seqs(store, 'ü/🦙 %_')).toEqual([1])
    })
  })
}

export function describeLeases(make: MakeFixture): void {
  describe('leases', () => {
    it('B-STORE-20: each claim has a higher epoch than all before it', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      const epochs: number[] = []
      for (const worker of ['w1', 'w2', 'w1', 'w3']) {
        const { epoch } = await claim(store, 's', worker)
        epochs.push(epoch)
        if (worker === 'w2') await store.release('s', epoch)
        else clock.advance(TTL + 1)
      }
      expect(epochs).toEqual([1, 2, 3, 4])
    })

    it('B-STORE-170: what a worker holds for a session counts only while it has the lease; without one anybody may write', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      const { epoch } = await claim(store, 's', 'w1')
      const hold = (key: string, fence: { readonly epoch?: number }) =>
        store.commit([
          {
            session: 's',
            lane: 'inbox',
            events: [],
            ...fence,
            charges: [{ type: 'hold', key, accounts: ['a'], amount: 5 }],
          },
        ])
      await hold('k1', { epoch })
      clock.advance(TTL + 1)
      await claim(store, 's', 'w2')
      expect(await outcome(hold('k2', { epoch }))).toBe('lease_lost')
      expect(await store.account('a')).toMatchObject({ held: 5 })
      await hold('k3', {})
      expect(await store.account('a')).toMatchObject({ held: 10 })
    })

    it('B-STORE-21: while a lease lives no other worker gets it; when it has expired, any worker does', async () => {
      const { store, clock } = await make()
      await create(store, 's')
      const first = await store.claim('s', 'w1', TTL)
      expect(first).toEqual({ epoch: 1, seq: 1, until: clock.time + TTL, failed: 0 })
      clock.advance(TTL - 1)
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      clock.advance(1)
      expect(await store.claim('s', 'w2', TTL)).toMatchObject({ epoch: 2, until: clock.time + TTL })
      expect(await outcome(store.claim('none', 'w2', TTL))).toBe('session_missing')
    })

    it('B-STORE-23: a worker that lost its lease cannot commit, and is told so before any conflict', async () => {
      const { store, clock } = await make()
      const zombie = await begin(store, 's')
      clock.advance(TTL + 1)
      const owner = await claim(store, 's', 'w2')
      await write(store, owner, [note('mine')])
      expect(await outcome(write(store, zombie, [note('late')]))).toBe('lease_lost')
      await store.release('s', owner.epoch)
      expect(await outcome(write(store, { ...zombie, seq: 2 }, [note('late')]))).toBe('lease_lost')
      expect(await seqs(store, 's')).toEqual([1, 2])
    })

    it('B-STORE-24: an expired lease that no other worker took still commits, which renews it', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      clock.advance(TTL * 3)
      expect(await outcome(write(store, owner, [note('x')]))).toBe('ok')
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
    })

    it('B-STORE-24: writing as the owner extends the lease', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      for (let i = 0; i < 8; i++) {
        clock.advance(TTL / 2)
        await write(store, owner, [note(`${i}`)])
      }
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      clock.advance(TTL + 1)
      expect(await store.claim('s', 'w2', TTL)).not.toBeNull()
    })

    it('B-STORE-26: one heartbeat keeps all sessions of a worker, and names those it still holds', async () => {
      const { store, clock } = await make()
      const owners = await Promise.all(['a', 'b', 'c', 'd'].map((session) => begin(store, session)))
      const [a, b] = owners.map((owner) => owner.epoch)
      await store.release('d', owners[3]?.epoch ?? 0)
      clock.advance(TTL - 1)
      expect(await store.extend('w1', TTL)).toEqual(
        new Map([
          ['a', a],
          ['b', b],
          ['c', owners[2]?.epoch],
        ]),
      )
      clock.advance(TTL - 1)
      expect(await store.claim('a', 'w2', TTL)).toBeNull()
      clock.advance(2)
      await claim(store, 'c', 'w2')
      expect(await store.extend('w1', TTL)).toEqual(
        new Map([
          ['a', a],
          ['b', b],
        ]),
      )
      expect(await store.extend('unknown', TTL)).toEqual(new Map())
    })

    it('B-STORE-29: the lease of a worker whose process is gone can be ended: its sessions are due and free, with a higher epoch', async () => {
      const { store, clock } = await make()
      const process = { host: 'h', pid: 7, started: 100 }
      for (const id of ['s', 't']) await create(store, id, { due: clock.time, status: 'running' })
      const first = await store.claim('s', 'w1', TTL, process)
      await store.claim('t', 'w2', TTL, { ...process, pid: 8 })
      expect((await store.holders('h')).toSorted((a, b) => a.process.pid - b.process.pid)).toEqual([
        { worker: 'w1', process },
        { worker: 'w2', process: { ...process, pid: 8 } },
      ])
      expect(await store.holders('other')).toEqual([])
      expect([(await store.due(9)).sessions, (await store.due(0)).next]).toEqual([[], clock.time + TTL])
      let told = 0
      store.watchDue(() => void (told += 1))
      expect(await store.expire('w1', process)).toBe(true)
      expect(told).toBe(1)
      expect(await store.holders('h')).toEqual([{ worker: 'w2', process: { ...process, pid: 8 } }])
      expect((await store.due(9)).sessions).toEqual(['s'])
      expect((await store.due(0)).next).toBeLessThanOrEqual(clock.time)
      const second = await store.claim('s', 'w3', TTL)
      expect(second?.epoch).toBe((first?.epoch ?? 0) + 1)
      const late = { session: 's', worker: 'w1', epoch: first?.epoch ?? 0, seq: 1 }
      expect(await outcome(write(store, late, [note('late')]))).toBe('lease_lost')
      expect(await store.claim('t', 'w3', TTL)).toBeNull()
    })

    it('B-STORE-29: a worker that is another process by now keeps its lease, and an unknown one is no matter', async () => {
      const { store } = await make()
      const process = { host: 'h', pid: 7, started: 100 }
      await create(store, 's')
      await store.claim('s', 'w1', TTL, process)
      for (const other of [{ host: 'g' }, { pid: 8 }, { started: 101 }])
        expect(await store.expire('w1', { ...process, ...other })).toBe(false)
      expect(await store.expire('none', process)).toBe(false)
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      await begin(store, 'silent', 'w4')
      expect(await store.expire('w4', process)).toBe(false)
    })

    it('B-STORE-29: a worker that lives after all goes on where no other worker claimed, and stays the same process', async () => {
      const { store } = await make()
      const process = { host: 'h', pid: 7, started: 100 }
      for (const id of ['taken', 'kept', 'beaten']) await create(store, id)
      const claims = new Map<string, number>()
      for (const id of ['taken', 'kept', 'beaten'])
        claims.set(id, (await store.claim(id, 'w1', TTL, process))?.epoch ?? 0)
      expect(await store.expire('w1', process)).toBe(true)
      await claim(store, 'taken', 'w2')
      const kept = { session: 'kept', worker: 'w1', epoch: claims.get('kept') ?? 0, seq: 1 }
      expect(await outcome(write(store, kept, [note('x')]))).toBe('ok')
      expect(await store.claim('kept', 'w2', TTL)).toBeNull()
      expect([...(await store.extend('w1', TTL)).keys()].toSorted()).toEqual(['beaten', 'kept'])
      expect(await store.holders('h')).toEqual([{ worker: 'w1', process }])
    })
  })
}

export function describeAddresses(make: MakeFixture): void {
  describe('addresses', () => {
    it('B-CLOCK-1: a worker whose lease lies ahead has no address', async () => {
      const { store, clock } = await make()
      clock.time += 10 * 365 * 24 * 3_600_000
      await begin(store, 's')
      await store.announce('w1', 'socket', TTL)
      expect(await store.address('s')).toBe('socket')
      clock.time = START
      expect(await store.address('s')).toBeNull()
    })

    it('B-STORE-27: a worker is reached at the address it announced, while it holds the session and lives', async () => {
      const { store, clock } = await make()
      const owner = await begin(store, 's')
      expect(await store.address('s')).toBeNull()
      await store.announce('w1', '/run/w1.sock', TTL)
      expect(await store.address('s')).toBe('/run/w1.sock')
      await store.extend('w1', TTL)
      expect(await store.address('s')).toBe('/run/w1.sock')
      clock.advance(TTL)
      expect(await store.address('s')).toBeNull()
      await store.extend('w1', TTL)
      await store.release('s', owner.epoch)
      expect(await store.address('s')).toBeNull()
      expect(await store.address('none')).toBeNull()
    })
  })
}
