// Follows the replies of an agent that took over the conversation, while they come: their text is the answer of the
// session that handed over. The reply that later holds this answer adds only the part that was not heard. Only a
// handoff that is the single call of its reply is followed.
import { callKey, type Event } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../view/ids.ts'
import { HeardReply } from '../../view/heard-reply.ts'
import { textOf } from '../../view/shown-text.ts'
import type { StreamEvent } from './stream.ts'

type ReplyEvent = Extract<Event, { type: 'agent.message' }>

/** `n` numbers the texts of the child. A text has the same number whenever the child is read from its beginning. */
type HandedPiece = { readonly n: number; readonly text: string }
/** `ended`: texts that are complete. `afresh`: the pieces replace the earlier text of this reply. */
type HandedUpdate = {
  readonly pieces: readonly HandedPiece[]
  readonly ended: readonly number[]
  readonly afresh: boolean
}

/**
 * The numbers reserved for the texts of one reply. Further texts are joined into the last, so replies never share a
 * number.
 */
const TEXTS_A_REPLY = 100
const NOTHING: HandedUpdate = { pieces: [], ended: [], afresh: false }

export class HandoffFollower {
  readonly #session: string
  #open: { readonly child: string; readonly tool: string } | null = null
  /** The number of the child's replies so far, including failed ones. */
  #replies = 0
  #heard = new HeardReply()
  /** The text given so far of the child's last reply, and whether that reply is complete. */
  #text = ''
  #isOver = false

  constructor(session: string) {
    this.#session = session
  }

  /** The session that the conversation was handed over to; null if there is none. */
  get child(): string | null {
    return this.#open?.child ?? null
  }

  /** Takes a reply of the session itself. */
  takeReply({ seq, calls }: ReplyEvent): void {
    const [call] = calls
    const isHandoff = calls.length === 1 && call !== undefined && outsideOf(call)?.handoff === true
    this.#open = isHandoff ? { child: childId(this.#session, callKey(seq, 0)), tool: call.tool } : null
    this.#replies = 0
    this.#text = ''
    this.#isOver = false
    this.#heard = new HeardReply()
  }

  /** Takes an event or a delta of the child. */
  take(event: StreamEvent): HandedUpdate {
    if (event.session !== this.child) return NOTHING
    if (event.type === 'model.started') {
      this.#replies += 1
      this.#heard = new HeardReply()
      this.#text = ''
      this.#isOver = false
    } else if (event.type === 'delta' && event.kind === 'text') {
      const piece = this.#heard.hear(event)
      return piece === null ? NOTHING : { ...NOTHING, pieces: this.#told([piece]) }
    } else if (event.type === 'agent.message') {
      const pieces = this.#rest(event)
      this.#isOver = event.verdict.type === 'final'
      return { pieces: this.#told(pieces), ended: this.#ended(), afresh: event.guard !== undefined }
    } else if (event.type === 'model.failed') return { ...NOTHING, ended: this.#ended() }
    return NOTHING
  }

  /** Whether a reply of the session itself is the unchanged answer of the child. */
  isAnswer({ route, guard }: ReplyEvent): boolean {
    return this.#open !== null && route === this.#open.tool && guard === undefined
  }

  /**
   * The part of the child's answer that was not heard before this reply; null if the reply is not such an answer, or if
   * nothing of it was heard.
   */
  rest(reply: ReplyEvent): string | null {
    if (!this.isAnswer(reply)) return null
    const answer = textOf(reply.parts)
    if (this.#isOver && this.#text !== '') return ''
    return this.#text !== '' && answer.startsWith(this.#text) ? answer.slice(this.#text.length) : null
  }

  #rest({ parts, guard }: ReplyEvent): ReturnType<HeardReply['rest']> {
    const texts = parts.filter(({ type }) => type === 'text')
    if (guard === undefined) return this.#heard.rest(texts)
    // Withheld text is not shown again. Its replacement comes whole.
    this.#text = ''
    return guard === 'replace' ? this.#heard.replaced(texts) : []
  }

  #told(pieces: ReturnType<HeardReply['rest']>): readonly HandedPiece[] {
    this.#text += pieces.map(({ text }) => text).join('')
    return pieces.flatMap(({ segment, text }) => (text === '' ? [] : [{ n: this.#numberOf(segment.n), text }]))
  }

  #ended(): readonly number[] {
    const said = this.#heard.segments.filter(({ kind, chars }) => kind === 'text' && chars > 0)
    return [...new Set(said.map(({ n }) => this.#numberOf(n)))]
  }

  #numberOf(n: number): number {
    return this.#replies * TEXTS_A_REPLY + Math.min(n, TEXTS_A_REPLY - 1)
  }
}
