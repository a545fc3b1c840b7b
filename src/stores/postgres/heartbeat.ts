// The heartbeat of a worker, on its own connection: it waits behind no write, so a row that others keep locked costs no
// lease except that of its own session.
import { CLOCK_SLACK_MS } from '../plan/plan-writes.ts'
import type { PostgresWorkerRow } from './postgres-rows.ts'
import type { Sql } from './sql.ts'

/**
 * Keeps a longer lease that this worker already has, unless a clock that was ahead wrote it: `extendedLease` of
 * plan-writes.ts, as SQL.
 */
export const KEEPS_LONGER = `w.ttl > excluded.ttl and w.until > excluded.until
        and w.until - w.ttl <= excluded.until - excluded.ttl + ${CLOCK_SLACK_MS}`

const EXTEND = `with t as materialized (select coalesce($3::float8, extract(epoch from clock_timestamp()) * 1000)::float8 as now),
  me as (insert into ~workers as w (id, until, ttl) select $1, t.now + $2::float8, $2::float8 from t
    on conflict (id) do update set
      until = case when ${KEEPS_LONGER} then w.until else excluded.until end,
      ttl = case when ${KEEPS_LONGER} then w.ttl else excluded.ttl end
    returning until, ttl as "ttlMs", address, host, pid, started)
  select me.*, s.id as session, s.epoch::float8 as epoch from me left join ~sessions s on s.worker = $1`

type HeartbeatRow = PostgresWorkerRow & { readonly session: string | null; readonly epoch: number | null }
export type Heartbeat = { readonly worker: PostgresWorkerRow; readonly held: ReadonlyMap<string, number> }

/** `now` replaces the time of the database. */
export async function extendLeases(
  sql: Sql,
  { worker, ttlMs, now }: { readonly worker: string; readonly ttlMs: number; readonly now: number | null },
): Promise<Heartbeat> {
  const rows = await sql.ask<HeartbeatRow>('extend', EXTEND, [worker, ttlMs, now])
  const [first] = rows
  const { until = 0, address = null, host = null, pid = null, started = null } = first ?? {}
  const held = rows.flatMap(({ session, epoch }) =>
    session === null || epoch === null ? [] : [[session, epoch] as const],
  )
  return { worker: { until, ttlMs: first?.ttlMs ?? ttlMs, address, host, pid, started }, held: new Map(held) }
}
