// The result of a run, as its caller gets it: the kinds of end and how to tell them apart, the counts, and the text. How runs end
// is settle.test.ts; the classes of failures are classify.test.ts.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  Bug,
  type HarnessOptions,
  type Limits,
  memory,
  ModelRetry,
  orThrow,
  RunFailed,
  type Script,
  type CompleteStore,
  ToolFailure,
} from '../../src/index.ts'
import { calls, make, moment, STORAGES, storeOf, tool, users, waiting } from './scene.ts'
import { storeWith } from '../../sim/store-with.ts'

const broken = tool('broken', {
  execute: () => {
    throw new ToolFailure('NotFound', 'There is no file news.html.')
  },
})
const look = tool('look')
const picky = tool('picky', {
  retries: 3,
  execute: ({ n }) => {
    if (n === 0) throw new ModelRetry('Give a number above 0.')
    return `picky ${n}`
  },
})

type End = readonly [what: string, script: Script, options: Partial<HarnessOptions>, end: object, flag: string | null]
const ENDS: readonly End[] = [
  ['an answer', ['Done.'], {}, { status: 'completed', stopReason: 'end_turn', output: 'Done.' }, null],
  [
    'an answer that was cut',
    [{ text: 'Done.', finish: 'length' }],
    {},
    { status: 'completed', stopReason: 'max_tokens', output: 'Done.' },
    null,
  ],
  [
    'a refusal',
    [{ text: 'Done.', finish: 'refusal' }],
    {},
    { status: 'completed', stopReason: 'refusal', output: 'Done.' },
    null,
  ],
  [
    'a refusal without a word',
    [{ text: '', finish: 'refusal' }],
    {},
    { status: 'failed', stopReason: 'refusal' },
    null,
  ],
  [
    'a question to a person',
    [calls('pay')],
    { tools: [tool('pay', { approval: 'ask' })] },
    { status: 'requires_action', stopReason: 'approval_required' },
    null,
  ],
  [
    'a cap',
    [calls('look'), calls('look')],
    { tools: [look], limits: { modelRequests: 1 } },
    { status: 'limit', stopReason: 'limit_reached', limit: 'model_requests' },
    'capped',
  ],
  [
    'a halt of the breaker',
    () => calls('broken'),
    { tools: [broken] },
    { status: 'halted', stopReason: 'halted', reason: expect.stringContaining('no file news.html') as string },
    'halted',
  ],
  ['an empty answer', [''], {}, { status: 'failed', stopReason: 'empty_answer' }, 'empty'],
  ['a refused key', [{ error: 'auth', message: 'No.' }], {}, { status: 'failed', stopReason: 'provider_error' }, null],
]

