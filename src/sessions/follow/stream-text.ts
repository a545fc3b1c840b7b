// The two ways to read a stream: by its events, or by the text of the answer as it comes. The text is what deltas say, and of a
// reply whose deltas were missed the whole text: no reasoning, no calls, and nothing of children but of one that the conversation was
// handed over to.
import { Fault } from '../../kernel/failure.ts'
import { Heard } from '../../view/heard.ts'
import { textOf } from '../../view/text.ts'
import { HandedOver } from './handed-over.ts'
import type { Feed, StreamEvent } from './stream.ts'

/** Both take from one queue, so a stream is read in one of the two ways. */
export function readersOf(feed: Feed, leave: () => Promise<void>, session: string) {
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
      return { [Symbol.asyncIterator]: () => textIn(read('text'), session) }
    },
  }
}

function textIn(events: AsyncIterator<StreamEvent>, session: string): AsyncIterableIterator<string> {
  const answer = new Answer(session)
  const next = async (): Promise<IteratorResult<string, undefined>> => {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return OVER
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

class Answer {
  readonly #session: string
  readonly #handed: HandedOver
  #heard = new Heard()
  #said = false
  /** Another reply said something before: a blank line comes between. */
  #apart = false

  constructor(session: string) {
    this.#session = session
    this.#handed = new HandedOver(session)
  }

  /** What is new, or an empty text. */
  take(event: StreamEvent): string {
    if (event.session === this.#handed.child) return this.#takeHanded(event)
    if (event.session !== this.#session) return ''
    if (event.type === 'model.started') {
      this.#heard = new Heard()
      this.#apart = this.#said
    } else if (event.type === 'delta') {
      const piece = event.kind === 'text' ? this.#heard.hear(event) : null
      return this.#given(piece?.text ?? '')
    } else if (event.type === 'agent.message') {
      const text = this.#takeReply(event)
      this.#handed.replied(event)
      return text
    }
    return ''
  }

  #takeReply(event: Extract<StreamEvent, { type: 'agent.message' }>): string {
    if (event.guard !== undefined) {
      // What was withheld is not told again. What takes its place comes whole.
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
