// The tool that reads what results leave out by default. It is no part of what a run freezes: a model is offered it from the first
// result on that names it, so sessions without large results never pay for it.
import { MARKER_START, RETRIEVE } from '../context/juice/marker.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import type { Agent } from '../engine/wiring.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Tool } from '../tools/core/tool.ts'

type Seen = { upTo: number; isNamed: boolean }
/** How far the messages of a session were looked at. Once a result names the tool, it stays. */
const SEEN = new WeakMap<SessionCache, Seen>()

export function namedTool({ retrieve }: Agent, cache: SessionCache, messages: readonly Message[]): Tool | undefined {
  if (retrieve === undefined) return undefined
  const seen = SEEN.get(cache) ?? { upTo: 0, isNamed: false }
  SEEN.set(cache, seen)
  for (let i = messages.length - 1; i >= 0 && !seen.isNamed; i--) {
    const message = messages[i]
    if (message === undefined || message.seq <= seen.upTo) break
    seen.isNamed = message.role === 'tool' && typeof message.content === 'string' && isNaming(message.content)
  }
  seen.upTo = messages.at(-1)?.seq ?? 0
  return seen.isNamed ? retrieve : undefined
}

/** A text may name it by chance: then a tool is offered that finds nothing. */
function isNaming(content: string): boolean {
  return content.includes(MARKER_START) || content.includes(RETRIEVE)
}
