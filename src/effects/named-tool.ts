// The tool that reads what a context does not show whole. It is no part of what a run freezes: a model is offered it from the first result
// on that names it, or from the first compaction on, so other sessions never pay for it. The log decides, whatever the options are now.
import { MARKER_START, RETRIEVE } from '../context/juice/marker.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import type { Agent } from '../engine/wiring.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import type { Tool } from '../tools/core/tool.ts'
import { isLongAnswer } from '../view/history.ts'

type Seen = { upTo: number; isNamed: boolean }
/** How far the messages of a session were looked at. Once a result names the tool, it stays. */
const SEEN = new WeakMap<SessionCache, Seen>()

export function namedTool({ retrieve }: Agent, cache: SessionCache, transcript: Transcript): Tool | undefined {
  if (retrieve === undefined || transcript.isCompacted) return retrieve
  const { messages } = transcript
  const seen = SEEN.get(cache) ?? { upTo: 0, isNamed: false }
  SEEN.set(cache, seen)
  for (let i = messages.length - 1; i >= 0 && !seen.isNamed; i--) {
    const message = messages[i]
    if (message === undefined || message.seq <= seen.upTo) break
    seen.isNamed = isNaming(message)
  }
  seen.upTo = messages.at(-1)?.seq ?? 0
  return seen.isNamed ? retrieve : undefined
}

/** A text may name it by chance: then a tool is offered that finds nothing. A very long answer is shown by both ends, which name it. */
function isNaming(message: Message): boolean {
  if (message.role !== 'tool' || typeof message.content !== 'string') return false
  return message.content.includes(MARKER_START) || message.content.includes(RETRIEVE) || isLongAnswer(message)
}
