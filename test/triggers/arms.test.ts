// What happens when the models of a triage fail: the second model, deferrals, and the end of a trigger that nobody could judge.
import { describe, expect, it } from 'vitest'
import { hasty } from '../models/hosted-stage.ts'
import { DROP, endOf, mail, REACT, STORAGES, storeOf, withTriggers } from './stage.ts'
import { deadTriggers } from '../../src/triggers/index.ts'
import type { Step } from '../../src/models/local/scripted.ts'
import { until } from '../until.ts'

const down: Step = { error: 'server', message: 'sk-live-0123456789abcdef is overloaded' }

describe('the arms of a triage', () => {
  it('B-TRIGGER-9: a model that fails is asked once more, and then the second, whose path is named', async () => {
    const stage = withTriggers({ triage: () => down, second: () => DROP, options: { system: { clock: hasty(20) } } })
    const { evaluated } = await endOf(stage, await stage.harness.trigger(mail('x')))
    expect(evaluated).toMatchObject({ action: 'drop', path: 'second' })
    expect(stage.triage).toHaveLength(3)
  })

  it.each([
    ['a model that declines', { text: 'No.', finish: 'refusal' }],
    ['a wait of more than 30 s', { error: 'rate_limit', retryAfterMs: 31_000 }],
  ] as const)('B-TRIGGER-10: %s is not asked again: the second model is', async (_, step) => {
    const stage = withTriggers({ triage: () => step, second: () => DROP })
    const { evaluated } = await endOf(stage, await stage.harness.trigger(mail('x')))
    expect(evaluated).toMatchObject({ path: 'second' })
    expect(stage.triage).toHaveLength(2)
  })

  it('B-TRIGGER-11: a refused key ends the trigger at once, with a reason that quotes no key', async () => {
    const stage = withTriggers({
      triage: () => ({ error: 'auth', message: 'Incorrect API key: sk-live-0123456789abcdef' }),
      second: () => DROP,
    })
    const { result } = await endOf(stage, await stage.harness.trigger(mail('x')))
    expect(result.status).toBe('failed')
    expect(stage.triage).toHaveLength(1)
    const [dead] = await deadTriggers(stage.harness).list()
    expect(dead?.reason).toBe('small refused its key or its account. Mend that, and retry the trigger.')
  })

  it.each(STORAGES)(
    'B-TRIGGER-12: with no model a trigger is deferred for 30 s, five times, and is dead then (%s)',
    async (storage) => {
      const clock = hasty(300)
      const store = storeOf(storage, clock)
      // Ten seconds of a busy machine, and not a hundred milliseconds, until the worker counts as gone.
      const worker = { leaseMs: 1_000_000 }
      const options = { store, worker, system: { clock } }
      const stage = withTriggers({ triage: () => down, second: () => down, options })
      const { harness } = stage
      const over = new AbortController()
      const work = harness.work({ signal: over.signal })
      const { sessionId } = await harness.trigger(mail('x'))
      await until(async () => expect((await store.card(sessionId))?.outcome).toBe('failed'))
      over.abort()
      await work
      const { events } = await harness.session(sessionId).events({ limit: 500 })
      const wakes = events.filter((event) => event.type === 'wake.scheduled')
      expect(wakes).toHaveLength(5)
      // Each wait begins after the one before has ended.
      const times = [events[0]?.at ?? 0, ...wakes.map((wake) => wake.due)]
      for (const [i, time] of times.slice(1).entries()) expect(time - (times[i] ?? 0)).toBeGreaterThanOrEqual(30_000)
      expect(stage.triage).toHaveLength(6 * 3)
      const dead = await deadTriggers(harness).list()
      expect(dead).toMatchObject([{ sessionId, source: 'mail', title: 'mail: mail.received' }])
      expect(dead[0]?.reason).toContain('deferred 5 times')
      expect(JSON.stringify(dead)).not.toContain('sk-live')
      const seen = (await store.card(sessionId))?.seq ?? 0
      await deadTriggers(harness).retry(sessionId)
      const { session } = await endOf(stage, { sessionId, duplicate: false })
      const later = (await session.events({ after: seen, limit: 500 })).events
      // On a busy machine this clock has deferred it again before anybody looks, so the first reply that says a count is read.
      const replies = later
        .filter((event) => event.type === 'agent.message')
        .map((event) => JSON.stringify(event.parts))
      const counts = replies.flatMap((text) => /deferrals[^\d]*(\d)/.exec(text)?.[1] ?? [])
      expect(counts.filter((count) => count !== '0')[0]).toBe('1')
    },
  )

  it('B-TRIGGER-13: what would cost more than a source may spend in a day waits for the next day', async () => {
    const priced = { text: DROP, cost: 990_000 }
    const stage = withTriggers({
      triage: () => priced,
      second: () => priced,
      source: { caps: { usdPerDay: 1 } },
    })
    const first = await endOf(stage, await stage.harness.trigger(mail('one')))
    expect(first.evaluated).toMatchObject({ action: 'drop' })
    const { session, output } = await endOf(stage, await stage.harness.trigger(mail('two')))
    expect(output).toMatchObject({ deferred: 'its source has spent what it may spend on this day', deferrals: 0 })
    const wake = (await session.events()).events.find((event) => event.type === 'wake.scheduled')
    expect(wake?.due).toBe((Math.floor((wake?.at ?? 0) / 86_400_000) + 1) * 86_400_000)
  })

  it('B-TRIGGER-30: what an agent spends counts for the day of its source, and it stops at the cap', async () => {
    const store = storeOf('memory')
    const stage = withTriggers({
      triage: () => ({ text: REACT, cost: 1_000 }),
      source: { caps: { usdPerDay: 1 }, cache: false },
      agent: () => ({ text: 'Done.', cost: 990_000 }),
      options: { store },
    })
    const first = await endOf(stage, await stage.harness.trigger(mail('one')))
    expect(first.output.result).toBe('Done.')
    const day = Math.floor(store.now() / 86_400_000)
    expect(await store.account(`day:trigger_mail:${day}`)).toMatchObject({ limit: 1_000_000, spent: 991_000, held: 0 })
    const next = await endOf(stage, await stage.harness.trigger(mail('two')))
    expect(next.output.deferred).toContain('this day')
    // A session of a person is not bound by it.
    expect(await stage.harness.run('Hello.')).toMatchObject({ status: 'completed' })
  })
})
