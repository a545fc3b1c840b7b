// The workers of the store in memory: whose leases live, and what those hold whose leases ended. It changes nothing: memory.ts does.
import type { Holder, ProcessId } from '../../ports/store.ts'
import { isDue, isLive } from '../plan/plan.ts'
import type { Log } from './log.ts'

export type Worker = {
  until: number
  ttlMs: number
  address: string | null
  process: ProcessId | null
  readonly held: Set<Log>
}
type Workers = ReadonlyMap<string, Worker>

/** Who claims, for how long, and when. */
export type Claiming = {
  readonly worker: string
  readonly ttlMs: number
  readonly now: number
  readonly process: ProcessId | undefined
}

export function holdersIn(workers: Workers, host: string, now: number): readonly Holder[] {
  return [...workers].flatMap(([worker, { held, process, ...lease }]) =>
    process?.host === host && held.size > 0 && isLive(lease, now) ? [{ worker, process }] : [],
  )
}

/** Sessions that are due and held under a lease that ended. */
export function lostOf(workers: Workers, now: number): readonly Log[] {
  const found: Log[] = []
  for (const worker of workers.values()) {
    if (!isLive(worker, now)) for (const log of worker.held) if (isDue(log, now)) found.push(log)
  }
  return found
}

/** When the first session that is held and wanted becomes due: not before its lease ends. */
export function nextHeld(workers: Workers, now: number, wanted: (log: Log) => boolean): number {
  let next = Number.POSITIVE_INFINITY
  for (const worker of workers.values()) {
    // A lease that lies ahead hides nothing.
    const until = worker.until > now && !isLive(worker, now) ? 0 : worker.until
    for (const log of worker.held) if (log.due !== null && wanted(log)) next = Math.min(next, Math.max(log.due, until))
  }
  return next
}
