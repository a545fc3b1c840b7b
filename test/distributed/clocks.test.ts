// A store whose clock is not that of the process: it is an hour before or after it, and may be set while a session is driven.
import { describe, expect, it } from 'vitest'
import { memory, scripted, type CompleteStore } from '../../src/index.ts'
import { append, END, START, withState } from '../../src/graphs/index.ts'
import { withGraphs } from '../graphs/stage.ts'
import { storeWith } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'
import { calls, make, typesIn, waiting } from '../runtime/scene.ts'
import { asleep, quiet } from '../runtime/wake-stage.ts'

const HOUR_MS = 3_600_000
const { mapNode, graph } = withState({ items: append<string>() })

/** Time passes by `clock`, the harness's; the store's is so far ahead of it. `asked` counts what the due loop asks the store. */
function scene(aheadMs: number, model = scripted(() => 'done'), options: Parameters<typeof make>[1] = {}) {
  const clock = new StillClock()
  const remote = { aheadMs, now: () => clock.now() + remote.aheadMs, timer: clock.timer.bind(clock) }
  const inner = memory({ clock: remote })
  const asked = { looks: 0 }
  const store = storeWith(inner, {
    due: (limit, agents) => {
      if (limit === 0) asked.looks += 1
      return inner.due(limit, agents)
    },
  })
  const random = { id: () => crypto.randomUUID(), fraction: () => 0 }
  return { clock, remote, store, asked, harness: make(model, { store, system: { clock, random }, ...options }) }
}

async function pass(clock: StillClock, ms: number, stepMs = 500): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await quiet()
    clock.advance(stepMs)
  }
  await quiet()
}

const ended = async (store: CompleteStore, id: string) => (await store.card(id))?.outcome ?? null

describe.each([HOUR_MS, -HOUR_MS, 20_000])('with a store whose clock is %i ms ahead of the process', (aheadMs) => {
  it('B-DIST-14: a wake comes when it is due by the store, to the second, and nothing spins', async () => {
    const { clock, store, asked, harness } = scene(aheadMs)
    await asleep(store, 's', [{ due: store.now() + 8_000 }])
    harness.work().catch(() => {})
    await pass(clock, 7_500)
    expect(await ended(store, 's')).toBeNull()
    await pass(clock, 500)
    expect(await ended(store, 's')).toBe('completed')
    await pass(clock, 8_000)
    expect(asked.looks).toBeLessThan(20)
  })

  it('B-DIST-14: a provider that asks to wait is asked again after that wait, and a tool has exactly its time', async () => {
    let requests = 0
    const hang = waiting('hang', { timeoutMs: 5_000 })
    const model = scripted(() => {
      requests += 1
      if (requests === 1) return { error: 'rate_limit', retryAfterMs: 40_000 }
      return requests === 2 ? calls('hang') : 'done'
    })
    const { clock, store, harness } = scene(aheadMs, model, { tools: [hang.tool] })
    const session = await harness.open({ id: 's' })
    expect(await session.run('go', { patienceMs: 0 })).toMatchObject({ status: 'sleeping' })
    harness.work().catch(() => {})
    await pass(clock, 39_500)
    expect(requests).toBe(1)
    await pass(clock, 1_000)
    await hang.runs.here
    await pass(clock, 4_000)
    expect(await typesIn(session)).not.toContain('agent.tool_result')
    await pass(clock, 2_000)
    expect(await ended(store, 's')).toBe('completed')
    const times = (await store.read('s', 0)).events.map(({ at }) => at)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(Math.abs((times.at(-1) ?? 0) - store.now())).toBeLessThan(10_000)
  })

  it('B-DIST-15: the clock of the store is set while a session is driven: what is driven goes on, and the next wake is on time', async () => {
    const hang = waiting('hang', { timeoutMs: 60_000 })
    let requests = 0
    const model = scripted(() => (requests++ === 0 ? calls('hang') : 'done'))
    const { clock, remote, store, asked, harness } = scene(0, model, { tools: [hang.tool] })
    const session = await harness.open({ id: 's' })
    const running = session.run('go')
    await hang.runs.here
    remote.aheadMs = aheadMs
    hang.go()
    expect(await running).toMatchObject({ status: 'completed' })
    await asleep(store, 'w', [{ due: store.now() + 4_000 }])
    harness.work().catch(() => {})
    await pass(clock, 3_500)
    expect(await ended(store, 'w')).toBeNull()
    await pass(clock, 1_000)
    expect(await ended(store, 'w')).toBe('completed')
    expect(asked.looks).toBeLessThan(20)
  })

  it('B-DIST-16: the deadline of a node is a time of the store: a process with another clock keeps to it', async () => {
    const clock = new StillClock()
    const remote = { now: () => clock.now() + aheadMs, timer: clock.timer.bind(clock) }
    const store = memory({ clock: remote })
    const each = mapNode({
      over: ({ items }) => items,
      run: () => 'done',
      effect: 'read',
      totalMs: 30_000,
      take: () => ({}),
    })
    const edges = [[START, 'each'] as const, ['each', END] as const]
    const mapped = graph({ name: 'mapped', nodes: { each }, edges })
    const session = await withGraphs([mapped], { store, system: { clock } }).open({ agent: 'mapped' })
    expect(await session.run({ items: ['a'] })).toMatchObject({ status: 'completed' })
    const [call] = (await session.events()).events.flatMap((event) =>
      event.type === 'agent.message' ? event.calls : [],
    )
    expect(call?.args).toMatchObject({ until: store.now() + 30_000 })
  })
})
