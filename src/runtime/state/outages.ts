// Whether trouble passes by itself, and how long to wait in an outage before the next try.

import { Fault, type FaultCode } from '../../kernel/failure.ts'
import { ToolFailure, isServerAway } from '../../tools/core/tool-output.ts'

const TEMPORARY_FAULTS: ReadonlySet<FaultCode> = new Set<FaultCode>(['disk_full', 'io_error', 'store_busy'])
const CAUSES_MAX = 5
/** Whether the trouble may pass by itself: the service that failed, or the one behind it, is down, busy or late. */
export function isTemporaryError(error: unknown): boolean {
  let inner = error
  for (let depth = 0; depth < CAUSES_MAX && inner instanceof Error; depth++, inner = inner.cause) {
    if (inner instanceof Fault) return TEMPORARY_FAULTS.has(inner.code)
    if (inner instanceof ToolFailure) return inner.kind === 'Unavailable' || inner.kind === 'Timeout'
    if (isServerAway(inner)) return true
  }
  return false
}
export const BACKOFF_MS_MAX = 30_000
const RETRY_MS_MAX = 15 * 60_000
/** The longest wait between two tries is this part of the outage's length so far. */
const RETRY_SHARE = 1 / 8
/**
 * How long to wait in an outage before the next try: `firstMs`, doubled with each failure up to 30 s. An outage longer
 * than four minutes is tried after an eighth of its length, and at least every 15 minutes.
 */
export function retryMs(firstMs: number, failures: number, awayMs: number): number {
  const most = Math.min(RETRY_MS_MAX, Math.max(BACKOFF_MS_MAX, awayMs * RETRY_SHARE))
  return Math.min(most, firstMs * 2 ** Math.min(failures, 30))
}
