// How the database of a store is reached, as its user says it. It names no type of the driver, so that programs without one compile.
import { type Checks, count, filled, flag, needed, wait } from '../../options.ts'

export type ConnectOptions = {
  /**
   * `postgres://user:password@host:5432/database`; several hosts with commas between them. `?pooled=true` and `direct=host:5432` in it
   * are the options of these names, for whoever has only a URL to give: `direct` has the user and the database of the URL.
   */
  readonly url: string
  /** The URL is a pooler's in transaction mode: statements have no names, and settings last for one transaction. */
  readonly pooled?: boolean
  /** The server itself, behind a pooler, for hints. Without it a pooled store finds news only by its look each second. */
  readonly direct?: string
  /** False: no hints are sent or heard, and news is found by a look each second. */
  readonly hints?: boolean
  /** How long trouble of the server is waited out. Default: 10 s. */
  readonly patienceMs?: number
  /** Default: 3 s. */
  readonly connectTimeoutMs?: number
  /** For one statement. Default: 8 s. */
  readonly statementTimeoutMs?: number
}

export const CONNECT_OPTIONS: Checks<ConnectOptions> = {
  url: needed(filled, 'Give the database: postgres://user:password@host:5432/database.'),
  pooled: flag,
  direct: filled,
  hints: flag,
  patienceMs: count(0, 600_000),
  connectTimeoutMs: wait,
  statementTimeoutMs: wait,
}
