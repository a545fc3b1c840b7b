// The limits of a run: their defaults, and the two questions next asks of them.
import type { FailedReason, Frozen, Limits, Outcome } from './content.ts'
import type { Run, Session } from './session.ts'

export type StopReason = 'interrupted' | 'superseded' | 'limit'
export type Here = Frozen<{ now: number; epoch: number }>

const COUNTS = {
  modelRequests: 64,
  lossesMax: 8,
  toolRetries: 5,
  outputRetries: 1,
  parallel: 16,
  depth: 3,
  children: 100,
  wakes: 20,
}
const NONE = { modelAttempts: null, toolCalls: null, tokens: null, hold: 0 }
const PATIENCE_MS = 15 * 60_000
const OUTAGE_MS = 3 * 24 * 3_600_000
const TIMES = { modelMs: 600_000, activeMs: 600_000, patienceMs: PATIENCE_MS, outageMs: OUTAGE_MS }
export const DEFAULT_LIMITS: Limits = { ...COUNTS, ...NONE, ...TIMES }

/** How long an outage may last before a run with these limits fails. A log of an older version does not say. */
export function outageMsOf({ outageMs = OUTAGE_MS }: Limits): number {
  return outageMs
}

/** How long a caller waits in an outage, unless it says otherwise. */
export function patienceMsOf({ patienceMs = PATIENCE_MS }: Limits): number {
  return patienceMs
}

/** When this attempt has used up the run's active time; null while parked, or before this attempt wrote anything. */
export function deadline(s: Session, run: Run, here: Here): number | null {
  if (run.since === null || here.epoch !== s.epoch) return null
  return run.since + run.limits.activeMs - run.activeMs
}

/** Why the run must stop now, whatever it is doing; null when it may go on. */
export function stopping(s: Session, run: Run, here: Here): Outcome | null {
  if (s.stop > 0) return { type: 'interrupted' }
  if (run.ends !== null) return failed('hook_error', run.ends)
  if (run.broken !== undefined) return failed('tool_error', run.broken)
  if (run.losses >= run.limits.lossesMax)
    return failed('crashed_too_often', 'The worker was lost too often without a whole turn between.')
  if (run.turn?.over) return { type: 'limit', limit: 'tool_calls' }
  const at = deadline(s, run, here)
  return at !== null && here.now >= at ? { type: 'limit', limit: 'active_ms' } : null
}

/** Why the answer to the open model call is no longer wanted; null while it is. What stands before it in the log came first. */
export function unwanted(s: Session, here: Here): StopReason | null {
  if (!s.run?.model) return null
  const why = stopping(s, s.run, here)
  if (why) return why.type === 'limit' ? 'limit' : 'interrupted'
  const { seq } = s.run.model
  return s.inputs.some((input) => input.when === 'now' && input.seq > seq) ? 'superseded' : null
}

/** How long one try took. No longer than a try may take, whatever the clock says. */
export function triedMs({ limits }: Pick<Run, 'limits'>, from: number, to: number): number {
  return Math.min(Math.max(0, to - from), limits.modelMs)
}

/** Why no further request may be made; null when one may. */
export function refusal(run: Run): Outcome | null {
  const { limits, turn } = run
  const wrong = turn && 'text' in turn.verdict ? turn.verdict.text : null
  if (run.exhausted !== null) return failed('tool_retries_exceeded', `Tool "${run.exhausted}" used up its retries.`)
  if (wrong !== null && run.outputRetries >= limits.outputRetries)
    return failed('output_validation_failed', `The output was still invalid after its last retry. ${wrong}`)
  if (turn?.verdict.type === 'unexpected') return failed('unexpected_model_behavior', turn.verdict.reason)
  if (turn?.verdict.type === 'empty' && (run.boosts >= (limits.emptyRetries ?? 1) || !turn.verdict.boost))
    return failed('empty_answer', 'The model gave an empty answer.')
  if (run.fatal) return { ...failed('provider_error', run.fatal.message), class: run.fatal.class }
  if (run.failures >= (limits.modelAttempts ?? Number.POSITIVE_INFINITY))
    return failed('provider_error', 'The model failed too often in a row.')
  if (run.waitedMs > outageMsOf(limits)) return failed('provider_error', 'The provider was unavailable for too long.')
  return run.requests >= limits.modelRequests ? { type: 'limit', limit: 'model_requests' } : null
}

function failed(reason: FailedReason, message: string): Extract<Outcome, { type: 'failed' }> {
  return { type: 'failed', reason, failure: { kind: 'Failed', message } }
}

export function earliest(times: readonly number[]): number | null {
  const first = Math.min(...times)
  return Number.isFinite(first) ? first : null
}
