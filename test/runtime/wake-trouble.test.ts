// Sessions whose attempts fail: how long they are left alone, when for good, what is seen of it, and what ends it.
import { describe, expect, it } from 'vitest'
import { Fault, type Harness, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { makeFile, meddle, open } from '../stores/folder.ts'
import { make, STORAGES, storeOf, tool, typesIn, calls } from './scene.ts'
import { asleep, poisoned, quiet, say } from './wake-stage.ts'
import { until } from '../until.ts'
import { storeWith, withoutTake } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'
import { lookAt } from '../../src/worker.ts'

const DONE = scripted(() => 'done')

/** One session with a message in a store where reading it fails, and a worker that is told when to look. */
async function scene(storage: 'memory' | 'sqlite', worker: { attemptsMax?: number } = {}) {
  const clock = new StillClock()
  const sick = new Set(['bad'])
  const { store, tries } = poisoned(storeOf(storage, clock), sick)
  await asleep(store, 'bad', [])
  await say(store, 'bad', 'hello')
  /** A new worker each time: the store alone remembers. */
  const work = async (): Promise<void> => {
    const harness = make(DONE, { store, system: { clock }, worker })
    await harness.work({ idleMs: 0 })
    await harness.close()
  }
  return { clock, store, sick, tries, work, trouble: async () => (await store.card('bad'))?.trouble }
}

describe.each(STORAGES)('a session whose attempts throw, on %s', (storage) => {
  it('B-WAKE-20: is left alone for 2 s, doubling to 30 s, and the count outlives the workers (S4-18)', async () => {
    const { clock, store, work, tries, trouble } = await scene(storage, { attemptsMax: 99 })
    for (const [i, seconds] of [2, 4, 8, 16, 30, 30].entries()) {
      await work()
      expect(tries).toHaveLength(i + 1)
      expect(await trouble()).toMatchObject({ attempts: i + 1, until: clock.time + seconds * 1_000 })
      expect((await store.due(0)).next).toBe(clock.time + seconds * 1_000)
      clock.advance(seconds * 1_000 - 1)
      await work()
      expect(tries).toHaveLength(i + 1)
      clock.advance(1)
    }
  })

  it('B-WAKE-21: is quarantined after five: due no more, and its card says so, with the reason (F29)', async () => {
    const { clock, store, work, tries, trouble } = await scene(storage)
    for (let i = 0; i < 9; i++) {
      await work()
      clock.advance(60_000)
    }
    expect(tries).toHaveLength(5)
    expect(await trouble()).toEqual({
      attempts: 5,
      reason: expect.stringContaining('the sky is blue') as string,
      until: null,
    })
    expect((await store.due(0)).next).toBeNull()
    const harness = make(DONE, { store, system: { clock } })
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toMatchObject([
      { session: 'bad', trouble: { attempts: 5, until: null } },
    ])
  })

  it('B-WAKE-22: is tried again when something is sent to it, and when it is woken by name', async () => {
    const { clock, store, sick, work, tries, trouble } = await scene(storage, { attemptsMax: 1 })
    await work()
    expect(await trouble()).toMatchObject({ until: null })
    const harness = make(DONE, { store, system: { clock } })
    await expect(harness.work({ session: 'bad' })).rejects.toThrow('the sky is blue')
    expect(await trouble()).toMatchObject({ attempts: 2 })
    await say(store, 'bad', 'are you there?')
    expect(await trouble()).toBeUndefined()
    await work()
    expect(await trouble()).toMatchObject({ attempts: 1, until: null })
    expect(tries).toHaveLength(3)
    sick.clear()
    // The cause of the trouble is fixed.
    expect(await harness.work({ session: 'bad' })).toMatchObject({ type: 'rested' })
    expect(await trouble()).toBeUndefined()
    expect(await store.card('bad')).toMatchObject({ outcome: 'completed' })
  })

  it('B-WAKE-23: has its streak ended by an attempt that comes to its rest', async () => {
    const { clock, store, sick, work, trouble } = await scene(storage)
    await work()
    clock.advance(60_000)
    await work()
    expect(await trouble()).toMatchObject({ attempts: 2 })
    sick.clear()
    clock.advance(60_000)
    await work()
    expect(await store.card('bad')).toMatchObject({ outcome: 'completed', due: null })
    expect(await trouble()).toBeUndefined()
    sick.add('bad')
    await say(store, 'bad', 'again')
    await work()
    expect(await trouble()).toMatchObject({ attempts: 1 })
  })
})

describe('trouble', () => {
  it('B-WAKE-24: after something was written is a streak of its own, and still no reason to try again at once', async () => {
    const clock = new StillClock()
    const inner = memory({ clock })
    let asked = 0
    // What the model says can never be written.
    const store = storeWith(inner, {
      commit: (writes) => {
        const says = writes.some((write) => write.events.some(({ type }) => type === 'agent.message'))
        return says ? Promise.reject(new TypeError('no such page')) : inner.commit(writes)
      },
    })
    const model = scripted(() => {
      asked += 1
      return 'done'
    })
    await asleep(store, 's', [])
    await say(store, 's', 'hello')
    for (let i = 0; i < 3; i++) {
      const harness = make(model, { store, system: { clock } })
      await harness.work({ idleMs: 0 })
      await harness.close()
      expect(await store.card('s')).toMatchObject({ trouble: { attempts: 1, until: clock.time + 2_000 } })
      expect(asked).toBe(i + 1)
      clock.advance(2_000)
    }
  })

  it.each(['disk_full', 'store_busy', 'io_error'] as const)(
    'B-WAKE-25: of the store (%s) is no trouble of a session: none is quarantined for it, and nothing is tried in a hot loop',
    async (code) => {
      const clock = new StillClock()
      const inner = memory({ clock })
      let [broken, claims] = [true, 0]
      const store = storeWith(withoutTake(inner), {
        claim: (session, worker, ttlMs) => {
          claims += 1
          return broken ? Promise.reject(new Fault(code, 'Not now.')) : inner.claim(session, worker, ttlMs)
        },
      })
      await asleep(store, 's', [])
      await say(store, 's', 'hello')
      const harness = make(DONE, { store, system: { clock }, worker: { attemptsMax: 1 } })
      harness.work().catch(() => {})
      const pass = async (seconds: number): Promise<void> => {
        for (let second = 0; second < seconds; second++) {
          await quiet()
          clock.advance(1_000)
        }
        await quiet()
      }
      await pass(62)
      // At 0, 2, 6, 14, 30 and 60 seconds, or a second later.
      expect(claims).toBeGreaterThanOrEqual(4)
      expect(claims).toBeLessThanOrEqual(6)
      expect(await store.card('s')).not.toHaveProperty('trouble')
      broken = false
      await pass(32)
      expect(await store.card('s')).toMatchObject({ outcome: 'completed' })
    },
  )

  it('B-WAKE-28: of earlier attempts makes a session a suspect: it is driven while no other suspect is, and others beside it', async () => {
    const clock = new StillClock()
    const store = memory({ clock })
    const suspects = ['s0', 's1', 's2', 's3']
    for (const id of [...suspects, 'h0', 'h1', 'h2']) {
      await asleep(store, id, [])
      await say(store, id, 'hello')
    }
    // Their worker was lost, and it is unknown which of the sessions killed it.
    for (const id of suspects) await store.claim(id, 'lost', 1_000)
    clock.advance(1_000)
    const now = new Set<string>()
    const seen: string[][] = []
    const model = scripted(async ({ session }) => {
      now.add(session)
      seen.push([...now].toSorted())
      await quiet()
      now.delete(session)
      return 'done'
    })
    await make(model, { store, system: { clock } }).work({ idleMs: 0 })
    expect(Math.max(...seen.map((together) => together.filter((id) => suspects.includes(id)).length))).toBe(1)
    expect(Math.max(...seen.map((together) => together.length))).toBeGreaterThanOrEqual(3)
    for (const card of await store.list({ limit: 9 })) {
      expect(card).toMatchObject({ outcome: 'completed' })
      expect(card).not.toHaveProperty('trouble')
    }
  })

  it('B-WAKE-26: on a card holds no secret', async () => {
    const clock = new StillClock()
    const inner = memory({ clock })
    const read: CompleteStore['read'] = () => Promise.reject(new Error('cannot open with hunter2-hunter2'))
    const store = storeWith(inner, { read })
    await asleep(store, 's', [])
    await say(store, 's', 'hello')
    await make(DONE, { store, system: { clock }, secrets: { PASSWORD: 'hunter2-hunter2' } }).work({ idleMs: 0 })
    const { trouble } = (await store.card('s')) ?? {}
    expect(trouble?.reason).toBe('Error: cannot open with ⟦secret:PASSWORD⟧')
  })

  it('B-WAKE-27: of a damaged log is seen by every worker, and the others of its file go on', async () => {
    const file = makeFile()
    const clock = new StillClock()
    const writer = open(file, { clock })
    for (const id of ['bad', 'good']) {
      await asleep(writer, id, [])
      await say(writer, id, 'hello')
    }
    await writer.close()
    meddle(file, (db) => {
      db.exec('DROP TRIGGER events_keep')
      db.exec(`UPDATE events SET body = replace(body, 'default', 'defunct') WHERE pos = 1`)
    })
    for (let i = 1; i <= 6; i++) {
      const store = open(file, { clock })
      const harness = make(DONE, { store, system: { clock } })
      await harness.work({ idleMs: 0 })
      await harness.close()
      expect(await store.card('bad')).toMatchObject({
        trouble: { attempts: Math.min(i, 5), reason: expect.stringContaining('damaged') as string },
      })
      await store.close()
      clock.advance(60_000)
    }
    const store = open(file, { clock })
    expect(await store.card('bad')).toMatchObject({ due: null, trouble: { until: null } })
    expect(await store.card('good')).toMatchObject({ outcome: 'completed' })
  })
})

describe('a heartbeat', () => {
  it.each(['throws', 'hangs'] as const)(
    'B-WAKE-30: that %s ends what runs when the lease ends, and nothing of it is written (S4-17, AC-111, F25)',
    async (how) => {
      const clock = new StillClock()
      const inner = memory({ clock })
      let commits = 0
      const store = storeWith(inner, {
        extend: () => (how === 'throws' ? Promise.reject(new Fault('store_busy', 'Not now.')) : new Promise(() => {})),
        commit: (writes) => {
          commits += 1
          return inner.commit(writes)
        },
      })
      const seen: AbortSignal[] = []
      const hold = tool('hold', {
        effect: 'once',
        execute: (_args, { signal }) => {
          seen.push(signal)
          return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
        },
      })
      const harness = make([calls('hold')], {
        store,
        system: { clock },
        tools: [hold],
        worker: { leaseMs: 3_000, graceMs: 50 },
      })
      await asleep(store, 's', [])
      await say(store, 's', 'hello')
      const looked = harness.work({ session: 's' })
      await until(() => expect(seen).toHaveLength(1))
      const before = commits
      for (let i = 0; i < 4; i++) {
        clock.advance(1_000)
        await quiet()
      }
      expect(await looked).toEqual({ type: 'lost' })
      expect(seen[0]?.aborted).toBe(true)
      expect(commits).toBe(before)
      expect((await typesIn(harness.session('s'))).at(-1)).toBe('agent.tool_use')
      // The lease has ended, so the session is due for any worker.
      expect((await inner.due(9)).sessions).toEqual(['s'])
    },
  )
})

it('B-WAKE-32: is driven for a caller that asks while a look gives it back because its last worker was lost', async () => {
  const store = memory()
  await asleep(store, 's', [])
  await say(store, 's', 'hello')
  await store.claim('s', 'lost', 1)
  const asked: Promise<unknown>[] = []
  const release: CompleteStore['release'] = async (...args) => {
    asked.push(harness.work({ session: 's' }))
    return store.release(...args)
  }
  const harness: Harness = make(DONE, { store: storeWith(store, { release }) })
  await new Promise((resolve) => void setTimeout(resolve, 5))
  await lookAt(harness, 's', false)
  expect(asked).toHaveLength(1)
  expect(await asked[0]).toMatchObject({ type: 'rested', waiting: 'input' })
  expect(await store.card('s')).toMatchObject({ outcome: 'completed' })
})

it('B-WAKE-38: a session that waits until another with lost attempts rests is driven when something is sent to it', async () => {
  const store = memory()
  const suspects = ['s0', 's1', 's2']
  for (const id of suspects) {
    await asleep(store, id, [])
    await say(store, id, 'hello')
    await store.claim(id, 'lost', 1)
  }
  await new Promise((resolve) => void setTimeout(resolve, 5))
  const asked: string[] = []
  const over = new AbortController()
  const model = scripted(async ({ session }) => {
    asked.push(session)
    // The first of them takes longer than anybody would wait.
    if (asked.length === 1) await new Promise((resolve) => over.signal.addEventListener('abort', resolve))
    return 'done'
  })
  const harness = make(model, { store })
  const working = harness.work()
  await until(async () => expect(asked).toHaveLength(1))
  await new Promise((resolve) => void setTimeout(resolve, 300))
  expect(asked).toHaveLength(1)
  const [other = ''] = suspects.filter((id) => id !== asked[0])
  await say(store, other, 'are you there?')
  await until(async () => expect(asked).toContain(other))
  expect(asked).toHaveLength(2)
  over.abort()
  await harness.close()
  await working
})
