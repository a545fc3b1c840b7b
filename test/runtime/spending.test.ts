// What a run and its children spent, as results, cards and lists report it: at any depth, at once, after failures, interrupts,
// answers and restarts. Which account pays, and what is refused, is money-tree.test.ts.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, type Result, type CompleteStore } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { ask, childrenOf, eventsOf, family, gate, play, STORAGES, storeOf, tool, use } from './children-stage.ts'

const usage = { inputTokens: 10, outputTokens: 2, cachedTokens: 4, cacheWriteTokens: 3, reasoningTokens: 1 }

/** A reply that costs this, and used ten tokens. */
function paid<T extends object>(step: T, cost: number): T & { cost: number; usage: typeof usage } {
  return { ...step, cost, usage }
}

const TREE = {
  root: [paid(ask('dig', 'mine'), 1), paid({ text: 'done' }, 2)],
  dig: [paid(ask('deep'), 10), paid({ text: 'dug' }, 20)],
  deep: [paid(use('look'), 100), paid({ text: 'deep' }, 200)],
  mine: [paid(use('look'), 1_000), { error: 'bad_request' as const, message: 'no' }],
}
const ALL = 1_333

async function costIn(store: CompleteStore, session: string): Promise<number> {
  const events = await eventsOf(store, session)
  return events.reduce((sum, event) => sum + ('cost' in event ? (event.cost ?? 0) : 0), 0)
}

function spent({ usage: { modelRequests, toolCalls, inputTokens }, cost }: Result) {
  return { modelRequests, toolCalls, inputTokens, cost: cost.micros }
}

