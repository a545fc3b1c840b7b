// Buffers the live deltas of a session for one reader: merges them while the reader is busy, and drops them when there
// are too many. The reader then gets the missing text in one piece when it reads on, like a reader that joins in the
// middle.
import type { CallKey } from '../../kernel/content.ts'
import { callKey, type Event } from '../../kernel/event.ts'
import type { Live, LiveDelta } from '../../live/local-live.ts'
import type { Followed } from './open.ts'

type FollowedDelta = Extract<Followed, { type: 'delta' }>

/** One part of a reply, or the output of one call. */
type BufferedPart = {
  readonly seq: number
  readonly part: number
  readonly kind: LiveDelta['kind']
  /** The number of characters that the reader has; `texts` are those heard after them. */
  given: number
  readonly texts: string[]
  chars: number
}

/** The most characters that may wait for a busy reader. */
const CHARS_AHEAD_MAX = 256 * 1024

export class DeltaBuffer {
  readonly #live: Live
  readonly #session: string
  readonly #news: () => void
  readonly #parts = new Map<CallKey, BufferedPart>()
  #unlisten: (() => void) | null = null
  /** The characters of all parts together. */
  #chars = 0
  /** The seq of the last event that ended a reply, and the calls of that reply that have a result. */
  #settled = 0
  readonly #done = new Set<CallKey>()
  /** The reader waits for a delta and takes it at once, however long it is. */
  #awaited = false
  #closed = false

  constructor(live: Live, session: string, news: () => void) {
    this.#live = live
    this.#session = session
    this.#news = news
    this.#listen()
  }

  close(): void {
    this.#closed = true
    this.#leave()
    this.#parts.clear()
  }

  /** The seq of the first delta that was heard. */
  get first(): number | null {
    for (const { seq } of this.#parts.values()) return seq
    return null
  }

  /** Takes the next delta for a reader that has all events up to `seq`. Dropped text is heard again. */
  take(seq: number): FollowedDelta | null {
    this.#awaited = true
    this.#listen()
    return this.takeHeard(seq)
  }

  /** The next waiting delta of a reply that started at or before `seq`. */
  takeHeard(seq: number): FollowedDelta | null {
    for (const part of this.#parts.values()) if (part.chars > 0 && part.seq <= seq) return this.#give(part)
    return null
  }

  /** Drops deltas that this event makes superfluous. A lost reply comes again under another number. */
  passEvent(event: Event): void {
    this.#awaited = false
    if (event.type === 'agent.tool_result') this.#done.add(event.call)
    else if (event.type === 'agent.message' || event.type === 'model.failed') {
      this.#settled = event.seq
      this.#done.clear()
    } else return
    for (const [key, part] of this.#parts) {
      if (!this.#isOver(part)) continue
      this.#empty(part)
      this.#parts.delete(key)
    }
  }

  #listen(): void {
    if (!this.#closed) this.#unlisten ??= this.#live.subscribe(this.#session, this.#hear)
  }

  /** Output of a call comes after the reply that made the call, and before its result. */
  #isOver({ seq, part, kind }: Pick<LiveDelta, 'seq' | 'part' | 'kind'>): boolean {
    if (kind !== 'output') return seq <= this.#settled
    return seq < this.#settled || this.#done.has(callKey(seq, part))
  }

  readonly #hear = (delta: LiveDelta): void => {
    if (this.#closed || this.#isOver(delta)) return
    const { seq, part, offset, kind, text } = delta
    const key = callKey(seq, part)
    const known = this.#parts.get(key) ?? { seq, part, kind, given: 0, texts: [], chars: 0 }
    this.#parts.set(key, known)
    const overlap = known.given + known.chars - offset
    // A negative overlap is a gap: the event that ends the reply has the whole text.
    if (overlap < 0 || overlap >= text.length) return
    known.texts.push(overlap === 0 ? text : text.slice(overlap))
    known.chars += text.length - overlap
    this.#chars += text.length - overlap
    this.#news()
    if (this.#chars > CHARS_AHEAD_MAX && !this.#awaited) this.#letGo()
  }

  #give(part: BufferedPart): FollowedDelta {
    const { seq, kind, given: offset, texts, chars } = part
    const text = texts.length === 1 ? (texts[0] ?? '') : texts.join('')
    this.#awaited = false
    part.given += chars
    this.#empty(part)
    const of = kind === 'output' ? { call: callKey(seq, part.part) } : {}
    return { type: 'delta', seq, part: part.part, offset, kind, text, ...of }
  }

  #letGo(): void {
    this.#leave()
    for (const part of this.#parts.values()) this.#empty(part)
  }

  #empty(part: BufferedPart): void {
    this.#chars -= part.chars
    part.chars = 0
    part.texts.length = 0
  }

  #leave(): void {
    this.#unlisten?.()
    this.#unlisten = null
  }
}
