// A run that a caller waits for: followed to its end, stopped by the caller's signal, or streamed. How its message got in is enter.ts.
import { opening } from '../../kernel/session.ts'
import type { Beginning } from '../../engine/owner.ts'
import type { Reader } from '../../engine/worker.ts'
import { headOf } from '../../riders/children/tree.ts'
import { attended, follow, type Followed, followedBy, type Place, whenBegun } from '../await-run.ts'
import { interruptOf } from '../command.ts'
import type { Input } from '../input.ts'
import { interrupted } from '../interrupt.ts'
import type { Result } from '../result.ts'
import { orThrow, required } from '../run-failed.ts'
import { Feed, streamStart } from '../follow/stream.ts'
import { readersOf } from '../follow/stream-text.ts'
import type { RunOptions, StreamOptions } from '../verb-options.ts'
import type { RunStream } from '../verbs.ts'
import { admit, createWith } from './enter.ts'
import { checkOpen, kick } from './place.ts'

/** One input in a new session, to its end. */
export async function begin(place: Place, beginning: Beginning, input: Input, options: RunOptions): Promise<Result> {
  const result = await attended(place.worker, async (reader) => {
    const seq = await createWith(place, beginning, input, options)
    return heed(place, reader, { input: seq, after: seq - 1, fresh: true, ...followedBy(options) }, options.signal)
  })
  return required(result, options.require)
}

/** Follows a run, which the signal stops. */
export async function heed(
  place: Place,
  reader: Reader,
  followed: Followed,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const { input } = followed
  if (!signal || input === null) return followRun(place, reader, followed)
  const stop = (): void => void stopRunOf(place, input).catch(() => {})
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await followRun(place, reader, followed)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** One reader: history, then live, no gap and no duplicate. With an input of its own, leaving early interrupts its run. */
export function streamed(place: Place, options: StreamOptions, send: () => Promise<number | null>): RunStream {
  const { id, services, worker } = place
  const feed = new Feed(services, options)
  const gone = new AbortController()
  let [wanted, done] = [false, false]
  const begun = start(place, options, send)
  const read = (live: boolean): Promise<Result> => {
    return attended(worker, async (reader) => {
      const { input, from, ...root } = await begun
      const followed = { input, after: from, ...followedBy(options) }
      if (!live) return followRun(place, reader, followed)
      const see = { event: feed.root(id, root), end: () => feed.end() }
      return heed(place, reader, { ...followed, see, gone: gone.signal }, options.signal)
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
    if (input !== null && !options.detach) await stopRunOf(place, input)
  }
  let again: Promise<Result> | null = null
  /** A stream that was left early did not wait for its result: then the log is read. */
  const result = (): Promise<Result> => {
    wanted = true
    if (!gone.signal.aborted) return followed
    again ??= read(false)
    return again
  }
  const readers = readersOf(feed, leave, id)
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

async function start(place: Place, options: StreamOptions, send: () => Promise<number | null>) {
  checkOpen(place)
  return streamStart(place.services.store, place.id, options, send)
}

export async function followRun(place: Place, reader: Reader, followed: Followed): Promise<Result> {
  const result = await follow(place, reader, followed)
  if (!followed.schema) return result
  const { parsedResult } = await import('../run-choice.ts')
  return parsedResult(place.services, result, followed.schema)
}

/** Stops the run that this input opened, or will open. One that another input opened goes on. */
async function stopRunOf(place: Place, input: number): Promise<void> {
  const { id, services } = place
  const session = await headOf(services.store, id)
  const { run, inputs } = session
  const began = run && (await services.store.read(id, run.seq - 1, 1)).events[0]
  if (run && began?.type === 'run.started' && began.inputs.includes(input)) return stop(place, run.seq)
  if (!inputs.some(({ seq }) => seq === input)) return
  if (run === null && opening(session).includes(input)) {
    checkOpen(place)
    const { woken } = await interrupted(services, id, interruptOf('stop', services.random))
    for (const each of woken) kick(place, each)
  }
  // Another run is open. It is not waited for.
  else whenBegun(place, input, (begun) => void stop(place, begun).catch(() => {}))
}

async function stop(place: Place, run: number): Promise<void> {
  const { random } = place.services
  await admit(place, { event: { type: 'user.interrupt', id: random.id(), mode: 'stop', run }, blobs: [] })
  kick(place)
}
