// Reads an SQLite store: logs, verified against their checksums in large pieces, and rows found by indexes. It writes
// nothing, and never returns an event that fails its checksum.
import type { Event } from '../../kernel/event.ts'
import type { Labels } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { AccountRow, Blob, Card, CardFilter, Holder, Page, ProcessId, StoreHealth } from '../../ports/store.ts'
import { upcast } from '../plan/upcast.ts'
import { crc32, addSum, isSound, logSeed } from '../plan/checksum.ts'
import { cardFacts } from '../plan/log-facts.ts'
import {
  CLOCK_SLACK_MS,
  isLeaseLive,
  type Lease,
  sessionMissingFault,
  type SessionTrouble,
} from '../plan/plan-writes.ts'
import { primaryCode } from './sqlite-faults.ts'
import { DAMAGED, damageOf, factsOfRow, type StoredSqliteRow } from './sqlite-rows.ts'
import type { Database, SqliteValue, Statement } from './driver.ts'
import { SCHEMA_VERSION, type SqliteStatements } from './sqlite-schema.ts'
import { countEvents, cutSpans, type LogEnd, findSpans, positionsOf, type EventSpan } from './event-spans.ts'

/** Reading row by row costs three times as much. A larger chunk gains nothing. */
const CHUNK = 512

type LogRange = { readonly after: number; readonly limit: number; readonly bytesMax?: number | undefined }

/** A log from `after` on, up to the first damage. In one transaction, because its index must not change meanwhile. */
export function readStoredLog(sql: SqliteStatements, session: string, range: LogRange): Page {
  sql.beginRead.get()
  try {
    return readRange(sql, session, range)
  } finally {
    endRead(sql)
  }
}

/** The stored bodies, read inside a writer's transaction. */
export function readBodies(sql: SqliteStatements, session: string, after: number, count: number): string[] {
  const end = sql.end.get(session) as LogEnd | undefined
  if (!end) return []
  const positions = positionsOf(findSpans(sql, end, after + 1, Math.min(end.seq, after + count)))
  return positions.map((pos) => (sql.event.get(pos) as { readonly body: string } | undefined)?.body ?? '')
}

function endRead(sql: SqliteStatements): void {
  try {
    sql.commit.get()
  } catch {
    // SQLite ends a transaction by itself after some errors, and that error is the one to report.
  }
}

function readRange(sql: SqliteStatements, session: string, { after, limit, bytesMax }: LogRange): Page {
  const end = sql.end.get(session) as (LogEnd & { sum: number | null }) | undefined
  if (!end) throw sessionMissingFault(session)
  let last = Math.min(end.seq, after + limit)
  if (after >= last) return { events: [] }
  let spans = findSpans(sql, end, after + 1, last)
  if (bytesMax !== undefined) {
    const kept = fitBytes(sql, spans, bytesMax)
    if (countEvents(kept) < countEvents(spans)) last = after + countEvents(kept)
    spans = kept
  }
  const pieces: Event[][] = []
  let seq = after
  const stop = (reason: string): Page => ({ events: joinPieces(pieces), damaged: { seq: seq + 1, reason } })
  let sum = after === 0 ? logSeed(session) : sumAfter(sql, end, after)
  if (sum === null) return stop('the event before it is missing')
  for (const piece of cutSpans(spans, CHUNK)) {
    if (piece[0]?.seq !== seq + 1) return stop(MISSING)
    const read = readPiece(sql, piece, sum)
    pieces.push(read.events)
    seq += read.events.length
    if (read.damage !== null) return stop(read.damage)
    sum = read.sum
  }
  if (seq < last) return stop(MISSING)
  if (last === end.seq && sum !== end.sum) return stop('the log does not end as its session says')
  return { events: joinPieces(pieces) }
}

/**
 * The first events of these spans that together have at most this many bytes, but at least one event. It reads no body.
 */
function fitBytes(sql: SqliteStatements, spans: readonly EventSpan[], bytesMax: number): readonly EventSpan[] {
  const kept: EventSpan[] = []
  let bytes = 0
  for (const piece of cutSpans(spans, CHUNK)) {
    const sizes = sql.sizes.all(JSON.stringify(positionsOf(piece))) as { readonly bytes: number }[]
    let fit = 0
    for (; fit < sizes.length; fit++) {
      bytes += sizes[fit]?.bytes ?? 0
      if (bytes > bytesMax && (fit > 0 || kept.length > 0)) break
    }
    // A missing event is found when it is read.
    if (sizes.length < countEvents(piece)) return spans
    if (fit === sizes.length) kept.push(...piece)
    else return [...kept, ...([...cutSpans(piece, fit)][0] ?? [])]
  }
  return kept
}

