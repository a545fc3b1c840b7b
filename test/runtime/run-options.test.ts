// What one run has instead of what its agent has.
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { exportSession, importSession } from '../../src/replay.ts'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Request,
  scripted,
  type Tool,
  type ToolContext,
} from '../../src/index.ts'
import { spansOf } from '../../src/tracing/index.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { chaosOf, hosted } from '../models/hosted-stage.ts'
import { outcome } from '../contract/fixture.ts'

const { node, graph } = withState({ topic: last('') })
const report = graph({
  name: 'report',
  nodes: { plan: node({ effect: 'read', run: () => ({}) }) },
  edges: [
    [START, 'plan'],
    ['plan', END],
  ],
})

const look = defineTool({
  name: 'look',
  description: 'look',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})
const touch = defineTool({ name: 'touch', description: 'touch', input: z.object({}), execute: () => 'touched' })

/** A person is asked before it runs. */
function askingTool(execute: (args: object, context: ToolContext) => unknown = () => 'done'): Tool {
  return defineTool({ name: 'ask', description: 'ask', input: z.object({}), approval: 'ask', execute })
}

/** A model that notes its requests under its name, and says what it is told to. */
function noting(name: string, seen: [string, Request][], say: Parameters<typeof scripted>[0] = () => ({ text: name })) {
  const model = scripted(say)
  return {
    ...model,
    name,
    call: (...[request, context]: Parameters<typeof model.call>) => {
      seen.push([name, request])
      return model.call(request, context)
    },
  }
}

function harnessWith(options: Partial<HarnessOptions> & Pick<HarnessOptions, 'model'>): Harness {
  const harness = new Harness({ tools: [look, touch], instructions: 'Be brief.', ...options })
  onTestFinished(() => harness.close())
  return harness
}

