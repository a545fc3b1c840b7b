// Tracks which parts of a reply its deltas have already delivered, and returns the rest once it is complete. Pure; it
// keeps counts, not texts.
import type { Part } from '../kernel/content.ts'
import type { Delta } from '../ports/model.ts'

export type SpokenKind = 'text' | 'reasoning'
/** The n-th text, or the n-th reasoning, of a reply, and how many of its characters the reader has. */
export type Segment = { readonly kind: SpokenKind; readonly n: number; chars: number }
/** A piece of a reply that was new. */
export type HeardPiece = {
  /** The part of the reply that it belongs to, with how much of it was heard so far. */
  readonly segment: Segment
  /** The new characters. */
  readonly text: string
}

/** What a reader has of a reply so far, so that each text is told once, whether it comes live or with the whole reply. */
export class HeardReply {
  /** In the order of their beginnings. */
  readonly segments: Segment[]
  readonly #parts = new Map<number, Segment>()

  /** `known` are the segments the reader already has. */
  constructor(known: readonly Segment[] = []) {
    this.segments = known.map((segment) => ({ ...segment }))
  }

  /** The new text in a delta. After a gap a part delivers nothing until the reply is complete. */
  hear({ kind, part, offset, text }: Delta & { readonly offset: number }): HeardPiece | null {
    if (kind === 'arguments' || kind === 'output') return null
    const segment = this.#parts.get(part) ?? this.#begin(part, kind)
    if (offset > segment.chars) return null
    const fresh = text.slice(segment.chars - offset)
    segment.chars += fresh.length
    return fresh === '' ? null : { segment, text: fresh }
  }

  /**
   * The text that no delta delivered: one piece for each text and reasoning of the complete reply, empty if all of it
   * was delivered.
   */
  rest(parts: readonly Part[]): readonly HeardPiece[] {
    const counts = { text: 0, reasoning: 0 }
    return parts.flatMap((part): readonly HeardPiece[] => {
      if ((part.type !== 'text' && part.type !== 'reasoning') || part.text === '') return []
      const segment = this.#nth(part.type, counts[part.type]++)
      const text = part.text.slice(segment.chars)
      segment.chars += text.length
      return [{ segment, text }]
    })
  }

  /** The texts of a replaced reply: none of them was delivered before. */
  replaced(parts: readonly Part[]): readonly HeardPiece[] {
    return parts.flatMap((part): readonly HeardPiece[] => {
      if (part.type !== 'text' || part.text === '') return []
      const n = this.segments.filter(({ kind }) => kind === 'text').length
      const segment = { kind: 'text', n, chars: part.text.length } as const
      this.segments.push(segment)
      return [{ segment, text: part.text }]
    })
  }

  /** Providers number parts; texts and reasonings are counted here, in the order they begin. */
  #begin(part: number, kind: SpokenKind): Segment {
    const n = [...this.#parts.values()].filter((segment) => segment.kind === kind).length
    const segment = this.#nth(kind, n)
    this.#parts.set(part, segment)
    return segment
  }

  #nth(kind: SpokenKind, n: number): Segment {
    const known = this.segments.find((segment) => segment.kind === kind && segment.n === n)
    if (known) return known
    const segment = { kind, n, chars: 0 }
    this.segments.push(segment)
    return segment
  }
}
