// Finds the tool that reads texts which a context does not show whole. A run does not freeze it: a model is offered it
// from the first result on that names it, or from the first compaction on, so other sessions never pay for it. The log
// decides this, whatever the options are now.
import { MARKER_START, RETRIEVE } from '../../context/compress/marker.ts'
import type { SessionCache } from './session-cache.ts'
import type { Agent } from './agent.ts'
import type { Message, Transcript } from '../../kernel/transcript.ts'
import type { Tool } from '../../tools/core/tool.ts'
import { isLongAnswer } from '../../view/session-history.ts'

type SeenMessages = { upTo: number; isNamed: boolean }
/** How far the messages of a session were searched. Once a result names the tool, it stays offered. */
const SEEN = new WeakMap<SessionCache, SeenMessages>()

export function findNamedTool({ retrieve }: Agent, cache: SessionCache, transcript: Transcript): Tool | undefined {
  if (retrieve === undefined || transcript.isCompacted) return retrieve
  const { messages } = transcript
  const seen = SEEN.get(cache) ?? { upTo: 0, isNamed: false }
  SEEN.set(cache, seen)
  for (let i = messages.length - 1; i >= 0 && !seen.isNamed; i--) {
    const message = messages[i]
    if (message === undefined || message.seq <= seen.upTo) break
    seen.isNamed = message.role === 'tool' && namesRetrieve(message)
  }
  seen.upTo = messages.at(-1)?.seq ?? 0
  return seen.isNamed ? retrieve : undefined
}

/**
 * A text may contain the name by chance; then the model is offered a tool that finds nothing. A very long answer
 * counts, because its shortened form names the tool.
 */
function namesRetrieve(message: Extract<Message, { role: 'tool' }>): boolean {
  if (typeof message.content !== 'string') return false
  return message.content.includes(MARKER_START) || message.content.includes(RETRIEVE) || isLongAnswer(message)
}
