// Claims due sessions in one statement: workers that ask at the same moment skip each other's (SKIP LOCKED), so none
// claims in vain. The order is that of `due`. A request repeated after a lost answer gets the sessions it took the
// first time.
import type { Claim, TakeOptions } from '../../ports/store.ts'
import { CLOCK_SLACK_MS, LOST } from '../plan/plan-writes.ts'
import { candidateLimit, treeShare } from '../plan/tree-share.ts'
import { KEEPS_LONGER } from './heartbeat.ts'
import { HEAD, type PostgresRow, parseRow, type StoredPostgresRow } from './postgres-rows.ts'
import type { Sql } from './sql.ts'

/** `$8` holds the numbers of damaged sessions. */
const IS_WANTED = `($4::text[] is null or s.agent = any($4::text[])) and (not $5::boolean or (s.tries = 0 and s.trouble is null))
  and s.n <> all($8::bigint[]) and s.epoch < ${Number.MAX_SAFE_INTEGER - 1}`
const ORDER = 'order by s.urgent desc, s.turn, s.due, s.n limit greatest(0, $3 - (select count(*) from before))'

/**
 * The worker's row and lease are written before it holds anything, because a lease without a worker would never end. A
 * worker that takes nothing gets no longer lease: sessions it was given without knowing become free in time.
 */
const takeSql = (
  sessions: string,
  condition: string,
): string => `with t as materialized (select coalesce($7::float8, extract(epoch from clock_timestamp()) * 1000)::float8 as now),
  before as (select s.n, s.urgent, s.due from ~sessions s where s.worker = $1 and s.taken = $6),
  first as (select s.n, s.urgent, s.due, s.root from ${sessions} s, t where s.worker is null and s.due <= t.now
    and ${IS_WANTED} order by s.urgent desc, s.due, s.n limit $14::int),
  turns as (select f.*, (row_number() over (partition by f.urgent, f.root order by f.due, f.n) - 1) / $13::int as turn from first f),
  ranked as (select * from turns order by urgent desc, turn, due, n offset 0),
  free as (select s.n, s.urgent, s.due, false as lost, r.turn from t, ranked r join ~sessions s on s.n = r.n
    where s.worker is null and s.due <= t.now and ${IS_WANTED} order by r.urgent desc, r.turn, r.due, r.n
    limit greatest(0, $3 - (select count(*) from before)) for update of s skip locked),
  lost as (select s.n, s.urgent, s.due, s.tries > 0 as lost, 0 as turn from t, ~workers w join ~sessions s on s.worker = w.id
    where w.until <= t.now and (s.due <= t.now or (s.due > t.now + ${CLOCK_SLACK_MS} and s.at > t.now + ${CLOCK_SLACK_MS})) and ${IS_WANTED} and ${condition}
    order by s.urgent desc, s.due, s.n limit greatest(0, $3 - (select count(*) from before)) for update of s skip locked for share of w skip locked),
  best as (select * from (select * from free union all select * from lost) s ${ORDER}),
  took as (update ~sessions s set v = s.v + 1, worker = $1, due = least(s.due, t.now), epoch = s.epoch + 1, tries = s.tries + 1, taken = $6,
    trouble = case when best.lost then json_build_object('attempts', s.tries, 'reason', $9::text, 'until', t.now)::text else s.trouble end
    from best, t where s.n = best.n returning ${HEAD}, best.urgent as rush, best.due as since),
  me as (insert into ~workers as w (id, until, ttl, host, pid, started)
    select $1, t.now + $2::float8, $2::float8, $10, $11::float8, $12::float8 from t
    where exists (select 1 from took) or exists (select 1 from before)
    on conflict (id) do update set
      until = case when ${KEEPS_LONGER} then w.until else excluded.until end,
      ttl = case when ${KEEPS_LONGER} then w.ttl else excluded.ttl end,
      host = coalesce(excluded.host, w.host), pid = coalesce(excluded.pid, w.pid), started = coalesce(excluded.started, w.started)
    returning until, ttl)
  select a.*, me.until, me.ttl from me, (select * from took
    union all select ${HEAD}, b.urgent, b.due from before b join ~sessions s on s.n = b.n) a order by a.rush desc, a.since, a.n`

/** In the order of an index, however many sessions are due. */
const TAKE = takeSql('~sessions', 'true')
/** Named sessions are found by id, however many others are due. */
const TAKE_AMONG = takeSql(
  '(select * from ~sessions x where x.id = any($15::text[]) offset 0)',
  's.id = any($15::text[])',
)

export type TakeQuestion = {
  readonly worker: string
  readonly ttlMs: number
  readonly wanted: TakeOptions
  /** Identifies this request. */
  readonly token: string
  /** Replaces the database's time. */
  readonly now: number | null
  readonly damaged: readonly number[]
}
type TakenSession = {
  readonly session: string
  readonly row: PostgresRow
  readonly claim: Claim
  readonly ttlMs: number
}

type TakenRow = StoredPostgresRow & { readonly until: number; readonly ttl: number }

export async function takeDue(
  sql: Sql,
  { worker, ttlMs, wanted, token, now, damaged }: TakeQuestion,
): Promise<readonly TakenSession[]> {
  const { agents, among, process, fresh } = wanted
  const limit = Math.min(wanted.limit, 2 ** 30)
  // No id contains a NUL, and Postgres would refuse the whole list because of one.
  const names = (list?: readonly string[]) => list?.filter((name) => !name.includes('\0')) ?? null
  const identity = [process?.host ?? null, process?.pid ?? null, process?.started ?? null]
  const values = [
    worker,
    ttlMs,
    limit,
    names(agents),
    fresh === true,
    token,
    now,
    damaged,
    LOST,
    ...identity,
    treeShare(limit),
    candidateLimit(limit),
  ]
  const named = names(among)
  const rows = await (named === null
    ? sql.ask<TakenRow>('take', TAKE, values, { unsorted: true })
    : sql.ask<TakenRow>('take among', TAKE_AMONG, [...values, named]))
  return rows.map(({ until, ttl, ...stored }) => {
    const row = parseRow(stored)
    return {
      session: stored.id,
      row,
      claim: { epoch: row.epoch, seq: row.seq, until, failed: row.tries - 1 },
      ttlMs: ttl,
    }
  })
}

/** Leases that end later than their time allows: a clock that was ahead took them. */
export const PAST_WORKERS = `update ~workers set until = $1::float8 where until - ttl > $1::float8 + ${CLOCK_SLACK_MS}`
