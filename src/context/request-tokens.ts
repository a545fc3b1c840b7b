// Counts the tokens of the next request of a session, from the end of its log, for callers that have not followed the
// session. It counts as the guard does (window-fill.ts).
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { WindowFill, countedTokens } from './window-fill.ts'

/** How full the context of a model is. */
export type ContextFill = Frozen<{
  /** About how many tokens the next request has. */
  tokens: number
  /** How many tokens the model takes. Null if that is unknown. */
  window: number | null
}>

/** This many events before the last count are read, to learn how many characters a token has. */
const LEARNED_OVER = 100

/** The tokens of a request after these events, which are the last of a log. Null if no reply among them was counted. */
export function countRequestTokens(events: readonly Event[]): number | null {
  const at = events.findLastIndex(isCount)
  if (at < 0) return null
  // The provider did not count events that came during the model call.
  const asked = events.findLastIndex(({ type }, i) => type === 'model.started' && i < at)
  const fill = new WindowFill()
  for (const event of events.slice(Math.max(0, asked - LEARNED_OVER))) fill.take(event)
  return fill.tokens
}

function isCount(event: Event): boolean {
  if (event.type === 'context.compacted') return event.after !== undefined
  return event.type === 'agent.message' && countedTokens(event.usage) !== null
}

const TAIL_PAGE = 100
/**
 * At most this many events from the end are read. Without a counted reply among them, the number of tokens is unknown.
 */
const TAIL_MAX = 1_000

/** The same for a session of the store, read from its end. */
export async function readRequestTokens(store: Pick<Store, 'read'>, id: string, seq: number): Promise<number | null> {
  let tail: readonly Event[] = []
  for (let end = seq; end > 0 && seq - end < TAIL_MAX; end -= TAIL_PAGE) {
    const after = Math.max(0, end - TAIL_PAGE)
    tail = [...(await store.read(id, after, end - after)).events, ...tail]
    const at = tail.findLastIndex(isCount)
    const whole = after === 0 || tail.findIndex(({ type }, i) => type === 'model.started' && i < at) >= 0
    if (at >= 0 && (whole || tail[at]?.type === 'context.compacted')) break
  }
  return countRequestTokens(tail)
}