/** A page is often one piece; then nothing is copied. */
function joinPieces(pieces: readonly Event[][]): readonly Event[] {
  return pieces.length === 1 ? (pieces[0] ?? []) : ([] as Event[]).concat(...pieces)
}

type CheckedPiece = { readonly events: Event[]; readonly sum: number; readonly damage: string | null }

const MISSING = 'the event is missing'

/** Checked and parsed as one text; one by one only to find the damage. */
function readPiece(sql: SqliteStatements, piece: readonly EventSpan[], before: number): CheckedPiece {
  try {
    const text = readText(sql, piece)
    const sum = sumAt(sql, (piece.at(-1)?.pos ?? 0) + (piece.at(-1)?.count ?? 0) - 1)
    if (text !== null && sum !== null && addSum(before, text) === sum) {
      const events = upcastAll(JSON.parse(`[${text}]`) as Event[])
      if (events.length === countEvents(piece)) return { events, sum, damage: null }
    }
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  return readOneByOne(sql, positionsOf(piece), before)
}

function readText(sql: SqliteStatements, piece: readonly EventSpan[]): string | null {
  const [only] = piece
  const row =
    only && piece.length === 1
      ? sql.chunk.get(only.pos, only.pos + only.count - 1)
      : sql.scattered.get(JSON.stringify(positionsOf(piece)))
  return (row as { text: string | null }).text
}

function sumAt(sql: SqliteStatements, pos: number): number | null {
  return (sql.sum.get(pos) as { sum: number } | undefined)?.sum ?? null
}

/** In place: a copy of the list would live as long as the list. */
function upcastAll(events: Event[]): Event[] {
  for (let i = 0; i < events.length; i++) events[i] = upcast(events[i] as Event)
  return events
}

function readOneByOne(sql: SqliteStatements, positions: readonly number[], before: number): CheckedPiece {
  const events: Event[] = []
  let sum = before
  for (const pos of positions) {
    try {
      const row = sql.event.get(pos) as { sum: number; body: string } | undefined
      if (!row) return { events, sum, damage: MISSING }
      if (addSum(sum, row.body) !== row.sum) return { events, sum, damage: 'the event does not match its checksum' }
      events.push(upcast(JSON.parse(row.body) as Event))
      sum = row.sum
    } catch (error) {
      if (!isDamage(error)) throw error
      return { events, sum, damage: `the event cannot be read: ${String(error)}` }
    }
  }
  return { events, sum, damage: null }
}

/** Corrupt pages, invalid JSON, and pieces too long for one text: in each case the single rows are read. */
function isDamage(error: unknown): boolean {
  const TOOBIG = 18
  const CORRUPT = 11
  if (error instanceof SyntaxError || error instanceof RangeError) return true
  return (
    [TOOBIG, CORRUPT].includes(primaryCode(error)) ||
    (error instanceof Error && 'code' in error && error.code === 'ERR_STRING_TOO_LONG')
  )
}

function sumAfter(sql: SqliteStatements, end: LogEnd, seq: number): number | null {
  const [span] = findSpans(sql, end, seq, seq)
  return span ? sumAt(sql, span.pos) : null
}

type CardRow = StoredSqliteRow & {
  readonly id: string
  readonly sum: number | null
  readonly headSum: number | null
  readonly cardSum: number | null
  readonly card: string
}

export function readCard(sql: SqliteStatements, session: string): Card | null {
  const row = sql.card.get(session) as CardRow | undefined
  return row ? cardFromRow(row) : null
}

/** By id. */
export function readCardList(sql: SqliteStatements, filter: Omit<CardFilter, 'newest'>): readonly Card[] {
  return (listRows(sql, filter) as CardRow[]).map(cardFromRow)
}

function listRows(sql: SqliteStatements, filter: Omit<CardFilter, 'newest'>): unknown[] {
  const { status, root, parent, folder, where, after = '', limit, waiting = false } = filter
  const state = status ?? null
  if (waiting) {
    const among = [state, root ?? null, parent ?? null, folder ?? null, JSON.stringify(where ?? {})]
    return sql.listWaiting.all(after, ...among, limit)
  }
  if (parent !== undefined) {
    const list = state === null ? sql.listBelow : sql.listBelowStatus
    return list.all(parent, state, folder ?? null, JSON.stringify(where ?? {}), after, root ?? null, limit)
  }
  const [label] = Object.entries(where ?? {})
  if (label)
    return sql.listWhere.all(...label, JSON.stringify(where), state, folder ?? null, after, root ?? null, limit)
  if (folder !== undefined) return sql.listFolder.all(folder, after, state, root ?? null, limit)
  if (status === undefined)
    return root === undefined ? sql.list.all(after, limit) : sql.listRoot.all(after, root, limit)
  return root === undefined ? sql.listStatus.all(after, status, limit) : sql.listBoth.all(after, status, root, limit)
}

/** The sessions below these roots, by root and then by id. */
export function readCardsBelow(sql: SqliteStatements, roots: readonly string[], limit: number): readonly Card[] {
  return (sql.listTrees.all(JSON.stringify(roots), limit) as CardRow[]).map(cardFromRow)
}

/** The cards with these numbers, in this order. Sessions removed meanwhile are left out. */
export function readCards(sql: SqliteStatements, numbers: readonly number[]): readonly Card[] {
  const rows = new Map((sql.cards.all(JSON.stringify(numbers)) as CardRow[]).map((row) => [row.n, row]))
  return numbers.flatMap((n) => {
    const row = rows.get(n)
    return row ? [cardFromRow(row)] : []
  })
}

/** The free ones come from the index of what is due, once for those that are urgent and once for the others. */
export function readWakingCards(sql: SqliteStatements, limit: number, where: Labels): readonly Card[] {
  const labels = JSON.stringify(where)
  const rows = [0, 1].flatMap((urgent) => sql.wakingFree.all(urgent, labels, limit) as WakingRow[])
  const held = sql.wakingHeld.all(labels, limit) as WakingRow[]
  const first = [...rows, ...held].sort((a, b) => a.due - b.due || a.n - b.n).slice(0, limit)
  return readCards(
    sql,
    first.map(({ n }) => n),
  )
}
type WakingRow = { readonly n: number; readonly due: number }

/** A damaged session is listed with a note, so that it can be found by id. */
function cardFromRow(row: CardRow): Card {
  const { n, id, seq, at, due, trouble, card } = row
  const sound = isSound(row.cardSum, n, id, card) && damageOf(row, row.sum, row.headSum) === null
  if (!sound) return damagedCard(row)
  const written = JSON.parse(card) as Card
  // The column only serves lookups. Cards from before this field have no parent.
  if (written.parent !== undefined && written.parent !== row.parent) return damagedCard(row)
  if (row.agent !== null && written.agent !== row.agent) return damagedCard(row)
  const { title: _title, owner: _owner, created: _created, tokens: _tokens, ...own } = written
  const present = {
    ...own,
    ...(row.parent === null ? {} : { parent: row.parent }),
    seq,
    at,
    due,
    ...cardFacts(factsOfRow(row)),
  }
  return trouble === null ? present : { ...present, trouble: JSON.parse(trouble) as SessionTrouble }
}

function damagedCard({ id, root, seq, at }: CardRow): Card {
  const reason = `The session is damaged: ${DAMAGED}. Export what can be read of it, or restore the database from a backup.`
  const known = { session: id, agent: '', root, status: 'requires_action', seq, at } as const
  const rest = { due: null, cost: 0, asks: [], waits: [], wakes: 0, outcome: null } as const
  return { ...known, ...rest, trouble: { attempts: 0, reason, until: null } }
}

export function unsoundFault(what: string): Fault {
  return new Fault('store_damaged', `${what} does not match its checksum. Restore the database from a backup.`)
}

type DueRow = { readonly id: string; readonly due: number; readonly n: number; readonly urgent: number }

/** Sessions without a worker come from one index, those of lost workers from another; neither reads a log. */
export function readDue(
  sql: SqliteStatements,
  now: number,
  limit: number,
  agents?: readonly string[],
): readonly string[] {
  const names = agents && JSON.stringify(agents)
  const free = (urgent: 0 | 1, most: number): DueRow[] =>
    (names ? sql.dueFreeOf.all(urgent, now, names, most) : sql.dueFree.all(urgent, now, most)) as DueRow[]
  const urgent = free(1, limit)
  const calm = urgent.length < limit ? free(0, limit - urgent.length) : []
  const lost = (
    names ? sql.dueLostOf.all(now, CLOCK_SLACK_MS, limit, names) : sql.dueLost.all(now, CLOCK_SLACK_MS, limit)
  ) as DueRow[]
  const rows = [...urgent, ...calm, ...lost]
  if (lost.length > 0) rows.sort((a, b) => b.urgent - a.urgent || a.due - b.due || a.n - b.n)
  return rows.slice(0, limit).map((row) => row.id)
}

/** Whether some worker's lease has times in the future. */
export function hasLeaseAhead(sql: SqliteStatements, now: number): boolean {
  return sql.anyAhead.get(now + CLOCK_SLACK_MS) !== undefined
}

/** Sessions whose due time was written by a clock that was ahead. */
export function readSessionsAhead(sql: SqliteStatements, now: number): readonly string[] {
  const from = now + CLOCK_SLACK_MS
  const rows = [...sql.aheadFree.all(0, from), ...sql.aheadFree.all(1, from), ...sql.aheadLost.all(from)]
  return (rows as { id: string }[]).map(({ id }) => id)
}

/** A worker that did not give its complete process identity has no host in its row, and is not found. */
export function readHolders(sql: SqliteStatements, host: string, now: number): readonly Holder[] {
  const rows = sql.holders.all(host, now) as (ProcessId & Lease & { readonly id: string })[]
  const live = rows.filter((row) => isLeaseLive(row, now))
  return live.map(({ id, pid, started }) => ({ worker: id, process: { host, pid, started } }))
}

/** When `due` will find something: a session's due time, or the end of the lease that hides it. */
export function readNextDue(
  sql: SqliteStatements,
  skip: ReadonlyMap<string, unknown>,
  agents?: readonly string[],
): number | null {
  const names = agents && JSON.stringify(agents)
  const free = [1, 0].map((urgent) => {
    const most = skip.size + 1
    const rows = (names ? sql.nextFreeOf.all(urgent, names, most) : sql.nextFree.all(urgent, most)) as DueRow[]
    return rows.find((row) => !skip.has(row.id))?.due ?? Number.POSITIVE_INFINITY
  })
  const leased = (sql.nextLeased.get() as { due: number | null }).due
  const next = Math.min(...free, leased ?? Number.POSITIVE_INFINITY)
  return Number.isFinite(next) ? next : null
}

type StoredAccount = {
  readonly cap: number | null
  readonly held: number
  readonly spent: number
  readonly assumed: number
  readonly sum: number | null
}

export function readAccount(sql: SqliteStatements, id: string): AccountRow | null {
  const row = sql.account.get(id) as StoredAccount | undefined
  if (!row) return null
  const { cap: limit, held, spent, assumed, sum } = row
  if (!isSound(sum, id, limit, held, spent, assumed)) throw unsoundFault(`The account ${id}`)
  return { id, limit, held, spent, assumed }
}

export function readBlob(sql: SqliteStatements, hash: string, of?: string): Blob | null {
  if (of !== undefined && !sql.refersToBlob.get(hash, of)) return null
  const row = sql.blob.get(hash) as { media: string; sum: number; data: Uint8Array } | undefined
  if (!row) return null
  if ((crc32(row.data) | 0) === row.sum) return { hash, media: row.media, data: row.data }
  throw unsoundFault(`The blob ${hash}`)
}

/** Asks the engine how it keeps a commit, instead of repeating the settings made on opening. */
export function readHealth(sql: SqliteStatements, db: Database, now: number): StoreHealth {
  const pragma = (name: string): unknown => Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0]
  const free = sql.countDueFree.get(now) as DueCount
  const lost = sql.countDueLost.get(now, CLOCK_SLACK_MS) as DueCount
  const sync = SYNCHRONOUS[Number(pragma('synchronous'))] ?? 'unknown'
  return {
    durability: `sqlite ${String(pragma('journal_mode'))}, synchronous ${sync}`,
    schema: SCHEMA_VERSION,
    bytes: Number(pragma('page_count')) * Number(pragma('page_size')),
    sessions: countOf(sql.countSessions),
    leases: countOf(sql.countLeases, now, CLOCK_SLACK_MS),
    due: free.count + lost.count,
    waitedMs: Math.max(0, now - Math.min(free.since ?? now, lost.since ?? now)),
  }
}

/** `since` is the earliest due time. */
type DueCount = { readonly count: number; readonly since: number | null }

const SYNCHRONOUS = ['off', 'normal', 'full', 'extra'] as const

function countOf(statement: Statement, ...values: readonly SqliteValue[]): number {
  return (statement.get(...values) as { count: number }).count
}
