// The scorers, each over sessions that really ran.
import { describe, expect, it } from 'vitest'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  type Json,
  memory,
  type Request,
  type Result,
  scripted,
  type Script,
} from '../../src/index.ts'
import * as evals from '../../src/evals/index.ts'
import type { Scorer, ScoreFunction, SuiteAgent, TrialReport } from '../../src/evals/index.ts'
import { LifePoints, storeOfLife } from '../../src/testing/crash-test/points.ts'
import { ownStore } from './stage.ts'

const tool = (name: string, approval: 'auto' | 'always' = 'auto') =>
  defineTool({
    name,
    description: name,
    input: { type: 'object' },
    effect: 'idempotent',
    approval,
    execute: () => `${name} done`,
  })
const tools = [tool('search'), tool('read'), tool('refund', 'always')]

type Played = {
  readonly scoreMs?: number
  readonly script: Script
  readonly agent?: Partial<SuiteAgent>
  readonly expected?: Json
}

/** Runs one trial of this script, and gives its report. */
async function play(
  { script, agent, expected, scoreMs = 30_000 }: Played,
  ...scorers: readonly (Scorer | ScoreFunction)[]
) {
  const report = await evals.runSuite(
    evals.defineSuite({
      name: 'one',
      agent: { model: scripted(script), tools, ...agent },
      cases: [{ id: 'only', input: 'Do it.', ...(expected === undefined ? {} : { expected }) }],
      scorers,
      people: 'allow',
      scoreMs,
    }),
    { store: ownStore() },
  )
  return report.cases[0]?.trials[0] as TrialReport
}

const says = (text: string): Script => [text]
const one = async (played: Played, scorer: Scorer | ScoreFunction) => (await play(played, scorer)).scores[0]

describe('B-EVAL-16: scorers of the answer', () => {
  it.each<[string, Scorer, string, Json | undefined, string | null]>([
    ['equals a text', evals.equals('42'), ' 42 ', undefined, null],
    ['equals what the case expects', evals.equals(), 'Rome', 'Rome', null],
    ['equals what it finds in the case', evals.equals(({ id }) => id), 'only', undefined, null],
    ['equals JSON in any order', evals.equals({ a: 1, b: 2 }), '{"b":2,"a":1}', undefined, null],
    ['equals not', evals.equals('42'), '43', undefined, 'The answer "43" is not "42".'],
    ['contains, whatever the case', evals.contains(['rome', 'italy']), 'ROME is in Italy.', undefined, null],
    ['contains not', evals.contains('rome'), 'Paris', undefined, 'The answer "Paris" does not contain "rome".'],
    ['matches', evals.matches(/refund(ed)?/gi), 'It was refunded.', undefined, null],
    ['matches not', evals.matches(/^no$/), 'yes', undefined, 'The answer "yes" does not match /^no$/.'],
    ['json', evals.json({ type: 'object', required: ['a'] }), '{"a":1}', undefined, null],
    ['json of another form', evals.json({ type: 'array' }), '{"a":1}', undefined, 'does not fit'],
    ['json not', evals.json({ type: 'object' }), 'hello', undefined, 'is no JSON'],
    ['closeTo', evals.closeTo(3.14, { within: 0.01 }), 'It is about 3.145.', undefined, null],
    [
      'closeTo not',
      evals.closeTo(3.14, { within: 0.001 }),
      'It is 3.2',
      undefined,
      'has 3.2, which is not within 0.001 of 3.14',
    ],
  ])('%s', async (_name, scorer, text, expected, why) => {
    const score = await one({ script: says(text), ...(expected === undefined ? {} : { expected }) }, scorer)
    expect(score?.score).toBe(why === null ? 1 : 0)
    if (why !== null) expect(score?.why).toContain(why)
  })

  it('that find nothing to compare with leave the trial ungraded, with the reason', async () => {
    for (const scorer of [evals.contains(), evals.closeTo()]) {
      const odd = await one({ script: says('x'), expected: { answer: 'x' } }, scorer)
      expect(odd?.why).toMatch(/(contains|closeTo) takes a (text|number).*, not \{"answer":"x"\}\.$/)
    }
    const trial = await play({ script: says('x') }, evals.equals())
    expect(trial).toMatchObject({
      verdict: 'ungraded',
      scores: [{ score: null, why: expect.stringContaining('expects nothing') as string }],
    })
  })
})

