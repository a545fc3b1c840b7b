// What is counted of failures: of a provider, of tools, of what a run needs to begin. What a count leads to is not known here.
import { clockOf } from './clock.ts'
import type { Proposal } from './content.ts'
import type { Event } from './event.ts'
import { assert } from './failure.ts'
import type { OpenTurn } from './ledger.ts'
import { triedMs } from './limits.ts'
import type { OpenRun, OpenSession, Run } from './session.ts'

/** A request that began at `from` failed. Only `overflow` is no failure of the provider, and waits for a person. */
export function countFailure(run: OpenRun, e: Extract<Event, { type: 'model.failed' }>, from: number): void {
  // The wait as it was planned: a clock that jumps and a machine that sleeps use up no patience.
  const at = clockOf(e)
  run.waitedMs += triedMs(run, from, at) + Math.max(0, run.retryAt - at)
  run.trouble = { class: e.class, message: e.message, at }
  if (e.class === 'overflow' || e.unasked) return
  run.failures += 1
  if (e.partial !== undefined) run.cuts += 1
  if (!e.retryable) run.fatal = { class: e.class, message: e.message }
}

/** The attempt before this epoch was lost with a request or a call that is safe to repeat. It counts once, whatever it had open. */
export function countLoss(run: OpenRun, epoch: number): void {
  run.losses = lossesBy(run, epoch)
  run.lossEpoch = epoch
}

/** The losses of the run, with that of the attempt before this epoch. */
export function lossesBy({ losses, lossEpoch }: Run, epoch: number): number {
  return lossEpoch === epoch ? losses : losses + 1
}

/** Somebody asks for the next try now. What is left of the planned wait is not waited, so it does not count as waited. */
export function hastenRetry(s: OpenSession, e: Event): void {
  const { run, deferred } = s
  if (run && run.retryAt > 0 && run.trouble) {
    run.waitedMs -= unusedMs(run.retryAt, run.trouble.at, clockOf(e))
    run.retryAt = Math.min(run.retryAt, run.trouble.at)
  }
  if (!deferred) return
  const { waitedMs, retryAt, at } = deferred
  s.deferred = { ...deferred, waitedMs: waitedMs - unusedMs(retryAt, at, clockOf(e)), retryAt: Math.min(retryAt, at) }
}

/** What is left at `now` of a wait that was planned at `from`, whatever the clocks say. */
function unusedMs(until: number, from: number, now: number): number {
  return Math.min(Math.max(0, until - now), Math.max(0, until - from))
}

/** A reply came: the provider is back. */
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
  tally(run, proposal, (Object.hasOwn(run.toolRetries, tool) ? (run.toolRetries[tool] ?? 0) : 0) + 1)
}

/** A success forgives the failures before this reply. One of this reply still counts, in whatever order they came. */
export function forgiveRetries(run: OpenRun, turn: OpenTurn, proposal: Proposal): void {
  if (Object.hasOwn(run.toolRetries, proposal.tool)) tally(run, proposal, turn.retried?.includes(proposal.tool) ? 1 : 0)
}

function tally(run: OpenRun, { tool, retries }: Proposal, used: number): void {
  run.toolRetries = { ...run.toolRetries, [tool]: used }
  if (used > (retries ?? run.limits.toolRetries)) run.exhausted = tool
  else if (run.exhausted === tool) run.exhausted = null
}

export function defer(s: OpenSession, e: Extract<Event, { type: 'run.deferred' }>): void {
  assert(s.run === null, 'a run was deferred inside a run')
  const { message: reason, retryAt, waitedMs } = e
  s.deferred = { reason, tries: (s.deferred?.tries ?? 0) + 1, waitedMs, at: clockOf(e), retryAt }
}

/** The run began or was given up, or nothing is left that it would begin for. What a file says of times does not count here. */
export function endDeferral(s: OpenSession, { type }: Event): void {
  const over = type === 'run.started' || type === 'run.settled' || type === 'session.imported'
  if (over || s.inputs.length + s.wakes.length === 0) s.deferred = null
}
