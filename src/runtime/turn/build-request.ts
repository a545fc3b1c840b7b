// Builds one provider-neutral request from the transcript. It is deterministic and prefix-stable: the bytes of request
// n are the start of request n + 1, except right after a compaction.
import type { EventOf } from '../../kernel/event.ts'
import type { Request, ToolSchema } from '../../ports/model.ts'
import type { Transcript } from '../../kernel/transcript.ts'

type PromptSetup = { readonly instructions: string; readonly tools: readonly ToolSchema[] }

export function buildRequest(
  session: string,
  setup: PromptSetup,
  transcript: Transcript,
  asked: EventOf<'model.started'>,
): Request {
  const { instructions, tools } = setup
  const { messages } = transcript
  const { seq, allow, boost, route } = asked
  const request = { session, seq, instructions, tools, messages, allow: allow ?? 'all', boost: boost === true }
  return route === undefined ? request : { ...request, route }
}
