// Stores on the shared server, opened for one test: each in a schema of its own, by the connections that a store has. What a test may put
// between the two is `change`.
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/ports/system.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import type { WriteSql, StoreConnections as Plain } from '../../src/stores/postgres/sql.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { sharedServer } from './stage.ts'

let schemas = 0

export function newSchema(): string {
  schemas += 1
  return `t${process.pid}_${schemas}`
}

let emptied: string | null = null

/** The same schema again, with nothing in it: making the tables takes longer than most tests. For tests that run one after the other. */
export async function emptySchema(): Promise<string> {
  const schema = (emptied ??= newSchema())
  await meddle(`do $do$ declare each text; begin
    set local session_replication_role = replica;
    for each in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' and tablename !~ '^events_' loop
      execute format('delete from ${schema}.%I', each);
    end loop; end $do$`)
  return schema
}

/** Runs SQL as any other program would. */
export async function meddle<Row extends object>(text: string): Promise<readonly Row[]> {
  return (await sharedServer()).query<Row>(text)
}

/** Rows of a table that were read so far, by connections that have ended. */
export async function readOf(schema: string, table: string): Promise<number> {
  const of = `schemaname = '${schema}' and relname = '${table}'`
  const text = `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_user_tables where ${of}`
  const [row] = await meddle<{ read: number }>(text)
  return row?.read ?? Number.NaN
}

/** `change` stands between a store and its writes. With `patienceMs` 0 trouble is said at once. */
type Between = {
  readonly change?: (sql: WriteSql) => WriteSql
  readonly patienceMs?: number
  readonly statementTimeoutMs?: number
}

export async function connections({
  change = (sql) => sql,
  patienceMs = 10_000,
  ...limits
}: Between = {}): Promise<Plain> {
  const real = new PostgresConnections({ url: (await sharedServer()).url(), hints: false, patienceMs, ...limits })
  onTestFinished(() => real.close())
  const { lane, reader, heartbeat } = real
  const plain: WriteSql = {
    ask: (...asked) => lane.ask(...asked),
    transaction: (work, options) => lane.transaction(work, options),
  }
  return {
    lane: change(plain),
    reader,
    heartbeat,
    patienceMs,
    made: 2,
    open: () => real.open(),
    close: () => real.close(),
  }
}

type Opening = Between & { readonly schema?: string; readonly clock?: Clock }

/** Open, and closed after the test. */
export async function openPostgres({ schema = newSchema(), clock, ...between }: Opening = {}): Promise<PostgresStore> {
  const store = new PostgresStore(await connections(between), { schema, ...(clock ? { clock } : {}) })
  await store.open()
  onTestFinished(() => store.close())
  return store
}
