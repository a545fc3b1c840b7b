// `postgres(url)`: a durable store in a database that processes on any machines share. The public door; the store itself is store.ts.
// Importing it loads no driver, and calling it connects to nothing: that is done by `open`, or by the first use.
import type { Store } from '../../ports/store.ts'
import { filled, optionsOf } from '../../options.ts'
import { CONNECT_OPTIONS, type ConnectOptions } from './connect-options.ts'
import { hostsOf } from './hosts.ts'
import { network } from './network.ts'
import type { FreedRooms } from './rooms.ts'
import { PostgresStore } from './store.ts'
import { checkSchemaName, SCHEMA_DEFAULT } from './texts.ts'

export type PostgresOptions = ConnectOptions & {
  /** Where its tables lie in the database: one for each store that shares it. Default: `terret`. */
  readonly schema?: string
  /** What `id()` of this store said before. If the store is gone or is another one, it is refused with `store_replaced`, and none is made. */
  readonly expects?: string
}

const checkOptions = optionsOf<PostgresOptions>('postgres', { ...CONNECT_OPTIONS, schema: filled, expects: filled })

/** A store that can tell whether it was moved. */
export type PostgresDatabase = Store & {
  /** Why it takes no writes: it was moved to another store, or what is moved to it is not complete. Null: it does. */
  moved(): Promise<string | null>
  /** As no other store calls itself. */
  id(): Promise<string>
  /** Gives back the space of events whose sessions are all gone. Says which tables went, and which could not. */
  freeRooms(): Promise<FreedRooms>
}

export function postgres(options: string | PostgresOptions): PostgresDatabase {
  const given = typeof options === 'string' ? { url: options } : options
  checkOptions(given)
  const { schema = SCHEMA_DEFAULT, expects = null, ...connect } = given
  hostsOf(connect.url)
  if (connect.direct !== undefined) hostsOf(connect.direct)
  checkSchemaName(schema)
  const { connections, hints, post } = network(connect, schema)
  return new PostgresStore(connections, { schema, expects, hints, post })
}
