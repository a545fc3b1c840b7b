// Map and reduce as one graph: its policies, the time for one item and for all, how many run at once, and a stop.
import { expect, it } from 'vitest'
import { END, last, type MapPolicy, mapReduce, type MissingItem, START, withState } from '../../src/graphs/index.ts'
import type { ToolContext } from '../../src/index.ts'
import { moment } from './moment.ts'
import { failureIn, runOf, withGraphs } from './stage.ts'

const HUNDRED = Array.from({ length: 100 }, (_, i) => i)
const never = (): Promise<never> => new Promise(() => {})

type Work = (item: number, context: ToolContext) => number | Promise<number>
type Numbers = { readonly itemMs?: number; readonly totalMs?: number; readonly concurrency?: number }

function summed(map: Work, policy: MapPolicy, numbers: Numbers = {}) {
  return mapReduce<number, number>({
    name: 'sum',
    map,
    effect: 'read',
    policy,
    reduce: (results) => ({
      sum: results.reduce((sum, result) => sum + (result.ok ? result.value : 0), 0),
      failed: results.filter(({ ok }) => !ok).length,
    }),
    ...numbers,
  })
}

const picky: Work = (item) => {
  if (item < 0) throw new Error(`no ${item}`)
  return item * 10
}

it('B-GRAPH-70: mapReduce does the same with every item and one function with the results, by each policy (TA-41)', async () => {
  const items = [1, -2, 3, -4]
  const all = await runOf(summed(picky, 'collect-all'), { items })
  expect(all.result).toMatchObject({ status: 'completed', output: { value: { sum: 40, failed: 2 }, results: [] } })
  const best = await runOf(summed(picky, 'best-effort'), { items })
  expect(best.result).toMatchObject({ output: { value: { sum: 40, failed: 0 } } })
  // The first error in the order of the input, whichever came first.
  const slow: Work = async (item, context) => {
    if (item === -2) await new Promise((resolve) => setTimeout(resolve, 30))
    return picky(item, context)
  }
  expect(failureIn((await runOf(summed(slow, 'fail-fast'), { items })).result)).toContain('no -2')
  const two = await runOf(summed(picky, { quorum: 2 }), { items })
  expect(two.result).toMatchObject({ output: { value: { sum: 40 } } })
  expect(() => mapReduce({ name: 'x', map: picky, reduce: () => null, polcy: 'x' } as never)).toThrow('"polcy"')
})

it('B-GRAPH-71: an item has a time, so many run at once, and a stop stops them', async () => {
  let [running, most] = [0, 0]
  const map: Work = async (item) => {
    if (item === 7) return never()
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setTimeout(resolve, 2))
    running -= 1
    return item
  }
  const items = HUNDRED.slice(0, 20)
  const { result } = await runOf(summed(map, 'collect-all', { itemMs: 50, concurrency: 3 }), { items })
  expect(result).toMatchObject({ output: { value: { sum: 183, failed: 1 } } })
  expect(most).toBeLessThanOrEqual(3)
  const begun = moment()
  const aborted: number[] = []
  const hangs: Work = (item, { signal }) => {
    signal.addEventListener('abort', () => aborted.push(item))
    begun.come()
    return never()
  }
  const session = await withGraphs([summed(hangs, 'collect-all', { concurrency: 2 })]).open({ agent: 'sum' })
  const stopped = session.run({ items: [1, 2, 3] })
  await begun.here
  await session.interrupt()
  expect((await stopped).status).toBe('interrupted')
  expect(aborted).not.toContain(3)
})

it('B-GRAPH-72: a map of 100 with a time of 1 s and a quorum of 60 is done as soon as 60 are, though some hang (E15)', async () => {
  const ran: number[] = []
  const map: Work = (item) => {
    ran.push(item)
    return item < 10 ? never() : 1
  }
  const from = performance.now()
  const { result } = await runOf(summed(map, { quorum: 60 }, { totalMs: 1_000 }), { items: HUNDRED })
  expect(performance.now() - from).toBeLessThan(900)
  expect(result).toMatchObject({ status: 'completed', output: { value: { sum: 60, failed: 0 } } })
  expect(ran.length).toBeLessThan(90)
})

it('B-GRAPH-72: with 41 that hang there is no quorum of 60, and the run fails with QuorumNotMet after 1 s (E15)', async () => {
  const from = performance.now()
  const map: Work = (item) => (item >= 59 ? never() : 1)
  const { result } = await runOf(summed(map, { quorum: 60 }, { totalMs: 1_000 }), { items: HUNDRED })
  const took = performance.now() - from
  expect(failureIn(result)).toContain('QuorumNotMet: 59 of 100 succeeded, and 60 must.')
  expect(took).toBeGreaterThanOrEqual(990)
  expect(took).toBeLessThan(2_000)
})

it('B-LOSS-3: what is missing from the value of mapReduce is named in its output, by every policy that goes on without it', async () => {
  const items = [1, -2, 3, -4, 5]
  const lost = [
    { index: 1, error: 'Error: no -2' },
    { index: 3, error: 'Error: no -4' },
  ]
  const told: unknown[] = []
  const policies: MapPolicy[] = ['collect-all', 'best-effort', { quorum: 2 }]
  for (const policy of policies) {
    const graph = mapReduce<number, number>({
      name: 'sum',
      map: picky,
      effect: 'read',
      policy,
      concurrency: 4,
      reduce: (results, missing) => {
        told.push(missing)
        return results.reduce((sum, result) => sum + (result.ok ? result.value : 0), 0)
      },
    })
    const { result, session } = await runOf(graph, { items })
    const notRun = policy === policies[2] ? [{ index: 4, error: 'It did not run.' }] : []
    const value = notRun.length > 0 ? 40 : 90
    expect(result).toMatchObject({ status: 'completed', output: { value, missing: [...lost, ...notRun] } })
    expect(told.at(-1)).toEqual([...lost, ...notRun])
    const whole = await session.run({ items: [1, 2] })
    expect(whole).toMatchObject({ output: { value: 30, missing: [] } })
  }
})

it('B-LOSS-3: the take of a node with many items is told what is missing', async () => {
  const { mapNode, graph } = withState({
    items: last<readonly number[]>([]),
    missing: last<readonly MissingItem[]>([]),
  })
  const gather = graph({
    name: 'gather',
    nodes: {
      map: mapNode<number, number>({
        over: ({ items }) => items,
        run: picky,
        effect: 'read',
        policy: 'best-effort',
        take: (_results, _state, missing) => ({ missing }),
      }),
    },
    edges: [
      [START, 'map'],
      ['map', END],
    ],
  })
  const { result } = await runOf(gather, { items: [1, -2] })
  expect(result).toMatchObject({ output: { missing: [{ index: 1, error: 'Error: no -2' }] } })
})
