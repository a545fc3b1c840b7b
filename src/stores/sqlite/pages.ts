// Pages of cards: which sessions they hold, found by an index and never by reading all sessions at once. Sessions are walked in order,
// and those that do not pass are left out. If the first of them do not fill the page, a filter that few sessions pass is looked up, and
// these are put in order. If there is no such filter, the walk goes on. All of it goes in pieces.
import type { Card, CardPage, CardQuery, CardPlace } from '../../ports/store.ts'
import { folded, wordsOf } from '../plan/facts.ts'
import { firstPlace } from '../plan/query.ts'
import type { SqlValue } from './driver.ts'
import { readCards } from './read.ts'
import type { Statements } from './schema.ts'

/** Up to so many sessions are put in order at once; so many are walked in one piece. A few milliseconds' worth. */
const FEW = 1_000
/** So many are walked before anything is looked up. */
const FIRST = 300
/** So many rows of the table of texts are searched in one piece: they are short. */
const TEXTS = 10_000

/** Of a page, one part in so many was found in the first piece: many pass. */
const MANY = 10

/** Runs a piece of reading when the file is free. */
type Reader = <T>(act: (sql: Statements) => T) => Promise<T>
type Part = { readonly sql: string; readonly values: readonly SqlValue[] }
type Found = { readonly n: number; readonly at: number }

export async function readPage(read: Reader, query: CardQuery): Promise<CardPage> {
  const { limit } = query
  const behind = firstPlace(query)
  const words = wordsOf(query.q ?? '')
  const found = await foundFor(read, query, words, behind)
  const shown = found.slice(0, limit)
  const cards: Card[] = []
  for (let i = 0; i < shown.length; i += FEW) {
    if (i > 0) await breathe()
    const piece = shown.slice(i, i + FEW).map(({ n }) => n)
    for (const card of await read((sql) => readCards(sql, piece))) cards.push(card)
  }
  const last = shown.at(-1)
  return { cards, next: found.length > limit ? (last ? { at: last.at, n: last.n } : behind) : null }
}

/** One more than is wanted tells whether anything follows. */
async function foundFor(
  read: Reader,
  query: CardQuery,
  words: readonly string[],
  behind: CardPlace,
): Promise<readonly Found[]> {
  const { order, since = Number.NEGATIVE_INFINITY } = query
  const walk = { ...walkSql(query, words), order, since, wanted: query.limit + 1 }
  const first = await walked(read, walk, { found: [], rest: behind }, FIRST)
  if (first.rest === null) return first.found
  // Where many pass, the walk is soon at its end.
  const many = first.found.length * MANY >= query.limit
  const few = many ? null : await fewOf(read, query, words)
  if (few) return read((sql) => inOrder(sql, few, query, words))
  let so = first
  while (so.rest !== null) {
    await breathe()
    so = await walked(read, walk, so, FEW)
  }
  return so.found
}

/** The sessions of the filter that the fewest pass, or null if each is passed by many. */
async function fewOf(read: Reader, query: CardQuery, words: readonly string[]): Promise<Part | null> {
  const counts = await read((sql) => seedsOf(query).map((seed) => ({ seed, count: countUpTo(sql, seed, FEW + 1) })))
  const [fewest] = counts.sort((a, b) => a.count - b.count)
  if (fewest && fewest.count <= FEW) return fewest.seed
  // The text of a session has its agent in a line of its own.
  const lines = query.agent === undefined ? [] : [`\n${folded(query.agent)}\n`]
  return words.length + lines.length === 0 ? null : searched(read, [...lines, ...words])
}

/** What an index can look up, each by itself. */
export function seedsOf({ parent, folder, owner, status, where = {} }: CardQuery): readonly Part[] {
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
  return [...seeds, ...labels]
}

function countUpTo(sql: Statements, { sql: seed, values }: Part, most: number): number {
  const row = sql.prepared(`SELECT count(*) AS count FROM (${seed} LIMIT ?)`).get(...values, most)
  return (row as { count: number }).count
}

/** The sessions in whose texts all words are, or null if these are many. The first rows are the oldest sessions. */
async function searched(read: Reader, words: readonly string[]): Promise<Part | null> {
  const found: number[] = []
  const last = await read((sql) => (sql.lastFind.get() as { n: number }).n)
  const passes = textParts(words)
  const text = `SELECT f.n FROM finds f WHERE f.n > ? AND f.n <= ? AND ${passes.map(({ sql }) => sql).join(' AND ')} LIMIT ?`
  const values = passes.flatMap((part) => part.values)
  for (let from = 0; from < last; from += TEXTS) {
    const room = FEW + 1 - found.length
    const rows = await read((sql) => sql.prepared(text).all(from, from + TEXTS, ...values, room))
    for (const { n } of rows as Found[]) found.push(n)
    if (found.length > FEW) return null
    await breathe()
  }
  return { sql: 'SELECT value AS n FROM json_each(?)', values: [JSON.stringify(found)] }
}

/** `GLOB` takes the texts as they are: they are folded already. */
function textParts(words: readonly string[]): readonly Part[] {
  // First what is likely to be in the fewest of them: numbers, then long words.
  const sorted = words.toSorted((a, b) => Number(/\d/.test(b)) - Number(/\d/.test(a)) || b.length - a.length)
  return sorted.map((word) => ({ sql: 'f.text GLOB ?', values: [`*${word.replace(/[*?[]/g, '[$&]')}*`] }))
}

