// The limits of a run: their defaults, and the two questions that `next` asks about them.
import type { FailedReason, Frozen, Limits, Outcome } from './content.ts'
import type { Run, Session } from './session.ts'

export type StopReason = 'interrupted' | 'superseded' | 'limit'
/** What `next` must know beside the session: the time, and the number of the lease it is asked under. */
export type Here = Frozen<{
  /** The time, by the clock of the store. */
  now: number
  /** The number of the lease under which it is asked. */
  epoch: number
}>

const PATIENCE_MS = 15 * 60_000
const OUTAGE_MS = 3 * 24 * 3_600_000
/** The limits of a run where nobody set others. */
export const DEFAULT_LIMITS: Limits = {
  modelRequests: 64,
  lossesMax: 8,
  toolRetries: 5,
  outputRetries: 1,
  parallel: 16,
  depth: 3,
  children: 100,
  wakes: 20,
  modelAttempts: null,
  toolCalls: null,
  tokens: null,
  hold: 0,
  modelMs: 600_000,
  activeMs: 600_000,
  patienceMs: PATIENCE_MS,
  outageMs: OUTAGE_MS,
}

/** How long an outage may last before a run with these limits fails. Logs of older versions do not contain it. */
export function outageMsOf({ outageMs = OUTAGE_MS }: Limits): number {
  return outageMs
}

/** How long a caller waits in an outage, unless the caller sets another time. */
export function patienceMsOf({ patienceMs = PATIENCE_MS }: Limits): number {
  return patienceMs
}

/**
 * When this attempt will have used up the run's active time. Null while the run is parked, or before this attempt wrote
 * anything.
 */
export function activeDeadline(s: Session, run: Run, here: Here): number | null {
  if (run.since === null || here.epoch !== s.epoch) return null
  return run.since + run.limits.activeMs - run.activeMs
}

/** Why the run must stop now, in any state; null if it may go on. */
export function whyRunStops(s: Session, run: Run, here: Here): Outcome | null {
  if (s.stop > 0) return { type: 'interrupted' }
  if (run.ends !== null) return failedOutcome('hook_error', run.ends)
  if (run.broken !== undefined) return failedOutcome('tool_error', run.broken)
  if (run.losses >= run.limits.lossesMax)
    return failedOutcome('crashed_too_often', 'The worker was lost too often without a whole turn between.')
  if (run.turn?.over) return { type: 'limit', limit: 'tool_calls' }
  const at = activeDeadline(s, run, here)
  return at !== null && here.now >= at ? { type: 'limit', limit: 'active_ms' } : null
}

/**
 * Why the reply to the open model call is no longer wanted; null while it is. Inputs before it in the log came first.
 */
export function whyReplyStops(s: Session, here: Here): StopReason | null {
  if (!s.run?.model) return null
  const why = whyRunStops(s, s.run, here)
  if (why) return why.type === 'limit' ? 'limit' : 'interrupted'
  const { seq } = s.run.model
  return s.inputs.some((input) => input.when === 'now' && input.seq > seq) ? 'superseded' : null
}

/** How long one try took, but no longer than a try may take: clocks can jump. */
export function tryDurationMs({ limits }: Pick<Run, 'limits'>, from: number, to: number): number {
  return Math.min(Math.max(0, to - from), limits.modelMs)
}

/** Why no further request may be made; null if one may. */
export function whyNoRequest(run: Run): Outcome | null {
  const { limits, turn } = run
  const wrong = turn && 'text' in turn.verdict ? turn.verdict.text : null
  if (run.exhausted !== null)
    return failedOutcome('tool_retries_exceeded', `Tool "${run.exhausted}" used up its retries.`)
  if (wrong !== null && run.outputRetries >= limits.outputRetries)
    return failedOutcome('output_validation_failed', `The output was still invalid after its last retry. ${wrong}`)
  if (turn?.verdict.type === 'unexpected') return failedOutcome('unexpected_model_behavior', turn.verdict.reason)
  if (turn?.verdict.type === 'empty' && (run.boosts >= (limits.emptyRetries ?? 1) || !turn.verdict.boost))
    return failedOutcome('empty_answer', 'The model gave an empty answer.')
  if (run.fatal) return { ...failedOutcome('provider_error', run.fatal.message), class: run.fatal.class }
  if (run.failures >= (limits.modelAttempts ?? Number.POSITIVE_INFINITY))
    return failedOutcome('provider_error', 'The model failed too often in a row.')
  if (run.waitedMs > 0 && run.waitedMs > outageMsOf(limits))
    return failedOutcome('provider_error', 'The provider was unavailable for too long.')
  return run.requests >= limits.modelRequests ? { type: 'limit', limit: 'model_requests' } : null
}

function failedOutcome(reason: FailedReason, message: string): Extract<Outcome, { type: 'failed' }> {
  return { type: 'failed', reason, failure: { kind: 'Failed', message } }
}

export function earliestTime(times: readonly number[]): number | null {
  const first = Math.min(...times)
  return Number.isFinite(first) ? first : null
}
