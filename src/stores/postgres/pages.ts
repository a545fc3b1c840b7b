// Pages of cards: which sessions they hold. Sessions are walked in order, and those that do not pass are left out. If the first of them do
// not fill the page, a filter that few sessions pass is looked up, and these are put in order. If there is none, the walk goes on.
// All of it goes in pieces, each a statement of its own: others that read are served between them.
import type { Card, CardOutcome, CardPage, CardPlace, CardQuery } from '../../ports/store.ts'
import { folded, wordsOf } from '../plan/facts.ts'
import { firstPlace } from '../plan/query.ts'
import { labelled, readCards } from './read.ts'
import { hourOf } from './rows.ts'
import type { Sql, SqlValue } from './sql.ts'

/** Up to so many sessions are put in order at once; so many are walked in one piece. */
const FEW = 1_000
/** So many are walked before anything is looked up. */
const FIRST = 300
/** So many texts are searched in one piece: they are short. */
const TEXTS = 10_000
/** Of a page, one part in so many was found in the first piece: many pass. */
const MANY = 10

type Found = { readonly n: number; readonly at: number }

export async function readPage(sql: Sql, query: CardQuery): Promise<CardPage> {
  const behind = firstPlace(query)
  const { limit, parent, folder, owner, agent, where = {}, q = '' } = query
  const texts = [parent, folder, owner, agent, q, ...Object.entries(where).flat()]
  // No row has a text with NUL.
  if (texts.some((text) => text?.includes('\0'))) return { cards: [], next: null }
  const found = await foundFor(sql, query, wordsOf(q), behind)
  const shown = found.slice(0, limit)
  const cards: Card[] = []
  for (let i = 0; i < shown.length; i += FEW)
    for (const card of await readCards(
      sql,
      shown.slice(i, i + FEW).map(({ n }) => n),
    ))
      cards.push(card)
  const last = shown.at(-1)
  return { cards, next: found.length > limit ? (last ? { at: last.at, n: last.n } : behind) : null }
}

/** One more than is wanted tells whether anything follows. */
async function foundFor(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  behind: CardPlace,
): Promise<readonly Found[]> {
  const first = await walked(sql, query, words, { found: [], rest: behind }, FIRST)
  if (first.rest === null) return first.found
  // Where many pass, the walk is soon at its end.
  const few = first.found.length * MANY >= query.limit ? null : await fewOf(sql, query, words)
  if (few) return inOrder(sql, query, words, few)
  let so: Way = first
  while (so.rest !== null) so = await walked(sql, query, words, so, FEW)
  return so.found
}

/** The sessions of the filter that the fewest pass, or null if each is passed by many. */
async function fewOf(sql: Sql, query: CardQuery, words: readonly string[]): Promise<readonly number[] | null> {
  for (const [name, text, values] of seedsOf(query)) {
    const rows = await sql.ask<{ n: number }>(`page few ${name}`, text, [...values, FEW + 1])
    if (rows.length <= FEW) return rows.map(({ n }) => n)
  }
  // The text of a session has its agent in a line of its own.
  const lines = query.agent === undefined ? [] : [`\n${folded(query.agent)}\n`]
  return words.length + lines.length === 0 ? null : searched(sql, [...lines, ...words])
}

type Seed = readonly [name: string, text: string, values: readonly SqlValue[]]

