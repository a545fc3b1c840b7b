// One node over many items: which items run, how their results are combined, and what a failing item does to the others.
import { describe, expect, it } from 'vitest'
import { append, END, last, type MapPolicy, START, withState } from '../../src/graphs/index.ts'
import { nodeStatus } from '../../src/graphs/node-status.ts'
import { FakeClock } from '../models/fake-clock.ts'
import { moment } from './moment.ts'
import { eventsIn, failureIn, ofType, runOf, turnsOf, withGraphs } from './stage.ts'

const { mapNode, node, graph } = withState({ items: append<string>(), results: append<string>(), note: last('') })

type Run = (item: string, context: { readonly signal: AbortSignal }) => string | Promise<string>
type Options = {
  readonly policy?: MapPolicy
  readonly retries?: number
  readonly timeoutMs?: number
  readonly totalMs?: number
  readonly parallel?: number
}

function mapped(run: Run, { policy, retries = 0, timeoutMs = 60_000, totalMs, parallel = 16 }: Options = {}) {
  const each = mapNode({
    over: ({ items }) => items,
    run,
    effect: 'read',
    retries,
    timeoutMs,
    ...(policy === undefined ? {} : { policy }),
    ...(totalMs === undefined ? {} : { totalMs }),
    take: (results) => ({
      results: results.map((result) => `${result.index} ${result.ok ? result.value : result.error}`),
    }),
  })
  return graph({
    name: 'mapped',
    nodes: { each },
    edges: [
      [START, 'each'],
      ['each', END],
    ],
    limits: { parallel },
  })
}

/** Fails for what begins with "bad". */
const picky: Run = (item) => {
  if (item.startsWith('bad')) throw new Error(item)
  return item.toUpperCase()
}

