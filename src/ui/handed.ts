// What an agent says that a conversation was handed over to, as items of the page of the session that handed over, while it is said. It
// stands beside the call that handed over, so that a question of the child stays in the last step of the page. A reader that comes back
// gets what it lacks; attempts of the child before the last one it has.
import type { Event } from '../kernel/event.ts'
import { HandedOver } from '../sessions/follow/handed-over.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { Segment } from '../view/heard.ts'
import { textOf } from '../view/text.ts'
import type { HeardSegment, Position } from './position.ts'

type Reply = Extract<Event, { type: 'agent.message' }>

type Text = { readonly kind: 'text'; readonly call: number; readonly n: number }
type Told =
  | ({ readonly type: 'piece'; readonly text: string; readonly resumed: boolean; readonly ends: readonly [] } & Text)
  | ({ readonly type: 'spoken' } & Text)
/** `reply`: for the position behind it. */
type Heard = { readonly told: Told; readonly reply: HandedWords['reply'] }

export class HandedWords {
  readonly #known: Position | null
  readonly #handed: HandedOver
  /** The reply that handed over, or 0. */
  #call = 0
  /** What the reader has of the last attempt of the child. One without characters says that all before it is over. */
  #segments: Segment[] = []
  /** How much of each text was read here. */
  readonly #read = new Map<number, number>()
  /** How many characters of the last attempt it has; 0 if it has all. */
  #had = 0
  /** Of what the reader has of the last attempt: the log of the child may be read only after the answer. */
  #print = PRINT
  #hasAll = false

  constructor(session: string, known: Position | null) {
    this.#handed = new HandedOver(session)
    this.#known = known
  }

  get child(): string | null {
    return this.#call === 0 ? null : this.#handed.child
  }

  /** For the position of the reader; null while nothing is handed over. */
  get reply(): { readonly call: number; readonly heard: readonly HeardSegment[] } | null {
    if (this.#call === 0) return null
    const segments = this.#segments.flatMap((segment) => (segment.n < PRINT_PLACE ? [{ ...segment }] : []))
    const print = segments.length === 0 ? [] : [{ kind: 'text', n: PRINT_PLACE, chars: this.#print } as const]
    return { call: this.#call, heard: [...print, ...segments] }
  }

  /** What the reply lacks of the answer; null if it is none of a child. */
  rest(reply: Reply): string | null {
    const rest = this.#handed.rest(reply)
    if (rest !== null || this.#segments.length === 0 || !this.#handed.isAnswer(reply)) return rest
    const answer = textOf(reply.parts)
    const chars = this.#had || answer.length
    return printOf(answer.slice(0, chars)) === this.#print ? answer.slice(chars) : null
  }

  replied(reply: Reply): void {
    this.#handed.replied(reply)
    this.#call = this.#handed.child === null ? 0 : reply.seq
    this.#read.clear()
    const known = this.#call > 0 && this.#known !== null && this.#known.seq >= reply.seq ? this.#known : null
    const heard = known?.call === reply.seq ? known.heard : []
    this.#segments = heard.flatMap(({ kind, n, chars }) =>
      kind === 'text' && n !== PRINT_PLACE ? [{ kind, n, chars }] : [],
    )
    this.#print = heard.find(({ n }) => n === PRINT_PLACE)?.chars ?? PRINT
    this.#had = charsIn(this.#segments)
    this.#hasAll = known !== null && known.call !== reply.seq && known.seq > reply.seq
  }

  take(event: StreamEvent): readonly Heard[] {
    const { pieces, ended } = this.#handed.take(event)
    if (this.#hasAll) return []
    return [...pieces.flatMap(({ n, text }) => this.#piece(n, text)), ...this.#end(ended)]
  }

  /** The call has its result: nothing more is told, and what is open is ended. */
  close(): readonly Told[] {
    const open = this.#segments.filter(({ chars }) => chars > 0).map(({ n }) => n)
    const heard = this.#end(open)
    this.#call = 0
    return heard.map(({ told }) => told)
  }

  #piece(n: number, text: string): readonly Heard[] {
    const before = this.#read.get(n) ?? 0
    this.#read.set(n, before + text.length)
    const first = this.#segments[0]
    // It belongs to an attempt that is over for the reader.
    if (first !== undefined && n < first.n) return []
    const known = this.#segments.find((segment) => segment.n === n && segment.chars > 0)
    const fresh = text.slice(Math.max(0, (known?.chars ?? 0) - before))
    if (fresh === '') return []
    if (this.#segments.every((segment) => segment.chars === 0)) this.#print = PRINT
    this.#print = printOf(fresh, this.#print)
    if (known) known.chars += fresh.length
    else this.#segments = [...this.#segments.filter(({ chars }) => chars > 0), { kind: 'text', n, chars: fresh.length }]
    this.#had = charsIn(this.#segments)
    const of = { kind: 'text', call: this.#call, n } as const
    return [this.#heard({ type: 'piece', ...of, text: fresh, resumed: known !== undefined, ends: [] })]
  }

  #end(ended: readonly number[]): readonly Heard[] {
    const open = ended.filter((n) => this.#segments.some((segment) => segment.n === n && segment.chars > 0))
    const last = open.at(-1)
    if (last === undefined) return []
    this.#segments = [{ kind: 'text', n: last + 1, chars: 0 }]
    return open.map((n) => this.#heard({ type: 'spoken', kind: 'text', call: this.#call, n }))
  }

  #heard(told: Told): Heard {
    return { told, reply: this.reply }
  }
}

/** Where a position has the print. Texts with larger numbers are not in it, and come again. */
const PRINT_PLACE = 9_999
const PRINT = 0x811c9dc5

/** FNV-1a, which goes on where it was. It tells texts apart, and protects nothing. */
function printOf(text: string, from: number = PRINT): number {
  let print = from
  for (let i = 0; i < text.length; i++) print = Math.imul(print ^ text.charCodeAt(i), 0x01000193) >>> 0
  return print
}

function charsIn(segments: readonly Segment[]): number {
  return segments.reduce((sum, { chars }) => sum + chars, 0)
}
