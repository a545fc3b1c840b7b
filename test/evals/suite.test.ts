// Running suites: what is tried, what is not tried again, what is counted, and what is refused.
import { describe, expect, it } from 'vitest'
import { defineTool, Harness, memory, type Model, scripted } from '../../src/index.ts'
import { defineSuite, equals, judgedBy, runSuite, settled, type SuiteOptions } from '../../src/evals/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { until } from '../until.ts'
import { answering, numbered, ownStore, suiteOf } from './stage.ts'

describe('the trials of a suite', () => {
  it('B-EVAL-1: are sessions under ids that say what they are, and are not run again by the next process', async () => {
    const store = ownStore()
    // The first process ends inside its fourth trial.
    let asked = 0
    const half = answering(() => 'right')
    const dying: Model = { ...half, call: (...call) => ((asked += 1) > 3 ? new Promise(() => {}) : half.call(...call)) }
    const cases = numbered(4)
    const lost = new Promise<void>((resolve) => {
      const seen = { count: 0 }
      runSuite(suiteOf(dying, { cases, parallel: 1 }), {
        store,
        onTrial: () => {
          seen.count += 1
          if (seen.count === 3) resolve()
        },
      }).catch(() => {})
    })
    await lost
    const model = answering(() => 'right')
    const report = await runSuite(suiteOf(model, { cases: cases.slice(0, 3) }), { store })
    expect(model.asked()).toBe(0)
    expect(report.counts).toEqual({ passed: 3, failed: 0, errored: 0, ungraded: 0 })
    const [first] = report.cases
    expect(first?.trials[0]?.session).toMatch(/^eval\.refunds\.case-1\.[0-9a-f]{12}\.1$/)
    expect((await store.read(first?.trials[0]?.session ?? '', 0, 1)).events[0]).toMatchObject({
      labels: { 'eval-kind': 'trial', eval: 'refunds', 'eval-case': 'case-1' },
    })
  })

  it('B-EVAL-2: cost nothing the second time; a changed case costs its own trials, and a changed expectation none', async () => {
    const store = ownStore()
    const model = answering(() => 'right')
    const cases = numbered(20)
    const options = { cases, trials: 3 }
    expect((await runSuite(suiteOf(model, options), { store })).counts.passed).toBe(60)
    expect(model.asked()).toBe(60)
    await runSuite(suiteOf(model, options), { store })
    expect(model.asked()).toBe(60)
    const changed = cases.map((each) => (each.id === 'case-7' ? { ...each, input: 'Another question' } : each))
    await runSuite(suiteOf(model, { ...options, cases: changed }), { store })
    expect(model.asked()).toBe(63)
    const expecting = changed.map((each) => ({ ...each, expected: 'wrong' }))
    const scorers: SuiteOptions['scorers'] = [({ text, case: { expected } }) => text === expected]
    const rescored = await runSuite(suiteOf(model, { ...options, cases: expecting, scorers }), { store })
    expect([model.asked(), rescored.counts.failed]).toEqual([63, 60])
    await runSuite(suiteOf(model, { ...options, cases: changed, agent: { model, instructions: 'Be kind.' } }), {
      store,
    })
    expect(model.asked()).toBe(123)
  })

  it('B-EVAL-3: of a provider that was down are errored, the rate is of the others, and the next run tries them again', async () => {
    const store = ownStore()
    let up = false
    const model = answering((text) => (!up && /Question [1-4]$/.test(text) ? { error: 'auth' } : 'right'))
    const suite = suiteOf(model, { cases: numbered(60), parallel: 8 })
    const report = await runSuite(suite, { store })
    expect(report).toMatchObject({
      counts: { passed: 56, failed: 0, errored: 4, ungraded: 0 },
      rate: 1,
      status: 'inconclusive',
      reasons: ['4 of 60 trials have no verdict (4 errored, 0 ungraded), so the rest is no answer.'],
    })
    expect(report.cases[0]?.trials[0]).toMatchObject({
      verdict: 'errored',
      why: expect.stringContaining('provider_error') as string,
    })
    up = true
    const before = model.asked()
    const again = await runSuite(suite, { store })
    expect([again.status, model.asked() - before]).toEqual(['passed', 4])
    expect(again.cases[0]?.trials[0]?.session).toMatch(/\.1\.r1$/)
  })

  it('B-EVAL-3: that wait for a provider longer than the patience of their agent are errored, and the next run goes on with the same sessions', async () => {
    const store = ownStore()
    let up = false
    const model = answering(() => (up ? 'right' : { error: 'server', retryAfterMs: 500 }))
    const suite = suiteOf(model, { agent: { model, limits: { patienceMs: 100 } } })
    const report = await runSuite(suite, { store })
    expect(report.counts.errored).toBe(2)
    expect(report.cases[0]?.trials[0]?.why).toContain('did not answer in time')
    up = true
    await until(async () => expect((await runSuite(suite, { store })).counts.passed).toBe(2))
    const sessions = await completeStore(store).list({ where: { 'eval-kind': 'trial' }, limit: 10 })
    expect(sessions).toHaveLength(2)
  })

  it('B-EVAL-4: that were all filtered out are a failure', async () => {
    const report = await runSuite(suiteOf(answering(() => 'right')), { only: ['nothing-like-this'] })
    expect(report).toMatchObject({
      status: 'failed',
      rate: null,
      reasons: [expect.stringContaining('No trial was run') as string],
    })
    expect((await runSuite(suiteOf(answering(() => 'right')), { only: ['case-1*'] })).counts.passed).toBe(1)
  })

  it('B-EVAL-33: are left alone by workers on the store that have an agent of the same name', async () => {
    const store = ownStore()
    const other = new Harness({ model: scripted(() => 'wrong'), store })
    const over = new AbortController()
    const working = other.work({ signal: over.signal })
    const slow = scripted(() => ({ text: 'right', delayMs: 20 }))
    const report = await runSuite(suiteOf(slow, { cases: numbered(10) }), { store })
    over.abort()
    await working
    await other.close()
    expect(report.counts.passed).toBe(10)
  })

  it('B-EVAL-20: are not begun where they could exceed the money, whatever runs at the same time', async () => {
    const store = ownStore()
    const model = answering(() => ({ text: 'right', cost: 500_000, usage: { inputTokens: 1, outputTokens: 1 } }))
    const options = { cases: numbered(10), parallel: 4, usd: 3, trialUsd: 1 }
    const report = await runSuite(suiteOf(model, options), { store })
    // Each costs 0.5 and could cost 1, so the sixth could not exceed it, and the seventh could not begin any more.
    expect(report.counts).toMatchObject({ passed: 5, errored: 5 })
    expect(report.cost.usd).toBe(2.5)
    expect(report.status).toBe('inconclusive')
    expect(report.cases.at(-1)?.trials[0]?.why).toContain("could exceed the suite's money")
    const before = model.asked()
    await runSuite(suiteOf(model, options), { store })
    expect(model.asked()).toBe(before)
    await runSuite(suiteOf(model, { ...options, usd: 100 }), { store })
    expect(model.asked()).toBe(before + 5)
  })

  it('B-EVAL-21: have people who decide as the suite says', async () => {
    const refund = defineTool({
      name: 'refund',
      description: 'pays back',
      input: { type: 'object', properties: {} },
      effect: 'once',
      approval: 'always',
      execute: () => 'paid',
    })
    const model = () =>
      scripted((request) => (request.messages.at(-1)?.role === 'tool' ? 'right' : { calls: [{ tool: 'refund' }] }))
    const run = (people?: SuiteOptions['people']) =>
      runSuite(
        suiteOf(model(), {
          agent: { model: model(), tools: [refund] },
          cases: numbered(1),
          scorers: [
            settled('completed'),
            function status({ status, calls }) {
              return { score: 0, why: `${status} ${calls[0]?.status} ${calls[0]?.allowedBy}` }
            },
          ],
          ...(people === undefined ? {} : { people }),
        }),
      )
    const why = async (people?: SuiteOptions['people']) => (await run(people)).cases[0]?.trials[0]?.scores[1]?.why
    expect(await why('allow')).toBe('completed ok eval')
    expect(await why('deny')).toBe('completed denied null')
    expect(await why()).toBe('requires_action null null')
    expect(await why(({ tool }, { id }) => ({ allow: tool === 'refund' && id === 'case-1' }))).toBe('completed ok eval')
    expect(await why(async () => ({ allow: true }))).toBe('completed ok eval')
    expect(await why(() => undefined as never)).toBe('requires_action null null')
    expect((await run(() => 7 as never)).cases[0]?.trials[0]).toMatchObject({
      verdict: 'errored',
      why: 'The people of a suite give { allow: true }, { content } for a question, or null.',
    })
  })

  it('B-EVAL-21: have people who decide about calls of children, and answer questions', async () => {
    const refund = defineTool({
      name: 'refund',
      description: 'pays back',
      input: { type: 'object', properties: {} },
      effect: 'once',
      approval: 'always',
      execute: () => 'paid',
    })
    const model = scripted((request) => {
      const [last, isChild] = [request.messages.at(-1), request.session.includes('~')]
      if (last?.role === 'tool') return 'right'
      const task = { agent: 'clerk', task: 'Refund it.' }
      return {
        calls: [
          isChild ? { tool: 'refund' } : { tool: 'subagent', args: task },
          ...(isChild ? [] : [{ tool: 'ask_user', args: { question: 'Which one?' } }]),
        ],
      }
    })
    const clerk = { description: 'refunds', tools: [refund] }
    const asked: string[] = []
    const report = await runSuite(
      suiteOf(model, {
        agent: { model, tools: [askUserTool()], subagents: { clerk } },
        cases: numbered(1),
        people: (pending) => {
          asked.push(pending.tool)
          return pending.needs === 'approval' ? { allow: true } : { content: 'The lamp.' }
        },
        scorers: [
          function calls({ calls: made }) {
            const told = made.map(({ path, tool: name, status }) => [...path, name, status].join(' '))
            return {
              score: told.includes('clerk refund ok') && told.includes('ask_user ok') ? 1 : 0,
              why: told.join(', '),
            }
          },
        ],
      }),
    )
    expect(asked.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(['ask_user', 'refund'])
    expect(report.cases[0]?.trials[0]).toMatchObject({ verdict: 'passed' })
  })

  it('B-EVAL-24: never say a secret, neither in a report nor to a judge', async () => {
    const store = ownStore()
    const secrets = { TOKEN: 'sk-0123456789abcdef' }
    const model = scripted(() => `It is ${secrets.TOKEN}.`)
    let question = ''
    const judge = answering((text) => {
      question = text
      return JSON.stringify({ criteria: [{ criterion: 'C1', reason: 'So.', met: true }] })
    })
    const scorers = [equals('else'), judgedBy({ rubric: ['is kind'], model: judge })]
    const report = await runSuite(suiteOf(model, { agent: { model, secrets }, scorers }), { store })
    expect(question).toContain('secret:TOKEN')
    expect(question + JSON.stringify(report)).not.toContain(secrets.TOKEN)
  })

  it('B-EVAL-1: send the texts of a case one after another, each when the run before it has ended', async () => {
    const store = ownStore()
    const cases = [{ id: 'talk', input: ['Hello', 'And now?'] }]
    const model = answering((text) => `heard ${text}`)
    const scorers: SuiteOptions['scorers'] = [({ text }) => text === 'heard And now?']
    const suite = suiteOf(model, { cases, scorers })
    expect((await runSuite(suite, { store })).status).toBe('passed')
    expect((await runSuite(suite, { store })).status).toBe('passed')
    expect(model.asked()).toBe(2)
  })
})

describe('a suite', () => {
  const good: SuiteOptions = { name: 'a', agent: { model: scripted([]) }, cases: numbered(1), scorers: [settled()] }
  it.each<[string, Partial<Record<keyof SuiteOptions, unknown>>, string]>([
    ['two cases of one id', { cases: [...numbered(1), ...numbered(1)] }, 'Two cases have the id "case-1"'],
    ['an id with a slash', { cases: [{ id: 'a/b', input: 'x' }] }, 'must be 1 to 60 letters'],
    ['an id with a tilde', { cases: [{ id: 'a~1.0', input: 'x' }] }, 'must be 1 to 60 letters'],
    ['a name with a dot', { name: 'a.b' }, 'must be 1 to 40 letters'],
    ['no trial', { trials: 0 }, 'whole number from 1 to 1000'],
    ['10,000 trials', { trials: 10_000 }, 'whole number from 1 to 1000'],
    ['a case without input', { cases: [{ id: 'a', input: ' ' }] }, 'must be a text that is not empty'],
    ['no scorer', { scorers: [] }, 'at least one scorer'],
    ['no agent', { agent: undefined }, 'has no agent'],
    ['a store of its agent', { agent: { model: scripted([]), store: memory() } }, 'Give the store to runSuite'],
    [
      'an agent that drives nothing',
      { agent: { model: scripted([]), worker: { drives: false } } },
      'Leave out "drives"',
    ],
    ['plugins', { agent: { model: scripted([]), plugins: [] } }, 'takes no plugins'],
    [
      'a scorer that any score passes',
      { scorers: [{ name: 'a', passes: Number.NaN, score: () => 0 }] },
      '"passes" of scorers[0] must be a share from 0 to 1',
    ],
    ['a rate over 1', { gate: { rate: 80 } }, 'must be a share from 0 to 1'],
    ['a mode without recordings', { mode: 'recorded' }, 'has no recording'],
    ['an unknown option', { trails: 3 } as object, 'did you mean "trials"?'],
  ])('B-EVAL-23: with %s is refused in one sentence', (_what, wrong, says) => {
    expect(() => defineSuite({ ...good, ...wrong } as SuiteOptions)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(says) as string }),
    )
  })

  it('B-EVAL-23: with an agent that its harness does not have is refused before anything runs', async () => {
    const store = ownStore()
    const running = runSuite(defineSuite({ ...good, agentName: 'nobody' }), { store })
    await expect(running).rejects.toMatchObject({
      code: 'invalid_config',
      message: 'There is no agent "nobody" for the suite. There are: default.',
    })
    expect(await completeStore(store).list({ limit: 9 })).toEqual([])
  })
})
