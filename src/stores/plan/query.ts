// Queries for pages of cards, checked before anything is read.
import { Fault } from '../../kernel/failure.ts'
import type { Card, CardFilter, CardOutcome, CardPlace, CardQuery } from '../../ports/store.ts'
import { checkCount } from './count.ts'

const Q_CHARS_MAX = 200

export function checkQuery({ q, limit, behind, since, until }: CardQuery): void {
  checkCount('limit', limit)
  if (Number.isNaN(since) || Number.isNaN(until))
    throw new Fault('invalid_input', 'The times of a page are numbers: milliseconds since 1970.')
  const wrong = searchCheck(q ?? '')
  if (wrong !== null) throw new Fault('invalid_input', `The search ${wrong}.`)
  if (behind !== undefined && !(Number.isFinite(behind.at) && Number.isSafeInteger(behind.n)))
    throw new Fault('invalid_input', 'The place of a page is what `next` of the page before it says.')
}

/** What is wrong with it, as the end of a sentence. */
export function searchCheck(q: string): string | null {
  if (q.length <= Q_CHARS_MAX) return null
  return `has ${q.length} characters and may have ${Q_CHARS_MAX}: search for fewer words`
}

/** Whether the last run of a session ended in one of these ways. A store that filters with SQL says the same in SQL. */
export function hasOutcome(
  { outcome, unknown }: Pick<Card, 'outcome' | 'unknown'>,
  trouble: Card['trouble'] | null,
  wanted: readonly CardOutcome[],
): boolean {
  if (outcome !== null && wanted.includes(outcome)) return true
  if (unknown !== undefined && wanted.includes('unknown')) return true
  return trouble?.until === null && wanted.includes('quarantined')
}

/** Where a walk of the newest sessions begins: behind the last page, and behind what is not before `until`. */
export function firstPlace({ behind, until, order }: CardQuery): CardPlace {
  const start = behind ?? { at: Number.MAX_VALUE, n: Number.MAX_SAFE_INTEGER }
  return until !== undefined && order === 'newest' && until <= start.at ? { at: until, n: 0 } : start
}

/** A list that goes newest first is a page of it. */
export function queryOf({ newest, root: _root, after: _after, waiting: _waiting, ...filter }: CardFilter): CardQuery {
  return { ...filter, order: newest === 'made' ? 'made' : 'newest' }
}
