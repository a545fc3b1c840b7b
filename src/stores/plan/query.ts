// Queries for pages of cards, checked before anything is read.
import { Fault } from '../../kernel/failure.ts'
import type { CardFilter, CardQuery } from '../../ports/store.ts'
import { checkCount } from './count.ts'

const Q_CHARS_MAX = 200

export function checkQuery({ q, limit, behind }: CardQuery): void {
  checkCount('limit', limit)
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

/** A list that goes newest first is a page of it. */
export function queryOf({ newest, root: _root, after: _after, waiting: _waiting, ...filter }: CardFilter): CardQuery {
  return { ...filter, order: newest === 'made' ? 'made' : 'newest' }
}
