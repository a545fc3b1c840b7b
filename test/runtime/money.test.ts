// Money through the harness: what is held before a call, how a hold ends, which account pays, and what happens when the budget is
// too small. Real HTTP to the chaos server, on both stores. Many runs at once are money-many.test.ts; killed processes
// money-process.long.test.ts; children money-tree.test.ts; unknown usage money-spent.test.ts; models called by tools money-tools.long.test.ts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { overloadedError } from '../../src/testing/index.ts'
import { type Budget, defineTool, Harness, type Price, scripted, type CompleteStore } from '../../src/index.ts'
import type { Write } from '../../src/ports/store.ts'
import type { Clock } from '../../src/ports/system.ts'
import { cardOf } from '../../src/view/card.ts'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import {
  chaosOf,
  DIALECTS,
  eventsOf,
  harnessOf,
  hasty,
  hosted,
  noting,
  ofType,
  stage,
  STORAGES,
  storeOf,
} from '../models/hosted-stage.ts'
import { observed } from './stage.ts'

const DAY_MS = 86_400_000
const PRICE: Price = { input: 2, output: 10 }
const HOSTED = { prices: { 'anthropic:*': PRICE, 'openai:*': PRICE, 'openrouter:*': PRICE }, outputTokensMax: 1_000 }
/** A thousand output tokens, and a few input characters. */
const HOLD_MIN = 10_000
const USAGE = { inputTokens: 100, outputTokens: 50 }
const COST = 700
const TIGHT = 0.0105
const ASK = { calls: [{ tool: 'look', args: { city: 'Oslo' } }], usage: USAGE }

function dayOf(store: CompleteStore): string {
  return `day:default:${Math.floor(store.now() / DAY_MS)}`
}

