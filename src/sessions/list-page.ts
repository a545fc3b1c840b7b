// Lists of sessions, a page at a time: filtered, searched, and continued by a cursor that belongs to one query.
import { hash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { Card, CardFilter, CardOutcome, CardPlace, CardQuery, Status } from '../ports/store.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { countCheck, flagCheck, listCheck, oneOf, optionsChecker, textCheck } from '../options.ts'
import { whySearchRefused } from '../stores/plan/card-query.ts'
import { withTreeCost } from '../stores/plan/tree-cost.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { CARD_OUTCOMES } from '../view/card.ts'
import { isLaneAgent } from '../view/lanes.ts'
import { labelsCheck } from './metadata.ts'
import { addContextFill, type ListedCard } from './meter.ts'
import { addCardDetails, listActiveRuns } from './reading.ts'

/** All given filters must hold. `limit`: default 50, 1 to 500. */
export type ListOptions = Pick<
  Partial<CardFilter>,
  'status' | 'root' | 'parent' | 'folder' | 'where' | 'waiting' | 'limit'
> & {
  /** Only sessions at work, and those that wait for a child at work. It goes with `root` and `parent` alone. */
  readonly active?: boolean
  /** `consumer:NAME` and `consumer:` have the lanes of one consumer and of all, which other lists leave out. */
  readonly agent?: string
  /** Only sessions of this owner, which is `metadata.owner` of the session. */
  readonly owner?: string
  /** Each of its words must be in the title, the agent, the id or the labels, ignoring case. At most 200 characters. */
  readonly q?: string
  /**
   * The last run ended in one of these ways. `unknown`: one of its calls may have happened. `quarantined`: it failed so
   * often in a row that workers leave the session alone.
   */
  readonly outcome?: readonly CardOutcome[]
  /** The last event was at or after this time, in ms. */
  readonly since?: number
  /** The last event was before this time, in ms. */
  readonly until?: number
  /**
   * `made`: the session that was created last in this store comes first. `id`: by id, with children among them; while
   * pages are read, none is missed or repeated. Default: by the last event, or by id with a `root`.
   */
  readonly order?: 'newest' | 'made' | 'id'
  /** `next` of the previous page. */
  readonly cursor?: string
  /** Each card has its context fill, which reads the end of its log. */
  readonly context?: boolean
  /** Each card has its last run and that run's phase, which reads each session. */
  readonly runs?: boolean
}

/** A page of sessions. */
export type ListedPage = {
  /** The cards of this page. */
  readonly cards: readonly ListedCard[]
  /** The `cursor` of the next page. Null when nothing follows. */
  readonly next: string | null
}

const CARDS = 50

const checkList = optionsChecker<ListOptions>('list', {
  status: oneOf<Status>({ idle: true, running: true, rescheduling: true, requires_action: true, terminated: true }),
  root: textCheck,
  parent: textCheck,
  folder: textCheck,
  where: labelsCheck,
  waiting: flagCheck,
  active: flagCheck,
  context: flagCheck,
  runs: flagCheck,
  agent: textCheck,
  owner: textCheck,
  q: (value, name, of) => textCheck(value, name, of) ?? whySearchRefused(String(value)),
  outcome: listCheck(oneOf(CARD_OUTCOMES)),
  since: countCheck(),
  until: countCheck(),
  order: oneOf<'newest' | 'made' | 'id'>({ newest: true, made: true, id: true }),
  cursor: textCheck,
  limit: countCheck(1, 500),
})

export async function listSessions(services: Services, options: ListOptions): Promise<ListedPage> {
  checkList(options)
  const { context = false, runs = false, active = false, ...filter } = options
  if (active) return listActive(services, filter, context)
  const byId = filter.order === 'id' || filter.root !== undefined || filter.waiting === true
  const { cards, next } = byId ? await readPageById(services, filter) : await readPage(services, filter)
  const listed = await addCardDetails(services, await withTreeCost(services.store, cards), { context, runs })
  return { cards: listed, next }
}

type ListFilter = Omit<ListOptions, 'context' | 'runs' | 'active'>
type CardsRead = { readonly cards: readonly Card[]; readonly next: string | null }

async function listActive(services: Services, filter: ListFilter, context: boolean): Promise<ListedPage> {
  const { root, parent, ...others } = filter
  const other = Object.entries(others).find(([, value]) => value !== undefined)
  if (other)
    throw new Fault(
      'invalid_input',
      `A list of active sessions goes with root and parent alone: leave out "${other[0]}".`,
    )
  const cards = await listActiveRuns(services.store, { ...(root ? { root } : {}), ...(parent ? { parent } : {}) })
  return { cards: context ? await addContextFill(services, cards) : cards, next: null }
}

/** The cursor is the last id. Children are among the sessions, and lanes of consumers are not. */
async function readPageById({ store }: Services, filter: ListFilter): Promise<CardsRead> {
  const { order = 'id', cursor: after, limit = CARDS, agent, owner, q, outcome, since, until, ...wanted } = filter
  const searches = [agent, owner, q, outcome, since, until].some((each) => each !== undefined)
  if (order !== 'id' || searches)
    throw new Fault(
      'invalid_input',
      'A search, an agent, an owner, an outcome and times go with the order newest or made, and these not with root or waiting.',
    )
  const cards: Card[] = []
  for (let from = after; ; ) {
    const page = await store.list({ ...wanted, ...(from === undefined ? {} : { after: from }), limit })
    for (const card of page) {
      if (cards.length === limit) break
      if (!isLaneAgent(card.agent) || wanted.root === card.root) cards.push(card)
    }
    const isFull = cards.length === limit
    if (isFull || page.length < limit) return { cards, next: isFull ? (cards.at(-1)?.session ?? null) : null }
    from = page.at(-1)?.session
  }
}

async function readPage({ store }: Services, options: ListFilter): Promise<CardsRead> {
  const { cursor, limit = CARDS, order = 'newest', root: _root, waiting: _waiting, ...filter } = options
  const query = { ...filter, order: order === 'made' ? 'made' : 'newest' } as const
  const key = queryKey(query)
  const behind = cursor === undefined ? {} : { behind: decodeCursor(cursor, key) }
  const { cards, next } = await store.page({ ...query, limit, ...behind })
  return { cards, next: next && encodeCursor(key, next) }
}

const VERSION = 1

function queryKey(query: Omit<CardQuery, 'limit' | 'behind'>): string {
  return hash('sha256', canonicalJson(query)).slice(0, 16)
}

function encodeCursor(key: string, { at, n }: CardPlace): string {
  return Buffer.from(JSON.stringify([VERSION, key, at, n])).toString('base64url')
}

function decodeCursor(cursor: string, key: string): CardPlace {
  const [version, of, at, n] = cursorParts(cursor)
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

function cursorParts(cursor: string): readonly unknown[] {
  if (cursor.length > CURSOR_CHARS_MAX) return []
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}
