// What time it is for a graph: its deadlines are in the log, and the process that reads them may have another clock.
import type { CallContext } from '../ports/model.ts'

/** By the store's clock. A context that does not know it has only the clock of its process. */
export function timeIn({ now, clock }: Pick<CallContext, 'now' | 'clock'>): number {
  return now ? now() : clock.now()
}
