// `terret eval`: suites in files, sessions that become cases, and two reports compared.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { EvalReport } from '../../src/evals/index.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

const read = (path: string): string => readFileSync(join(stage.folder, path), 'utf8')

it('B-EVAL-28: the fixtures of an approval that waits and of a run to its end pass as YAML, offline', async () => {
  stage.write(
    'work/fixtures.yaml',
    `name: fixtures
model: offline:any
scorers:
  - settled: $expected.status
  - events: { run.started: 1 }
  - bounds: { usd: 0 }
cases:
  - { id: approval-pause-baseline, input: 'use write with {"path": "a.txt", "content": "a"}', expected: { status: requires_action } }
  - { id: end-to-end-complete, input: Say something., expected: { status: completed } }
`,
  )
  const ran = await stage.terret(
    'eval',
    'run',
    'fixtures.yaml',
    '--report',
    'report.json',
    '--report',
    'report.md',
    '--report',
    'report.xml',
  )
  expect(ran.err).toMatch(/^passed +approval-pause-baseline 1$/m)
  expect(ran).toMatchObject({
    code: 0,
    out: expect.stringContaining('2 passed, 0 failed, 0 errored, 0 ungraded') as string,
  })
  expect((JSON.parse(read('report.json')) as EvalReport).status).toBe('passed')
  expect(read('report.md')).toContain('# fixtures: passed')
  expect(read('report.xml')).toContain('<testsuite name="fixtures" tests="2" failures="0" errors="0">')
  expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
  // The trials are in a store of their own, and a second run finds them there.
  expect((await stage.terret('list', '--all')).out).toBe('')
  const again = await stage.json('eval', 'run', 'fixtures.yaml', '--json', '--baseline', 'report.json')
  expect(again).toMatchObject({ status: 'passed', counts: { passed: 2 } })
  expect((await stage.terret('eval', 'run', 'fixtures.yaml', '--only', 'nothing*')).code).toBe(1)
})

it('B-EVAL-29: a session becomes a case with its recording, which is graded without a model', async () => {
  const chaos = await scriptedBy(() => 'The answer is 42.')
  await stage.terret('run', 'What is it?')
  const added = await stage.terret('eval', 'add', 'answers.yaml', 'latest', '--id', 'forty-two')
  expect(added).toMatchObject({ code: 0, out: 'Added case forty-two to answers.yaml.\n' })
  expect(read('answers.yaml')).toContain('recording: recordings/forty-two.json')
  expect(read('answers.yaml')).toContain('answer: The answer is 42.')
  const asked = chaos.requests.length
  const recorded = await stage.terret('eval', 'run', 'answers.yaml', '--how', 'recorded', '--quiet')
  expect(recorded).toMatchObject({ code: 0, out: expect.stringContaining('1 passed') as string })
  expect(chaos.requests).toHaveLength(asked)
  expect((await stage.terret('eval', 'run', 'answers.yaml', '--quiet')).code).toBe(0)
  expect(chaos.requests).toHaveLength(asked + 1)
  expect((await stage.terret('eval', 'add', 'answers.yaml', 'latest', '--id', 'forty-two')).err).toContain('already')
  stage.configure({})
  const keyless = await stage.terret('eval', 'run', 'answers.yaml', '--how', 'recorded', '--quiet')
  expect(keyless).toMatchObject({ code: 0, out: expect.stringContaining('1 passed') as string })
  for (const id of ['../../forty-three', '', 'a'.repeat(61)]) {
    const odd = await stage.terret('eval', 'add', 'answers.yaml', 'latest', '--id', id)
    expect([id, odd.code]).toEqual([id, 2])
    expect(odd.err).toContain('The id of a case must be 1 to 60 letters, digits, "_" or "-".')
  }
  expect(existsSync(join(stage.folder, '../forty-three.json'))).toBe(false)
  const changed = read('recordings/forty-two.json').replace('is 42.', 'is 43.')
  stage.write('work/recordings/forty-two.json', changed)
  const refused = await stage.terret('eval', 'run', 'answers.yaml', '--how', 'recorded')
  expect(refused).toMatchObject({ code: 7, err: expect.stringContaining('its checksum does not match') as string })
})

