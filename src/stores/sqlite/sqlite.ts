// `sqlite(path)`: a durable store in one file. The public door; the store itself is store.ts.
// Importing it loads no SQLite, and calling it touches no disk: the file is opened on first use.
import type { Store } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { clockCheck, optionsOf } from '../../options.ts'
import { steadyClock, systemClock } from '../plan/clock.ts'
import { loadDriver } from './driver.ts'
import { realFileSystemOf } from './file.ts'
import type { Mark } from './mark.ts'
import { SqliteStore } from './store.ts'

export type { Mark } from './mark.ts'

export type SqliteOptions = { readonly clock?: Clock }

const checkOptions = optionsOf<SqliteOptions>('sqlite', { clock: clockCheck })

/** A store that can tell whether it is the one it was, and has all that it had. */
export type SqliteFile = Store & {
  /** How far it is now. Keep it elsewhere to notice another file, or an older copy, later. */
  mark(): Promise<Mark>
  /** Refuses with `store_replaced` unless it goes on from that mark. */
  verify(mark: Mark): Promise<void>
  /** Why it takes no writes: it was moved, what is moved to it is not complete, or it has less than was acknowledged. Null: it does. */
  moved(): Promise<string | null>
}

export function sqlite(path: string, options: SqliteOptions = {}): SqliteFile {
  checkOptions(options)
  const { clock = systemClock } = options
  const steady = options.clock ?? steadyClock
  return new SqliteStore(path, { clock, steady, loadDriver, fileSystemOf: realFileSystemOf })
}