describe.each(STORAGES)('what a tree spent, on %s', (storage) => {
  it('B-CHILD-56: usage and cost of a result count the children of the run, at any depth, also those that failed; own does not', async () => {
    const { harness } = family(TREE, { storage, tools: [tool('look')] })
    const result = await harness.run('Go.')
    expect(result.status).toBe('completed')
    expect(spent(result)).toEqual({ modelRequests: 7, toolCalls: 5, inputTokens: 70, cost: ALL })
    expect(result.ownUsage).toMatchObject({ modelRequests: 2, toolCalls: 2, inputTokens: 20 })
    expect(result.cost.ownUsd).toBe(3 / 1_000_000)
    expect(result.usage).toMatchObject({ cachedTokens: 28, cacheWriteTokens: 21, reasoningTokens: 7, outputTokens: 14 })
    // Read again, it is the same.
    expect(spent(await harness.session(result.sessionId).run())).toEqual(spent(result))
  })

  it('B-VERB-25: results, cards and pending calls say it in dollars: of the session alone, and with its children', async () => {
    const { harness } = family(TREE, { storage, tools: [tool('look')] })
    const result = await harness.run('Go.')
    expect([result.cost.ownUsd, result.cost.usd]).toEqual([3 / 1_000_000, ALL / 1_000_000])
    expect([result.cost.micros, result.cost.ownUsd]).toEqual([ALL, 3 / 1_000_000])
    const [card] = (await harness.list({ order: 'id', root: result.sessionId, limit: 1 })).cards
    expect([card?.costUsd, card?.treeCostUsd]).toEqual([3 / 1_000_000, ALL / 1_000_000])
    const state = await harness.session(result.sessionId).status()
    expect([state.cost.ownUsd, state.cost.usd]).toEqual([3 / 1_000_000, ALL / 1_000_000])
    const asking = family(
      {
        root: [paid(ask('paint'), 1), paid({ text: 'Which?' }, 2)],
        paint: [paid(use('ask_user', { question: 'Which?' }), 100)],
      },
      { storage, tools: [askUserTool()] },
    ).harness
    const waits = await (await asking.open()).run('Go.')
    const [below] = await asking.pending()
    expect([below?.costUsd, below?.treeCostUsd, below?.needs]).toEqual([100 / 1_000_000, 100 / 1_000_000, 'answer'])
    expect(waits.status).toBe('completed')
  })

  it('B-CHILD-57: each card of a list has its own cost and that of the tree below it', async () => {
    const { harness, store } = family(TREE, { storage, tools: [tool('look')] })
    const { sessionId } = await harness.run('Go.')
    const other = await harness.run('Go.')
    const cards = (await harness.list({ order: 'id', limit: 500, root: sessionId })).cards
    expect(cards.map(({ cost, treeCost }) => [cost, treeCost]).sort(([a = 0], [b = 0]) => a - b)).toEqual([
      [3, ALL],
      [30, 330],
      [300, 300],
      [1_000, 1_000],
    ])
    const roots = (await harness.list({ order: 'id', limit: 500 })).cards.filter(
      ({ session, root }) => session === root,
    )
    expect(roots.map(({ treeCost }) => treeCost)).toEqual([ALL, ALL])
    expect(await costIn(store, other.sessionId)).toBe(3)
  })

  it('B-CHILD-58: a run that waits, and the run after it, count what children did for each of them, once', async () => {
    let child = ''
    const roles = {
      root: [
        paid(ask('paint'), 1),
        paid({ text: 'Which?' }, 2),
        () => paid(ask({ task: 'red', session: child }), 4),
        paid({ text: 'end' }, 8),
      ],
      paint: [paid(use('ask_user', { question: 'Which?' }), 100), paid({ text: 'painted' }, 200)],
    }
    const { harness, store } = family(roles, { storage, tools: [askUserTool()] })
    const session = await harness.open()
    const first = await session.run('Go.')
    expect([first.status, first.cost.micros, first.cost.ownUsd]).toEqual(['completed', 103, 3 / 1_000_000])
    ;[child = ''] = await childrenOf(store, session.id)
    const second = await session.run('Red.')
    expect([second.status, second.cost.micros, second.cost.ownUsd]).toEqual(['completed', 212, 12 / 1_000_000])
    expect((await harness.list({ order: 'id', limit: 500, root: session.id })).cards[0]?.treeCost).toBe(315)
  })

  it('B-CHILD-58: a child that is interrupted counts with what it had used', async () => {
    const { opened, open } = gate()
    const begun = gate()
    const wait = tool('wait', {
      execute: async () => {
        begun.open()
        await opened
        return 'waited'
      },
    })
    const roles = { root: [paid(ask('dig'), 1), 'never'], dig: [paid(use('wait'), 10), 'never'] }
    const { harness, store } = family(roles, { storage, tools: [wait] })
    const session = await harness.open()
    const running = session.run('Go.')
    await begun.opened
    await session.interrupt()
    open()
    expect(await running).toMatchObject({ status: 'interrupted', cost: { micros: 11, ownUsd: 1 / 1_000_000 } })
    expect(await costIn(store, session.id)).toBe(1)
  })

  it('B-CHILD-58: another process that goes on counts what was spent before it, once', async () => {
    const store = storeOf(storage)
    const { opened, open } = gate()
    const begun = gate()
    const roles = {
      root: [paid(ask('dig'), 1), paid({ text: 'done' }, 2)],
      dig: [paid(use('wait'), 10), paid({ text: 'dug' }, 20)],
    }
    const slow = tool('wait', {
      execute: async () => {
        begun.open()
        await opened
        return 'waited'
      },
    })
    const first = new Harness({
      model: play(roles),
      store,
      subagents: true,
      tools: [slow],
      secrets: {},
      worker: { graceMs: 10 },
    })
    const session = await first.open()
    const running = session.run('Go.')
    await begun.opened
    const closing = first.close()
    open()
    await Promise.allSettled([running, closing])
    const second = new Harness({ model: play(roles), store, subagents: true, tools: [tool('wait')], secrets: {} })
    onTestFinished(() => second.close())
    expect(await second.session(session.id).run()).toMatchObject({
      status: 'completed',
      cost: { micros: 33, ownUsd: 3 / 1_000_000 },
    })
  })

  it('B-CHILD-59: a fork counts only what it spends itself', async () => {
    const { harness } = family(
      { ...TREE, root: [...TREE.root, paid({ text: 'more' }, 5)] },
      { storage, tools: [tool('look')] },
    )
    const { sessionId } = await harness.run('Go.')
    const fork = await harness.session(sessionId).fork()
    expect(await fork.run('And?')).toMatchObject({ cost: { micros: 5, ownUsd: 5 / 1_000_000 } })
    expect(
      (await harness.list({ order: 'id', limit: 500, root: fork.id })).cards.map(({ treeCost }) => treeCost),
    ).toEqual([5])
  })
})
