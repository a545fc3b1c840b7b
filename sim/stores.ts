// The stores that the simulator runs on: memory, a SQLite file, or a schema of a real Postgres. Each seed has an empty one, whose clock is
// the simulated one; its input and output are real, and go through a gate (gate.ts).
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CompleteStore } from '../src/ports/store.ts'
import type { Clock } from '../src/ports/system.ts'
import { steadyClock } from '../src/stores/plan/system-clock.ts'
import { PostgresConnections } from '../src/stores/postgres/connections.ts'
import { PostgresStore } from '../src/stores/postgres/postgres-store.ts'
import { loadDriver } from '../src/stores/sqlite/driver.ts'
import { realFileSystemOf } from '../src/stores/sqlite/database-file.ts'
import { SqliteStore } from '../src/stores/sqlite/sqlite-store.ts'

/** A store of one seed, and how it is thrown away. */
export type Kept = { readonly store: CompleteStore; readonly end: () => Promise<void> }
export type MakeStore = (clock: Clock, seed: number) => Kept

export function onSqlite(clock: Clock): Kept {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'terret-sim-'))
  const machine = { clock, steady: steadyClock, loadDriver, fileSystemOf: realFileSystemOf }
  const store = new SqliteStore(join(folder, 'sim.db'), machine)
  const end = async (): Promise<void> => {
    await store.close()
    rmSync(folder, { recursive: true })
  }
  return { store, end }
}

export function onPostgres(url: string): MakeStore {
  return (clock, seed) => {
    const connections = new PostgresConnections({ url })
    const schema = `sim_${process.pid}_${seed}`
    const store = new PostgresStore(connections, { schema, clock })
    const end = async (): Promise<void> => {
      await connections.lane.ask('', `drop schema if exists ${schema} cascade`)
      await store.close()
    }
    return { store, end }
  }
}
