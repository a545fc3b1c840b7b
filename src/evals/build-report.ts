// Builds the report of one run of a suite from the verdicts of its trials, and says whether it is good enough. Pure.
import { compare } from './compare.ts'
import { type CaseReport, countCase, type EvalReport, percent, type TrialReport } from './report.ts'
import { type CaseCount, meanOf, passAllK, passAtK, rateInterval } from './statistics.ts'
import type { SuiteGate } from './suite.ts'

/** What one run of a suite came to, before it is counted. */
export type SuiteOutcome = Pick<EvalReport, 'suite' | 'at' | 'mode' | 'blueprint' | 'cases'>

/** More than this share of trials without a verdict, and the rest is no answer. */
const UNKNOWN_MAX = 0.05

export function buildReport(outcome: SuiteOutcome, gate: SuiteGate, baseline: EvalReport | null): EvalReport {
  const trials = outcome.cases.flatMap((each) => each.trials)
  const counts = { passed: 0, failed: 0, errored: 0, ungraded: 0 }
  for (const { verdict } of trials) counts[verdict] += 1
  const graded = counts.passed + counts.failed
  const perCase = outcome.cases.map(countCase)
  const report = {
    version: 1,
    ...outcome,
    counts,
    rate: graded === 0 ? null : counts.passed / graded,
    interval: rateInterval(perCase),
    ...chancesOf(perCase),
    cost: { usd: trials.reduce((sum, { usd }) => sum + usd, 0), judgeUsd: judgeCost(trials) },
  } as const
  return { ...report, ...judgeReport(report, gate, baseline) }
}

/** A question that was asked once may have scored several trials. */
function judgeCost(trials: readonly TrialReport[]): number {
  const judged = trials.flatMap(({ scores }) => scores.map(({ session = '', usd = 0 }) => [session, usd] as const))
  return [...new Map(judged).values()].reduce((sum, usd) => sum + usd, 0)
}

/** For each number of trials up to that of the case with the fewest. */
function chancesOf(cases: readonly CaseCount[]): Pick<EvalReport, 'passAt' | 'passAll'> {
  const graded = cases.filter(({ trials }) => trials > 0)
  const most = graded.length === 0 ? 0 : Math.min(...graded.map(({ trials }) => trials))
  const of = (chance: typeof passAtK): Readonly<Record<string, number>> =>
    Object.fromEntries(
      Array.from({ length: most }, (_, i) => [String(i + 1), meanOf(graded.map((each) => chance(each, i + 1) ?? 0))]),
    )
  return { passAt: of(passAtK), passAll: of(passAllK) }
}

type Counted = Omit<EvalReport, 'status' | 'reasons'>

/** What is certain comes first: a case that must pass and did not fails the suite also where much is unknown. */
function judgeReport(
  report: Counted,
  gate: SuiteGate,
  baseline: EvalReport | null,
): Pick<EvalReport, 'status' | 'reasons'> {
  const { counts, cases } = report
  const all = counts.passed + counts.failed + counts.errored + counts.ungraded
  if (all === 0) return { status: 'failed', reasons: ['No trial was run. Look at the cases and the filter.'] }
  const musts = (gate.must ?? []).flatMap((id) => mustReason(cases, id))
  if (musts.length > 0) return { status: 'failed', reasons: musts }
  const unknown = counts.errored + counts.ungraded
  if (unknown > all * UNKNOWN_MAX || report.rate === null) {
    const why = `${unknown} of ${all} trials have no verdict (${counts.errored} errored, ${counts.ungraded} ungraded), so the rest is no answer.`
    return { status: 'inconclusive', reasons: [why] }
  }
  const reasons = [...rateReason(report.rate, gate), ...worseReason(report, gate, baseline)]
  return { status: reasons.length > 0 ? 'failed' : 'passed', reasons }
}

function mustReason(cases: readonly CaseReport[], id: string): readonly string[] {
  const { trials = [] } = cases.find((each) => each.id === id) ?? {}
  const bad = trials.filter(({ verdict }) => verdict !== 'passed').length
  if (trials.length === 0) return [`Case "${id}" must pass, and was not run.`]
  return bad === 0 ? [] : [`Case "${id}" must pass, and ${bad} of its ${trials.length} trials did not.`]
}

function rateReason(rate: number, gate: SuiteGate): readonly string[] {
  const isOpen = gate.rate === undefined && gate.must === undefined && gate.worseBy === undefined
  const least = gate.rate ?? (isOpen ? 1 : 0)
  return rate >= least ? [] : [`${percent(rate)} of the graded trials passed, and ${percent(least)} must.`]
}

function worseReason(report: Counted, { worseBy }: SuiteGate, baseline: EvalReport | null): readonly string[] {
  if (worseBy === undefined || baseline === null) return []
  const { word, difference, text } = compare(baseline, report)
  return word === 'worse' && -difference > worseBy ? [`It is worse than the baseline: ${text}.`] : []
}
