// What is being said in a session, for one reader: merged while the reader is busy, and let go when it is too much. Then the reader
// gets what it lacks in one piece when it reads on, as one does who comes in the middle.
import type { CallKey } from '../../kernel/content.ts'
import { callKey, type Event } from '../../kernel/event.ts'
import type { Live, LiveDelta } from '../../live/live.ts'
import type { Followed } from './open.ts'

type Said = Extract<Followed, { type: 'delta' }>

/** One part of a reply, or what one call prints. */
type Part = {
  readonly seq: number
  readonly part: number
  readonly kind: LiveDelta['kind']
  /** How many characters the reader has, and what was heard after these. */
  given: number
  readonly texts: string[]
  chars: number
}

/** What may wait for a reader that is busy. */
const CHARS_AHEAD_MAX = 256 * 1024

export class Spoken {
  readonly #live: Live
  readonly #session: string
  readonly #news: () => void
  readonly #parts = new Map<CallKey, Part>()
  #unlisten: (() => void) | null = null
  /** Of all parts. */
  #chars = 0
  /** The last event that ended a reply, and the calls of that reply that have a result. */
  #settled = 0
  readonly #done = new Set<CallKey>()
  /** The reader waits for what is said: it takes it at once, however long it is. */
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

  /** The seq that was heard of first. */
  get first(): number | null {
    for (const { seq } of this.#parts.values()) return seq
    return null
  }

  /** For a reader that has all events, up to `seq`. What was let go is heard again. */
  take(seq: number): Said | null {
    this.#awaited = true
    this.#listen()
    return this.heard(seq)
  }

  /** What was heard and not given yet, of a reply whose start is not after `seq`. */
  heard(seq: number): Said | null {
    for (const part of this.#parts.values()) if (part.chars > 0 && part.seq <= seq) return this.#give(part)
    return null
  }

  /** What the event says itself needs no delta any more, and what was lost comes again under another number. */
  passed(event: Event): void {
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

  /** What a call prints comes after the reply that made it, and before its result. */
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
    // Less than nothing is a gap: the event that ends the reply has all of it.
    if (overlap < 0 || overlap >= text.length) return
    known.texts.push(overlap === 0 ? text : text.slice(overlap))
    known.chars += text.length - overlap
    this.#chars += text.length - overlap
    this.#news()
    if (this.#chars > CHARS_AHEAD_MAX && !this.#awaited) this.#letGo()
  }

  #give(part: Part): Said {
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

  #empty(part: Part): void {
    this.#chars -= part.chars
    part.chars = 0
    part.texts.length = 0
  }

  #leave(): void {
    this.#unlisten?.()
    this.#unlisten = null
  }
}
