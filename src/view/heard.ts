// What was heard of one reply while it came, and what is left to say once it is whole. Pure; it keeps counts, not texts.
import type { Part } from '../kernel/content.ts'
import type { Delta } from '../ports/model.ts'

export type Spoken = 'text' | 'reasoning'
/** The n-th text, or the n-th reasoning, of a reply, and how many of its characters a reader has. */
export type Segment = { readonly kind: Spoken; readonly n: number; chars: number }
export type Piece = { readonly segment: Segment; readonly text: string }

export class Heard {
  /** In the order they were begun. */
  readonly segments: Segment[]
  readonly #parts = new Map<number, Segment>()

  /** `known` is what a reader has already. */
  constructor(known: readonly Segment[] = []) {
    this.segments = known.map((segment) => ({ ...segment }))
  }

  /** What is new in a delta. After a gap nothing more comes of a part until the reply is whole. */
  hear({ kind, part, offset, text }: Delta & { readonly offset: number }): Piece | null {
    if (kind === 'arguments' || kind === 'output') return null
    const segment = this.#parts.get(part) ?? this.#begin(part, kind)
    if (offset > segment.chars) return null
    const fresh = text.slice(segment.chars - offset)
    segment.chars += fresh.length
    return fresh === '' ? null : { segment, text: fresh }
  }

  /** What no delta has said: one piece for each text and each reasoning of the whole reply, empty if all of it was said. */
  rest(parts: readonly Part[]): readonly Piece[] {
    const counts = { text: 0, reasoning: 0 }
    return parts.flatMap((part): readonly Piece[] => {
      if ((part.type !== 'text' && part.type !== 'reasoning') || part.text === '') return []
      const segment = this.#nth(part.type, counts[part.type]++)
      const text = part.text.slice(segment.chars)
      segment.chars += text.length
      return [{ segment, text }]
    })
  }

  /** The texts of a reply that was replaced: none of them was said before. */
  replaced(parts: readonly Part[]): readonly Piece[] {
    return parts.flatMap((part): readonly Piece[] => {
      if (part.type !== 'text' || part.text === '') return []
      const n = this.segments.filter(({ kind }) => kind === 'text').length
      const segment = { kind: 'text', n, chars: part.text.length } as const
      this.segments.push(segment)
      return [{ segment, text: part.text }]
    })
  }

  /** Parts are numbered by the provider; texts and reasonings are counted here, in the order they begin. */
  #begin(part: number, kind: Spoken): Segment {
    const n = [...this.#parts.values()].filter((segment) => segment.kind === kind).length
    const segment = this.#nth(kind, n)
    this.#parts.set(part, segment)
    return segment
  }

  #nth(kind: Spoken, n: number): Segment {
    const known = this.segments.find((segment) => segment.kind === kind && segment.n === n)
    if (known) return known
    const segment = { kind, n, chars: 0 }
    this.segments.push(segment)
    return segment
  }
}