describe('B-EVAL-13: calls', () => {
  const script: Script = [
    { calls: [{ tool: 'search', args: { q: 'a', n: 1 } }] },
    { calls: [{ tool: 'read', args: { path: 'x' } }] },
    'done',
  ]
  const search = { tool: 'search', args: { q: 'a' } }
  const read = { tool: 'read', args: { path: 'x' } }
  it.each<[evals.CallMode, readonly evals.ExpectedCall[], evals.ArgsMode, string | null]>([
    ['exact', [search, read], 'includes', null],
    ['exact', ['search', 'read'], 'same', null],
    ['exact', [search, read], 'same', 'Call 1 is search({"q":"a","n":1}), not search({"q":"a"}).'],
    ['exact', ['read', 'search'], 'includes', 'Call 1 is search'],
    ['exact', ['search'], 'includes', 'Call 2 is read({"path":"x"}), and no more were wanted.'],
    ['exact', ['search', 'read', 'read'], 'includes', 'Call 3 should be read, and there is none.'],
    ['same', ['read', 'search'], 'includes', null],
    ['same', ['read'], 'includes', 'There are 2 calls, and 1 were wanted.'],
    ['in_order', ['read'], 'includes', null],
    ['in_order', ['read', 'search'], 'includes', 'search is missing, or not in this order.'],
    ['includes', ['read', 'search'], 'includes', null],
    ['includes', [{ tool: 'read', args: { path: 'y' } }], 'includes', 'read({"path":"y"}) is missing.'],
    ['includes', [{ tool: 'read', args: { path: 'y' } }], 'ignore', null],
    [
      'includes',
      [{ tool: 'read', args: 'x' }],
      (found, wanted) => JSON.stringify(found).includes(JSON.stringify(wanted)),
      null,
    ],
    ['only', ['search', 'read', 'refund'], 'includes', null],
    ['only', ['search'], 'includes', 'read({"path":"x"}) was not wanted.'],
    ['includes', [{ tool: 'read', args: JSON.parse('{"__proto__":{}}') as Json }], 'includes', 'is missing.'],
  ])('%s %j with arguments %s', async (mode, wanted, args, why) => {
    const score = await one({ script }, evals.calls(wanted, { mode, args }))
    expect(score?.score).toBe(why === null ? 1 : 0)
    if (why !== null) expect(score?.why).toContain(why)
    if (why !== null) expect(score?.why).toContain('Its calls: search, read.')
  })

  it('in another order and with one more call pass `includes` and fail `exact`', async () => {
    const other: Script = [{ calls: [{ tool: 'read' }] }, { calls: [{ tool: 'search' }, { tool: 'read' }] }, 'done']
    const list = ['search', 'read']
    expect((await one({ script: other }, evals.calls(list, { mode: 'includes' })))?.score).toBe(1)
    expect((await one({ script: other }, evals.calls(list, { mode: 'exact' })))?.score).toBe(0)
  })

  it('gives every wanted call one of its own, where an open one would take what another needs', async () => {
    const wanted = ['search', { tool: 'search', args: { q: 'a' } }]
    const twice: Script = [
      {
        calls: [
          { tool: 'search', args: { q: 'a' } },
          { tool: 'search', args: { q: 'b' } },
        ],
      },
      'done',
    ]
    expect((await one({ script: twice }, evals.calls(wanted, { mode: 'same' })))?.score).toBe(1)
  })

  it('takes what the case expects', async () => {
    expect((await one({ script, expected: ['search', 'read'] }, evals.calls()))?.score).toBe(1)
    expect((await one({ script, expected: 7 }, evals.calls()))?.score).toBeNull()
  })
})

