// The tables of an SQLite store and every statement run on them, prepared once. No logic: sqlite-batch.ts writes,
// read-store.ts reads.
import { LANE_AGENTS } from '../../view/lanes.ts'
import type { Database, Statement } from './driver.ts'

/** Increased with each released schema. A newer file is refused; an older one is migrated when it is opened. */
export const SCHEMA_VERSION = 11

/** The first schema whose rows contain facts from their logs. */
export const FACTS_SCHEMA = 10

/** Marks the file as ours ("Trrt"), so that another program's database is never taken over. */
export const APPLICATION_ID = 0x54727274

/** A span's key is its session's number times this, plus the seq of its first event. */
export const SPAN = 2 ** 27

/** How many spans wait in the head's row before they move together to their own table. */
export const TAIL_MAX = 16

/**
 * Removed sessions, for good: their numbers are not given again, and their epochs are not repeated. Their content is
 * not kept.
 */
const REMOVALS = `
  CREATE TABLE removals (
    n INTEGER PRIMARY KEY, session TEXT NOT NULL, epoch INTEGER NOT NULL, agent TEXT NOT NULL, events INTEGER NOT NULL,
    bytes INTEGER NOT NULL, at REAL NOT NULL, by TEXT NOT NULL
  ) STRICT;
  CREATE INDEX removals_session ON removals (session);
  CREATE TRIGGER events_stay BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM removals WHERE n = old.session)
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
`

/** For each fork, the session that it reads before its own log. */
const FORKS = `
  CREATE TABLE forks (session INTEGER PRIMARY KEY, origin TEXT NOT NULL) STRICT;
  CREATE INDEX forks_origin ON forks (origin);
`

/**
 * For lists of the newest sessions without looking at all others. Every commit writes one more page for it. In a turn
 * this takes no measurable CPU; for a session that has rested for long it is some 5 % of a commit. An index of minutes,
 * written seldom, was slower than none for sessions that all worked in one minute.
 */
const NEWNESS = 'CREATE INDEX heads_at ON heads (at);'

/** Only roots have one. Within a folder the index has the order of numbers, which is the order of creation. */
const FOLDERS = 'CREATE INDEX sessions_folder ON sessions (folder) WHERE folder IS NOT NULL;'

/** Only children have one. */
const PARENTS = 'CREATE INDEX sessions_parent ON sessions (parent, id) WHERE parent IS NOT NULL;'

/** The labels that sessions are listed by. A session gets its labels when it is created, and keeps them. */
const LABELS = `
  CREATE TABLE IF NOT EXISTS labels (
    name TEXT NOT NULL, value TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (name, value, session)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS labels_session ON labels (session);
`

/** The owner, if the host named one. Agents are few and have no index, because every session would pay for it. */
const OWNERS = 'CREATE INDEX sessions_owner ON sessions (owner) WHERE owner IS NOT NULL;'

/** The texts that are searched, apart from the wide rows of sessions: a search reads all of them, in pieces. */
const FINDS = 'CREATE TABLE finds (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;'

/**
 * The key is the session's number times SPAN, plus the seq. `own`: its owner wrote it, and it has everything an owner
 * needs.
 */
const SNAPSHOTS = `
  CREATE TABLE snapshots (
    key INTEGER PRIMARY KEY, own INTEGER NOT NULL, version INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
`

/**
 * Sessions that may wait for a person: the rule of `mayWait` (view/pending-calls.ts) as a condition on the row. A
 * card's text is JSON without spaces, and quotes inside strings are escaped, so these texts can only be its own fields.
 */
const mayWaitSql = (of: '' | 's.'): string => `(${of}status = 'requires_action' OR instr(${of}card, '"asks":[]') = 0
    OR instr(${of}card, '"waits":[]') = 0 OR (${of}status = 'idle' AND instr(${of}card, '"outcome":"limit"') > 0))`

const WAITING = `CREATE INDEX sessions_waiting ON sessions (id) WHERE ${mayWaitSql('')};`

