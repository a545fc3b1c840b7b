// Finds the sessions of a page of cards. It walks sessions in order and leaves out those that do not pass. If the first
// ones do not fill the page, it looks up a filter that few sessions pass and sorts these; without such a filter the
// walk goes on. Everything runs in pieces, each a statement, so that other readers are served in between.
import type { Card, CardOutcome, CardPage, CardPlace, CardQuery } from '../../ports/store.ts'
import { foldCase, searchWords } from '../plan/log-facts.ts'
import { firstPlace } from '../plan/card-query.ts'
import { isLaneAgent, LANE_AGENTS, LANE_IDS } from '../../view/lanes.ts'
import { hasLabelsSql, queryCards } from './database-queries.ts'
import { hourOf } from './postgres-rows.ts'
import type { Sql, PostgresValue } from './sql.ts'

/** How many sessions are sorted at once at most, and how many are walked in one piece. */
const FEW = 1_000
/** How many sessions are walked before anything is looked up. */
const FIRST = 300
/** How many texts are searched in one piece; they are short. */
const TEXTS = 10_000
/** If the first piece finds one in this many of a page, many sessions pass. */
const MANY = 10

type FoundSession = { readonly n: number; readonly at: number }

export async function queryCardPage(sql: Sql, query: CardQuery): Promise<CardPage> {
  const behind = firstPlace(query)
  const { limit, parent, folder, owner, agent, where = {}, q = '' } = query
  const texts = [parent, folder, owner, agent, q, ...Object.entries(where).flat()]
  // No row contains a NUL.
  if (texts.some((text) => text?.includes('\0'))) return { cards: [], next: null }
  const found = await findForPage(sql, query, searchWords(q), behind)
  const shown = found.slice(0, limit)
  const cards: Card[] = []
  for (let i = 0; i < shown.length; i += FEW)
    for (const card of await queryCards(
      sql,
      shown.slice(i, i + FEW).map(({ n }) => n),
    ))
      cards.push(card)
  const last = shown.at(-1)
  return { cards, next: found.length > limit ? (last ? { at: last.at, n: last.n } : behind) : null }
}

/** One more than needed shows whether anything follows. */
async function findForPage(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  behind: CardPlace,
): Promise<readonly FoundSession[]> {
  const first = await walkPiece(sql, query, words, { found: [], rest: behind }, FIRST)
  if (first.rest === null) return first.found
  // If many pass, the walk ends soon.
  const few = first.found.length * MANY >= query.limit ? null : await findFew(sql, query, words)
  if (few) return sortFew(sql, query, words, few)
  let so: WalkState = first
  while (so.rest !== null) so = await walkPiece(sql, query, words, so, FEW)
  return so.found
}

/** The sessions that pass the most selective filter, or null if each filter passes many. */
async function findFew(sql: Sql, query: CardQuery, words: readonly string[]): Promise<readonly number[] | null> {
  for (const [name, text, values] of seedQueries(query)) {
    const rows = await sql.ask<{ n: number }>(`page few ${name}`, text, [...values, FEW + 1])
    if (rows.length <= FEW) return rows.map(({ n }) => n)
  }
  // The text of a session has its agent on its own line.
  const lines = query.agent === undefined || query.agent === LANE_AGENTS ? [] : [`\n${foldCase(query.agent)}\n`]
  return words.length + lines.length === 0 ? null : searchTexts(sql, [...lines, ...words])
}

type SeedQuery = readonly [name: string, text: string, values: readonly PostgresValue[]]

/** The filters that an index can look up, the likely rarest first. */
function seedQueries({ parent, folder, owner, agent, status, where = {} }: CardQuery): readonly SeedQuery[] {
  const columns = Object.entries({ parent, owner, folder, status }).filter(([, value]) => value !== undefined)
  const labels = Object.entries(where).map(
    (label): SeedQuery => [
      'label',
      'select n::float8 as n from ~labels where name = $1 and value = $2 limit $3',
      label,
    ],
  )
  const lanes = 'select n::float8 as n from ~sessions where id > $1 and id < $2 limit $3'
  return [
    ...(agent !== undefined && isLaneAgent(agent) ? [['lanes', lanes, LANE_IDS] as const] : []),
    ...columns.map(
      ([name, value = null]): SeedQuery => [
        name,
        `select n::float8 as n from ~sessions where ${name} = $1 limit $2`,
        [value],
      ],
    ),
    ...labels,
  ]
}

const TEXT_PIECE = `select f.n::float8 as n from ~finds f where f.n > $1::bigint and f.n <= $1::bigint + ${TEXTS}
  and not exists (select 1 from unnest($2::text[]) w(word) where strpos(f.text, w.word) = 0) limit ${FEW + 1}`

/** The sessions whose texts contain all words, or null if these are many. */
async function searchTexts(sql: Sql, words: readonly string[]): Promise<readonly number[] | null> {
  const found: number[] = []
  const [last] = await sql.ask<{ n: number }>('page last', 'select coalesce(max(n), 0)::float8 as n from ~finds')
  for (let from = 0; from < (last?.n ?? 0); from += TEXTS) {
    for (const { n } of await sql.ask<FoundSession>('page text', TEXT_PIECE, [from, words])) found.push(n)
    if (found.length > FEW) return null
  }
  return found
}

