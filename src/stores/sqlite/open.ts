// Opens the database of an SQLite store: version, WAL, schema. Ends with a connection whose file is known to be ours, or with a Fault.
// It does not wait: a busy file is an error here, and the caller tries again.
import { Fault } from '../../kernel/failure.ts'
import { checkVersion, type Database, type Driver } from './driver.ts'
import { identifyBoth } from './file.ts'
import { fillFacts } from './migrate.ts'
import {
  APPLICATION_ID,
  FACTS_SCHEMA,
  MIGRATIONS,
  prepareAll,
  SCHEMA,
  SCHEMA_VERSION,
  type Statements,
} from './schema.ts'

export type Connection = {
  readonly db: Database
  readonly file: string
  /** What stood at `file`, and at the log beside it, when it was opened. */
  readonly identity: string
  readonly statements: Statements
}

/** SQLite's own waiting stops the whole process, so it is short; longer waits go through the clock. */
const BUSY_MS = 25

/**
 * `alone`: the index of the log is kept in memory, and no other process can use the file meanwhile. A full disk has no room for the
 * index that processes share, and a file must be readable there.
 */
export function openFile(file: string, driver: Driver, alone = false): Connection {
  const db = new driver(file)
  try {
    if (alone) db.exec('PRAGMA locking_mode = EXCLUSIVE')
    checkVersion(ask(db, 'SELECT sqlite_version()') as string)
    db.exec(
      `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON`,
    )
    // What is removed is overwritten.
    db.exec('PRAGMA secure_delete = ON')
    // Before anything is written: another program's database must stay as it is.
    checkOwner(db, file)
    // A new file gives back pages that are no longer used. For one that is not, this alone would write to it.
    if (ask(db, 'PRAGMA page_count') === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    enterWal(db, file)
    db.exec('PRAGMA synchronous = FULL')
    ensureSchema(db, file)
    return { db, file, identity: identifyBoth(file), statements: prepareAll(db) }
  } catch (error) {
    db.close()
    throw error
  }
}

/** One driver keeps the file open until its statements are collected, so the log is moved into the file here. */
export function closeFile({ db }: Connection): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Others use the file, or the disk is full. Nothing is lost: the next process that opens it finds the log where it is.
  }
  db.close()
}

/** False for a file that is empty, or a database without tables: opening it as a store would make one in it. */
export function hasTables(file: string, driver: Driver): boolean {
  let db: Database | null = null
  try {
    db = new driver(file)
    return ask(db, 'SELECT count(*) FROM sqlite_schema') !== 0
  } catch {
    // Damaged, locked, or of another kind: opening it as a store says which.
    return true
  } finally {
    db?.close()
  }
}

function ask(db: Database, sql: string): unknown {
  return Object.values(db.prepare(sql).get() as Readonly<Record<string, unknown>>)[0]
}

function checkOwner(db: Database, file: string): void {
  // Tables first: a process that makes them at this moment writes its id with them.
  const tables = ask(db, 'SELECT count(*) FROM sqlite_schema')
  const id = ask(db, 'PRAGMA application_id')
  if (id === APPLICATION_ID || (id === 0 && tables === 0)) return
  throw new Fault('store_unsupported', `${file} is a database of another program. Choose another path.`)
}

function enterWal(db: Database, file: string): void {
  if (ask(db, 'PRAGMA journal_mode = WAL') === 'wal') return
  throw new Fault('store_unsupported', `${file} is on a file system without shared memory (WAL).`)
}

/** One transaction: another process sees no schema, the one before, or all of this one. */
function ensureSchema(db: Database, file: string): void {
  if (versionOf(db, file) === SCHEMA_VERSION) return
  db.exec('BEGIN IMMEDIATE')
  try {
    const version = versionOf(db, file)
    if (version > 0) {
      for (let to = version + 1; to <= SCHEMA_VERSION; to++) {
        db.exec(MIGRATIONS[to] ?? '')
        if (to === FACTS_SCHEMA) fillFacts(db)
      }
      db.exec(`UPDATE meta SET version = ${SCHEMA_VERSION}`)
    } else {
      db.exec(SCHEMA)
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
      db.exec(`INSERT INTO meta (version, store) VALUES (${SCHEMA_VERSION}, lower(hex(randomblob(16))))`)
    }
    db.exec('COMMIT')
    if (version > 0) rebuild(db)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Others wait while it is rebuilt. So much is written in less time than they are ready to wait. */
const REBUILT_BYTES_MAX = 256 * 1024 * 1024

/** So that a file from before gives pages back too. One that is too large, or in use, stays as it is: its free pages are used again. */
function rebuild(db: Database): void {
  const bytes = Number(ask(db, 'PRAGMA page_count')) * Number(ask(db, 'PRAGMA page_size'))
  if (ask(db, 'PRAGMA auto_vacuum') !== 0 || bytes > REBUILT_BYTES_MAX) return
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
  } catch {
    // Busy, or no room for a second copy. Nothing was changed.
  }
}

/** 0 for a file that is still empty. */
function versionOf(db: Database, file: string): number {
  if (ask(db, `SELECT count(*) FROM sqlite_schema WHERE name = 'meta'`) === 0) return 0
  const version = Number(ask(db, 'SELECT version FROM meta'))
  if (version <= SCHEMA_VERSION) return version
  const text = `${file} was written by a newer version (schema ${version}, this is ${SCHEMA_VERSION}). Upgrade, or open another file.`
  throw new Fault('store_newer', text)
}
