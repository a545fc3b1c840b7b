// What is read of the database and of the processes at one moment, and what lies between two such moments. It judges nothing: budgets.ts does.
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import type { Counts } from './child-worker.ts'

/** All but `dead`, `live`, `connections` and `workersMb` only grow. */
export type Moment = {
  readonly ms: number
  readonly transactions: number
  readonly rows: number
  readonly updated: number
  readonly hot: number
  readonly live: number
  readonly dead: number
  readonly wal: number
  readonly fullPages: number
  readonly connections: number
  readonly bodies: number
  readonly databaseCpuMs: number
  readonly workersCpuMs: number
  readonly peopleCpuMs: number
  readonly workersMb: number
  readonly sent: number
  readonly settled: number
} & Counts

/** `sessions` is the table of heads: every commit changes a row of it. Bodies are those of the sessions that are used. */
const READ = `select (select xact_commit from pg_stat_database where datname = current_database())::float8 as transactions,
  (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables)::float8 as rows,
  h.n_tup_upd::float8 as updated, h.n_tup_hot_upd::float8 as hot, h.n_live_tup::float8 as live, h.n_dead_tup::float8 as dead,
  (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal, (select wal_fpi from pg_stat_wal)::float8 as "fullPages",
  (select count(*) from pg_stat_activity where application_name like 'terret%')::float8 as connections,
  (select sum(octet_length(body)) from terret.events where n = any($1::bigint[]))::float8 as bodies
  from pg_stat_user_tables h where h.schemaname = 'terret' and h.relname = 'sessions'`

export type Watched = {
  readonly bare: pg.Client
  /** Numbers of the sessions that are used. */
  readonly used: readonly number[]
  /** The folder of the database. */
  readonly data: string
  readonly workers: readonly number[]
}

type Read = Pick<
  Moment,
  'transactions' | 'rows' | 'updated' | 'hot' | 'live' | 'dead' | 'wal' | 'fullPages' | 'bodies' | 'connections'
>

export async function momentOf(
  { bare, used, data, workers }: Watched,
  counts: Counts & Pick<Moment, 'sent' | 'settled'>,
): Promise<Moment> {
  const { rows } = await bare.query<Read>({ name: 'moment', text: READ, values: [used] })
  const [read] = rows
  if (!read) throw new Error('the database counts nothing')
  const { user, system } = process.cpuUsage()
  const cpu = {
    databaseCpuMs: familyCpuMs(Number(readFileSync(`${data}/postmaster.pid`, 'utf8').split('\n')[0])),
    workersCpuMs: workers.reduce((sum, pid) => sum + (statOf(pid)?.cpuMs ?? Number.NaN), 0),
    peopleCpuMs: (user + system) / 1_000,
    workersMb: workers.reduce((sum, pid) => sum + (statOf(pid)?.bytes ?? Number.NaN), 0) / 1_048_576,
  }
  return { ms: performance.now(), ...read, ...counts, ...cpu }
}

const TICK_MS = 10
const PAGE_BYTES = 4_096

type Stat = { readonly parent: number; readonly cpuMs: number; readonly deadCpuMs: number; readonly bytes: number }

/** Null where there is no such process, or no /proc. */
function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const ticks = (from: number): number => ((fields[from] ?? 0) + (fields[from + 1] ?? 0)) * TICK_MS
    const bytes = (fields[21] ?? 0) * PAGE_BYTES
    return { parent: fields[1] ?? 0, cpuMs: ticks(11), deadCpuMs: ticks(13), bytes }
  } catch {
    return null
  }
}

/** A process and its children, also those that have ended. */
function familyCpuMs(pid: number): number {
  const own = statOf(pid)
  if (!own) return Number.NaN
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const children = all.map((name) => statOf(Number(name))).filter((stat) => stat?.parent === pid)
  return children.reduce((sum, stat) => sum + (stat?.cpuMs ?? 0), own.cpuMs + own.deadCpuMs)
}

/**
 * From the stamp of what somebody wrote to the stamp of the first event that a worker wrote after it, in ms: asked for, found, claimed,
 * read and decided.
 */
const TAKEN = `select (f.body::json->>'at')::float8 - (e.body::json->>'at')::float8 as ms from terret.inbox i
  join terret.events e on e.n = i.n and e.seq = i.seq join terret.events f on f.n = i.n and f.seq = i.seq + 1
  where i.n = any($1::bigint[]) and (e.body::json->>'at')::float8 >= $2::float8`

export async function takenMs({ bare, used }: Watched, since: number): Promise<readonly number[]> {
  const { rows } = await bare.query<{ ms: number }>({ name: 'taken', text: TAKEN, values: [used, since] })
  return rows.map(({ ms }) => ms).toSorted((a, b) => a - b)
}
