// A worker whose name its host chose, as an engine that calls workers by name needs it: what is checked, and what two of one name do.
import { describe, expect, it } from 'vitest'
import { memory, scripted } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'
import { calls, make, typesIn, waiting } from '../runtime/scene.ts'
import { quiet } from '../runtime/wake-stage.ts'
import { until } from '../until.ts'

describe('the name of a worker', () => {
  it('B-DIST-17: may be given, and is checked; without one each harness has its own', async () => {
    const inner = memory()
    const names: string[] = []
    const store = storeWith(inner, {
      claim: (session, worker, ...rest) => {
        names.push(worker)
        return inner.claim(session, worker, ...rest)
      },
    })
    const done = scripted(() => 'done')
    for (const worker of [{ id: 'object-7' }, {}, {}]) await make(done, { store, worker }).run('hello')
    expect(names[0]).toBe('object-7')
    expect(new Set(names).size).toBe(3)
    for (const id of ['', 'a\0b', '\ud800', 'x'.repeat(513), 7 as never])
      expect(() => make(done, { store, worker: { id } })).toThrow(
        '"worker.id" of new Harness must be a text of 1 to 512',
      )
  })

  it('B-DIST-17: that two living processes share lets either take a session at once; the other writes nothing more', async () => {
    const store = memory()
    const [first, second] = [waiting('hang', { effect: 'once' }), waiting('hang', { effect: 'once' })]
    const script = () => scripted(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : calls('hang')))
    const [one, two] = [first, second].map(({ tool }) =>
      make(script(), { store, tools: [tool], worker: { id: 'shared', leaseMs: 1_000 } }),
    )
    const session = await one?.open({ id: 's' })
    const running = session?.run('go')
    await first.runs.here
    await two?.work({ session: 's' })
    await until(async () => expect(await store.card('s')).toMatchObject({ outcome: 'completed' }))
    const types = session ? await typesIn(session) : []
    expect(types.filter((type) => type === 'agent.tool_use')).toHaveLength(1)
    expect((await store.read('s', 0)).events.find(({ type }) => type === 'agent.tool_result')).toMatchObject({
      status: 'unknown',
    })
    expect(await running).toMatchObject({ status: 'completed' })
    expect(second.ran).toEqual([])
  })

  it('B-DIST-17: that two share keeps what each drives: the heartbeat of one gives back nothing of the other', async () => {
    const clock = new StillClock()
    const store = memory({ clock })
    const hangs = [waiting('hang', { timeoutMs: 60_000 }), waiting('hang', { timeoutMs: 60_000 })]
    const runs = hangs.map(async ({ tool, runs: begun, go }, i) => {
      const script = scripted(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : calls('hang')))
      const harness = make(script, {
        store,
        system: { clock },
        tools: [tool],
        worker: { id: 'shared', leaseMs: 3_000 },
      })
      const running = (await harness.open({ id: `s${i}` })).run('go')
      await begun.here
      return { running, go }
    })
    const driven = await Promise.all(runs)
    for (let i = 0; i < 8; i++) {
      clock.advance(1_000)
      await quiet()
    }
    expect(await store.extend('shared', 3_000)).toEqual(
      new Map([
        ['s0', 1],
        ['s1', 1],
      ]),
    )
    for (const { go } of driven) go()
    for (const { running } of driven)
      expect(await running).toMatchObject({ status: 'completed', calls: [{ status: 'ok' }] })
  })
})
