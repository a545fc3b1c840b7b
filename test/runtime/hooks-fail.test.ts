// Hooks that throw, hang or come too late, and runs that are stopped while a hook is asked. What hooks may do is in hooks.test.ts.
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Hook, memory } from '../../src/index.ts'
import { FakeClock, settled } from '../models/fake-clock.ts'
import { call, calls, eventsOf, Gate, noting, resultIn, resultsIn, saidIn, stage, storages } from './hooks-stage.ts'
import { until } from '../until.ts'

const boom = (): never => {
  throw new Error('boom')
}
const never = new Promise<never>(() => {})
const HOOKS = [
  'run_start',
  'user_prompt_submit',
  'before_tool_call',
  'after_tool_call',
  'before_subagent_run',
  'after_subagent_run',
  'limit_reached',
  'run_end',
  'stop',
  'post_run',
] as const
const throwing = (type: (typeof HOOKS)[number]): Hook => ({ type, run: boom })
const HOOK_ERROR = { status: 'failed', stopReason: 'hook_error' } as const

describe.each(Object.entries(storages))('a hook that throws, on %s', (_name, storage) => {
  const bad: readonly (readonly [string, () => unknown])[] = [
    ['throws', boom],
    ['rejects', () => Promise.reject(new Error('boom'))],
  ]
  it.each(bad)(
    'B-HOOK-52: an onError that %s harms neither the run nor the process, and both errors are warned of',
    async (_how, onError) => {
      const warned: string[] = []
      const hear = ({ message }: Error): number => warned.push(message)
      process.on('warning', hear)
      onTestFinished(() => void process.off('warning', hear))
      const { harness } = stage(['Done.'], [throwing('run_end')], { storage, onError })
      expect(await harness.run('Go.')).toMatchObject({ status: 'completed', text: 'Done.' })
      await until(() => expect(warned).toEqual(['hook run_end: boom', 'onError: boom']))
    },
  )

  it('B-HOOK-63: hooks are asked about any number of calls of one reply without a warning of Node', async () => {
    const warned: string[] = []
    const hear = ({ message }: Error): number => warned.push(message)
    process.on('warning', hear)
    onTestFinished(() => void process.off('warning', hear))
    const unfit = Array.from({ length: 12 }, (_, i) => ({ tool: 'look', args: { n: 'one' }, id: `c${i}` }))
    const slow: Hook = {
      type: 'before_tool_call',
      run: () => new Promise((done) => setTimeout(() => done(undefined), 5)),
    }
    const { harness } = stage([{ calls: unfit }, 'Done.'], [slow], { storage, tools: [noting()('look')] })
    expect(await harness.run('Look.')).toMatchObject({ status: 'completed', usage: { cancelledToolCalls: 0 } })
    await new Promise((done) => setImmediate(done))
    expect(warned).toEqual([])
  })

  it('B-HOOK-25: is reported, and the run goes on as if it had said nothing, whichever hook it is', async () => {
    const parent = [{ calls: [{ tool: 'subagent', args: { task: 'Count.' } }] }]
    const script = (request: Parameters<typeof saidIn>[0]) =>
      saidIn(request)[0] === 'Count.' ? '42' : (parent.shift() ?? calls(call('look')))
    const { harness, reports, requests } = stage(script, HOOKS.map(throwing), {
      storage,
      tools: [noting()('look')],
      subagents: true,
      limits: { modelRequests: 3 },
    })
    expect(await harness.run('Go.')).toMatchObject({ status: 'limit', calls: [{ status: 'ok' }, { status: 'ok' }, {}] })
    await harness.close()
    expect(new Set(reports.map(([where, message]) => `${where}: ${message}`))).toEqual(
      new Set(HOOKS.map((type) => `hook ${type}: boom`)),
    )
    expect(resultsIn(requests.at(-1))).toEqual(['42', 'look 1 done'])
  })

  it('B-HOOK-26: strictly, a hook before a call ends the run: nothing of it ran, its siblings are aborted, and all are counted (AC-24)', async () => {
    const ran: string[] = []
    const gate = new Gate()
    const tool = noting(ran)
    const slow = tool('slow', {
      execute: async (_args, { signal }) => {
        signal.addEventListener('abort', () => gate.open())
        await gate.wait()
        signal.throwIfAborted()
        ran.push('slow completed')
      },
    })
    const strict: Hook = {
      type: 'before_tool_call',
      tools: ['bad'],
      run: async () => {
        await gate.reached
        boom()
      },
    }
    const staged = stage([calls(call('slow'), call('bad')), 'Done.'], [strict], {
      storage,
      tools: [slow, tool('bad')],
      strict: true,
    })
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({ ...HOOK_ERROR, usage: { toolCalls: 2, cancelledToolCalls: 0, modelRequests: 1 } })
    expect(result.status === 'failed' && result.failure.message).toBe('The hook before_tool_call failed: boom')
    expect(ran).toEqual([])
    const results = await eventsOf(staged, result.sessionId, 'agent.tool_result')
    expect(results).toMatchObject([{ status: 'error', ends: expect.any(String) as string }, { status: 'aborted' }])
    expect(await eventsOf(staged, result.sessionId, 'agent.tool_use')).toHaveLength(1)
    expect(staged.reports).toEqual([])
    expect((await staged.harness.session(result.sessionId).run('Go on.')).text).toBe('Done.')
  })

  it('B-HOOK-27: strictly, a hook after a call ends the run: the call has its result, which no model reads (AC-53)', async () => {
    const staged = stage([calls(call('look')), 'Done.'], [throwing('after_tool_call')], {
      storage,
      tools: [noting()('look', { effect: 'once' })],
      strict: true,
    })
    const seen: string[] = []
    const stream = staged.harness.stream('Go.')
    for await (const event of stream) seen.push(event.type)
    const result = await stream.result
    expect(result).toMatchObject({ ...HOOK_ERROR, usage: { toolCalls: 1 } })
    expect(seen.slice(-3)).toEqual(['agent.tool_use', 'agent.tool_result', 'run.settled'])
    const event = await resultIn(staged, result.sessionId)
    expect(event).toMatchObject({ status: 'error', metadata: { error_type: 'InvalidToolOutput' } })
    const { text } = await staged.harness.session(result.sessionId).run('Go on.')
    expect(text).toBe('Done.')
    expect(JSON.stringify(staged.requests)).not.toContain('look 1 done')
  })

  it('B-HOOK-28: strictly, also a hook at the start, on a prompt, on a bad call or after a reply ends its run', async () => {
    const bad = { calls: [{ tool: 'look', args: { n: 'one' } }] }
    for (const [type, asked] of [
      ['run_start', 0],
      ['user_prompt_submit', 0],
      ['stop', 1],
      ['after_tool_call', 1],
    ] as const) {
      const ran: string[] = []
      const staged = stage([type === 'stop' ? calls(call('look')) : bad, 'Done.'], [throwing(type)], {
        storage,
        tools: [noting(ran)('look')],
        strict: true,
      })
      const result = await staged.harness.run('Go.')
      expect([type, result]).toMatchObject([type, HOOK_ERROR])
      expect(result.status === 'failed' && result.failure.message).toBe(`The hook ${type} failed: boom`)
      expect([staged.requests.length, ran]).toEqual([asked, []])
    }
  })

  it('B-HOOK-64: what throws beside a strict hook is only reported, and a strict one ends the run', async () => {
    const throws = (strict: boolean): Hook => ({ ...throwing('run_start'), strict })
    const calm = stage(['Done.'], [throws(false), { type: 'run_start', strict: true, run: () => {} }], { storage })
    expect(await calm.harness.run('Go.')).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(calm.reports).toEqual([['hook run_start', 'boom']])
    const ends = stage(['Done.'], [throws(false), throws(true)], { storage })
    expect(await ends.harness.run('Go.')).toMatchObject(HOOK_ERROR)
    expect(ends.reports).toEqual([['hook run_start', 'boom']])
  })

  it('B-HOOK-29: a run that has ended cannot be ended again: strictly too, its watchers are only reported, and the next is told', async () => {
    const told: string[] = []
    const watchers = ['limit_reached', 'run_end', 'post_run'] as const
    const hooks = watchers.flatMap((type): readonly Hook[] => [
      throwing(type),
      { type, run: () => void told.push(type) },
    ])
    const { harness, reports } = stage(['Done.'], hooks, { storage, limits: { modelRequests: 0 }, strict: true })
    expect((await harness.run('Go.')).status).toBe('limit')
    await harness.close()
    expect(told).toEqual(watchers)
    expect(reports).toEqual(watchers.map((type) => [`hook ${type}`, 'boom']))
  })

  it('B-HOOK-30: strict failures among subagents that run at once end what they belong to, and nothing hangs (AC-59)', async () => {
    const task = (n: number) => ({ tool: 'subagent', args: { task: `Task ${n}.` }, id: `s${n}` })
    const script = (request: Parameters<typeof saidIn>[0]) => {
      if (saidIn(request)[0]?.startsWith('Task')) return calls(call('look'))
      return resultsIn(request).length > 0 ? 'Done.' : { calls: [1, 2, 3].map(task) }
    }
    const given = { storage, tools: [noting()('look')], subagents: true, strict: true } as const
    // In the children: each ends, and the parent reads of it and goes on.
    const inside = stage(script, [{ type: 'before_tool_call', agents: ['subagent'], run: boom }], given)
    const result = await inside.harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(resultsIn(inside.requests.at(-1))).toHaveLength(3)
    for (const record of result.calls) expect(record).toMatchObject({ status: 'error' })
    // In the parent, when two children are at work: it ends, and they are stopped.
    let made = 0
    let working = 0
    const gate = new Gate()
    const third: Hook = {
      type: 'before_subagent_run',
      run: async () => {
        made += 1
        if (made < 3) return
        await gate.wait()
        boom()
      },
    }
    const outside = stage(
      (request) => {
        if (!saidIn(request)[0]?.startsWith('Task')) return { calls: [1, 2, 3].map(task) }
        working += 1
        if (working === 2) gate.open()
        return { stall: true }
      },
      [third],
      given,
    )
    const parent = await outside.harness.run('Go.')
    expect(parent).toMatchObject({ ...HOOK_ERROR, usage: { toolCalls: 3 } })
    const sessions = (await outside.harness.list({ order: 'id', limit: 500 })).cards
    expect(sessions).toHaveLength(3)
    for (const { session } of sessions) {
      await outside.harness.work({ session })
      const settlements = await eventsOf(outside, session, 'run.settled')
      expect([session, settlements.length]).toEqual([session, 1])
    }
  })

  it('B-HOOK-31: an interrupt while a hook is asked closes the call: nothing runs, and the run settles', async () => {
    const ran: string[] = []
    const gate = new Gate()
    const before: Hook = { type: 'before_tool_call', run: () => gate.wait() }
    const staged = stage([calls(call('look'), call('look', 2))], [before], { storage, tools: [noting(ran)('look')] })
    const session = await staged.harness.open()
    const running = session.run('Go.')
    await gate.reached
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    gate.open()
    await staged.harness.close()
    expect(ran).toEqual([])
    expect(await eventsOf(staged, session.id, 'agent.tool_use')).toEqual([])
    const results = await eventsOf(staged, session.id, 'agent.tool_result')
    expect(results.map(({ status }) => status)).toEqual(['aborted', 'aborted'])
  })

  it('B-HOOK-32: a result that comes after the interrupt is withheld where a hook must see it first, and that hook is not asked (AC-8)', async () => {
    const asked: string[] = []
    const gate = new Gate<string>()
    const stubborn = noting()('stubborn', {
      effect: 'once',
      execute: (_args, { signal }) => {
        signal.addEventListener('abort', () => gate.open('the unmasked truth'))
        return gate.wait()
      },
    })
    const mask: Hook = { type: 'after_tool_call', run: ({ tool }) => void asked.push(tool) }
    const staged = stage([calls(call('stubborn')), 'Done.'], [mask], { storage, tools: [stubborn] })
    const session = await staged.harness.open()
    const running = session.run('Go.')
    await gate.reached
    await session.interrupt()
    expect((await running).status).toBe('interrupted')
    expect(asked).toEqual([])
    expect(await resultIn(staged, session.id)).toMatchObject({ status: 'error' })
    expect((await session.run('Go on.')).text).toBe('Done.')
    expect(JSON.stringify(staged.requests)).not.toContain('unmasked')
  })

  it('B-HOOK-33: what a hook adds, says or writes loses its secrets before it is written', async () => {
    const secrets = { TOKEN: 'sesame-open-1234' }
    const say = `use ${secrets.TOKEN}`
    const hooks: readonly Hook[] = [
      { type: 'user_prompt_submit', run: ({ prompt }) => (prompt === 'No.' ? { cancel: say } : { context: say }) },
      { type: 'before_tool_call', tools: ['held'], run: () => ({ cancel: say }) },
      {
        type: 'after_tool_call',
        run: ({ output }) => {
          output.content = say.repeat(8_000)
          output.metadata = { [secrets.TOKEN]: say }
        },
      },
      { type: 'stop', run: ({ requests }) => (requests === 2 ? { stop: say } : undefined) },
    ]
    const tool = noting()
    const staged = stage([calls(call('held'), call('look')), calls(call('look'))], hooks, {
      storage,
      secrets,
      tools: [tool('held'), tool('look')],
    })
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({ status: 'halted', reason: 'use ⟦secret:TOKEN⟧' })
    const cancelled = await staged.harness.session(result.sessionId).run('No.')
    expect(cancelled).toMatchObject({ stopReason: 'cancelled_by_hook', reason: 'use ⟦secret:TOKEN⟧' })
    const { events } = await staged.store.read(result.sessionId, 0)
    expect(JSON.stringify([events, staged.requests])).not.toContain('sesame')
    expect(resultsIn(staged.requests[1]).join(' ')).toContain('use ⟦secret:TOKEN⟧')
  })
})

