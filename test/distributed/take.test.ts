// Finding and claiming what is due in one step, and only what a worker has the agents for.
import { describe, expect, it } from 'vitest'
import { memory, scripted, type CompleteStore } from '../../src/index.ts'
import { storeWith, withoutTake } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'
import { make, moment, STORAGES, storeOf } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { asleep, quiet, say } from '../runtime/wake-stage.ts'
import { DueLoop, takeDueSessions } from '../../src/worker.ts'

const DONE = scripted(() => 'done')
const NO_CLAIMS = { asked: 0, vain: 0 }
const EDITOR = { editor: { description: 'edits', model: DONE } }

/** A store that counts the claims it is asked for, in whichever way. */
function counted(inner: CompleteStore): { readonly store: CompleteStore; readonly claimed: string[] } {
  const claimed: string[] = []
  const claim: CompleteStore['claim'] = (session, ...rest) => {
    claimed.push(session)
    return inner.claim(session, ...rest)
  }
  const take: NonNullable<CompleteStore['take']> = async (...wanted) => {
    const taken = (await inner.take?.(...wanted)) ?? new Map()
    claimed.push(...taken.keys())
    return taken
  }
  return { store: storeWith(inner, inner.take ? { claim, take } : { claim }), claimed }
}

async function due(store: CompleteStore, id: string): Promise<void> {
  await asleep(store, id, [])
  await say(store, id, 'hello')
}

type Chooser = {
  readonly width: number
  readonly idleMs?: number
  readonly cannot?: (session: string) => boolean
  /** As long as a session that failed before is looked at. */
  readonly hangs?: Promise<void>
}

/** A loop that is told what is due and takes some of it. The session `bad` fails. */
function chooser(
  store: CompleteStore,
  { width, idleMs = Number.POSITIVE_INFINITY, cannot = () => false, hangs = Promise.resolve() }: Chooser,
) {
  const [named, looked]: [(readonly string[])[], string[]] = [[], []]
  let driving = 0
  const loop = new DueLoop({
    store,
    width,
    idleMs,
    driving: () => driving,
    chooses: true,
    take: async ({ among = [], ...wanted }) => {
      named.push(among)
      const able = among.filter((session) => !cannot(session))
      const taken = (await store.take?.('w', 60_000, { ...wanted, among: able })) ?? new Map()
      return new Map([...among.filter(cannot).map((session) => [session, null] as const), ...taken])
    },
    look: async (session, alone, claim) => {
      driving += 1
      looked.push(session)
      if (alone) await hangs
      if (session === 'bad') await store.release(session, claim?.epoch ?? 0)
      driving -= 1
      return session === 'bad' ? 'failed' : 'seen'
    },
    report: (error) => {
      throw error
    },
  })
  return { loop, looked, named }
}

describe.each([...STORAGES, 'memory without take'] as const)('a worker on %s', (storage) => {
  const open = (): CompleteStore => (storage === 'memory without take' ? withoutTake(memory()) : storeOf(storage))

  it('B-DIST-4: never claims a session of an agent that it does not have', async () => {
    const { store, claimed } = counted(open())
    await asleep(store, 'theirs', [], { agent: 'editor' })
    await say(store, 'theirs', 'hello')
    await asleep(store, 'ours', [])
    await say(store, 'ours', 'hello')
    expect(await make(DONE, { store }).work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 1 })
    expect(claimed).toEqual(['ours'])
    expect(await store.card('theirs')).toMatchObject({ outcome: null })
    const both = make(DONE, { store, subagents: EDITOR })
    expect(await both.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 1 })
    expect(await store.card('theirs')).toMatchObject({ outcome: 'completed' })
  })

  it('B-DIST-5: works for the agents that are named; a name that the harness does not have is refused, and so is none', async () => {
    const store = open()
    await asleep(store, 'theirs', [], { agent: 'editor' })
    await say(store, 'theirs', 'hello')
    await asleep(store, 'ours', [])
    await say(store, 'ours', 'hello')
    const harness = make(DONE, { store, subagents: EDITOR })
    expect(await harness.work({ idleMs: 0, agents: ['editor'] })).toEqual({ type: 'idle', looks: 1 })
    expect(await store.card('theirs')).toMatchObject({ outcome: 'completed' })
    expect(await store.card('ours')).toMatchObject({ outcome: null })
    const refused = 'This harness has no agent "editr". "agents" may name: default, subagent, editor.'
    await expect(harness.work({ agents: ['editor', 'editr'] })).rejects.toThrow(refused)
    await expect(harness.work({ agents: [] })).rejects.toThrow('The option "agents" of work is empty.')
    await expect(harness.work({ agents: 'editor' as never })).rejects.toThrow('"agents" of work must be')
  })
})

