// What an agent says that a conversation was handed over to, while it says it: its text is the answer of the session that handed over. The
// reply that then has the answer says only what was not heard. Only a handoff that is the one call of its reply is followed.
import { callKey, type Event } from '../../kernel/event.ts'
import { outsideOf } from '../../kernel/ledger.ts'
import { childId } from '../../stores/plan/id.ts'
import { Heard } from '../../view/heard.ts'
import { textOf } from '../../view/text.ts'
import type { StreamEvent } from './stream.ts'

type Reply = Extract<Event, { type: 'agent.message' }>

/** `n` counts the texts of the child. The same text has the same number whenever the child is read from its beginning. */
type HandedPiece = { readonly n: number; readonly text: string }
/** `ended`: texts that nothing is added to any more. `afresh`: the pieces take the place of what was said of this reply. */
type HandedTold = {
  readonly pieces: readonly HandedPiece[]
  readonly ended: readonly number[]
  readonly afresh: boolean
}

/** Each reply of the child has so many numbers for its texts. Texts beyond them are joined into the last, so replies never share one. */
const TEXTS_A_REPLY = 100
const NOTHING: HandedTold = { pieces: [], ended: [], afresh: false }

export class HandedOver {
  readonly #session: string
  #open: { readonly child: string; readonly tool: string } | null = null
  /** The replies of the child so far, with those that failed. */
  #replies = 0
  #heard = new Heard()
  /** What was told of its last reply, and whether that is over. */
  #text = ''
  #isOver = false

  constructor(session: string) {
    this.#session = session
  }

  /** The session that has the conversation now; null if none has. */
  get child(): string | null {
    return this.#open?.child ?? null
  }

  /** After a reply of the session itself. */
  replied({ seq, calls }: Reply): void {
    const [call] = calls
    const isHandoff = calls.length === 1 && call !== undefined && outsideOf(call)?.handoff === true
    this.#open = isHandoff ? { child: childId(this.#session, callKey(seq, 0)), tool: call.tool } : null
    this.#replies = 0
    this.#text = ''
    this.#isOver = false
    this.#heard = new Heard()
  }

  /** An event or a delta of the child. */
  take(event: StreamEvent): HandedTold {
    if (event.session !== this.child) return NOTHING
    if (event.type === 'model.started') {
      this.#replies += 1
      this.#heard = new Heard()
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

  /** Whether a reply of the session itself is the answer of the child as it was given. */
  isAnswer({ route, guard }: Reply): boolean {
    return this.#open !== null && route === this.#open.tool && guard === undefined
  }

  /** What a reply of the session itself lacks of the answer of the child; null if it is no such answer, or if nothing of it was heard. */
  rest(reply: Reply): string | null {
    if (!this.isAnswer(reply)) return null
    const answer = textOf(reply.parts)
    if (this.#isOver && this.#text !== '') return ''
    return this.#text !== '' && answer.startsWith(this.#text) ? answer.slice(this.#text.length) : null
  }

  #rest({ parts, guard }: Reply): ReturnType<Heard['rest']> {
    const texts = parts.filter(({ type }) => type === 'text')
    if (guard === undefined) return this.#heard.rest(texts)
    // What was withheld is not told again. What takes its place comes whole.
    this.#text = ''
    return guard === 'replace' ? this.#heard.replaced(texts) : []
  }

  #told(pieces: ReturnType<Heard['rest']>): readonly HandedPiece[] {
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
