// A report as text: Markdown for people, JUnit for programs that show tests. What models said stands in it as data that
// cannot break its form. Pure.
import { oneLine } from '../view/clean.ts'
import { type EvalReport, percent, type TrialReport } from './report.ts'
import type { Score } from './score.ts'

const WHY_CHARS = 500

/** A table of cases, and below it why trials did not pass. */
export function reportMarkdown(report: EvalReport): string {
  const { suite, status, reasons, cases } = report
  const rows = cases.map(({ id, trials }) => {
    const passed = trials.filter(({ verdict }) => verdict === 'passed').length
    const other = trials.filter(({ verdict }) => verdict === 'errored' || verdict === 'ungraded').length
    return `| ${id} | ${passed} of ${trials.length} | ${other === 0 ? '' : other} |`
  })
  const bad = cases.flatMap(({ id, trials }) =>
    trials.filter(({ verdict }) => verdict !== 'passed').map((trial) => trialLine(id, trial)),
  )
  const parts = [
    `# ${suite}: ${status}`,
    summaryLines(report).join('\n'),
    ...(reasons.length > 0 ? [reasons.map((reason) => `- ${line(reason)}`).join('\n')] : []),
    ['| case | passed | without a verdict |', '|---|---|---|', ...rows].join('\n'),
    ...(bad.length > 0 ? [`## Not passed\n\n${bad.join('\n')}`] : []),
  ]
  return `${parts.join('\n\n')}\n`
}

/** The numbers of a report, a line each. */
export function summaryLines({ counts, rate, interval, passAt, passAll, cost }: EvalReport): readonly string[] {
  const { passed, failed, errored, ungraded } = counts
  const sure = interval === null ? '' : ` (${percent(interval.low)} … ${percent(interval.high)})`
  const most = Object.keys(passAt).at(-1) ?? '1'
  const chances = most === '1' ? [] : [`pass@${most} ${text(passAt[most])}, pass^${most} ${text(passAll[most])}`]
  return [
    `${passed} passed, ${failed} failed, ${errored} errored, ${ungraded} ungraded`,
    `rate ${rate === null ? 'none' : percent(rate)}${sure}`,
    ...chances,
    `$${cost.usd.toFixed(4)} for trials, $${cost.judgeUsd.toFixed(4)} for judges`,
  ]
}

function text(chance: number | undefined): string {
  return (chance ?? 0).toFixed(3)
}

function trialLine(id: string, trial: TrialReport): string {
  const { n, verdict, session } = trial
  return `- ${id} ${n}, ${verdict}: ${line(whyOf(trial))} (\`${session}\`)`
}

/** Why a trial has its verdict: its error, or what its scorers said. */
export function whyOf({ why, scores }: Pick<TrialReport, 'why' | 'scores'>): string {
  if (why !== undefined) return why
  const low = scores.filter(({ score }) => score === null || score < 1)
  return low.map(scoreText).join('; ')
}

function scoreText({ name, score, why = '' }: Score): string {
  return `${name} ${score === null ? 'has no score' : score.toFixed(2)}${why === '' ? '' : `: ${why}`}`
}

function line(said: string): string {
  return oneLine(said, WHY_CHARS).replace(/[\\`*_[\]<>|#]/g, '\\$&')
}

/** JUnit XML: a test for each trial. An error and what could not be graded are errors, and not failures. */
export function reportJunit({ suite, counts, cases }: EvalReport): string {
  const { passed, failed, errored, ungraded } = counts
  const tests = cases.flatMap(({ id, trials }) => trials.map((trial) => junitTest(suite, id, trial)))
  const head = `<testsuite name="${suite}" tests="${passed + failed + errored + ungraded}" failures="${failed}" errors="${errored + ungraded}">`
  return ['<?xml version="1.0" encoding="UTF-8"?>', head, ...tests, '</testsuite>', ''].join('\n')
}

function junitTest(suite: string, id: string, trial: TrialReport): string {
  const { n, verdict, ms } = trial
  const test = `<testcase classname="${suite}" name="${id} ${n}" time="${(ms / 1_000).toFixed(3)}"`
  if (verdict === 'passed') return `  ${test}/>`
  const kind = verdict === 'failed' ? 'failure' : 'error'
  return `  ${test}><${kind} message="${verdict}">${xmlText(whyOf(trial))}</${kind}></testcase>`
}

const XML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Characters that XML cannot hold, not even as a reference, are left out. */
function xmlText(said: string): string {
  const held = said.replace(/[^\P{Cc}\n\t]|\p{Cs}|[\ufffe\uffff]/gu, '')
  return held.replace(/[&<>"]/g, (sign) => XML[sign] ?? '')
}
