// Writes the landings and all that `next` records on top as one commit, and retries when the store refuses or does not
// answer.
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { LandingQueue, StopSignal } from '../state/effect.ts'
import { shortfallOf } from '../money/spending-limits.ts'
import { sleep } from '../state/sleep.ts'
import type { CommitPlan } from './commit-draft.ts'
import { type CommitAttempt, planCommit } from './plan-commit.ts'

export type WritingAttempt = CommitAttempt & {
  /** Called when these events are on disk, with the other sessions that must look. */
  readonly onCommitted: (plan: CommitPlan) => void
  /** Called when a commit succeeded that began at this time: the lease was ours then. */
  readonly onRenewed: (at: number) => void
  /** Called once for each commit that waits because the disk is full. */
  readonly onDiskFull: () => void
  /** How long to keep trying when the disk is full or the store is busy. */
  readonly patienceMs: number
}

/** Returns the written plan, with what must be happening next. */
export async function writeCommit(
  attempt: WritingAttempt,
  flights: LandingQueue,
  stopSignal: StopSignal,
): Promise<CommitPlan> {
  const { cache, store, clock, parts } = attempt
  let plan = planCommit(attempt, flights, stopSignal, null)
  for (let giveUpAt = 0, wasSent = false, toldOfDisk = false; ; ) {
    if (plan.events.length === 0 && !plan.write.release) break
    try {
      if (!wasSent && parts.family) plan = (await parts.family.addressRelatives(plan)) ?? plan
      // From here on the store's answer may get lost, and a retry must write exactly the same.
      wasSent = true
      await store.commit(plan.writes)
      attempt.onRenewed(plan.at)
      for (const event of plan.events) cache.keep(event)
      attempt.onCommitted(plan)
      if (plan.write.snapshot) cache.snapshotSeq = plan.write.snapshot.seq
      break
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const { code } = error
      giveUpAt ||= plan.at + attempt.patienceMs
      if (code !== 'store_busy') wasSent = false
      if (code === 'conflict' || (code === 'over_budget' && !plan.shortfall) || (await findOtherLanes(attempt, code))) {
        // Drop the uncommitted events, read the log again, and decide everything anew. The landings stay in memory.
        const shortfall = code === 'over_budget' && !(await flights.recountLandings()) ? shortfallOf(error) : null
        await cache.open()
        plan = planCommit(attempt, flights, stopSignal, shortfall)
      } else if ((code === 'disk_full' || code === 'store_busy') && clock.now() < giveUpAt) {
        // Another worker may have the session. This attempt can write nothing more, or has already written all it had
        // to.
        if (stopSignal.reason === 'lost') throw new Fault('lease_lost', error.message)
        if (code === 'disk_full') {
          // No further write would get through, and a process that was told to end does not wait for room.
          if (stopSignal.reason === 'stopped') throw error
          if (!toldOfDisk) attempt.onDiskFull()
          toldOfDisk = true
        }
        await sleep(clock, 250)
      } else throw error
    }
  }
  flights.dropWritten(plan.landed)
  return plan
}

/** A lane of a consumer was created or removed meanwhile, and the commit assumed the opposite. */
async function findOtherLanes({ parts }: WritingAttempt, code: FaultCode): Promise<boolean> {
  if (parts.consumers === null || (code !== 'session_exists' && code !== 'session_missing')) return false
  return parts.consumers.lookAgain()
}