const REFERRED = 'CREATE INDEX blob_refs_session ON blob_refs (session);'

/**
 * Events are one growing table in the order of their commits, for all sessions: a commit of many sessions then touches
 * as few pages as one of a single session. A span is a run of one session's events that lie side by side. New spans
 * stand in `heads.tail` and move to `spans` sixteen at a time, so that index pages are seldom touched. Every commit
 * changes `heads`, few change `sessions`. All tables except `events` could be rebuilt from it.
 */
export const SCHEMA = `
  CREATE TABLE meta (version INTEGER NOT NULL, store TEXT NOT NULL) STRICT;
  CREATE TABLE events (pos INTEGER PRIMARY KEY, session INTEGER NOT NULL, sum INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
  CREATE TABLE heads (
    n INTEGER PRIMARY KEY, seq INTEGER, at REAL, pos INTEGER, tail TEXT, sum INTEGER, tokens INTEGER
  ) STRICT;
  CREATE TABLE spans (key INTEGER PRIMARY KEY, pos INTEGER NOT NULL) STRICT;
  CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, epoch INTEGER NOT NULL, worker TEXT, due REAL,
    status TEXT NOT NULL, root TEXT NOT NULL, card TEXT NOT NULL,
    urgent INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, trouble TEXT,
    sum INTEGER, card_sum INTEGER, folder TEXT, parent TEXT,
    agent TEXT, created REAL, title TEXT, owner TEXT, facts_sum INTEGER
  ) STRICT;
  CREATE INDEX sessions_due ON sessions (urgent, due) WHERE worker IS NULL AND due IS NOT NULL;
  CREATE INDEX sessions_worker ON sessions (worker) WHERE worker IS NOT NULL;
  CREATE INDEX sessions_status ON sessions (status, id);
  CREATE INDEX sessions_root ON sessions (root, id);
  CREATE TABLE inbox (
    session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, pos INTEGER NOT NULL, PRIMARY KEY (session, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE workers (
    id TEXT PRIMARY KEY, until REAL NOT NULL, ttl REAL NOT NULL, address TEXT, host TEXT, pid INTEGER, started INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY, cap REAL, held REAL NOT NULL, spent REAL NOT NULL, assumed REAL NOT NULL, sum INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE holds (
    key TEXT PRIMARY KEY, amount REAL NOT NULL, accounts TEXT NOT NULL, session TEXT, sum INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE blobs (
    n INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, media TEXT NOT NULL, sum INTEGER NOT NULL, data BLOB NOT NULL
  ) STRICT;
  -- Who refers to a blob: the last of them takes it along.
  CREATE TABLE blob_refs (hash TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (hash, session)) STRICT, WITHOUT ROWID;
  ${REMOVALS}${FORKS}${REFERRED}${NEWNESS}${FOLDERS}${LABELS}${PARENTS}${OWNERS}${FINDS}${SNAPSHOTS}${WAITING}
`

