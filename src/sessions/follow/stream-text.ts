// The two ways to read a stream: by its events, or by the text of the answer as it comes. The text is that of the
// deltas, and the whole text of a reply whose deltas were missed. It has no reasoning and no calls, and no text of
// children except one that took over the conversation.
import { Fault } from '../../kernel/failure.ts'
import { HeardReply } from '../../view/heard-reply.ts'
import { textOf } from '../../view/shown-text.ts'
import { HandoffFollower } from './handed-over.ts'
import type { StreamFeed, StreamEvent } from './stream.ts'

/**
 * Both ways take from one queue, so a stream is read in one of them. `session` is asked for its id when the first event
 * has come.
 */
export function streamReaders(feed: StreamFeed, leave: () => Promise<void>, session: () => string) {
  let by: 'events' | 'text' | null = null
  const read = (way: 'events' | 'text'): AsyncIterableIterator<StreamEvent> => {
    by ??= way
    if (by === way) return feed.iterate(leave)
    throw new Fault('invalid_input', `This stream is read by its ${by}. Open another stream to read its ${way} too.`)
  }
  return {
    events: () => read('events'),
    text: (): AsyncIterable<string> => {
      feed.hearDeltas()
      return { [Symbol.asyncIterator]: () => iterateText(read('text'), session) }
    },
  }
}

function iterateText(events: AsyncIterator<StreamEvent>, session: () => string): AsyncIterableIterator<string> {
  let answer: AnswerText | null = null
  const next = async (): Promise<IteratorResult<string, undefined>> => {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return OVER
      answer ??= new AnswerText(session())
      const text = answer.take(step.value)
      if (text !== '') return { done: false, value: text }
    }
  }
  const stop = async (): Promise<IteratorResult<string, undefined>> => {
    await events.return?.()
    return OVER
  }
  const iterator: AsyncIterableIterator<string> = { next, return: stop, [Symbol.asyncIterator]: () => iterator }
  return iterator
}

const OVER = { done: true, value: undefined } as const

class AnswerText {
  readonly #session: string
  readonly #handed: HandoffFollower
  #heard = new HeardReply()
  #said = false
  /** An earlier reply had text, so a blank line comes between. */
  #apart = false

  constructor(session: string) {
    this.#session = session
    this.#handed = new HandoffFollower(session)
  }

  /** Returns the new text, or an empty one. */
  take(event: StreamEvent): string {
    if (event.session === this.#handed.child) return this.#takeHanded(event)
    if (event.session !== this.#session) return ''
    if (event.type === 'model.started') {
      this.#heard = new HeardReply()
      this.#apart = this.#said
    } else if (event.type === 'delta') {
      const piece = event.kind === 'text' ? this.#heard.hear(event) : null
      return this.#given(piece?.text ?? '')
    } else if (event.type === 'agent.message') {
      const text = this.#takeReply(event)
      this.#handed.takeReply(event)
      return text
    }
    return ''
  }

  #takeReply(event: Extract<StreamEvent, { type: 'agent.message' }>): string {
    if (event.guard !== undefined) {
      // Withheld text is not shown again. Its replacement comes whole.
      this.#apart = this.#said
      return event.guard === 'replace' ? this.#given(textOf(event.parts)) : ''
    }
    const rest = this.#handed.rest(event)
    if (rest !== null) {
      this.#apart = false
      return this.#given(rest)
    }
    const pieces = this.#heard.rest(event.parts.filter(({ type }) => type === 'text'))
    return this.#given(pieces.map(({ text }) => text).join(''))
  }

  #takeHanded(event: StreamEvent): string {
    if (event.type === 'model.started' || (event.type === 'agent.message' && event.guard !== undefined))
      this.#apart = this.#said
    return this.#given(
      this.#handed
        .take(event)
        .pieces.map(({ text }) => text)
        .join(''),
    )
  }

  #given(text: string): string {
    if (text === '') return ''
    const before = this.#apart ? '\n\n' : ''
    this.#apart = false
    this.#said = true
    return before + text
  }
}
