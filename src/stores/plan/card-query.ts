// Queries for pages of cards, checked before anything is read.
import { Fault } from '../../kernel/failure.ts'
import type { Card, CardFilter, CardOutcome, CardPlace, CardQuery } from '../../ports/store.ts'
import { isLaneAgent, LANE_AGENTS } from '../../view/lanes.ts'
import { mayWait } from '../../view/pending-calls.ts'
import { checkCount } from './check-count.ts'

const Q_CHARS_MAX = 200

export function checkQuery({ q, limit, behind, since, until }: CardQuery): void {
  checkCount('limit', limit)
  if (Number.isNaN(since) || Number.isNaN(until))
    throw new Fault('invalid_input', 'The times of a page are numbers: milliseconds since 1970.')
  const wrong = whySearchRefused(q ?? '')
  if (wrong !== null) throw new Fault('invalid_input', `The search ${wrong}.`)
  if (behind !== undefined && !(Number.isFinite(behind.at) && Number.isSafeInteger(behind.n)))
    throw new Fault('invalid_input', 'The place of a page is what `next` of the page before it says.')
}

/** Says what is wrong with the search, as the end of a sentence. */
export function whySearchRefused(q: string): string | null {
  if (q.length <= Q_CHARS_MAX) return null
  return `has ${q.length} characters and may have ${Q_CHARS_MAX}: search for fewer words`
}

/**
 * Whether the last run of a session ended in one of these ways. Stores that filter with SQL apply the same rule in SQL.
 */
export function hasOutcome(
  { outcome, unknown }: Pick<Card, 'outcome' | 'unknown'>,
  trouble: Card['trouble'] | null,
  wanted: readonly CardOutcome[],
): boolean {
  if (outcome !== null && wanted.includes(outcome)) return true
  if (unknown !== undefined && wanted.includes('unknown')) return true
  return trouble?.until === null && wanted.includes('quarantined')
}

/** Without a name every agent is wanted but those of lanes. The beginning of their names wants all of these. */
export function isAgentWanted(agent: string, wanted: string | undefined): boolean {
  if (wanted === LANE_AGENTS) return isLaneAgent(agent)
  return wanted === undefined ? !isLaneAgent(agent) : wanted === agent
}

type CardConditions = Pick<CardFilter, 'status' | 'parent' | 'folder' | 'where'>

export function meetsConditions(card: Card, { status, parent, folder, where }: CardConditions): boolean {
  if ((status ?? card.status) !== card.status || (folder ?? card.folder) !== card.folder) return false
  if ((parent ?? card.parent) !== card.parent) return false
  return where === undefined || Object.entries(where).every(([name, value]) => card.labels?.[name] === value)
}

/** Whether `list` with this filter has the card, wherever it begins and ends. */
export function matchesFilter(card: Card, filter: CardFilter): boolean {
  if ((filter.root ?? card.root) !== card.root || (filter.waiting && !mayWait(card))) return false
  return meetsConditions(card, filter)
}

/** Newest first. Of one moment, the higher number first. */
export function comparePlaces(a: CardPlace, b: CardPlace): number {
  return b.at - a.at || b.n - a.n
}

/** Before all sessions. */
export const FIRST_PLACE: CardPlace = { at: Number.MAX_VALUE, n: Number.MAX_SAFE_INTEGER }

/** Where a walk through the newest sessions begins: after the last page, and after all that are not before `until`. */
export function firstPlace({ behind, until, order }: CardQuery): CardPlace {
  const start = behind ?? FIRST_PLACE
  return until !== undefined && order === 'newest' && until <= start.at ? { at: until, n: 0 } : start
}
