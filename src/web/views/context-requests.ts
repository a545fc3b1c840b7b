// The model requests of a session, for the context view: the tokens of each, and the share from the cache.
import type { Event } from '../../server/wire.ts'
import { Transcript } from '../../kernel/transcript.ts'
import { type CacheMiss, missIn } from '../../view/request-context.ts'

export type RequestMark = {
  /** The seq of the `model.started` event. */
  readonly seq: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly missed: CacheMiss | null
  readonly answered: 'reply' | 'failed' | null
  readonly reply: number | null
}

export function buildRequestMarks(events: readonly Event[]): readonly RequestMark[] {
  const marks: RequestMark[] = []
  for (const event of events) {
    if (event.type === 'model.started') {
      const none = { inputTokens: 0, cachedTokens: 0, missed: null, answered: null, reply: null }
      marks.push({ seq: event.seq, ...none })
      continue
    }
    const last = marks.at(-1)
    if (!last || last.answered !== null) continue
    if (event.type === 'model.failed') marks[marks.length - 1] = { ...last, answered: 'failed', reply: event.seq }
    else if (event.type === 'agent.message') {
      const { inputTokens = 0, cachedTokens = 0 } = event.usage ?? {}
      const [missed = null] = missIn(event)
      marks[marks.length - 1] = { ...last, inputTokens, cachedTokens, missed, answered: 'reply', reply: event.seq }
    }
  }
  return marks
}

/** Reading with a transcript changes it, so each use gets a copy. */
export function copyTranscript(transcript: Transcript | undefined): Transcript {
  const copy = new Transcript()
  for (const message of transcript?.messages ?? []) {
    copy.messages.push(message)
    copy.inherited.set(message, transcript?.inherited.get(message) ?? 1)
  }
  return copy
}