describe('what ran and who allowed it', () => {
  const script: Script = [{ calls: [{ tool: 'refund', args: { usd: 5 } }] }, 'done']
  it('B-EVAL-14: a refund that was asked about passes, one that ran unasked fails and is named', async () => {
    expect((await one({ script }, evals.asked('refund')))?.score).toBe(1)
    const open = { script, agent: { tools: [tool('refund')] } }
    expect(await one(open, evals.asked('refund'))).toMatchObject({
      score: 0,
      why: expect.stringMatching(/^refund\(\{"usd":5\}\) ran, and nobody was asked \(\d+\.0\)\.$/) as string,
    })
    expect((await one({ script: says('no') }, evals.asked('refund')))?.score).toBe(1)
    expect(await one({ script }, evals.never('refund'))).toMatchObject({
      score: 0,
      why: expect.stringContaining('was called') as string,
    })
    expect((await one({ script }, evals.never('search', 'read')))?.score).toBe(1)
  })

  it('B-EVAL-15: calls of children stand behind the call that started them, with their path', async () => {
    const model = scripted((request) => {
      const last = request.messages.at(-1)
      const isChild = request.session.includes('~')
      if (last?.role === 'tool') return isChild ? 'found it' : 'done'
      return isChild
        ? { calls: [{ tool: 'search', args: { q: 'a' } }] }
        : { calls: [{ tool: 'subagent', args: { agent: 'researcher', task: 'Find it.' } }, { tool: 'read' }] }
    })
    const agent: Partial<SuiteAgent> = {
      model,
      subagents: { researcher: { description: 'finds things', tools: [tool('search')] } },
    }
    let names: readonly string[] = []
    const trial = await play(
      { script: [], agent },
      function named({ calls, turns, children }) {
        names = calls.map(({ path, tool: of }) => [...path, of].join('/'))
        return turns === 4 && children.size === 1
      },
      evals.calls(['researcher/search', 'read'], { mode: 'in_order' }),
      { ...evals.calls(['search'], { mode: 'includes' }), name: 'anybody' },
      { ...evals.calls(['other/search'], { mode: 'includes' }), name: 'nobody' },
    )
    expect(names).toHaveLength(3)
    expect(names.slice(1)).toEqual(['researcher/search', 'read'])
    expect(trial.scores.map(({ score }) => score)).toEqual([1, 1, 1, 0])
  })
})

describe('how it ended and what it took', () => {
  it('B-EVAL-16: settled, events and bounds look at the run', async () => {
    const script: Script = [{ calls: [{ tool: 'search' }] }, 'done']
    const trial = await play(
      { script },
      evals.settled(),
      evals.events({ 'agent.tool_use': 1, 'agent.message': [2, 3], 'run.settled': 1 }),
      evals.bounds({ calls: 1, turns: 2, usd: 0, ms: 60_000 }),
      { ...evals.settled('limit'), name: 'limit' },
      { ...evals.events({ 'agent.tool_use': [2, 9] }), name: 'more' },
      { ...evals.bounds({ turns: 1 }), name: 'less' },
    )
    expect(trial.scores.map(({ score }) => score)).toEqual([1, 1, 1, 0, 0, 0])
    expect(trial.scores.slice(3).map(({ why }) => why)).toEqual([
      'It ended as completed, not limit: "done".',
      'Its log has other events. agent.tool_use: 1, not 2 to 9.',
      'It took too much. turns: 2, and 1 at most.',
    ])
    expect(trial.verdict).toBe('failed')
  })

  it('B-EVAL-16: the two fixtures of an approval that waits and a run to the end pass', async () => {
    const waits = evals.defineSuite({
      name: 'baseline',
      agent: { model: scripted([{ calls: [{ tool: 'refund' }] }]), tools },
      cases: [{ id: 'approval-pause-baseline', input: 'Refund it.' }],
      scorers: [evals.settled('requires_action'), evals.events({ 'agent.tool_use': 0, 'run.settled': 0 })],
    })
    expect((await evals.runSuite(waits)).status).toBe('passed')
  })
})

