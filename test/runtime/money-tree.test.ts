// One budget for a session and its children: which day account is charged, where a child without money asks for more, and what
// an allowance does for every session of an account. On both stores. The money of a single session is money.test.ts.
import { describe, expect, it } from 'vitest'
import {
  ask,
  childrenOf,
  endsOf,
  eventsOf,
  family,
  gate,
  ofType,
  report,
  STORAGES,
  tool,
  use,
} from './children-stage.ts'
import { until } from '../until.ts'

const DAY_MS = 86_400_000
const cost = 60_000
/** Two calls at this cost use up $0.25. */
const MOST = 100_000

/** An account that does not cover one more call. */
function shortOf(limit: number) {
  return { limit, spent: expect.any(Number) as number, held: 0, needed: expect.any(Number) as number }
}

function spentOf(limit: number) {
  const amount = expect.any(Number) as number
  const amounts = { limitUsd: limit / 1_000_000, spentUsd: amount, heldUsd: 0, neededUsd: amount }
  return { costUsd: cost / 1_000_000, treeCostUsd: cost / 1_000_000, amounts }
}

describe.each(STORAGES)('the money of a family on %s', (storage) => {
  it("B-MONEY-26: a child pays on the day of its root's agent", async () => {
    const roles = {
      root: [
        { ...ask({ task: 'dig', agent: 'helper' }), cost },
        { text: 'done', cost },
      ],
      dig: [{ text: 'dug', cost }],
    }
    const subagents = { helper: { description: 'helps' } }
    const { harness, store } = family(roles, { storage, subagents, budget: { dayUsd: 0.3 } })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed' })
    const day = Math.floor(store.now() / DAY_MS)
    expect(await store.account(`day:default:${day}`)).toMatchObject({ limit: 300_000, spent: 3 * cost, held: 0 })
    expect(await store.account(`day:helper:${day}`)).toBeNull()
    // The next run does not get another day's budget.
    const next = await harness.run('Go.')
    expect(next).toMatchObject({ status: 'limit', limit: 'usd', account: 'day' })
  })

  it.each(['treeUsd', 'dayUsd', 'runUsd', 'sessionUsd'] as const)(
    'B-MONEY-27: %s that runs out inside a child is asked for at the top, and what is allowed there lets the child go on',
    async (kind) => {
      const roles = {
        root: [{ ...ask('dig'), cost: 1_000 }, report],
        dig: [
          { ...use('look'), cost },
          { text: 'dug', cost: 1_000 },
        ],
      }
      const { harness, store } = family(roles, { storage, tools: [tool('look')], budget: { [kind]: 0.13 } })
      const session = await harness.open()
      const parked = await session.run('Go.')
      const [child = ''] = await childrenOf(store, session.id)
      expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
      expect(parked.pending).toEqual([
        {
          callId: 'budget',
          tool: 'budget',
          args: { ...shortOf(130_000), account: kind.replace('Usd', '') },
          needs: 'approval',
          sessionId: child,
          path: [session.id, child],
          ...spentOf(130_000),
        },
      ])
      await session.decide({ callId: 'budget', allow: false, by: 'bob' })
      expect(await session.run()).toMatchObject({ status: 'requires_action', pending: [{ callId: 'budget' }] })
      await session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })
      const done = await session.run()
      expect(done).toMatchObject({ status: 'completed', text: expect.stringContaining('dug') as string, pending: [] })
      await expect(session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })).rejects.toMatchObject({
        code: 'decision_stale',
      })
    },
  )

  it('B-MONEY-27: several children that wait are allowed at once, and what they share is raised once', async () => {
    const roles = {
      root: [{ ...ask('dig', 'mine'), cost: 1_000 }, report],
      dig: [
        { ...use('look'), cost: MOST },
        { text: 'dug', cost: 1_000 },
      ],
      mine: [
        { ...use('look'), cost: MOST },
        { text: 'mined', cost: 1_000 },
      ],
    }
    const { harness, store } = family(roles, { storage, tools: [tool('look')], budget: { treeUsd: 0.25 } })
    const session = await harness.open()
    const parked = await session.run('Go.')
    expect(parked.pending.map(({ callId, args }) => [callId, args])).toEqual([
      ['budget', { ...shortOf(250_000), account: 'tree' }],
      ['budget', { ...shortOf(250_000), account: 'tree' }],
    ])
    await session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(await store.account(`tree:${session.id}`)).toMatchObject({ limit: 1_250_000, held: 0 })
  })

  it('B-MONEY-28: what is allowed counts from the next call on, also for children at work', async () => {
    const { opened, open } = gate()
    const wait = tool('wait', { execute: () => opened })
    const roles = {
      root: [{ ...ask('dig', 'mine'), cost: 1_000 }, report],
      dig: [
        { ...use('wait'), cost: MOST },
        { text: 'dug', cost: 1_000 },
      ],
      mine: [
        { ...use('look'), cost: MOST },
        { text: 'mined', cost: 1_000 },
      ],
    }
    const { harness, store } = family(roles, { storage, tools: [tool('look'), wait], budget: { treeUsd: 0.25 } })
    const session = await harness.open()
    const running = session.run('Go.')
    const [dig = '', mine = ''] = await until(async () => {
      const children = await childrenOf(store, session.id)
      expect(await Promise.all(children.map((id) => endsOf(store, id)))).toEqual([[], ['limit']])
      return children
    })
    await session.decide({ callId: 'budget', allow: true, usd: 1, by: 'ana' })
    await until(async () => expect(await endsOf(store, mine)).toEqual(['limit', 'completed']))
    expect(await endsOf(store, dig)).toEqual([])
    open()
    // The child that was at work all the time began with less money.
    expect(await running).toMatchObject({ status: 'completed' })
    expect(await store.account(`tree:${session.id}`)).toMatchObject({ limit: 1_250_000, held: 0 })
  })

  it('B-MONEY-33: the result and what is pending name the account that is empty, what it may spend and has spent, and what the next call needs', async () => {
    for (const kind of ['run', 'session', 'tree', 'day']) {
      const roles = { root: [{ ...use('look'), cost: 5_000 }, 'never'] }
      const budget = { [`${kind}Usd`]: 0.125 }
      const { harness, store } = family(roles, { storage, budget, tools: [tool('look')] })
      const result = await harness.run('Go.')
      const last = ofType(await eventsOf(store, result.sessionId), 'run.settled').at(-1)
      const needed = last?.outcome.type === 'limit' ? (last.outcome.short?.needed ?? 0) : 0
      const short = { limit: 125_000, spent: 5_000, held: 0, needed }
      expect(needed).toBeGreaterThan(120_000)
      expect(result).toMatchObject({ status: 'limit', limit: 'usd', account: kind, short })
      expect(result.pending).toMatchObject([{ callId: 'budget', args: { account: kind, ...short } }])
      // The next run has a budget of its own.
      if (kind === 'run') continue
      // Half of what is missing is not enough.
      const session = harness.session(result.sessionId)
      const missing = short.spent + needed - short.limit
      await session.decide({ callId: 'budget', allow: true, usd: missing / 2e6, by: 'ana' })
      expect(await session.run()).toMatchObject({ status: 'limit', account: kind })
    }
  })
})
