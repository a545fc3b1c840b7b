// A rebuilt disk with the files of a Postgres server on it: the server begins there, recovers from its log, and is asked.
import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../src/kernel/failure.ts'
import { readPostgres } from '../../src/stores/postgres/postgres-move.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { account, Server } from '../postgres/server.ts'
import type { Ground } from './cut.ts'
import { DATA } from './record-postgres.ts'
import { DISK } from './record-sqlite.ts'

export type PostgresGround = Ground & { readonly close: () => Promise<void> }

/** Every table and index that is not the server's own. An index that is not sound is an error of the statement. */
const NOT_SOUND = `with ours as (select c.oid, c.relkind, c.relam from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'i')),
  heaps as (select h.msg from ours, lateral verify_heapam(ours.oid) h where ours.relkind = 'r'),
  trees as (select bt_index_check(ours.oid, true) from ours join pg_am on pg_am.oid = ours.relam
  where ours.relkind = 'i' and pg_am.amname = 'btree')
  select msg from heaps union all select null from (select count(*) from trees) counted`

/** One server for all cuts. Its folder is `folder`, which is there only while it runs. */
export async function startPostgresGround(folder: string): Promise<PostgresGround> {
  mkdirSync(join(folder, DISK), { recursive: true })
  giveTo(join(folder, DISK))
  const server = await Server.start({ data: join(folder, DATA) })
  await server.stop()
  return {
    // The number of a process that is gone; another process may have it now.
    leavesOut: (path) => path.endsWith('/postmaster.pid'),
    isThere: (tree) => tree.has(`${DATA}/PG_VERSION`),
    opening: (there) => ({
      open: async () => {
        giveTo(join(there, DISK))
        await server.up().catch((error: unknown) => {
          throw new Fault('io_error', `Postgres does not begin: ${String(error)}`)
        })
        const store = postgres(server.url())
        await store.open()
        return { store, reader: () => readPostgres({ url: server.url(), name: 'postgres' }) }
      },
      openBackup: (file) => sqlite(file),
      backups: join(there, DISK, 'backups'),
      archives: join(there, DISK, 'archive'),
      oracle: join(there, 'oracle.jsonl'),
      checkDatabase: async () => {
        const rows = await server
          .query<{ msg: string | null }>(NOT_SOUND)
          .catch((error: unknown) => [{ msg: String(error) }])
        return rows.flatMap(({ msg }) => (msg === null ? [] : [`integrity: ${msg}`]))
      },
    }),
    end: () => server.kill(),
    close: () => server.close(),
  }
}

/** The server's own account must have its files. */
function giveTo(folder: string): void {
  if (account === null) return
  chownSync(folder, account.uid, account.gid)
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    chownSync(join(folder, path), account.uid, account.gid)
}