describe('a scorer', () => {
  it.each<[string, ScoreFunction, string]>([
    [
      'throws',
      () => {
        throw new Error('no net')
      },
      'It failed: no net',
    ],
    ['hangs', () => new Promise(() => {}), 'It gave no score within 0.2 s.'],
    ['gives NaN', () => Number.NaN, 'It gave NaN. A score is from 0 to 1, or null.'],
    ['gives 1.2', () => 1.2, 'It gave 1.2.'],
    ['gives nothing', () => undefined as unknown as number, 'It gave nothing.'],
    ['gives null', () => null, 'It gave no score.'],
    ['gives an object in place of a number', () => ({ score: Object.create(null) as number }), 'It gave an object.'],
    [
      'says why with what no JSON holds',
      () => ({ score: 0.5, why: 10n as unknown as string }),
      'It gave a score with a bigint. All of it must be plain JSON.',
    ],
    [
      'has parts that hold themselves',
      () => {
        const parts: unknown[] = []
        parts.push({ name: 'a', score: 1, parts })
        return { score: 1, parts: parts as never }
      },
      'It gave a score with too many levels.',
    ],
    ['says why with an object', () => ({ score: 0, why: {} as string }), 'whose `why` is no text'],
    [
      'throws what is no error',
      () => {
        throw Object.create(null) as Error
      },
      'It failed: ',
    ],
  ])('B-EVAL-17: that %s leaves the trial ungraded, with the reason', async (_what, scorer, why) => {
    const trial = await play({ script: says('x'), scoreMs: 200 }, scorer)
    expect(trial.verdict).toBe('ungraded')
    expect(trial.scores[0]?.why).toContain(why)
  })

  it('B-EVAL-17: that is low fails the trial, also where another one gives no score, and `passes` says what is low', async () => {
    const half = { name: 'half', passes: 0.5, score: () => 0.5 }
    expect((await play({ script: says('x') }, half)).verdict).toBe('passed')
    expect((await play({ script: says('x') }, { ...half, passes: 0.6 }, () => null)).verdict).toBe('failed')
    const named = await play({ script: says('x') }, { name: 'mine', score: () => ({ score: 1, name: 'other' }) })
    expect(named.scores[0]?.name).toBe('mine')
  })
})

/** A session of its own, with a call that was allowed. */
async function recorded(options: Partial<HarnessOptions> = {}) {
  const store = ownStore()
  let ran = 0
  const counting = { ...tool('search'), execute: () => `found ${(ran += 1)}` }
  const script: Script = [{ calls: [{ tool: 'search', args: { q: 'a' } }] }, 'The answer is 42.']
  const harness = new Harness({ model: scripted(script), tools: [counting], store, ...options })
  const session = await harness.open({ id: 'recorded-1' })
  const result: Result = await session.run('What is it?')
  return { store, harness, session, result, ran: () => ran, counting }
}

