// Snapshots in a Postgres store: caches of a log, in which a bad one counts as none. Reads them, and stores those of a
// reader.
import type { Snapshot, Snapshots } from '../../ports/store.ts'
import { crc32 } from '../plan/checksum.ts'
import { isStoreId } from '../plan/store-ids.ts'
import { SEQ_MAX } from './fetch-present.ts'
import type { Sql } from './sql.ts'

/** How many snapshots are tried, from the newest on, until one is valid. */
const TRIES_MAX = 16

/** A snapshot of another session, or of another event, does not match. */
export function snapshotSum(session: string, { seq, version, body }: Snapshot): number {
  return crc32(body, crc32(`${session}\n${seq}\n${version}\n`)) | 0
}

const READ = `select p.seq, p.version, p.sum, p.body from ~sessions s join ~snapshots p on p.n = s.n and p.seq <= least(s.seq, $2::int)
  where s.id = $1 and (p.own or not $3::boolean) order by p.seq desc limit 1 offset $4`

/** The newest that its owner wrote; with `upTo`, the newest of all at or before that event. */
export async function querySnapshot(sql: Sql, session: string, upTo?: number): Promise<Snapshot | null> {
  if (!isStoreId(session)) return null
  for (let i = 0; i < TRIES_MAX; i++) {
    const values = [session, Math.min(upTo ?? SEQ_MAX, SEQ_MAX), upTo === undefined, i]
    const [row] = await sql.ask<Snapshot & { readonly sum: number }>('snapshot', READ, values)
    if (!row) return null
    const { seq, version, body } = row
    if (snapshotSum(session, row) === row.sum) return { seq, version, body }
  }
  return null
}

const EVENTS = `select s.n::float8 as n, e.seq, e.body from ~sessions s join ~events e on e.n = s.n and e.seq = any($2::int[]) where s.id = $1`
const KEEP = `insert into ~snapshots as p select r.n, r.seq, false, r.version, r.sum, r.body
  from unnest($1::bigint[], $2::int[], $3::float8[], $4::int[], $5::text[]) r(n, seq, version, sum, body)
  join ~sessions s on s.n = r.n on conflict (n, seq) do update set own = false, version = excluded.version, sum = excluded.sum,
  body = excluded.body where not p.own or excluded.version > p.version`

/** Stores a reader's snapshots if they belong to this log: the id may be that of a session removed since. */
export async function insertSnapshots(
  sql: Sql,
  session: string,
  snapshots: Parameters<Snapshots['keep']>[1],
): Promise<void> {
  if (!isStoreId(session) || snapshots.length === 0) return
  const places = snapshots.map(({ seq }) => seq).filter((seq) => Number.isInteger(seq) && seq > 0 && seq < SEQ_MAX)
  const found = await sql.ask<{ n: number; seq: number; body: string }>('snapshot events', EVENTS, [session, places])
  const events = new Map(found.map((event) => [event.seq, event]))
  const kept = snapshots.flatMap((snapshot) => {
    const event = events.get(snapshot.seq)
    return event && eventTime(event.body) === snapshot.at ? [{ n: event.n, ...snapshot }] : []
  })
  if (kept.length === 0) return
  const columns = [
    kept.map(({ n }) => n),
    kept.map(({ seq }) => seq),
    kept.map(({ version }) => version),
    kept.map((each) => snapshotSum(session, each)),
    kept.map(({ body }) => body),
  ]
  await sql.ask('snapshot keep', KEEP, columns)
}

function eventTime(body: string): unknown {
  try {
    return (JSON.parse(body) as { readonly at?: unknown }).at
  } catch {
    return undefined
  }
}
