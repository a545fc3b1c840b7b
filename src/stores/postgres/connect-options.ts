// The user's options for reaching the database of a store. It names no type of the driver, so that programs without the
// driver compile.
import { type Checks, countCheck, nonEmptyCheck, flagCheck, requiredCheck, waitCheck } from '../../options.ts'

export type ConnectOptions = {
  /**
   * `postgres://user:password@host:5432/database`; several hosts with commas between them. `?pooled=true` and
   * `direct=host:5432` in the URL set the options of these names; `direct` uses the URL's user and database.
   */
  readonly url: string
  /**
   * The URL belongs to a pooler in transaction mode: statements have no names, and settings last for one transaction.
   */
  readonly pooled?: boolean
  /**
   * The server itself, behind a pooler, for hints. Without it a pooled store finds news only by looking each second.
   */
  readonly direct?: string
  /** False: no hints are sent or received, and news is found by looking each second. */
  readonly hints?: boolean
  /** How long server trouble is waited out. Default: 10 s. */
  readonly patienceMs?: number
  /** Default: 3 s. */
  readonly connectTimeoutMs?: number
  /** For one statement. Default: 8 s. */
  readonly statementTimeoutMs?: number
}

export const CONNECT_OPTIONS: Checks<ConnectOptions> = {
  url: requiredCheck(nonEmptyCheck, 'Give the database: postgres://user:password@host:5432/database.'),
  pooled: flagCheck,
  direct: nonEmptyCheck,
  hints: flagCheck,
  patienceMs: countCheck(0, 600_000),
  connectTimeoutMs: waitCheck,
  statementTimeoutMs: waitCheck,
}
