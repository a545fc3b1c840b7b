// The cost of a call whose exact usage is unknown: it was stopped, it cost nothing, or it reports no usage. Real HTTP to the
// chaos server, on both stores. Holds and accounts are money.test.ts.
import { describe, expect, it } from 'vitest'
import {
  fallback,
  type Hook,
  model,
  type Price,
  type Priced,
  scripted,
  stopAtUsd,
  type CompleteStore,
} from '../../src/index.ts'
import type { OwnerBody } from '../../src/kernel/event.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import { buildCharges } from '../../src/runtime/commit/charges.ts'
import { landAbandoned } from '../../src/runtime/turn/landings.ts'
import { SpendingLimits } from '../../src/runtime/money/spending-limits.ts'
import {
  chaosOf,
  eventsOf,
  harnessOf,
  hosted,
  noting,
  ofType,
  stage,
  STORAGES,
  storeOf,
} from '../models/hosted-stage.ts'
import { until } from '../until.ts'

const DAY_MS = 86_400_000
const PRICE: Price = { input: 2, output: 10 }
const HOSTED = { prices: { 'anthropic:*': PRICE }, outputTokensMax: 1_000 }
/** A thousand output tokens, and a few input characters. */
const HOLD_MIN = 10_000
const USAGE = { inputTokens: 100, outputTokens: 50 }
const COST = 700
const TIGHT = 0.0105

function dayOf(store: CompleteStore): string {
  return `day:default:${Math.floor(store.now() / DAY_MS)}`
}

