// Map and reduce whose workers are lost: each next worker takes the session over, as another process does after a crash.
import { expect, it } from 'vitest'
import type { Harness } from '../../src/index.ts'
import { mapReduce } from '../../src/graphs/index.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import { moment } from './moment.ts'
import { eventsIn, failureIn, ofType, withGraphs } from './stage.ts'

const ITEMS = [1, 2, 3, 4, 5]

/** The item 3 hangs, and says that it runs, unless `whole`. */
function summing(whole: boolean, effect: 'read' | 'once', begun = moment()) {
  const map = (item: number): number | Promise<number> => {
    if (item !== 3 || whole) return item
    begun.come()
    return new Promise(() => {})
  }
  const reduce = (results: readonly { readonly ok: boolean; readonly value?: number }[]): number =>
    results.reduce((sum, { value = 0 }) => sum + value, 0)
  return { begun, graph: mapReduce<number, number>({ name: 'sum', map, effect, reduce }) }
}

/** So many workers are lost, one after the other, and one more takes the session. */
async function lose(workers: number, effect: 'read' | 'once' = 'read') {
  const store = memory()
  const taken: Harness[] = []
  for (let lost = 0; lost < workers; lost++) {
    const { graph, begun } = summing(false, effect)
    const harness = withGraphs([graph], { store, worker: { id: 'shared', graceMs: 50 } })
    const session = lost === 0 ? await harness.open({ id: 's', agent: 'sum' }) : harness.session('s')
    void session.run(lost === 0 ? { items: ITEMS } : undefined).catch(() => {})
    await begun.here
    taken.push(harness)
  }
  const last = withGraphs([summing(true, effect).graph], { store, worker: { id: 'shared' } }).session('s')
  const result = await last.run()
  for (const harness of taken) await harness.close()
  return { session: last, result }
}

it('B-LOSS-4: the total of mapReduce is whole after as many lost workers as the run allows', async () => {
  for (const workers of [3, 7]) {
    const { result, session } = await lose(workers)
    expect(result).toMatchObject({ status: 'completed', output: { value: 15, missing: [] } })
    const events = await eventsIn(session)
    const third = ofType(events, 'agent.tool_use').filter(({ call }) => call.endsWith('.2'))
    expect(third).toHaveLength(workers + 1)
    expect(new Set(third.map(({ call }) => call)).size).toBe(1)
  }
})

it('B-LOSS-4: after more lost workers the run fails without a total, and a retry does only what is missing', async () => {
  const { result, session } = await lose(8)
  expect(failureIn(result)).toContain('crashed_too_often')
  const again = await session.run({ retry: true })
  expect(again).toMatchObject({ status: 'completed', output: { value: 15, missing: [] } })
  const replies = ofType(await eventsIn(session), 'agent.message')
  expect(replies.map(({ calls }) => calls.length)).toEqual([5, 1, 1, 0])
})

it('B-LOSS-3: an item that may run once and was lost is missing by its name', async () => {
  const { result } = await lose(1, 'once')
  expect(result).toMatchObject({ status: 'completed', output: { value: 12, missing: [{ index: 2 }] } })
  expect(JSON.stringify(result)).toContain('The worker was lost while this ran.')
})

it('B-LOSS-6: a node whose worker is stopped in order is repeated by the next one under its key, and fails nothing', async () => {
  const store = memory()
  for (const effect of ['read', 'once'] as const) {
    const { graph, begun } = summing(false, effect)
    const first = withGraphs([graph], { store, worker: { graceMs: 50 } })
    const session = await first.open({ id: effect, agent: 'sum' })
    void session.run({ items: ITEMS }).catch(() => {})
    await begun.here
    await first.close()
    const next = withGraphs([summing(true, effect).graph], { store })
    const result = await next.session(effect).run()
    const missing = effect === 'once' ? [{ index: 2 }] : []
    expect(result).toMatchObject({ status: 'completed', output: { value: effect === 'once' ? 12 : 15, missing } })
    const third = ofType(await eventsIn(next.session(effect)), 'agent.tool_use').filter(({ call }) =>
      call.endsWith('.2'),
    )
    expect(new Set(third.map(({ call }) => call)).size).toBe(1)
    expect(third).toHaveLength(effect === 'once' ? 1 : 2)
    await next.close()
  }
})