describe('a map', () => {
  it('B-GRAPH-41: calls its node once for each item; all run, and the results are in the order of the input (AC-92)', async () => {
    const done = moment()
    const run: Run = async (item) => {
      if (item === 'a') await done.here
      if (item === 'c') done.come()
      return picky(item, { signal: new AbortController().signal })
    }
    const { result, session } = await runOf(mapped(run), { items: ['a', 'bad 1', 'c', 'bad 2'] })
    expect(result).toMatchObject({
      status: 'completed',
      output: { results: ['0 A', '1 Error: bad 1', '2 C', '3 Error: bad 2'] },
    })
    expect(await turnsOf(session)).toEqual([['each', 'each', 'each', 'each'], []])
  })

  it('B-GRAPH-42: fail-fast ends with the first error in the order of the input, whichever item failed first, and starts no more (AC-92)', async () => {
    const late = moment()
    const ran: string[] = []
    const run: Run = async (item, context) => {
      ran.push(item)
      if (item === 'bad first') await late.here
      if (item === 'bad second') late.come()
      return picky(item, context)
    }
    const items = ['a', 'bad first', 'bad second', 'never', 'never']
    const { result, session } = await runOf(mapped(run, { policy: 'fail-fast', parallel: 3 }), { items })
    expect(failureIn(result)).toBe('planner_failed: Node "each" failed: Error: bad first')
    expect(ran).toEqual(['a', 'bad first', 'bad second'])
    // The second item fails first in time. The log keeps that order; the outcome does not depend on it.
    const results = ofType(await eventsIn(session), 'agent.tool_result')
    expect(results.map(({ content }) => content)).toEqual([
      '"A"',
      '{"error":"Error: bad second"}',
      '{"error":"Error: bad first"}',
    ])
    expect(
      (await runOf(mapped(picky, { policy: 'fail-fast', parallel: 1 }), { items: ['a', 'b'] })).result,
    ).toMatchObject({
      output: { results: ['0 A', '1 B'] },
    })
  })

  it('B-GRAPH-42: fail-fast lets an item that is tried again have its word before an error that stands after it', () => {
    const [retried, failed, unrun] = [{ tries: 1 }, { tries: 1, error: 'later' }, { tries: 0 }]
    expect(nodeStatus('fail-fast', [retried, failed, unrun], 16)).toEqual({ type: 'wants', items: [0] })
    const first = { tries: 2, error: 'first' }
    expect(nodeStatus('fail-fast', [first, failed, unrun], 16)).toEqual({ type: 'failed', error: 'first' })
    const done = { tries: 2, value: null }
    expect(nodeStatus('fail-fast', [done, failed, unrun], 16)).toEqual({ type: 'failed', error: 'later' })
  })

  it('B-GRAPH-43: a quorum is met as soon as so many succeeded, and missed as soon as they cannot (AC-92)', async () => {
    const ran: string[] = []
    const run: Run = (item, context) => {
      ran.push(item)
      return picky(item, context)
    }
    const policy = { quorum: 2 }
    const met = await runOf(mapped(run, { policy, parallel: 2 }), { items: ['bad', 'b', 'c', 'd', 'e', 'f'] })
    expect(met.result).toMatchObject({ output: { results: ['1 B', '2 C', '3 D'] } })
    expect(ran).toEqual(['bad', 'b', 'c', 'd'])
    const missed = await runOf(mapped(run, { policy, parallel: 2 }), { items: ['bad 1', 'bad 2', 'c'] })
    expect(failureIn(missed.result)).toContain(
      'QuorumNotMet: 0 of 3 succeeded, and 2 must. The first error: Error: bad 1',
    )
    expect(ran).toHaveLength(6)
  })

  it('B-GRAPH-44: best-effort takes what succeeded, and says nothing of the rest (AC-92)', async () => {
    const { result } = await runOf(mapped(picky, { policy: 'best-effort' }), { items: ['bad', 'b', 'bad', 'd'] })
    expect(result).toMatchObject({ status: 'completed', output: { results: ['1 B', '3 D'] } })
  })

  it('B-GRAPH-60: all items together may have a time: what is not done then has failed, also what was not begun (TA-41)', async () => {
    const begun: string[] = []
    const aborted: string[] = []
    // The time is over as soon as the slow item has begun, and not before.
    const clock = new FakeClock()
    const options = { system: { clock } }
    const run: Run = (item, { signal }) => {
      begun.push(item)
      if (item !== 'slow') return item.toUpperCase()
      signal.addEventListener('abort', () => aborted.push(item))
      setImmediate(() => clock.advance(50))
      return new Promise(() => {})
    }
    const items = ['a', 'slow', 'c']
    const late = 'Timeout: All items together may take 50 ms.'
    const one = await runOf(mapped(run, { totalMs: 50, parallel: 1, retries: 3 }), { items }, options)
    expect(one.result).toMatchObject({ output: { results: ['0 A', `1 ${late}`, `2 ${late}`] } })
    expect([begun, aborted]).toEqual([['a', 'slow'], ['slow']])
    const quorum = await runOf(mapped(run, { totalMs: 50, parallel: 1, policy: { quorum: 2 } }), { items }, options)
    expect(failureIn(quorum.result)).toContain('QuorumNotMet: 1 of 3 succeeded')
    // A retry begins a new time.
    const session = quorum.session
    const again = await session.run({ edit: { items: ['a', 'b', 'c'] } })
    expect(again).toMatchObject({ status: 'completed', output: { results: ['0 A', '1 B'] } })
    expect(() => mapped(run, { totalMs: -1 })).toThrow('"totalMs"')
  })

  it('B-GRAPH-45: an item that takes too long fails alone (AC-92)', async () => {
    const run: Run = (item, { signal }) => {
      if (item !== 'slow') return item.toUpperCase()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('late'))))
    }
    const { result } = await runOf(mapped(run, { timeoutMs: 30 }), { items: ['a', 'slow', 'c'] })
    expect(result).toMatchObject({
      status: 'completed',
      output: { results: ['0 A', '1 Timed out after 30 ms.', '2 C'] },
    })
  })

  it('B-GRAPH-46: no more items run at once than the limit of parallel calls', async () => {
    let [now, most] = [0, 0]
    const run: Run = async (item) => {
      now += 1
      most = Math.max(most, now)
      await Promise.resolve()
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      return item
    }
    const items = Array.from({ length: 20 }, (_, i) => `i${i}`)
    const { result } = await runOf(mapped(run, { parallel: 3 }), { items })
    expect(result).toMatchObject({ output: { results: items.map((item, i) => `${i} ${item}`) } })
    expect(most).toBe(3)
  })

  it('B-GRAPH-47: only items that failed are tried again, and after an edit those that are others now', async () => {
    const ran: string[] = []
    let broken = 3
    const run: Run = (item) => {
      ran.push(item)
      if (item === 'b' && broken-- > 0) throw new Error('not yet')
      return item.toUpperCase()
    }
    const made = mapped(run, { policy: 'fail-fast', retries: 1 })
    const { result, session } = await runOf(made, { items: ['a', 'b', 'c'] })
    expect(failureIn(result)).toContain('Error: not yet')
    expect(ran).toEqual(['a', 'b', 'c', 'b'])
    expect(await session.run({ edit: { items: ['a', 'b', 'x', 'y'] } })).toMatchObject({
      output: { results: ['0 A', '1 B', '2 X', '3 Y'] },
    })
    expect(ran).toEqual(['a', 'b', 'c', 'b', 'b', 'x', 'y', 'b'])
  })

  it('B-GRAPH-48: over nothing it is done at once, and a graph that only goes round such nodes is stopped', async () => {
    expect((await runOf(mapped(picky))).result).toMatchObject({ status: 'completed', output: { results: [] } })
    const none = mapNode({ over: () => [] as string[], run: (item) => item, take: () => ({}) })
    const round = graph({
      name: 'round',
      nodes: { none, end: node({ run: () => ({}) }) },
      edges: [[START, 'none'], { from: 'none', to: ['none', 'end'], by: () => 'none' }, ['end', END]],
    })
    const result = await withGraphs([round]).run({}, { agent: 'round' })
    expect(failureIn(result)).toContain('RecursionLimit: 1000 supersteps')
  })
})
