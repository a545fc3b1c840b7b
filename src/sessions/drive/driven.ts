// Runs that a caller waits for: followed to their end, stopped by the caller's signal, or streamed. enter.ts writes the
// message.
import { dueBy } from '../../kernel/clock.ts'
import { inputsForRun } from '../../kernel/session.ts'
import type { Store } from '../../ports/store.ts'
import type { SessionBeginning } from '../../runtime/loop/act-as-owner.ts'
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
import type { Input } from '../input.ts'
import { sendInterrupt } from '../interrupt.ts'
import type { Result } from '../../runtime/state/run-result.ts'
import { orThrow, requireComplete } from '../run-failed.ts'
import { StreamFeed } from '../follow/stream.ts'
import { beginStream } from '../follow/begin-stream.ts'
import { streamReaders } from '../follow/stream-text.ts'
import type { RunOptions, StreamOptions } from '../verb-options.ts'
import type { RunStream } from '../verbs.ts'
import { admitToInbox, createWithMessage } from './enter.ts'
import { checkHarnessOpen, wakeSession } from './place.ts'

/** Runs one input in a new session to its end. */
export async function runNewSession(
  place: SessionAccess,
  beginning: SessionBeginning,
  input: Input,
  options: RunOptions,
): Promise<Result> {
  const result = await keepStoreOpenFor(place.worker, async (reader) => {
    const seq = await createWithMessage(place, beginning, input, options)
    return followUntilAborted(
      place,
      reader,
      { input: seq, after: seq - 1, fresh: true, ...followFields(options) },
      options.signal,
    )
  })
  return requireComplete(result, options.require)
}

/** Follows a run, and stops it when the signal is aborted. */
export async function followUntilAborted(
  place: SessionAccess,
  reader: RestWaiter,
  followed: FollowedRun,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const { input } = followed
  if (!signal || input === null) return followRun(place, reader, followed)
  const stop = (): void => void stopRunOfInput(place, input).catch(() => {})
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await followRun(place, reader, followed)
  } finally {
    signal.removeEventListener('abort', stop)
  }
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
      return followUntilAborted(place, reader, { ...followed, see, gone: gone.signal }, options.signal)
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

export async function followRun(place: SessionAccess, reader: RestWaiter, followed: FollowedRun): Promise<Result> {
  const result = await awaitRun(place, reader, followed)
  if (!followed.schema) return result
  const { parseResult } = await import('../run-choice.ts')
  return parseResult(place.services, result, followed.schema)
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