describe.each(STORAGES)('money on %s', (storage) => {
  it('B-MONEY-1: money is held in the commit that writes the intent, before the model is asked', async () => {
    const charges: (readonly string[])[] = []
    const note = (writes: readonly Write[]): void => {
      for (const write of writes) {
        if (write.lane !== 'owner' || !write.events.some((event) => event.type === 'model.started')) continue
        charges.push((write.charges ?? []).map((charge) => charge.type))
      }
    }
    const { store } = observed(storeOf(storage), note)
    const seen: unknown[] = []
    const chaos = await chaosOf(async () => {
      seen.push(await store.account(dayOf(store)))
      return { text: 'Fine.', usage: USAGE }
    })
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget: { dayUsd: 1 } })
    const { sessionId } = await harness.run('Hello.')
    expect(charges.filter((types) => types.includes('hold'))).toHaveLength(1)
    const [started] = ofType(await eventsOf(store, sessionId), 'model.started')
    expect(started?.held).toBeGreaterThan(HOLD_MIN)
    expect(seen).toMatchObject([{ limit: 1_000_000, held: started?.held, spent: 0 }])
  })

  it('B-MONEY-2: a reply settles its hold at its cost, on the accounts of run, session, tree and day', async () => {
    const { harness, store } = await stage(
      [
        { text: 'Fine.', usage: USAGE },
        { text: 'Too.', usage: USAGE },
      ],
      {
        storage,
        hosted: HOSTED,
        budget: { dayUsd: 1, runUsd: 0.5 },
      },
    )
    const { sessionId: id, cost: paid } = await harness.run('Hello.')
    const cost = paid.micros
    expect(cost).toBe(COST)
    await harness.session(id).run('And?')
    const runs = ofType(await eventsOf(store, id), 'run.started').map(({ seq }) => `run:${id}:${seq}`)
    for (const run of runs) expect(await store.account(run)).toMatchObject({ limit: 500_000, held: 0, spent: COST })
    for (const account of [`session:${id}`, `tree:${id}`]) {
      expect(await store.account(account)).toMatchObject({ limit: null, held: 0, spent: 2 * COST, assumed: 0 })
    }
    expect(await store.account(dayOf(store))).toMatchObject({ limit: 1_000_000, held: 0, spent: 2 * COST })
  })

  it('B-MONEY-3: a child pays on the account of its tree too', async () => {
    const store = storeOf(storage)
    const chaos = await chaosOf([{ text: 'Fine.', usage: USAGE }])
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget: { treeUsd: TIGHT } })
    const parent = await harness.open()
    const parents = { session: parent.id, call: '4.0', root: parent.id, depth: 1 }
    for (const id of ['child-1', 'child-2']) {
      const created = {
        seq: 1,
        at: store.now(),
        epoch: 0,
        type: 'session.created',
        agent: 'default',
        planner: 'model',
      } as const
      const events = [{ ...created, parent: parents }]
      const session = events.reduce(fold, EMPTY)
      const card = cardOf(id, session, next(session, { now: store.now(), epoch: 0 }))
      await store.commit([{ session: id, lane: 'owner', epoch: 0, expectedSeq: 0, events, card }])
    }
    expect(await harness.session('child-1').run('Hello.')).toMatchObject({
      status: 'completed',
      cost: { micros: COST },
    })
    expect(await store.account(`tree:${parent.id}`)).toMatchObject({ spent: COST, limit: 10_500 })
    expect(await harness.session('child-2').run('Hello.')).toMatchObject({ status: 'limit', limit: 'usd' })
  })

  it('B-MONEY-4: what a provider refused before it did anything is freed, and the next try holds anew', async () => {
    const clock = hasty(10)
    const { harness, store } = await stage([overloadedError(), overloadedError(), { text: 'Fine.', usage: USAGE }], {
      storage,
      hosted: HOSTED,
      system: { clock },
      // Room for one call at a time.
      budget: { dayUsd: TIGHT },
    })
    expect(await harness.run('Hello.')).toMatchObject({ status: 'completed', cost: { micros: COST } })
    expect(await store.account(dayOf(store))).toMatchObject({ held: 0, spent: COST, assumed: 0 })
  })

  it.each(['runUsd', 'sessionUsd', 'treeUsd', 'dayUsd'] as const)(
    'B-MONEY-5: a call that does not fit %s is not made; a person allows more, it is recorded, and the work goes on',
    async (kind) => {
      const { tool, calls } = noting()
      const { harness, store, chaos } = await stage([ASK, { text: 'Done.', usage: USAGE }], {
        storage,
        hosted: HOSTED,
        tools: [tool],
        budget: { [kind]: TIGHT },
      })
      const session = await harness.open()
      const broke = await session.run('Look at Oslo.')
      expect(broke).toMatchObject({
        status: 'limit',
        stopReason: 'limit_reached',
        limit: 'usd',
        cost: { micros: COST },
      })
      expect(broke.pending).toMatchObject([{ callId: 'budget', tool: 'budget', needs: 'approval' }])
      expect(chaos.requests).toHaveLength(1)
      expect(await store.account(`session:${session.id}`)).toMatchObject({ held: 0, spent: COST })
      await session.decide({ callId: 'budget', allow: true, usd: 0.02, by: 'ana', why: 'it is worth it' })
      expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
      expect(calls).toEqual(['Oslo'])
      const events = await eventsOf(store, session.id)
      expect(ofType(events, 'note.added').map(({ text }) => text)).toEqual([
        'ana raised the budget by $0.02: it is worth it.',
      ])
      expect(ofType(events, 'user.message').at(-1)).toMatchObject({ by: 'ana' })
      const shown = JSON.stringify(chaos.requests[1]?.body)
      expect(shown).toContain('Look at Oslo.')
      expect(shown).toContain('Oslo is cold')
      expect(shown).toContain('ana raised the budget')
    },
  )

  it('B-MONEY-6: the very first call may not fit either, and no model is asked until a person allows it', async () => {
    const { harness, chaos } = await stage([{ text: 'Fine.', usage: USAGE }], {
      storage,
      hosted: HOSTED,
      budget: { runUsd: 0.005 },
    })
    const broke = await harness.run('Hello.')
    expect(broke).toMatchObject({
      status: 'limit',
      limit: 'usd',
      pending: [{ callId: 'budget' }],
      usage: { modelRequests: 0 },
    })
    expect(chaos.requests).toEqual([])
    const session = harness.session(broke.sessionId)
    await session.decide({ callId: 'budget', allow: true, usd: 0.001, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'limit' })
    await session.decide({ callId: 'budget', allow: true, usd: 0.01, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Fine.' })
    expect(JSON.stringify(chaos.requests[0]?.body)).toContain('Hello.')
  })

  it('B-MONEY-7: a denial is recorded and starts nothing; it can still be allowed later', async () => {
    const { harness, store, chaos } = await stage([{ text: 'Fine.', usage: USAGE }], {
      storage,
      hosted: HOSTED,
      budget: { sessionUsd: 0.005 },
    })
    const { sessionId } = await harness.run('Hello.')
    const session = harness.session(sessionId)
    await session.decide({ callId: 'budget', allow: false, by: 'bob' })
    expect(await session.run()).toMatchObject({ status: 'limit', pending: [{ callId: 'budget' }] })
    const events = await eventsOf(store, sessionId)
    expect(ofType(events, 'note.added').map(({ text }) => text)).toEqual(['bob did not raise the budget.'])
    expect(ofType(events, 'run.started')).toHaveLength(1)
    await session.decide({ callId: 'budget', allow: true, usd: 0.02, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(chaos.requests[0]?.body)).toContain('bob did not raise')
  })

  it('B-MONEY-8: only a session that waits for it can be given more, once each time, and by an amount', async () => {
    const { harness, store } = await stage(() => ({ text: 'Fine.', usage: USAGE }), {
      storage,
      hosted: HOSTED,
      budget: { sessionUsd: 0.005 },
    })
    const { sessionId } = await harness.run('Hello.')
    const session = harness.session(sessionId)
    const raise = (usd?: number) =>
      session.decide({ callId: 'budget', allow: true, by: 'ana', ...(usd === undefined ? {} : { usd }) })
    for (const usd of [undefined, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e-9]) {
      await expect(raise(usd)).rejects.toMatchObject({ code: 'invalid_input' })
    }
    // Two people approve at once: one of them is too late, and their amounts are not added up.
    const both = await Promise.allSettled([raise(0.02), raise(0.02)])
    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await session.run()).toMatchObject({ status: 'completed' })
    await expect(raise(0.02)).rejects.toMatchObject({ code: 'decision_stale' })
    expect(await store.account(`session:${sessionId}`)).toMatchObject({ limit: 25_000 })
  })

  it('B-MONEY-9: what was spent and what was allowed are there for the next harness', async () => {
    const store = storeOf(storage)
    const chaos = await chaosOf(() => ({ text: 'Fine.', usage: USAGE }))
    const make = (budget: Budget) => harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget })
    const first = make({ dayUsd: TIGHT })
    const { sessionId } = await first.run('Hello.')
    const session = first.session(sessionId)
    expect(await session.run('Again.')).toMatchObject({ status: 'limit' })
    await session.decide({ callId: 'budget', allow: true, usd: 0.0005, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    await first.close()
    // Twice 700 of 11,000: not enough for a call of more than 10,000.
    const second = make({ dayUsd: TIGHT })
    expect(await second.run('Other.')).toMatchObject({ status: 'limit' })
    expect(await store.account(dayOf(store))).toMatchObject({ limit: 11_000, spent: 2 * COST })
    // A budget that was raised or removed in the code counts from the next call on.
    expect(await make({ dayUsd: 1 }).session(sessionId).run('More.')).toMatchObject({ status: 'completed' })
    expect(await make({ runUsd: 1 }).run('More.')).toMatchObject({ status: 'completed' })
    expect(await make({ dayUsd: TIGHT }).run('More.')).toMatchObject({ status: 'limit' })
  })

  it.each(DIALECTS)(
    'B-MONEY-10: usage over %s that is missing or absurd counts as what was held, and is marked; said three times it counts once',
    async (dialect) => {
      const said = (wrongUsage: 'missing' | 'absurd' | 'triple') => ({ text: 'Fine.', chaos: { wrongUsage } })
      const { harness, store } = await stage([said('missing'), said('absurd'), { ...said('triple'), usage: USAGE }], {
        storage,
        dialect,
        hosted: HOSTED,
        budget: { dayUsd: 1 },
      })
      const ids: string[] = []
      for (const text of ['One.', 'Two.', 'Three.']) ids.push((await harness.run(text)).sessionId)
      const held = await Promise.all(
        ids.map(async (id) => ofType(await eventsOf(store, id), 'model.started')[0]?.held ?? 0),
      )
      expect(Math.min(...held)).toBeGreaterThan(HOLD_MIN)
      const lost = (held[0] ?? 0) + (held[1] ?? 0)
      expect(await store.account(dayOf(store))).toMatchObject({ held: 0, spent: lost + COST, assumed: lost })
    },
  )

  it('B-MONEY-11: an unknown model is priced with caution, and one without a price is counted as held', async () => {
    const { harness, store } = await stage([{ text: 'Fine.', usage: USAGE }], {
      storage,
      hosted: { outputTokensMax: 1_000 },
      budget: { dayUsd: 1 },
    })
    const result = await harness.run('Hello.')
    // $3 and $15 a million tokens.
    expect(result.cost.micros).toBe(3 * 100 + 15 * 50)
    expect(ofType(await eventsOf(store, result.sessionId), 'model.started')[0]?.held).toBeGreaterThanOrEqual(15_000)
    const silent = storeOf(storage)
    const other = harnessOf({ model: scripted(['Fine.']), store: silent, budget: { dayUsd: 1 } })
    await other.run('Hello.')
    const account = await silent.account(dayOf(silent))
    expect(account?.spent).toBeGreaterThan(100_000)
    expect(account).toMatchObject({ held: 0, assumed: account?.spent })
  })

  it('B-MONEY-12: what is held counts the tools, the instructions, and the result that comes with the same commit', async () => {
    const long = 'x'.repeat(30_000)
    const tool = defineTool({
      name: 'look',
      description: 'd'.repeat(3_000),
      input: z.object({}),
      effect: 'read',
      execute: () => long,
    })
    const { harness, store } = await stage(
      [
        { calls: [{ tool: 'look' }], usage: USAGE },
        { text: 'Long.', usage: USAGE },
      ],
      {
        storage,
        hosted: HOSTED,
        tools: [tool],
        instructions: 'i'.repeat(6_000),
        budget: { dayUsd: 1 },
        results: { compression: 'off' },
      },
    )
    const { sessionId } = await harness.run('Look.')
    const [first = 0, second = 0] = ofType(await eventsOf(store, sessionId), 'model.started').map(({ held }) => held)
    // Three characters a token, two millionths each.
    expect(first).toBeGreaterThan(HOLD_MIN + (9_000 / 3) * 2)
    expect(first).toBeLessThan(HOLD_MIN + (10_000 / 3) * 2)
    expect(second - first).toBeGreaterThanOrEqual((30_000 / 3) * 2)
    expect(second - first).toBeLessThan((31_000 / 3) * 2)
  })

  it('B-MONEY-13: a picture is not held for by its bytes', async () => {
    const { harness, store } = await stage([{ text: 'A cat.', usage: USAGE }], {
      storage,
      hosted: HOSTED,
      budget: { dayUsd: 0.05 },
    })
    const data = new Uint8Array(1_000_000)
    const result = await harness.run([
      { type: 'text', text: 'What is it?' },
      { type: 'image', media: 'image/png', data },
    ])
    expect(result).toMatchObject({ status: 'completed' })
    expect(ofType(await eventsOf(store, result.sessionId), 'model.started')[0]?.held).toBeGreaterThan(HOLD_MIN + 5_000)
  })

  it('B-MONEY-14: a day has its own limit, also when a run crosses midnight', async () => {
    let offset = 0
    const clock: Clock = { ...hasty(1), now: () => Date.now() + offset }
    const wait = defineTool({
      name: 'wait',
      description: 'waits until tomorrow',
      input: z.object({}),
      effect: 'read',
      execute: () => {
        offset += DAY_MS
        return 'It is tomorrow.'
      },
    })
    const { harness, store } = await stage(
      [
        { calls: [{ tool: 'wait' }], usage: USAGE },
        { text: 'Morning.', usage: USAGE },
      ],
      {
        storage,
        hosted: HOSTED,
        system: { clock },
        tools: [wait],
        limits: { activeMs: 10 * DAY_MS },
        worker: { leaseMs: 5 * DAY_MS },
        budget: { dayUsd: TIGHT },
      },
    )
    const yesterday = dayOf(store)
    expect(await harness.run('Wait.')).toMatchObject({
      status: 'completed',
      text: 'Morning.',
      cost: { micros: 2 * COST },
    })
    expect(await store.account(yesterday)).toMatchObject({ limit: 10_500, spent: COST })
    expect(await store.account(dayOf(store))).toMatchObject({ limit: 10_500, spent: COST })
    expect(dayOf(store)).not.toBe(yesterday)
  })
})

