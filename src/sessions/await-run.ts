// Waits for a session: follows its log until the requested run has settled, or until the session and its children wait
// for something outside, and returns the result. It drives through the worker and decides nothing.
import type { Event } from '../kernel/event.ts'
import { isOverBudget } from '../view/pending-calls.ts'
import { findOutage, settleTree } from '../runtime/state/session-tree.ts'
import { importHeldText } from '../view/session-program.ts'
import { LogFollower } from './follow/log-follower.ts'
import { CallerPatience } from './caller-patience.ts'
import { pendingInTree } from './look/pending.ts'
import { runWindowTokens } from './meter.ts'
import { ResultCollector, type Result } from '../runtime/state/run-result.ts'
import { elsewhereFault } from '../runtime/state/program.ts'
import { sleep } from '../runtime/state/sleep.ts'
import type { RestReport, RestWaiter, Worker } from '../runtime/loop/worker.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import type { StandardSchema } from '../tools/core/json-schema.ts'
import type { RunOptions } from './verb-options.ts'

/** A session, and the worker that drives it. */
export type SessionAccess = { readonly id: string; readonly services: Services; readonly worker: Worker }

export type FollowedRun = {
  /** The message whose run is followed; null for the last run. */
  readonly input: number | null
  readonly after: number
  /** The session was just created for this message, so its run need not wait until the log is read. */
  readonly fresh?: true
  readonly raw?: boolean
  /** How long this caller waits in an outage. Default: the limit `patienceMs`. */
  readonly patienceMs?: number | undefined
  /** The caller's own schema of the answer. */
  readonly schema?: StandardSchema
  /** Another reader of the events, and its last step at the end. */
  readonly see?: { readonly event: (event: Event) => void; readonly end: () => Promise<void> }
  /** Aborted when the caller no longer waits for the result. */
  readonly gone?: AbortSignal
  /** Aborted to stop the run of the input. */
  readonly signal?: AbortSignal | undefined
}

export function followFields({
  raw = false,
  limits,
  patienceMs = limits?.patienceMs,
  output,
}: RunOptions): Pick<FollowedRun, 'raw' | 'patienceMs' | 'schema'> {
  const schema = output && '~standard' in output.schema ? { schema: output.schema as StandardSchema } : {}
  return { raw, patienceMs, ...schema }
}

/**
 * Registers a reader with the worker while `act` runs: closing the harness ends the reader first, and the store is
 * closed after that.
 */
export async function keepStoreOpenFor<T>(worker: Worker, act: (reader: RestWaiter) => Promise<T>): Promise<T> {
  const reader = worker.addWaiter()
  try {
    return await act(reader)
  } finally {
    worker.removeWaiter(reader)
  }
}

export async function awaitRun(place: SessionAccess, reader: RestWaiter, followed: FollowedRun): Promise<Result> {
  const { id, services, worker } = place
  const { input, after, fresh = false, raw = false, patienceMs, see, gone } = followed
  const { store, clock } = services
  const collector = new ResultCollector(id, input, raw)
  const patience = new CallerPatience(place, patienceMs)
  const event = (e: Event): void => {
    see?.event(e)
    collector.take(e)
    patience.take(e)
    reader.wake()
  }
  const follower = new LogFollower(store, id, after, { event, error: () => reader.wake() })
  const leave = (): void => {
    follower.close()
    reader.wake()
  }
  gone?.addEventListener('abort', leave, { once: true })
  try {
    // If this read fails, the next `catchUp` meets the failure again.
    const caughtUp = follower.catchUp()
    if (fresh) caughtUp.catch(() => {})
    else await caughtUp
    for (;;) {
      // A caller whose patience is over stops waiting. The work on the session continues.
      const looked = await Promise.race([settleTree(worker, store, id, clock), patience.over])
      if (looked.type === 'elsewhere' && !gone?.aborted) throw elsewhereFault(id, looked.why)
      // Events after the end of the requested run do not change its result.
      if (see || input === null || !collector.outcome) await follower.catchUp()
      const retryMs = collector.outcome ? null : await retryWaitMs(looked, place, patience)
      const over = (looked.type === 'rested' && retryMs === null) || looked.type === 'stopped' || gone?.aborted
      // The worker may be about to begin a newer run than the last one in the log.
      if (over || (collector.outcome && (input !== null || (await store.card(id))?.due === null))) {
        const result = await buildResult(place, collector, looked)
        await see?.end()
        return result
      }
      // Another worker drives the session, or ours was lost: wait for news, or until a lease runs out.
      const news = new Promise<void>((resolve) => {
        reader.wake = resolve
      })
      if (!worker.closed) await Promise.race([news, patience.over, sleep(clock, retryMs ?? 500)])
    }
  } finally {
    patience.leave()
    gone?.removeEventListener('abort', leave)
    follower.close()
  }
}

/**
 * How long to wait for the next retry of a provider. Null if the session waits for something else, or if the wait
 * exceeds the caller's patience.
 */
async function retryWaitMs(
  looked: RestReport,
  { services: { store } }: SessionAccess,
  patience: CallerPatience,
): Promise<number | null> {
  if (looked.type !== 'rested' || looked.waiting !== 'retry' || looked.until === null) return null
  const wait = Math.max(1, looked.until - store.now())
  return wait <= (await patience.leftMs()) ? Math.min(wait, WAIT_MS_MAX) : null
}

/** The longest wait: a clock may jump and a machine may sleep, so the session is looked at again now and then. */
const WAIT_MS_MAX = 60_000

export async function buildResult(
  { id, services, worker }: SessionAccess,
  seen: ResultCollector,
  looked: RestReport,
): Promise<Result> {
  const { store } = services
  const found = looked.type === 'rested' ? looked : { waiting: 'nothing', until: null }
  const held = found.waiting === 'resume' && (await store.card(id))?.held === true
  const away = found.waiting === 'retry' ? await findOutage(worker.heads, id, store.now()) : null
  const reason = held ? importHeldText(id) : away?.reason
  const rest = reason === undefined ? found : { ...found, reason }
  const collector = await seen.whole(store)
  await collector.countChildren(store)
  const { outcome, counted } = collector
  if (counted) collector.window = await runWindowTokens(services, id, counted.options)
  if (outcome && !isOverBudget(outcome)) return collector.result([], rest)
  return collector.result(await pendingInTree(store, id), rest)
}

/**
 * Calls `begun` with the run that this message opens. It is never called if the message joins another run, or if the
 * harness closes first.
 */
export function onRunBegun(
  { id, services: { store }, worker }: SessionAccess,
  input: number,
  begun: (run: number) => void,
): void {
  const reader = worker.addWaiter()
  const leave = (): void => {
    follower.close()
    worker.removeWaiter(reader)
  }
  const event = (e: Event): void => {
    const taken = e.type === 'run.started' || e.type === 'run.settled' ? (e.inputs ?? []) : []
    const shown = e.type === 'model.started' && e.shows.includes(input)
    if (!shown && !taken.includes(input) && e.type !== 'session.closed') return
    leave()
    if (e.type === 'run.started') begun(e.seq)
  }
  const follower = new LogFollower(store, id, input, { event, error: leave })
  reader.wake = leave
  follower.catchUp().catch(leave)
}
