// Turns a session's stream into the items of a page, in order: messages, texts, calls, questions and ends. Each
// protocol encodes these items, and each item carries the position after it. It knows no protocol and sends nothing.
import { eventId } from '../view/shown-text.ts'
import type { BlobRef, CallKey, CallStatus, Json, Part, Proposal, CallTerms } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { isAskedAfterEdit } from '../kernel/ledger.ts'
import { FINAL_RESULT } from '../models/structured-output.ts'
import type { Result } from '../sessions/verbs.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import { citationsIn, sourcesIn } from '../view/cited-sources.ts'
import { HeardReply, type HeardPiece, type Segment, type SpokenKind } from '../view/heard-reply.ts'
import type { Delta } from '../ports/model.ts'
import { type PageApproval, pageApprovalOf, pageApprovalsIn } from './page-approval.ts'
import { type PageEnd, pageEndOf, pageRestOf } from './page-end.ts'
import { readPartialJson } from './partial-json.ts'
import { HandedOverItems } from './handed-over-items.ts'
import { type IncomingReply, type HeardSegment, type Position, writePosition } from './reader-position.ts'

/** A text or reasoning of a reply, identified by the request's event. */
export type SpokenPart = { readonly kind: SpokenKind; readonly call: number; readonly n: number }
export type UiItem =
  | { readonly type: 'user'; readonly id: string; readonly parts: readonly Part[] }
  | { readonly type: 'message'; readonly id: string }
  | { readonly type: 'request' }
  /** `resumed`: the reader already has its beginning. `ends`: reasoning that ended because something else began. */
  | ({
      readonly type: 'piece'
      readonly text: string
      readonly resumed: boolean
      readonly ends: readonly SpokenPart[]
    } & SpokenPart)
  | ({ readonly type: 'spoken' } & SpokenPart)
  /**
   * A piece of the arguments of a call in progress. Its id is the call's future id, unless another event comes between.
   */
  | {
      readonly type: 'input'
      readonly id: CallKey
      readonly tool: string
      readonly of: number
      readonly text: string
      readonly resumed: boolean
      readonly ends: readonly SpokenPart[]
    }
  /** A call whose arguments were in progress is not made, or has another id. */
  | { readonly type: 'abandoned'; readonly id: CallKey; readonly tool: string }
  /**
   * `written`: the arguments as sent in `input` items; null if the reader has them from an earlier stream, absent if
   * none were sent.
   */
  | {
      readonly type: 'call'
      readonly id: CallKey
      readonly tool: string
      readonly args: Json
      readonly of: number
      readonly written?: string | null
    }
  | { readonly type: 'ask'; readonly approval: PageApproval }
  /** A call that needed approval continues or is refused. If more people must agree, it is asked again. */
  | {
      readonly type: 'decided'
      readonly id: CallKey
      readonly tool: string
      /** The arguments that the call continues with. */
      readonly args: Json
      readonly allow: boolean
      /** The person who edited the arguments. */
      readonly editedBy?: string
    }
  | {
      readonly type: 'result'
      readonly id: CallKey
      readonly status: CallStatus
      readonly content: string | BlobRef
      readonly asked: boolean
    }
  /** A page that the reply cites, or that one of our searches found. */
  | { readonly type: 'source'; readonly id: string; readonly url: string; readonly title?: string }
  /** A file that the model made, or one in the result of a call. */
  | { readonly type: 'file'; readonly id: string; readonly file: BlobRef; readonly call?: CallKey }
  /** `draft`: a structured answer as far as it is written. */
  | { readonly type: 'output' | 'draft'; readonly id: string; readonly value: Json }
  /** The provider did not answer and will be asked again. */
  | { readonly type: 'retry'; readonly message: string; readonly at: number | null }
  | { readonly type: 'end'; readonly end: PageEnd }
export type PositionedItem = { readonly told: UiItem; readonly position: string }