/** The migration to each schema from the one before, by number. */
export const MIGRATIONS: Readonly<Record<number, string>> = {
  // Sessions that were due before urgency was stored: only wakes and expiring questions may have to wait.
  2: `
    ALTER TABLE sessions ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN trouble TEXT;
    UPDATE sessions SET urgent = 1 WHERE due IS NOT NULL AND status IN ('idle', 'running');
    DROP INDEX sessions_due;
    CREATE INDEX sessions_due ON sessions (urgent, due) WHERE worker IS NULL AND due IS NOT NULL;
  `,
  // The session of a hold is in its key, the origin of a fork in its first event, references to blobs in any event. A
  // body that is not JSON is damaged, and found when it is read.
  3: `
    DROP TRIGGER events_stay;
    ${REMOVALS}${FORKS}${REFERRED}
    ALTER TABLE holds ADD COLUMN session TEXT;
    UPDATE holds SET session = substr(key, 1, length(rtrim(key, '0123456789')) - 1);
    INSERT INTO forks (session, origin) SELECT n, origin FROM (
      SELECT h.n, CASE WHEN json_valid(e.body) THEN json_extract(e.body, '$.fork.session') END AS origin
      FROM heads h LEFT JOIN spans p ON p.key = h.n * ${SPAN} + 1
      JOIN events e ON e.pos = coalesce(p.pos, CAST(substr(h.tail, 3) AS INTEGER))
    ) WHERE origin IS NOT NULL;
    INSERT OR IGNORE INTO blob_refs (hash, session) SELECT j.value, e.session
      FROM events e CROSS JOIN json_tree(CASE WHEN json_valid(e.body) THEN e.body ELSE 'null' END) j
      WHERE instr(e.body, '"type":"blob"') > 0 AND j.key = 'hash' AND j.type = 'text';
  `,
  // Existing rows have no checksum until they are written again.
  4: `
    ALTER TABLE heads ADD COLUMN sum INTEGER;
    ALTER TABLE sessions ADD COLUMN sum INTEGER;
    ALTER TABLE sessions ADD COLUMN card_sum INTEGER;
    ALTER TABLE accounts ADD COLUMN sum INTEGER;
    ALTER TABLE holds ADD COLUMN sum INTEGER;
  `,
  5: NEWNESS,
  // Older sessions have no folder.
  6: `ALTER TABLE sessions ADD COLUMN folder TEXT; ${FOLDERS}`,
  // Older workers did not name their process: their leases end by the clock.
  7: `
    ALTER TABLE workers ADD COLUMN host TEXT;
    ALTER TABLE workers ADD COLUMN pid INTEGER;
    ALTER TABLE workers ADD COLUMN started INTEGER;
  `,
  8: LABELS,
  // A child's id is its parent's id, a tilde and more.
  9: `
    ALTER TABLE sessions ADD COLUMN parent TEXT;
    UPDATE sessions SET parent = substr(id, 1, length(rtrim(id, replace(id, '~', ''))) - 1) WHERE root <> id AND instr(id, '~') > 1;
    ${PARENTS}
  `,
  // fill-facts.ts fills in the facts from the logs, and the checksums that they change.
  10: `
    ALTER TABLE heads ADD COLUMN tokens INTEGER;
    ALTER TABLE sessions ADD COLUMN agent TEXT;
    ALTER TABLE sessions ADD COLUMN created REAL;
    ALTER TABLE sessions ADD COLUMN title TEXT;
    ALTER TABLE sessions ADD COLUMN owner TEXT;
    ALTER TABLE sessions ADD COLUMN facts_sum INTEGER;
    ALTER TABLE snapshots RENAME TO snapshots_before;
    ${SNAPSHOTS}${FINDS}${OWNERS}
  `,
  11: WAITING,
}

/** The facts from a session's log in its row. */
const FACTS = 's.agent, s.created, s.title, s.owner, s.facts_sum AS factsSum, h.tokens'
const CARD = `SELECT s.n, s.id, s.epoch, s.worker, s.due, s.urgent, s.tries, s.trouble, s.status, s.root, s.folder, s.parent, s.sum, s.card,
  s.card_sum AS cardSum, h.seq, h.at, h.pos, h.tail, h.sum AS headSum, ${FACTS} FROM sessions s JOIN heads h ON h.n = s.n`

/** The condition that a session has all these labels. */
const allLabelsSql = (where: string): string => `NOT EXISTS (SELECT 1 FROM json_each(${where}) w WHERE NOT EXISTS
      (SELECT 1 FROM labels l WHERE l.name = w.key AND l.value = w.value AND l.session = s.n))`
/** Sessions that wait for a time, and no lanes. */
const MAY_WAKE = `s.status IN ('rescheduling', 'running') AND coalesce(s.agent, '') NOT GLOB '${LANE_AGENTS}*'`
/** Sessions with the first label that also have all others, and meet the other conditions. */
const LABELLED = `s.n IN (SELECT session FROM labels WHERE name = ?1 AND value = ?2)
    AND ${allLabelsSql('?3')}
    AND s.status = coalesce(?4, s.status) AND (?5 IS NULL OR s.folder = ?5)`
