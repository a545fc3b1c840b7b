// Finds the sessions of a page of cards by an index, never by reading all sessions at once. It walks sessions in order
// and leaves out those that do not pass. If the first ones do not fill the page, it looks up a filter that few sessions
// pass and sorts these; without such a filter the walk goes on. Everything runs in pieces.
import type { Card, CardPage, CardQuery, CardPlace } from '../../ports/store.ts'
import { foldCase, searchWords } from '../plan/log-facts.ts'
import { firstPlace } from '../plan/card-query.ts'
import { isLaneAgent, LANE_AGENTS, LANE_IDS } from '../../view/lanes.ts'
import type { SqliteValue } from './driver.ts'
import { readCards } from './read-store.ts'
import type { SqliteStatements } from './sqlite-schema.ts'

/** How many sessions are sorted at once at most, and how many are walked in one piece: a few milliseconds of work. */
const FEW = 1_000
/** How many sessions are walked before anything is looked up. */
const FIRST = 300
/** How many rows of the table of texts are searched in one piece; they are short. */
const TEXTS = 10_000

/** If the first piece finds one in this many of a page, many sessions pass. */
const MANY = 10

/** Runs a piece of reading when the file is free. */
type RunRead = <T>(act: (sql: SqliteStatements) => T) => Promise<T>
type SqlPart = { readonly sql: string; readonly values: readonly SqliteValue[] }
type FoundSession = { readonly n: number; readonly at: number }

export async function readStoredPage(read: RunRead, query: CardQuery): Promise<CardPage> {
  const { limit } = query
  const behind = firstPlace(query)
  const words = searchWords(query.q ?? '')
  const found = await findForPage(read, query, words, behind)
  const shown = found.slice(0, limit)
  const cards: Card[] = []
  for (let i = 0; i < shown.length; i += FEW) {
    if (i > 0) await yieldToOthers()
    const piece = shown.slice(i, i + FEW).map(({ n }) => n)
    for (const card of await read((sql) => readCards(sql, piece))) cards.push(card)
  }
  const last = shown.at(-1)
  return { cards, next: found.length > limit ? (last ? { at: last.at, n: last.n } : behind) : null }
}

/** One more than needed shows whether anything follows. */
async function findForPage(
  read: RunRead,
  query: CardQuery,
  words: readonly string[],
  behind: CardPlace,
): Promise<readonly FoundSession[]> {
  const { order, since = Number.NEGATIVE_INFINITY } = query
  const walk = { ...walkSql(query, words), order, since, wanted: query.limit + 1 }
  const first = await walkPiece(read, walk, { found: [], rest: behind }, FIRST)
  if (first.rest === null) return first.found
  // If many pass, the walk ends soon.
  const many = first.found.length * MANY >= query.limit
  const few = many ? null : await findFew(read, query, words)
  if (few) return read((sql) => sortFew(sql, few, query, words))
  let so = first
  while (so.rest !== null) {
    await yieldToOthers()
    so = await walkPiece(read, walk, so, FEW)
  }
  return so.found
}

/** The sessions that pass the most selective filter, or null if each filter passes many. */
async function findFew(read: RunRead, query: CardQuery, words: readonly string[]): Promise<SqlPart | null> {
  const counts = await read((sql) =>
    seedParts(query).map((seed) => ({ seed, count: countRowsUpTo(sql, seed, FEW + 1) })),
  )
  const [fewest] = counts.sort((a, b) => a.count - b.count)
  if (fewest && fewest.count <= FEW) return fewest.seed
  // The text of a session has its agent on its own line.
  const lines = query.agent === undefined || query.agent === LANE_AGENTS ? [] : [`\n${foldCase(query.agent)}\n`]
  return words.length + lines.length === 0 ? null : searchTexts(read, [...lines, ...words])
}