describe('the result', () => {
  it.each(ENDS)(
    'B-VERB-1: %s has its own status, reason and flag, the same from run and from a stream, and nothing is thrown but by orThrow (TRAP-8, AC-52, AC-83)',
    async (_what, script, options, end, flag) => {
      const ran = await make(script, options).run('Go.')
      const stream = make(script, options).stream('Go.')
      const types: string[] = []
      for await (const event of stream) types.push(event.type)
      const streamed = await stream.result
      for (const result of [ran, streamed]) {
        expect(result).toMatchObject(end)
        expect(Object.entries(result.flags).filter(([, on]) => on)).toEqual(flag === null ? [] : [[flag, true]])
      }
      expect({ ...streamed, sessionId: '', pending: [] }).toEqual({ ...ran, sessionId: '', pending: [] })
      if (ran.status !== 'requires_action') expect(types.at(-1)).toBe('run.settled')
      if (ran.status === 'completed') {
        expect([orThrow(ran).output, (await stream.orThrow()).output]).toEqual(['Done.', 'Done.'])
        return
      }
      expect(() => orThrow(ran)).toThrow(RunFailed)
      await expect(stream.orThrow()).rejects.toMatchObject({ name: 'RunFailed', result: { status: ran.status } })
    },
  )

  it.each([
    ['refusal', 'refusal', 'the model refused to answer'],
    ['truncated', 'length', 'the answer was cut at its longest'],
  ] as const)(
    'B-VERB-26: a completed run that ended as %s is an error for those who say so',
    async (name, finish, why) => {
      const script: Script = () => ({ text: 'No.', finish })
      const result = await make(script).run('Go.')
      expect(orThrow(result).text).toBe('No.')
      const other = name === 'refusal' ? 'truncated' : 'refusal'
      expect(orThrow(result, { [other]: true }).text).toBe('No.')
      expect(() => orThrow(result, { [name]: true })).toThrow(why)
      const failed = { name: 'RunFailed', result: { status: 'completed', text: 'No.', stopReason: result.stopReason } }
      await expect(
        make(script)
          .stream('Go.')
          .orThrow({ [name]: true }),
      ).rejects.toMatchObject(failed)
      await expect(make(script).run('Go.', { require: 'complete' })).rejects.toMatchObject(failed)
      const session = await make(script).open()
      await expect(session.run('Go.', { require: 'complete' })).rejects.toMatchObject(failed)
      await expect(session.run(undefined, { require: 'complete' })).rejects.toMatchObject(failed)
    },
  )

  it('B-VERB-26: what is required and completes whole is a result, and every other end is an error', async () => {
    expect((await make(['Done.']).run('Go.', { require: 'complete' })).text).toBe('Done.')
    const failed = make([{ error: 'auth', message: 'No key.' }]).run('Go.', { require: 'complete' })
    await expect(failed).rejects.toMatchObject({ name: 'RunFailed', result: { status: 'failed' } })
  })

  it('B-VERB-26: a requirement that there is not is refused with one sentence', async () => {
    // @ts-expect-error: only 'complete' can be required
    await expect(make(['Done.']).run('Go.', { require: 'completed' })).rejects.toThrow('must be "complete"')
    const result = await make(['Done.']).run('Go.')
    // @ts-expect-error: a misspelled option
    expect(() => orThrow(result, { refusals: true })).toThrow('did you mean "refusal"?')
  })

  it('B-VERB-1: a paused run has its own flag, and no other end has it (TRAP-8, AC-83)', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), 'Done.'], { tools: [slow] }).open()
    const stream = session.stream('Go.')
    await runs.here
    await session.interrupt('pause')
    go()
    const flags = { paused: true, capped: false, halted: false, empty: false }
    expect(await stream.result).toMatchObject({ status: 'requires_action', stopReason: 'paused', flags, pending: [] })
    expect(await session.run()).toMatchObject({ stopReason: 'paused', flags })
    await session.send([{ type: 'resume' }])
    expect(await session.run()).toMatchObject({ status: 'completed', flags: { ...flags, paused: false } })
  })

  it('B-VERB-2: counts requests, calls, retries of each tool and of the output, calls a hook held back, and tokens where they are said (AC-12, S0-20)', async () => {
    const script: Script = [
      { ...calls('look', 'picky 0'), usage: { inputTokens: 10, outputTokens: 5 } },
      calls('held', 'picky 1'),
      { text: 'no JSON', usage: { inputTokens: 20, outputTokens: 1 } },
      { calls: [{ tool: 'final_result', args: { ok: true } }] },
    ]
    const harness = make(script, {
      tools: [look, picky, tool('held')],
      output: { schema: z.object({ ok: z.boolean() }), mode: 'tool' },
      hooks: [{ type: 'before_tool_call', tools: ['held'], run: () => ({ cancel: 'not today' }) }],
    })
    expect(await harness.run('Go.')).toMatchObject({
      status: 'completed',
      output: { ok: true },
      usage: {
        modelRequests: 4,
        toolCalls: 3,
        cancelledToolCalls: 1,
        outputRetries: 1,
        toolRetries: { picky: 1 },
        inputTokens: 30,
        outputTokens: 6,
      },
    })
  })

  it('B-VERB-2: a batch over the limit of calls counts none of its calls, and a failed request is no request (TRAP-1)', async () => {
    const script: Script = [calls('look'), { error: 'server' }, calls('look', 'look'), 'never']
    const result = await make(script, { tools: [look], limits: { toolCalls: 2 } }).run('Go.')
    expect(result).toMatchObject({ status: 'limit', usage: { modelRequests: 2, toolCalls: 1 } })
    expect(result.calls.map(({ status }) => status)).toEqual(['ok', 'aborted', 'aborted'])
  })

  it('B-VERB-3: has every call with its arguments, status, content, and what went wrong in words for people', async () => {
    const store = memory()
    const tools = [look, broken, tool('pay', { approval: 'ask', effect: 'once' })]
    const parked = await make([calls('look 1', 'broken 2', 'pay 3', 'pay 4')], { tools, store }).run('Go.')
    expect(parked.calls.map(({ tool: name, status }) => [name, status])).toEqual([
      ['look', null],
      ['broken', null],
      ['pay', null],
      ['pay', null],
    ])
    const session = make(['Done.'], { tools, store }).session(parked.sessionId)
    const [first = '', second = ''] = parked.pending.map(({ callId }) => callId)
    await session.decide({ callId: first, allow: true, by: 'ana' })
    await session.decide({ callId: second, allow: false, by: 'bob', why: 'too dear' })
    const { calls: done } = await session.run()
    expect(done).toMatchObject([
      { tool: 'look', args: { n: 1 }, status: 'ok', content: 'look 1', chars: 6 },
      { tool: 'broken', args: { n: 2 }, status: 'error', failure: { class: expect.any(String) as string } },
      { tool: 'pay', args: { n: 3 }, status: 'ok', content: 'pay 3', approved: { allow: true, by: 'ana' } },
      { tool: 'pay', args: { n: 4 }, status: 'denied', approved: { allow: false, by: 'bob', why: 'too dear' } },
    ])
    expect(done[1]?.failure).toMatchObject({ recoverable: expect.any(Boolean) as boolean })
    expect(done[3]?.failure).toMatchObject({ class: 'Denied', nextAction: expect.any(String) as string })
  })

  it('B-VERB-6: has the replies as the log has them only when they are asked for', async () => {
    const harness = make([calls('look'), 'Done.', calls('look'), 'Done.'], { tools: [look] })
    const session = await harness.open()
    expect(await session.run('Go.')).not.toHaveProperty('responses')
    const { responses } = await session.run('Again.', { raw: true })
    const replies = (await session.events()).events.filter((event) => event.type === 'agent.message')
    expect(responses).toMatchObject(replies.slice(2))
  })

  it('B-VERB-31: each of them says why it ended, what it used and which model gave it (S0-38)', async () => {
    const usage = { inputTokens: 3, outputTokens: 2 }
    const reply = {
      type: 'reply',
      parts: [{ type: 'text', text: 'Cut' }],
      calls: [],
      usage,
      route: 'host:small',
    } as const
    const call = { id: 'a', tool: 'look', args: '{}' }
    const said = [{ ...reply, calls: [call], finish: 'calls' } as const, { ...reply, finish: 'length' } as const]
    const harness = make(
      { name: 'own', call: async () => said.shift() ?? { ...reply, finish: 'stop' } },
      { tools: [look] },
    )
    const { responses } = await harness.run('Go.', { raw: true })
    expect(responses).toMatchObject([
      { finish: 'calls', usage, model: 'host:small' },
      { finish: 'length', usage, model: 'host:small' },
    ])
    const plain = make(['Done.'])
    const [first] = (await plain.run('Go.', { raw: true })).responses ?? []
    expect([first?.finish, first && 'model' in first]).toEqual(['stop', false])
  })
})

