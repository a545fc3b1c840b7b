// What a scorer is, and how one trial is scored: a scorer that throws, hangs or gives no score leaves the trial
// ungraded, and never ends the suite.
import type { Frozen } from '../kernel/content.ts'
import type { Harness, HarnessOptions } from '../harness.ts'
import { describeValue } from '../options.ts'
import { sleep } from '../runtime/state/sleep.ts'
import type { Clock } from '../ports/system.ts'
import { firstNonJson } from '../tools/core/plain-values.ts'
import { shortenText, thrownText } from '../view/shown-text.ts'
import type { Trial } from './trial.ts'

/** What one scorer gave to one trial. */
export type Score = Frozen<{
  /** The name of the scorer. */
  name: string
  /** From 0 to 1. Null: it could not be graded. */
  score: number | null
  /** Why, in the words of the scorer. */
  why?: string
  /** The session of a judge, and what it cost. */
  session?: string
  /** What the judge cost, in dollars. Absent if none was asked. */
  usd?: number
  /** The parts of a score, such as the criteria of a rubric. */
  parts?: readonly Frozen<{ name: string; score: number | null; why?: string }>[]
}>

/** Its own name is added. A plain number or `true` and `false` will do. */
export type ScoreResult = Omit<Score, 'name'> | number | boolean | null

/** What a scorer that asks a model needs. */
export type ScoreContext = {
  /** A harness on the store of the suite. The same options give the same harness, which is closed with the suite. */
  readonly open: (options: Omit<HarnessOptions, 'store'>) => Harness
  /**
   * Does something that costs money, once for each key; the same key again gives the same result. A result that `find`
   * gives was paid for before. Resolves with null if the suite's money does not suffice.
   */
  readonly once: <T extends { readonly usd: number }>(
    key: string,
    act: () => Promise<T>,
    find?: () => Promise<T | null>,
  ) => Promise<T | null>
}

/** Something that gives a trial a score between 0 and 1, by code or by a model. */
export type Scorer = {
  /** Names the score in reports. */
  readonly name: string
  /** The least score that passes. Default 1. */
  readonly passes?: number
  /** Grades one trial. If it throws, hangs or gives no score, the trial is ungraded. */
  readonly score: (trial: Trial, context: ScoreContext) => ScoreResult | Promise<ScoreResult>
}

/** A scorer of your own. Its name is the name of the function. */
export type ScoreFunction = (trial: Trial, context: ScoreContext) => ScoreResult | Promise<ScoreResult>

/** What a trial came to. `errored` and `ungraded` say nothing about the agent. */
export type TrialVerdict = 'passed' | 'failed' | 'errored' | 'ungraded'
export type Graded = { readonly verdict: TrialVerdict; readonly scores: readonly Score[] }

/** A function in its place as a scorer. */
export function completeScorer(scorer: Scorer | ScoreFunction, index: number): Scorer {
  return typeof scorer === 'function' ? { name: scorer.name || `scorer ${index + 1}`, score: scorer } : scorer
}

type Scoring = { readonly context: ScoreContext; readonly clock: Clock; readonly scoreMs: number }

/** A score that is too low fails the trial. Otherwise one that is missing leaves it ungraded. */
export async function gradeTrial(scorers: readonly Scorer[], trial: Trial, scoring: Scoring): Promise<Graded> {
  const scores = await Promise.all(scorers.map((scorer) => scoreTrial(scorer, trial, scoring)))
  const isLow = scores.some(({ score }, i) => score !== null && score < (scorers[i]?.passes ?? 1))
  const isOpen = scores.some(({ score }) => score === null)
  return { verdict: isLow ? 'failed' : isOpen ? 'ungraded' : 'passed', scores }
}

async function scoreTrial(scorer: Scorer, trial: Trial, { context, clock, scoreMs }: Scoring): Promise<Score> {
  const { name } = scorer
  const over = new AbortController()
  const late = sleep(clock, scoreMs, over.signal).then(() => LATE)
  try {
    const given = await Promise.race([Promise.resolve().then(() => scorer.score(trial, context)), late])
    if (given === LATE) return { name, score: null, why: `It gave no score within ${scoreMs / 1_000} s.` }
    return { ...readScore(given as ScoreResult), name }
  } catch (error) {
    return { name, score: null, why: `It failed: ${shortenText(thrownText(error), WHY_CHARS_MAX)}` }
  } finally {
    over.abort()
  }
}

const LATE = Symbol('late')
const WHY_CHARS_MAX = 20_000
const LEVELS_MAX = 8

function readScore(given: ScoreResult): Omit<Score, 'name'> {
  if (typeof given === 'boolean') return { score: given ? 1 : 0 }
  const told = given !== null && typeof given === 'object' ? given : { score: given }
  const { score } = told
  if (score !== null && !(typeof score === 'number' && score >= 0 && score <= 1))
    return { score: null, why: `It gave ${describeValue(score)}. A score is from 0 to 1, or null.` }
  // A report is plain JSON.
  const odd = firstNonJson(told, LEVELS_MAX)
  if (odd !== null) return { score: null, why: `It gave a score with ${odd}. All of it must be plain JSON.` }
  const { why = score === null ? 'It gave no score.' : undefined } = told
  if (why === undefined) return told
  if (typeof why !== 'string') return { score: null, why: 'It gave a score whose `why` is no text.' }
  return { ...told, why: shortenText(why, WHY_CHARS_MAX) }
}