describe('the options of one run', () => {
  it('B-RUN-1: a run has its own model, instructions, limits and tools, and the next run has those of the agent', async () => {
    const seen: [string, Request][] = []
    const harness = harnessWith({ model: noting('own', seen), models: { named: { other: noting('other', seen) } } })
    const session = await harness.open()
    const first = await session.run('a', {
      model: 'other',
      instructions: 'Be long.',
      tools: ['look'],
      limits: { modelRequests: 3 },
    })
    expect(first).toMatchObject({ status: 'completed', text: 'other' })
    await session.run('b')
    expect(seen.map(([name, { instructions, tools }]) => [name, instructions, tools.map((tool) => tool.name)])).toEqual(
      [
        ['other', 'Be long.', ['look']],
        ['own', 'Be brief.', ['look', 'touch']],
      ],
    )
    const started = (await session.events()).events.filter((event) => event.type === 'run.started')
    expect(started.map(({ limits }) => limits.modelRequests)).toEqual([3, 64])
    expect(started.map(({ options }) => typeof options)).toEqual(['string', 'undefined'])
  })

  it('B-RUN-1: a run that may use fewer tools cannot call the others', async () => {
    const model = scripted([{ calls: [{ tool: 'touch', args: {} }] }, { text: 'done' }])
    const result = await harnessWith({ model }).run('a', { tools: ['look'] })
    expect(result.calls).toMatchObject([{ tool: 'touch', status: 'error' }])
  })

  it('B-RUN-1: `stream` of a new session takes them too, and `send`', async () => {
    const seen: [string, Request][] = []
    const harness = harnessWith({ model: noting('own', seen), models: { named: { other: noting('other', seen) } } })
    await harness.stream('a', { model: 'other' }).result
    const session = await harness.open()
    await session.send('b', { instructions: 'Be kind.' })
    await session.run()
    expect(seen.map(([name, { instructions }]) => [name, instructions])).toEqual([
      ['other', 'Be brief.'],
      ['own', 'Be kind.'],
    ])
  })

  it('B-RUN-3: while another run is open a message with options waits for a run of its own', async () => {
    const seen: [string, Request][] = []
    const slow = noting('own', seen, ({ messages }) => ({ text: `${messages.length}`, delayMs: 30 }))
    const harness = harnessWith({ model: slow, models: { named: { other: noting('other', seen) } } })
    const session = await harness.open()
    await session.send('a')
    const [second] = await Promise.all([session.run('b', { model: 'other' }), session.run('c')])
    expect(second.text).toBe('other')
    expect(seen.filter(([name]) => name === 'other')).toHaveLength(1)
    expect(await outcome(session.send('d', { when: 'now', model: 'other' }))).toBe('invalid_input')
  })

  it('B-RUN-4: what is held for a request, and how its answer is asked for, is as the chosen model has it', async () => {
    const chaos = await chaosOf(() => ({ text: '{"n":1}', usage: { inputTokens: 100, outputTokens: 50 } }))
    const cheap = hosted(chaos, 'responses', {
      prices: { 'openai:*': { input: 2, output: 10 } },
      outputTokensMax: 1_000,
    })
    const own = scripted([{ calls: [{ tool: 'final_result', args: { n: 2 } }] }])
    const output = { schema: z.object({ n: z.number() }) }
    const harness = harnessWith({ model: own, models: { named: { cheap } }, budget: { dayUsd: 10 }, output })
    const session = await harness.open()
    expect(await session.run('a')).toMatchObject({ output: { n: 2 } })
    expect(await session.run('b', { model: 'cheap' })).toMatchObject({ output: { n: 1 }, cost: { micros: 700 } })
    const held = (await session.events()).events.flatMap((event) =>
      event.type === 'model.started' ? [event.held ?? 0] : [],
    )
    expect(held[0]).toBeGreaterThan(100_000)
    expect(held[1]).toBeLessThan(30_000)
  })

  it('B-RUN-5: the caller gets what its own schema makes of the answer, and what it refuses is corrected', async () => {
    const schema = z.object({
      day: z.string().transform((text) => new Date(text)),
      n: z.number().refine((n) => n % 2 === 0, 'must be even'),
    })
    const calls = [1, 2].map((n) => ({ calls: [{ tool: 'final_result', args: { day: '2026-01-02', n } }] }))
    const harness = harnessWith({ model: scripted(calls) })
    const result = await harness.run('a', { output: { schema, mode: 'tool' } })
    expect(result).toMatchObject({ status: 'completed', output: { day: new Date('2026-01-02'), n: 2 } })
    const [final] = (await harness.session(result.sessionId).events()).events
      .filter((event) => event.type === 'agent.message')
      .slice(-1)
    expect(final).toMatchObject({ verdict: { type: 'final', output: { day: '2026-01-02', n: 2 } } })
  })

  it('B-RUN-5: of all that the schema of the caller finds wrong, the model is told the first twenty, and where they are', async () => {
    const model = scripted(() => ({ calls: [{ tool: 'final_result', args: { list: Array<number>(500).fill(1) } }] }))
    const schema = z.object({ list: z.array(z.number().refine((n) => n > 1, 'too few')) })
    const result = await harnessWith({ model }).run('a', { output: { schema } })
    const told = result.status === 'failed' ? result.failure.message : ''
    expect(told).toContain('list.0: too few')
    expect(told.match(/too few/g)).toHaveLength(20)
  })

  it('B-RUN-6: an answer that is too much to ask for is refused, and nothing is written', async () => {
    const harness = harnessWith({ model: scripted(() => ({ text: 'x' })) })
    const circle: { type: string; properties: object } = { type: 'object', properties: {} }
    circle.properties = { circle }
    const long = { type: 'object', description: 'x'.repeat(300_000) }
    for (const schema of [circle, long]) {
      expect(await outcome(harness.run('a', { output: { schema } }))).toBe('invalid_config')
    }
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
  })

  it('B-RUN-5: messages of two sessions that have the same id are each checked by their own schema', async () => {
    const harness = harnessWith({ model: scripted(() => ({ calls: [{ tool: 'final_result', args: { n: 1 } }] })) })
    const [loose, strict] = [z.object({ n: z.number() }), z.object({ n: z.number().refine((n) => n > 1, 'too few') })]
    const [one, other] = [await harness.open(), await harness.open()]
    const results = await Promise.all([
      one.run('a', { id: 'm1', output: { schema: loose } }),
      other.run('a', { id: 'm1', output: { schema: strict } }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['completed', 'failed'])
  })

  it('B-RUN-5: an answer that a worker elsewhere took, and that the schema of the caller refuses, is no answer', async () => {
    const store = memory()
    const worker = harnessWith({ model: scripted([{ calls: [{ tool: 'final_result', args: { n: 1 } }] }]), store })
    const client = harnessWith({ model: scripted([]), store, worker: { drives: false } })
    const schema = z.object({ n: z.number().refine((n) => n % 2 === 0, 'must be even') })
    const working = worker.work({ idleMs: 200 })
    const result = await client.run('a', { output: { schema, mode: 'tool' } })
    expect(result).toMatchObject({ status: 'failed', stopReason: 'output_validation_failed' })
    await working
  })

  it('B-RUN-6: what cannot be is refused in one sentence, and nothing is written', async () => {
    const harness = harnessWith({ model: scripted(() => ({ text: 'x' })), graphs: [report] })
    const session = await harness.open()
    const wrong = [
      [{ tools: ['lok'] }, /no tool "lok".*look, touch/],
      [{ model: 'nobody:x' }, /no provider "nobody"/],
      [{ model: scripted([]) as never }, /no name: put the model into `models\.named`/],
      [{ limits: { hold: 3 } as never }, /Unknown option "limits.hold"/],
      [{ limits: { modelRequest: 3 } as never }, /did you mean "limits\.modelRequests"/],
      [{ output: { schema: { type: 'object' }, mode: 'odd' as never } }, /mode/],
      [{ signal: 'now' as never }, /AbortSignal/],
    ] as const
    for (const [options, text] of wrong) {
      await expect(session.run('a', options)).rejects.toThrow(text)
      expect(await outcome(session.send('a', options))).toBe('invalid_config')
    }
    await expect(harness.run('a', { agent: 'report', tools: ['look'] })).rejects.toThrow(/is a workflow/)
    expect((await session.events()).events).toHaveLength(1)
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toHaveLength(1)
  })

  it('B-RUN-6: a tool that only a source could have had fails the run with the same sentence', async () => {
    const source = { type: 'source', name: 'there', tools: async () => [look], close: async () => {} } as const
    const harness = harnessWith({ model: scripted(() => ({ text: 'x' })), tools: [source] })
    const result = await harness.run('a', { tools: ['lok'] })
    expect(result).toMatchObject({
      status: 'failed',
      stopReason: 'prepare_failed',
      failure: { message: expect.stringMatching(/no tool "lok"/) as string },
    })
  })

  it('B-RUN-7: a signal stops the run of its message and no other', async () => {
    const slow = scripted(({ messages }) => ({ text: `${messages.length}`, delayMs: 50 }))
    const harness = harnessWith({ model: slow })
    const stopped = new AbortController()
    const result = harness.run('a', { signal: stopped.signal })
    setTimeout(() => stopped.abort(), 10)
    expect(await result).toMatchObject({ status: 'interrupted' })
    const session = await harness.open()
    const second = new AbortController()
    const first = session.run('a')
    await session.send('b', { when: 'after', signal: second.signal })
    second.abort()
    expect(await first).toMatchObject({ status: 'completed' })
    expect(await session.run()).toMatchObject({ status: 'interrupted' })
    await expect(session.run('c', { signal: AbortSignal.abort() })).rejects.toThrow(/aborted/)
    const said = (await session.events()).events.filter((event) => event.type === 'user.message')
    expect(said).toHaveLength(2)
  })

  it('B-RUN-8: what a file says chooses neither a model nor limits', async () => {
    const seen: [string, Request][] = []
    const [from, to] = [memory(), memory()]
    const asks = askingTool()
    const make = (store: typeof from, name: string) =>
      harnessWith({
        store,
        tools: [asks, look],
        model: noting(name, seen, ({ messages }) =>
          messages.some(({ role }) => role === 'tool') ? { text: name } : { calls: [{ tool: 'ask', args: {} }] },
        ),
        models: { named: { dear: noting('dear', seen, () => ({ calls: [{ tool: 'ask', args: {} }] })) } },
      })
    const there = make(from, 'there')
    const { sessionId } = await there.run('a', {
      model: 'dear',
      limits: { modelRequests: 900 },
      tools: ['ask'],
      instructions: 'Be odd.',
      metadata: { tenant: 'a' },
    })
    const here = make(to, 'here')
    await importSession(to, await exportSession(from, sessionId))
    const session = here.session(sessionId)
    await session.send([{ type: 'resume' }])
    const [pending] = (await session.run()).pending
    if (!pending) throw new Error('nothing is asked')
    await session.decide({ ...pending, allow: true, by: 'me' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'here', metadata: {} })
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'run.reviewed')).toMatchObject({ limits: { modelRequests: 64 } })
    expect(seen.at(-1)?.[1]).toMatchObject({ instructions: 'Be brief.', tools: [{ name: 'ask' }, { name: 'look' }] })
  })

  it('B-RUN-8: nor does it say how long to wait for a provider, or in whose trace a run stands', async () => {
    const [from, to] = [memory(), memory()]
    const parent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00'
    const given = { traceparent: parent, patienceMs: 9_000_000 }
    const told: unknown[] = []
    const asks = askingTool((_args, { traceparent }) => void told.push(traceparent))
    const make = (store: typeof from) =>
      harnessWith({
        store,
        tools: [asks],
        model: scripted(({ messages }) =>
          messages.some(({ role }) => role === 'tool') ? { text: 'x' } : { calls: [{ tool: 'ask', args: {} }] },
        ),
      })
    const there = await make(from).open()
    await there.run('a', given)
    await there.send('b', { ...given, when: 'after' })
    await importSession(to, await exportSession(from, there.id), { metadata: { tenant: 'here' } })
    const session = make(to).session(there.id)
    await session.send([{ type: 'resume' }])
    const { metadata, pending } = await session.run()
    expect(metadata).toEqual({ tenant: 'here' })
    for (const call of pending) await session.decide({ ...call, allow: true, by: 'me' })
    await session.run()
    const { events } = await session.events()
    expect(told).toEqual([undefined])
    expect(events.filter(({ type }) => type === 'run.started').at(-1)).toMatchObject({
      limits: { patienceMs: 900_000 },
    })
    expect(events.filter(({ type }) => type === 'run.started').at(-1)).not.toHaveProperty('traceparent')
    expect(spansOf([{ session: there.id, events }]).map(({ traceId }) => traceId)).not.toContain(parent.slice(3, 35))
  })

  it('B-RUN-10: a fork of an open run has the options of that run', async () => {
    const seen: [string, Request][] = []
    const asks = askingTool()
    const say: Parameters<typeof scripted>[0] = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? { text: 'x' } : { calls: [{ tool: 'ask', args: {} }] }
    const models = { other: noting('other', seen, say) }
    const harness = harnessWith({ tools: [asks, look], model: noting('own', seen, say), models: { named: models } })
    const session = await harness.open()
    await session.run('a', { model: 'other', tools: ['ask'], instructions: 'Be odd.', limits: { modelRequests: 7 } })
    const fork = await session.fork()
    for (const call of (await fork.run()).pending) await fork.decide({ ...call, allow: true, by: 'me' })
    expect(await fork.run()).toMatchObject({ status: 'completed' })
    expect(seen.at(-1)).toMatchObject(['other', { instructions: 'Be odd.', tools: [{ name: 'ask' }] }])
    const { events } = await fork.events()
    expect(events.find(({ type }) => type === 'run.reviewed')).toMatchObject({ limits: { modelRequests: 7 } })
  })

  it('B-RUN-11: where the chosen model is not known a run cannot go on, and can be stopped', async () => {
    const store = memory()
    const asks = askingTool()
    const model = scripted(() => ({ calls: [{ tool: 'ask', args: {} }] }))
    const { sessionId } = await harnessWith({ store, model, models: { named: { other: model } }, tools: [asks] }).run(
      'a',
      {
        model: 'other',
      },
    )
    const session = harnessWith({ store, model, tools: [asks] }).session(sessionId)
    expect(await outcome(session.run())).toBe('invalid_config')
    await session.interrupt()
    expect(await session.run()).toMatchObject({ status: 'interrupted' })
  })

  it('B-RUN-9: the key of a model that is named in `models` is a secret, whatever secrets are given', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-of-the-fast-model-123456')
    onTestFinished(() => void vi.unstubAllEnvs())
    const harness = harnessWith({
      model: scripted(() => ({ text: 'It is sk-of-the-fast-model-123456.' })),
      models: { named: { fast: 'openai:gpt-5-nano' } },
      secrets: {},
    })
    expect((await harness.run('a')).text).not.toContain('sk-of-the-fast-model-123456')
    expect(() => harnessWith({ model: scripted([]), models: { named: { fast: 'opneai:gpt-5-nano' } } })).toThrow(
      /no provider "opneai"/,
    )
  })

  it('B-RUN-9: secrets in the options of a run are not written', async () => {
    const harness = harnessWith({ model: scripted(() => ({ text: 'x' })), secrets: { KEY: 'a-secret-of-mine-123' } })
    const { sessionId } = await harness.run('a', {
      instructions: 'Use a-secret-of-mine-123.',
      metadata: { key: 'a-secret-of-mine-123' },
    })
    expect(JSON.stringify((await harness.session(sessionId).events()).events)).not.toContain('a-secret-of-mine-123')
  })
})
