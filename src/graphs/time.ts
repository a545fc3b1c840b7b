// The time for a graph's deadlines. They are in the log, and the process that reads them may have another clock.
import type { CallContext } from '../ports/model.ts'

/** The store's time. A context without it has only the clock of its process. */
export function storeTime({ now, clock }: Pick<CallContext, 'now' | 'clock'>): number {
  return now ? now() : clock.now()
}
