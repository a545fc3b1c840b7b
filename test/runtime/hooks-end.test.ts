// Hooks that see how a run goes and how it ends: limits, the end itself, stop hooks, and what comes after the answer.
import { describe, expect, it } from 'vitest'
import {
  type Hook,
  type HookEvents,
  type Model,
  ModelRetry,
  type Result,
  scripted,
  stopAtRequests,
  stopAtUsd,
  type ToolSource,
} from '../../src/index.ts'
import {
  call,
  calls,
  eventsOf,
  Gate,
  type Given,
  noting,
  resultsIn,
  type Staged,
  stage,
  storages,
} from './hooks-stage.ts'
import { make } from './scene.ts'

type Told = { readonly type: string; readonly event: HookEvents['run_end'] | HookEvents['limit_reached'] }

/** Hooks that note the end of runs and what limit was reached. */
function watching(): { readonly hooks: readonly Hook[]; readonly told: Told[] } {
  const told: Told[] = []
  const hooks: readonly Hook[] = [
    { type: 'run_end', run: (event) => void told.push({ type: 'run_end', event }) },
    { type: 'limit_reached', run: (event) => void told.push({ type: 'limit_reached', event }) },
  ]
  return { hooks, told }
}

const look = noting()('look')
const always = () => calls(call('look'))

