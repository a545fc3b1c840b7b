// Creates the tables of a store, or finds those of another version or another program. One statement: all or nothing.
import { Fault } from '../../kernel/failure.ts'
import { lockKey, SCHEMA, SCHEMA_VERSION, UPGRADES } from './postgres-schema.ts'
import type { Sql } from './sql.ts'

const STATE = `select to_regclass('~meta') is not null as ours,
  (select count(*) from pg_class c where c.relnamespace = to_regnamespace('~schema~') and c.relkind in ('r', 'p'))::int as tables`

/**
 * Checked again under the lock, because another process may have been faster. It reads the catalogue tables themselves:
 * to_regclass answers from a cache that waiting for the lock does not refresh.
 */
const MAKE = `do $do$ begin
  perform pg_advisory_xact_lock(${lockKey('schema')});
  if exists (select 1 from pg_class c join pg_namespace s on s.oid = c.relnamespace where s.nspname = '~schema~' and c.relname = 'meta') then
    return;
  end if;
  if not exists (select 1 from pg_namespace where nspname = '~schema~') then
    create schema ~schema~;
  end if;
  ${SCHEMA}
end $do$`

/** Checked again under the lock, because another process may have been faster. */
const upgradeSql = (version: number): string => `do $do$ begin
  perform pg_advisory_xact_lock(${lockKey('schema')});
  if (select version from ~meta) = ${version} then
    ${UPGRADES[version]}
  end if;
end $do$`

/** A transaction whose statements may take as long as they need: an upgrade may rewrite every row of a large table. */
export type LongTransaction = (work: (sql: Sql) => Promise<void>) => Promise<void>

/** `expected` is the id of the store that must exist. Then no tables are created, and another store is refused. */
export async function migrate(
  sql: Sql,
  schema: string,
  upgradeIn: LongTransaction,
  expected: string | null = null,
): Promise<void> {
  const [state] = await sql.ask<{ ours: boolean; tables: number }>('state', STATE)
  if (state?.ours === false && state.tables > 0) {
    const text = `The schema ${schema} of this database has tables of another program. Name another schema in the option "schema".`
    throw new Fault('store_unsupported', text)
  }
  if (state?.ours === false && expected !== null) {
    const text = `The store is gone: the schema ${schema} of this database has no tables of it any more. Restore them from a backup.`
    throw new Fault('store_replaced', text)
  }
  if (state?.ours === false) await sql.ask('make', MAKE)
  const [meta] = await sql.ask<{ version: number; store: string }>('version', 'select version, store from ~meta')
  if (meta === undefined) throw new Fault('store_damaged', `The schema ${schema} does not say which version it has.`)
  if (expected !== null && meta.store !== expected)
    throw new Fault('store_replaced', `The schema ${schema} of this database holds another store than before.`)
  if (meta.version > SCHEMA_VERSION) {
    const text = 'This store was written by a newer version of Terret. Update Terret, or use another schema.'
    throw new Fault('store_newer', text, `schema version ${meta.version}, known is ${SCHEMA_VERSION}`)
  }
  for (let { version } = meta; version < SCHEMA_VERSION; version++)
    await upgradeIn(async (long) => void (await long.ask('', upgradeSql(version))))
}
