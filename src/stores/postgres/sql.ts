// How the store talks to its database, as types: one statement at a time, on one of its connections. connections.ts
// implements them.
import type { Fault } from '../../kernel/failure.ts'

/** A value of a statement. Lists become arrays; `bigint` columns are read as numbers, and refused beyond 2^53. */
export type PostgresValue = string | number | boolean | null | Uint8Array | readonly PostgresValue[]

export interface Sql {
  /**
   * Returns the rows of one statement. `name` is for a prepared statement, always with the same text. Rejects with a
   * Fault for database trouble, and with `StaleError` if a guard of the statement failed, because the rows have
   * changed. `unsorted`: rows are read in the order of an index and never sorted; outside transactions only.
   */
  ask<Row extends object>(
    name: string,
    text: string,
    values?: readonly PostgresValue[],
    options?: { readonly unsorted?: boolean },
  ): Promise<readonly Row[]>
}

/** The connection for writes, which handles requests in order. A lost answer rejects with `UnknownOutcomeError`. */
export interface WriteSql extends Sql {
  /**
   * Runs several statements as one transaction. `work` may run again from its beginning if nothing of it is done.
   * `isLong`: its statements may take as long as they need.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, options?: { readonly isLong?: boolean }): Promise<T>
}

/** The connections of one store. */
export interface StoreConnections {
  readonly lane: WriteSql
  readonly reader: Sql
  /** For heartbeats only, so that none waits behind a write or a long read. */
  readonly heartbeat: Sql
  /** How long temporary trouble is waited out. */
  readonly patienceMs: number
  /** The number of connections made so far. */
  readonly made: number
  /** Makes them ready for statements. May be called again. */
  open(): Promise<void>
  close(): Promise<void>
}

/**
 * A guard of the statement failed: the rows it was planned on have changed, and nothing was done. Read, plan and write
 * again.
 */
export class StaleError extends Error {
  constructor() {
    super('The present has moved.')
    this.name = 'Stale'
  }
}

/**
 * Another transaction kept a row locked for longer than a statement waits. Nothing was done. Only the lane rejects with
 * this: it sets aside the requests that need the row, and goes on with the rest.
 */
export class LockedError extends Error {
  /** For the caller, once patience is over. */
  readonly fault: Fault
  constructor(fault: Fault) {
    super(fault.message)
    this.name = 'Locked'
    this.fault = fault
  }
}

/**
 * A statement was sent and no answer came, so it may have been done. Only the lane rejects with this, and only the
 * store's write queue catches it: it plans the same writes again on the present rows and commits that. This is safe
 * because an existing write gets its receipts again (B-STORE-175); repeating the bare statement is not, since its guard
 * would fail on its own success.
 */
export class UnknownOutcomeError extends Error {
  /** For the caller, once patience is over. */
  readonly fault: Fault
  constructor(fault: Fault) {
    super(fault.message)
    this.name = 'Unknown'
    this.fault = fault
  }
}
