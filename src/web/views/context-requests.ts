// The requests of a session, as the view of its context lists them: what each asked for, and what came from the cache.
import type { Event } from '../../server/wire.ts'
import { Transcript } from '../../kernel/transcript.ts'
import { type CacheMiss, missIn } from '../../view/context.ts'

export type RequestMark = {
  /** Of the event that asked. */
  readonly seq: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly missed: CacheMiss | null
  readonly answered: 'reply' | 'failed' | null
  readonly reply: number | null
}

export function marksIn(events: readonly Event[]): readonly RequestMark[] {
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

/** Whoever reads through a transcript changes it: a copy for each. */
export function copyOf(transcript: Transcript | undefined): Transcript {
  const copy = new Transcript()
  for (const message of transcript?.messages ?? []) {
    copy.messages.push(message)
    copy.inherited.set(message, transcript?.inherited.get(message) ?? 1)
  }
  return copy
}
