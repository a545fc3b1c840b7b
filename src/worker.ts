// The public entry `terret/worker`: the loop over due sessions, and single looks, for a host that has several harnesses
// on one store. A program with one harness calls `harness.work()`.
import type { Claim, TakeOptions } from './ports/store.ts'
import { driverOf } from './harness.ts'
import type { WorkerLook } from './runtime/loop/worker.ts'
import type { Sessions } from './sessions/verbs.ts'

/** A harness of this process, with any types. */
type WorkingHarness = Pick<Sessions, 'health'>

/**
 * Looks at a due session as `work` does: a session that failed too often is left alone. A `DueLoop` says when to look,
 * and whether `alone`. `claim`: what `takeDueSessions` claimed.
 */
export async function lookAt(
  harness: WorkingHarness,
  session: string,
  alone: boolean,
  claim?: Claim,
): Promise<WorkerLook> {
  return driverOf(harness).look(session, alone, claim)
}

/**
 * Claims due sessions with the store's `take`. Each must be handed to `lookAt` with its claim. Sessions of any agent,
 * unless `agents` are given.
 */
export async function takeDueSessions(
  harness: WorkingHarness,
  wanted: Omit<TakeOptions, 'process'>,
): Promise<ReadonlyMap<string, Claim>> {
  return driverOf(harness).take(wanted)
}

export { DueLoop, type DueLoopOptions, type LookResult } from './runtime/loop/due-loop.ts'
export type { WorkerLook } from './runtime/loop/worker.ts'
