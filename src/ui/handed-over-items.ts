// The text of an agent that a conversation was handed over to, as items on the page of the session that handed over.
// They are placed beside that call, so that a child's question stays in the last step of the page. A returning reader
// gets only what it lacks. Attempts of the child before its last one are not repeated.
import type { Event } from '../kernel/event.ts'
import { HandoffFollower } from '../sessions/follow/handed-over.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import type { Segment } from '../view/heard-reply.ts'
import { textOf } from '../view/shown-text.ts'
import type { IncomingReply, Fingerprint, Position } from './reader-position.ts'

type Reply = Extract<Event, { type: 'agent.message' }>

type HandedText = { readonly kind: 'text'; readonly call: number; readonly n: number }
type HandedItem =
  | ({
      readonly type: 'piece'
      readonly text: string
      readonly resumed: boolean
      readonly ends: readonly []
    } & HandedText)
  | ({ readonly type: 'spoken' } & HandedText)
/** `reply`: the state for the position after this item. */
type HeardItem = { readonly told: HandedItem; readonly reply: HandedOverItems['reply'] }

export class HandedOverItems {
  readonly #known: Position | null
  readonly #handed: HandoffFollower
  /** The reply that handed over, until the session replies itself; otherwise 0. */
  #call = 0
  /** Whether the call that handed over has its result. */
  #isClosed = false
  /**
   * The texts of the child's last attempt that the reader has. A segment with no characters marks that all earlier ones
   * are over.
   */
  #segments: Segment[] = []
  /** How much of each text was read here. */
  readonly #read = new Map<number, number>()
  /** The fingerprint of the reader's text of the last attempt: the child's log may be read only after the answer. */
  #fingerprint = NOTHING_SAID
  /** The next text replaces the text of the last attempt. */
  #afresh = false
  #hasAll = false

  constructor(session: string, known: Position | null) {
    this.#handed = new HandoffFollower(session)
    this.#known = known
  }

  get child(): string | null {
    return this.#call === 0 || this.#isClosed ? null : this.#handed.child
  }

  /** For the reader's position. Null while nothing is handed over. */
  get reply(): IncomingReply | null {
    if (this.#call === 0) return null
    const reply = { call: this.#call, heard: this.#segments.map((segment) => ({ ...segment })) }
    return this.#isClosed || reply.heard.length > 0 ? { ...reply, fingerprint: this.#fingerprint } : reply
  }

  /** The part of the reply that the reader lacks; null if the reply is not a child's answer. */
  rest(reply: Reply): string | null {
    if (!this.#handed.isAnswer(reply)) return null
    const answer = textOf(reply.parts)
    const { value, chars } = this.#fingerprint
    const has = chars || answer.length
    return fingerprintOf(answer.slice(0, has)) === value ? answer.slice(has) : this.#handed.rest(reply)
  }

  replied(reply: Reply): void {
    this.#handed.takeReply(reply)
    this.#call = this.#handed.child === null ? 0 : reply.seq
    this.#read.clear()
    const known = this.#call > 0 && this.#known !== null && this.#known.seq >= reply.seq ? this.#known : null
    const had = known?.call === reply.seq ? heardBefore(known) : { segments: [], fingerprint: undefined }
    this.#segments = had.segments
    this.#fingerprint = had.fingerprint ?? NOTHING_SAID
    this.#isClosed = had.fingerprint !== undefined && had.segments.length === 0
    this.#hasAll = known !== null && known.call !== reply.seq && known.seq > reply.seq
  }

  take(event: StreamEvent): readonly HeardItem[] {
    const { pieces, ended, afresh } = this.#handed.take(event)
    if (this.#hasAll) return []
    this.#afresh = afresh
    return [...pieces.flatMap(({ n, text }) => this.#piece(n, text)), ...this.#end(ended)]
  }

  /** The call has its result: open texts are ended, and nothing more is told until the answer comes. */
  close(): readonly HandedItem[] {
    const open = this.#segments.filter(({ chars }) => chars > 0)
    this.#segments = []
    this.#isClosed = true
    return open.map(({ n }) => ({ type: 'spoken', kind: 'text', call: this.#call, n }))
  }

  #piece(n: number, text: string): readonly HeardItem[] {
    const before = this.#read.get(n) ?? 0
    this.#read.set(n, before + text.length)
    const first = this.#segments[0]
    // The text belongs to an attempt that is over for the reader.
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

  #end(ended: readonly number[]): readonly HeardItem[] {
    const open = ended.filter((n) => this.#segments.some((segment) => segment.n === n && segment.chars > 0))
    const last = open.at(-1)
    if (last === undefined) return []
    this.#segments = [{ kind: 'text', n: last + 1, chars: 0 }]
    this.#fingerprint = { ...this.#fingerprint, chars: 0 }
    return open.map((n) => this.#heard({ type: 'spoken', kind: 'text', call: this.#call, n }))
  }

  #heard(told: HandedItem): HeardItem {
    return { told, reply: this.reply }
  }
}

const EMPTY = 0x811c9dc5
const NOTHING_SAID: Fingerprint = { value: EMPTY, chars: 0 }

/** FNV-1a, continued from a previous value. It distinguishes texts and is not cryptographic. */
function fingerprintOf(text: string, from: number = EMPTY): number {
  let value = from
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value
}

type HeardBefore = { readonly segments: Segment[]; readonly fingerprint: Fingerprint | undefined }

function heardBefore({ heard, fingerprint }: Position): HeardBefore {
  const segments = heard.flatMap(({ kind, n, chars }) => (kind === 'text' ? [{ kind, n, chars }] : []))
  return { segments, fingerprint }
}
