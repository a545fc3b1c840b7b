// What a model call that failed comes to: the event with its class and message, and when it is tried again, or why it is not.
// Loaded by the first call that fails.
import type { OwnerBody } from '../kernel/event.ts'
import { outageMsOf, triedMs } from '../kernel/limits.ts'
import type { ModelFailure, Request } from '../ports/model.ts'
import { BACKOFF_MS_MAX, retryMs } from '../engine/backoff.ts'
import type { FlightContext } from '../engine/flights.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import { agentFor, type Services } from '../engine/wiring.ts'
import { RETRY_MS_MAX } from '../models/http/failures.ts'
import { isPriced } from '../models/http/hosted.ts'
import { CHARS_A_TOKEN } from '../riders/money/spending-limits.ts'
import { assumedFor, charsIn } from '../riders/money/usage-estimate.ts'
import type { ModelContext } from './contexts.ts'
import { stoppedCall } from './outcomes.ts'

const FIRST_RETRY_MS = 200
/** An answer that was cut as often as this in a row is not asked for again at once: each of them is paid for. */
const CUTS_SOON_MAX = 4

export type FailedCall = {
  readonly request: Request
  readonly flight: Pick<FlightContext, 'reason'>
  readonly context: Pick<ModelContext, 'spoke'>
}

type Failed = Extract<OwnerBody, { type: 'model.failed' }>

/** A model that was stopped, or had begun to answer, may have worked: its cost is assumed, because no answer says it. */
export async function failedCall(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  during: FailedCall,
): Promise<Failed> {
  const failed = await failedEvent(services, cache, failure, during)
  const { request, flight, context } = during
  const worked = flight.reason !== null || context.spoke || failure.broken || failure.class === 'timeout'
  if (failure.unasked || !worked) return failed
  const { model } = agentFor(services, cache)
  return { ...failed, ...(await assumedFor(model, request, failed.partial?.length ?? 0)) }
}

async function failedEvent(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  { request, flight: { reason }, context: { spoke } }: FailedCall,
): Promise<Failed> {
  // Present whenever an answer had begun: empty if nothing of it was text.
  const partial = failure.partial ?? (spoke || failure.broken ? '' : undefined)
  const { model = null } = cache.session.run ?? {}
  const now = cache.now()
  const stopped = reason && stoppedCall(reason, { elapsedMs: now - (model?.at ?? now), partial })
  // A call whose time is over is one more try that failed. Every other stop asks for no further try.
  if (stopped && reason !== 'timeout') return stopped
  const said =
    failure.class === 'overflow' ? await fullText(services, cache, failure, request) : failure.message || failure.class
  const { class: kind, message, retryable } = stopped || { ...failure, message: said }
  const failed = { type: 'model.failed', class: kind, message, ...(partial === undefined ? {} : { partial }) } as const
  return retryable ? retried(services, cache, failure, failed) : { ...failed, retryable: false }
}

/** When it is tried again. Where it is not, the message says why: the end of the run names its cause. */
function retried(
  services: Services,
  cache: SessionCache,
  { retryAfterMs, unasked }: ModelFailure,
  failed: Omit<Failed, 'retryable'>,
): Failed {
  const { failures = 0, limits = null, model = null, waitedMs = 0, cuts = 0 } = cache.session.run ?? {}
  if (limits === null) return { ...failed, retryable: false }
  const now = cache.now()
  const tries = failures + (unasked ? 0 : 1)
  const usedMs = waitedMs + triedMs({ limits }, model?.at ?? now, now)
  const leftMs = outageMsOf(limits) - usedMs
  const often = tries >= (limits.modelAttempts ?? Number.POSITIVE_INFINITY)
  // A model of the user's own may say anything.
  const askedMs = retryAfterMs !== undefined && retryAfterMs > 0 ? Math.min(retryAfterMs, RETRY_MS_MAX) : 0
  if (often || leftMs <= 0 || askedMs > leftMs) {
    const until =
      askedMs > leftMs ? ` The provider is to be asked again at ${new Date(now + askedMs).toISOString()}.` : ''
    const after = `Given up after ${tries === 1 ? '1 try' : `${tries} tries`}.`
    const limit = often ? '' : ` The limit outageMs is ${outageMsOf(limits)} ms.`
    return { ...failed, message: `${sentence(failed.message)}${until} ${after}${limit}`, retryable: false }
  }
  const cutOften = failed.partial !== undefined && cuts + 1 >= CUTS_SOON_MAX
  const backoff = Math.max(retryMs(FIRST_RETRY_MS, failures, usedMs), cutOften ? BACKOFF_MS_MAX : 0)
  // Sessions that failed at the same moment try again one after the other, and none before the provider said.
  const jitter = (Math.max(backoff, Math.min(askedMs, BACKOFF_MS_MAX)) * services.random.fraction()) / 4
  const wait = Math.min(leftMs, Math.max(askedMs, backoff) + jitter)
  return { ...failed, retryable: true, retryAt: now + Math.ceil(wait), ...(unasked ? { unasked } : {}) }
}

/** What a provider says often ends without a mark. */
function sentence(text: string): string {
  return /[.!?…]$/.test(text.trimEnd()) ? text.trimEnd() : `${text.trimEnd()}.`
}

/** Nothing is cut silently: the message says how full the context is, and what can be done. */
async function fullText(
  services: Services,
  cache: SessionCache,
  failure: ModelFailure,
  request: Request,
): Promise<string> {
  const { model } = agentFor(services, cache)
  const tokens = Math.ceil(charsIn(request) / CHARS_A_TOKEN)
  const size = isPriced(model) ? (await model.profile()).contextTokens : null
  const most = size === null ? '' : ` of ${size}`
  return `The context is full: about ${tokens}${most} tokens. Fork the session from an earlier event, or go on with a model that takes more. (${failure.message})`
}
