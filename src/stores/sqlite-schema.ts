// The tables of an SQLite store and every statement run on them, prepared once. No logic: sqlite-batch.ts writes, sqlite-read.ts reads.
import type { Database, Statement } from './sqlite-driver.ts'

/** Raised with each released schema. A newer file is refused; an older one is migrated when it is opened. */
export const SCHEMA_VERSION = 1

/** Marks the file as ours ("Trrt"), so that another program's database is never taken over. */
export const APPLICATION_ID = 0x54727274

/** An event's key is its session's number times this, plus its seq: one integer, and a session's events lie side by side. */
export const SPAN = 2 ** 27

export const SCHEMA = `
  CREATE TABLE meta (version INTEGER NOT NULL, store TEXT NOT NULL) STRICT;
  CREATE TABLE events (key INTEGER PRIMARY KEY, sum INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
  CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
  CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, at REAL NOT NULL, sum INTEGER NOT NULL,
    epoch INTEGER NOT NULL, worker TEXT, due REAL, status TEXT NOT NULL, root TEXT NOT NULL, card TEXT NOT NULL
  ) STRICT;
  -- A leased session is in neither of the first two while it runs: its commits touch no index.
  CREATE INDEX sessions_due ON sessions (due) WHERE worker IS NULL AND due IS NOT NULL;
  CREATE INDEX sessions_worker ON sessions (worker) WHERE worker IS NOT NULL;
  CREATE INDEX sessions_status ON sessions (status, id);
  CREATE INDEX sessions_root ON sessions (root, id);
  CREATE TABLE inbox (session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (session, id)) STRICT, WITHOUT ROWID;
  CREATE TABLE workers (id TEXT PRIMARY KEY, until REAL NOT NULL, ttl REAL NOT NULL, address TEXT) STRICT, WITHOUT ROWID;
  CREATE TABLE accounts (id TEXT PRIMARY KEY, cap REAL, held REAL NOT NULL, spent REAL NOT NULL, assumed REAL NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE holds (key TEXT PRIMARY KEY, amount REAL NOT NULL, accounts TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE blobs (n INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, media TEXT NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
  -- Who refers to a blob: what a sweep will ask.
  CREATE TABLE blob_refs (hash TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (hash, session)) STRICT, WITHOUT ROWID;
  CREATE TABLE snapshots (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
`

/** How many events one INSERT takes: a driver call costs as much as two rows. */
const INSERT_ROWS = [32, 8, 2, 1] as const

const LIST = 'SELECT id, seq, at, due, card FROM sessions WHERE id > ?'
const HEAD = 'SELECT s.n, s.seq, s.at, s.sum, s.epoch, s.worker, s.due, s.status, s.root'