describe('the glossary', () => {
  it('B-VERB-7: has a row for every stop reason and every limit that a result can have', () => {
    const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
    const kernel = read('src/kernel/content.ts')
    const blocks = [
      /FailedReason =([\s\S]*?)\n\n/.exec(kernel)?.[1],
      /type: 'limit'; limit: ([^}]*)/.exec(kernel)?.[1],
      ...[...read('src/runtime/state/run-result.ts').matchAll(/stopReason: ('[^;}]*)/g)].map(([, reasons]) => reasons),
    ]
    const reasons = [...blocks.join(' ').matchAll(/'(\w+)'/g)].map(([, reason = '']) => reason)
    const table = read('docs/glossary.md').split('## Session status')[1] ?? ''
    expect(reasons.length).toBeGreaterThan(20)
    expect(reasons.filter((reason) => !table.includes(`\`${reason}\``))).toEqual([])
  })
})

describe('what is thrown', () => {
  it('B-VERB-8: every verb of a closed harness, also of sessions it gave out, says that it is closed, and nothing is written', async () => {
    const store = memory()
    const harness = make(['One.'], { store })
    const session = await harness.open()
    await session.run('one')
    const before = (await session.events()).events.length
    await harness.close()
    const closed = { name: 'Fault', code: 'harness_closed' }
    await expect(harness.run('two')).rejects.toMatchObject(closed)
    expect(() => harness.stream('two')).toThrow('closed')
    for (const verb of [
      () => session.send('two'),
      () => session.run('two'),
      () => session.run(),
      () => session.stream('two').result,
      () => session.send([{ type: 'pause' }]),
      () => session.interrupt(),
      () => session.fork(),
      () => session.undo(),
      () => session.send('two', { when: 'idle' }),
    ])
      await expect(verb()).rejects.toMatchObject(closed)
    expect((await store.read(session.id, 0)).events).toHaveLength(before)
  })

  it.each([
    [
      { modelRequests: Number.NaN },
      'The option "limits.modelRequests" of new Harness must be a whole number from 0 on, not NaN.',
    ],
    [{ modelRequests: -1 }, 'from 0 on, not -1'],
    [{ parallel: 0 }, 'The option "limits.parallel" of new Harness must be a whole number from 1 on, not 0.'],
    [{ activeMs: null }, 'not null'],
    [{ activeMs: Number.POSITIVE_INFINITY }, 'not Infinity'],
    [{ tokens: '9' }, 'The option "limits.tokens"'],
    [{ modelRequest: 5 }, 'Unknown option "limits.modelRequest" of new Harness: did you mean "limits.modelRequests"?'],
  ])('B-VERB-9: limits that make no sense are refused when the harness is made: %j', (limits, said) => {
    expect(() => make([], { limits: limits as unknown as Limits })).toThrow(said)
  })

  it('B-VERB-9: a limit that is left undefined is the default, and what may be unlimited may be null', async () => {
    const limits = { modelRequests: undefined, toolCalls: null, tokens: null }
    const harness = make(['Done.'], { limits: limits as unknown as Limits })
    const { sessionId } = await harness.run('Go.')
    const started = (await harness.session(sessionId).events()).events.find((event) => event.type === 'run.started')
    expect(started).toMatchObject({ limits: { modelRequests: 64, toolCalls: null, tokens: null, activeMs: 600_000 } })
  })

  it('B-VERB-8: a log that cannot be is a Bug for the caller that runs it, and the log stays as it is', async () => {
    const inner = memory()
    let bent = false
    const read: CompleteStore['read'] = async (...args) => {
      const page = await inner.read(...args)
      return bent ? { events: page.events.filter(({ type }) => type !== 'run.started') } : page
    }
    const store = storeWith(inner, { read })
    const first = await make(['One.'], { store }).run('one')
    bent = true
    const again = make(['Two.'], { store }).session(first.sessionId)
    await expect(again.run('two')).rejects.toThrow(Bug)
    expect((await inner.read(first.sessionId, 0)).events.at(-1)?.type).toBe('user.message')
  })
})

describe.each(STORAGES)('one model object on %s', (storage) => {
  it('B-VERB-10: serves several runs and harnesses at once, and carries no message from one to another (AC-10)', async () => {
    const seen: (readonly string[])[] = []
    const all = moment()
    let n = 0
    const model = {
      name: 'shared',
      call: async (request: Parameters<typeof users>[0]) => {
        seen.push(users(request))
        n += 1
        if (n === 3) all.come()
        await all.here
        const parts = [{ type: 'text', text: users(request).join() }] as const
        return { type: 'reply', parts, calls: [], finish: 'stop', usage: null } as const
      },
    }
    const [one, two] = [make(model, { store: storeOf(storage) }), make(model, { store: storeOf(storage) })]
    const results = await Promise.all([one.run('a'), one.run('b'), two.run('c')])
    expect(results.map(({ text }) => text)).toEqual(['a', 'b', 'c'])
    expect(seen.map((texts) => texts.join()).sort()).toEqual(['a', 'b', 'c'])
  })
})
