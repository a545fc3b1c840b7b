// The store that a process of the crash test opens: a SQLite file, or a database of a Postgres server by its URL.
import type { CompleteStore } from '../../src/ports/store.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

export function openStore(database: string): CompleteStore {
  return database.startsWith('postgres://') ? postgres(database) : sqlite(database)
}
