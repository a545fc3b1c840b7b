// The projection: from the transcript to one provider-neutral request. Deterministic, and prefix-stable: the bytes of
// request n are the start of request n + 1, except right after a compaction.
import type { Event } from '../kernel/event.ts'
import type { Request, ToolSchema } from '../ports/model.ts'
import type { Transcript } from '../kernel/transcript.ts'

type Asked = Extract<Event, { type: 'model.started' }>
type Setup = { readonly instructions: string; readonly tools: readonly ToolSchema[] }

export function project(session: string, setup: Setup, transcript: Transcript, asked: Asked): Request {
  const { instructions, tools } = setup
  const { messages } = transcript
  const { seq, allow, boost, route } = asked
  const request = { session, seq, instructions, tools, messages, allow: allow ?? 'all', boost: boost === true }
  return route === undefined ? request : { ...request, route }
}
