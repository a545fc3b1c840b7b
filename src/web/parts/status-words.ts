// The words for a session's status in lists and heads: its state, the reason, and whether a person has to look at it.
import type { WireCard } from '../../server/wire.ts'
import { stateOf } from '../../view/tree-rows.ts'

const PROBLEMS: readonly string[] = ['failed', 'quarantined', 'halted']

/** A person has to look at it: it failed, or it rests after a call with an unknown outcome. */
export function isProblemCard(card: WireCard): boolean {
  return PROBLEMS.includes(stateOf(card)) || (card.status === 'idle' && card.unknown !== undefined)
}

/** The inbox has an entry of a session below this session or call. */
export const CHILD_WAITS = 'a child waits'

/**
 * The status of a call. `child`: the id of the session that it started. `waiting`: the sessions that wait for a person.
 */
export function callStatusOf(
  state: string,
  child: string | null,
  waiting: readonly string[],
): { readonly of: string; readonly words?: string } {
  if (state !== 'outside') return { of: state }
  if (child === null) return { of: state, words: 'waits for an answer' }
  const isIts = (id: string): boolean => id === child || id.startsWith(`${child}~`) || id.startsWith(`${child}.`)
  return waiting.some(isIts) ? { of: 'waits', words: CHILD_WAITS } : { of: state, words: 'child at work' }
}

/** Overrides the word of a state that says too little. */
export function stateWords(card: WireCard, waitsBelow = false): string | undefined {
  const { status, outage, wakes, limit } = card
  if (waitsBelow && status !== 'requires_action') return CHILD_WAITS
  if (stateOf(card) === 'limit' && limit === 'usd') return 'out of money'
  // A planned wake: nothing is being retried.
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

/** The reason for its trouble or its waiting, if the card has one. */
export function statusReason(card: WireCard): string | null {
  const { trouble, outage, cause, due, elsewhere, limit } = card
  if (elsewhere !== undefined && due !== null) return elsewhere
  if (trouble ?? outage) return trouble?.reason ?? outage?.reason ?? null
  const state = stateOf(card)
  if (state === 'failed' || state === 'halted') return cause ?? 'its log says why'
  return state === 'limit' && limit !== undefined ? LIMITS[limit] : null
}

/** Calls of the last run whose outcome is unknown. */
export function unknownWords({ unknown = 0 }: WireCard): string | null {
  if (unknown === 0) return null
  return unknown === 1 ? '1 call may have happened' : `${unknown} calls may have happened`
}
