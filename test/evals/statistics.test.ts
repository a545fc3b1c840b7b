// How sure a rate and a difference are, by simulation, and what the gate makes of them.
import { describe, expect, it } from 'vitest'
import {
  compare,
  readReport,
  reportJunit,
  reportMarkdown,
  type EvalReport,
  type SuiteGate,
} from '../../src/evals/index.ts'
import { buildReport } from '../../src/evals/build-report.ts'
import type { TrialReport, TrialVerdict } from '../../src/evals/index.ts'
import { passAllK, passAtK, rateInterval } from '../../src/evals/statistics.ts'

/** The same numbers in every run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

const trial = (n: number, verdict: TrialVerdict): TrialReport => ({
  n,
  session: `s.${n}`,
  verdict,
  scores: [],
  usd: 0,
  ms: 0,
  turns: 1,
  calls: 0,
})

/** A report of cases that pass so often, by chance. */
function reportOf(
  rates: readonly number[],
  trials: number,
  random: () => number,
  gate: SuiteGate = {},
  base: EvalReport | null = null,
) {
  const cases = rates.map((rate, i) => ({
    id: `c${i}`,
    trials: Array.from({ length: trials }, (_, n) => trial(n + 1, random() < rate ? 'passed' : 'failed')),
  }))
  return buildReport({ suite: 's', at: 0, mode: 'live', blueprint: 'b', cases }, gate, base)
}

it('B-EVAL-9: of 6 of 8, two trials pass one at least with 0.964, and both with 0.536', () => {
  const six = { trials: 8, passed: 6 }
  expect(passAtK(six, 2)?.toFixed(3)).toBe('0.964')
  expect(passAllK(six, 2)?.toFixed(3)).toBe('0.536')
  expect([passAtK(six, 8), passAllK(six, 8), passAtK(six, 9)]).toEqual([1, 0, null])
  expect(passAllK({ trials: 1_000, passed: 999 }, 500)).toBeCloseTo(0.5)
})

describe('B-EVAL-10: the interval of a rate', () => {
  it.each([8, 12, 20, 50])(
    'has the true value in 94 of 100 suites of %d cases, also where trials of a case are alike',
    (count) => {
      const random = randomFrom(count)
      // Case rates between all and nothing, and 1, 3 and 5 trials.
      for (const trials of [1, 3, 5]) {
        let covered = 0
        const rounds = 1_000
        for (let round = 0; round < rounds; round++) {
          const cases = Array.from({ length: count }, () => {
            const rate = random() ** 0.5
            const passed = Array.from({ length: trials }, random).filter((draw) => draw < rate).length
            return { trials, passed }
          })
          const { low, high } = rateInterval(cases) ?? { low: 1, high: 0 }
          if (low <= 2 / 3 && 2 / 3 <= high) covered += 1
        }
        expect(covered / rounds).toBeGreaterThan(0.94)
      }
    },
  )

  it('is not there under five cases', () => {
    expect(rateInterval(Array.from({ length: 4 }, () => ({ trials: 50, passed: 25 })))).toBeNull()
    expect(rateInterval(Array.from({ length: 5 }, () => ({ trials: 1, passed: 1 })))).toMatchObject({ high: 1 })
  })
})

describe('two runs', () => {
  it('B-EVAL-11: of the same agent differ in at most 6 of 100 comparisons', () => {
    const random = randomFrom(7)
    const rates = Array.from({ length: 30 }, random)
    let different = 0
    for (let round = 0; round < 1_000; round++) {
      const [before, after] = [reportOf(rates, 3, random), reportOf(rates, 3, random)]
      if (compare(before, after).word !== 'no difference seen') different += 1
    }
    expect(different).toBeLessThanOrEqual(60)
    expect(different).toBeGreaterThan(10)
  })

  it('B-EVAL-12: 30 points apart are worse and fail the gate, and 2 points apart are not seen', () => {
    const random = randomFrom(3)
    const run = (rate: number, gate: SuiteGate = {}, base: EvalReport | null = null) =>
      reportOf(
        Array.from({ length: 30 }, () => rate),
        3,
        random,
        gate,
        base,
      )
    const gate = { worseBy: 0.05 }
    const pairs = Array.from({ length: 200 }, () => run(0.85))
    const much = pairs.map((base) => run(0.55, gate, base))
    const little = pairs.map((base) => run(0.83, gate, base))
    expect(much.filter(({ status }) => status === 'failed').length).toBeGreaterThan(190)
    expect(little.filter(({ status }) => status === 'failed').length).toBeLessThan(20)
    expect(much[0]?.reasons[0]).toMatch(/^It is worse than the baseline: −0\.\d\d \(−0\.\d\d … −0\.\d\d\), worse\.$/)
    expect(compare(much[0] as EvalReport, pairs[0] as EvalReport).word).toBe('better')
  })

  it('B-EVAL-12: share the cases that were graded in both, and are of one suite', () => {
    const random = randomFrom(1)
    const [six, eight] = [reportOf([1, 1, 1, 1, 1, 1], 1, random), reportOf([0, 0, 0, 0, 0, 0, 1, 1], 1, random)]
    expect(compare(six, eight)).toMatchObject({ shared: 6, difference: -1, word: 'worse' })
    expect(compare(reportOf([1], 1, random), reportOf([0], 1, random)).text).toBe(
      '−1.00 (fewer than 5 cases in both), no difference seen',
    )
    expect(() => compare(six, { ...eight, suite: 'other' })).toThrow('two suites, and cannot be compared')
  })
})