describe.each(STORAGES)('what a call comes to, on %s', (storage) => {
  it('B-MONEY-17: a call that was stopped counts as what was held for it, and is marked', async () => {
    const { harness, store, chaos } = await stage([{ text: 'Late.', chaos: { stallAfterBytes: 0 } }], {
      storage,
      hosted: HOSTED,
      budget: { dayUsd: 1 },
    })
    const session = await harness.open()
    const running = session.run('Hello.')
    await until(() => expect(chaos.requests).toHaveLength(1))
    const { held = 0 } = (await store.account(dayOf(store))) ?? {}
    expect(held).toBeGreaterThan(HOLD_MIN)
    await session.interrupt()
    // The cost in the result is an estimate; the account counts the full hold.
    expect(await running).toMatchObject({ status: 'interrupted', cost: { micros: expect.any(Number) as number } })
    expect(await store.account(dayOf(store))).toMatchObject({ held: 0, spent: held, assumed: held })
    const [failed] = ofType(await eventsOf(store, session.id), 'model.failed')
    expect(failed).toMatchObject({ class: 'interrupted', assumed: true, usage: { outputTokens: 0 } })
    expect(failed?.cost).toBeGreaterThan(0)
  })

  it.each([
    ['a newer message', { stallAfterBytes: 800 }, {}],
    ['its deadline', { stallAfterBytes: 0 }, { limits: { modelMs: 300, modelAttempts: 1 } }],
    ['trouble after it began', { cutAfterBytes: 800 }, { limits: { modelAttempts: 1 } }],
  ] as const)('B-MONEY-17: so does one that is ended by %s', async (what, trouble, options) => {
    const said = { text: 'w'.repeat(300), deltas: 300, chaos: trouble }
    const { harness, store, chaos } = await stage([said, { text: 'Fine.', usage: USAGE }], {
      storage,
      hosted: HOSTED,
      budget: { dayUsd: 1 },
      ...options,
    })
    const session = await harness.open()
    const running = session.run('Hello.')
    await until(() => expect(chaos.requests).toHaveLength(1))
    if (what === 'a newer message') await session.send('No, this.', { when: 'now' })
    const { status, cost } = await running
    const events = await eventsOf(store, session.id)
    const [{ held = 0 } = {}] = ofType(events, 'model.started')
    const [failed] = ofType(events, 'model.failed')
    expect(failed).toMatchObject({ assumed: true })
    const more = status === 'completed' ? COST : 0
    expect(cost.micros).toBe((failed?.cost ?? 0) + more)
    expect(await store.account(dayOf(store))).toMatchObject({ held: 0, spent: held + more, assumed: held })
  })

  it('B-MONEY-32: a reply without usage is estimated from its characters, marked, and counted', async () => {
    const ask = (city: string) => ({
      calls: [{ tool: 'look', args: { city } }],
      chaos: { wrongUsage: 'missing' as const },
    })
    const { tool } = noting()
    const seen: number[] = []
    const watch: Hook = { type: 'stop', run: ({ cost }) => void seen.push(cost) }
    const { harness, store, chaos } = await stage([ask('Oslo'), ask('Rom'), ask('Bonn')], {
      storage,
      hosted: HOSTED,
      tools: [tool],
      instructions: 'i'.repeat(3_000),
      hooks: [watch, stopAtUsd(0.004)],
    })
    const result = await harness.run('Look.')
    // More than a thousand tokens at 2 each time.
    expect(result).toMatchObject({ status: 'halted', usage: { modelRequests: 2 } })
    expect(chaos.requests).toHaveLength(2)
    const messages = ofType(await eventsOf(store, result.sessionId), 'agent.message')
    expect(messages.map(({ assumed }) => assumed)).toEqual([true, true])
    const costs = messages.map(({ cost = 0 }) => cost)
    expect(Math.min(...costs)).toBeGreaterThan(2_000)
    expect(Math.max(...costs)).toBeLessThan(3_000)
    expect(result.cost.micros).toBe((costs[0] ?? 0) + (costs[1] ?? 0))
    expect(seen).toEqual([costs[0], result.cost.micros])
    expect((await store.card(result.sessionId))?.cost).toBe(result.cost.micros)
  })

  it('B-MONEY-24: a reply that costs nothing settles at nothing, also where money was held for a dearer model', async () => {
    const store = storeOf(storage)
    const chaos = await chaosOf(() => ({ text: 'Fine.', usage: USAGE }))
    const own = model('ollama:qwen3', { baseUrl: `${chaos.url}/v1`, outputTokensMax: 1_000 })
    const chain = fallback(own, hosted(chaos, 'messages', HOSTED))
    const harness = harnessOf({ model: chain, store, budget: { sessionUsd: TIGHT } })
    const session = await harness.open()
    for (const text of ['One.', 'Two.', 'Three.'])
      expect(await session.run(text)).toMatchObject({ status: 'completed', cost: { micros: 0 } })
    expect(await store.account(`session:${session.id}`)).toMatchObject({ held: 0, spent: 0, assumed: 0 })
    expect(ofType(await eventsOf(store, session.id), 'model.started')[0]?.held).toBeGreaterThan(HOLD_MIN)
  })

  it('B-MONEY-25: every call has a hold, also one of nothing: a cost that comes all the same is counted', async () => {
    const store = storeOf(storage)
    // It says that it is free, and sends a bill.
    const sly: Priced = {
      ...scripted(() => ({ text: 'Fine.', usage: USAGE, cost: 4_000 })),
      able: { name: 'sly', native: 'no' },
      outputTokensMax: 1_000,
      secrets: {},
      profile: () => Promise.resolve(FREE_PROFILE),
    }
    const harness = harnessOf({ model: sly, store, budget: { sessionUsd: 0.01 } })
    const session = await harness.open()
    const ends: string[] = []
    for (let i = 0; i < 5; i++) ends.push((await session.run('Hello.')).status)
    expect(await store.account(`session:${session.id}`)).toMatchObject({ held: 0, spent: 12_000, limit: 10_000 })
    expect(ends).toEqual(['completed', 'completed', 'completed', 'limit', 'limit'])
  })
})

it('B-MONEY-17: a call that was stopped before it was made is freed', () => {
  const call = { type: 'call', key: 'call:4', seq: 4, deadline: 0 } as const
  const [never] = landAbandoned(call, 'interrupted', false).events
  const [once] = landAbandoned(call, 'interrupted', true).events
  const purse = new SpendingLimits(
    'default',
    {},
    {
      rate: () => ({ price: PRICE, outputTokensMax: 1 }),
      baseChars: () => 0,
    },
  )
  const spending = { id: 's', root: 's', run: 3, open: { seq: 4, epoch: 1, at: 0, held: 70 } }
  const charged = (body: OwnerBody | undefined) =>
    body && buildCharges(spending, [{ seq: 5, at: 0, epoch: 1, ...body }], purse)
  expect(charged(never)).toEqual([{ type: 'free', key: 's:4' }])
  expect(charged(once)).toEqual([{ type: 'settle', key: 's:4', amount: 70, assumed: true }])
})
