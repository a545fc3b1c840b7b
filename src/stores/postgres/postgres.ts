// `postgres(url)`: a durable store in a database shared by processes on any machines. The public entry;
// postgres-store.ts is the store itself. Importing it loads no driver, and calling it connects to nothing: `open` or
// the first use does.
import type { CompleteStore, Moving } from '../../ports/store.ts'
import { nonEmptyCheck, optionsChecker } from '../../options.ts'
import { CONNECT_OPTIONS, type ConnectOptions } from './connect-options.ts'
import { parseHosts } from './database-hosts.ts'
import { buildNetwork } from './network.ts'
import type { FreedRooms } from './event-rooms.ts'
import { PostgresStore } from './postgres-store.ts'
import { checkSchemaName, SCHEMA_DEFAULT } from './schema-texts.ts'

/** Options of `postgres`: the address, what stands between it and the server, and how long trouble is waited out. */
export type PostgresOptions = ConnectOptions & {
  /** The schema of its tables in the database: one for each store. Default: `terret`. */
  readonly schema?: string
  /**
   * The earlier result of this store's `id()`. If the store is gone or is another one, it is refused with
   * `store_replaced`, and no store is created.
   */
  readonly expects?: string
}

const checkOptions = optionsChecker<PostgresOptions>('postgres', {
  ...CONNECT_OPTIONS,
  schema: nonEmptyCheck,
  expects: nonEmptyCheck,
})

/** A store that can tell whether it was moved. */
export type PostgresDatabase = CompleteStore &
  Moving & {
    readonly moving: Moving
    /** Unique among all stores. */
    id(): Promise<string>
    /**
     * Frees the space of event tables whose sessions are all removed. Returns which tables were dropped, and which could
     * not be.
     */
    freeRooms(): Promise<FreedRooms>
  }

/**
 * A store in Postgres, which processes on any machines may share. Its tables are made in a schema of their own when
 * it is first used.
 */
export function postgres(options: string | PostgresOptions): PostgresDatabase {
  const given = typeof options === 'string' ? { url: options } : options
  checkOptions(given)
  const { schema = SCHEMA_DEFAULT, expects = null, ...connect } = given
  parseHosts(connect.url)
  if (connect.direct !== undefined) parseHosts(connect.direct)
  checkSchemaName(schema)
  const { connections, hints, post } = buildNetwork(connect, schema)
  return new PostgresStore(connections, { schema, expects, hints, post })
}
