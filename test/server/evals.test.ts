// What came of suites, over HTTP: the runs that a store keeps, one of them whole, two compared, and a session as a case.
import { expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { defineSuite, runSuite } from '../../src/evals/index.ts'
import { scripted } from '../../src/index.ts'
import { findAnswerMismatch } from '../../src/server/wire-answer-check.ts'
import type { EvalsAnswer } from '../../src/server/wire-evals.ts'
import { served } from './served.ts'

const suiteOf = (name: string, answer: string) =>
  defineSuite({
    name,
    agent: { model: scripted(() => answer, answer) },
    cases: Array.from({ length: 6 }, (_, i) => ({ id: `case-${i}`, input: 'What is it?' })),
    scorers: [
      function right({ text }) {
        return text === 'right' || { score: 0, why: `It says ${text}.` }
      },
    ],
  })

it('B-EVAL-31: a server gives the runs of suites that its store keeps, one whole, and two compared', async () => {
  const one = await served(() => 'Done.')
  const { store } = one.host
  await runSuite(suiteOf('answers', 'wrong'), { store })
  await runSuite(suiteOf('answers', 'right'), { store })
  await runSuite(suiteOf('others', 'right'), { store })
  const token = one.token({ name: 'vera', role: 'viewer' })
  const all = await one.json<EvalsAnswer>('GET', '/v1/evals', { token })
  expect(findAnswerMismatch('Evals', all)).toBe(null)
  expect(new Set(all.runs.map(({ suite }) => suite))).toEqual(new Set(['answers', 'others']))
  const { server } = connect({ url: one.server.url, token })
  const { runs } = await server.evals('answers')
  expect(new Map(runs.map(({ status, rate, counts }) => [status, [rate, counts.failed]]))).toEqual(
    new Map([
      ['failed', [0, 6]],
      ['passed', [1, 0]],
    ]),
  )
  const [bad, good] = ['failed', 'passed'].map((status) => runs.find((run) => run.status === status)?.session ?? '')
  const seen = await server.evalRun(good ?? '', bad)
  expect(findAnswerMismatch('EvalRun', seen)).toBe(null)
  expect(seen.comparison).toMatchObject({ word: 'better', difference: 1, shared: 6 })
  const { report, comparison } = await server.evalRun(bad ?? '')
  expect(comparison).toBe(null)
  expect(report.cases[0]?.trials[0]?.scores).toEqual([{ name: 'right', score: 0, why: 'It says wrong.' }])
  const other = all.runs.find(({ suite }) => suite === 'others')?.session
  expect((await one.ask('GET', `/v1/evals/${good}?before=${other}`)).status).toBe(400)
  for (const path of ['evals/nothing', `evals/${good}?before=nothing`, `evals/${report.cases[0]?.trials[0]?.session}`])
    expect((await one.ask('GET', `/v1/${path}`)).status).toBe(404)
})

it('B-EVAL-31: no session that only says it keeps a report is a run, whoever made it', async () => {
  const one = await served(() => 'Done.')
  await runSuite(suiteOf('answers', 'right'), { store: one.host.store })
  const token = one.token({ name: 'mallory', role: 'operator', reach: 'own' })
  const labels = { 'eval-kind': 'report', eval: 'answers' }
  const report = { suite: 'answers', blueprint: 'b', status: 'passed', rate: 1, counts: {} }
  for (const metadata of [
    {},
    { report },
    { report: { ...report, counts: { passed: 9, failed: 0, errored: 0, ungraded: 0 } } },
  ])
    await one.json('POST', '/v1/sessions', { token, body: { labels, metadata } })
  const file = (value: unknown) => [
    { name: 'report.json', type: 'file' as const, media: 'application/json', data: Buffer.from(JSON.stringify(value)) },
  ]
  for (const [id, attachments] of [
    ['report.answers.no-json', file(null)],
    ['report.answers.half', file({ version: 1, suite: 'answers', cases: [] })],
    [
      'report.answers.most',
      file({
        version: 1,
        suite: 'answers',
        cases: [],
        cost: { usd: 0, judgeUsd: 0 },
        counts: { passed: 0, failed: 0, errored: 0, ungraded: 0 },
      }),
    ],
  ] as const) {
    await one.host.harness.open({ id, labels, attachments, metadata: { report } })
    expect((await one.ask('GET', `/v1/evals/${id}`)).status).toBe(404)
  }
  const { runs } = await one.json<EvalsAnswer>('GET', '/v1/evals')
  expect(runs.map(({ suite, status }) => [suite, status])).toEqual([['answers', 'passed']])
  expect(findAnswerMismatch('Evals', { runs, now: 0 })).toBe(null)
})

it('B-EVAL-31: a session is given as a case to whoever may read it, and runs of suites to nobody with sessions of their own', async () => {
  const one = await served(() => 'The answer is 42.')
  const session = await one.host.harness.open({ id: 'a.b' })
  const empty = await one.host.harness.open({ id: 'empty' })
  await session.run('What is it?')
  const { server } = connect({ url: one.server.url, token: one.tokens.own })
  expect(await server.caseOf('a.b')).toEqual({
    id: 'a-b',
    input: 'What is it?',
    expected: { status: 'completed', answer: 'The answer is 42.', calls: [] },
    recording: 'a.b',
  })
  const said = await one.ask('GET', `/v1/sessions/${empty.id}/case`)
  expect([said.status, said.text]).toEqual([400, expect.stringContaining('no message with a text') as string])
  const token = one.token({ name: 'ana', role: 'operator', reach: 'own' })
  expect((await one.ask('GET', '/v1/sessions/a.b/case', { token })).status).toBe(404)
  expect((await one.ask('GET', '/v1/evals', { token })).status).toBe(403)
  expect((await one.ask('GET', '/v1/evals/x', { token })).status).toBe(404)
  expect((await one.json<EvalsAnswer>('GET', '/v1/evals')).runs).toEqual([])
})
