// Pages of a list of sessions, newest first: filtered, searched, and read on by a cursor that belongs to one query.
import { hash } from 'node:crypto'
import { Fault } from '../../kernel/failure.ts'
import type { CardOutcome, CardPlace, CardQuery } from '../../ports/store.ts'
import type { Services } from '../../engine/wiring.ts'
import { count, listOf, oneOf, optionsOf, text } from '../../options.ts'
import { searchCheck } from '../../stores/plan/query.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import { canonicalJson } from '../../tools/core/canonical.ts'
import { CARD_OUTCOMES } from '../../view/card.ts'
import type { ListedCard, ListOptions } from '../meter.ts'
import { detailed } from '../reading.ts'
import { WANTED } from '../verb-options.ts'

/** All that is given must hold. `limit`: 50 unless said, 1 to 500. */
export type PageOptions = Pick<ListOptions, 'status' | 'parent' | 'folder' | 'where' | 'limit' | 'context' | 'runs'> & {
  readonly agent?: string
  readonly owner?: string
  /** Each of its words must be in the title, the agent, the id or the labels, in small or capital letters. At most 200 characters. */
  readonly q?: string
  /**
   * How the last run ended: one of these. `unknown`: a call of it may have happened. `quarantined`: it failed so often in a row that
   * workers leave the session alone.
   */
  readonly outcome?: readonly CardOutcome[]
  /** The last event was at or after this time, in ms. */
  readonly since?: number
  /** The last event was before this time, in ms. */
  readonly until?: number
  /** `made`: the last that was made in this store first. Default: the last event first. */
  readonly order?: 'newest' | 'made'
  /** `next` of the page before this one. */
  readonly cursor?: string
}

/** `next` is null when nothing follows. */
export type ListedPage = { readonly cards: readonly ListedCard[]; readonly next: string | null }

const CARDS = 50

const checkPage = optionsOf<PageOptions>('page', {
  ...WANTED,
  agent: text,
  owner: text,
  q: (value, name, of) => text(value, name, of) ?? searchCheck(String(value)),
  outcome: listOf(oneOf(CARD_OUTCOMES)),
  since: count(),
  until: count(),
  order: oneOf<'newest' | 'made'>({ newest: true, made: true }),
  cursor: text,
  limit: count(1, 500),
})

export async function paged(services: Services, options: PageOptions): Promise<ListedPage> {
  checkPage(options)
  const { context = false, runs = false, cursor, limit = CARDS, order = 'newest', ...filter } = options
  const query = { ...filter, order }
  const key = keyOf(query)
  const behind = cursor === undefined ? {} : { behind: placeIn(cursor, key) }
  const { cards, next } = await services.store.page({ ...query, limit, ...behind })
  const listed = await detailed(services, await withTreeCost(services.store, cards), { context, runs })
  return { cards: listed, next: next && cursorOf(key, next) }
}

const VERSION = 1

function keyOf(query: Omit<CardQuery, 'limit' | 'behind'>): string {
  return hash('sha256', canonicalJson(query)).slice(0, 16)
}

function cursorOf(key: string, { at, n }: CardPlace): string {
  return Buffer.from(JSON.stringify([VERSION, key, at, n])).toString('base64url')
}

function placeIn(cursor: string, key: string): CardPlace {
  const [version, of, at, n] = partsOf(cursor)
  if (version !== VERSION || typeof of !== 'string' || !Number.isFinite(at) || !Number.isSafeInteger(n))
    throw new Fault('invalid_input', 'This is no cursor. Give `next` of the page before as it is.')
  if (of !== key)
    throw new Fault(
      'invalid_input',
      'This cursor is of another query. Ask for the first page of this one, without a cursor.',
    )
  return { at: at as number, n: n as number }
}

const CURSOR_CHARS_MAX = 200

function partsOf(cursor: string): readonly unknown[] {
  if (cursor.length > CURSOR_CHARS_MAX) return []
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}
