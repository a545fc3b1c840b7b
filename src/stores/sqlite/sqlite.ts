// `sqlite(path)`: a durable store in one file. The public entry; sqlite-store.ts is the store itself. Importing it
// loads no SQLite, and calling it touches no disk: the file is opened on first use.
import type { CompleteStore, Moving } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { clockCheck, optionsChecker } from '../../options.ts'
import { steadyClock, systemClock } from '../plan/system-clock.ts'
import { loadDriver } from './driver.ts'
import { realFileSystemOf } from './database-file.ts'
import type { Mark } from './store-mark.ts'
import { SqliteStore } from './sqlite-store.ts'

export type { Mark } from './store-mark.ts'

/** Options of `sqlite`: a clock, for tests. */
export type SqliteOptions = {
  /** Gives the time of the store. Default: the clock of the machine. */
  readonly clock?: Clock
}

const checkOptions = optionsChecker<SqliteOptions>('sqlite', { clock: clockCheck })

/** A store that can check whether it is the same store as before, with everything it had. */
export type SqliteFile = CompleteStore &
  Moving & {
    readonly moving: Moving
    /** The present state as a mark. Keep it elsewhere to notice another file, or an older copy, later. */
    mark(): Promise<Mark>
    /** Refuses with `store_replaced` unless the store continues from that mark. */
    verify(mark: Mark): Promise<void>
  }

/**
 * A store in one file, which any processes of one machine may share. It must not lie on a network drive. The file is
 * made when it is first used.
 */
export function sqlite(path: string, options: SqliteOptions = {}): SqliteFile {
  checkOptions(options)
  const { clock = systemClock } = options
  const steady = options.clock ?? steadyClock
  return new SqliteStore(path, { clock, steady, loadDriver, fileSystemOf: realFileSystemOf })
}