describe('a budget', () => {
  it.each([
    { dayUsd: -1 },
    { runUsd: Number.NaN },
    { treeUsd: Number.POSITIVE_INFINITY },
    { sessionUsd: '5' as unknown as number },
  ])('B-MONEY-15: %o is no budget, and is refused when the harness is made', (budget) => {
    const [name = ''] = Object.keys(budget)
    const refused = { code: 'invalid_config', message: expect.stringContaining(name) as string }
    expect(() => new Harness({ model: scripted([]), budget })).toThrow(expect.objectContaining(refused) as Error)
  })

  it('B-MONEY-15: a budget that there is not bounds nothing, and is refused', () => {
    const budget = { dayUSD: 0 } as Budget
    const sentence = /Unknown option "budget\.dayUSD" of new Harness: did you mean "budget\.dayUsd"\?/
    expect(() => new Harness({ model: scripted([]), budget })).toThrow(sentence)
  })

  it('B-MONEY-16: a cost that is no amount of money is counted as what was held', async () => {
    for (const cost of [Number.NaN, -5, Number.POSITIVE_INFINITY, 1e30]) {
      const store = storeOf('memory')
      const harness = harnessOf({ model: scripted([{ text: 'Fine.', cost }]), store, budget: { dayUsd: 1 } })
      expect(await harness.run('Hello.')).toMatchObject({ status: 'completed', cost: { micros: 0 } })
      const account = await store.account(dayOf(store))
      expect(account?.spent).toBeGreaterThan(100_000)
      expect(account?.assumed).toBe(account?.spent)
    }
  })
})
