// The event for a model call that failed: its class and message, and when it is tried again, or why it is not.
import type { OwnerBody } from '../../kernel/event.ts'
import { outageMsOf, tryDurationMs } from '../../kernel/limits.ts'
import type { ModelFailure, Request } from '../../ports/model.ts'
import { retryMs, BACKOFF_MS_MAX } from '../state/outages.ts'
import type { FlightContext } from '../state/effect.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import { agentOfRun } from '../state/agent.ts'
import { RETRY_MS_MAX } from '../../models/http/failures.ts'
import { isPriced } from '../../models/http/hosted-model.ts'
import { CHARS_PER_TOKEN_MIN } from '../money/spending-limits.ts'
import { estimateSpending, countRequestChars } from '../money/usage-estimate.ts'
import type { ModelContext } from './call-context.ts'
import { stoppedModelCall } from './landings.ts'

const FIRST_RETRY_MS = 200
/** After this many cut answers in a row the next try waits: each of them is paid for. */
const CUTS_SOON_MAX = 4

export type FailedModelCall = {
  readonly request: Request
  readonly flight: Pick<FlightContext, 'reason'>
  readonly context: Pick<ModelContext, 'spoke'>
}

type ModelFailedBody = Extract<OwnerBody, { type: 'model.failed' }>

/**
 * A model that was stopped, or that had begun to answer, may have worked. Its cost is estimated, because no answer
 * reports it.
 */
export async function buildFailedCall(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  during: FailedModelCall,
): Promise<ModelFailedBody> {
  const failed = await buildModelFailed(services, cache, failure, during)
  const { request, flight, context } = during
  const worked = flight.reason !== null || context.spoke || failure.broken || failure.class === 'timeout'
  if (failure.unasked || !worked) return failed
  const { model } = agentOfRun(services, cache)
  return { ...failed, ...(await estimateSpending(model, request, failed.partial?.length ?? 0)) }
}

async function buildModelFailed(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  { request, flight: { reason }, context: { spoke } }: FailedModelCall,
): Promise<ModelFailedBody> {
  // Present whenever an answer had begun, and empty if none of it was text.
  const partial = failure.partial ?? (spoke || failure.broken ? '' : undefined)
  const { model = null } = cache.session.run ?? {}
  const now = cache.now()
  const stopped = reason && stoppedModelCall(reason, { elapsedMs: now - (model?.at ?? now), partial })
  // A call that timed out counts as one more failed try. Every other stop asks for no further try.
  if (stopped && reason !== 'timeout') return stopped
  const said =
    failure.class === 'overflow'
      ? await contextFullText(services, cache, failure, request)
      : failure.message || failure.class
  const { class: kind, message, retryable } = stopped || { ...failure, message: said }
  const failed = { type: 'model.failed', class: kind, message, ...(partial === undefined ? {} : { partial }) } as const
  return retryable ? scheduleRetry(services, cache, failure, failed) : { ...failed, retryable: false }
}

/**
 * Computes when the call is tried again. If it is not, the message says why, because the end of the run names its
 * cause.
 */
function scheduleRetry(
  services: Services,
  cache: SessionCache,
  { retryAfterMs, unasked }: ModelFailure,
  failed: Omit<ModelFailedBody, 'retryable'>,
): ModelFailedBody {
  const { failures = 0, limits = null, model = null, waitedMs = 0, cuts = 0 } = cache.session.run ?? {}
  if (limits === null) return { ...failed, retryable: false }
  const now = cache.now()
  const tries = failures + (unasked ? 0 : 1)
  const usedMs = waitedMs + tryDurationMs({ limits }, model?.at ?? now, now)
  const leftMs = outageMsOf(limits) - usedMs
  const often = tries >= (limits.modelAttempts ?? Number.POSITIVE_INFINITY)
  // A host's own model may return any value.
  const askedMs = retryAfterMs !== undefined && retryAfterMs > 0 ? Math.min(retryAfterMs, RETRY_MS_MAX) : 0
  if (often || leftMs <= 0 || askedMs > leftMs) {
    const until =
      askedMs > leftMs ? ` The provider is to be asked again at ${new Date(now + askedMs).toISOString()}.` : ''
    const after = `Given up after ${tries === 1 ? '1 try' : `${tries} tries`}.`
    const limit = often ? '' : ` The limit outageMs is ${outageMsOf(limits)} ms.`
    return { ...failed, message: `${endSentence(failed.message)}${until} ${after}${limit}`, retryable: false }
  }
  const cutOften = failed.partial !== undefined && cuts + 1 >= CUTS_SOON_MAX
  const backoff = Math.max(retryMs(FIRST_RETRY_MS, failures, usedMs), cutOften ? BACKOFF_MS_MAX : 0)
  // Jitter spreads the retries of sessions that failed at the same moment. None is earlier than the provider asked for.
  const jitter = (Math.max(backoff, Math.min(askedMs, BACKOFF_MS_MAX)) * services.random.fraction()) / 4
  const wait = Math.min(leftMs, Math.max(askedMs, backoff) + jitter)
  return { ...failed, retryable: true, retryAt: now + Math.ceil(wait), ...(unasked ? { unasked } : {}) }
}

/** A provider's message often has no full stop. */
function endSentence(text: string): string {
  return /[.!?…]$/.test(text.trimEnd()) ? text.trimEnd() : `${text.trimEnd()}.`
}

/** Nothing is cut silently: the message says how full the context is and what can be done. */
async function contextFullText(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  request: Request,
): Promise<string> {
  const { model } = agentOfRun(services, cache)
  const tokens = Math.ceil(countRequestChars(request) / CHARS_PER_TOKEN_MIN)
  const size = isPriced(model) ? (await model.profile()).contextTokens : null
  const most = size === null ? '' : ` of ${size}`
  return `The context is full: about ${tokens}${most} tokens. Fork the session from an earlier event, or go on with a model that takes more. (${failure.message})`
}
