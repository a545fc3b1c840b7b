// Runs that a caller waits for: followed to their end, stopped by the caller's signal, or streamed. enter.ts writes the
// message.
import { dueBy } from '../../kernel/clock.ts'
import { inputsForRun } from '../../kernel/session.ts'
import type { Store } from '../../ports/store.ts'
import type { RestWaiter } from '../../runtime/loop/worker.ts'
import { readSessionHead } from '../../runtime/state/session-tree.ts'
import {
  keepStoreOpenFor,
  awaitRun,
  type FollowedRun,
  followFields,
  type SessionAccess,
  onRunBegun,
} from '../await-run.ts'
import { buildInterrupt } from '../command.ts'
import { sendInterrupt } from '../interrupt.ts'
import type { Result } from '../../runtime/state/run-result.ts'
import { orThrow, requireComplete } from '../run-failed.ts'
import { StreamFeed } from '../follow/stream.ts'
import { beginStream } from '../follow/begin-stream.ts'
import { streamReaders } from '../follow/stream-text.ts'
import type { RunOptions, StreamOptions } from '../verb-options.ts'
import type { RunStream } from '../verbs.ts'
import { admitToInbox } from './enter.ts'
import { checkHarnessOpen, wakeSession } from './place.ts'

/**
 * Sends an input and follows its run to the end; `send` returns null to follow the last run. `fresh`: `send` creates the
 * session.
 */
export async function runInput(
  place: SessionAccess,
  { fresh, ...options }: RunOptions & Pick<FollowedRun, 'fresh'>,
  send: () => Promise<number | null>,
): Promise<Result> {
  const { id, services, worker } = place
  const { signal } = options
  const result = await keepStoreOpenFor(worker, async (reader) => {
    const input = await send()
    const first = input ?? (await readSessionHead(services.store, id)).began
    const after = Math.max(0, first - 1)
    return followRun(place, reader, { input, after, signal, ...followFields(options), ...(fresh ? { fresh } : {}) })
  })
  return requireComplete(result, options.require)
}

/**
 * Opens a stream with one reader: history first, then live events, without gaps or duplicates. If the stream sent an
 * input, leaving early interrupts its run.
 */
export function openStream(
  place: SessionAccess,
  options: StreamOptions,
  send: () => Promise<number | null>,
): RunStream {
  const { id, services, worker } = place
  const feed = new StreamFeed(services, options)
  const gone = new AbortController()
  let [wanted, done] = [false, false]
  const begun = startStream(place, options, send)
  const read = (live: boolean): Promise<Result> => {
    return keepStoreOpenFor(worker, async (reader) => {
      const { input, from, ...root } = await begun
      const followed = { input, after: from, ...followFields(options) }
      if (!live) return followRun(place, reader, followed)
      const see = { event: feed.root(id, root), end: () => feed.end() }
      return followRun(place, reader, { ...followed, see, gone: gone.signal, signal: options.signal })
    })
  }
  const followed = read(true).finally(() => {
    done = true
  })
  followed.catch((error: unknown) => feed.fail(error))
  const leave = async (): Promise<void> => {
    feed.close()
    if (done) return
    if (!wanted) gone.abort()
    const { input } = await begun
    if (input !== null && !options.detach) await stopRunOfInput(place, input)
  }
  let again: Promise<Result> | null = null
  /** A stream that was left early did not wait for its result, so the log is read. */
  const result = (): Promise<Result> => {
    wanted = true
    if (!gone.signal.aborted) return followed
    again ??= read(false)
    return again
  }
  const readers = streamReaders(feed, leave, () => id)
  return {
    get result() {
      return result()
    },
    get text() {
      return readers.text()
    },
    orThrow: async (strictness) => orThrow(await result(), strictness),
    [Symbol.asyncIterator]: () => readers.events(),
  }
}

async function startStream(place: SessionAccess, options: StreamOptions, send: () => Promise<number | null>) {
  checkHarnessOpen(place)
  const { store } = place.services
  const log = {
    read: (...page: Parameters<Store['read']>) => store.read(...page),
    headOf: (id: string) => readSessionHead(store, id),
  }
  return beginStream(log, place.id, options, send)
}

/** Follows a run to its end. When the signal is aborted, the run of the input is stopped. */
export async function followRun(place: SessionAccess, reader: RestWaiter, followed: FollowedRun): Promise<Result> {
  const { input, schema, signal } = followed
  const stop = (): void => {
    if (input !== null) void stopRunOfInput(place, input).catch(() => {})
  }
  if (signal?.aborted) stop()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const result = await awaitRun(place, reader, followed)
    if (!schema) return result
    const { parseResult } = await import('../run-choice.ts')
    return await parseResult(place.services, result, schema)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

/** Stops the run that this input opened or will open. A run that another input opened continues. */
async function stopRunOfInput(place: SessionAccess, input: number): Promise<void> {
  const { id, services } = place
  const session = await readSessionHead(services.store, id)
  const { run, inputs } = session
  const began = run && (await services.store.read(id, run.seq - 1, 1)).events[0]
  if (run && began?.type === 'run.started' && began.inputs.includes(input)) return sendStop(place, run.seq)
  if (!inputs.some(({ seq }) => seq === input)) return
  if (run === null && inputsForRun(dueBy(inputs, services.store.now())).includes(input)) {
    checkHarnessOpen(place)
    const { woken } = await sendInterrupt(services, id, buildInterrupt('stop', services.random))
    for (const each of woken) wakeSession(place, each)
  }
  // Another run is open. Its end is not waited for.
  else onRunBegun(place, input, (begun) => void sendStop(place, begun).catch(() => {}))
}

async function sendStop(place: SessionAccess, run: number): Promise<void> {
  const { random } = place.services
  await admitToInbox(place, { event: { type: 'user.interrupt', id: random.id(), mode: 'stop', run }, blobs: [] })
  wakeSession(place)
}
