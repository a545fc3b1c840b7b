// The workers of the store in memory: which leases live, and which sessions are held under leases that ended. It
// changes nothing: memory-store.ts does.
import type { Holder, ProcessId } from '../../ports/store.ts'
import { isLostSessionDue, isLeaseLive } from '../plan/plan-writes.ts'
import type { MemoryLog } from './memory-log.ts'

export type MemoryWorker = {
  until: number
  ttlMs: number
  address: string | null
  process: ProcessId | null
  readonly held: Set<MemoryLog>
}
type MemoryWorkers = ReadonlyMap<string, MemoryWorker>

/** The worker that claims, its lease time, and the present time. */
export type ClaimRequest = {
  readonly worker: string
  readonly ttlMs: number
  readonly now: number
  readonly process: ProcessId | undefined
}

export function findHolders(workers: MemoryWorkers, host: string, now: number): readonly Holder[] {
  return [...workers].flatMap(([worker, { held, process, ...lease }]) =>
    process?.host === host && held.size > 0 && isLeaseLive(lease, now) ? [{ worker, process }] : [],
  )
}

/** Sessions that are due and held under a lease that ended. */
export function findLostSessions(workers: MemoryWorkers, now: number): readonly MemoryLog[] {
  const found: MemoryLog[] = []
  for (const worker of workers.values()) {
    if (!isLeaseLive(worker, now)) for (const log of worker.held) if (isLostSessionDue(log, now)) found.push(log)
  }
  return found
}

/** The earliest time at which a wanted, held session is due and its lease has ended. */
export function nextHeldDue(workers: MemoryWorkers, now: number, wanted: (log: MemoryLog) => boolean): number {
  let next = Number.POSITIVE_INFINITY
  for (const worker of workers.values()) {
    // A lease with a time in the future hides nothing.
    const until = worker.until > now && !isLeaseLive(worker, now) ? 0 : worker.until
    for (const log of worker.held) if (log.due !== null && wanted(log)) next = Math.min(next, Math.max(log.due, until))
  }
  return next
}
