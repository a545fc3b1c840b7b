// Following over a connection that may be lost: it is opened again after the last event that was seen, so every event comes once. What is
// being said may come again after that, and is cut to what is new.
import { type Event, Fault } from '../kernel/index.ts'
import type { Frames } from '../server/wire.ts'
import { framesOf } from './frames.ts'
import { badAnswer, refusalOf, sleep, type Wires } from './wires.ts'

export type FollowOptions = { readonly after?: number; readonly deltas?: boolean; readonly signal?: AbortSignal }
type Delta = Frames['delta'] & { readonly kind: 'text' | 'reasoning' | 'arguments' | 'output' }
export type Followed = { readonly type: 'event'; readonly event: Event } | ({ readonly type: 'delta' } & Delta)
export type Changed =
  | { readonly type: 'card'; readonly card: Frames['card'] }
  | { readonly type: 'gone'; readonly session: string }

const WAIT_MS = 200
const WAIT_MS_MAX = 5_000

export async function* following(
  wires: Wires,
  id: string,
  options: FollowOptions,
): AsyncGenerator<Followed, undefined> {
  const { after = 0, deltas = false, signal } = options
  let [seen, store, waitMs] = [after, undefined as string | undefined, WAIT_MS]
  const heard = new Heard()
  while (!signal?.aborted) {
    const query = { after: seen, deltas: deltas ? 1 : 0, store }
    const response = await wires.once('follow', { params: { id }, query, signal }).catch(() => null)
    if (response && !response.ok && response.status < 500) throw await refusalOf(response)
    if (response?.ok) checkStream(response)
    try {
      for await (const frame of response?.ok && response.body ? framesOf(response.body) : []) {
        waitMs = WAIT_MS
        if (frame.event === 'hello') store = frame.data.store
        else if (frame.event === 'event') {
          seen = frame.data.seq
          heard.passed(frame.data)
          yield { type: 'event', event: frame.data }
        } else if (frame.event === 'delta') {
          const delta = heard.fresh(frame.data as Delta)
          if (delta) yield { type: 'delta', ...delta }
        } else if (frame.event === 'gone')
          throw new Fault('session_missing', `Session ${id} was removed. Nothing more comes.`)
      }
    } catch (error) {
      if (error instanceof Fault) throw error
    }
    await sleep(waitMs, signal)
    waitMs = Math.min(2 * waitMs, WAIT_MS_MAX)
  }
  return undefined
}

/** What answers well but is no stream would be asked again for ever. */
function checkStream({ status, headers, body }: Response): void {
  if (body !== null && headers.get('content-type')?.startsWith('text/event-stream')) return
  throw badAnswer(status, 'it is no stream of events')
}

/** How much of each part was given. */
class Heard {
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

/** Cards as they change. After a lost connection some may have changed unseen: `list` says them. */
export async function* watching(wires: Wires, signal?: AbortSignal): AsyncGenerator<Changed, undefined> {
  for (let waitMs = WAIT_MS; !signal?.aborted; waitMs = Math.min(2 * waitMs, WAIT_MS_MAX)) {
    const response = await wires.once('streams', { body: { cards: true }, signal }).catch(() => null)
    if (response && !response.ok && response.status < 500) throw await refusalOf(response)
    if (response?.ok) checkStream(response)
    try {
      for await (const frame of response?.ok && response.body ? framesOf(response.body) : []) {
        waitMs = WAIT_MS
        if (frame.event === 'card') yield { type: 'card', card: frame.data }
        else if (frame.event === 'gone') yield { type: 'gone', session: frame.data.session }
      }
    } catch {}
    await sleep(waitMs, signal)
  }
  return undefined
}