/** The filters that an index can look up. */
export function seedParts({ parent, folder, owner, agent, status, where = {} }: CardQuery): readonly SqlPart[] {
  const columns = { parent, folder, owner, status }
  const seeds = Object.entries(columns).flatMap(([column, value]) =>
    value === undefined
      ? []
      : [{ sql: `SELECT n FROM sessions INDEXED BY sessions_${column} WHERE ${column} = ?`, values: [value] }],
  )
  const labels = Object.entries(where).map((label) => ({
    sql: 'SELECT session AS n FROM labels WHERE name = ? AND value = ?',
    values: label,
  }))
  const lanes = { sql: 'SELECT n FROM sessions WHERE id > ? AND id < ?', values: LANE_IDS }
  return [...seeds, ...labels, ...(agent !== undefined && isLaneAgent(agent) ? [lanes] : [])]
}

function countRowsUpTo(sql: SqliteStatements, { sql: seed, values }: SqlPart, most: number): number {
  const row = sql.prepared(`SELECT count(*) AS count FROM (${seed} LIMIT ?)`).get(...values, most)
  return (row as { count: number }).count
}

/** The sessions whose texts contain all words, or null if these are many. The first rows are the oldest sessions. */
async function searchTexts(read: RunRead, words: readonly string[]): Promise<SqlPart | null> {
  const found: number[] = []
  const last = await read((sql) => (sql.lastFind.get() as { n: number }).n)
  const passes = textParts(words)
  const text = `SELECT f.n FROM finds f WHERE f.n > ? AND f.n <= ? AND ${passes.map(({ sql }) => sql).join(' AND ')} LIMIT ?`
  const values = passes.flatMap((part) => part.values)
  for (let from = 0; from < last; from += TEXTS) {
    const room = FEW + 1 - found.length
    const rows = await read((sql) => sql.prepared(text).all(from, from + TEXTS, ...values, room))
    for (const { n } of rows as FoundSession[]) found.push(n)
    if (found.length > FEW) return null
    await yieldToOthers()
  }
  return { sql: 'SELECT value AS n FROM json_each(?)', values: [JSON.stringify(found)] }
}

/** `GLOB` compares the texts as they are; they are already folded. */
function textParts(words: readonly string[]): readonly SqlPart[] {
  // The words likely to be in the fewest texts come first: numbers, then long words.
  const sorted = words.toSorted((a, b) => Number(/\d/.test(b)) - Number(/\d/.test(a)) || b.length - a.length)
  return sorted.map((word) => ({ sql: 'f.text GLOB ?', values: [`*${word.replace(/[*?[]/g, '[$&]')}*`] }))
}

/** All conditions on a session. */
function conditionsOf(query: CardQuery, words: readonly string[]): readonly SqlPart[] {
  const { parent, children, folder, owner, agent, status, where = {} } = query
  const is = (column: string, value: string | undefined): readonly SqlPart[] =>
    value === undefined ? [] : [{ sql: `s.${column} = ?`, values: [value] }]
  const labels = Object.entries(where).map((label) => ({
    sql: 'EXISTS (SELECT 1 FROM labels l WHERE l.name = ? AND l.value = ? AND l.session = s.n)',
    values: label,
  }))
  const root = parent === undefined && !children ? [{ sql: 's.root = s.id', values: [] }] : is('parent', parent)
  const ofLanes = agent === LANE_AGENTS
  const not = ofLanes ? '' : 'NOT '
  const lanes =
    agent === undefined || ofLanes ? [{ sql: `coalesce(s.agent, '') ${not}GLOB '${LANE_AGENTS}*'`, values: [] }] : []
  const columns = [
    ...lanes,
    ...is('folder', folder),
    ...is('owner', owner),
    ...is('agent', ofLanes ? undefined : agent),
    ...is('status', status),
  ]
  return [...root, ...columns, ...timeParts(query), ...labels, ...outcomeParts(query), ...textParts(words)]
}

function timeParts({ since, until }: CardQuery): readonly SqlPart[] {
  const first = since === undefined ? [] : [{ sql: 'h.at >= ?', values: [since] }]
  return until === undefined ? first : [...first, { sql: 'h.at < ?', values: [until] }]
}

