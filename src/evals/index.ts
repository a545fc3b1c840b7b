// The public names of terret/evals: suites of cases, the scorers that grade them, and two runs compared.
export { type Bounds, asked, bounds, calls, type CallsOptions, events, never, settled } from './call-scorers.ts'
export type { ArgsMode, CallMode, EventCounts, ExpectedCall } from './call-scorers.ts'
export type { EvalCase } from './eval-case.ts'
export { type CaseExpectation, caseOf, caseOfLog } from './case-of.ts'
export { compare, type DifferenceWord, type ReportComparison } from './compare.ts'
export { judgedBy, type JudgeOptions } from './judge.ts'
export { type KeptReport, keptReports, readKeptReport } from './kept-reports.ts'
export { closeTo, contains, equals, json, matches, type Wanted } from './plain-scorers.ts'
export { type CaseReport, type EvalReport, readReport, type SuiteStatus, type TrialReport } from './report.ts'
export { reportJunit, reportMarkdown } from './report-text.ts'
export { runSuite, type RunSuiteOptions } from './run-suite.ts'
export type { Score, ScoreContext, ScoreFunction, Scorer, ScoreResult, TrialVerdict } from './score.ts'
export type { Interval } from './statistics.ts'
export {
  defineSuite,
  type EvalMode,
  type PeopleFunction,
  type Suite,
  type SuiteAgent,
  type SuiteGate,
  type SuiteOptions,
} from './suite.ts'
export type { Trial, TrialCall } from './trial.ts'
