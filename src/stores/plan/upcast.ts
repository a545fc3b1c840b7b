// Converts old shapes of events to the present one when they are read, only here. The log itself never changes.
import type { Failure } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { isFailureKind } from '../../kernel/result.ts'

/** Events of unknown types pass through: they are kept, and change nothing in both folds. */
export function upcast(stored: Event): Event {
  return stored.type === 'agent.tool_result' && stored.failure ? withKnownKind(stored, stored.failure) : stored
}

/**
 * Earlier versions stored any failure kind that an untyped tool used. The kind is also in the metadata, as
 * `error_type`.
 */
function withKnownKind(result: Extract<Event, { type: 'agent.tool_result' }>, failure: Failure): Event {
  const isOld = typeof failure.kind === 'string' && !isFailureKind(failure.kind)
  return isOld ? { ...result, failure: { ...failure, kind: 'Failed' } } : result
}