it('B-EVAL-30: a suite in JavaScript brings its own agent, and needs a folder that is trusted', async () => {
  stage.configure({})
  stage.write(
    'work/suite.mjs',
    `let asked = 0
const model = { name: 'own', call: async () => ({
  type: 'reply', parts: [{ type: 'text', text: (asked += 1) > 12 ? 'right' : 'wrong' }], calls: [], finish: 'stop', usage: null }) }
const cases = Array.from({ length: 12 }, (_, i) => ({ id: 'case-' + i, input: 'Question ' + i }))
export const suite = { name: 'own', agent: { model }, cases, trials: 2, parallel: 1, gate: { rate: 0.4 },
  scorers: [function right({ text }) { return text === 'right' }] }
`,
  )
  expect(await stage.terret('eval', 'run', 'suite.mjs')).toMatchObject({
    code: 7,
    err: expect.stringContaining('is not trusted') as string,
  })
  await stage.terret('trust')
  const ran = await stage.apart('eval', 'run', 'suite.mjs', '--report', 'both.json', '--quiet')
  expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('12 passed, 12 failed') as string })
  const half = JSON.parse(read('both.json')) as EvalReport
  const only = (verdict: string) => ({
    ...half,
    cases: half.cases.map((each) => ({ ...each, trials: each.trials.filter((trial) => trial.verdict === verdict) })),
  })
  stage.write('work/before.json', JSON.stringify(only('passed')))
  stage.write('work/after.json', JSON.stringify(only('failed')))
  const worse = await stage.terret('eval', 'compare', 'before.json', 'after.json')
  expect(worse).toMatchObject({ code: 1, out: expect.stringContaining('own: −1.00 (−1.00 … −1.00), worse') as string })
  stage.write('work/gated.mjs', read('suite.mjs').replace('gate: { rate: 0.4 }', 'gate: { worseBy: 0.05 }'))
  const gated = await stage.apart('eval', 'run', 'gated.mjs', '--baseline', 'before.json', '--quiet')
  expect(gated).toMatchObject({ code: 1, out: expect.stringContaining('It is worse than the baseline: −') as string })
  stage.write(
    'work/plain.mjs',
    `export const suite = { name: 'plain', cases: [{ id: 'a', input: 'Say hello.' }], scorers: [({ text }) => text !== ''] }`,
  )
  const plain = await stage.apart('eval', 'run', 'plain.mjs', '--model', 'offline:any', '--quiet')
  expect(plain).toMatchObject({ code: 0, out: expect.stringContaining('1 passed') as string })
  const same = await stage.terret('eval', 'compare', 'both.json', 'both.json')
  expect(same).toMatchObject({ code: 0, out: expect.stringContaining('no difference seen') as string })
})

it('B-EVAL-3: a provider that is down makes the command end with 11', async () => {
  await scriptedBy(() => ({ status: 'unauthorized' }))
  stage.write('work/down.yaml', 'name: down\nscorers: [settled]\ncases: [{ id: a, input: Hello }]\n')
  const ran = await stage.terret('eval', 'run', 'down.yaml')
  expect(ran).toMatchObject({ code: 11, out: expect.stringContaining('down: inconclusive') as string })
})

it.each([
  ['a file that is not there', 'gone.yaml', null, 6, 'There is no file gone.yaml'],
  ['no YAML', 'a.yaml', 'name: [', 7, 'a.yaml cannot be read'],
  ['a text', 'a.yaml', 'hello', 7, 'must be an object'],
  [
    'an unknown scorer',
    'a.yaml',
    'name: a\nmodel: offline:any\nscorers: [guess]\ncases: []',
    7,
    'There is no scorer "guess"',
  ],
  [
    'an unknown end',
    'a.yaml',
    'name: a\nmodel: offline:any\nscorers: [{ settled: done }]\ncases: []',
    7,
    'must be "completed" or',
  ],
  [
    'two cases of one id',
    'a.json',
    '{"name":"a","model":"offline:any","scorers":["settled"],"cases":[{"id":"x","input":"a"},{"id":"x","input":"b"}]}',
    7,
    'Two cases have the id "x"',
  ],
  [
    'approvals in a folder that is not trusted',
    'a.yaml',
    'name: a\nmodel: offline:any\npeople: allow\nscorers: [settled]\ncases: []',
    7,
    'is not trusted',
  ],
  [
    'a recording that is not there',
    'a.yaml',
    'name: a\nmode: recorded\nscorers: [settled]\ncases: [{ id: x, input: a, recording: no.json }]',
    7,
    'The recording no.json cannot be read',
  ],
] as const)(
  'B-EVAL-23: `terret eval run` with %s is refused with what to do',
  async (_what, file, content, code, says) => {
    if (content !== null) stage.write(`work/${file}`, content)
    const ran = await stage.terret('eval', 'run', file)
    expect(ran.err).toContain(says)
    expect(ran.code).toBe(code)
  },
)
