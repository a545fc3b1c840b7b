// What a page shows of a session, told from its stream in the order it happens: messages, texts, calls, questions and ends. Every
// protocol is written from these items, and each has the position behind it. It knows no protocol and sends nothing.
import { eventId } from '../view/text.ts'
import type { BlobRef, CallKey, CallStatus, Json, Part, Proposal, Terms } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { isAskedAfterEdit } from '../kernel/ledger.ts'
import { FINAL_RESULT } from '../models/output.ts'
import type { Result } from '../sessions/result.ts'
import type { StreamEvent } from '../sessions/follow/stream.ts'
import { citedBy, sourcesIn } from '../view/sources.ts'
import { Heard, type Piece, type Segment, type Spoken } from '../view/heard.ts'
import type { Delta } from '../ports/model.ts'
import { type Approval, approvalOf, approvalsIn } from './approval.ts'
import { type End, endOf, restOf } from './end.ts'
import { readPartialJson } from './partial-json.ts'
import { HandedWords } from './handed.ts'
import { type Coming, type HeardSegment, type Position, writePosition } from './position.ts'

/** A text or a reasoning of one reply, by the event that asked for the reply. */
export type Of = { readonly kind: Spoken; readonly call: number; readonly n: number }
export type Told =
  | { readonly type: 'user'; readonly id: string; readonly parts: readonly Part[] }
  | { readonly type: 'message'; readonly id: string }
  | { readonly type: 'request' }
  /** `resumed`: the reader has the beginning of it. `ends`: thoughts that are over, now that something else is said. */
  | ({ readonly type: 'piece'; readonly text: string; readonly resumed: boolean; readonly ends: readonly Of[] } & Of)
  | ({ readonly type: 'spoken' } & Of)
  /** A piece of the arguments of a call that is being written. It has the id that the call gets, unless something comes between. */
  | {
      readonly type: 'input'
      readonly id: CallKey
      readonly tool: string
      readonly of: number
      readonly text: string
      readonly resumed: boolean
      readonly ends: readonly Of[]
    }
  /** A call that was being written is not made, or is made under another id. */
  | { readonly type: 'abandoned'; readonly id: CallKey; readonly tool: string }
  /** `written`: its arguments as they came as `input`; null if the reader has them from elsewhere, absent if none came. */
  | {
      readonly type: 'call'
      readonly id: CallKey
      readonly tool: string
      readonly args: Json
      readonly of: number
      readonly written?: string | null
    }
  | { readonly type: 'ask'; readonly approval: Approval }
  /** A call that was asked about goes on, or is refused. If more people must agree, it is asked again. */
  | {
      readonly type: 'decided'
      readonly id: CallKey
      readonly tool: string
      /** Those that it goes on with. */
      readonly args: Json
      readonly allow: boolean
      /** The person who gave it other arguments than it was asked with. */
      readonly editedBy?: string
    }
  | {
      readonly type: 'result'
      readonly id: CallKey
      readonly status: CallStatus
      readonly content: string | BlobRef
      readonly asked: boolean
    }
  /** A page that the reply cites, or that a search of ours found. */
  | { readonly type: 'source'; readonly id: string; readonly url: string; readonly title?: string }
  /** A file that the model made, or one of the result of a call. */
  | { readonly type: 'file'; readonly id: string; readonly file: BlobRef; readonly call?: CallKey }
  /** `draft`: a structured answer as far as it was written. */
  | { readonly type: 'output' | 'draft'; readonly id: string; readonly value: Json }
  /** The provider did not answer, and is asked again. */
  | { readonly type: 'retry'; readonly message: string; readonly at: number | null }
  | { readonly type: 'end'; readonly end: End }
export type Item = { readonly told: Told; readonly position: string }

/** Null stands for an empty piece: items of an event are counted, also those that say nothing. */
type Slots = readonly (Told | null)[]
/** `asks` is the digest of what a person is asked about right now. */
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>
type Known = { proposal: Proposal; edit?: Confirmation; asks: string | null; asked: boolean }

/** Arguments that are being written: how many characters the reader has, and all of them if they were heard here. */
type Written = { tool: string; chars: number; text: string | null; drafted: number }

