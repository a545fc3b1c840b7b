// The report of one run of a suite: every trial with its verdict, the rate with how sure it is, what it cost, and
// whether it is good enough. Plain JSON: it is a baseline as it stands. build-report.ts makes it. Pure.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { Score, TrialVerdict } from './score.ts'
import type { CaseCount, Interval } from './statistics.ts'
import type { EvalMode } from './suite.ts'

/** One trial of a case, and what it came to. */
export type TrialReport = Frozen<{
  /** Tells the trials of a case apart. */
  n: number
  /** The session of the trial. */
  session: string
  /** What the trial came to. */
  verdict: TrialVerdict
  /** The error of a trial that says nothing about the agent. */
  why?: string
  /** What each scorer gave. */
  scores: readonly Score[]
  /** What the agent cost, with its children, in dollars. */
  usd: number
  /** From its first event to its last, in ms. */
  ms: number
  /** How many replies its models gave, those of children included. */
  turns: number
  /** How many calls it made, those of children included. */
  calls: number
}>
/** One case of a report, with all its trials. */
export type CaseReport = Frozen<{
  /** The id of the case. */
  id: string
  /** Its trials, in order. */
  trials: readonly TrialReport[]
}>

/** `inconclusive`: too many trials say nothing about the agent. */
export type SuiteStatus = 'passed' | 'failed' | 'inconclusive'

/**
 * What a suite came to: how many trials passed, how sure the rate is, and what it cost. It can be kept as JSON and
 * compared later.
 */
export type EvalReport = Frozen<{
  /** The version of this form. */
  version: 1
  /** The name of the suite. */
  suite: string
  /** When it was made, in milliseconds since 1970. */
  at: number
  /** How the agent was run. */
  mode: EvalMode
  /** Equal for runs with the same agent. */
  blueprint: string
  /** Whether the suite is good enough. `inconclusive`: too many trials say nothing about the agent. */
  status: SuiteStatus
  /** Why it did not pass, a sentence each. */
  reasons: readonly string[]
  /** How many trials had each verdict. */
  counts: Readonly<Record<TrialVerdict, number>>
  /** The share of graded trials that passed. Null: none was graded. */
  rate: number | null
  /** Where the true rate is in 95 of 100 suites. Null: fewer than five cases. */
  interval: Interval | null
  /** The chance that at least one, and that each, of so many trials of a case passes: the mean over cases. */
  passAt: Readonly<Record<string, number>>
  /** The chance that each of so many trials of a case passes: the mean over cases. */
  passAll: Readonly<Record<string, number>>
  /** What the agent and the judges cost, in dollars. */
  cost: { readonly usd: number; readonly judgeUsd: number }
  /** The cases with their trials. */
  cases: readonly CaseReport[]
}>

/** How many of its trials were graded, and how many passed. */
export function countCase({ trials }: CaseReport): CaseCount {
  const graded = trials.filter(({ verdict }) => verdict === 'passed' || verdict === 'failed')
  return { trials: graded.length, passed: graded.filter(({ verdict }) => verdict === 'passed').length }
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1).replace(/\.0$/, '')} %`
}

/** Reads a report from a file or a store. Throws `invalid_input` for what is none, and for one of another suite. */
export function readReport(value: unknown, suite?: string): EvalReport {
  const bad = (why: string): Fault => new Fault('invalid_input', `This is no report of a suite: ${why}.`)
  if (!isObject(value) || !Array.isArray(value['cases'])) throw bad('it has no list of cases')
  const { version } = value
  if (typeof version === 'number' && version > 1)
    throw bad(`a newer version of Terret wrote it (${version}, and this one reads 1). Update`)
  if (version !== 1) throw bad('its version must be 1')
  const report = value as unknown as EvalReport
  if (typeof report.suite !== 'string' || !report.cases.every(isCaseReport)) throw bad('its cases are not of this form')
  const { cost, counts } = value
  if (!hasNumbers(cost, ['usd', 'judgeUsd'])) throw bad('its cost is not of this form')
  if (!hasNumbers(counts, VERDICTS)) throw bad('its counts are not of this form')
  if (suite !== undefined && report.suite !== suite)
    throw new Fault('invalid_input', `The baseline is of the suite "${report.suite}", not of "${suite}". Give its own.`)
  return report
}

const VERDICTS: readonly string[] = ['passed', 'failed', 'errored', 'ungraded'] satisfies readonly TrialVerdict[]

function isCaseReport(value: unknown): boolean {
  const { id, trials } = (value ?? {}) as Partial<CaseReport>
  return typeof id === 'string' && Array.isArray(trials) && trials.every(isTrialReport)
}

function isTrialReport(value: unknown): boolean {
  const { verdict, scores, session } = (value ?? {}) as Partial<TrialReport>
  return VERDICTS.includes(verdict ?? '') && isScoreList(scores) && typeof session === 'string'
}

function isScoreList(scores: unknown): boolean {
  return Array.isArray(scores) && scores.every((score) => isObject(score) && typeof score['name'] === 'string')
}

function hasNumbers(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => Number.isFinite(value[name]))
}
