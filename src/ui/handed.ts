// What an agent says that a conversation was handed over to, as items of the page of the session that handed over, while it is said. It
// stands beside the call that handed over, so that a question of the child stays in the last step of the page. A reader that comes back
// gets what it lacks; attempts of the child before the last one it has.
import type { Event } from '../kernel/event.ts'
import { HandedOver } from '../sessions/follow/handed-over.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { Segment } from '../view/heard.ts'
import { textOf } from '../view/text.ts'
import type { Coming, Fingerprint, Position } from './position.ts'

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
  /** The reply that handed over, until the session itself replies; or 0. */
  #call = 0
  /** The call that handed over has its result. */
  #isClosed = false
  /** What the reader has of the last attempt of the child. One without characters says that all before it is over. */
  #segments: Segment[] = []
  /** How much of each text was read here. */
  readonly #read = new Map<number, number>()
  /** Of what the reader has of the last attempt: the log of the child may be read only after the answer. */
  #fingerprint = NOTHING_SAID
  /** What comes takes the place of what was said of the last attempt. */
  #afresh = false
  #hasAll = false

  constructor(session: string, known: Position | null) {
    this.#handed = new HandedOver(session)
    this.#known = known
  }

  get child(): string | null {
    return this.#call === 0 || this.#isClosed ? null : this.#handed.child
  }

  /** For the position of the reader; null while nothing is handed over. */
  get reply(): Coming | null {
    if (this.#call === 0) return null
    const reply = { call: this.#call, heard: this.#segments.map((segment) => ({ ...segment })) }
    return this.#isClosed || reply.heard.length > 0 ? { ...reply, fingerprint: this.#fingerprint } : reply
  }

  /** What the reply lacks of the answer; null if it is none of a child. */
  rest(reply: Reply): string | null {
    if (!this.#handed.isAnswer(reply)) return null
    const answer = textOf(reply.parts)
    const { value, chars } = this.#fingerprint
    const has = chars || answer.length
    return fingerprintOf(answer.slice(0, has)) === value ? answer.slice(has) : this.#handed.rest(reply)
  }

  replied(reply: Reply): void {
    this.#handed.replied(reply)
    this.#call = this.#handed.child === null ? 0 : reply.seq
    this.#read.clear()
    const known = this.#call > 0 && this.#known !== null && this.#known.seq >= reply.seq ? this.#known : null
    const had = known?.call === reply.seq ? hadAt(known) : { segments: [], fingerprint: undefined }
    this.#segments = had.segments
    this.#fingerprint = had.fingerprint ?? NOTHING_SAID
    this.#isClosed = had.fingerprint !== undefined && had.segments.length === 0
    this.#hasAll = known !== null && known.call !== reply.seq && known.seq > reply.seq
  }

  take(event: StreamEvent): readonly Heard[] {
    const { pieces, ended, afresh } = this.#handed.take(event)
    if (this.#hasAll) return []
    this.#afresh = afresh
    return [...pieces.flatMap(({ n, text }) => this.#piece(n, text)), ...this.#end(ended)]
  }

  /** The call has its result: nothing more is told until the answer comes, and what is open is ended. */
  close(): readonly Told[] {
    const open = this.#segments.filter(({ chars }) => chars > 0)
    this.#segments = []
    this.#isClosed = true
    return open.map(({ n }) => ({ type: 'spoken', kind: 'text', call: this.#call, n }))
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
    const isFirst = this.#afresh || this.#segments.every((segment) => segment.chars === 0)
    this.#afresh = false
    const { value, chars } = isFirst ? NOTHING_SAID : this.#fingerprint
    this.#fingerprint = { value: fingerprintOf(fresh, value), chars: chars + fresh.length }
    if (known) known.chars += fresh.length
    else this.#segments = [...this.#segments.filter(({ chars }) => chars > 0), { kind: 'text', n, chars: fresh.length }]
    const of = { kind: 'text', call: this.#call, n } as const
    return [this.#heard({ type: 'piece', ...of, text: fresh, resumed: known !== undefined, ends: [] })]
  }

  #end(ended: readonly number[]): readonly Heard[] {
    const open = ended.filter((n) => this.#segments.some((segment) => segment.n === n && segment.chars > 0))
    const last = open.at(-1)
    if (last === undefined) return []
    this.#segments = [{ kind: 'text', n: last + 1, chars: 0 }]
    this.#fingerprint = { ...this.#fingerprint, chars: 0 }
    return open.map((n) => this.#heard({ type: 'spoken', kind: 'text', call: this.#call, n }))
  }

  #heard(told: Told): Heard {
    return { told, reply: this.reply }
  }
}

const EMPTY = 0x811c9dc5
const NOTHING_SAID: Fingerprint = { value: EMPTY, chars: 0 }

/** FNV-1a, which goes on where it was. It tells texts apart, and protects nothing. */
function fingerprintOf(text: string, from: number = EMPTY): number {
  let value = from
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value
}

type Had = { readonly segments: Segment[]; readonly fingerprint: Fingerprint | undefined }

function hadAt({ heard, fingerprint }: Position): Had {
  const segments = heard.flatMap(({ kind, n, chars }) => (kind === 'text' ? [{ kind, n, chars }] : []))
  return { segments, fingerprint }
}