const SQL = {
  // Transactions.
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  dataVersion: 'PRAGMA data_version',
  // Sessions.
  head: `${HEAD}, e.sum AS last FROM sessions s LEFT JOIN events e ON e.key = s.n * ${SPAN} + s.seq WHERE s.id = ?`,
  seq: 'SELECT n, seq, sum FROM sessions WHERE id = ?',
  count: 'SELECT coalesce(max(n), 0) AS n FROM sessions',
  create: `INSERT INTO sessions (seq, at, sum, due, epoch, worker, status, root, card, id, n) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  append: 'UPDATE sessions SET seq = ?, at = ?, sum = ?, due = ? WHERE n = ?',
  grow: 'UPDATE sessions SET seq = ?, at = ?, sum = ?, due = ?, card = ? WHERE n = ?',
  lease: 'UPDATE sessions SET seq = ?, at = ?, sum = ?, due = ?, epoch = ?, worker = ? WHERE n = ?',
  replace: `UPDATE sessions SET seq = ?, at = ?, sum = ?, due = ?, epoch = ?, worker = ?, status = ?, root = ?, card = ? WHERE n = ?`,
  // Events.
  chunk:
    'SELECT group_concat(body) AS text, count(*) AS count, max(key), sum FROM (SELECT key, sum, body FROM events WHERE key > ? AND key <= ? ORDER BY key)',
  event: 'SELECT sum, body FROM events WHERE key = ?',
  sum: 'SELECT sum FROM events WHERE key = ?',
  admitted: `SELECT i.seq, e.body FROM inbox i JOIN events e ON e.key = i.session * ${SPAN} + i.seq WHERE i.session = ? AND i.id = ?`,
  admit: 'INSERT INTO inbox (session, id, seq) VALUES (?, ?, ?)',
  // Leases.
  worker: 'SELECT until, ttl, address FROM workers WHERE id = ?',
  keepWorker: `INSERT INTO workers (id, until, ttl, address) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, ttl = excluded.ttl, address = excluded.address`,
  forgetWorkers:
    'DELETE FROM workers WHERE until < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE worker = workers.id)',
  held: 'SELECT id, epoch FROM sessions WHERE worker = ?',
  address: 'SELECT w.address FROM sessions s JOIN workers w ON w.id = s.worker WHERE s.id = ? AND w.until > ?',
  // Due.
  dueFree: 'SELECT id, due, n FROM sessions WHERE worker IS NULL AND due <= ? ORDER BY due, n LIMIT ?',
  dueLost: `SELECT s.id, s.due, s.n FROM workers w CROSS JOIN sessions s ON s.worker = w.id
    WHERE w.until <= ? AND s.due <= ? ORDER BY s.due, s.n LIMIT ?`,
  nextFree: 'SELECT id, due FROM sessions WHERE worker IS NULL AND due IS NOT NULL ORDER BY due LIMIT ?',
  nextLeased: `SELECT min(CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE worker = w.id AND due <= w.until) THEN w.until
    ELSE (SELECT min(due) FROM sessions WHERE worker = w.id) END) AS due FROM workers w`,
  // Cards.
  card: 'SELECT seq, at, due, card FROM sessions WHERE id = ?',
  list: `${LIST} ORDER BY id LIMIT ?`,
  listStatus: `${LIST} AND status = ? ORDER BY id LIMIT ?`,
  listRoot: `${LIST} AND root = ? ORDER BY id LIMIT ?`,
  listBoth: `${LIST} AND status = ? AND root = ? ORDER BY id LIMIT ?`,
  // Money.
  account: 'SELECT id, cap, held, spent, assumed FROM accounts WHERE id = ?',
  keepAccount: `INSERT INTO accounts (id, cap, held, spent, assumed) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET cap = excluded.cap, held = excluded.held, spent = excluded.spent, assumed = excluded.assumed`,
  hold: 'SELECT amount, accounts FROM holds WHERE key = ?',
  keepHold:
    'INSERT INTO holds (key, amount, accounts) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET amount = excluded.amount, accounts = excluded.accounts',
  dropHold: 'DELETE FROM holds WHERE key = ?',
  // Blobs and snapshots.
  blob: 'SELECT media, sum, data FROM blobs WHERE hash = ?',
  keepBlob: 'INSERT INTO blobs (hash, media, sum, data) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING',
  referBlob: 'INSERT INTO blob_refs (hash, session) VALUES (?, ?) ON CONFLICT DO NOTHING',
  snapshot:
    'SELECT p.seq, p.version, p.sum, p.body FROM sessions s JOIN snapshots p ON p.session = s.n WHERE s.id = ? AND p.seq <= s.seq',
  keepSnapshot: `INSERT INTO snapshots (session, seq, version, sum, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, version = excluded.version, sum = excluded.sum, body = excluded.body`,
} as const

export type Statements = Readonly<Record<keyof typeof SQL, Statement>> & {
  readonly insert: readonly { readonly rows: number; readonly statement: Statement }[]
}

export function prepareAll(db: Database): Statements {
  const entries = Object.entries(SQL).map(([name, sql]) => [name, db.prepare(sql)] as const)
  const insert = INSERT_ROWS.map((rows) => {
    // OR ROLLBACK: without it SQLite copies every page first, to be able to take back half a statement. We never keep half.
    const values = Array.from({ length: rows }, () => '(?, ?, ?)').join(', ')
    return { rows, statement: db.prepare(`INSERT OR ROLLBACK INTO events (key, sum, body) VALUES ${values}`) }
  })
  return { ...(Object.fromEntries(entries) as Record<keyof typeof SQL, Statement>), insert }
}
