// Old shapes of events become the present one here, when they are read, and nowhere else. The log itself never changes.
import type { Event } from './event.ts'

/** Raised with each released shape of the log. A store written by a newer one is refused. */
export const LOG_VERSION = 1

/** There is one shape so far. An unknown type passes through: it is kept, and inert in both folds. */
export function upcast(stored: Event): Event {
  return stored
}
