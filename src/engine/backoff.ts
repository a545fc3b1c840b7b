// What becomes of a session whose attempt failed: whose trouble it is, how long the session is left alone, and when for good.
// It only decides. The count is the store's (claim and release), so it outlives this process.
import { Fault, type FaultCode } from '../kernel/failure.ts'
import type { Card, Claim } from '../ports/store.ts'
import { isAway, ToolFailure } from '../tools/core/output.ts'

/** Shown on the card: failed attempts in a row, why the last one failed, and until when it is left alone. Null: until a message or a wake. */
export type Trouble = NonNullable<Card['trouble']>

const BACKOFF_MS = 2_000
export const BACKOFF_MS_MAX = 30_000
const REASON_CHARS_MAX = 500

/** Trouble of the store or of this process: another session would have met it too, so this one is not to blame. */
const ELSEWHERE: ReadonlySet<FaultCode> = new Set<FaultCode>([
  'disk_full',
  'io_error',
  'store_busy',
  'store_closed',
  'store_newer',
  'store_replaced',
  'store_unsupported',
  'harness_closed',
  // The agent it belongs to is another worker's.
  'invalid_config',
])

const AWAY_FAULTS: ReadonlySet<FaultCode> = new Set<FaultCode>(['disk_full', 'io_error', 'store_busy'])
const CAUSES_MAX = 5

/** Whether what made this fail may come back by itself: it, or what caused it, is down, busy or late. */
export function isPassing(error: unknown): boolean {
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && inner instanceof Error; depth++, inner = inner.cause) {
    if (inner instanceof Fault) return AWAY_FAULTS.has(inner.code)
    if (inner instanceof ToolFailure) return inner.kind === 'Unavailable' || inner.kind === 'Timeout'
    if (isAway(inner)) return true
  }
  return false
}

export function isElsewhere(error: unknown): boolean {
  return error instanceof Fault && ELSEWHERE.has(error.code)
}

/** How long a session that failed so often in a row is left alone: 2 s, doubling to 30 s. */
export function backoffMs(attempts: number): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** Math.min(attempts - 1, 10))
}

const RETRY_MS_MAX = 15 * 60_000
/** The longest wait between two tries is this part of the time that the outage has lasted. */
const RETRY_SHARE = 1 / 8

/**
 * How long to wait in an outage before the next try: `firstMs`, doubled with each failure up to 30 s. An outage that has lasted longer
 * than four minutes is tried after an eighth of its length, and at least every 15 minutes.
 */
export function retryMs(firstMs: number, failures: number, awayMs: number): number {
  const most = Math.min(RETRY_MS_MAX, Math.max(BACKOFF_MS_MAX, awayMs * RETRY_SHARE))
  return Math.min(most, firstMs * 2 ** Math.min(failures, 30))
}

export type Failing = {
  readonly claim: Claim
  /** It wrote something before it failed: then the streak begins with it. */
  readonly wrote: boolean
  readonly now: number
  readonly attemptsMax: number
}

/** What an attempt that threw leaves on its session. */
export function troubleOf(error: unknown, { claim, wrote, now, attemptsMax }: Failing): Trouble {
  const attempts = wrote ? 1 : claim.failed + 1
  const over = !wrote && attempts >= attemptsMax
  return { attempts, reason: reasonOf(error), until: over ? null : now + backoffMs(attempts) }
}

/** The trouble of a session whose workers were lost so often that it is not tried again. */
export function lostTrouble({ failed }: Claim): Trouble {
  const reason = `Its worker was lost ${failed} times in a row before it had done a whole turn.`
  return { attempts: failed, reason, until: null }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error).slice(0, REASON_CHARS_MAX) || 'an error without a message'
  const detail = error instanceof Fault && error.detail !== '' ? ` (${error.detail})` : ''
  return `${error.name}: ${error.message || 'no message'}${detail}`.slice(0, REASON_CHARS_MAX)
}