/** Null is an item with nothing to send: the items of an event are counted, including empty ones. */
type ItemSlots = readonly (UiItem | null)[]
/** `asks`: the digest of the open question. */
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>
type KnownCall = { proposal: Proposal; edit?: Confirmation; asks: string | null; asked: boolean }

/** Arguments in progress: how many characters the reader has, and the text if all of it was seen here. */
type WrittenArguments = { tool: string; chars: number; text: string | null; drafted: number }

export class ItemBuilder {
  readonly #session: string
  readonly #log: string
  readonly #known: Position | null
  #from = 0
  #seq = 0
  /** The seq of the open model call, or 0, and its text so far. */
  #call = 0
  #heard = new HeardReply()
  /** Reasoning of the open reply whose end was sent. */
  #ended = new Set<Segment>()
  /** The calls of the open reply, by index. */
  #written = new Map<number, WrittenArguments>()
  readonly #handed: HandedOverItems
  #message: string | null = null
  #finish: 'length' | 'refusal' | undefined
  readonly #unread = new Set<number>()
  readonly #calls = new Map<CallKey, KnownCall>()
  readonly #sources = new Set<string>()
  readonly #answers = new Map<number, string>()
  /** Approvals that this stream already asked for. */
  readonly #asked = new Set<string>()

  /** Reads again from `known.from` and skips what the reader has. */
  constructor(session: string, log: string, known: Position | null = null) {
    this.#session = session
    this.#log = log
    this.#known = known
    this.#handed = new HandedOverItems(session, known)
  }

  /** The event that began the last message of the open run; null if no run is open. */
  get open(): number | null {
    return this.#message === null ? null : this.#from
  }

  /** The position after all events taken. */
  get position(): string {
    return this.#write(this.#open())
  }

