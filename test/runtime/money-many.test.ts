// Many runs at once under one day budget: the real cost may be three times the hold, and still no call starts that does not
// fit. Real HTTP to the chaos server.
import { describe, expect, it } from 'vitest'
import type { Charge, CompleteStore } from '../../src/ports/store.ts'
import { chaosOf, eventsOf, harnessOf, hosted, ofType, STORAGES, storeOf } from '../models/hosted-stage.ts'
import { makeFile, open } from '../stores/folder.ts'
import { observed } from './stage.ts'
import { storeWith } from '../../sim/store-with.ts'

const RUNS = 200
const LIMIT = 1_000_000
const DAY_MS = 86_400_000
const HOSTED = { prices: { 'anthropic:*': { input: 3, output: 15 } }, outputTokensMax: 1_000 }
/** A hold is 15,000 for the answer and little for the question: this is three times as much. */
const TRIPLE = { inputTokens: 200, outputTokens: 3_000 }

function dayOf(store: CompleteStore): string {
  return `day:default:${Math.floor(store.now() / DAY_MS)}`
}

/** What the accounts must have been at each hold, by the charges in the order of their commits. */
function replayed(charges: readonly Charge[], account: string) {
  const open = new Map<string, number>()
  let [held, spent, most] = [0, 0, 0]
  for (const charge of charges) {
    if (charge.type === 'limit') continue
    if (charge.type === 'hold') {
      if (!charge.accounts.includes(account)) continue
      open.set(charge.key, charge.amount)
      held += charge.amount
      most = Math.max(most, held + spent)
      continue
    }
    held -= open.get(charge.key) ?? 0
    if (charge.type === 'settle' && open.has(charge.key)) spent += charge.amount
    open.delete(charge.key)
  }
  return { held, spent, most }
}

describe.each(STORAGES)('many runs at once on %s', (storage) => {
  it(`B-MONEY-20: ${RUNS} runs at once never hold more than the day has left, and cost at most the limit and the overrun of what was held`, async () => {
    const charges: Charge[] = []
    const inner = storeOf(storage)
    const { store } = observed(inner)
    const commit: CompleteStore['commit'] = async (writes) => {
      const receipts = await store.commit(writes)
      for (const write of writes) if (write.lane === 'owner') charges.push(...(write.charges ?? []))
      return receipts
    }
    const noting = storeWith(store, { commit })
    const chaos = await chaosOf(() => ({ text: 'Dear.', usage: TRIPLE, chaos: { wrongUsage: 'triple' } }))
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store: noting, budget: { dayUsd: 1 } })
    const results = await Promise.all(Array.from({ length: RUNS }, (_, n) => harness.run(`Run ${n}.`)))
    const statuses = new Set(results.map(({ status }) => status))
    expect(statuses).toEqual(new Set(['completed', 'limit']))

    const logs = await Promise.all(results.map(({ sessionId }) => eventsOf(store, sessionId)))
    const started = logs.flatMap((events) => ofType(events, 'model.started'))
    // A refused run never called the model, and waits for a higher budget.
    expect(chaos.requests).toHaveLength(started.length)
    const refused = results.filter(({ status }) => status === 'limit')
    expect(started.length + refused.length).toBe(RUNS)
    for (const { pending, cost } of refused) expect([pending[0]?.callId, cost.micros]).toEqual(['budget', 0])

    const account = await store.account(dayOf(store))
    const held = started.reduce((sum, event) => sum + (event.held ?? 0), 0)
    const cost = results.reduce((sum, result) => sum + result.cost.micros, 0)
    const overrun = cost - held
    expect(account).toMatchObject({ limit: LIMIT, held: 0, spent: cost, assumed: 0 })
    expect(cost).toBeLessThanOrEqual(LIMIT + overrun)
    expect(cost / held).toBeGreaterThan(2.9)
    const replay = replayed(charges, dayOf(store))
    expect(replay).toMatchObject({ held: 0, spent: cost })
    // Every hold fitted beside what was held and spent at that moment.
    expect(replay.most).toBeLessThanOrEqual(LIMIT)
    // No call that fitted was refused: even one after the other, 21 would have been made.
    expect(started.length).toBeGreaterThanOrEqual(21)
  })

  it('B-MONEY-21: one run after the other stops as soon as the next one does not fit', async () => {
    const store = storeOf(storage)
    const chaos = await chaosOf(() => ({ text: 'Dear.', usage: TRIPLE }))
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget: { dayUsd: 0.19 } })
    const statuses: string[] = []
    for (let n = 0; n < 8; n++) statuses.push((await harness.run(`Run ${n}.`)).status)
    // Each costs 45,600 of 190,000, and 15,000 are held: the fifth does not fit.
    expect(statuses).toEqual(['completed', 'completed', 'completed', 'completed', 'limit', 'limit', 'limit', 'limit'])
    expect(await store.account(dayOf(store))).toMatchObject({ held: 0, spent: 4 * 45_600 })
  })
})

it('B-MONEY-22: several workers on one file share one budget', async () => {
  const file = makeFile()
  const stores = Array.from({ length: 3 }, () => open(file))
  const chaos = await chaosOf(() => ({ text: 'Dear.', usage: TRIPLE }))
  const harnesses = stores.map((store) =>
    harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget: { dayUsd: 0.2 } }),
  )
  const results = await Promise.all(
    Array.from({ length: 30 }, (_, n) => (harnesses[n % 3] as (typeof harnesses)[0]).run(`Run ${n}.`)),
  )
  const made = results.filter(({ status }) => status === 'completed').length
  expect(results.filter(({ status }) => status === 'limit')).toHaveLength(30 - made)
  expect(chaos.requests).toHaveLength(made)
  const [store] = stores
  const account = store ? await store.account(dayOf(store)) : null
  expect(account).toMatchObject({ held: 0, spent: made * 45_600, limit: 200_000 })
  // Thirteen holds fit at once, and no fewer than four one after the other.
  expect(made).toBeGreaterThanOrEqual(4)
  expect(made).toBeLessThanOrEqual(13)
})
