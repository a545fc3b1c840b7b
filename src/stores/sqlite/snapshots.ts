// Snapshots in an SQLite store: caches of a log, of which a bad one is as good as none. How they are read, written and given up.
import type { Snapshot } from '../../ports/store.ts'
import { crc32 } from '../plan/checksum.ts'
import { isSpare } from '../plan/snapshots.ts'
import { SPAN, type Statements } from './schema.ts'
import { type End, findSpans } from './spans.ts'

/** How many of them are tried, from the newest on, until one is whole. */
const TRIES_MAX = 16

/** The newest that its owner wrote; with `upTo`, the newest of all at or before that event. */
export function readSnapshot(sql: Statements, session: string, upTo?: number): Snapshot | null {
  for (let i = 0; i < TRIES_MAX; i++) {
    const values = [session, upTo ?? Number.MAX_SAFE_INTEGER, upTo === undefined ? 1 : 0, i] as const
    const row = sql.snapshots.get(...values) as (Snapshot & { readonly sum: number }) | undefined
    if (!row) return null
    const { seq, version, body } = row
    if (sumOf(session, row) === row.sum) return { seq, version, body }
  }
  return null
}

/** One of another session, or of another event, does not match. */
export function sumOf(session: string, { seq, version, body }: Snapshot): number {
  return crc32(body, crc32(`${session}\n${seq}\n${version}\n`)) | 0
}

/** That of the owner. The one before it goes, unless it is needed to reach events in the middle of the log. */
export function writeSnapshot(sql: Statements, n: number, session: string, snapshot: Snapshot): void {
  const { seq, version, body } = snapshot
  const [from, key] = [n * SPAN, n * SPAN + seq]
  const [last, before] = (sql.ownSnapshots.all(from, key - 1) as { key: number }[]).map((row) => row.key)
  sql.keepSnapshot.get(key, 1, version, sumOf(session, snapshot), body)
  if (last !== undefined && isSpare(seq, (before ?? from) - from)) sql.forgetSnapshot.get(last)
}

/** Those of a reader, if they are of this log: its id may be that of a session which was removed since. */
export function writeRead(sql: Statements, session: string, snapshots: readonly Read[]): void {
  const end = sql.end.get(session) as End | undefined
  for (const snapshot of snapshots) {
    const { seq, version, body, at } = snapshot
    if (!end || seq > end.seq || timeOf(sql, end, seq) !== at) continue
    sql.keepSnapshot.get(end.n * SPAN + seq, 0, version, sumOf(session, snapshot), body)
  }
}
type Read = Snapshot & { readonly at: number }

function timeOf(sql: Statements, end: End, seq: number): unknown {
  const [span] = findSpans(sql, end, seq, seq)
  const row = span && (sql.event.get(span.pos) as { readonly body: string } | undefined)
  try {
    return row && (JSON.parse(row.body) as { readonly at?: unknown }).at
  } catch {
    return undefined
  }
}
