// The second fold: what a model has been shown, as provider-neutral messages. Append-only between compactions, and read
// only when a model call is made. The events that `model.started` lists in `shows` are appended in exactly that order,
// so the messages of one request are a prefix of the next one's.
import type { BlobRef, CallKey, CallStatus, Frozen, Json, Part, Proposal } from './content.ts'
import { type AnswerGuard, callKey, type Event } from './event.ts'

/** A call as a later request shows it to the model. */
export type ShownCall = Frozen<
  {
    /** The key of the call. */
    key: CallKey
    /** The id that the provider gave to the call. */
    id: string
    /** The name of the tool. */
    tool: string
    /** The arguments as they were admitted. */
    args: Json
  } & CallSpelling
>
/** How the model wrote the call, where that says more than its arguments. */
type CallSpelling = {
  /** The model's own spelling of the arguments, if that differs. */
  raw?: string | undefined
  /** The whole call as a model without tool calls wrote it in its text. */
  text?: string | undefined
}

/** One message as a model is shown it: of the user, of the model, or the result of a call. */
export type Message = Frozen<
  /** `pin`: no cut removes it. `report`: a child's report; adjacent reports are shown as one message. */
  | { role: 'user'; seq: number; parts: readonly Part[]; pin?: boolean | undefined; report?: number | undefined }
  /** `cut`: the part of an answer that was shown before a person stopped it. */
  | { role: 'assistant'; seq: number; parts: readonly Part[]; calls: readonly ShownCall[]; cut?: true }
  /** `fits`: only this many characters of a content stored beside the log are shown; `token` retrieves the whole. */
  | ({
      role: 'tool'
      seq: number
      call: CallKey
      id: string
      tool: string
      fits?: FittedContent
    } & Frozen<ToolResultContent>)
>
/** `status` and `kind` describe a result that is not ok. `parts` are pictures and files after the content. */
type ToolResultContent = {
  ok: boolean
  status?: CallStatus
  kind?: string | undefined
  content: string | BlobRef
} & ResultParts
type FittedContent = { chars: number; token: string }
type ResultParts = { parts?: readonly Part[] | undefined }

type OutsideAnswer = Extract<Event, { type: 'user.custom_tool_result' }>
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>

const CUT = 'The answer above was stopped by the user and is not complete. Calls it may have asked for were not run.'
/** What stands in place of the content of an old result that is no longer shown. */
export const CLEARED = '[Old tool result content cleared]'
/** Below this limit a text shows only how to retrieve it. */
export const FITTED_CHARS_MIN = 160
/** The share of a shortened text that shows its beginning; the rest shows its end. */
const HEAD_SHARE = 0.6

/** Mutable on purpose: it only grows, and copying it each turn would cost as much as the whole history. */
export class Transcript {
  /** What the next request shows of the events so far, the oldest first. */
  readonly messages: Message[] = []
  /** The messages inherited from the log of a fork's origin, and how many forks ago they were written. */
  readonly inherited = new WeakMap<Message, number>()
  /** The messages that the harness, a hook or a pin added. They do not ask for an answer. */
  readonly notes = new WeakSet<Message>()
  /** The last event that was taken. */
  seq = 0
  /** The parts of the last reply with text, in the open or last run. A compaction keeps it. */
  lastSaid: readonly Part[] = []
  /** Some content cannot be shown directly: it is stored beside the log, or an answer from outside is very long. */
  hasBlobs = false
  /** A compaction cleared, shortened or cut something: the log has more of this conversation than a request shows. */
  isCompacted = false
  /** Messages that no request has shown yet, by seq. */
  readonly #held = new Map<number, Message>()
  readonly #calls = new Map<CallKey, ShownCall>()
  readonly #answers = new Map<number, OutsideAnswer>()
  /** Confirmations that edit a call, by seq; and for calls whose edit was admitted, the text about the edit. */
  readonly #edits = new Map<number, Confirmation>()
  readonly #edited = new Map<CallKey, string>()
  /** The request that first showed a user's message. */
  readonly #shownBy = new WeakMap<Message, number>()
  /** The seq of the `run.started` of the open run; infinite while there is none. */
  #began = Number.POSITIVE_INFINITY
  /** A person asked for a stop since the last request was made. */
  #stopped = false

