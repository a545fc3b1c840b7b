// Old shapes of events become the present one here, when they are read, and nowhere else. The log itself never changes.
import type { Event } from '../../kernel/event.ts'

/** There is one shape so far. An unknown type passes through: it is kept, and inert in both folds. */
export function upcast(stored: Event): Event {
  return stored
}
