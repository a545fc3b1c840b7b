// The floor of every durable bench: one bare table of JSON bodies, written and read by hand. Same driver, same file
// system, same WAL and synchronous=FULL as the store; no leases, no checksums, no cards.
import { type Database, loadDriver } from '../src/stores/sqlite/driver.ts'
// The store loads this when it is first used: what it costs to load code is no part of what a file costs.
import '../src/stores/sqlite/store-parts.ts'

export type Bare = {
  readonly db: Database
  /** One transaction, one fsync. Continues the table. */
  insert(bodies: readonly string[]): void
  /** Row by row, each parsed alone. */
  readRows(): readonly unknown[]
  /** Many rows a query, parsed as one text and let go: the fastest way known. Returns how many there were. */
  readChunks(after: number): number
  close(): void
}

const CHUNK = 512

export function openBare(file: string): Bare {
  const db = new (loadDriver())(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('CREATE TABLE IF NOT EXISTS events (key INTEGER PRIMARY KEY, body TEXT NOT NULL)')
  const count = () => (db.prepare('SELECT coalesce(max(key), 0) AS count FROM events').get() as { count: number }).count
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const insert = db.prepare('INSERT INTO events (key, body) VALUES (?, ?)')
  const chunk = db.prepare(
    'SELECT group_concat(body) AS text FROM (SELECT body FROM events WHERE key > ? AND key <= ?)',
  )
  let key = count()
  return {
    db,
    insert(bodies) {
      begin.run()
      for (const body of bodies) insert.run(++key, body)
      commit.run()
    },
    readRows() {
      const rows = db.prepare('SELECT body FROM events ORDER BY key').all() as { body: string }[]
      return rows.map(({ body }) => JSON.parse(body) as unknown)
    },
    readChunks(after) {
      let read = 0
      for (let at = after; at < key; at += CHUNK) {
        const { text } = chunk.get(at, at + CHUNK) as { text: string }
        read += (JSON.parse(`[${text}]`) as unknown[]).length
      }
      return read
    },
    close: () => db.close(),
  }
}

/** Loads the driver, so that what is measured next does not pay for it. */
export function warmDriver(): void {
  ;new (loadDriver())(':memory:').close()
}

/** Moves the write-ahead log into the file and cuts it to nothing: what is left is what is stored. `sql` runs before. */
export function checkpoint(file: string, sql = ''): void {
  const db = new (loadDriver())(file)
  if (sql !== '') db.exec(sql)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

export function sqliteVersion(): string {
  const db = new (loadDriver())(':memory:')
  const { version } = db.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  db.close()
  return version
}
