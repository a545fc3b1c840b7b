// Replies and call output in progress, before their events arrive: deltas are merged, shown until the event is there,
// and never beside it. A repeated delta, as after a reconnect, goes to its old place.
import { callKey, type CallKey, type Event } from '../../kernel/index.ts'
import type { WireDelta } from '../../server/wire.ts'

/** `seq`: of the model request. */
export type LiveReplyPart = { readonly kind: 'text' | 'reasoning' | 'arguments'; readonly text: string }
export type LiveReply = {
  readonly seq: number
  readonly parts: readonly LiveReplyPart[]
  /** The output of running calls. */
  readonly outputs: ReadonlyMap<CallKey, string>
}

/** Only the end of a call's output is kept. */
const OUTPUT_MAX = 20_000
const TOLD_MS = 50

export const NOTHING_SAID: LiveReply = { seq: 0, parts: [], outputs: new Map() }

export class LiveReplyBuilder {
  readonly #listeners = new Set<() => void>()
  readonly #parts = new Map<number, { readonly kind: LiveReplyPart['kind']; text: string }>()
  readonly #outputs = new Map<CallKey, { text: string; end: number }>()
  #seq = 0
  /** The last event that ended a reply. Deltas of earlier requests are late. */
  #over = 0
  readonly #done = new Set<CallKey>()
  #telling: ReturnType<typeof setTimeout> | null = null
  #isHeld = false
  said: LiveReply = NOTHING_SAID

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  hear({ seq, part, offset, kind, text }: WireDelta): void {
    if (kind === 'output') this.#print(callKey(seq, part), offset, text)
    else if ((kind === 'text' || kind === 'reasoning' || kind === 'arguments') && seq > this.#over) {
      if (seq > this.#seq) this.#begin(seq)
      if (seq < this.#seq) return
      const known = this.#parts.get(part) ?? { kind, text: '' }
      this.#parts.set(part, known)
      // After a gap no delta fits until the whole text is sent again.
      if (offset <= known.text.length) known.text += text.slice(known.text.length - offset)
    }
    this.#telling ??= setTimeout(() => this.#tell(), TOLD_MS)
  }

  /** Removes the texts that these events contain. `flush` tells listeners, together with the rows that replace them. */
  take(events: readonly Event[]): void {
    for (const event of events) {
      if (event.type === 'agent.message' || event.type === 'model.failed') {
        this.#over = event.seq
        this.#begin(0)
        if (event.type === 'agent.message') this.#done.clear()
        this.#hold()
      } else if (event.type === 'agent.tool_result') {
        this.#done.add(event.call)
        this.#outputs.delete(event.call)
        this.#hold()
      }
    }
  }

  readonly flush = (): void => {
    if (this.#isHeld) this.#tell()
  }

  #hold(): void {
    this.#isHeld = true
    if (this.#telling !== null) clearTimeout(this.#telling)
    this.#telling = null
  }

  #begin(seq: number): void {
    this.#seq = seq
    this.#parts.clear()
  }

  #print(call: CallKey, offset: number, text: string): void {
    if (this.#done.has(call)) return
    const known = this.#outputs.get(call) ?? { text: '', end: 0 }
    this.#outputs.set(call, known)
    const fresh = offset > known.end ? text : text.slice(known.end - offset)
    known.text = (known.text + fresh).slice(-OUTPUT_MAX)
    known.end = Math.max(known.end, offset + text.length)
  }

  #tell(): void {
    if (this.#telling !== null) clearTimeout(this.#telling)
    this.#telling = null
    this.#isHeld = false
    const outputs = new Map([...this.#outputs].map(([call, { text }]) => [call, text]))
    this.said = { seq: this.#seq, parts: [...this.#parts.values()].map((part) => ({ ...part })), outputs }
    for (const listener of this.#listeners) listener()
  }
}
