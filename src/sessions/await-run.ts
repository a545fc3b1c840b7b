// Waiting for a session: follows its log until the run that was asked for has settled, or until the session and its children wait
// for something outside, and returns the result. It drives through the worker and decides nothing.
import type { Event } from '../kernel/event.ts'
import { isBroke } from '../view/pending.ts'
import { heldText, outageOf, settle } from '../riders/children/tree.ts'
import { LogFollower } from './follow/log-follower.ts'
import { CallerPatience } from './caller-patience.ts'
import { pendingOf } from './look/pending.ts'
import { windowOfRun } from './meter.ts'
import { Collector, type Result } from './result.ts'
import { elsewhere } from '../engine/program.ts'
import { sleep } from '../engine/sleep.ts'
import type { Looked, Reader, Worker } from '../engine/worker.ts'
import type { Services } from '../engine/wiring.ts'
import type { StandardSchema } from '../tools/core/json-schema.ts'
import type { RunOptions } from './verb-options.ts'

/** A session, and the worker that drives it. */
export type Place = { readonly id: string; readonly services: Services; readonly worker: Worker }

export type Followed = {
  /** The message whose run is followed; null for the last run. */
  readonly input: number | null
  readonly after: number
  /** The session was just made for this message: its run need not wait until the log is read. */
  readonly fresh?: true
  readonly raw?: boolean
  /** How long this caller waits in an outage. Default: the limit `patienceMs`. */
  readonly patienceMs?: number | undefined
  /** The caller's own schema of the answer. */
  readonly schema?: StandardSchema
  /** Other readers of the events, and what they must still do at the end. */
  readonly see?: { readonly event: (event: Event) => void; readonly end: () => Promise<void> }
  /** The result is not waited for any more. */
  readonly gone?: AbortSignal
}

export function followedBy({
  raw = false,
  limits,
  patienceMs = limits?.patienceMs,
  output,
}: RunOptions): Pick<Followed, 'raw' | 'patienceMs' | 'schema'> {
  const schema = output && '~standard' in output.schema ? { schema: output.schema as StandardSchema } : {}
  return { raw, patienceMs, ...schema }
}

/** As a reader of the worker's: closing the harness ends it, and the store is closed after that. */
export async function attended<T>(worker: Worker, act: (reader: Reader) => Promise<T>): Promise<T> {
  const reader = worker.attend()
  try {
    return await act(reader)
  } finally {
    worker.leave(reader)
  }
}

export async function follow(place: Place, reader: Reader, followed: Followed): Promise<Result> {
  const { id, services, worker } = place
  const { input, after, fresh = false, raw = false, patienceMs, see, gone } = followed
  const { store, clock } = services
  const collector = new Collector(id, input, raw)
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
    // A failure to read is met again by the next `catchUp`.
    const caughtUp = follower.catchUp()
    if (fresh) caughtUp.catch(() => {})
    else await caughtUp
    for (;;) {
      // A caller whose patience is over leaves: what drives the session goes on.
      const looked = await Promise.race([settle(worker, store, id, clock), patience.over])
      if (looked.type === 'elsewhere' && !gone?.aborted) throw elsewhere(id, looked.why)
      // Events after the end of the run that was asked for do not change its result.
      if (see || input === null || !collector.outcome) await follower.catchUp()
      const retryMs = collector.outcome ? null : await retryWait(looked, place, patience)
      const over = (looked.type === 'rested' && retryMs === null) || looked.type === 'stopped' || gone?.aborted
      // Its driver may be about to begin a newer run than the last that was seen.
      if (over || (collector.outcome && (input !== null || (await store.card(id))?.due === null))) {
        const result = await resultOf(place, collector, looked)
        await see?.end()
        return result
      }
      // Another worker drives it, or ours was lost: wait for news, or for a lease to run out.
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

/** How long to wait for the next try of a provider; null if that is not what the session waits for, or is beyond the caller's patience. */
async function retryWait(
  looked: Looked,
  { services: { store } }: Place,
  patience: CallerPatience,
): Promise<number | null> {
  if (looked.type !== 'rested' || looked.waiting !== 'retry' || looked.until === null) return null
  const wait = Math.max(1, looked.until - store.now())
  return wait <= (await patience.leftMs()) ? Math.min(wait, WAIT_MS_MAX) : null
}

/** A clock may jump and a machine may sleep, so it is looked at again now and then. */
const WAIT_MS_MAX = 60_000

export async function resultOf({ id, services, worker }: Place, seen: Collector, looked: Looked): Promise<Result> {
  const { store } = services
  const found = looked.type === 'rested' ? looked : { waiting: 'nothing', until: null }
  const held = found.waiting === 'resume' && (await store.card(id))?.held === true
  const away = found.waiting === 'retry' ? await outageOf(worker.heads, id, store.now()) : null
  const reason = held ? heldText(id) : away?.reason
  const rest = reason === undefined ? found : { ...found, reason }
  const collector = await seen.whole(store)
  await collector.countChildren(store)
  const { outcome, counted } = collector
  if (counted) collector.window = await windowOfRun(services, id, counted.options)
  if (outcome && !isBroke(outcome)) return collector.result([], rest)
  return collector.result(await pendingOf(store, id), rest)
}

/** Calls `begun` with the run that this message will open. Never, if it joins another, or the harness is closed before. */
export function whenBegun(
  { id, services: { store }, worker }: Place,
  input: number,
  begun: (run: number) => void,
): void {
  const reader = worker.attend()
  const leave = (): void => {
    follower.close()
    worker.leave(reader)
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
