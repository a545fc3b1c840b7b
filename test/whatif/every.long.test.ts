// A what-if from every event of a long log with children, approvals and several runs.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type HarnessOptions, memory, type Request } from '../../src/index.ts'
import { readLog, whatIf } from '../../src/replay.ts'
import { saidIn, talking, type Talk, turnOf, wholeText, world } from './stage.ts'

/** The root looks, pays and asks children; a child looks, asks a child of its own, and pays. */
const TALK: Talk = (request) => {
  const said = saidIn(request)
  const task = said.at(-1) ?? ''
  const turn = turnOf(request)
  if (task.startsWith('small:'))
    return turn < 2 ? { calls: [{ tool: 'look', args: { what: `${task} ${turn}` } }] } : `${task} is small`
  if (task.startsWith('large:')) {
    if (turn === 0) return { calls: [{ tool: 'look', args: { what: task } }] }
    if (turn === 1) return { calls: [{ tool: 'subagent', args: { task: `small: below ${task.slice(7)}` } }] }
    return turn === 2 ? { calls: [{ tool: 'pay', args: { to: task, amount: turn } }] } : `${task} is large`
  }
  const n = said.length
  if (turn === 0)
    return { text: 'First a look.', calls: [1, 2].map((i) => ({ tool: 'look', args: { what: `run ${n}.${i}` } })) }
  if (turn === 1)
    return { calls: ['small: a', 'large: b'].map((each) => ({ tool: 'subagent', args: { task: `${each} ${n}` } })) }
  if (turn === 2) return { calls: [{ tool: 'pay', args: { to: `shop ${n}`, amount: n } }] }
  if (turn === 3)
    return {
      calls: [
        { tool: 'look', args: { what: 'same' } },
        { tool: 'look', args: { what: 'same' } },
      ],
    }
  return `Run ${n} is done.`
}

function agentOf(then: Request[]): HarnessOptions {
  const { look, pay } = world()
  const asked = defineTool({
    name: 'pay',
    description: pay.description,
    input: z.object({ to: z.string(), amount: z.number() }),
    approval: 'ask',
    execute: ({ to }) => `paid ${to}`,
  })
  return { model: talking(TALK, then), tools: [look, asked], instructions: 'Do it.', subagents: true, secrets: {} }
}

async function record(then: Request[]) {
  const store = memory()
  const harness = new Harness({ ...agentOf(then), store })
  const session = await harness.open()
  for (const text of ['First.', 'Second.', 'Third.', 'Fourth.']) {
    let { pending } = await session.run(text)
    while (pending.length > 0) {
      for (const call of pending) await session.decide({ ...call, allow: true, by: 'ann' })
      pending = (await session.run()).pending
    }
  }
  await harness.close()
  return { store, session: session.id }
}

describe('a what-if from every event', () => {
  it('B-WHATIF-2: settles, makes the same requests while nothing differs, and leaves the recording as it is', async () => {
    const then: Request[] = []
    const { store, session } = await record(then)
    const before = await wholeText(store, session)
    const log = await readLog(store, session)
    expect(log.length).toBeGreaterThanOrEqual(100)
    const recordedRequests = new Set(then.map(requestKey))
    for (let at = 1; at <= log.length; at++) {
      const now: Request[] = []
      const tried = await whatIf({ store, session }, { at, agent: agentOf(now), runs: 'all' })
      const { drift, settled, parked, diff, missing } = tried
      expect({ at, drift, settled, parked, missing }).toEqual({
        at,
        drift: 0,
        settled: { type: 'completed' },
        parked: [],
        missing: [],
      })
      expect(diff.first, `at ${at}`).toBe(null)
      for (const request of now) expect(recordedRequests.has(requestKey(request)), `at ${at}`).toBe(true)
    }
    expect(await wholeText(store, session)).toBe(before)
  }, 600_000)

  it('B-WHATIF-2: the recording alone answers for the model, and nothing is asked', async () => {
    const { store, session } = await record([])
    const log = await readLog(store, session)
    const { model: _model, ...agent } = agentOf([])
    for (let at = 1; at <= log.length; at++) {
      const { drift, settled, diff, cost } = await whatIf({ store, session }, { at, agent, runs: 'all' })
      expect({ at, drift, settled, first: diff.first, cost }).toEqual({
        at,
        drift: 0,
        settled: { type: 'completed' },
        first: null,
        cost: 0,
      })
    }
  }, 600_000)

  it('B-WHATIF-2: with other instructions it settles too', async () => {
    const { store, session } = await record([])
    const log = await readLog(store, session)
    for (let at = 1; at <= log.length; at++) {
      const now: Request[] = []
      const agent = { ...agentOf(now), instructions: 'Do it with care.' }
      const { settled, parked } = await whatIf({ store, session }, { at, agent })
      expect({ at, settled, parked }).toEqual({ at, settled: { type: 'completed' }, parked: [] })
      for (const { instructions } of now) expect(instructions, `at ${at}`).toContain('with care')
    }
  }, 600_000)
})

function requestKey(request: Request): string {
  return JSON.stringify(request)
}