describe('B-EVAL-22: the gate', () => {
  const random = randomFrom(1)
  const mixed = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]
  it.each<[string, SuiteGate, 'passed' | 'failed', string]>([
    ['of none takes only passes', {}, 'failed', '90 % of the graded trials passed, and 100 % must.'],
    ['of a rate', { rate: 0.9 }, 'passed', ''],
    ['of a higher rate', { rate: 0.95 }, 'failed', '90 % of the graded trials passed, and 95 % must.'],
    ['of a case that passed', { must: ['c0'] }, 'passed', ''],
    [
      'of a case that failed',
      { must: ['c0', 'c9'], rate: 0.1 },
      'failed',
      'Case "c9" must pass, and 1 of its 1 trials did not.',
    ],
    ['of a case that is not there', { must: ['c99'] }, 'failed', 'Case "c99" must pass, and was not run.'],
    ['of a baseline without one', { worseBy: 0.1 }, 'passed', ''],
  ])('%s', (_what, gate, status, reason) => {
    const report = reportOf(mixed, 1, random, gate)
    expect([report.status, report.reasons[0] ?? '']).toEqual([status, reason])
  })

  it('fails for what is certain, also where much is unknown', () => {
    const cases = [
      { id: 'a', trials: [trial(1, 'failed')] },
      { id: 'b', trials: [trial(1, 'errored')] },
    ]
    const of = (gate: SuiteGate) =>
      buildReport({ suite: 's', at: 0, mode: 'live', blueprint: 'b', cases }, gate, null).status
    expect([of({}), of({ must: ['a'] }), of({ rate: 0 })]).toEqual(['inconclusive', 'failed', 'inconclusive'])
  })

  it.each<[string, unknown, string]>([
    [
      'of another suite',
      { ...reportOf([1], 1, randomFrom(1)), suite: 'other' },
      'The baseline is of the suite "other", not of "s"',
    ],
    ['of a newer version', { ...reportOf([1], 1, randomFrom(1)), version: 2 }, 'a newer version of Terret wrote it'],
    ['without cases', { version: 1, suite: 's' }, 'it has no list of cases'],
    [
      'with odd cases',
      { version: 1, suite: 's', cases: [{ id: 'a', trials: [{ verdict: 'fine' }] }] },
      'not of this form',
    ],
    ['that is a text', 'hello', 'This is no report of a suite'],
  ])('refuses a baseline %s', (_what, baseline, says) => {
    expect(() => readReport(baseline, 's')).toThrow(says)
  })
})

describe('B-EVAL-24: a report as text', () => {
  const nasty = 'a | b\n# c <script> ]]> & "d" `e` \u0000\u001b[31m'
  const cases = [
    {
      id: 'a',
      trials: [trial(1, 'passed'), { ...trial(2, 'failed'), scores: [{ name: 'equals', score: 0, why: nasty }] }],
    },
    { id: 'b', trials: [{ ...trial(1, 'errored'), why: 'no net' }, trial(2, 'ungraded')] },
  ]
  const report = buildReport({ suite: 's', at: 0, mode: 'live', blueprint: 'b', cases }, {}, null)

  it('is Markdown whose tables hold', () => {
    const text = reportMarkdown(report)
    expect(text).toContain('# s: inconclusive')
    expect(text).toContain('| a | 1 of 2 |  |\n| b | 0 of 2 | 2 |')
    expect(text.split('\n').filter((line) => line.startsWith('#'))).toEqual(['# s: inconclusive', '## Not passed'])
    expect(text).not.toMatch(/<script>|[^\P{Cc}\n]/u)
  })

  it('is JUnit that any reader of XML can read', () => {
    const text = reportJunit(report)
    expect(text).toContain('<testsuite name="s" tests="4" failures="1" errors="2">')
    expect(text).toContain('&lt;script&gt; ]]&gt; &amp; &quot;d&quot;')
    expect(text).not.toMatch(/[^\P{Cc}\n\t]/u)
    expect(text.match(/<testcase/g)).toHaveLength(4)
  })
})