/** A damaged card is not valid JSON, so its session passes no filter of outcomes. */
function outcomeParts({ outcome }: CardQuery): readonly SqlPart[] {
  if (outcome === undefined) return []
  const field = (name: string): string => `CASE WHEN json_valid(s.card) THEN json_extract(s.card, '$.${name}') END`
  const either = [`${field('outcome')} IN (SELECT value FROM json_each(?))`]
  if (outcome.includes('unknown')) either.push(`${field('unknown')} IS NOT NULL`)
  if (outcome.includes('quarantined')) either.push(QUARANTINED)
  return [{ sql: `(${either.join(' OR ')})`, values: [JSON.stringify(outcome)] }]
}
const QUARANTINED = `CASE WHEN json_valid(s.trouble) THEN json_type(s.trouble, '$.until') = 'null' END`

/** Sorts those of these sessions that pass everything and come after the page's start. */
function sortFew(
  sql: SqliteStatements,
  few: SqlPart,
  query: CardQuery,
  words: readonly string[],
): readonly FoundSession[] {
  const { text, values } = orderedSql(few, query, words)
  const { at, n } = firstPlace(query)
  const place = query.order === 'made' ? [n] : [at, n]
  return sql.prepared(text).all(...values, ...place, query.limit + 1) as FoundSession[]
}

export function orderedSql(few: SqlPart, query: CardQuery, words: readonly string[]) {
  const conditions = conditionsOf(query, words)
  const made = query.order === 'made'
  const text = `SELECT h.n, h.at FROM (${few.sql}) c CROSS JOIN sessions s ON s.n = c.n CROSS JOIN heads h ON h.n = s.n${joinFindsSql(words)}
    WHERE ${conditions.map((part) => part.sql).join(' AND ')} AND ${made ? 'h.n < ?' : '(h.at, h.n) < (?, ?)'}
    ORDER BY ${made ? 'h.n DESC' : 'h.at DESC, h.n DESC'} LIMIT ?`
  return { text, values: [...few.values, ...conditions.flatMap((part) => part.values)] }
}

function joinFindsSql(words: readonly string[]): string {
  return words.length === 0 ? '' : ' CROSS JOIN finds f ON f.n = s.n'
}

/** `rest` is where the walk continues; null if there are enough, or no more. */
type WalkState = { readonly found: readonly FoundSession[]; readonly rest: CardPlace | null }
type WalkQuery = ReturnType<typeof walkSql> &
  Pick<CardQuery, 'order'> & { readonly since: number; readonly wanted: number }

/** Walks one piece further. */
async function walkPiece(
  read: RunRead,
  walk: WalkQuery,
  { found, rest }: WalkState,
  piece: number,
): Promise<WalkState> {
  if (rest === null) return { found, rest }
  const place = walk.order === 'made' ? [rest.n] : [rest.at, rest.n]
  return read((sql) => {
    const rows = sql.prepared(walk.text).all(...place, piece, ...walk.values, walk.wanted - found.length)
    const all = [...found, ...(rows as FoundSession[])]
    const end = all.length >= walk.wanted ? undefined : sql.prepared(walk.end).get(...place, piece - 1)
    const rest = (end as FoundSession | undefined) ?? null
    const isBeforeAll = rest !== null && walk.order === 'newest' && rest.at < walk.since
    return { found: all, rest: isBeforeAll ? null : rest }
  })
}

/** `end` finds the end of the piece; no row if the sessions end before. */
export function walkSql(query: CardQuery, words: readonly string[]) {
  const conditions = conditionsOf(query, words)
  const made = query.order === 'made'
  const order = (of: string) => (made ? `${of}n DESC` : `${of}at DESC, ${of}n DESC`)
  const piece = `SELECT n, at FROM heads WHERE ${made ? 'n < ?' : '(at, n) < (?, ?)'} ORDER BY ${order('')}`
  const text = `SELECT h.n, h.at FROM (${piece} LIMIT ?) h CROSS JOIN sessions s ON s.n = h.n${joinFindsSql(words)}
    WHERE ${conditions.map((part) => part.sql).join(' AND ')} ORDER BY ${order('h.')} LIMIT ?`
  return { text, end: `${piece} LIMIT 1 OFFSET ?`, values: conditions.flatMap((part) => part.values) }
}

/** Lets other work run between two pieces. */
function yieldToOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