  /**
   * The position of a message among the events of this log; a result stands with its call. 0: an inherited message, or
   * a summary, is older than all of them.
   */
  placeOf(message: Message): number {
    if (message.role === 'user' || this.inherited.has(message)) return this.#shownBy.get(message) ?? 0
    return message.role === 'tool' ? Number.parseInt(message.call, 10) : message.seq
  }

  /** Takes the next committed event. Earlier events were taken already. */
  take(e: Event): void {
    if (e.seq <= this.seq) return
    this.seq = e.seq
    switch (e.type) {
      case 'user.message':
        this.#held.set(e.seq, { role: 'user', seq: e.seq, parts: e.parts, pin: e.pin, report: e.report })
        this.hasBlobs ||= e.report !== undefined || e.parts.some((part) => part.type === 'blob')
        this.#stopped ||= e.when === 'now'
        return
      case 'user.interrupt':
        this.#stopped ||= e.mode === 'stop'
        return
      case 'user.withdraw':
        if (e.message > this.#began) this.#held.delete(e.message)
        return
      case 'user.custom_tool_result':
        return void this.#answers.set(e.seq, e)
      case 'user.tool_confirmation':
        if (e.edit) this.#edits.set(e.seq, e)
        return
      case 'call.reviewed':
        return this.#edit(e)
      case 'note.added':
        return this.#note(e)
      case 'agent.tool_result':
        return this.#result(e)
      case 'model.started':
        this.#stopped = false
        for (const seq of e.shows) this.#show(seq, e.seq)
        return
      case 'model.failed':
        return this.#cut(e)
      case 'run.started':
        this.lastSaid = []
        this.#began = e.seq
        return
      case 'run.settled':
        this.#began = Number.POSITIVE_INFINITY
        return
      case 'agent.message':
        return this.#reply(e)
      case 'context.compacted':
        return this.#compact(e)
      default:
        return
    }
  }

  #show(seq: number, at: number): void {
    const message = this.#held.get(seq)
    if (!message) return
    this.#held.delete(seq)
    if (message.role === 'user') this.#shownBy.set(message, at)
    this.messages.push(message)
  }

