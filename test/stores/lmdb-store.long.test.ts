// The store of examples/lmdb-store keeps the contract of the core. Its own promises: what was written is there for the
// next process, a second process is refused, and the quickstart runs on it.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { lmdb } from '../../examples/lmdb-store/lmdb-store.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { admit, begin, claim, create, message, note, outcome, StillClock, TTL, write } from '../contract/fixture.ts'
import { describeStore } from '../contract/store.ts'
import { makeFolder } from './folder.ts'

const HELLO = fileURLToPath(new URL('../../.build/examples/lmdb-store/hello.js', import.meta.url))

/** Closed after the test. */
function opened(folder: string, clock: StillClock): CompleteStore {
  const store = completeStore(lmdb(folder, { clock }), { clock, steady: clock })
  onTestFinished(() => store.close())
  return store
}

const hello = (folder: string) => promisify(execFile)(process.execPath, [HELLO, folder], { timeout: 20_000 })

describeStore('lmdb', async () => {
  const clock = new StillClock()
  return { clock, store: opened(makeFolder(), clock) }
}, [])

describe('a store of LMDB', () => {
  it('B-CORE-10: what was written is there when it is opened again, and a lease of before has ended', async () => {
    const [folder, clock] = [makeFolder(), new StillClock()]
    const before = opened(folder, clock)
    const owner = await begin(before, 's')
    await create(before, 't', { due: clock.time })
    await write(before, owner, [note('x')], { charges: [{ type: 'hold', key: 'k', accounts: ['a'], amount: 5 }] })
    await admit(before, 's', message('m'))
    const log = await before.read('s', 0)
    expect((await before.due(9)).sessions).toEqual(['t'])
    await before.close()
    const after = opened(folder, clock)
    expect(await after.read('s', 0)).toEqual(log)
    expect(await after.account('a')).toMatchObject({ held: 5 })
    expect((await after.due(9)).sessions).toEqual(['s', 't'])
    expect(await after.claim('s', 'w2', TTL)).toMatchObject({ epoch: owner.epoch + 1, seq: 3 })
    expect(await outcome(write(after, { ...owner, seq: 3 }, [note('late')]))).toBe('lease_lost')
    await create(after, 'u')
    expect((await after.list({ limit: 9 })).map((found) => found.session)).toEqual(['s', 't', 'u'])
  })

  it('B-CORE-10: an attempt that was lost with its process counts as one that failed', async () => {
    const [folder, clock] = [makeFolder(), new StillClock()]
    const before = opened(folder, clock)
    await create(before, 's', { due: clock.time })
    await claim(before, 's', 'w1')
    await before.close()
    const after = opened(folder, clock)
    expect(await after.claim('s', 'w2', TTL)).toMatchObject({ failed: 1 })
    expect((await after.card('s'))?.trouble?.reason).toContain('lost')
  })

  it('B-CORE-11: a second process, or a second store of this one, is refused with store_busy, and not when the first has ended', async () => {
    const folder = join(makeFolder(), 'sessions')
    const store = opened(folder, new StillClock())
    await store.open()
    expect(await outcome(lmdb(folder).open())).toBe('store_busy')
    await expect(hello(folder)).rejects.toThrow(`Process ${process.pid} has the store in ${folder} open`)
    await store.close()
    expect((await hello(folder)).stdout).toContain('completed: It is 4 °C')
  })

  it('B-CORE-12: the quickstart runs on it, and each start finds the sessions of before', async () => {
    const folder = join(makeFolder(), 'sessions')
    await hello(folder)
    const { stdout } = await hello(folder)
    expect(stdout).toContain('run.settled')
    expect(stdout.match(/ {2}\d+ events {2}What should I wear in Oslo\?/g)).toHaveLength(2)
  })
})