describe.each(Object.entries(storages))('the end of a run on %s', (_name, storage) => {
  it('B-HOOK-16: run_end is told once, before the caller has the answer: of success, failure, a limit, a cancel and a start that failed (AC-1, AC-8, AC-55, S0-18)', async () => {
    const asked: string[] = []
    const gate = new Gate<string>()
    const slow = noting()('slow', { execute: () => gate.wait() })
    const broken: ToolSource = {
      type: 'source',
      name: 'broken',
      tools: () => Promise.reject(new Error('nobody there')),
      close: async () => {},
    }
    const after: Hook = { type: 'after_tool_call', run: ({ tool }) => void asked.push(tool) }
    const ends: readonly (readonly [string, Parameters<typeof stage>[0], Given])[] = [
      ['end_turn', ['Done.'], {}],
      ['provider_error', [{ error: 'auth' }], {}],
      ['limit_reached', ['Done.'], { limits: { modelRequests: 0 } }],
      ['cancelled', [calls(call('slow')), 'Done.'], { tools: [slow], worker: { graceMs: 10 } }],
      ['prepare_failed', ['Done.'], { tools: [broken] }],
    ]
    for (const [stopReason, script, given] of ends) {
      const { hooks, told } = watching()
      const { harness, requests } = stage(script, [...hooks, after], { storage, ...given })
      const session = await harness.open()
      const running = session.run('Go.')
      if (stopReason === 'cancelled') {
        await gate.reached
        await session.interrupt()
      }
      const result = await running
      expect(result.stopReason).toBe(stopReason)
      expect(told.filter(({ type }) => type === 'run_end')).toEqual([
        { type: 'run_end', event: { session: session.id, agent: 'default', metadata: {}, result } },
      ])
      if (stopReason === 'limit_reached') expect(requests).toEqual([])
      if (stopReason !== 'prepare_failed')
        expect((await session.run('Again.')).stopReason).toMatch(/end_turn|provider_error|limit_reached/)
    }
    expect(asked).toEqual([])
  })

  it('B-HOOK-17: limit_reached names the limit with its value and its count, before run_end', async () => {
    const reached = async (script: Parameters<typeof stage>[0], given: Given): Promise<[Result, Told[]]> => {
      const { hooks, told } = watching()
      const { harness } = stage(script, hooks, { storage, tools: [look], ...given })
      return [await harness.run('Go.'), told]
    }
    const [, requests] = await reached(always, { limits: { modelRequests: 2 } })
    expect(requests.map(({ type }) => type)).toEqual(['limit_reached', 'run_end'])
    expect(requests[0]?.event).toMatchObject({ limit: 'model_requests', value: 2, count: 2, agent: 'default' })

    const [over, many] = await reached([calls(call('look', 1), call('look', 2))], { limits: { toolCalls: 1 } })
    expect(many[0]?.event).toMatchObject({ limit: 'tool_calls', value: 1, count: over.usage.toolCalls })

    const usage = { inputTokens: 30, outputTokens: 20 }
    const [, tokens] = await reached(() => ({ ...always(), usage }), { limits: { tokens: 80 } })
    expect(tokens[0]?.event).toMatchObject({ limit: 'tokens', value: 80, count: 100 })
  })

  it('B-HOOK-65: a full context is a reached limit with the tokens of the next request as its count, and not with money', async () => {
    const profile = async () => ({ price: { input: 1, output: 1 }, known: true, contextTokens: 1_000, cost: () => 7 })
    const usage = { inputTokens: 990, outputTokens: 5 }
    const full = scripted(() => ({ ...always(), usage }))
    const model = {
      ...full,
      able: { name: 'sized', native: 'no' as const },
      outputTokensMax: 100,
      secrets: {},
      profile,
    }
    const { hooks, told } = watching()
    const harness = make(model, { store: storage(), tools: [look], hooks, context: { compaction: false } })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'limit', limit: 'context' })
    const count = result.context?.tokens ?? 0
    expect(count).toBeGreaterThan(950)
    expect(told[0]?.event).toMatchObject({ limit: 'context', value: null, count })
  })

  it('B-HOOK-18: used up retries are a reached limit, with the number that the tool itself was given (S0-32)', async () => {
    const picky = (retries?: number) =>
      noting()('picky', {
        ...(retries === undefined ? {} : { retries }),
        execute: () => {
          throw new ModelRetry('Say it better.')
        },
      })
    for (const [tool, value] of [
      [picky(), 1],
      [picky(0), 0],
      [picky(2), 2],
    ] as const) {
      const { hooks, told } = watching()
      const { harness } = stage(() => calls(call('picky')), hooks, {
        storage,
        tools: [tool],
        limits: { toolRetries: 1 },
      })
      expect(await harness.run('Go.')).toMatchObject({ status: 'failed', stopReason: 'tool_retries_exceeded' })
      expect(told.map(({ type }) => type)).toEqual(['limit_reached', 'run_end'])
      expect(told[0]?.event).toMatchObject({ limit: 'tool_retries', value, count: value + 1 })
    }
  })

  it('B-HOOK-19: a notice that a limit is near is not a reached limit (AC-6)', async () => {
    const { hooks, told } = watching()
    const staged = stage([calls(call('look')), 'Done.'], hooks, {
      storage,
      tools: [look],
      limits: { modelRequests: 2, toolCalls: 1 },
    })
    const result = await staged.harness.run('Go.')
    expect(result.status).toBe('completed')
    expect((await eventsOf(staged, result.sessionId, 'note.added')).length).toBeGreaterThan(0)
    expect(told.map(({ type }) => type)).toEqual(['run_end'])
  })

  it('B-HOOK-20: a stop hook ends the run after a reply: its calls are not run and have results, and what was done is in the result', async () => {
    const ran: string[] = []
    const seen: string[] = []
    const asked: HookEvents['stop'][] = []
    const watch: Hook = { type: 'stop', run: (event) => void asked.push(event) }
    const stop: Hook = { type: 'stop', run: ({ requests }) => (requests === 2 ? { stop: 'Enough.' } : undefined) }
    const never: Hook = { type: 'stop', run: ({ requests }) => (requests === 2 ? { stop: 'Never said.' } : undefined) }
    const script = [1, 2].map((n) => ({ text: `Step ${n}.`, cost: n, calls: [call('look', n), call('look', -n)] }))
    // A call that is wrong is not shown to the hook after calls either, when nothing of its reply counts.
    script[1]?.calls.push({ tool: 'look', args: { n: Number.NaN }, id: 'wrong' })
    const after: Hook = { type: 'after_tool_call', run: ({ call: key }) => void seen.push(key) }
    const staged = stage([...script, 'Done.'], [watch, stop, never, after], { storage, tools: [noting(ran)('look')] })
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({ status: 'halted', stopReason: 'halted', reason: 'Enough.', said: 'Step 2.' })
    expect(ran.toSorted()).toEqual(['look -1', 'look 1'])
    expect(staged.requests).toHaveLength(2)
    const at = { session: result.sessionId, agent: 'default', metadata: {}, requestsMax: 64, model: 'scripted' }
    expect(asked).toEqual([
      { ...at, requests: 1, cost: 1, costUsd: 0.000001 },
      { ...at, requests: 2, cost: 3, costUsd: 0.000003 },
    ])
    const results = await eventsOf(staged, result.sessionId, 'agent.tool_result')
    expect(results.slice(2)).toMatchObject([
      { status: 'aborted', content: 'Not run: Enough.' },
      { status: 'aborted', content: 'Not run: Enough.' },
      { status: 'aborted', content: 'Not run: Enough.' },
    ])
    expect(seen).toHaveLength(2)
    expect(result.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'assistant',
      'tool',
      'tool',
      'tool',
    ])
    const [, second] = await eventsOf(staged, result.sessionId, 'agent.message')
    expect(second?.verdict).toEqual({ type: 'stop', reason: 'Enough.' })
    expect((await staged.harness.session(result.sessionId).run('Go on.')).text).toBe('Done.')
  })

  it('B-HOOK-21: stopAtUsd stops at its cap, and a cap that is no amount of money stops at once (AC-105)', async () => {
    const spend = (cap: number, cost: number): Staged => {
      return stage(() => ({ ...always(), cost }), [stopAtUsd(cap)], { storage, tools: [look] })
    }
    for (const cap of [Number.NaN, 0, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const { harness, requests } = spend(cap, 1)
      expect(await harness.run('Go.')).toMatchObject({ status: 'halted', usage: { modelRequests: 1, toolCalls: 0 } })
      expect(requests).toHaveLength(1)
    }
    const { harness } = spend(0.003, 1_000)
    expect(await harness.run('Go.')).toMatchObject({
      status: 'halted',
      reason: 'The run has cost $0.003, and may cost $0.003.',
      usage: { modelRequests: 3 },
    })
  })

  it('B-HOOK-51: a model that says what it used and not what it costs is not free; one that says 0 is', async () => {
    for (const [cost, end] of [
      [undefined, { status: 'halted', cost: { micros: 36_000 }, usage: { modelRequests: 2 } }],
      [0, { status: 'limit', cost: { micros: 0 }, usage: { modelRequests: 4 } }],
    ] as const) {
      let n = 0
      const model: Model = {
        name: 'own',
        call: async () => ({
          type: 'reply',
          parts: [],
          calls: [{ id: 'c', tool: 'look', args: `{"n":${(n += 1)}}` }],
          finish: 'calls',
          // $3 and $15 a million tokens.
          usage: { inputTokens: 1_000, outputTokens: 1_000 },
          ...(cost === undefined ? {} : { cost }),
        }),
      }
      const harness = make(model, { tools: [look], hooks: [stopAtUsd(0.03)], limits: { modelRequests: 4 } })
      expect(await harness.run('Go.')).toMatchObject(end)
    }
  })

  it('B-HOOK-22: stopAtRequests stops after so many replies, and a number that is none stops at once; an answer is never stopped', async () => {
    for (const [most, made] of [
      [2, 2],
      [0, 1],
      [Number.NaN, 1],
      [1.5, 1],
    ] as const) {
      const { harness } = stage(always, [stopAtRequests(most)], { storage, tools: [look] })
      expect(await harness.run('Go.')).toMatchObject({ status: 'halted', usage: { modelRequests: made } })
    }
    const { harness } = stage(['Done.'], [stopAtRequests(1), stopAtUsd(Number.NaN)], { storage })
    expect(await harness.run('Go.')).toMatchObject({ status: 'completed', text: 'Done.' })
  })

  it('B-HOOK-23: post_run comes after the answer and never delays it, with the prompt, the result and one line a call (S2-31, S2-33)', async () => {
    const gate = new Gate()
    const told: HookEvents['post_run'][] = []
    const post: Hook = {
      type: 'post_run',
      run: async (event) => {
        told.push(event)
        await gate.wait()
      },
    }
    const fail = noting()('fail', {
      execute: () => {
        throw new Error('connect ECONNREFUSED secret.example')
      },
    })
    const hold: Hook = { type: 'before_tool_call', tools: ['held'], run: () => ({ cancel: 'no' }) }
    const tools = [look, fail, noting()('held')]
    const { harness } = stage([calls(call('look'), call('fail'), call('held')), 'Done.'], [post, hold], {
      storage,
      tools,
    })
    const result = await harness.run('What is there?')
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await harness.session(result.sessionId).run()).toMatchObject({ status: 'completed' })
    await gate.reached
    expect(told).toEqual([
      {
        session: result.sessionId,
        agent: 'default',
        metadata: {},
        prompt: 'What is there?',
        result,
        tools: ['look: ok (11 chars)', 'fail: failed (ServiceUnavailable)', 'held: failed (BlockedByPolicy)'],
        durationMs: expect.any(Number) as number,
      },
    ])
    gate.open()
  })
})

it('B-HOOK-24: a stop hook is not asked what money cannot say: a cost that is none counts as nothing', async () => {
  const seen: number[] = []
  const watch: Hook = { type: 'stop', run: ({ cost }) => void seen.push(cost) }
  const costs = [Number.NaN, Number.POSITIVE_INFINITY, -5, 7]
  const script = [...costs.map((cost, n) => ({ ...calls(call('look', n)), cost })), 'Done.']
  const { harness, requests } = stage(script, [watch], { tools: [look] })
  expect((await harness.run('Go.')).status).toBe('completed')
  expect(seen).toEqual([0, 0, 0, 7])
  expect(resultsIn(requests.at(-1))).toHaveLength(4)
})