  #note(e: Extract<Event, { type: 'note.added' }>): void {
    const message = { ...userMessage(e.seq, noteText(e)), ...(e.kind === 'pin' ? { pin: true } : {}) }
    this.notes.add(message)
    this.#held.set(e.seq, message)
  }

  #reply(e: Extract<Event, { type: 'agent.message' }>): void {
    const calls: ShownCall[] = []
    for (let i = 0; i < e.calls.length; i++) {
      const { id, tool, args, raw, text } = e.calls[i] as Proposal
      const call = { key: callKey(e.seq, i), id, tool, args, raw, text }
      this.#calls.set(call.key, call)
      calls.push(call)
    }
    this.hasBlobs ||= e.parts.some((part) => part.type === 'blob')
    this.messages.push({ role: 'assistant', seq: e.seq, parts: e.parts, calls })
    if (e.parts.length > 0 && saysSomething(e.parts, e.guard)) this.lastSaid = e.parts
  }

  /**
   * Shows the part of an answer that a person saw before they stopped it. Other cut answers are asked for again, and
   * not shown.
   */
  #cut({ seq, class: kind, partial = '' }: Extract<Event, { type: 'model.failed' }>): void {
    if (!this.#stopped || (kind !== 'interrupted' && kind !== 'superseded') || partial.trim() === '') return
    const notice = userMessage(seq, wrapInTag('harness_notice', ' kind="cut"', CUT))
    this.#shownBy.set(notice, seq)
    this.messages.push({ role: 'assistant', seq, parts: [{ type: 'text', text: partial }], calls: [], cut: true })
    this.messages.push(notice)
  }

  #result(e: Extract<Event, { type: 'agent.tool_result' }>): void {
    const call = this.#calls.get(e.call)
    if (!call) return
    this.#calls.delete(e.call)
    const answer = e.from === undefined ? undefined : this.#answers.get(e.from)
    if (answer) this.#answers.delete(answer.seq)
    const from = (answer ?? e).content
    const { content, parts } =
      this.#edited.size === 0 ? { content: from, parts: e.parts } : this.#told(e.call, from, e.parts)
    const { id, tool } = call
    const shown = { role: 'tool', seq: e.seq, call: e.call, id, tool, ok: e.status === 'ok', content } as const
    this.hasBlobs ||= typeof content !== 'string' || content.length > 200_000 || parts !== undefined
    const told = parts ? { ...shown, parts } : shown
    this.#held.set(e.seq, shown.ok ? told : { ...told, status: e.status, kind: e.failure?.kind ?? errorTypeOf(answer) })
  }

  /** Shortens the messages after the last reply. */
  #fit(chars: number): void {
    const last = this.messages.findLastIndex(({ role }) => role === 'assistant')
    for (const [i, m] of this.messages.entries()) {
      if (i <= last) continue
      const place = this.placeOf(m)
      const ago = this.inherited.get(m) ?? 0
      const seen = fitMessage(m, chars, retrieveToken(m, ago))
      if (place === 0) this.inherited.set(seen, ago)
      else if (m.role === 'user') this.#shownBy.set(seen, place)
      this.messages[i] = seen
    }
  }

  /** The new arguments are told with the result, because earlier requests already contain the call itself. */
  #edit({ call, edit = 0 }: Extract<Event, { type: 'call.reviewed' }>): void {
    const confirmed = this.#edits.get(edit)
    this.#edits.delete(edit)
    if (confirmed?.edit) this.#edited.set(call, editNotice(confirmed.by, confirmed.edit.args))
  }

  #told(call: CallKey, content: string | BlobRef, parts: readonly Part[] | undefined) {
    const text = this.#edited.get(call)
    this.#edited.delete(call)
    if (text === undefined) return { content, parts }
    if (typeof content === 'string') return { content: content === '' ? text : `${content}\n${text}`, parts }
    return { content, parts: [{ type: 'text', text } as const, ...(parts ?? [])] }
  }

  /**
   * A view, never a rewrite: the log keeps everything. Pins stand before the summary; a result whose call was cut is
   * cut too.
   */
  #compact(e: Extract<Event, { type: 'context.compacted' }>): void {
    const { seq, cut = 0, cleared = 0, summary, pins, turned } = e
    this.isCompacted ||= cut > 0 || cleared > 0 || e.fitted !== undefined
    if (e.fitted !== undefined) this.#fit(e.fitted)
    const front: Message[] = []
    const isTurned = (at: number, ago: number): boolean => turned?.includes(at) === true && (e.ago ?? ago) === ago
    for (const [at, m] of this.#held)
      if (m.role === 'user' && isTurned(at, 0)) this.#held.set(at, { ...m, pin: !m.pin })
    for (const m of this.messages.splice(0)) {
      const place = this.placeOf(m)
      const ago = this.inherited.get(m) ?? 0
      const old = m.role === 'tool' && (place && m.seq) < cleared
      const pin = m.role === 'user' && m.pin === true
      const turns = place > 0 ? pins && pins.includes(m.seq) !== pin : ago > 0 && isTurned(m.seq, ago)
      let seen: Message = m
      if (old) seen = { ...m, content: `${CLEARED} ${retrieveToken(m, ago)}`, parts: undefined }
      else if (m.role === 'user' && turns) seen = { ...m, pin: !pin }
      if (place === 0) this.inherited.set(seen, ago)
      else if (seen !== m) this.#shownBy.set(seen, place)
      if (place >= cut) this.messages.push(seen)
      else if (seen.role === 'user' && seen.pin) front.push(seen)
    }
    if (summary !== undefined) front.push(userMessage(seq, wrapInTag('conversation-summary', '', summary)))
    this.messages.unshift(...front)
  }
}

