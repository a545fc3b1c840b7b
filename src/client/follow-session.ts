// Follows a server over connections that may break: each new connection starts after the last event seen, so every
// event comes once. Deltas may be repeated after a reconnect, and are cut to the new text.
import { type Event, Fault } from '../kernel/index.ts'
import type { CardChange, FollowOptions, Followed, TreeCard, WatchOptions } from '../index.ts'
import type { WireCard } from '../server/wire.ts'
import { readFrames, type StreamFrame } from './stream-frames.ts'
import { badAnswerRefusal, errorFromResponse, sleepUntilAborted, type ServerConnection } from './server-connection.ts'

type Delta = Extract<Followed, { type: 'delta' }>

const WAIT_MS = 200
const WAIT_MS_MAX = 5_000

export async function* followRemote(
  wires: ServerConnection,
  id: string,
  options: FollowOptions,
): AsyncIterableIterator<Followed> {
  const { after = 0, deltas = false } = options
  const signal = wires.untilClosed(options.signal)
  let [seen, store, waitMs] = [after, undefined as string | undefined, WAIT_MS]
  const heard = new GivenDeltas()
  while (!signal.aborted) {
    const query = { after: seen, deltas: deltas ? 1 : 0, store }
    const response = await wires.once('follow', { params: { id }, query, signal }).catch(() => null)
    if (response && !response.ok && response.status < 500) throw await errorFromResponse(response)
    if (response?.ok) checkIsStream(response)
    try {
      for await (const frame of response?.ok && response.body ? readFrames(response.body) : []) {
        waitMs = WAIT_MS
        if (frame.event === 'hello') store = frame.data.store
        else if (frame.event === 'event') {
          seen = frame.data.seq
          heard.passed(frame.data)
          yield { type: 'event', event: frame.data }
        } else if (frame.event === 'delta') {
          const delta = heard.fresh({ type: 'delta', ...frame.data } as Delta)
          if (delta) yield delta
        } else if (frame.event === 'gone')
          throw new Fault('session_missing', `Session ${id} was removed. Nothing more comes.`)
      }
    } catch (error) {
      if (error instanceof Fault) throw error
    }
    await sleepUntilAborted(waitMs, signal)
    waitMs = Math.min(2 * waitMs, WAIT_MS_MAX)
  }
  return undefined
}

/** Without this check an answer that is not a stream would be requested again for ever. */
function checkIsStream({ status, headers, body }: Response): void {
  if (body !== null && headers.get('content-type')?.startsWith('text/event-stream')) return
  throw badAnswerRefusal(status, 'it is no stream of events')
}

/** The number of characters given of each part. */
class GivenDeltas {
  readonly #parts = new Map<string, number>()

  fresh(delta: Delta): Delta | null {
    const key = `${delta.seq} ${delta.part} ${delta.kind}`
    const given = this.#parts.get(key) ?? 0
    const overlap = given - delta.offset
    if (overlap < 0 || overlap >= delta.text.length) return null
    this.#parts.set(key, delta.offset + delta.text.length)
    return overlap === 0 ? delta : { ...delta, offset: given, text: delta.text.slice(overlap) }
  }

  passed({ type }: Event): void {
    if (type === 'agent.message' || type === 'model.failed') this.#parts.clear()
  }
}

/** Gives cards as they change. Changes during a lost connection may be missed: call `list` to get them. */
export async function* watchRemote(
  wires: ServerConnection,
  { signal, ...filter }: Omit<WatchOptions, 'where'>,
): AsyncGenerator<CardChange, undefined> {
  const watched = new WatchedSessions(filter)
  const over = wires.untilClosed(signal)
  for (let waitMs = WAIT_MS; !over.aborted; waitMs = Math.min(2 * waitMs, WAIT_MS_MAX)) {
    const response = await wires.once('streams', { body: { cards: true }, signal: over }).catch(() => null)
    if (response && !response.ok && response.status < 500) throw await errorFromResponse(response)
    if (response?.ok) checkIsStream(response)
    try {
      for await (const frame of response?.ok && response.body ? readFrames(response.body) : []) {
        waitMs = WAIT_MS
        const change = watched.take(frame)
        if (change) yield change
      }
    } catch {}
    await sleepUntilAborted(waitMs, over)
  }
  return undefined
}

/** The watched sessions: those whose card passed the filter when it came last. Without a filter, all. */
class WatchedSessions {
  readonly #filter: readonly (readonly [keyof WireCard, unknown])[]
  readonly #known = new Set<string>()

  constructor(filter: object) {
    const given = Object.entries(filter).filter(([, value]) => value !== undefined)
    this.#filter = given as [keyof WireCard, unknown][]
  }

  take(frame: StreamFrame): CardChange | null {
    if (frame.event === 'card') return this.#card(frame.data)
    if (frame.event !== 'gone') return null
    const { session } = frame.data
    return this.#filter.length === 0 || this.#known.delete(session) ? { type: 'gone', session } : null
  }

  #card(card: WireCard): CardChange | null {
    const { session } = card
    const passes = this.#filter.every(([name, value]) => card[name] === value)
    if (!passes) return this.#known.delete(session) ? { type: 'gone', session } : null
    if (this.#filter.length > 0) this.#known.add(session)
    // Sound: the server sends the library's card as JSON.
    return { type: 'card', card: card as TreeCard }
  }
}
