// How the store asks its database, as types: one statement at a time, on one of its connections. What a connection is, is connect.ts.
import type { Fault } from '../../kernel/failure.ts'

/** A value of a statement. Lists become arrays; `bigint` columns are read as numbers, and refused beyond 2^53. */
export type SqlValue = string | number | boolean | null | Uint8Array | readonly SqlValue[]

export interface Sql {
  /**
   * Rows of one statement. `name` is for a prepared statement, the same for the same text. Rejects with a Fault where the trouble is the
   * database's, and with `Stale` where the present has moved (a guard of the statement failed). `unsorted`: what an index has in order
   * is read in that order, and never sorted; outside of transactions only.
   */
  ask<Row extends object>(
    name: string,
    text: string,
    values?: readonly SqlValue[],
    options?: { readonly unsorted?: boolean },
  ): Promise<readonly Row[]>
}

/** The connection of the writes: one, on which what is asked is done in order. A lost answer rejects with `Unknown`. */
export interface LaneSql extends Sql {
  /**
   * Several statements as one transaction. `work` may run again from its beginning, when nothing of it is done. `isLong`: a statement of
   * it may take as long as it needs.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, options?: { readonly isLong?: boolean }): Promise<T>
}

/** The connections of one store. */
export interface Connections {
  readonly lane: LaneSql
  readonly reader: Sql
  /** For heartbeats alone, so that none waits behind a write or a long read. */
  readonly heartbeat: Sql
  /** How long trouble that may pass is waited for. */
  readonly patienceMs: number
  /** How many were made so far. */
  readonly made: number
  /** Ready to be asked. May be called again. */
  open(): Promise<void>
  close(): Promise<void>
}

/** A guard of the statement failed: what it was planned on is no longer so, and nothing of it was done. Read, plan and write again. */
export class Stale extends Error {
  constructor() {
    super('The present has moved.')
    this.name = 'Stale'
  }
}

/**
 * Another transaction kept a row locked for longer than a statement waits. Nothing was done. Only the lane rejects with this: it sets
 * aside what needs the row, and goes on with the rest.
 */
export class Locked extends Error {
  /** For the caller, once patience is over. */
  readonly fault: Fault
  constructor(fault: Fault) {
    super(fault.message)
    this.name = 'Locked'
    this.fault = fault
  }
}

/**
 * A statement was sent and no answer came: it may have been done. Only the lane rejects with this, and only the store's lane catches
 * it: it plans the same writes anew, on what is there by then, and commits that. This is safe because a write that is there already
 * gets its receipts again (B-STORE-175); the bare statement again is not, since its guard would fail on its own success.
 */
export class Unknown extends Error {
  /** For the caller, once patience is over. */
  readonly fault: Fault
  constructor(fault: Fault) {
    super(fault.message)
    this.name = 'Unknown'
    this.fault = fault
  }
}
