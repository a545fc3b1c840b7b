// `sqlite(path)`: a durable store in one file. The public door; the store itself is sqlite-store.ts.
// Importing it loads no SQLite, and calling it touches no disk: the file is opened on first use.
import type { Clock, Store } from '../kernel/ports.ts'
import { systemClock } from './clock.ts'
import { loadDriver } from './sqlite-driver.ts'
import { realFileSystemOf } from './sqlite-file.ts'
import { SqliteStore } from './sqlite-store.ts'

export type SqliteOptions = { readonly clock?: Clock }

export function sqlite(path: string, options: SqliteOptions = {}): Store {
  return new SqliteStore(path, { clock: options.clock ?? systemClock, loadDriver, fileSystemOf: realFileSystemOf })
}
