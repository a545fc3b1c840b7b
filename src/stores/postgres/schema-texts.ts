// Puts the schema into the texts of the store's statements: `~` before a name stands for it. Each text is converted
// once.
import { Fault } from '../../kernel/failure.ts'
import type { WriteSql, Sql } from './sql.ts'

export const SCHEMA_DEFAULT = 'terret'

/** Schema names that need no quotes, because they are inserted into SQL texts. */
export function checkSchemaName(name: string): void {
  if (/^[a-z_][a-z0-9_]{0,50}$/.test(name) && !name.startsWith('pg_')) return
  const text = 'The schema of a Postgres store must be 1 to 51 small letters, digits and _, and not begin with "pg_".'
  throw new Fault('invalid_config', text)
}

/** The same connection for texts with `~`. */
export function sqlInSchema(sql: Sql, schema: string): Sql {
  const known = new Map<string, string>()
  return {
    ask: <Row extends object>(...[name, text, ...rest]: Parameters<Sql['ask']>): Promise<readonly Row[]> => {
      const whole = known.get(text) ?? text.replaceAll('~schema~', schema).replaceAll('~', `${schema}.`)
      known.set(text, whole)
      return sql.ask<Row>(name, whole, ...rest)
    },
  }
}

export function writeSqlInSchema(sql: WriteSql, schema: string): WriteSql {
  return {
    ...sqlInSchema(sql, schema),
    transaction: (work, options) => sql.transaction((inner) => work(sqlInSchema(inner, schema)), options),
  }
}

/** Encodes which parts a statement has, for its name: names may have 63 characters. */
export function bitMask(parts: readonly boolean[]): string {
  return parts.reduce((sum, has, i) => sum + (has ? 2 ** i : 0), 0).toString(36)
}