describe('a hook that does not come back', () => {
  const clocked = () => {
    const clock = new FakeClock()
    const store = memory({ clock })
    // Minutes go by in one step here, and a lease must outlast them.
    return { clock, store, worker: { leaseMs: 3_600_000, graceMs: 1_000 } }
  }
  const minutes = async (clock: FakeClock, ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1_000) {
      await settled()
      clock.advance(Math.min(1_000, left))
    }
    await settled()
  }

  it('B-HOOK-34: before a call: the call is denied when the time of the hook is over, and the run goes on', async () => {
    const { clock, ...rest } = clocked()
    const ran: string[] = []
    const entered = new Gate()
    const hang: Hook = { type: 'before_tool_call', run: () => (void entered.wait(), never) }
    const staged = stage([calls(call('look')), 'Done.'], [hang], {
      system: { clock },
      ...rest,
      tools: [noting(ran)('look')],
    })
    const running = staged.harness.run('Go.')
    await entered.reached
    await minutes(clock, 62_000)
    expect(await running).toMatchObject({ status: 'completed', usage: { toolCalls: 0, cancelledToolCalls: 1 } })
    expect(ran).toEqual([])
    expect(resultsIn(staged.requests[1])).toEqual([
      'Not run: a hook held it back: it did not say in time whether this may run',
    ])
  })

  it('B-HOOK-35: before a call: a yes that comes when the time is over is a no, and the hook is not asked again', async () => {
    const { clock, ...rest } = clocked()
    const ran: string[] = []
    const gate = new Gate()
    let asked = 0
    const late: Hook = { type: 'before_tool_call', run: () => (asked++, gate.wait()) }
    const staged = stage([calls(call('look')), 'Done.'], [late], {
      system: { clock },
      ...rest,
      tools: [noting(ran)('look')],
    })
    const running = staged.harness.run('Go.')
    await gate.reached
    await minutes(clock, 60_500)
    gate.open()
    expect(await running).toMatchObject({ status: 'completed', calls: [{ status: 'denied' }] })
    expect([ran, asked]).toEqual([[], 1])
  })

  it('B-HOOK-36: after a call: its result is withheld when the time of the tool is over, and the run goes on', async () => {
    const { clock, ...rest } = clocked()
    const entered = new Gate()
    const hang: Hook = { type: 'after_tool_call', run: () => (void entered.wait(), never) }
    const staged = stage([calls(call('look')), 'Done.'], [hang], {
      system: { clock },
      ...rest,
      tools: [noting()('look', { effect: 'once', timeoutMs: 5_000 })],
    })
    const running = staged.harness.run('Go.')
    await entered.reached
    await minutes(clock, 7_000)
    const result = await running
    expect(result.status).toBe('completed')
    expect(await resultIn(staged, result.sessionId)).toMatchObject({
      status: 'error',
      metadata: { error_type: 'InvalidToolOutput' },
    })
    expect(JSON.stringify(staged.requests)).not.toContain('look 1 done')
  })

  it('B-HOOK-37: after a reply: the run stops when the time of the request is over, and the reply is kept', async () => {
    const { clock, ...rest } = clocked()
    const ran: string[] = []
    const entered = new Gate()
    const hang: Hook = { type: 'stop', run: () => (void entered.wait(), never) }
    const staged = stage([{ text: 'Paid for.', cost: 5, ...calls(call('look')) }], [hang], {
      system: { clock },
      ...rest,
      tools: [noting(ran)('look')],
      limits: { modelMs: 120_000 },
    })
    const running = staged.harness.run('Go.')
    await entered.reached
    await minutes(clock, 122_000)
    expect(await running).toMatchObject({
      status: 'halted',
      said: 'Paid for.',
      cost: { micros: 5 },
      usage: { modelRequests: 1 },
    })
    expect(ran).toEqual([])
  })

  it('B-HOOK-38: on a prompt: the run fails as by a hook, and the prompt is never shown', async () => {
    const { clock, ...rest } = clocked()
    const entered = new Gate()
    const hang: Hook = {
      type: 'user_prompt_submit',
      run: ({ prompt }) => (prompt === 'Go.' ? (void entered.wait(), never) : undefined),
    }
    const { harness, requests } = stage(['Done.'], [hang], { system: { clock }, ...rest })
    const running = harness.run('Go.')
    await entered.reached
    await minutes(clock, 62_000)
    const result = await running
    expect(result).toMatchObject({ status: 'failed', stopReason: 'hook_error', failure: { kind: 'Timeout' } })
    expect(requests).toEqual([])
    expect(await harness.session(result.sessionId).run('Be kind.')).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(requests)).not.toContain('Go.')
  })

  it('B-HOOK-39: where it only watches: it is reported, the next is told, and neither the answer nor closing waits for ever', async () => {
    const { clock, ...rest } = clocked()
    const told: string[] = []
    const entered = (['run_start', 'run_end', 'post_run'] as const).map((type) => ({ type, gate: new Gate() }))
    const hooks = entered.flatMap(({ type, gate }): readonly Hook[] => [
      { type, run: () => (void gate.wait(), never) },
      { type, run: () => void told.push(type) },
    ])
    const { harness, reports } = stage(['Done.'], hooks, { system: { clock }, ...rest })
    const running = harness.run('Go.')
    await entered[0]?.gate.reached
    await minutes(clock, 30_000)
    await entered[1]?.gate.reached
    await minutes(clock, 30_000)
    expect(await running).toMatchObject({ status: 'completed', text: 'Done.' })
    await entered[2]?.gate.reached
    const closing = harness.close()
    await minutes(clock, 30_000)
    await closing
    expect(told).toEqual(['run_start', 'run_end'])
    expect(reports.map(([where]) => where)).toEqual(['hook run_start', 'hook run_end', 'observer'])
  })
})