/** All conditions on a session. Texts are short, so each word is searched in them. */
function conditionsOf(query: CardQuery, words: readonly string[], values: PostgresValue[]): readonly string[] {
  const { parent, children, folder, owner, agent, status, where = {} } = query
  const ofLanes = agent === LANE_AGENTS
  const named = ofLanes ? undefined : agent
  const columns = Object.entries({ parent, folder, owner, agent: named, status }).flatMap(([name, value]) =>
    value === undefined ? [] : [`s.${name} = $${values.push(value)}`],
  )
  if (named === undefined) columns.push(`${ofLanes ? '' : 'not '}starts_with(coalesce(s.agent, ''), '${LANE_AGENTS}')`)
  const labels = Object.entries(where)
  if (labels.length > 0) columns.push(hasLabelsSql(labels, values))
  if (query.since !== undefined) columns.push(`s.at >= $${values.push(query.since)}::float8`)
  if (query.until !== undefined) columns.push(`s.at < $${values.push(query.until)}::float8`)
  if (query.outcome !== undefined) columns.push(outcomeSql(query.outcome, values))
  if (words.length > 0)
    columns.push(`not exists (select 1 from ~finds f, unnest($${values.push(words)}::text[]) w(word)
      where f.n = s.n and strpos(f.text, w.word) = 0)`)
  return [parent === undefined && !children ? 's.root = s.id' : 'true', ...columns]
}

/**
 * The card is read as text, because a damaged card is not JSON and a cast would fail the whole page. Quotes inside
 * strings are escaped, so a quoted name can only be a field. Labels are removed first, as they have names of their own.
 */
function outcomeSql(outcome: readonly CardOutcome[], values: PostgresValue[]): string {
  const patterns = outcome.map((each) => (each === 'unknown' ? '%"unknown":%' : `%"outcome":"${each}"%`))
  const bare = `regexp_replace(s.card, '"labels":[{]("([^"\\\\]|\\\\.)*"[:,]?)*[}]', '')`
  const given = `${bare} like any ($${values.push(patterns)}::text[])`
  return `(${given} or ($${values.push(outcome)}::text[] @> '{quarantined}' and coalesce(s.trouble, '') like '%"until":null%'))`
}

/** The name of the prepared statement, by the parts of its query. */
function statementName(kind: string, query: CardQuery, words: readonly string[]): string {
  const { limit: _limit, behind: _behind, q: _q, where = {}, order, ...columns } = query
  const given = Object.entries(columns).flatMap(([name, value]) => {
    if (value === undefined) return []
    return value === LANE_AGENTS ? [`${name} of lanes`] : [name]
  })
  return `${kind} ${order} ${given.sort().join()}${Object.keys(where).length > 0 ? ' labels' : ''}${words.length > 0 ? ' words' : ''}`
}

const orderSql = (made: boolean, of: string): string => (made ? `${of}.n desc` : `${of}.at desc, ${of}.n desc`)

/** Sorts those of these sessions that pass everything and come after the page's start. */
async function sortFew(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  few: readonly number[],
): Promise<readonly FoundSession[]> {
  const made = query.order === 'made'
  const { at, n } = firstPlace(query)
  const values: PostgresValue[] = [few, at, n, query.limit + 1]
  const conditions = conditionsOf(query, words, values)
  const text = `select s.n::float8 as n, s.at from ~sessions s where s.n = any($1::bigint[])
    and ${made ? 's.n < $3::bigint and $2::float8 is not null' : '(s.at, s.n) < ($2::float8, $3::bigint)'}
    and ${conditions.join(' and ')} order by ${orderSql(made, 's')} limit $4`
  return sql.ask<FoundSession>(statementName('few', query, words), text, values)
}

/** `rest` is where the walk continues; null if there are enough, or no more. */
type WalkState = { readonly found: readonly FoundSession[]; readonly rest: CardPlace | null }

/** Walks one piece further. The rows of one hour lie together in an index, and are sorted when they are reached. */
async function walkPiece(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  { found, rest }: WalkState,
  size: number,
): Promise<WalkState> {
  if (rest === null) return { found, rest }
  const made = query.order === 'made'
  const wanted = query.limit + 1 - found.length
  const values: PostgresValue[] = [rest.at, rest.n, hourOf(rest.at), size, wanted]
  const conditions = conditionsOf(query, words, values)
  const [place, order] = made
    ? ['n < $2::bigint and $1::float8 is not null and $3::bigint is not null', 'n desc']
    : ['hour <= $3::bigint and (at, n) < ($1::float8, $2::bigint)', 'hour desc, at desc, n desc']
  const text = `with piece as materialized (select * from ~sessions where ${place} order by ${order} limit $4)
    select s.n::float8 as n, s.at, e.n::float8 as end_n, e.at as end_at, e.count::int from
      (select (array_agg(n order by ${orderSql(made, 'piece')}))[count(*)::int] as n,
        (array_agg(at order by ${orderSql(made, 'piece')}))[count(*)::int] as at, count(*) from piece) e
      left join lateral (select s.n, s.at from piece s where ${conditions.join(' and ')} order by ${orderSql(made, 's')} limit $5) s on true
    order by ${orderSql(made, 's')}`
  type Walked = { n: number | null; at: number; end_n: number; end_at: number; count: number }
  const rows = await sql.ask<Walked>(statementName('walk', query, words), text, values)
  const passed = rows.flatMap(({ n, at }) => (n === null ? [] : [{ n, at }]))
  const all = [...found, ...passed]
  const [end] = rows
  const isBeforeAll = !made && query.since !== undefined && end !== undefined && end.end_at < query.since
  const isEnd = end === undefined || end.count < size || all.length > query.limit || isBeforeAll
  return { found: all, rest: isEnd ? null : { at: end.end_at, n: end.end_n } }
}
