// Turns events into a conversation for readers without a request: results and finalizers. It reads the log and adds
// nothing to it.
import type { Event } from '../../kernel/event.ts'
import { type Message, Transcript } from '../../kernel/transcript.ts'

/** The conversation that these events show. Messages that no request has shown come last. */
export function conversationOf(events: readonly Event[]): readonly Message[] {
  const transcript = new Transcript()
  for (const event of events) transcript.take(event)
  const shows = shownOrder(events)
  transcript.take({ seq: Number.MAX_SAFE_INTEGER, at: 0, epoch: 0, type: 'model.started', shows })
  return transcript.messages
}

/**
 * The order in which a request shows the events: a result stands where its call stood, every other event where it came.
 */
function shownOrder(events: readonly Event[]): readonly number[] {
  const placed = events.map((event) => {
    const [reply = event.seq, index = 0] = event.type === 'agent.tool_result' ? event.call.split('.').map(Number) : []
    return { seq: event.seq, reply, index }
  })
  return placed.sort((a, b) => a.reply - b.reply || a.index - b.index).map(({ seq }) => seq)
}