  /** The reply in progress, and the reader's part of it. */
  #open(): IncomingReply {
    const own = { call: this.#call, heard: this.#segments() }
    // A session that replies itself is not passing on another agent's answer.
    return own.heard.length > 0 ? own : (this.#handed.reply ?? own)
  }

  take(event: StreamEvent): readonly PositionedItem[] {
    if (event.session === this.#handed.child) {
      const heard = this.#handed.take(event)
      return heard.map(({ told, reply }) => ({ told, position: this.#write(reply ?? this.#open()) }))
    }
    if (event.session !== this.#session) return []
    return event.type === 'delta' ? this.#hear(event) : this.see(event)
  }

  /** At the end of a stream: the open questions that were not asked here, and why the session rests. */
  rest(result: Result): readonly PositionedItem[] {
    const { position } = this
    const open = pageApprovalsIn(result.pending, this.#session).filter(({ id }) => !this.#asked.has(id))
    const asks = open.map((approval) => ({ type: 'ask', approval }) as const)
    const end = pageRestOf(result)
    return [...asks, ...(end ? [{ type: 'end', end } as const] : [])].map((told) => ({ told, position }))
  }

  #hear(delta: Extract<StreamEvent, { type: 'delta' }>): readonly PositionedItem[] {
    if (this.#message === null || delta.seq !== this.#call) return []
    const told = delta.kind === 'arguments' ? this.#hearArguments(delta) : this.#hearPiece(delta)
    return told ? [{ told, position: this.position }] : []
  }

  #hearPiece(delta: Extract<StreamEvent, { type: 'delta' }>): UiItem | null {
    const piece = this.#heard.hear(delta)
    return piece && { ...this.#piece(piece, this.#call), ends: this.#endThoughts(piece.segment) }
  }

  /** The arguments of the final answer are sent as its draft. */
  #hearArguments({ proposed, offset, text }: Delta & { readonly offset: number }): UiItem | null {
    if (proposed === undefined || proposed.tool === '') return null
    const { tool, index } = proposed
    const known = this.#written.get(index) ?? { tool, chars: 0, text: '', drafted: 0 }
    this.#written.set(index, known)
    known.tool = tool
    if (offset > known.chars) return null
    const fresh = text.slice(known.chars - offset)
    known.chars += fresh.length
    if (offset === 0) known.text = text
    else if (known.text !== null) known.text += fresh
    if (tool === FINAL_RESULT) return this.#draft(known)
    if (fresh === '') return null
    const [id, ends] = [callKey(this.#call + 1, index), this.#endThoughts(null)]
    return { type: 'input', id, tool, of: this.#call, text: fresh, resumed: known.chars > fresh.length, ends }
  }

  /** A long draft is not parsed again for every character. */
  #draft(known: WrittenArguments): UiItem | null {
    const { text } = known
    if (text === null || text.length < known.drafted + 1 + text.length / 32) return null
    const value = readPartialJson(text)
    if (value === undefined) return null
    known.drafted = text.length
    return { type: 'draft', id: outputId(this.#call), value }
  }

  /** Reasoning that ended because `now` or arguments began. Each is ended once. */
  #endThoughts(now: Segment | null): readonly SpokenPart[] {
    const over = this.#heard.segments.filter(
      (segment) => segment.kind === 'reasoning' && segment !== now && segment.chars > 0 && !this.#ended.has(segment),
    )
    for (const segment of over) this.#ended.add(segment)
    return over.map(({ kind, n }) => ({ kind, n, call: this.#call }))
  }

  #segments(): readonly HeardSegment[] {
    // A draft is sent whole each time, so its progress is not part of the position.
    const written = [...this.#written].flatMap(([n, { tool, chars }]) =>
      tool === FINAL_RESULT ? [] : [{ kind: 'arguments', n, chars } as const],
    )
    return [...this.#heard.segments.map((segment) => ({ ...segment })), ...written]
  }

  /** Takes the next event of the session's own log. */
  see(event: Event): readonly PositionedItem[] {
    const before = this.#open()
    if (this.#from === 0) this.#from = event.seq
    const slots = this.#slots(event)
    this.#seq = event.seq
    const had = this.#had(event.seq)
    const told = slots.flatMap((one, i) => (one !== null && i >= had ? [{ told: one, i }] : []))
    for (const { told: one } of told) if (one.type === 'ask') this.#asked.add(one.approval.id)
    return told.map(({ told: one, i }, at) => ({
      told: one,
      position: at === told.length - 1 ? this.position : this.#write({ ...before, items: i + 1 }),
    }))
  }

  /** How many items of an event the reader has. */
  #had(seq: number): number {
    if (this.#known === null || seq > this.#known.seq) return 0
    return seq === this.#known.seq ? (this.#known.items ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  }

  #slots(event: Event): ItemSlots {
    switch (event.type) {
      case 'user.message':
        this.#unread.add(event.seq)
        return [{ type: 'user', id: event.id, parts: event.parts }]
      case 'run.started':
        for (const seq of event.inputs) this.#unread.delete(seq)
        return [this.#begin(event.seq)]
      case 'model.started':
        return this.#request(event)
      case 'agent.message':
        return this.#reply(event)
      case 'model.failed':
        return this.#failed(event)
      case 'call.reviewed':
        return this.#reviewed(event)
      case 'user.tool_confirmation':
        return this.#decided(event)
      case 'user.custom_tool_result':
        this.#answers.set(event.seq, event.content)
        return []
      case 'agent.tool_result':
        return this.#result(event)
      case 'run.settled':
        return this.#settle(event)
      default:
        return []
    }
  }

  #begin(seq: number): UiItem {
    this.#from = seq
    this.#message = eventId(this.#session, seq)
    this.#finish = undefined
    this.#calls.clear()
    this.#sources.clear()
    return { type: 'message', id: this.#message }
  }

  /** A message that joins an open run is answered in a new message. */
  #request({ seq, shows }: Extract<Event, { type: 'model.started' }>): ItemSlots {
    const joined = shows.filter((shown) => this.#unread.delete(shown)).length > 0
    const begun = this.#message === null || joined ? [this.#begin(seq)] : []
    const known = this.#known?.call === seq ? this.#known.heard : []
    this.#over()
    this.#call = seq
    this.#heard = new HeardReply(known.filter((segment): segment is Segment => segment.kind !== 'arguments'))
    for (const { kind, n, chars } of known)
      if (kind === 'arguments') this.#written.set(n, { tool: '', chars, text: null, drafted: 0 })
    // Reasoning before another part has ended for the reader too.
    const { segments } = this.#heard
    for (const [i, segment] of segments.entries())
      if (segment.kind === 'reasoning' && (i < segments.length - 1 || this.#written.size > 0)) this.#ended.add(segment)
    return [...begun, { type: 'request' }]
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): ItemSlots {
    const { parts, calls, verdict, seq, guard } = event
    const [call, heard, ended, written] = [this.#call, this.#heard, this.#ended, this.#written]
    this.#over()
    if (this.#message === null) return []
    const lacking = this.#handed.rest(event)
    this.#handed.replied(event)
    const unheard = lacking === null ? parts : lacking === '' ? [] : [{ type: 'text', text: lacking } as const]
    const rest = guard === undefined ? heard.rest(unheard) : guard === 'replace' ? heard.replaced(parts) : []
    const said = rest.flatMap((piece): ItemSlots => {
      const told = piece.text === '' ? null : this.#piece(piece, call)
      return [told, told === null && ended.has(piece.segment) ? null : spokenItem(piece.segment, call)]
    })
    const unsaid = heard.segments.filter((one) => !ended.has(one) && rest.every((piece) => piece.segment !== one))
    this.#finish = event.finish
    const output = verdict.type === 'final' && verdict.output !== undefined ? verdict.output : null
    const isMade = verdict.type !== 'final'
    // An event in between gave the calls other ids than their `input` items had.
    const made = isMade && seq === call + 1 ? calls.length : 0
    const asked = isMade
      ? calls.flatMap((one, i) => this.#proposed(one, callKey(seq, i), call, i < made ? written.get(i) : undefined))
      : []
    const given: ItemSlots = output === null ? [] : [{ type: 'output', id: outputId(call), value: output }]
    const files = parts.filter((part) => part.type === 'blob')
    const left = abandonedItems(call, written, made)
    return [
      ...said,
      ...endedItems(unsaid, call),
      ...left,
      ...fileItems(seq, files),
      ...this.#cited(event),
      ...given,
      ...asked,
    ]
  }

  /** Each cited page once per run. */
  #cited(event: Event): ItemSlots {
    return sourcesIn(citationsIn(event)).flatMap(({ url, title }): ItemSlots => {
      if (this.#sources.has(url)) return []
      this.#sources.add(url)
      const id = `source:${event.seq}.${this.#sources.size}`
      return [{ type: 'source', id, url, ...(title === undefined ? {} : { title }) }]
    })
  }

  #proposed(proposal: Proposal, id: CallKey, of: number, written?: WrittenArguments): ItemSlots {
    const { tool, args } = proposal
    if (tool === FINAL_RESULT) return []
    this.#calls.set(id, { proposal, asks: null, asked: false })
    const begun = written && written.chars > 0 ? { written: written.text } : {}
    return [{ type: 'call', id, tool, args, of, ...begun }, ...this.#question(id, proposal)]
  }

  #question(callId: CallKey, { gate, digest }: CallTerms): ItemSlots {
    const call = this.#calls.get(callId)
    if (!call || gate?.type !== 'ask' || digest === undefined) return []
    call.asks = digest
    call.asked = true
    const { tool, args } = call.proposal
    const pending = { ...gate, callId, tool, args, digest, sessionId: this.#session }
    const approval = pageApprovalOf(pending, this.#session)
    return approval ? [{ type: 'ask', approval }] : []
  }

  #decided(event: Confirmation): ItemSlots {
    const { call, digest, allow, by, edit } = event
    const known = this.#calls.get(call)
    if (!known || known.asks !== digest) return []
    // If more people must agree, it is asked again when the session rests.
    this.#asked.clear()
    const { tool, args } = known.proposal
    if (!edit) return [{ type: 'decided', id: call, tool, args, allow }]
    known.edit = event
    return [{ type: 'decided', id: call, tool, args: edit.args, allow, editedBy: by }]
  }

  /**
   * A question that is asked again, or an accepted edit, after which others may still have to approve the call as it is
   * now.
   */
  #reviewed(event: Extract<Event, { type: 'call.reviewed' }>): ItemSlots {
    const known = this.#calls.get(event.call)
    const confirmed = known?.edit?.seq === event.edit ? known?.edit : undefined
    if (known && confirmed?.edit) {
      known.proposal = { ...known.proposal, args: confirmed.edit.args }
      if (!isAskedAfterEdit(event, confirmed)) return []
    }
    return this.#question(event.call, event)
  }

  #failed(event: Extract<Event, { type: 'model.failed' }>): ItemSlots {
    const [call, ended, written] = [this.#call, this.#ended, this.#written]
    const segments = this.#heard.segments.filter((segment) => !ended.has(segment))
    this.#over()
    if (this.#message === null) return []
    const { message, retryAt = null, retryable } = event
    const again = retryable ? [{ type: 'retry', message, at: retryAt } as const] : []
    return [...endedItems(segments, call), ...abandonedItems(call, written, 0), ...again]
  }

  #result(event: Extract<Event, { type: 'agent.tool_result' }>): ItemSlots {
    const { call, status, content, from = 0, parts = [], seq } = event
    const known = this.#calls.get(call)
    const said = this.#answers.get(from) ?? content
    this.#answers.delete(from)
    if (known) known.asks = null
    if (!known) return []
    const told = { type: 'result', id: call, status, content: said, asked: known.asked } as const
    // A child's text stands under the call that handed over, which is the only call of its reply.
    return [told, ...fileItems(seq, parts, call), ...this.#cited(event), ...this.#handed.close()]
  }

  #settle({ outcome }: Extract<Event, { type: 'run.settled' }>): ItemSlots {
    this.#message = null
    return [{ type: 'end', end: pageEndOf(outcome, this.#finish) }]
  }

  #over(): void {
    this.#call = 0
    this.#heard = new HeardReply()
    this.#ended = new Set()
    this.#written = new Map()
  }

  #piece({ segment, text }: HeardPiece, call: number): Extract<UiItem, { type: 'piece' }> {
    const { kind, n, chars } = segment
    return { type: 'piece', kind, call, n, text, resumed: chars > text.length, ends: [] }
  }

  #write(reply: IncomingReply & Pick<Position, 'items'>): string {
    return writePosition(this.#log, { from: this.#from, seq: this.#seq, ...reply })
  }
}

function fileItems(seq: number, files: readonly BlobRef[], call?: CallKey): ItemSlots {
  const of = call === undefined ? {} : { call }
  return files.map((file, i) => ({ type: 'file', id: `file:${seq}.${i}`, file, ...of }))
}

function outputId(call: number): string {
  return `output:${call}`
}

/** Calls in progress, from index `made` on. */
function abandonedItems(call: number, written: ReadonlyMap<number, WrittenArguments>, made: number): ItemSlots {
  return [...written].map(([index, { tool, chars }]) =>
    index < made || tool === FINAL_RESULT || chars === 0
      ? null
      : { type: 'abandoned', id: callKey(call + 1, index), tool },
  )
}

function spokenItem({ kind, n }: Segment, call: number): UiItem {
  return { type: 'spoken', kind, call, n }
}

/** Ends the texts that were begun but are not in the final reply, or have no reply. */
function endedItems(segments: readonly Segment[], call: number): ItemSlots {
  return segments.filter(({ chars }) => chars > 0).map((segment) => spokenItem(segment, call))
}
