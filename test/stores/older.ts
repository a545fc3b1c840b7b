// Files as older schemas had them, made from one of now. What a schema changed is taken back, with the sums it wrote.
import { crc32, rowSum } from '../../src/stores/plan/checksum.ts'
import type { Database } from '../../src/stores/sqlite/driver.ts'

type Head = {
  readonly n: number
  readonly seq: number
  readonly at: number
  readonly pos: number
  readonly tail: string
}
type Kept = { readonly n: number; readonly seq: number; readonly version: number; readonly body: string }

/** As a file was before its cards said what their logs say of themselves. */
export function withoutFacts(db: Database): void {
  const heads = db.prepare('SELECT n, seq, at, pos, tail FROM heads').all() as Head[]
  for (const { n, seq, at, pos, tail } of heads)
    db.prepare('UPDATE heads SET sum = ? WHERE n = ?').run(rowSum(n, seq, at, pos, tail), n)
  const snapshots = db.prepare('SELECT key / 134217728 AS n, key % 134217728 AS seq, version, body FROM snapshots')
  const kept = snapshots.all() as Kept[]
  db.exec(`DROP TABLE snapshots; DROP TABLE finds; DROP INDEX sessions_owner; DROP INDEX sessions_waiting;
    ALTER TABLE heads DROP COLUMN tokens;
    CREATE TABLE snapshots (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL) STRICT`)
  for (const column of ['agent', 'created', 'title', 'owner', 'facts_sum'])
    db.exec(`ALTER TABLE sessions DROP COLUMN ${column}`)
  const insert = db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)')
  for (const { n, seq, version, body } of kept) insert.run(n, seq, version, crc32(body) | 0, body)
  db.exec('UPDATE meta SET version = 9')
}

/** And before its children said whose they are, its workers which process they are, and its sessions where they work. */
export function withoutParents(db: Database): void {
  withoutFacts(db)
  db.exec('DROP INDEX sessions_parent; ALTER TABLE sessions DROP COLUMN parent; UPDATE meta SET version = 8')
}

export function withoutProcesses(db: Database): void {
  withoutParents(db)
  for (const column of ['host', 'pid', 'started']) db.exec(`ALTER TABLE workers DROP COLUMN ${column}`)
  db.exec('UPDATE meta SET version = 6')
}

export function withoutFolders(db: Database): void {
  withoutProcesses(db)
  db.exec('DROP INDEX sessions_folder; ALTER TABLE sessions DROP COLUMN folder; UPDATE meta SET version = 5')
}