/** The children of one session. */
const BELOW = `s.parent = ?1 AND s.status = coalesce(?2, s.status) AND (?3 IS NULL OR s.folder = ?3) AND ${allLabelsSql('?4')}`
/**
 * Children in one state, by the index of states: it has no rows of other states. A child's id begins with its parent's
 * and "~".
 */
const BELOW_STATUS = `s.status = ?2 AND s.id > max(?5, ?1 || '~') AND s.id < ?1 || char(127)
    AND +s.parent = ?1 AND (?3 IS NULL OR s.folder = ?3) AND ${allLabelsSql('?4')}`
/** Blobs that only this session refers to. */
const ORPHANED = `hash IN (SELECT hash FROM blob_refs WHERE session = ?1)
    AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = blobs.hash AND r.session <> ?1)`

/** When a worker should look, and how earlier attempts went. */
const TURN = 'due = ?, urgent = ?, tries = ?, trouble = ?, sum = ?'

export const SQL = {
  // Transactions.
  begin: 'BEGIN IMMEDIATE',
  beginRead: 'BEGIN',
  commit: 'COMMIT',
  dataVersion: 'PRAGMA data_version',
  free: 'PRAGMA freelist_count',
  // Sessions.
  head: `SELECT s.n, h.seq, h.at, h.pos, h.tail, h.sum AS headSum, s.sum AS turnSum, e.sum, s.epoch, s.worker, s.due, s.urgent, s.status, s.tries, s.trouble,
    s.root, s.folder, s.parent, ${FACTS} FROM sessions s
    JOIN heads h ON h.n = s.n LEFT JOIN events e ON e.pos = h.pos AND e.session = s.n WHERE s.id = ?`,
  end: `SELECT s.n, h.seq, h.tail, e.sum FROM sessions s JOIN heads h ON h.n = s.n LEFT JOIN events e ON e.pos = h.pos WHERE s.id = ?`,
  seq: 'SELECT h.seq FROM sessions s JOIN heads h ON h.n = s.n WHERE s.id = ?',
  last: 'SELECT coalesce(max(pos), 0) AS pos FROM events',
  count: 'SELECT max(coalesce((SELECT max(n) FROM sessions), 0), coalesce((SELECT max(n) FROM removals), 0)) AS n',
  create: `INSERT INTO sessions (due, urgent, tries, trouble, sum, epoch, worker, status, root, folder, parent, card, card_sum,
    agent, created, title, owner, facts_sum, id, n)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  wake: `UPDATE sessions SET ${TURN} WHERE n = ?`,
  lease: `UPDATE sessions SET ${TURN}, epoch = ?, worker = ? WHERE n = ?`,
  describe: `UPDATE sessions SET ${TURN}, card = ?, card_sum = ? WHERE n = ?`,
  replace: `UPDATE sessions SET ${TURN}, epoch = ?, worker = ?, status = ?, root = ?, card = ?, card_sum = ?
    WHERE n = ?`,
  move: 'UPDATE sessions SET folder = ?, parent = ? WHERE n = ?',
  name: 'UPDATE sessions SET agent = ?, created = ?, title = ?, owner = ?, facts_sum = ? WHERE n = ?',
  lastFind: 'SELECT coalesce(max(n), 0) AS n FROM finds',
  find: 'INSERT INTO finds (n, text) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET text = excluded.text',
  // Events.
  spans: `SELECT group_concat((key - ?) || ',' || pos) AS text FROM (SELECT key, pos FROM spans
    WHERE key BETWEEN coalesce((SELECT max(key) FROM spans WHERE key BETWEEN ? AND ?), 0) AND ? AND key >= ? ORDER BY key)`,
  // In the order of the table; in any other order no checksum would match.
  chunk: 'SELECT group_concat(body) AS text FROM events WHERE pos BETWEEN ? AND ?',
  scattered: 'SELECT group_concat(e.body) AS text FROM json_each(?) j CROSS JOIN events e ON e.pos = j.value',
  sum: 'SELECT sum FROM events WHERE pos = ?',
  sizes: 'SELECT octet_length(e.body) AS bytes FROM json_each(?) j CROSS JOIN events e ON e.pos = j.value',
  event: 'SELECT sum, body FROM events WHERE pos = ?',
  grownIn: 'SELECT DISTINCT s.id FROM events e JOIN sessions s ON s.n = e.session WHERE e.pos > ? AND e.pos <= ?',
  admitted: 'SELECT i.seq, e.body FROM inbox i JOIN events e ON e.pos = i.pos WHERE i.session = ? AND i.id = ?',
  sent: 'SELECT i.seq FROM sessions s JOIN inbox i ON i.session = s.n WHERE s.id = ? AND i.id = ?',
  admit: 'INSERT INTO inbox (session, id, seq, pos) VALUES (?, ?, ?, ?)',
  // Leases.
  worker: 'SELECT until, ttl AS ttlMs, address, host, pid, started FROM workers WHERE id = ?',
  keepWorker: `INSERT INTO workers (id, until, ttl, address, host, pid, started) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, ttl = excluded.ttl, address = excluded.address,
      host = excluded.host, pid = excluded.pid, started = excluded.started`,
  holders: `SELECT id, until, ttl AS ttlMs, host, pid, started FROM workers w
    WHERE host = ? AND until > ? AND EXISTS (SELECT 1 FROM sessions WHERE worker = w.id)`,
  forgetWorkers:
    'DELETE FROM workers WHERE until < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE worker = workers.id)',
  held: 'SELECT id, epoch FROM sessions WHERE worker = ?',
  address: 'SELECT w.address, w.until, w.ttl AS ttlMs FROM sessions s JOIN workers w ON w.id = s.worker WHERE s.id = ?',
  // Due.
  dueFree:
    'SELECT id, due, n, urgent FROM sessions WHERE worker IS NULL AND urgent = ? AND due <= ? ORDER BY due, n LIMIT ?',
  dueFreeOf: `SELECT id, due, n, urgent FROM sessions WHERE worker IS NULL AND urgent = ? AND due <= ?
    AND agent IN (SELECT value FROM json_each(?)) ORDER BY due, n LIMIT ?`,
  dueLostOf: `SELECT s.id, s.due, s.n, s.urgent FROM workers w CROSS JOIN sessions s ON s.worker = w.id JOIN heads h ON h.n = s.n
    WHERE (w.until <= ?1 OR w.until - w.ttl > ?1 + ?2) AND (s.due <= ?1 OR (s.due > ?1 + ?2 AND h.at > ?1 + ?2))
    AND s.agent IN (SELECT value FROM json_each(?4)) ORDER BY s.urgent DESC, s.due, s.n LIMIT ?3`,
  nextFreeOf: `SELECT id, due FROM sessions WHERE worker IS NULL AND urgent = ? AND due IS NOT NULL
    AND agent IN (SELECT value FROM json_each(?)) ORDER BY due LIMIT ?`,
  dueLost: `SELECT s.id, s.due, s.n, s.urgent FROM workers w CROSS JOIN sessions s ON s.worker = w.id JOIN heads h ON h.n = s.n
    WHERE (w.until <= ?1 OR w.until - w.ttl > ?1 + ?2) AND (s.due <= ?1 OR (s.due > ?1 + ?2 AND h.at > ?1 + ?2))
    ORDER BY s.urgent DESC, s.due, s.n LIMIT ?3`,
  nextFree: 'SELECT id, due FROM sessions WHERE worker IS NULL AND urgent = ? AND due IS NOT NULL ORDER BY due LIMIT ?',
  nextLeased: `SELECT min(CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE worker = w.id AND due <= w.until) THEN w.until
    ELSE (SELECT min(due) FROM sessions WHERE worker = w.id) END) AS due FROM workers w`,
  // Times written by a clock that was ahead: of sessions without a worker, and of those whose worker's lease is in the
  // future too.
  pastWorkers: 'UPDATE workers SET until = ?1 WHERE until - ttl > ?2',
  anyAhead: 'SELECT 1 FROM workers w WHERE w.until - w.ttl > ? LIMIT 1',
  aheadFree: `SELECT s.id FROM sessions s JOIN heads h ON h.n = s.n
    WHERE s.worker IS NULL AND s.urgent = ?1 AND s.due > ?2 AND h.at > ?2`,
  aheadLost: `SELECT s.id FROM workers w CROSS JOIN sessions s ON s.worker = w.id JOIN heads h ON h.n = s.n
    WHERE w.until - w.ttl > ?1 AND s.due > ?1 AND h.at > ?1`,
  // Health.
  countSessions: 'SELECT count(*) AS count FROM sessions',
  countLeases: `SELECT count(*) AS count FROM workers w CROSS JOIN sessions s ON s.worker = w.id
    WHERE w.until > ?1 AND w.until - w.ttl <= ?1 + ?2`,
  countDueFree: 'SELECT count(*) AS count, min(due) AS since FROM sessions WHERE worker IS NULL AND due <= ?',
  countDueLost: `SELECT count(*) AS count, min(max(s.due, w.until)) AS since FROM workers w CROSS JOIN sessions s ON s.worker = w.id
    WHERE (w.until <= ?1 OR w.until - w.ttl > ?1 + ?2) AND s.due <= ?1`,
  // Cards.
  card: `${CARD} WHERE s.id = ?`,
  list: `${CARD} WHERE s.id > ? ORDER BY s.id LIMIT ?`,
  listStatus: `${CARD} WHERE s.id > ? AND s.status = ? ORDER BY s.id LIMIT ?`,
  listRoot: `${CARD} WHERE s.id > ? AND s.root = ? ORDER BY s.id LIMIT ?`,
  listBoth: `${CARD} WHERE s.id > ? AND s.status = ? AND s.root = ? ORDER BY s.id LIMIT ?`,
  listFolder: `${CARD} WHERE s.folder = ?1 AND s.id > ?2 AND s.status = coalesce(?3, s.status) AND s.root = coalesce(?4, s.root)
    ORDER BY s.id LIMIT ?5`,
  listWhere: `${CARD} WHERE ${LABELLED} AND s.id > ?6 AND s.root = coalesce(?7, s.root) ORDER BY s.id LIMIT ?8`,
  listBelow: `${CARD} WHERE ${BELOW} AND s.id > ?5 AND s.root = coalesce(?6, s.root) ORDER BY s.id LIMIT ?7`,
  listBelowStatus: `${CARD} WHERE ${BELOW_STATUS} AND s.root = coalesce(?6, s.root) ORDER BY s.id LIMIT ?7`,
  listWaiting: `${CARD} WHERE ${mayWaitSql('s.')}
    AND s.id > ?1 AND s.status = coalesce(?2, s.status) AND s.root = coalesce(?3, s.root) AND (?4 IS NULL OR s.parent = ?4)
    AND (?5 IS NULL OR s.folder = ?5) AND ${allLabelsSql('?6')} ORDER BY s.id LIMIT ?7`,
  listTrees: `${CARD} WHERE s.root IN (SELECT value FROM json_each(?)) AND s.id <> s.root ORDER BY s.root, s.id LIMIT ?`,
  wakingFree: `SELECT s.n, s.due FROM sessions s WHERE s.worker IS NULL AND s.urgent = ?1 AND s.due IS NOT NULL
    AND ${MAY_WAKE} AND ${allLabelsSql('?2')} ORDER BY s.due, s.n LIMIT ?3`,
  wakingHeld: `SELECT s.n, s.due FROM workers w CROSS JOIN sessions s ON s.worker = w.id WHERE s.due IS NOT NULL
    AND ${MAY_WAKE} AND ${allLabelsSql('?1')} ORDER BY s.due, s.n LIMIT ?2`,
  cards: `${CARD} WHERE s.n IN (SELECT value FROM json_each(?))`,
  labelsOf: 'SELECT name, value FROM labels WHERE session = ?',
  label: 'INSERT INTO labels (name, value, session) VALUES (?, ?, ?)',
  // Money.
  account: 'SELECT cap, held, spent, assumed, sum FROM accounts WHERE id = ?',
  keepAccount: `INSERT INTO accounts (id, cap, held, spent, assumed, sum) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id)
    DO UPDATE SET cap = excluded.cap, held = excluded.held, spent = excluded.spent, assumed = excluded.assumed,
      sum = excluded.sum`,
  hold: 'SELECT key, amount, accounts, session, sum FROM holds WHERE key = ?',
  keepHold: `INSERT INTO holds (key, amount, accounts, session, sum) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key)
    DO UPDATE SET amount = excluded.amount, accounts = excluded.accounts, session = excluded.session, sum = excluded.sum`,
  dropHold: 'DELETE FROM holds WHERE key = ?',
  // Blobs and snapshots.
  blob: 'SELECT media, sum, data FROM blobs WHERE hash = ?',
  refersToBlob: `SELECT 1 FROM blob_refs r JOIN sessions s ON s.n = r.session
    WHERE r.hash = ? AND s.root = (SELECT root FROM sessions WHERE id = ?)`,
  keepBlob: 'INSERT INTO blobs (hash, media, sum, data) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING',
  referBlob: 'INSERT INTO blob_refs (hash, session) VALUES (?, ?) ON CONFLICT DO NOTHING',
  snapshots: `SELECT p.key - s.n * ${SPAN} AS seq, p.version, p.sum, p.body FROM sessions s JOIN heads h ON h.n = s.n
    CROSS JOIN snapshots p ON p.key BETWEEN s.n * ${SPAN} AND s.n * ${SPAN} + min(h.seq, ?2) AND p.own >= ?3
    WHERE s.id = ?1 ORDER BY p.key DESC LIMIT 1 OFFSET ?4`,
  keepSnapshot: `INSERT INTO snapshots (key, own, version, sum, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key)
    DO UPDATE SET own = excluded.own, version = excluded.version, sum = excluded.sum, body = excluded.body
    WHERE excluded.own >= own OR excluded.version > version`,
  ownSnapshots: 'SELECT key FROM snapshots WHERE key BETWEEN ? AND ? AND own = 1 ORDER BY key DESC LIMIT 2',
  forgetSnapshot: 'DELETE FROM snapshots WHERE key = ?',
  // Removals.
  anyRemoved: 'SELECT EXISTS (SELECT 1 FROM removals) AS "any"',
  ended: 'SELECT max(epoch) AS epoch FROM removals WHERE session = ?',
  removed: 'SELECT count(*) AS count FROM removals',
  removals: 'SELECT session, agent, events, bytes, at, by FROM removals ORDER BY at DESC, n DESC LIMIT ?',
  keepRemoval: 'INSERT INTO removals (n, session, epoch, agent, events, bytes, at, by) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  family: 'SELECT id FROM sessions WHERE root = ?',
  keepFork: 'INSERT INTO forks (session, origin) VALUES (?, ?)',
  forksOf: 'SELECT f.session AS n, s.id FROM forks f LEFT JOIN sessions s ON s.n = f.session WHERE f.origin = ?',
  holdsOf: 'SELECT key, amount, accounts, session, sum FROM holds WHERE session = ?',
  agentOf: `SELECT CASE WHEN json_valid(card) THEN json_extract(card, '$.agent') END AS agent FROM sessions WHERE n = ?`,
  sizeOf: 'SELECT total(octet_length(body)) AS bytes FROM events WHERE pos BETWEEN ? AND ? AND session = ?',
  sizeOfBlobs: `SELECT total(octet_length(data)) AS bytes FROM blobs WHERE ${ORPHANED}`,
  accountsFrom: 'SELECT id FROM accounts WHERE id >= ? AND id < ?',
  dropAccount: 'DELETE FROM accounts WHERE id = ?',
  dropSession: 'DELETE FROM sessions WHERE n = ?',
  dropHead: 'DELETE FROM heads WHERE n = ?',
  dropSpans: 'DELETE FROM spans WHERE key BETWEEN ? AND ?',
  dropInbox: 'DELETE FROM inbox WHERE session = ?',
  dropSnapshots: 'DELETE FROM snapshots WHERE key BETWEEN ? AND ?',
  dropFind: 'DELETE FROM finds WHERE n = ?',
  dropFork: 'DELETE FROM forks WHERE session = ?',
  dropLabels: 'DELETE FROM labels WHERE session = ?',
  dropBlobs: `DELETE FROM blobs WHERE ${ORPHANED}`,
  dropBlobRefs: 'DELETE FROM blob_refs WHERE session = ?',
  dropEvents: 'DELETE FROM events WHERE pos BETWEEN ? AND ? AND session = ?',
  // Reads the whole table: only for a log whose spans do not cover all of it.
  dropStrays: 'DELETE FROM events WHERE session = ?',
} as const

/**
 * The same INSERT for many rows at once: a driver call costs as much as two rows. Largest first, the last one takes one
 * row.
 */
export type BulkInsert = {
  readonly width: number
  readonly sizes: readonly { readonly rows: number; readonly statement: Statement }[]
}

export type SqliteStatements = Readonly<Record<keyof typeof SQL, Statement>> & {
  readonly insertEvents: BulkInsert
  readonly keepHeads: BulkInsert
  readonly insertSpans: BulkInsert
  /** Prepares a statement that is built from parts: few of all possible ones are used. */
  readonly prepared: (sql: string) => Statement
}

/** Each is prepared when it is first used: a process that reads one session needs four of them. */
export function prepareAll(db: Database): SqliteStatements {
  const singles = Object.entries(SQL).map(([name, sql]) => [name, () => db.prepare(sql)] as const)
  return lazyObject<SqliteStatements>([
    ...singles,
    // OR ROLLBACK: otherwise SQLite copies every page first, to be able to undo half a statement. We never keep half.
    ['insertEvents', () => prepareBulk(db, 'INSERT OR ROLLBACK INTO events (session, sum, body)', [64, 16, 4, 2, 1])],
    [
      'keepHeads',
      () => prepareBulk(db, 'INSERT OR REPLACE INTO heads (n, seq, at, pos, tail, tokens, sum)', [32, 8, 1]),
    ],
    ['prepared', () => cacheStatements(db)],
    ['insertSpans', () => prepareBulk(db, 'INSERT OR ROLLBACK INTO spans (key, pos)', [TAIL_MAX, 1])],
  ])
}

const PREPARED_MAX = 200

function cacheStatements(db: Database): SqliteStatements['prepared'] {
  const known = new Map<string, Statement>()
  return (sql) => {
    const statement = known.get(sql) ?? db.prepare(sql)
    if (known.size >= PREPARED_MAX) known.clear()
    known.set(sql, statement)
    return statement
  }
}

function prepareBulk(db: Database, into: string, rows: readonly number[]): BulkInsert {
  const width = into.split(',').length
  const row = `(${Array.from({ length: width }, () => '?').join(', ')})`
  const prepare = (count: number) => db.prepare(`${into} VALUES ${Array.from({ length: count }, () => row).join(', ')}`)
  const sizes = rows.map((count) =>
    lazyObject<BulkInsert['sizes'][number]>([
      ['rows', () => count],
      ['statement', () => prepare(count)],
    ]),
  )
  return { width, sizes }
}

/** An object whose fields are computed when they are first read. */
function lazyObject<T extends object>(fields: readonly (readonly [string, () => unknown])[]): T {
  const object = {}
  for (const [name, make] of fields) {
    const get = () => {
      const value = make()
      Object.defineProperty(object, name, { value })
      return value
    }
    Object.defineProperty(object, name, { get, configurable: true })
  }
  return object as T
}
