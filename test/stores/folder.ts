// Fresh folders on disk for the tests of the SQLite store, and connections that go behind its back.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/ports/system.ts'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import { type Database, type Driver, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { realFileSystemOf } from '../../src/stores/sqlite/database-file.ts'
import { type SqliteMachine, SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

/** Gone after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'terret-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function makeFile(): string {
  return join(makeFolder(), 'terret.db')
}

/** Closed after the test. */
export function open(file: string, over: Partial<SqliteMachine> & { readonly clock?: Clock } = {}): SqliteStore {
  const machine = { clock: systemClock, loadDriver, fileSystemOf: realFileSystemOf, ...over }
  const store = new SqliteStore(file, machine)
  onTestFinished(() => store.close())
  return store
}

/** Runs SQL on the file as any other program would. */
export function meddle<T>(file: string, act: (db: Database) => T): T {
  const db = new (loadDriver())(file)
  try {
    return act(db)
  } finally {
    db.close()
  }
}

/** A driver whose connections are changed on the way. */
export function driverOf(change: (db: Database) => Database): Driver {
  const open = (path: string): Database => {
    const real = new (loadDriver())(path)
    return change({
      get isTransaction() {
        return real.isTransaction
      },
      exec: (sql) => real.exec(sql),
      prepare: (sql) => real.prepare(sql),
      close: () => real.close(),
    })
  }
  // Called with `new`, a function that returns an object stands in for a class.
  return function (this: unknown, path: string) {
    return open(path)
  } as unknown as Driver
}