/**
 * Shows the two ends of a text, and between them how to retrieve the whole. The result has at most `chars` characters.
 */
export function bothEnds(text: string, chars: number, token: string): string {
  const gap = `\n[… of ${text.length} characters the middle is left out to fit the context; the whole is ${token} …]\n`
  const room = Math.max(0, chars - gap.length)
  const head = Math.floor(room * HEAD_SHARE)
  // Does not cut between the two halves of a surrogate pair.
  const start = text.slice(0, head).replace(/[\uD800-\uDBFF]$/, '')
  return `${start}${gap}${text.slice(text.length - (room - head)).replace(/^[\uDC00-\uDFFF]/, '')}`
}

/** Shortens the text of a message. Pictures and files of a user stay. */
export function fitMessage(message: Message, chars: number, token: string = retrieveToken(message, 0)): Message {
  if (message.role === 'assistant' || (message.role === 'user' && message.pin === true)) return message
  if (message.role === 'user') {
    const texts = message.parts.flatMap((part) => (part.type === 'text' ? [part.text.length] : []))
    if (texts.reduce((sum, length) => sum + length, 0) <= Math.max(chars, FITTED_CHARS_MIN)) return message
    const most = Math.max(Math.floor(chars / texts.length), FITTED_CHARS_MIN)
    const parts = message.parts.map((part) =>
      part.type === 'text' && part.text.length > most ? { ...part, text: bothEnds(part.text, most, token) } : part,
    )
    return { ...message, parts }
  }
  if (chars === 0) return { ...message, content: `${CLEARED} ${token}`, parts: undefined }
  const { content } = message
  if (typeof content !== 'string') return content.bytes > chars ? { ...message, fits: { chars, token } } : message
  return content.length > chars ? { ...message, content: bothEnds(content, chars, token) } : message
}

/** The token that retrieves the whole of a shortened message. `ago` is how many forks ago it was written. */
function retrieveToken(message: Message, ago: number): string {
  return message.role === 'tool' ? `call:${'^'.repeat(ago)}${message.call}` : `msg:${'^'.repeat(ago)}${message.seq}`
}

const EDIT_CHARS_MAX = 20_000

/** The notice about an edited call that the model reads with its result. No text in it can close its tag. */
export function editNotice(by: string, args: Json): string {
  const json = JSON.stringify(args)
  const shown =
    json.length > EDIT_CHARS_MAX
      ? `${json.slice(0, EDIT_CHARS_MAX).replace(/[\ud800-\udbff]$/, '')}… (${json.length} characters)`
      : json
  const text = `${by} changed the arguments of this call before it was allowed. It was made with: ${shown}`
  return wrapInTag('edited_call', '', text.replaceAll('<', '\\u003c'))
}

/** True if the parts contain text of the model, not only reasoning, files or calls, and no hook withheld them. */
export function saysSomething(parts: readonly Part[], guard?: AnswerGuard): boolean {
  if (guard === 'retry' || guard === 'block') return false
  return parts.some((part) => part.type === 'text' && part.text.trim() !== '')
}

/** The error type that an answer from outside reports. */
function errorTypeOf(answer: OutsideAnswer | undefined): string | undefined {
  const { error_type: type } = (answer?.metadata ?? {}) as { readonly error_type?: unknown }
  return typeof type === 'string' ? type : undefined
}

function userMessage(seq: number, text: string): Extract<Message, { role: 'user' }> {
  return { role: 'user', seq, parts: [{ type: 'text', text }] }
}

function noteText({ kind, text }: Extract<Event, { type: 'note.added' }>): string {
  return kind === 'context'
    ? wrapInTag('hook_context', '', text)
    : wrapInTag('harness_notice', ` kind="${kind === 'limit' ? 'limit_warning' : kind}"`, text)
}

function wrapInTag(tag: string, attributes: string, text: string): string {
  return `<${tag}${attributes}>\n${text}\n</${tag}>`
}
