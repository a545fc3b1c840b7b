// What the engine does when the machine's clock is set, or was wrong for a while. The store uses the machine's clock;
// durations use the monotonic clock, which cannot be set.
import { describe, expect, it } from 'vitest'
import { memory, scripted, type CompleteStore } from '../../src/index.ts'
import { calls, make, tool, typesIn, waiting } from './scene.ts'
import { asleep, quiet } from './wake-stage.ts'
import { until } from '../until.ts'
import { StillClock } from '../contract/fixture.ts'

const YEARS_MS = 10 * 365 * 24 * 3_600_000
const HOUR_MS = 3_600_000

/** Time passes by `steady`; the machine's clock is ahead of it by `aheadMs`. */
function scene(options: Partial<Parameters<typeof make>[1]> = {}, model = scripted(() => 'done')) {
  const steady = new StillClock()
  const wall = { aheadMs: 0, now: () => steady.now() + wall.aheadMs, timer: steady.timer.bind(steady) }
  const store = memory({ clock: wall })
  const random = { id: () => crypto.randomUUID(), fraction: () => 0 }
  return { steady, wall, store, harness: make(model, { store, system: { clock: steady, random }, ...options }) }
}

async function endOf(store: CompleteStore, id: string): Promise<unknown> {
  return (await store.card(id))?.outcome ?? null
}

describe("the machine's clock is set while a run is under way", () => {
  it.each([YEARS_MS, -HOUR_MS])(
    'B-CLOCK-5: by %i ms: a tool that hangs is stopped when its own time is over, not before and not later',
    async (ms) => {
      const hang = waiting('hang', { timeoutMs: 5_000 })
      const { steady, wall, harness } = scene({ tools: [hang.tool] }, scripted([calls('hang'), 'done', 'done']))
      const session = await harness.open({ id: 's' })
      const running = session.run('go')
      await hang.runs.here
      wall.aheadMs = ms
      await session.send('a word that wakes the attempt')
      steady.advance(4_999)
      await quiet()
      expect(await typesIn(session)).not.toContain('agent.tool_result')
      steady.advance(1)
      await until(async () => expect(await typesIn(session)).toContain('agent.tool_result'))
      const { calls: made } = await running
      expect(made[0]).toMatchObject({ status: 'timeout' })
    },
  )

  it.each([YEARS_MS, -HOUR_MS])(
    'B-CLOCK-5: by %i ms: a provider that asks to wait is asked again after that wait',
    async (ms) => {
      let asked = 0
      const model = scripted(() => (asked++ === 0 ? { error: 'rate_limit', retryAfterMs: 40_000 } : 'done'))
      const { steady, wall, store, harness } = scene({}, model)
      const session = await harness.open({ id: 's' })
      expect(await session.run('go', { patienceMs: 0 })).toMatchObject({ status: 'sleeping' })
      wall.aheadMs = ms
      steady.advance(39_999)
      await quiet()
      expect(asked).toBe(1)
      steady.advance(1)
      await until(async () => expect(await endOf(store, 's')).toBe('completed'))
      expect(asked).toBe(2)
    },
  )

  it.each([YEARS_MS, -HOUR_MS])(
    'B-CLOCK-5: by %i ms: the lease is kept, and the run ends as if nothing had been',
    async (ms) => {
      let answer = (_: string): void => {}
      const model = scripted(() => new Promise<string>((resolve) => (answer = resolve)))
      const { steady, wall, store, harness } = scene({}, model)
      const session = await harness.open({ id: 's' })
      const running = session.run('go')
      await quiet()
      wall.aheadMs = ms
      for (let i = 0; i < 6; i++) {
        steady.advance(10_000)
        await quiet()
      }
      expect(await store.claim('s', 'another', 30_000)).toBeNull()
      answer('done')
      expect(await running).toMatchObject({ status: 'completed', text: 'done' })
      expect((await session.events()).events.filter(({ type }) => type === 'model.failed')).toEqual([])
    },
  )
})

describe('a session that was written to by a clock ten years ahead', () => {
  const risky = tool('risky', { effect: 'once', approval: 'ask' })

  it('B-CLOCK-6: goes on: it is decided in time, and an unanswered question expires by the clock', async () => {
    const script = ['first', calls('risky'), 'second', calls('risky'), 'third']
    const { steady, wall, store, harness } = scene(
      { tools: [risky], approvals: { timeoutMs: 60_000 } },
      scripted(script),
    )
    wall.aheadMs = YEARS_MS
    const session = await harness.open({ id: 's' })
    await session.run('one')
    wall.aheadMs = 0
    const parked = await session.run('two')
    expect(parked).toMatchObject({ status: 'requires_action' })
    const [call] = parked.pending ?? []
    await session.decide({ callId: call?.callId ?? '', allow: true, by: 'ann' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'second' })
    expect(await session.run('three')).toMatchObject({ status: 'requires_action' })
    const working = harness.work()
    await quiet()
    steady.advance(60_001)
    await until(async () => expect((await session.events()).events.at(-1)?.type).toBe('run.settled'))
    const results = (await session.events()).events.flatMap((e) => (e.type === 'agent.tool_result' ? [e.status] : []))
    expect(results).toEqual(['ok', 'denied'])
    const times = (await session.events()).events.map(({ at }) => at)
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(await endOf(store, 's')).toBe('completed')
    await harness.close()
    await working
  })

  it('B-CLOCK-7: what it was to do in five minutes is done when a worker looks; what is wanted in ten years waits', async () => {
    const { steady, wall, store, harness } = scene()
    const far = wall.now() + YEARS_MS
    await asleep(store, 'far', [{ due: far }])
    wall.aheadMs = YEARS_MS - HOUR_MS
    await asleep(store, 'soon', [{ due: wall.now() + 300_000 }])
    wall.aheadMs = 0
    const working = harness.work()
    await until(async () => expect(await endOf(store, 'soon')).toBe('completed'))
    steady.advance(60_000)
    await quiet()
    expect(await store.card('far')).toMatchObject({ outcome: null, due: far, wakes: 1 })
    await harness.close()
    await working
  })
})
