// How many tokens the next request of a session has, from the end of its log. The same as the guard counts (window.ts), for those who
// have not followed the session.
import type { Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { Fill, usedIn } from './window.ts'

/** About how many tokens the next request has, and how many the model takes: null where that is unknown. */
export type ContextFill = Frozen<{ tokens: number; window: number | null }>

/** So many events before the last count are looked at, to learn how long a token is. */
const LEARNED_OVER = 100

/** How many tokens a request has after these events, which are the last of a log. Null: no reply among them was counted. */
export function tokensAfter(events: readonly Event[]): number | null {
  const at = events.findLastIndex(isCount)
  if (at < 0) return null
  // What came while the model was asked is not in what it counted.
  const asked = events.findLastIndex(({ type }, i) => type === 'model.started' && i < at)
  const fill = new Fill()
  for (const event of events.slice(Math.max(0, asked - LEARNED_OVER))) fill.take(event)
  return fill.tokens
}

function isCount(event: Event): boolean {
  if (event.type === 'context.compacted') return event.after !== undefined
  return event.type === 'agent.message' && usedIn(event.usage) !== null
}

const TAIL_PAGE = 100
/** So many events from the end are read at most. Without a counted reply among them, the number of tokens is not known. */
const TAIL_MAX = 1_000

/** The same for a session of the store, read from its end. */
export async function tokensOf(store: Pick<Store, 'read'>, id: string, seq: number): Promise<number | null> {
  let tail: readonly Event[] = []
  for (let end = seq; end > 0 && seq - end < TAIL_MAX; end -= TAIL_PAGE) {
    const after = Math.max(0, end - TAIL_PAGE)
    tail = [...(await store.read(id, after, end - after)).events, ...tail]
    const at = tail.findLastIndex(isCount)
    const whole = after === 0 || tail.findIndex(({ type }, i) => type === 'model.started' && i < at) >= 0
    if (at >= 0 && (whole || tail[at]?.type === 'context.compacted')) break
  }
  return tokensAfter(tail)
}
