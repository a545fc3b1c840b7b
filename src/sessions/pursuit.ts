// A pursuit as hosts ask for it and read it: its options, its states and ends. outcomes/ begins and continues it.
import type { Frozen } from '../kernel/content.ts'
import { type Check, countCheck, optionsChecker, requiredCheck, textCheck, whyNameInvalid } from '../options.ts'

/** What a session is to reach, the rubric it is graded by, and how much that may cost. */
export type PursueOptions = {
  /** What must be reached. The agent reads it, and the grader. */
  readonly description: string
  /** What the result is graded by: criteria, each one that can be met or not. At most 64 KB. */
  readonly rubric: string
  /** After so many rounds it ends, whatever the grade. From 1 to 20; default 3. */
  readonly roundsMax?: number
  /** In dollars, for all rounds and graders. Once it is spent, no round and no grading begins. */
  readonly usd?: number
  /** Your own id. The same id twice is one pursuit. */
  readonly id?: string
  /** Names the sender in the log. */
  readonly by?: string
}

export const ROUNDS = 3
export const ROUNDS_MAX = 20
const DESCRIPTION_CHARS_MAX = 8_000
const RUBRIC_BYTES_MAX = 64 * 1024

const shortText =
  (max: number, lengthOf: (text: string) => number, unit: string, hint: string): Check =>
  (value, name, of) => {
    const wrong = textCheck(value, name, of)
    if (wrong !== null) return wrong
    const text = String(value)
    // Only characters that are drawn count as a text.
    if (!/[^\s\p{Default_Ignorable_Code_Point}]/u.test(text)) return `is empty: ${hint}`
    const length = lengthOf(text)
    return length > max ? `has ${length} ${unit} and may have ${max}: ${hint}` : null
  }

export const checkPursue = optionsChecker<PursueOptions>('pursue', {
  description: requiredCheck(
    shortText(DESCRIPTION_CHARS_MAX, ({ length }) => length, 'characters', 'say briefly what must be reached'),
    'Say what must be reached.',
  ),
  rubric: requiredCheck(
    shortText(
      RUBRIC_BYTES_MAX,
      (text) => new TextEncoder().encode(text).length,
      'bytes',
      'list the criteria that the result must meet',
    ),
    'List the criteria that the result must meet.',
  ),
  roundsMax: countCheck(1, ROUNDS_MAX),
  usd: (value) =>
    typeof value === 'number' && value > 0 && value < 1e9 ? null : 'must be a number of dollars above 0',
  id: textCheck,
  by: whyNameInvalid,
})

/**
 * What is known of the outcome. `missing_outcome`: nothing is pursued. `blocked`: a round or its grader waits for a
 * person. `not_ready`: a round is at work, or not graded. `uncertain`: the grader could not tell. `fail`, `pass`: it was
 * graded so.
 */
export type PursuitState = 'missing_outcome' | 'blocked' | 'not_ready' | 'uncertain' | 'fail' | 'pass'

/**
 * How a pursuit ended. `satisfied`: every criterion is met. `max_rounds`: none was left. `failed`: a round did not
 * complete, or the money was spent. `interrupted`: the session was stopped or closed. `ungraded`: there is no grade for
 * the last round.
 */
export type PursuitEnd = 'satisfied' | 'max_rounds' | 'failed' | 'interrupted' | 'ungraded'

/** The grade of one round. */
export type RoundGrade = Frozen<{
  /** The number of the round, from 1. */
  round: number
  /** Whether all criteria are met, some are not, or the grader could not tell. */
  state: Extract<PursuitState, 'uncertain' | 'fail' | 'pass'>
  /** How many criteria are met. */
  met: number
  /** How many criteria the rubric has, as the grader counted them. */
  of: number
  /** The grader's own words. */
  summary: string
  /** When the round was graded, in ms since 1970. */
  at: number
  /** The session of its grader. */
  session: string
}>

/** How the grades of the rounds go. */
export type PursuitTrend = 'first_iteration' | 'improving' | 'stable' | 'regressing'

/** The last pursuit of a session. */
export type PursuitStatus = Frozen<
  | { state: 'missing_outcome' }
  | {
      state: Exclude<PursuitState, 'missing_outcome'>
      /** Null while it goes on. */
      end: PursuitEnd | null
      /** Why it ended without a grade, or what it waits for. Null if the state says it all. */
      why: string | null
      fingerprint: string
      description: string
      rubric: string
      /** The round at work, or the last one. */
      round: number
      roundsMax: number
      usd: number | null
      /** What the session and the graders spent since it began. */
      spentUsd: number
      /** The last grade compared with the one before. */
      trend: PursuitTrend
      /** The last 12 grades, the oldest first. */
      history: readonly RoundGrade[]
    }
>
