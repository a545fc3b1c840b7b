// Reads an SQLite store: logs, verified against their checksums in large pieces, and the rows that indexes serve.
// It writes nothing, and an event that fails its checksum never leaves it.
import { crc32 } from 'node:zlib'
import type { Card } from '../kernel/card.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { AccountRow, Blob, Page, Snapshot, Store } from '../kernel/ports.ts'
import { upcast } from '../kernel/upcast.ts'
import { primaryCode } from './sqlite-fault.ts'
import { SPAN, type Statements } from './sqlite-schema.ts'

/** Reading row by row costs three times as much. More than this gains nothing. */
const CHUNK = 512

/** The sum an empty log starts with: an event cannot be moved to another session unseen. */
export function seedOf(session: string): number {
  return crc32(session) | 0
}

/** A sum covers all events up to its own. The comma makes many bodies, joined as in a JSON array, one piece to check. */
export function addSum(sum: number, bodies: string): number {
  return crc32(bodies, crc32(',', sum >>> 0)) | 0
}

/** A log from `after` on, as far as it is good. */
export function readLog(sql: Statements, session: string, after: number, limit: number): Page {
  const head = sql.seq.get(session) as { n: number; seq: number; sum: number } | undefined
  if (!head) throw new Fault('session_missing', `There is no session ${session}.`)
  const first = head.n * SPAN
  const end = Math.min(head.seq, after + limit)
  const events: Event[] = []
  if (after >= end) return { events }
  let sum = after === 0 ? seedOf(session) : sumAt(sql, first + after)
  if (sum === null) return { events, damaged: { seq: after, reason: 'the event is missing' } }
  for (let at = after; at < end; at = Math.min(at + CHUNK, end)) {
    const piece = readChunk(sql, first + at, first + Math.min(at + CHUNK, end), sum)
    for (const event of piece.events) events.push(upcast(event))
    if (piece.damage !== null) return { events, damaged: { seq: after + events.length + 1, reason: piece.damage } }
    sum = piece.sum
  }
  if (end === head.seq && sum !== head.sum) {
    return { events, damaged: { seq: head.seq + 1, reason: 'the log does not end as its session says' } }
  }
  return { events }
}

type Piece = { readonly events: readonly Event[]; readonly sum: number; readonly damage: string | null }

/** Events of (from, to]. Checked and parsed as one text; one by one only to find where it is bad. */
function readChunk(sql: Statements, from: number, to: number, before: number): Piece {
  try {
    const row = sql.chunk.get(from, to) as { text: string | null; count: number; sum: number | null }
    if (row.count === to - from && row.text !== null && addSum(before, row.text) === row.sum) {
      const events = JSON.parse(`[${row.text}]`) as Event[]
      if (events.length === row.count) return { events, sum: row.sum, damage: null }
    }
  } catch (error) {
    if (!isDamage(error)) throw error
  }
  return readOneByOne(sql, from, to, before)
}

function readOneByOne(sql: Statements, from: number, to: number, before: number): Piece {
  const events: Event[] = []
  let sum = before
  for (let key = from + 1; key <= to; key++) {
    try {
      const row = sql.event.get(key) as { sum: number; body: string } | undefined
      if (!row) return { events, sum, damage: 'the event is missing' }
      if (addSum(sum, row.body) !== row.sum) return { events, sum, damage: 'the event does not match its checksum' }
      events.push(JSON.parse(row.body) as Event)
      sum = row.sum
    } catch (error) {
      if (!isDamage(error)) throw error
      return { events, sum, damage: `the event cannot be read: ${String(error)}` }
    }
  }
  return { events, sum, damage: null }
}

/** Corrupt pages, texts that are no JSON, and pieces too long to be one text: all are worth a look at the single rows. */
function isDamage(error: unknown): boolean {
  const TOOBIG = 18
  const CORRUPT = 11
  if (error instanceof SyntaxError || error instanceof RangeError) return true
  return (
    [TOOBIG, CORRUPT].includes(primaryCode(error)) ||
    (error instanceof Error && 'code' in error && error.code === 'ERR_STRING_TOO_LONG')
  )
}

function sumAt(sql: Statements, key: number): number | null {
  return (sql.sum.get(key) as { sum: number } | undefined)?.sum ?? null
}

/** Only a cache: a bad one is as good as none. */
export function readSnapshot(sql: Statements, session: string): Snapshot | null {
  const row = sql.snapshot.get(session) as (Snapshot & { sum: number }) | undefined
  if (!row || (crc32(row.body) | 0) !== row.sum) return null
  return { seq: row.seq, version: row.version, body: row.body }
}

type CardRow = { readonly seq: number; readonly at: number; readonly due: number | null; readonly card: string }

export function readCard(sql: Statements, session: string): Card | null {
  const row = sql.card.get(session) as CardRow | undefined
  return row ? cardOf(row) : null
}

export function readList(sql: Statements, filter: Parameters<Store['list']>[0]): readonly Card[] {
  const { status, root, after = '', limit } = filter
  const rows = (): unknown[] => {
    if (status === undefined)
      return root === undefined ? sql.list.all(after, limit) : sql.listRoot.all(after, root, limit)
    return root === undefined ? sql.listStatus.all(after, status, limit) : sql.listBoth.all(after, status, root, limit)
  }
  return (rows() as CardRow[]).map(cardOf)
}

function cardOf({ seq, at, due, card }: CardRow): Card {
  return { ...(JSON.parse(card) as Card), seq, at, due }
}

type DueRow = { readonly id: string; readonly due: number; readonly n: number }

/** Sessions nobody drives come from one index, those of lost workers from another; neither reads a log. */
export function readDue(sql: Statements, now: number, limit: number): readonly string[] {
  const free = sql.dueFree.all(now, limit) as DueRow[]
  const lost = sql.dueLost.all(now, now, limit) as DueRow[]
  const rows = lost.length === 0 ? free : [...free, ...lost].sort((a, b) => a.due - b.due || a.n - b.n).slice(0, limit)
  return rows.map((row) => row.id)
}

/** When `due` will find something: a session's time, or the end of the lease that hides it. */
export function readNextDue(sql: Statements, skip: ReadonlyMap<string, unknown>): number | null {
  const free = (sql.nextFree.all(skip.size + 1) as DueRow[]).find((row) => !skip.has(row.id))?.due
  const leased = (sql.nextLeased.get() as { due: number | null }).due
  const next = Math.min(free ?? Number.POSITIVE_INFINITY, leased ?? Number.POSITIVE_INFINITY)
  return Number.isFinite(next) ? next : null
}

export function readAccount(sql: Statements, id: string): AccountRow | null {
  const row = sql.account.get(id) as
    | { id: string; cap: number | null; held: number; spent: number; assumed: number }
    | undefined
  return row ? { id, limit: row.cap, held: row.held, spent: row.spent, assumed: row.assumed } : null
}

export function readBlob(sql: Statements, hash: string): Blob | null {
  const row = sql.blob.get(hash) as { media: string; sum: number; data: Uint8Array } | undefined
  if (!row) return null
  if ((crc32(row.data) | 0) === row.sum) return { hash, media: row.media, data: row.data }
  throw new Fault('store_damaged', `The blob ${hash} does not match its checksum. Restore the database from a backup.`)
}
