// How a run ended, or why it rests, in the form that a page needs.
import type { Outcome } from '../kernel/content.ts'
import type { Result } from '../sessions/verbs.ts'
import type { Pending } from '../view/pending-calls.ts'

export type PageEnd = {
  readonly status: Result['status']
  readonly finish: 'stop' | 'length' | 'refusal'
  /** One sentence about a run that ended without an answer. */
  readonly trouble?: { readonly code: string; readonly message: string }
  readonly pending?: readonly Pending[]
}

export function pageEndOf(outcome: Outcome, finish: 'length' | 'refusal' | undefined): PageEnd {
  const end = { status: outcome.type, finish: finish ?? 'stop' } as const
  if (outcome.type === 'failed')
    return { ...end, trouble: { code: outcome.reason, message: outcome.failure.message || 'The run failed.' } }
  if (outcome.type === 'halted') return { ...end, trouble: { code: 'halted', message: outcome.reason } }
  if (outcome.type !== 'limit') return end
  return { ...end, trouble: { code: 'limit_reached', message: `The run stopped at its limit ${outcome.limit}.` } }
}

/** Null if the run has settled: its last event already said so. */
export function pageRestOf(result: Result): PageEnd | null {
  if (result.status !== 'requires_action' && result.status !== 'sleeping') return null
  const { status, pending } = result
  const why = 'reason' in result ? result.reason : undefined
  const end = { status, finish: 'stop', pending } as const
  if (pending.length > 0) return end
  const message = why ?? (status === 'sleeping' ? 'The session goes on later.' : 'The session is paused.')
  return { ...end, trouble: { code: result.stopReason, message } }
}