/** All that a session must pass. */
function conditionsOf(query: CardQuery, words: readonly string[]): readonly Part[] {
  const { parent, folder, owner, agent, status, where = {} } = query
  const is = (column: string, value: string | undefined): readonly Part[] =>
    value === undefined ? [] : [{ sql: `s.${column} = ?`, values: [value] }]
  const labels = Object.entries(where).map((label) => ({
    sql: 'EXISTS (SELECT 1 FROM labels l WHERE l.name = ? AND l.value = ? AND l.session = s.n)',
    values: label,
  }))
  const root = parent === undefined ? [{ sql: 's.root = s.id', values: [] }] : is('parent', parent)
  const columns = [...is('folder', folder), ...is('owner', owner), ...is('agent', agent), ...is('status', status)]
  return [...root, ...columns, ...timeParts(query), ...labels, ...outcomeParts(query), ...textParts(words)]
}

function timeParts({ since, until }: CardQuery): readonly Part[] {
  const first = since === undefined ? [] : [{ sql: 'h.at >= ?', values: [since] }]
  return until === undefined ? first : [...first, { sql: 'h.at < ?', values: [until] }]
}

/** A damaged card has no JSON that could be read: its session passes no filter of outcomes. */
function outcomeParts({ outcome }: CardQuery): readonly Part[] {
  if (outcome === undefined) return []
  const field = (name: string): string => `CASE WHEN json_valid(s.card) THEN json_extract(s.card, '$.${name}') END`
  const either = [`${field('outcome')} IN (SELECT value FROM json_each(?))`]
  if (outcome.includes('unknown')) either.push(`${field('unknown')} IS NOT NULL`)
  if (outcome.includes('quarantined')) either.push(QUARANTINED)
  return [{ sql: `(${either.join(' OR ')})`, values: [JSON.stringify(outcome)] }]
}
const QUARANTINED = `CASE WHEN json_valid(s.trouble) THEN json_type(s.trouble, '$.until') = 'null' END`

/** Of these, those behind the place that pass everything, in order. */
function inOrder(sql: Statements, few: Part, query: CardQuery, words: readonly string[]): readonly Found[] {
  const { text, values } = orderedSql(few, query, words)
  const { at, n } = firstPlace(query)
  const place = query.order === 'made' ? [n] : [at, n]
  return sql.prepared(text).all(...values, ...place, query.limit + 1) as Found[]
}

export function orderedSql(few: Part, query: CardQuery, words: readonly string[]) {
  const conditions = conditionsOf(query, words)
  const made = query.order === 'made'
  const text = `SELECT h.n, h.at FROM (${few.sql}) c CROSS JOIN sessions s ON s.n = c.n CROSS JOIN heads h ON h.n = s.n${finds(words)}
    WHERE ${conditions.map((part) => part.sql).join(' AND ')} AND ${made ? 'h.n < ?' : '(h.at, h.n) < (?, ?)'}
    ORDER BY ${made ? 'h.n DESC' : 'h.at DESC, h.n DESC'} LIMIT ?`
  return { text, values: [...few.values, ...conditions.flatMap((part) => part.values)] }
}

function finds(words: readonly string[]): string {
  return words.length === 0 ? '' : ' CROSS JOIN finds f ON f.n = s.n'
}

/** `rest`: where the walk goes on; null if there are enough, or no more. */
type Way = { readonly found: readonly Found[]; readonly rest: CardPlace | null }
type Walk = ReturnType<typeof walkSql> & Pick<CardQuery, 'order'> & { readonly since: number; readonly wanted: number }

/** One piece further. */
async function walked(read: Reader, walk: Walk, { found, rest }: Way, piece: number): Promise<Way> {
  if (rest === null) return { found, rest }
  const place = walk.order === 'made' ? [rest.n] : [rest.at, rest.n]
  return read((sql) => {
    const rows = sql.prepared(walk.text).all(...place, piece, ...walk.values, walk.wanted - found.length)
    const all = [...found, ...(rows as Found[])]
    const end = all.length >= walk.wanted ? undefined : sql.prepared(walk.end).get(...place, piece - 1)
    const rest = (end as Found | undefined) ?? null
    const isBeforeAll = rest !== null && walk.order === 'newest' && rest.at < walk.since
    return { found: all, rest: isBeforeAll ? null : rest }
  })
}

/** `end` is where the piece ends; nothing if the sessions end before. */
export function walkSql(query: CardQuery, words: readonly string[]) {
  const conditions = conditionsOf(query, words)
  const made = query.order === 'made'
  const order = (of: string) => (made ? `${of}n DESC` : `${of}at DESC, ${of}n DESC`)
  const piece = `SELECT n, at FROM heads WHERE ${made ? 'n < ?' : '(at, n) < (?, ?)'} ORDER BY ${order('')}`
  const text = `SELECT h.n, h.at FROM (${piece} LIMIT ?) h CROSS JOIN sessions s ON s.n = h.n${finds(words)}
    WHERE ${conditions.map((part) => part.sql).join(' AND ')} ORDER BY ${order('h.')} LIMIT ?`
  return { text, end: `${piece} LIMIT 1 OFFSET ?`, values: conditions.flatMap((part) => part.values) }
}

/** Others get their turn between two pieces. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
