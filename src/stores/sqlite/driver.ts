// Which SQLite this process uses: Node's own where it is new enough, else @photostructure/sqlite, which has the same interface.
// It loads nothing when imported: a process that opens no store pays nothing.
import { createRequire } from 'node:module'
import { Fault } from '../../kernel/failure.ts'

export type SqlValue = null | number | string | Uint8Array

export interface Statement {
  run(...values: SqlValue[]): { readonly lastInsertRowid: number | bigint; readonly changes: number | bigint }
  /** The first row. Also the cheapest way to write: `run` builds an object that is not read, which costs as much as a row. */
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
}

/** What we use of node:sqlite's DatabaseSync. */
export interface Database {
  readonly isTransaction: boolean
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export type Driver = new (path: string) => Database

/** Older ones can lose committed data when several processes share a WAL file and one of them resets it. */
const OLDEST = '3.51.3'

export function loadDriver(): Driver {
  const builtIn = process.versions['sqlite']
  const require = createRequire(import.meta.url)
  try {
    const loaded: unknown =
      builtIn !== undefined && isRecent(builtIn) ? require('node:sqlite') : require('@photostructure/sqlite')
    return (loaded as { readonly DatabaseSync: Driver }).DatabaseSync
  } catch (error) {
    const text = 'No usable SQLite: install @photostructure/sqlite, or use Node 24 or newer.'
    throw new Fault('store_unsupported', text, String(error))
  }
}

export function checkVersion(version: string): void {
  if (isRecent(version)) return
  const text = `SQLite ${version} is too old; ${OLDEST} or newer is needed. Install @photostructure/sqlite, or use Node 24 or newer.`
  throw new Fault('store_unsupported', text)
}

function isRecent(version: string): boolean {
  const given = version.split('.').map(Number)
  for (const [i, part] of OLDEST.split('.').entries()) {
    const difference = (given[i] ?? 0) - Number(part)
    if (difference !== 0) return difference > 0
  }
  return true
}
