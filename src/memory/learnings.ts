// The learnings of agents in an SQLite file of their own, with a full-text index. It is a projection of the logs: the
// same events in any order give the same rows. So the file may be deleted, and is rebuilt when it is damaged.
import { hash } from 'node:crypto'
import { appendFileSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { Fault } from '../kernel/failure.ts'
import { checkVersion, type Database, loadDriver, type Statement } from '../stores/sqlite/driver.ts'
import { prepareFile, realFileSystemOf } from '../stores/sqlite/database-file.ts'
import type { Learning, LearningKind } from '../tools/core/directive.ts'
import type { SettledRun } from '../runtime/hooks/settled-run.ts'
import { episodeMark, type EpisodeOwner, EpisodeTable } from './episodes.ts'
import { matchQuery, WORDS_MAX } from './relevance.ts'

/** A learning and its origin: `session` and `seq` name its event. */
export type LearningRow = {
  readonly kind: LearningKind
  readonly title: string
  readonly detail: string
  readonly session: string
  readonly seq: number
  readonly at: number
  readonly promote: 0 | 1
  /** The user who opened the session that taught it; empty if the host did not say. */
  readonly owner: string
  /** A person shared it with all owners. */
  readonly shared: 0 | 1
  /** The events it was extracted from: seqs of its session, separated by commas. Empty: the log states it directly. */
  readonly source: string
}

/**
 * The state of extraction in a session: the progress that extraction.ts counts, and a paid answer that is not in the
 * log yet.
 */
export type ExtractionRow = { readonly place: string; readonly ready: string | null }

/**
 * A claim on a session's extraction, and how long it lasts. `isGone` tells whether another holder's process has surely
 * ended.
 */
export type ExtractionClaim = {
  readonly session: string
  readonly now: number
  readonly untilMs: number
  readonly holder: string
  readonly isGone: (holder: string) => boolean
}

/** The session, agent and owner of some learnings. `owner` is empty if the host did not say who opened the session. */
export type LearningOrigin = { readonly session: string; readonly agent: string; readonly owner: string }
export type FoundLearning = { readonly learning: Learning; readonly seq: number; readonly at: number }

/** Marks the file as ours ("Trrl"). */
const APPLICATION_ID = 0x5472726c
const SCHEMA_VERSION = 3
/** SQLite's own waiting blocks the whole process, so it is short; longer waits use the clock. */
const BUSY_MS = 25

const SOURCE = `ALTER TABLE learnings ADD COLUMN source TEXT NOT NULL DEFAULT '';`
const EXTRACTIONS = `
  CREATE TABLE extractions (
    session TEXT PRIMARY KEY, place TEXT NOT NULL, until REAL NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '', ready TEXT
  ) STRICT, WITHOUT ROWID;
`

/** `owner` is null only in rows of an older file, until the card of their session was read. */
const LEARNINGS = `
  CREATE TABLE learnings (
    id INTEGER PRIMARY KEY, agent TEXT NOT NULL, owner TEXT, key TEXT NOT NULL, kind TEXT NOT NULL, title TEXT NOT NULL,
    detail TEXT NOT NULL, promote INTEGER NOT NULL DEFAULT 0, session TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    source TEXT NOT NULL DEFAULT '', shared INTEGER NOT NULL DEFAULT 0, UNIQUE (agent, owner, key)
  ) STRICT;
  CREATE VIRTUAL TABLE words USING fts5(
    title, detail, content = 'learnings', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
  );
  CREATE TRIGGER words_add AFTER INSERT ON learnings BEGIN
    INSERT INTO words (rowid, title, detail) VALUES (new.id, new.title, new.detail);
  END;
  CREATE TRIGGER words_change AFTER UPDATE OF title, detail ON learnings BEGIN
    INSERT INTO words (words, rowid, title, detail) VALUES ('delete', old.id, old.title, old.detail);
    INSERT INTO words (rowid, title, detail) VALUES (new.id, new.title, new.detail);
  END;
`

const SCHEMA = `
  ${LEARNINGS}
  CREATE TABLE cursors (session TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  ${EXTRACTIONS}
  PRAGMA user_version = ${SCHEMA_VERSION};
`

/**
 * Upgrades an older file: its learnings stay and get their owners, the words are indexed anew, and the logs are read
 * again.
 */
const OWNED = `
  DROP TRIGGER IF EXISTS words_add; DROP TRIGGER IF EXISTS words_change; DROP TABLE words;
  ALTER TABLE learnings RENAME TO unowned;
  ${LEARNINGS}
  INSERT INTO learnings (id, agent, key, kind, title, detail, promote, session, seq, at, source)
    SELECT id, agent, key, kind, title, detail, promote, session, seq, at, source FROM unowned;
  DROP TABLE unowned;
  DELETE FROM cursors;
  PRAGMA user_version = ${SCHEMA_VERSION};
`

const ROW = 'kind, learnings.title, learnings.detail, session, seq, at, promote, owner, shared, source'
/**
 * The learnings that a session of this owner may read: those of the same owner's sessions, and those that a person
 * shared.
 */
const READABLE = '(learnings.owner = ? OR learnings.shared = 1)'
/**
 * Rows are returned as one text: only the errors of a driver's `get` tell a damaged file from a busy one, not those of
 * `all`.
 */
const ROWS = `SELECT json_group_array(json_object('kind', kind, 'title', title, 'detail', detail, 'session', session,
  'seq', seq, 'at', at, 'promote', promote,
  'owner', owner, 'shared', shared, 'source', source)) AS rows FROM (`
/**
 * A word that is in this many learnings says little about any of them. Ranking reads all learnings that have a word.
 */
const ROWS_MAX = 2_000
const RANKED_MAX = 10_000
const SQL = {
  // Of several learnings with one key the earliest stays, whatever order they come in.
  keep: `INSERT INTO learnings (agent, owner, key, kind, title, detail, session, seq, at, source, shared)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (agent, owner, key) DO UPDATE SET kind = excluded.kind, title = excluded.title, detail = excluded.detail,
    session = excluded.session, seq = excluded.seq, at = excluded.at, source = excluded.source, shared = excluded.shared
    WHERE (excluded.at, excluded.session, excluded.seq) < (learnings.at, learnings.session, learnings.seq)`,
  ask: 'UPDATE learnings SET promote = 1 WHERE agent = ? AND owner = ? AND key = ? AND promote = 0',
  move: `INSERT INTO cursors (session, seq) VALUES (?, ?)
    ON CONFLICT (session) DO UPDATE SET seq = max(seq, excluded.seq)`,
  cursor: 'SELECT seq FROM cursors WHERE session = ?',
  cursors: `SELECT json_group_array(json_array(session, seq)) AS rows FROM cursors`,
  list: `${ROWS} SELECT ${ROW} FROM learnings WHERE agent = ? AND owner = ? ORDER BY at, session, seq)`,
  owned: `SELECT json_group_array(json_array(agent, session, seq)) AS rows FROM learnings WHERE owner = ?`,
  unowned: 'SELECT json_group_array(DISTINCT session) AS rows FROM learnings WHERE owner IS NULL',
  own: 'UPDATE OR IGNORE learnings SET owner = ? WHERE owner IS NULL AND session = ?',
  share: 'UPDATE learnings SET shared = 1 WHERE id = ?',
  one: 'SELECT id, key, title, detail, owner FROM learnings WHERE agent = ? AND session = ? AND seq = ?',
  unword: `INSERT INTO words (words, rowid, title, detail) VALUES ('delete', ?, ?, ?)`,
  drop: 'DELETE FROM learnings WHERE id = ?',
  find: `${ROWS} SELECT ${ROW} FROM words JOIN learnings ON learnings.id = words.rowid
    WHERE words MATCH ? AND learnings.agent = ? AND ${READABLE} ORDER BY bm25(words, 4.0, 1.0), at DESC, session, seq LIMIT ?)`,
  newest: `${ROWS} SELECT ${ROW} FROM (SELECT words.rowid AS near FROM words JOIN learnings ON learnings.id = words.rowid
    WHERE words MATCH ? AND learnings.agent = ? AND ${READABLE} ORDER BY words.rowid DESC LIMIT ${ROWS_MAX})
    JOIN learnings ON learnings.id = near ORDER BY at DESC, session, seq LIMIT ?)`,
  having: `SELECT count(*) AS found FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ${ROWS_MAX})`,
  place: 'SELECT place, ready FROM extractions WHERE session = ?',
  put: `INSERT INTO extractions (session, place) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET place = excluded.place`,
  claimed: 'SELECT until, holder FROM extractions WHERE session = ?',
  claim: 'UPDATE extractions SET until = ?, holder = ? WHERE session = ?',
  ready: 'UPDATE extractions SET ready = ? WHERE session = ?',
  finish: `UPDATE extractions SET until = 0, holder = '', ready = NULL WHERE session = ?`,
  unfinished: `SELECT json_group_array(session) AS rows FROM
    (SELECT session FROM extractions WHERE until > 0 OR ready IS NOT NULL ORDER BY session LIMIT ?)`,
} as const

export class Learnings {
  readonly #db: Database
  readonly #file: string
  readonly #sql: Readonly<Record<keyof typeof SQL, Statement>>
  #episodes: EpisodeTable | null = null

  constructor(db: Database, file: string) {
    this.#db = db
    this.#file = file
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, db.prepare(sql)] as const)
    this.#sql = Object.fromEntries(prepared) as Record<keyof typeof SQL, Statement>
  }

  /** Stores what a session taught its agent, and how far its log was read, in one transaction. */
  take({ session, agent, owner }: LearningOrigin, taken: readonly FoundLearning[], seq: number): void {
    this.inTransaction(() => {
      const none: ReadonlySet<string> = new Set()
      const [forgotten, shared] = taken.length > 0 ? [this.#marks(FORGOTTEN), this.#marks(SHARED)] : [none, none]
      for (const { learning, seq: at, at: time } of taken) {
        const { kind, title, detail, promote } = learning
        const key = keyOf(learning)
        if (forgotten.has(markOf(agent, owner, key))) continue
        const isShared = shared.has(markOf(agent, owner, wordingOf({ key, title, detail }))) ? 1 : 0
        const source = (learning.from ?? []).join(',')
        this.#sql.keep.run(agent, owner, key, kind, title, detail, session, at, time, source, isShared)
        if (promote) this.#sql.ask.run(agent, owner, key)
      }
      this.#sql.move.run(session, seq)
    })
  }

  /** Runs in a transaction, so only one process at a time does this. */
  inTransaction<T>(act: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      const value = act()
      this.#db.exec('COMMIT')
      return value
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      // It may have made the table.
      this.#episodes = null
      throw error
    }
  }

  /**
   * Removes a learning for good, also when the file is rebuilt or another session learns the same. Only its hash is
   * kept. Call it in a transaction. False if there is no such learning.
   */
  forget(agent: string, session: string, seq: number): boolean {
    const row = this.#sql.one.get(agent, session, seq) as StoredLearning | undefined
    if (!row) return false
    this.#mark(FORGOTTEN, markOf(agent, row.owner ?? '', row.key))
    this.#sql.unword.run(row.id, row.title, row.detail)
    this.#sql.drop.run(row.id)
    return true
  }

  /**
   * Shares a learning with all owners, also when the file is rebuilt. Call it in a transaction. False if there is no
   * such learning.
   */
  share(agent: string, session: string, seq: number): boolean {
    const row = this.#sql.one.get(agent, session, seq) as StoredLearning | undefined
    if (!row) return false
    this.#mark(SHARED, markOf(agent, row.owner ?? '', wordingOf(row)))
    this.#sql.share.run(row.id)
    return true
  }

  /** The events of all learnings of an owner, for every agent. */
  ownedBy(owner: string): readonly (readonly [agent: string, session: string, seq: number])[] {
    return rowsOf(this.#sql.owned.get(owner))
  }

  /** Sessions of an older file whose learnings have no owner yet. */
  unownedSessions(): readonly string[] {
    return rowsOf(this.#sql.unowned.get())
  }

  setOwner(session: string, owner: string): void {
    this.#sql.own.run(owner, session)
  }

  /** The table is made with the first use. */
  get episodes(): EpisodeTable {
    this.#episodes ??= new EpisodeTable(this.#db)
    return this.#episodes
  }

  /** Writes the episode of a run, unless there is one under this key, or it was forgotten. */
  keepEpisode(key: string, settled: SettledRun): void {
    const { episodes } = this
    this.inTransaction(() => {
      if (!this.#marks(FORGOTTEN).has(episodeMark(key))) episodes.keep(key, settled)
    })
  }

  /** Removes one episode for good. Call it in a transaction. False if there is no such episode. */
  forgetEpisode(whose: EpisodeOwner, session: string, seq: number): boolean {
    return this.#dropEpisodes(this.episodes.keysAt(whose, session, seq)) > 0
  }

  /** Removes all episodes of an owner for good. Call it in a transaction. Returns their number. */
  forgetEpisodesOf(owner: string): number {
    return this.#dropEpisodes(this.episodes.keysOf(owner))
  }

  #dropEpisodes(keys: readonly string[]): number {
    for (const key of keys) {
      this.#mark(FORGOTTEN, episodeMark(key))
      this.episodes.drop(key)
    }
    return keys.length
  }

  #mark(end: string, mark: string): void {
    const file = `${this.#file}${end}`
    try {
      appendFileSync(file, `${mark}\n`, { mode: 0o600, flush: true })
    } catch (error) {
      throw new Fault('io_error', `${file} cannot be written: check its directory.`, String(error))
    }
  }

  #marks(end: string): ReadonlySet<string> {
    try {
      return new Set(readFileSync(`${this.#file}${end}`, 'utf8').split('\n'))
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === 'ENOENT') return new Set()
      throw new Fault('io_error', `${this.#file}${end} cannot be read: check its permissions.`, String(error))
    }
  }

  cursor(session: string): number {
    return (this.#sql.cursor.get(session) as { readonly seq: number } | undefined)?.seq ?? 0
  }

  cursors(): ReadonlyMap<string, number> {
    return new Map(rowsOf<readonly [string, number]>(this.#sql.cursors.get()))
  }

  list(agent: string, owner: string): readonly LearningRow[] {
    return rowsOf(this.#sql.list.get(agent, owner))
  }

  /**
   * Learnings with any of the words, nearest first. The rarest words decide, as many as can be ranked in a moment. If
   * every word is in too many learnings, the newest of these.
   */
  find(
    { agent, owner }: Omit<LearningOrigin, 'session'>,
    words: readonly string[],
    limit: number,
  ): readonly LearningRow[] {
    const counted = words.slice(0, WORDS_MAX).map((word) => {
      const { found } = this.#sql.having.get(matchQuery([word])) as { readonly found: number }
      return { word, found }
    })
    const known = counted.filter(({ found }) => found > 0).sort((a, b) => a.found - b.found)
    let sum = 0
    const rare = known.filter(({ found }) => {
      sum += found
      return found < ROWS_MAX && sum <= RANKED_MAX
    })
    if (known.length === 0) return []
    const [statement, asked] = rare.length > 0 ? [this.#sql.find, rare] : [this.#sql.newest, known]
    return rowsOf(statement.get(matchQuery(asked.map(({ word }) => word)), agent, owner, limit))
  }

  extraction(session: string): ExtractionRow | null {
    return (this.#sql.place.get(session) as ExtractionRow | undefined) ?? null
  }

  saveProgress(session: string, place: string): void {
    this.#sql.put.run(session, place)
  }

  /**
   * False while another process holds the claim. A time that lies too far ahead cannot come from our clocks, and holds
   * nothing.
   */
  claim({ session, now, untilMs, holder, isGone }: ExtractionClaim): boolean {
    return this.inTransaction(() => {
      const row = this.#sql.claimed.get(session) as { readonly until: number; readonly holder: string } | undefined
      if (!row || (row.until > now && row.until <= now + untilMs && !isGone(row.holder))) return false
      this.#sql.claim.run(now + untilMs, holder, session)
      return true
    })
  }

  saveAnswer(session: string, ready: string): void {
    this.#sql.ready.run(ready, session)
  }

  finish(session: string): void {
    this.#sql.finish.run(session)
  }

  /** Sessions with an extraction that began and is not in the log. */
  unfinished(limit: number): readonly string[] {
    return rowsOf(this.#sql.unfinished.get(limit))
  }

  /**
   * One driver keeps the file open until its statements are collected, so the content of the write-ahead log is moved
   * into the file first.
   */
  close(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // Others use it, or it is damaged.
    }
    this.#db.close()
  }
}

type StoredLearning = {
  readonly id: number
  readonly key: string
  readonly title: string
  readonly detail: string
  readonly owner: string | null
}

/** Kept in files of their own, since what people forgot or shared must survive a rebuild of the learnings. */
const FORGOTTEN = '.forgotten'
const SHARED = '.shared'

/** Without an owner the hash is the same as before there were owners. */
function markOf(agent: string, owner: string, key: string): string {
  return hash('sha256', owner === '' ? `${agent}\0${key}` : `${agent}\0${owner}\0${key}`)
}

function rowsOf<T>(found: unknown): readonly T[] {
  return JSON.parse((found as { readonly rows: string }).rows) as readonly T[]
}

/** Two learnings of one agent with the same key are the same. */
function keyOf({ key, kind, title, detail }: Learning): string {
  return key === undefined ? `text:${kind}::${title}::${detail}` : `key:${key}`
}

/** A person shares the text that they read, so another text under the same key is not shared with it. */
function wordingOf({ key, title, detail }: Pick<StoredLearning, 'key' | 'title' | 'detail'>): string {
  return JSON.stringify([key, title, detail])
}

/** Opens or creates the file. It does not wait: a busy file is an error here, and the caller tries again. */
export function openLearnings(path: string): Learnings {
  const driver = loadDriver()
  const file = prepareFile(path, realFileSystemOf)
  const db = new driver(file)
  try {
    checkVersion(queryValue(db, 'SELECT sqlite_version()') as string)
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON`)
    checkOwner(db, file)
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    if (queryValue(db, 'PRAGMA user_version') !== SCHEMA_VERSION) createSchema(db)
    return new Learnings(db, file)
  } catch (error) {
    db.close()
    throw error
  }
}

function createSchema(db: Database): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have created it meanwhile.
    const version = queryValue(db, 'PRAGMA user_version')
    if (version === 0) db.exec(SCHEMA)
    if (version === 1) db.exec(SOURCE + EXTRACTIONS)
    if (version === 1 || version === 2) db.exec(OWNED)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function checkOwner(db: Database, file: string): void {
  const version = Number(queryValue(db, 'PRAGMA user_version'))
  // The tables are read first: a process that creates them at this moment writes its id together with them.
  const tables = queryValue(db, 'SELECT count(*) FROM sqlite_schema')
  const id = queryValue(db, 'PRAGMA application_id')
  if (id !== APPLICATION_ID && !(id === 0 && tables === 0))
    throw new Fault('store_unsupported', `${file} is a database of another program. Choose another path.`)
  if (version > SCHEMA_VERSION)
    throw new Fault('store_newer', `${file} was written by a newer version. Upgrade, or open another file.`)
}

function queryValue(db: Database, sql: string): unknown {
  return Object.values(db.prepare(sql).get() as Readonly<Record<string, unknown>>)[0]
}

/** A damaged file is renamed, always to the same name: it can be examined, and copies do not pile up. */
export function moveDamagedFile(file: string): void {
  for (const part of [`${file}-wal`, `${file}-shm`]) rmSync(part, { force: true })
  try {
    renameSync(file, `${file}.damaged`)
  } catch (error) {
    // Another process was faster.
    if ((error as { readonly code?: unknown }).code !== 'ENOENT') throw error
  }
}