export class Teller {
  readonly #session: string
  readonly #log: string
  readonly #known: Position | null
  #from = 0
  #seq = 0
  /** The open model call, or 0, and what was heard of it. */
  #call = 0
  #heard = new Heard()
  /** Thoughts of the open reply whose end was told. */
  #ended = new Set<Segment>()
  /** The calls of the open reply, by index. */
  #written = new Map<number, Written>()
  readonly #handed: HandedWords
  #message: string | null = null
  #finish: 'length' | 'refusal' | undefined
  readonly #unread = new Set<number>()
  readonly #calls = new Map<CallKey, Known>()
  readonly #sources = new Set<string>()
  readonly #answers = new Map<number, string>()
  /** Approvals that the reader was asked for here. */
  readonly #asked = new Set<string>()

  /** Told again from `known.from` on, it leaves out what the reader has. */
  constructor(session: string, log: string, known: Position | null = null) {
    this.#session = session
    this.#log = log
    this.#known = known
    this.#handed = new HandedWords(session, known)
  }

  /** A run is open: the event that began its last message. */
  get open(): number | null {
    return this.#message === null ? null : this.#from
  }

  /** Behind all that was taken. */
  get position(): string {
    return this.#write(this.#open())
  }

  /** The reply that is coming, and what the reader has of it. */
  #open(): Coming {
    const own = { call: this.#call, heard: this.#segments() }
    // A session that speaks itself does not give the answer of another agent.
    return own.heard.length > 0 ? own : (this.#handed.reply ?? own)
  }

  take(event: StreamEvent): readonly Item[] {
    if (event.session === this.#handed.child) {
      const heard = this.#handed.take(event)
      return heard.map(({ told, reply }) => ({ told, position: this.#write(reply ?? this.#open()) }))
    }
    if (event.session !== this.#session) return []
    return event.type === 'delta' ? this.#hear(event) : this.see(event)
  }

  /** The stream is over: what the session waits for, unless it was asked here, and why it rests. */
  rest(result: Result): readonly Item[] {
    const { position } = this
    const open = approvalsIn(result.pending, this.#session).filter(({ id }) => !this.#asked.has(id))
    const asks = open.map((approval) => ({ type: 'ask', approval }) as const)
    const end = restOf(result)
    return [...asks, ...(end ? [{ type: 'end', end } as const] : [])].map((told) => ({ told, position }))
  }

  #hear(delta: Extract<StreamEvent, { type: 'delta' }>): readonly Item[] {
    if (this.#message === null || delta.seq !== this.#call) return []
    const told = delta.kind === 'arguments' ? this.#hearArguments(delta) : this.#hearPiece(delta)
    return told ? [{ told, position: this.position }] : []
  }

  #hearPiece(delta: Extract<StreamEvent, { type: 'delta' }>): Told | null {
    const piece = this.#heard.hear(delta)
    return piece && { ...this.#piece(piece, this.#call), ends: this.#endThoughts(piece.segment) }
  }

  /** The arguments of the answer itself are told as its draft. */
  #hearArguments({ proposed, offset, text }: Delta & { readonly offset: number }): Told | null {
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

  /** A long one is not read anew for each of its letters. */
  #draft(known: Written): Told | null {
    const { text } = known
    if (text === null || text.length < known.drafted + 1 + text.length / 32) return null
    const value = readPartialJson(text)
    if (value === undefined) return null
    known.drafted = text.length
    return { type: 'draft', id: outputId(this.#call), value }
  }

  /** The thoughts that are over, since `now` is said, or arguments are. Each is ended once. */
  #endThoughts(now: Segment | null): readonly Of[] {
    const over = this.#heard.segments.filter(
      (segment) => segment.kind === 'reasoning' && segment !== now && segment.chars > 0 && !this.#ended.has(segment),
    )
    for (const segment of over) this.#ended.add(segment)
    return over.map(({ kind, n }) => ({ kind, n, call: this.#call }))
  }

  #segments(): readonly HeardSegment[] {
    // A draft is told as a whole each time, so nobody needs to know how far it was.
    const written = [...this.#written].flatMap(([n, { tool, chars }]) =>
      tool === FINAL_RESULT ? [] : [{ kind: 'arguments', n, chars } as const],
    )
    return [...this.#heard.segments.map((segment) => ({ ...segment })), ...written]
  }

  /** The next event of the session's own log. */
  see(event: Event): readonly Item[] {
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

  #slots(event: Event): Slots {
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

  #begin(seq: number): Told {
    this.#from = seq
    this.#message = eventId(this.#session, seq)
    this.#finish = undefined
    this.#calls.clear()
    this.#sources.clear()
    return { type: 'message', id: this.#message }
  }

  /** A message that joins an open run is answered in a message of its own. */
  #request({ seq, shows }: Extract<Event, { type: 'model.started' }>): Slots {
    const joined = shows.filter((shown) => this.#unread.delete(shown)).length > 0
    const begun = this.#message === null || joined ? [this.#begin(seq)] : []
    const known = this.#known?.call === seq ? this.#known.heard : []
    this.#over()
    this.#call = seq
    this.#heard = new Heard(known.filter((segment): segment is Segment => segment.kind !== 'arguments'))
    for (const { kind, n, chars } of known)
      if (kind === 'arguments') this.#written.set(n, { tool: '', chars, text: null, drafted: 0 })
    // A thought before something else was ended for the reader too.
    const { segments } = this.#heard
    for (const [i, segment] of segments.entries())
      if (segment.kind === 'reasoning' && (i < segments.length - 1 || this.#written.size > 0)) this.#ended.add(segment)
    return [...begun, { type: 'request' }]
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): Slots {
    const { parts, calls, verdict, seq, guard } = event
    const [call, heard, ended, written] = [this.#call, this.#heard, this.#ended, this.#written]
    this.#over()
    if (this.#message === null) return []
    const lacking = this.#handed.rest(event)
    this.#handed.replied(event)
    const unheard = lacking === null ? parts : lacking === '' ? [] : [{ type: 'text', text: lacking } as const]
    const rest = guard === undefined ? heard.rest(unheard) : guard === 'replace' ? heard.replaced(parts) : []
    const said = rest.flatMap((piece): Slots => {
      const told = piece.text === '' ? null : this.#piece(piece, call)
      return [told, told === null && ended.has(piece.segment) ? null : spoken(piece.segment, call)]
    })
    const unsaid = heard.segments.filter((one) => !ended.has(one) && rest.every((piece) => piece.segment !== one))
    this.#finish = event.finish
    const output = verdict.type === 'final' && verdict.output !== undefined ? verdict.output : null
    const isMade = verdict.type !== 'final'
    // An event that came between gave the calls other ids than they were written under.
    const made = isMade && seq === call + 1 ? calls.length : 0
    const asked = isMade
      ? calls.flatMap((one, i) => this.#proposed(one, callKey(seq, i), call, i < made ? written.get(i) : undefined))
      : []
    const given: Slots = output === null ? [] : [{ type: 'output', id: outputId(call), value: output }]
    const files = parts.filter((part) => part.type === 'blob')
    const left = abandoned(call, written, made)
    return [
      ...said,
      ...endedOf(unsaid, call),
      ...left,
      ...filesOf(seq, files),
      ...this.#cited(event),
      ...given,
      ...asked,
    ]
  }

  /** Each page once in a run. */
  #cited(event: Event): Slots {
    return sourcesIn(citedBy(event)).flatMap(({ url, title }): Slots => {
      if (this.#sources.has(url)) return []
      this.#sources.add(url)
      const id = `source:${event.seq}.${this.#sources.size}`
      return [{ type: 'source', id, url, ...(title === undefined ? {} : { title }) }]
    })
  }

  #proposed(proposal: Proposal, id: CallKey, of: number, written?: Written): Slots {
    const { tool, args } = proposal
    if (tool === FINAL_RESULT) return []
    this.#calls.set(id, { proposal, asks: null, asked: false })
    const begun = written && written.chars > 0 ? { written: written.text } : {}
    return [{ type: 'call', id, tool, args, of, ...begun }, ...this.#question(id, proposal)]
  }

  #question(callId: CallKey, { gate, digest }: Terms): Slots {
    const call = this.#calls.get(callId)
    if (!call || gate?.type !== 'ask' || digest === undefined) return []
    call.asks = digest
    call.asked = true
    const { tool, args } = call.proposal
    const pending = { ...gate, callId, tool, args, digest, sessionId: this.#session }
    const approval = approvalOf(pending, this.#session)
    return approval ? [{ type: 'ask', approval }] : []
  }

  #decided(event: Confirmation): Slots {
    const { call, digest, allow, by, edit } = event
    const known = this.#calls.get(call)
    if (!known || known.asks !== digest) return []
    // If it needs more people, it is asked again when the session rests.
    this.#asked.clear()
    const { tool, args } = known.proposal
    if (!edit) return [{ type: 'decided', id: call, tool, args, allow }]
    known.edit = event
    return [{ type: 'decided', id: call, tool, args: edit.args, allow, editedBy: by }]
  }

  /** A question that is asked again, or an edit that was admitted: then others may still be asked about the call as it is now. */
  #reviewed(event: Extract<Event, { type: 'call.reviewed' }>): Slots {
    const known = this.#calls.get(event.call)
    const confirmed = known?.edit?.seq === event.edit ? known?.edit : undefined
    if (known && confirmed?.edit) {
      known.proposal = { ...known.proposal, args: confirmed.edit.args }
      if (!isAskedAfterEdit(event, confirmed)) return []
    }
    return this.#question(event.call, event)
  }

  #failed(event: Extract<Event, { type: 'model.failed' }>): Slots {
    const [call, ended, written] = [this.#call, this.#ended, this.#written]
    const segments = this.#heard.segments.filter((segment) => !ended.has(segment))
    this.#over()
    if (this.#message === null) return []
    const { message, retryAt = null, retryable } = event
    const again = retryable ? [{ type: 'retry', message, at: retryAt } as const] : []
    return [...endedOf(segments, call), ...abandoned(call, written, 0), ...again]
  }

  #result(event: Extract<Event, { type: 'agent.tool_result' }>): Slots {
    const { call, status, content, from = 0, parts = [], seq } = event
    const known = this.#calls.get(call)
    const said = this.#answers.get(from) ?? content
    this.#answers.delete(from)
    if (known) known.asks = null
    if (!known) return []
    const told = { type: 'result', id: call, status, content: said, asked: known.asked } as const
    // What a child said stands under the call that handed over, and that is the only one of its reply.
    return [told, ...filesOf(seq, parts, call), ...this.#cited(event), ...this.#handed.close()]
  }

  #settle({ outcome }: Extract<Event, { type: 'run.settled' }>): Slots {
    this.#message = null
    return [{ type: 'end', end: endOf(outcome, this.#finish) }]
  }

  #over(): void {
    this.#call = 0
    this.#heard = new Heard()
    this.#ended = new Set()
    this.#written = new Map()
  }

  #piece({ segment, text }: Piece, call: number): Extract<Told, { type: 'piece' }> {
    const { kind, n, chars } = segment
    return { type: 'piece', kind, call, n, text, resumed: chars > text.length, ends: [] }
  }

  #write(reply: Coming & Pick<Position, 'items'>): string {
    return writePosition(this.#log, { from: this.#from, seq: this.#seq, ...reply })
  }
}

function filesOf(seq: number, files: readonly BlobRef[], call?: CallKey): Slots {
  const of = call === undefined ? {} : { call }
  return files.map((file, i) => ({ type: 'file', id: `file:${seq}.${i}`, file, ...of }))
}

function outputId(call: number): string {
  return `output:${call}`
}

/** Calls that were being written, from the number `made` on. */
function abandoned(call: number, written: ReadonlyMap<number, Written>, made: number): Slots {
  return [...written].map(([index, { tool, chars }]) =>
    index < made || tool === FINAL_RESULT || chars === 0
      ? null
      : { type: 'abandoned', id: callKey(call + 1, index), tool },
  )
}

function spoken({ kind, n }: Segment, call: number): Told {
  return { type: 'spoken', kind, call, n }
}

/** Those that were begun and are not in the whole reply, or have none. */
function endedOf(segments: readonly Segment[], call: number): Slots {
  return segments.filter(({ chars }) => chars > 0).map((segment) => spoken(segment, call))
}
