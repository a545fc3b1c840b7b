// What a server tells of suites of trials: the reports that are kept in its store, one of them whole, and a session as a
// case. Types only.
import type { Frozen, Json } from '../kernel/content.ts'

export type EvalVerdict = 'passed' | 'failed' | 'errored' | 'ungraded'
export type EvalStatus = 'passed' | 'failed' | 'inconclusive'
export type EvalCounts = Readonly<Record<EvalVerdict, number>>

/** A kept report, by the session that keeps it. */
export type EvalRow = Frozen<{
  session: string
  suite: string
  at: number
  blueprint: string
  status: EvalStatus
  rate: number | null
  counts: EvalCounts
}>
export type EvalsAnswer = Frozen<{ runs: readonly EvalRow[]; now: number }>

/** `session`: that of a judge. `parts`: the criteria of a rubric. */
export type EvalScore = Frozen<{
  name: string
  score: number | null
  why?: string
  session?: string
  usd?: number
  parts?: readonly EvalScorePart[]
}>
export type EvalScorePart = Frozen<{ name: string; score: number | null; why?: string }>
export type EvalTrial = Frozen<{
  n: number
  session: string
  verdict: EvalVerdict
  why?: string
  scores: readonly EvalScore[]
  usd: number
  ms: number
  turns: number
  calls: number
}>
export type EvalCaseRow = Frozen<{ id: string; trials: readonly EvalTrial[] }>

/** A report as it is kept. */
export type WireReport = Frozen<{
  version: number
  suite: string
  at: number
  mode: 'live' | 'replayed' | 'recorded'
  blueprint: string
  status: EvalStatus
  reasons: readonly string[]
  counts: EvalCounts
  rate: number | null
  interval: EvalInterval | null
  passAt: Readonly<Record<string, number>>
  passAll: Readonly<Record<string, number>>
  cost: Frozen<{ usd: number; judgeUsd: number }>
  cases: readonly EvalCaseRow[]
}>
export type EvalInterval = Frozen<{ low: number; high: number }>

/** Two runs side by side. Rates are of the graded trials of a case; null: none was. */
export type EvalComparison = Frozen<{
  word: 'better' | 'worse' | 'no difference seen'
  difference: number
  interval: EvalInterval | null
  text: string
  shared: number
  cases: readonly EvalComparedCase[]
  cost: Frozen<{ before: number; after: number }>
}>
export type EvalComparedCase = Frozen<{ id: string; before: number | null; after: number | null }>
export type EvalRunAnswer = Frozen<{ report: WireReport; comparison: EvalComparison | null }>

/** A session as a case of a suite. */
export type CaseAnswer = Frozen<{ id: string; input: string | readonly string[]; expected?: Json; recording?: string }>