/** What an index can look up, each by itself: first what is likely to be rare. */
function seedsOf({ parent, folder, owner, status, where = {} }: CardQuery): readonly Seed[] {
  const columns = Object.entries({ parent, owner, folder, status }).filter(([, value]) => value !== undefined)
  const labels = Object.entries(where).map(
    (label): Seed => ['label', 'select n::float8 as n from ~labels where name = $1 and value = $2 limit $3', label],
  )
  return [
    ...columns.map(
      ([name, value = null]): Seed => [
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

/** The sessions in whose texts all words are, or null if these are many. */
async function searched(sql: Sql, words: readonly string[]): Promise<readonly number[] | null> {
  const found: number[] = []
  const [last] = await sql.ask<{ n: number }>('page last', 'select coalesce(max(n), 0)::float8 as n from ~finds')
  for (let from = 0; from < (last?.n ?? 0); from += TEXTS) {
    for (const { n } of await sql.ask<Found>('page text', TEXT_PIECE, [from, words])) found.push(n)
    if (found.length > FEW) return null
  }
  return found
}

/** All that a session must pass. The texts are short: each word is looked for. */
function conditionsOf(query: CardQuery, words: readonly string[], values: SqlValue[]): readonly string[] {
  const { parent, folder, owner, agent, status, where = {} } = query
  const columns = Object.entries({ parent, folder, owner, agent, status }).flatMap(([name, value]) =>
    value === undefined ? [] : [`s.${name} = $${values.push(value)}`],
  )
  const labels = Object.entries(where)
  if (labels.length > 0) columns.push(labelled(labels, values))
  if (query.since !== undefined) columns.push(`s.at >= $${values.push(query.since)}::float8`)
  if (query.until !== undefined) columns.push(`s.at < $${values.push(query.until)}::float8`)
  if (query.outcome !== undefined) columns.push(outcomeSql(query.outcome, values))
  if (words.length > 0)
    columns.push(`not exists (select 1 from ~finds f, unnest($${values.push(words)}::text[]) w(word)
      where f.n = s.n and strpos(f.text, w.word) = 0)`)
  return [parent === undefined ? 's.root = s.id' : 'true', ...columns]
}

/**
 * Read as text, as a damaged card is no JSON and a cast of it would fail the whole page. Quotes within a text are escaped, so that a name
 * with its quotes stands for a field; labels are taken out first, as they have names of their own.
 */
function outcomeSql(outcome: readonly CardOutcome[], values: SqlValue[]): string {
  const patterns = outcome.map((each) => (each === 'unknown' ? '%"unknown":%' : `%"outcome":"${each}"%`))
  const bare = `regexp_replace(s.card, '"labels":[{]("([^"\\\\]|\\\\.)*"[:,]?)*[}]', '')`
  const given = `${bare} like any ($${values.push(patterns)}::text[])`
  return `(${given} or ($${values.push(outcome)}::text[] @> '{quarantined}' and coalesce(s.trouble, '') like '%"until":null%'))`
}

/** Names a text by what its query has. */
function nameOf(kind: string, query: CardQuery, words: readonly string[]): string {
  const { limit: _limit, behind: _behind, q: _q, where = {}, order, ...columns } = query
  const given = Object.entries(columns).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  return `${kind} ${order} ${given.sort().join()}${Object.keys(where).length > 0 ? ' labels' : ''}${words.length > 0 ? ' words' : ''}`
}

const orderOf = (made: boolean, of: string): string => (made ? `${of}.n desc` : `${of}.at desc, ${of}.n desc`)

/** Of these, those behind the place that pass everything, in order. */
async function inOrder(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  few: readonly number[],
): Promise<readonly Found[]> {
  const made = query.order === 'made'
  const { at, n } = firstPlace(query)
  const values: SqlValue[] = [few, at, n, query.limit + 1]
  const conditions = conditionsOf(query, words, values)
  const text = `select s.n::float8 as n, s.at from ~sessions s where s.n = any($1::bigint[])
    and ${made ? 's.n < $3::bigint and $2::float8 is not null' : '(s.at, s.n) < ($2::float8, $3::bigint)'}
    and ${conditions.join(' and ')} order by ${orderOf(made, 's')} limit $4`
  return sql.ask<Found>(nameOf('few', query, words), text, values)
}

/** `rest`: where the walk goes on; null if there are enough, or no more. */
type Way = { readonly found: readonly Found[]; readonly rest: CardPlace | null }

/** One piece further. The rows of an hour lie together in an index, and are put in order when they are met. */
async function walked(
  sql: Sql,
  query: CardQuery,
  words: readonly string[],
  { found, rest }: Way,
  size: number,
): Promise<Way> {
  if (rest === null) return { found, rest }
  const made = query.order === 'made'
  const wanted = query.limit + 1 - found.length
  const values: SqlValue[] = [rest.at, rest.n, hourOf(rest.at), size, wanted]
  const conditions = conditionsOf(query, words, values)
  const [place, order] = made
    ? ['n < $2::bigint and $1::float8 is not null and $3::bigint is not null', 'n desc']
    : ['hour <= $3::bigint and (at, n) < ($1::float8, $2::bigint)', 'hour desc, at desc, n desc']
  const text = `with piece as materialized (select * from ~sessions where ${place} order by ${order} limit $4)
    select s.n::float8 as n, s.at, e.n::float8 as end_n, e.at as end_at, e.count::int from
      (select (array_agg(n order by ${orderOf(made, 'piece')}))[count(*)::int] as n,
        (array_agg(at order by ${orderOf(made, 'piece')}))[count(*)::int] as at, count(*) from piece) e
      left join lateral (select s.n, s.at from piece s where ${conditions.join(' and ')} order by ${orderOf(made, 's')} limit $5) s on true
    order by ${orderOf(made, 's')}`
  type Walked = { n: number | null; at: number; end_n: number; end_at: number; count: number }
  const rows = await sql.ask<Walked>(nameOf('walk', query, words), text, values)
  const passed = rows.flatMap(({ n, at }) => (n === null ? [] : [{ n, at }]))
  const all = [...found, ...passed]
  const [end] = rows
  const isBeforeAll = !made && query.since !== undefined && end !== undefined && end.end_at < query.since
  const isEnd = end === undefined || end.count < size || all.length > query.limit || isBeforeAll
  return { found: all, rest: isEnd ? null : { at: end.end_at, n: end.end_n } }
}
