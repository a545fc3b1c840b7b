// The trouble of a session whose attempt failed: whether the session is to blame, how long it is left alone, and when
// for good. This file only decides. The store keeps the count (claim and release), so it outlives this process.
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { Card, Claim } from '../../ports/store.ts'
import { BACKOFF_MS_MAX } from '../state/outages.ts'
import { thrownText } from '../../view/shown-text.ts'

/**
 * Shown on the card: how many attempts failed in a row, why the last one failed, and until when the session is left
 * alone. Null: until a message or a wake.
 */
export type AttemptTrouble = NonNullable<Card['trouble']>

const BACKOFF_MS = 2_000
const REASON_CHARS_MAX = 500

/** Trouble of the store or of this process. Another session would have met it too, so this session is not to blame. */
const INFRASTRUCTURE_FAULTS: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'disk_full',
  'io_error',
  'store_busy',
  'store_closed',
  'store_newer',
  'store_replaced',
  'store_unsupported',
  'harness_closed',
  // The session's agent belongs to another worker.
  'invalid_config',
])

export function isInfrastructureFault(error: unknown): boolean {
  return error instanceof Fault && INFRASTRUCTURE_FAULTS.has(error.code)
}

/** How long a session with this many failed attempts in a row is left alone: 2 s, doubling to 30 s. */
export function backoffMs(attempts: number): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(attempts - 1, 10))
}

export type FailedAttempt = {
  readonly claim: Claim
  /** The attempt wrote something before it failed: then the count starts again at 1. */
  readonly wrote: boolean
  readonly now: number
  readonly attemptsMax: number
}

/** The trouble to record on a session whose attempt threw. */
export function attemptTrouble(error: unknown, { claim, wrote, now, attemptsMax }: FailedAttempt): AttemptTrouble {
  const attempts = wrote ? 1 : claim.failed + 1
  const over = !wrote && attempts >= attemptsMax
  return { attempts, reason: errorReason(error), until: over ? null : now + backoffMs(attempts) }
}

/** The trouble of a session whose workers were lost so often that it is not tried again. */
export function lostWorkersTrouble({ failed }: Claim): AttemptTrouble {
  const reason = `Its worker was lost ${failed} times in a row before it had done a whole turn.`
  return { attempts: failed, reason, until: null }
}

function errorReason(error: unknown): string {
  if (!(error instanceof Error)) return thrownText(error).slice(0, REASON_CHARS_MAX)
  const detail = error instanceof Fault && error.detail !== '' ? ` (${error.detail})` : ''
  return `${error.name}: ${error.message || 'no message'}${detail}`.slice(0, REASON_CHARS_MAX)
}
