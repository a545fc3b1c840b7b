// The counts of failures: of a provider, of tools, and of what a run needs to begin. The consequences are decided
// elsewhere.
import { writerTime } from './clock.ts'
import type { Proposal } from './content.ts'
import type { Event } from './event.ts'
import { assert } from './failure.ts'
import type { OpenTurn } from './ledger.ts'
import { tryDurationMs } from './limits.ts'
import type { OpenRun, OpenSession, Run } from './session.ts'

/** A request that began at `from` failed. `overflow` alone is not the provider's failure; it waits for a person. */
export function countFailure(run: OpenRun, e: Extract<Event, { type: 'model.failed' }>, from: number): void {
  // Counts the planned wait: a clock that jumps or a machine that sleeps must not use up the time.
  const at = writerTime(e)
  run.waitedMs += tryDurationMs(run, from, at) + Math.max(0, run.retryAt - at)
  run.trouble = { class: e.class, message: e.message, at }
  if (e.class === 'overflow' || e.unasked) return
  run.failures += 1
  if (e.partial !== undefined) run.cuts += 1
  if (!e.retryable) run.fatal = { class: e.class, message: e.message }
}

/**
 * The attempt before this epoch was lost with an open request or repeatable call. It counts once, however much it had
 * open.
 */
export function countLoss(run: OpenRun, epoch: number): void {
  run.losses = lossesBy(run, epoch)
  run.lossEpoch = epoch
}

/** The losses of the run, including the attempt before this epoch. */
export function lossesBy({ losses, lossEpoch }: Run, epoch: number): number {
  return lossEpoch === epoch ? losses : losses + 1
}

/**
 * A message or a resume asks for the next try now. The rest of the planned wait is skipped, so it does not count as
 * waited.
 */
export function hastenRetry(s: OpenSession, e: Event): void {
  const { run, deferred } = s
  if (run && run.retryAt > 0 && run.trouble) {
    run.waitedMs -= unusedMs(run.retryAt, run.trouble.at, writerTime(e))
    run.retryAt = Math.min(run.retryAt, run.trouble.at)
  }
  if (!deferred) return
  const { waitedMs, retryAt, at } = deferred
  s.deferred = {
    ...deferred,
    waitedMs: waitedMs - unusedMs(retryAt, at, writerTime(e)),
    retryAt: Math.min(retryAt, at),
  }
}

/** The part of a planned wait that is left at `now`, with bounds against wrong clocks. */
function unusedMs(until: number, from: number, now: number): number {
  return Math.min(Math.max(0, until - now), Math.max(0, until - from))
}

/** The provider replied, so its failures are over. */
export function forgetFailures(run: OpenRun): void {
  run.failures = 0
  run.fatal = null
  run.trouble = null
  run.waitedMs = 0
  run.cuts = 0
}

/** However many calls of a tool fail in one reply, the model has had one chance to correct them. */
export function countRetry(run: OpenRun, turn: OpenTurn, proposal: Proposal): void {
  const { tool } = proposal
  if (turn.retried?.includes(tool)) return
  turn.retried = [...(turn.retried ?? []), tool]
  setToolRetries(run, proposal, (Object.hasOwn(run.toolRetries, tool) ? (run.toolRetries[tool] ?? 0) : 0) + 1)
}

/** A success clears the failures before this reply. A failure in this reply still counts, in any order. */
export function forgiveRetries(run: OpenRun, turn: OpenTurn, proposal: Proposal): void {
  if (Object.hasOwn(run.toolRetries, proposal.tool))
    setToolRetries(run, proposal, turn.retried?.includes(proposal.tool) ? 1 : 0)
}

function setToolRetries(run: OpenRun, { tool, retries }: Proposal, used: number): void {
  run.toolRetries = { ...run.toolRetries, [tool]: used }
  if (used > (retries ?? run.limits.toolRetries)) run.exhausted = tool
  else if (run.exhausted === tool) run.exhausted = null
}

export function deferRun(s: OpenSession, e: Extract<Event, { type: 'run.deferred' }>): void {
  assert(s.run === null, 'a run was deferred inside a run')
  const { message: reason, retryAt, waitedMs } = e
  s.deferred = { reason, tries: (s.deferred?.tries ?? 0) + 1, waitedMs, at: writerTime(e), retryAt }
}

/** The run began or was given up, or no input is left to begin it. An imported file's times do not count here. */
export function endDeferral(s: OpenSession, { type }: Event): void {
  const over = type === 'run.started' || type === 'run.settled' || type === 'session.imported'
  if (over || s.inputs.length + s.wakes.length === 0) s.deferred = null
}
