// What is being said and printed in a session before its events come: pieces put together, shown until the event is there, and never
// beside it. A piece that is told again, as after a cut stream, is put where it was.
import { callKey, type CallKey, type Event } from '../../kernel/index.ts'
import type { WireDelta } from '../../server/wire.ts'

/** `seq` is that of the request. */
export type SaidPart = { readonly kind: 'text' | 'reasoning' | 'arguments'; readonly text: string }
export type Said = {
  readonly seq: number
  readonly parts: readonly SaidPart[]
  /** What calls print while they run. */
  readonly outputs: ReadonlyMap<CallKey, string>
}

/** Of what a call prints only the end is kept. */
const OUTPUT_MAX = 20_000
const TOLD_MS = 50

export const NOTHING_SAID: Said = { seq: 0, parts: [], outputs: new Map() }

export class Saying {
  readonly #listeners = new Set<() => void>()
  readonly #parts = new Map<number, { readonly kind: SaidPart['kind']; text: string }>()
  readonly #outputs = new Map<CallKey, { text: string; end: number }>()
  #seq = 0
  /** The last event that ended a reply: what is said for an earlier request comes too late. */
  #over = 0
  readonly #done = new Set<CallKey>()
  #telling: ReturnType<typeof setTimeout> | null = null
  #isHeld = false
  said: Said = NOTHING_SAID

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
      // After a gap nothing fits until the whole is told again.
      if (offset <= known.text.length) known.text += text.slice(known.text.length - offset)
    }
    this.#telling ??= setTimeout(() => this.#tell(), TOLD_MS)
  }

  /** What these events say is no longer being said. Readers are told by `flush`, together with the rows that take its place. */
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
