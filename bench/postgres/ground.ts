// A Postgres of its own for each case that measures one: fsync and full pages on, its data beside the other files of the bench.
// What is done on it is the case's.
import { chmodSync } from 'node:fs'
import pg from 'pg'
import type { CompleteStore } from '../../src/ports/store.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { noPostgres, Server } from '../../test/postgres/server.ts'

/** Said in place of the figures where there is none. */
export const lacks = noPostgres ? 'there is no Postgres on this machine' : null

export const SCHEMA = 'terret'

export type Ground = {
  readonly server: Server
  readonly store: CompleteStore
  /** A connection with nothing around it. */
  readonly bare: pg.Client
}

/** No autovacuum: a case is over before it would come, and its statements would be counted. */
const SETTINGS = { shared_buffers: '128MB', autovacuum: 'off' }

export async function onGround<T>(folder: string, work: (ground: Ground) => Promise<T>): Promise<T> {
  // The server's own user must get there, and makes its folder in the temporary one.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  const server = await Server.start({ fsync: true, settings: SETTINGS })
  const bare = new pg.Client({ connectionString: server.url() })
  const store = postgres(server.url())
  try {
    await bare.connect()
    await store.open()
    return await work({ server, store, bare })
  } finally {
    await store.close()
    await bare.end()
    await server.close()
  }
}

/** The one number that a statement gives. */
export async function numberOf(bare: pg.Client, text: string): Promise<number> {
  const { rows } = await bare.query<{ value: unknown }>(`select (${text}) as value`)
  return Number(rows[0]?.value)
}
