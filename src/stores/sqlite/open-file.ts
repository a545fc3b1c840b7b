// Opens the database of an SQLite store: version, WAL, schema. Returns a connection to a file that is known to be ours,
// or throws a Fault. It does not wait: a busy file is an error here, and the caller tries again.
import { Fault } from '../../kernel/failure.ts'
import { checkVersion, type Database, type Driver } from './driver.ts'
import { filesIdentity } from './database-file.ts'
import { fillFacts } from './fill-facts.ts'
import {
  APPLICATION_ID,
  FACTS_SCHEMA,
  MIGRATIONS,
  prepareAll,
  SCHEMA,
  SCHEMA_VERSION,
  type SqliteStatements,
} from './sqlite-schema.ts'

export type SqliteConnection = {
  readonly db: Database
  readonly file: string
  /** The identity of `file` and of the log beside it when they were opened. */
  readonly identity: string
  readonly statements: SqliteStatements
}

/** SQLite's own waiting blocks the whole process, so it is short; longer waits use the clock. */
const BUSY_MS = 25

/**
 * `alone`: the index of the log is kept in memory, and no other process can use the file meanwhile. A full disk has no
 * room for the shared index, and the file must still be readable.
 */
export function openSqliteFile(file: string, driver: Driver, alone = false): SqliteConnection {
  const db = new driver(file)
  try {
    if (alone) db.exec('PRAGMA locking_mode = EXCLUSIVE')
    checkVersion(readValue(db, 'SELECT sqlite_version()') as string)
    db.exec(
      `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON`,
    )
    // Removed data is overwritten.
    db.exec('PRAGMA secure_delete = ON')
    // Before anything is written: another program's database must stay unchanged.
    checkOwner(db, file)
    // A new file gives unused pages back. For an existing file this setting alone would write to it.
    if (readValue(db, 'PRAGMA page_count') === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    enterWal(db, file)
    db.exec('PRAGMA synchronous = FULL')
    ensureSchema(db, file)
    return { db, file, identity: filesIdentity(file), statements: prepareAll(db) }
  } catch (error) {
    db.close()
    throw error
  }
}

/** One driver keeps the file open until its statements are collected, so the log is moved into the file here. */
export function closeSqliteFile({ db }: SqliteConnection): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Other processes use the file, or the disk is full. Nothing is lost: the next process that opens it finds the log
    // in place.
  }
  db.close()
}

/** False for an empty file or a database without tables: opening it as a store would create one in it. */
export function hasTables(file: string, driver: Driver): boolean {
  let db: Database | null = null
  try {
    db = new driver(file)
    return readValue(db, 'SELECT count(*) FROM sqlite_schema') !== 0
  } catch {
    // Damaged, locked, or of another kind: opening it as a store reports which.
    return true
  } finally {
    db?.close()
  }
}

function readValue(db: Database, sql: string): unknown {
  return Object.values(db.prepare(sql).get() as Readonly<Record<string, unknown>>)[0]
}

function checkOwner(db: Database, file: string): void {
  // Tables first: a process that creates them at this moment writes its id with them.
  const tables = readValue(db, 'SELECT count(*) FROM sqlite_schema')
  const id = readValue(db, 'PRAGMA application_id')
  if (id === APPLICATION_ID || (id === 0 && tables === 0)) return
  throw new Fault('store_unsupported', `${file} is a database of another program. Choose another path.`)
}

function enterWal(db: Database, file: string): void {
  if (readValue(db, 'PRAGMA journal_mode = WAL') === 'wal') return
  throw new Fault('store_unsupported', `${file} is on a file system without shared memory (WAL).`)
}

/** One transaction: another process sees no schema, the old one, or the complete new one. */
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
    if (version > 0) rebuildFile(db)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Others wait while it is rebuilt. This much is written in less time than they are ready to wait. */
const REBUILT_BYTES_MAX = 256 * 1024 * 1024

/**
 * Lets an older file give pages back too. A file that is too large, or in use, stays as it is and reuses its free
 * pages.
 */
function rebuildFile(db: Database): void {
  const bytes = Number(readValue(db, 'PRAGMA page_count')) * Number(readValue(db, 'PRAGMA page_size'))
  if (readValue(db, 'PRAGMA auto_vacuum') !== 0 || bytes > REBUILT_BYTES_MAX) return
  try {
    db.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
  } catch {
    // Busy, or no room for a second copy. Nothing was changed.
  }
}

/** 0 for a file that is still empty. */
function versionOf(db: Database, file: string): number {
  if (readValue(db, `SELECT count(*) FROM sqlite_schema WHERE name = 'meta'`) === 0) return 0
  const version = Number(readValue(db, 'SELECT version FROM meta'))
  if (version <= SCHEMA_VERSION) return version
  const text = `${file} was written by a newer version (schema ${version}, this is ${SCHEMA_VERSION}). Upgrade, or open another file.`
  throw new Fault('store_newer', text)
}
