// How a session stands, in the words of lists and heads: its state, why it is so, and whether somebody has to look at it.
import type { WireCard } from '../../server/wire.ts'
import { stateOf } from '../../view/tree.ts'

const PROBLEMS: readonly string[] = ['failed', 'quarantined', 'halted']

/** Somebody has to look at it: it failed, or rests after a call of which nobody knows whether it happened. */
export function isProblem(card: WireCard): boolean {
  return PROBLEMS.includes(stateOf(card)) || (card.status === 'idle' && card.unknown !== undefined)
}

/** Something below the session or the call is in the inbox. */
export const CHILD_WAITS = 'a child waits'

/** How a call stands. `child`: the id of the session that it started. `waiting`: the sessions that wait for somebody. */
export function callLook(
  state: string,
  child: string | null,
  waiting: readonly string[],
): { readonly of: string; readonly words?: string } {
  if (state !== 'outside') return { of: state }
  if (child === null) return { of: state, words: 'waits for an answer' }
  const isIts = (id: string): boolean => id === child || id.startsWith(`${child}~`) || id.startsWith(`${child}.`)
  return waiting.some(isIts) ? { of: 'waits', words: CHILD_WAITS } : { of: state, words: 'child at work' }
}

/** Where the word of its state does not say enough. */
export function stateWords(card: WireCard, waitsBelow = false): string | undefined {
  const { status, outage, wakes, limit } = card
  if (waitsBelow && status !== 'requires_action') return CHILD_WAITS
  if (stateOf(card) === 'limit' && limit === 'usd') return 'out of money'
  // It sleeps until a moment: nothing is tried again.
  return status === 'rescheduling' && outage === undefined && wakes > 0 ? 'scheduled' : undefined
}

const LIMITS: Readonly<Record<NonNullable<WireCard['limit']>, string>> = {
  model_requests: 'all model requests of the run are used up',
  tool_calls: 'all calls of the run are used up',
  active_ms: 'the time of the run is used up',
  usd: 'the budget does not cover the next call',
  tokens: 'all tokens of the run are used up',
  context: 'the context is full',
}

/** Why it is in trouble or waits, where its card says so. */
export function whyOf(card: WireCard): string | null {
  const { trouble, outage, cause, due, elsewhere, limit } = card
  if (elsewhere !== undefined && due !== null) return elsewhere
  if (trouble ?? outage) return trouble?.reason ?? outage?.reason ?? null
  const state = stateOf(card)
  if (state === 'failed' || state === 'halted') return cause ?? 'its log says why'
  return state === 'limit' && limit !== undefined ? LIMITS[limit] : null
}

/** Calls of the last run of which nobody knows whether they happened. */
export function unknownWords({ unknown = 0 }: WireCard): string | null {
  if (unknown === 0) return null
  return unknown === 1 ? '1 call may have happened' : `${unknown} calls may have happened`
}