describe('a worker that takes', () => {
  it('B-DIST-6: eight workers and 2,000 due sessions: each is driven once, and no claim is made in vain', async () => {
    const store = memory()
    for (let i = 0; i < 2_000; i++) {
      await asleep(store, `s${i}`, [])
      await say(store, `s${i}`, 'hello')
    }
    const workers = Array.from({ length: 8 }, () => make(DONE, { store }))
    const worked = await Promise.all(workers.map((each) => each.work({ idleMs: 0, width: 16 })))
    expect(worked.reduce((sum, { looks }) => sum + looks, 0)).toBe(2_000)
    const claims = await Promise.all(workers.map(async (each) => (await each.health()).claims ?? NO_CLAIMS))
    expect(claims.reduce((sum, { vain }) => sum + vain, 0)).toBe(0)
    expect(claims.reduce((sum, { asked }) => sum + asked, 0)).toBe(2_000)
    // Without it the same workers meet at the same sessions.
    const strangers = [1, 2].map(() => make(DONE, { store: withoutTake(store) }))
    for (let i = 0; i < 20; i++) await say(store, `s${i}`, 'again')
    await Promise.all(strangers.map((each) => each.work({ idleMs: 0 })))
    const [one, two] = await Promise.all(strangers.map(async (each) => (await each.health()).claims))
    expect((one?.asked ?? 0) + (two?.asked ?? 0) - (one?.vain ?? 0) - (two?.vain ?? 0)).toBe(20)
    expect((one?.vain ?? 0) + (two?.vain ?? 0)).toBeGreaterThan(0)
  })

  it('B-DIST-7: gives back what it took when it was stopped meanwhile', async () => {
    const inner = memory()
    const [asked, answer] = [moment(), moment()]
    const store = storeWith(inner, {
      take: async (...wanted) => {
        const taken = (await inner.take?.(...wanted)) ?? new Map()
        asked.come()
        await answer.here
        return taken
      },
    })
    await asleep(store, 's', [])
    await say(store, 's', 'hello')
    const harness = make(DONE, { store })
    const stop = new AbortController()
    const working = harness.work({ signal: stop.signal })
    await asked.here
    expect((await store.due(9)).sessions).toEqual([])
    stop.abort()
    answer.come()
    expect(await working).toEqual({ type: 'stopped', looks: 0 })
    expect((await store.due(9)).sessions).toEqual(['s'])
    expect(await store.card('s')).not.toHaveProperty('trouble')
  })

  it('B-DIST-25: takes the others while one that could not be looked at is left alone', async () => {
    const store = memory()
    for (const id of ['bad', 'foreign', 'good']) await due(store, id)
    const { loop, looked, named } = chooser(store, { width: 2, cannot: (session) => session === 'foreign' })
    await until(() => expect(looked).toContain('good'))
    await due(store, 'later')
    await until(() => expect(looked).toContain('later'))
    loop.stop()
    await loop.done
    expect(named[0]).toEqual(['bad', 'foreign', 'good'])
    expect(named.findLast((among) => among.includes('later'))).toEqual(['later'])
  })

  it('B-DIST-25: finds what it can look at behind hundreds that it cannot', async () => {
    const store = memory()
    const foreign = Array.from({ length: 40 }, (_, i) => `foreign ${i}`)
    for (const id of [...foreign, 'own']) await due(store, id)
    const { loop, looked } = chooser(store, { width: 2, idleMs: 0, cannot: (session) => session !== 'own' })
    expect(await loop.done).toMatchObject({ type: 'idle' })
    expect(looked).toEqual(['own'])
  })

  it('B-DIST-25: takes fresh sessions behind many that failed before and wait to be looked at alone', async () => {
    const clock = new StillClock()
    const store = memory({ clock })
    const suspects = Array.from({ length: 40 }, (_, i) => `failed ${i}`)
    for (const id of suspects) await due(store, id)
    for (const id of suspects) await store.claim(id, 'lost', 1_000)
    clock.advance(1_001)
    for (const id of ['fresh 1', 'fresh 2', 'fresh 3']) await due(store, id)
    const over = moment()
    const { loop, looked } = chooser(store, { width: 3, hangs: over.here })
    await until(() => expect(looked.filter((session) => session.startsWith('fresh'))).toHaveLength(3))
    expect(looked.filter((session) => session.startsWith('failed'))).toHaveLength(1)
    loop.stop()
    over.come()
    await loop.done
  })

  it('B-DIST-24: `takeDueSessions` refuses what it does not know, and a worker that cannot take', async () => {
    const harness = make(DONE, { store: memory() })
    await expect(takeDueSessions(harness, { limit: 1, amnog: [] } as never)).rejects.toThrow('did you mean "among"?')
    await expect(takeDueSessions(harness, { limit: -1 })).rejects.toThrow('"limit" of takeDueSessions')
    await expect(takeDueSessions(harness, {} as never)).rejects.toThrow('"limit" of takeDueSessions is missing')
    const named = make(DONE, { store: memory(), worker: { id: 'w' } })
    await expect(takeDueSessions(named, { limit: 1 })).rejects.toThrow('Leave `take` of the DueLoop out.')
    await expect(takeDueSessions(make(DONE, { store: withoutTake(memory()) }), { limit: 1 })).rejects.toThrow(
      'has no `take`',
    )
  })

  it('B-DIST-8: takes its own session again after its lease ended: the old attempt writes nothing more, and the new one goes on', async () => {
    const clock = new StillClock()
    const inner = memory({ clock })
    let dark = false
    const epochs = new Set<number>()
    const stalled = moment()
    const go = moment()
    const store = storeWith(inner, {
      commit: async (writes) => {
        const says = writes.some((write) => write.events.some(({ type }) => type === 'agent.message'))
        if (says && dark) {
          stalled.come()
          await go.here
        }
        const receipts = await inner.commit(writes)
        for (const write of writes) if (write.lane === 'owner' && write.epoch > 0) epochs.add(write.epoch)
        return receipts
      },
    })
    const harness = make(DONE, { store, system: { clock }, worker: { leaseMs: 1_000 } })
    await asleep(store, 's', [])
    await say(store, 's', 'hello')
    dark = true
    const working = harness.work({ idleMs: 60_000 })
    await stalled.here
    dark = false
    // The process was suspended past its lease: no heartbeat came through.
    clock.suspend(1_500)
    clock.advance(0)
    await say(store, 's', 'are you there?')
    await quiet()
    go.come()
    await quiet()
    for (let i = 0; i < 70 && (await store.card('s'))?.outcome !== 'completed'; i++) {
      clock.advance(1_000)
      await quiet()
    }
    expect(await store.card('s')).toMatchObject({ outcome: 'completed' })
    expect([...epochs]).toEqual([1, 2])
    await harness.close()
    expect(await working).toMatchObject({ type: 'stopped' })
  })

  it('B-DIST-27: takes its own session twice while an old attempt ends: one attempt follows another, and never are two at once', async () => {
    const clock = new StillClock()
    const inner = memory({ clock })
    const stalled = moment()
    const go = moment()
    let dark = true
    let [driving, most, taken] = [0, 0, 0]
    const store = storeWith(inner, {
      commit: async (writes) => {
        if (dark && writes.some((write) => write.events.some(({ type }) => type === 'agent.message'))) {
          stalled.come()
          await go.here
        }
        return inner.commit(writes)
      },
      take: async (...wanted) => {
        const got = (await inner.take?.(...wanted)) ?? new Map<string, never>()
        taken += got.size
        return got
      },
      // An attempt watches its session from its beginning to its end.
      watch: (session, listener) => {
        driving += 1
        most = Math.max(most, driving)
        const unwatch = inner.watch(session, listener)
        return () => {
          driving -= 1
          unwatch()
        }
      },
    })
    const harness = make(DONE, { store, system: { clock }, worker: { leaseMs: 1_000 } })
    await asleep(store, 's', [])
    await say(store, 's', 'hello')
    const working = harness.work({ idleMs: 60_000 })
    await stalled.here
    dark = false
    // The process was suspended past its lease, and once more before the attempt has ended.
    for (const said of ['are you there?', 'and now?']) {
      clock.suspend(1_500)
      clock.advance(0)
      await say(store, 's', said)
      await quiet()
    }
    expect(taken).toBe(3)
    go.come()
    await quiet()
    for (let i = 0; i < 70 && (await store.card('s'))?.outcome !== 'completed'; i++) {
      clock.advance(1_000)
      await quiet()
    }
    expect(await store.card('s')).toMatchObject({ outcome: 'completed' })
    expect(most).toBe(1)
    await harness.close()
    expect(await working).toMatchObject({ type: 'stopped' })
  })
})
