// Old shapes of events become the present one here, when they are read, and nowhere else. The log itself never changes.
import type { Failure } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { isFailureKind } from '../../kernel/result.ts'

/** An unknown type passes through: it is kept, and inert in both folds. */
export function upcast(stored: Event): Event {
  return stored.type === 'agent.tool_result' && stored.failure ? withKnownKind(stored, stored.failure) : stored
}

/** Earlier versions wrote any kind of failure that a tool without types said. It also stands in the metadata, as `error_type`. */
function withKnownKind(result: Extract<Event, { type: 'agent.tool_result' }>, failure: Failure): Event {
  const isOld = typeof failure.kind === 'string' && !isFailureKind(failure.kind)
  return isOld ? { ...result, failure: { ...failure, kind: 'Failed' } } : result
}