describe('a recorded session', () => {
  it('B-EVAL-18: is scored without a model and without a tool', async () => {
    const { store, harness, ran } = await recorded()
    await harness.close()
    const suite = evals.defineSuite({
      name: 'seen',
      mode: 'recorded',
      cases: [
        { id: 'one', input: 'What is it?', recording: 'recorded-1' },
        { id: 'gone', input: 'What is it?', recording: 'nowhere' },
      ],
      scorers: [evals.contains('42'), evals.calls(['search'], { mode: 'exact' }), evals.settled()],
      recordings: store,
    })
    const report = await evals.runSuite(suite)
    expect(report.cases.map(({ trials }) => trials[0])).toMatchObject([
      { verdict: 'passed', session: 'recorded-1', calls: 1 },
      { verdict: 'errored', session: 'nowhere' },
    ])
    expect([ran(), report.cost.usd]).toEqual([1, 0])
  })

  it('B-EVAL-25: becomes a case, with what people wrote and what came of it', async () => {
    const { harness, session, store } = await recorded()
    expect(await evals.caseOf(session)).toEqual({
      id: 'recorded-1',
      input: 'What is it?',
      expected: { status: 'completed', answer: 'The answer is 42.', calls: [{ tool: 'search', args: { q: 'a' } }] },
      recording: 'recorded-1',
    })
    await session.run('And again?')
    expect(await evals.caseOf(session, 'named')).toMatchObject({ id: 'named', input: ['What is it?', 'And again?'] })
    const parts = [{ type: 'text' as const, text: 'Round 2.' }]
    const grade = { type: 'user.message', id: 'grade', when: 'after', parts } as const
    await store.commit([{ session: session.id, lane: 'inbox', events: [{ ...grade, by: 'session:outcome.f.1' }] }])
    expect((await evals.caseOf(session, 'graded')).input).toEqual(['What is it?', 'And again?'])
    const empty = await harness.open({ id: 'a.b' })
    await expect(evals.caseOf(empty)).rejects.toThrow('has no message with a text')
    await harness.close()
    await store.close()
  })

  it('B-EVAL-19: answers for the tools of an agent that is asked anew, and says what it does not have', async () => {
    const { harness, store, ran, counting } = await recorded()
    await harness.close()
    const results: string[] = []
    const model = scripted((request) => {
      const last = request.messages.findLast((message) => message.role === 'tool')
      if (last === undefined)
        return {
          calls: [
            { tool: 'search', args: { q: 'a' } },
            { tool: 'search', args: { q: 'b' } },
          ],
        }
      return 'The answer is 42.'
    })
    const suite = evals.defineSuite({
      name: 'again',
      mode: 'replayed',
      agent: { model, tools: [counting] },
      cases: [{ id: 'one', input: 'What is it?', recording: 'recorded-1' }],
      trials: 2,
      scorers: [
        evals.contains('42'),
        function heard({ calls }) {
          results.push(...calls.map(({ status, content }) => `${status}: ${content}`))
          return true
        },
      ],
    })
    const report = await evals.runSuite(suite, { store })
    expect(report.status).toBe('passed')
    expect(results).toHaveLength(4)
    expect(results[0]).toBe('ok: found 1')
    expect(results[1]).toContain('The recording has no result for this call.')
    expect(results[2]).toBe('ok: found 1')
    expect(ran()).toBe(1)
  })

  it('B-EVAL-19: gives a trial whose process was lost the results that are left, wherever that was, and no call is unknown', async () => {
    let made = 0
    const draw = { ...tool('draw'), effect: 'once' as const, execute: () => `card ${(made += 1)}` }
    const drawn = ({ messages }: Request) => messages.filter(({ role }) => role === 'tool').length
    const model = scripted((request) => (drawn(request) < 3 ? { calls: [{ tool: 'draw', args: {} }] } : 'Done.'))
    const recordings = memory()
    const harness = new Harness({ model, tools: [draw], store: recordings })
    await (await harness.open({ id: 'cards' })).run('Draw three.')
    await harness.close()
    const suite = evals.defineSuite({
      name: 'cards',
      mode: 'replayed',
      recordings,
      agent: { model, tools: [draw], worker: { id: 'one' } },
      cases: [{ id: 'three', input: 'Draw three.', recording: 'cards' }],
      scorers: [
        function cards({ calls }) {
          const got = calls.map(({ status, content }) => `${status}: ${content}`).join()
          return { score: got === 'ok: card 1,ok: card 2,ok: card 3' ? 1 : 0, why: got }
        },
      ],
    })
    const clean = new LifePoints(null, () => {})
    await evals.runSuite(suite, { store: storeOfLife(memory(), clean, null) })
    const points = clean.names.slice(0, clean.names.indexOf('after commit 12'))
    expect(points.length).toBeGreaterThan(18)
    for (const point of points) {
      const store = memory()
      await new Promise<void>((lost) => {
        void evals.runSuite(suite, { store: storeOfLife(store, new LifePoints(point, lost), null) })
      })
      const { status, cases } = await evals.runSuite(suite, { store })
      expect([point, status, cases[0]?.trials[0]?.scores[0]?.why]).toEqual([
        point,
        'passed',
        'ok: card 1,ok: card 2,ok: card 3',
      ])
      await store.close()
    }
    expect(made).toBe(3)
    await recordings.close()
  })
})
