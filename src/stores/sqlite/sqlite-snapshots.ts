// Snapshots in an SQLite store: caches of a log, in which a bad one counts as none. Reads, writes and drops them.
import type { Snapshot } from '../../ports/store.ts'
import { crc32 } from '../plan/checksum.ts'
import { isSnapshotSpare } from '../plan/snapshot-span.ts'
import { SPAN, type SqliteStatements } from './sqlite-schema.ts'
import { type LogEnd, findSpans } from './event-spans.ts'

/** How many snapshots are tried, from the newest on, until one is valid. */
const TRIES_MAX = 16

/** The newest that its owner wrote; with `upTo`, the newest of all at or before that event. */
export function readStoredSnapshot(sql: SqliteStatements, session: string, upTo?: number): Snapshot | null {
  for (let i = 0; i < TRIES_MAX; i++) {
    const values = [session, upTo ?? Number.MAX_SAFE_INTEGER, upTo === undefined ? 1 : 0, i] as const
    const row = sql.snapshots.get(...values) as (Snapshot & { readonly sum: number }) | undefined
    if (!row) return null
    const { seq, version, body } = row
    if (snapshotChecksum(session, row) === row.sum) return { seq, version, body }
  }
  return null
}

/** A snapshot of another session, or of another event, does not match. */
export function snapshotChecksum(session: string, { seq, version, body }: Snapshot): number {
  return crc32(body, crc32(`${session}\n${seq}\n${version}\n`)) | 0
}

/**
 * Writes the owner's snapshot and drops the one before it, unless that is needed to reach events in the middle of the
 * log.
 */
export function writeSnapshot(sql: SqliteStatements, n: number, session: string, snapshot: Snapshot): void {
  const { seq, version, body } = snapshot
  const [from, key] = [n * SPAN, n * SPAN + seq]
  const [last, before] = (sql.ownSnapshots.all(from, key - 1) as { key: number }[]).map((row) => row.key)
  sql.keepSnapshot.get(key, 1, version, snapshotChecksum(session, snapshot), body)
  if (last !== undefined && isSnapshotSpare(seq, (before ?? from) - from)) sql.forgetSnapshot.get(last)
}

/** Writes a reader's snapshots if they belong to this log: the id may be that of a session removed since. */
export function writeReaderSnapshots(
  sql: SqliteStatements,
  session: string,
  snapshots: readonly ReaderSnapshot[],
): void {
  const end = sql.end.get(session) as LogEnd | undefined
  for (const snapshot of snapshots) {
    const { seq, version, body, at } = snapshot
    if (!end || seq > end.seq || eventTime(sql, end, seq) !== at) continue
    sql.keepSnapshot.get(end.n * SPAN + seq, 0, version, snapshotChecksum(session, snapshot), body)
  }
}
type ReaderSnapshot = Snapshot & { readonly at: number }

function eventTime(sql: SqliteStatements, end: LogEnd, seq: number): unknown {
  const [span] = findSpans(sql, end, seq, seq)
  const row = span && (sql.event.get(span.pos) as { readonly body: string } | undefined)
  try {
    return row && (JSON.parse(row.body) as { readonly at?: unknown }).at
  } catch {
    return undefined
  }
}
