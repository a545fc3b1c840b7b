// Waits for a run on a server, and streams it. The server drives; the result is the one that it gives, unless a later
// run has ended meanwhile: then it is counted from the log, as the library counts it.
import type { RunStream, StreamOptions } from '../index.ts'
import { LogFollower } from '../sessions/follow/log-follower.ts'
import { beginStream } from '../sessions/follow/begin-stream.ts'
import { StreamFeed } from '../sessions/follow/stream.ts'
import { streamReaders } from '../sessions/follow/stream-text.ts'
import { orThrow } from '../sessions/run-failed.ts'
import { ResultCollector, type Result } from '../runtime/state/run-result.ts'
import type { EventsAnswer, ResultAnswer, WireResult } from '../server/wire.ts'
import type { RemoteLogs } from './remote-logs.ts'
import { type ServerConnection, sleepUntilAborted } from './server-connection.ts'

/** A session of a server. */
export type RemoteSession = { readonly id: string; readonly wires: ServerConnection; readonly logs: RemoteLogs }
/** `input`: the message whose run is waited for; null for the last run. */
type AwaitedRun = { readonly input: number | null; readonly patienceMs?: number | undefined }

/** The most that one request waits. */
const WAIT_S = 25
const LOOK_MS = 500
const PATIENCE_MS = 15 * 60_000

/** Waits until the run settles or waits for something outside, such as a person. */
export async function awaitRemoteRun(remote: RemoteSession, { input, patienceMs }: AwaitedRun): Promise<Result> {
  const began = Date.now()
  for (;;) {
    const result = await readRemoteResult(remote, WAIT_S)
    if (result === null) {
      if (input !== null || (await hasWork(remote))) continue
      return new ResultCollector(remote.id, null).result([], { waiting: 'nothing', until: null })
    }
    const leftMs = began + (patienceMs ?? PATIENCE_MS) - Date.now()
    // A provider that is unavailable is waited for, as long as its next retry is within the caller's patience.
    const retries = result.status === 'sleeping' && result.until !== null && result.until - Date.now() <= leftMs
    if (!retries || leftMs <= 0) return (await earlierResult(remote, input)) ?? result
    await sleepUntilAborted(Math.min(LOOK_MS, leftMs))
  }
}

/** Null while the session works, and before its first run. */
export async function readRemoteResult({ id, wires }: RemoteSession, waitS: number): Promise<Result | null> {
  const { result } = await wires.json<ResultAnswer>('result', { params: { id }, query: { wait: waitS } })
  return result && libraryResult(result)
}

function libraryResult({ costUsd, treeCostUsd, cost, own, ...result }: WireResult): Result {
  const spent = { cost: { usd: treeCostUsd, ownUsd: costUsd, micros: cost }, ownUsage: own.usage }
  // Sound: all else is the library's result as JSON.
  return { ...result, ...spent } as Result
}

async function hasWork({ id, logs }: RemoteSession): Promise<boolean> {
  const { began, inputs } = await logs.headOf(id)
  return began > 0 || inputs.length > 0
}

/** The result of the input's run if a later run has settled too; else null. */
async function earlierResult({ id, wires, logs }: RemoteSession, input: number | null): Promise<Result | null> {
  if (input === null) return null
  const query = { after: input, types: 'run.settled', limit: 2 }
  const { events } = await wires.json<EventsAnswer>('events', { params: { id }, query })
  if (events.length < 2) return null
  const collector = new ResultCollector(id, input)
  let isLast = true
  for (const event of (await logs.read(id, input - 1, Number.MAX_SAFE_INTEGER)).events) {
    if (collector.outcome !== null && event.type === 'run.settled') isLast = false
    collector.take(event)
  }
  if (isLast) return null
  const whole = await collector.whole(logs)
  await whole.countChildren(logs)
  return whole.result([], { waiting: 'nothing', until: null })
}

/** Calls `stop` when the signal aborts before `wait` is over. */
export async function stopOnAbort<T>(
  signal: AbortSignal | undefined,
  stop: () => Promise<unknown>,
  wait: () => Promise<T>,
): Promise<T> {
  const act = (): void => void stop().catch(() => {})
  if (signal?.aborted) act()
  signal?.addEventListener('abort', act, { once: true })
  try {
    return await wait()
  } finally {
    signal?.removeEventListener('abort', act)
  }
}

/**
 * `begin` opens the session if there is none yet, and sends the input: `input` is its seq, or null if the stream follows
 * the last run. `stop` interrupts the session.
 */
export type RemoteStreamOptions = StreamOptions & {
  readonly begin: () => Promise<{ readonly id: string; readonly input: number | null }>
  readonly stop: (id: string) => Promise<unknown>
}

/** `place` is the session's server. */
export function openRemoteStream(place: Omit<RemoteSession, 'id'>, options: RemoteStreamOptions): RunStream {
  const { logs } = place
  const { begin, stop, detach, signal } = options
  const feed = new StreamFeed({ store: logs, live: logs.live }, options)
  let id = ''
  let done = false
  const started = (async () => {
    const begun = await begin()
    id = begun.id
    return beginStream(logs, id, options, async () => begun.input)
  })()
  const wait = async (): Promise<Result> => {
    const { input, from, ...root } = await started
    const event = feed.root(id, root)
    const follower = new LogFollower(logs, id, from, { event, error: (error) => feed.fail(error) })
    try {
      await follower.catchUp()
      const patienceMs = options.patienceMs ?? options.limits?.patienceMs ?? undefined
      const run = (): Promise<Result> => awaitRemoteRun({ ...place, id }, { input, patienceMs })
      const result = await stopOnAbort(signal, () => stop(id), run)
      await follower.catchUp()
      await feed.end()
      return result
    } finally {
      done = true
      follower.close()
    }
  }
  const result = wait()
  result.catch((error: unknown) => feed.fail(error))
  const leave = async (): Promise<void> => {
    feed.close()
    if (!done && !detach && (await started).input !== null) await stop(id)
  }
  const readers = streamReaders(feed, leave, () => id)
  return {
    result,
    get text() {
      return readers.text()
    },
    orThrow: async (strictness) => orThrow(await result, strictness),
    [Symbol.asyncIterator]: () => readers.events(),
  }
}
