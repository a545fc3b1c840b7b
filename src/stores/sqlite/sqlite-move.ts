// An SQLite file as one side of a move: all its rows in one order, or a new file that takes them. stores/move/ moves
// the rows. A file that was moved, or whose arrival is not finished, refuses every write with triggers, in all
// processes that have it open and in older versions of this code.
import { existsSync } from 'node:fs'
import { assert, Fault } from '../../kernel/failure.ts'
import type { Card } from '../../ports/store.ts'
import {
  bareCard,
  type MoveCounts,
  type MoveMark,
  type StoreReader,
  type MoveRow,
  type MoveSessionRow,
  type MoveSource,
  type MoveTarget,
  type MoveTargetState,
} from '../move/move-rows.ts'
import { addSum, crc32, isSound, rowSum, logSeed } from '../plan/checksum.ts'
import { systemClock } from '../plan/system-clock.ts'
import { CLOCK_SLACK_MS, type SessionTrouble } from '../plan/plan-writes.ts'
import { loadDriver, type Statement } from './driver.ts'
import { MOVED, toFault } from './sqlite-faults.ts'
import { prepareFile, realFileSystemOf } from './database-file.ts'
import { findMove } from './store-mark.ts'
import { closeSqliteFile, type SqliteConnection, openSqliteFile } from './open-file.ts'
import { runWithRoom } from './open-full.ts'
import { unsoundFault } from './read-store.ts'
import { damageOf, factsOfRow, headSumOf, insertAll, type StoredSqliteRow, writeSession } from './sqlite-rows.ts'
import { SCHEMA, SCHEMA_VERSION, type SqliteStatements } from './sqlite-schema.ts'
import { findSpans, positionsOf } from './event-spans.ts'
import { runWhenFree } from './sqlite-writer.ts'
import { shellCommand } from '../../view/shell-command.ts'
import { shownId } from '../../view/clean.ts'

/** The largest size of a piece of rows in bytes, unless a single row is larger. */
const PIECE_BYTES = 1024 * 1024
const PAGE = 500

/** All tables of a store's data. Every write changes at least one of them. */
const WRITTEN = 'events heads sessions workers accounts holds blobs blob_refs inbox removals snapshots'.split(' ')

export async function readSqlite(path: string): Promise<StoreReader> {
  return openSide(path, 'BEGIN')
}

/** Reads through a connection that the caller closes. */
export function readConnection(connection: SqliteConnection): StoreReader {
  return new SqliteSide(connection, false)
}

/** Writers of other processes wait until it is closed. */
export async function sqliteSource(path: string): Promise<MoveSource> {
  if (!existsSync(path)) throw new Fault('invalid_input', `There is no store ${path}, so there is nothing to move.`)
  return openSide(path, 'BEGIN IMMEDIATE')
}

/** Created if it does not exist. */
export async function sqliteTarget(path: string): Promise<MoveTarget> {
  return openSide(path, null)
}

async function openSide(path: string, begin: string | null): Promise<SqliteSide> {
  const file = prepareFile(path, realFileSystemOf)
  const driver = loadDriver()
  const connection = await runWithRoom(file, systemClock, () => openSqliteFile(file, driver))
  try {
    if (begin !== null) await runWithRoom(file, systemClock, () => connection.db.exec(begin))
    return new SqliteSide(connection, true)
  } catch (error) {
    closeSqliteFile(connection)
    throw error
  }
}

class SqliteSide implements MoveSource, MoveTarget {
  readonly id: string
  readonly name: string
  readonly #connection: SqliteConnection
  readonly #sql: SqliteStatements
  /** The store whose rows are arriving here, or were written by this side. */
  #from: string | null = null

  /** Whether it closes the connection at its end. */
  readonly #isOwner: boolean

  constructor(connection: SqliteConnection, isOwner: boolean) {
    this.#isOwner = isOwner
    this.#connection = connection
    this.#sql = connection.statements
    this.name = connection.file
    this.id = (this.#ask('SELECT store FROM meta').get() as { store: string }).store
  }

  // ---- Reading ------------------------------------------------------------------------------------------------------

  rows(): AsyncGenerator<readonly MoveRow[]> {
    return inPieces(this.#rows())
  }

  shared(damaged: (fault: Fault) => void): AsyncGenerator<readonly MoveRow[]> {
    return inPieces(this.#shared(damaged))
  }

  async counts(): Promise<MoveCounts> {
    const count = (table: string): number => (this.#ask(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n
    return {
      session: count('sessions'),
      inbox: count('inbox'),
      ref: count('blob_refs'),
      event: count('events'),
      worker: count(`workers w WHERE ${NAMED}`),
      hold: count('holds'),
      account: count('accounts'),
      blob: count('blobs'),
      removal: count('removals'),
    }
  }

  *#rows(): Generator<MoveRow> {
    for (const row of this.#pages<StoredSession>(SESSIONS, 0, ({ n }) => n)) yield* this.#session(row)
    yield* this.#shared((fault) => {
      throw fault
    })
  }

  *#shared(damaged: (fault: Fault) => void): Generator<MoveRow> {
    for (const row of this.#pages<{ id: string; until: number; ttlMs: number }>(WORKERS, '', ({ id }) => id))
      yield { type: 'worker', ...row }
    for (const { sum, ...row } of this.#pages<StoredHold>(HOLDS, '', ({ key }) => key)) {
      const { key, amount, accounts, session } = row
      if (!isSound(sum, key, amount, accounts, session)) damaged(unsoundFault(`The hold ${key}`))
      else yield { type: 'hold', key, amount, accounts: JSON.parse(accounts) as string[], session: session ?? '' }
    }
    for (const { sum, ...row } of this.#pages<StoredAccount>(ACCOUNTS, '', ({ id }) => id)) {
      const { id, limit, held, spent, assumed } = row
      if (!isSound(sum, id, limit, held, spent, assumed)) damaged(unsoundFault(`The account ${id}`))
      else yield { type: 'account', ...row }
    }
    yield* this.#blobs(damaged)
    type Gone = Extract<MoveRow, { type: 'removal' }>
    for (const row of this.#pages<Omit<Gone, 'type'>>(REMOVED, 0, ({ number }) => number))
      yield { type: 'removal', ...row }
  }

  *#session(stored: StoredSession): Generator<MoveRow> {
    const { n, id, seq } = stored
    const row = sessionRowOf(stored)
    if (row === null || stored.headAt === null) throw damagedSessionFault(id, 'what is kept beside its log is damaged')
    yield row
    for (const each of this.#pages<{ id: string; seq: number }>(INBOX, 0, (last) => last.seq, n))
      yield { type: 'inbox', ...each }
    for (const each of this.#pages<{ hash: string }>(REFS, '', ({ hash }) => hash, n)) yield { type: 'ref', ...each }
    let sum = logSeed(id)
    let last = 0
    for (const pos of positionsOf(findSpans(this.#sql, stored, 1, seq))) {
      const event = this.#sql.event.get(pos) as { sum: number; body: string } | undefined
      last += 1
      sum = event ? addSum(sum, event.body) : sum
      if (!event || sum !== event.sum) throw damagedSessionFault(id, `event ${last} is damaged`)
      yield { type: 'event', body: event.body }
    }
    if (last < seq) throw damagedSessionFault(id, `event ${last + 1} is missing`)
  }

  /** One at a time: a blob may be large. */
  *#blobs(damaged: (fault: Fault) => void): Generator<MoveRow> {
    const next = this.#ask('SELECT hash, media, sum, data FROM blobs WHERE hash > ? ORDER BY hash LIMIT 1')
    type Stored = { readonly hash: string; readonly media: string; readonly sum: number; readonly data: Uint8Array }
    for (let after = ''; ; ) {
      const row = next.get(after) as Stored | undefined
      if (!row) return
      const { hash, media, sum, data } = row
      if ((crc32(data) | 0) !== sum) damaged(unsoundFault(`The blob ${hash}`))
      else yield { type: 'blob', hash, media, data }
      after = hash
    }
  }

  /** Reads all rows of a statement whose parameters are a start key and a count. */
  *#pages<T>(sql: string, from: string | number, keyOf: (row: T) => string | number, of?: number): Generator<T> {
    const statement = this.#ask(sql)
    for (let after = from; ; ) {
      const rows = (of === undefined ? statement.all(after, PAGE) : statement.all(after, PAGE, of)) as T[]
      // A copy, because one driver returns objects without a prototype.
      for (const row of rows) yield { ...row }
      const last = rows.at(-1)
      if (rows.length < PAGE || last === undefined) return
      after = keyOf(last)
    }
  }

  // ---- As a source --------------------------------------------------------------------------------------------------

  async driven(): Promise<readonly string[]> {
    const rows = this.#ask(DRIVEN).all(systemClock.now(), CLOCK_SLACK_MS) as { id: string }[]
    return rows.map(({ id }) => id)
  }

  async movedTo(): Promise<MoveMark | null> {
    return this.#mark('to')
  }

  async leave(to: MoveMark): Promise<void> {
    try {
      this.#close('to', to)
      this.#connection.db.exec('COMMIT')
    } catch (error) {
      throw toFault(error)
    }
  }

  // ---- As a target --------------------------------------------------------------------------------------------------

  async state(): Promise<MoveTargetState> {
    const from = this.#mark('from')
    this.#from = from?.id ?? null
    return from ? { type: 'arriving', from } : { type: this.#isUsed() ? 'used' : 'empty' }
  }

  #isUsed(): boolean {
    const tables = WRITTEN.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(' OR ')
    return (this.#ask(`SELECT ${tables} AS used`).get() as { used: number }).used === 1
  }

  async fill(from: MoveMark, rows: AsyncIterable<readonly MoveRow[]>): Promise<void> {
    await this.#transaction(async () => {
      if (this.#mark('from') || this.#isUsed())
        throw new Fault('conflict', `Another process has begun to use ${this.name}. Name another.`)
      const filling = new SqliteMoveWriter(this.#sql)
      for await (const piece of rows) for (const row of piece) filling.add(row)
      filling.end()
      this.#close('from', from)
    })
    this.#from = from.id
  }

  /** Recreates the tables, because events are never deleted one by one. Rows from another move stay. */
  async clear(): Promise<void> {
    await this.#transaction(async () => {
      const mark = this.#mark('from')
      if (mark === null || mark.id !== this.#from) return
      const tables = this.#ask(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`).all()
      const { db } = this.#connection
      for (const { name } of tables as { name: string }[]) db.exec(`DROP TABLE "${name}"`)
      db.exec(SCHEMA)
      this.#ask(`INSERT INTO meta (version, store) VALUES (${SCHEMA_VERSION}, ?)`).run(this.id)
    })
  }

  async finish(): Promise<void> {
    await this.#transaction(async () => {
      const { db } = this.#connection
      for (const name of triggerNames()) db.exec(`DROP TRIGGER ${name}`)
      db.exec('DROP TABLE moves')
    })
  }

  async close(): Promise<void> {
    if (!this.#isOwner) return
    const { db } = this.#connection
    if (db.isTransaction) db.exec('ROLLBACK')
    closeSqliteFile(this.#connection)
  }

  async #transaction(act: () => Promise<void>): Promise<void> {
    const { db } = this.#connection
    await runWhenFree(systemClock, () => db.exec('BEGIN IMMEDIATE'))
    try {
      await act()
      db.exec('COMMIT')
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw toFault(error)
    }
  }

  /** Every later write is refused, in all processes. */
  #close(way: 'to' | 'from', { id, name, at, text }: MoveMark): void {
    const { db } = this.#connection
    db.exec(
      'CREATE TABLE moves (way TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL) STRICT',
    )
    this.#ask('INSERT INTO moves (way, id, name, at, text) VALUES (?, ?, ?, ?, ?)').run(way, id, name, at, text)
    const said = `${MOVED}${text}`.replaceAll("'", "''")
    for (const table of WRITTEN)
      for (const what of WRITES)
        db.exec(
          `CREATE TRIGGER moved_${table}_${what} BEFORE ${what} ON ${table} BEGIN SELECT RAISE(ABORT, '${said}'); END`,
        )
  }

  #mark(way: 'to' | 'from'): MoveMark | null {
    const mark = findMove(this.#connection.db)
    if (mark?.way !== way) return null
    const { way: _way, ...rest } = mark
    return rest
  }

  #ask(sql: string): Statement {
    return this.#sql.prepared(sql)
  }
}

async function* inPieces(rows: Iterable<MoveRow>): AsyncGenerator<readonly MoveRow[]> {
  let piece: MoveRow[] = []
  let bytes = 0
  try {
    for (const row of rows) {
      piece.push(row)
      bytes += row.type === 'event' ? row.body.length : row.type === 'blob' ? row.data.length : ROW_BYTES
      if (bytes < PIECE_BYTES) continue
      yield piece
      piece = []
      bytes = 0
    }
  } catch (error) {
    throw toFault(error)
  }
  yield piece
}

const ROW_BYTES = 500
const WRITES = ['INSERT', 'UPDATE', 'DELETE'] as const

function triggerNames(): readonly string[] {
  return WRITTEN.flatMap((table) => WRITES.map((what) => `moved_${table}_${what}`))
}

// ---- The rows as stored in the file -----------------------------------------------------------------------------

type StoredSession = StoredSqliteRow & {
  readonly id: string
  readonly card: string
  readonly cardSum: number | null
  readonly turnSum: number | null
  readonly headSum: number | null
  /** Null if the session has no row in `heads`. */
  readonly headAt: number | null
  readonly origin: string | null
}
type StoredHold = {
  readonly key: string
  readonly amount: number
  readonly accounts: string
  readonly session: string | null
  readonly sum: number | null
}
type StoredAccount = Omit<Extract<MoveRow, { type: 'account' }>, 'type'> & { readonly sum: number | null }

const SESSIONS = `SELECT s.n, s.id, s.epoch, s.worker, s.due, s.urgent, s.tries, s.trouble, s.status, s.root, s.folder, s.parent,
  s.sum AS turnSum, s.card, s.card_sum AS cardSum, s.agent, s.created, s.title, s.owner, s.facts_sum AS factsSum,
  h.seq, h.at, h.at AS headAt, h.pos, h.tail, h.tokens, h.sum AS headSum, f.origin
  FROM sessions s LEFT JOIN heads h ON h.n = s.n LEFT JOIN forks f ON f.session = s.n WHERE s.n > ? ORDER BY s.n LIMIT ?`
const INBOX = 'SELECT id, seq FROM inbox WHERE session = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2'
const REFS = 'SELECT hash FROM blob_refs WHERE session = ?3 AND hash > ?1 ORDER BY hash LIMIT ?2'
const NAMED = 'EXISTS (SELECT 1 FROM sessions WHERE worker = w.id)'
const WORKERS = `SELECT id, until, ttl AS ttlMs FROM workers w WHERE ${NAMED} AND id > ? ORDER BY id LIMIT ?`
const HOLDS = 'SELECT key, amount, accounts, session, sum FROM holds WHERE key > ? ORDER BY key LIMIT ?'
const ACCOUNTS = 'SELECT id, cap AS "limit", held, spent, assumed, sum FROM accounts WHERE id > ? ORDER BY id LIMIT ?'
const REMOVED = `SELECT n AS number, session, epoch, agent, events, bytes, at, by FROM removals WHERE n > ? ORDER BY n LIMIT ?`
const DRIVEN = `SELECT s.id FROM workers w CROSS JOIN sessions s ON s.worker = w.id
  WHERE w.until > ?1 AND w.until - w.ttl <= ?1 + ?2 LIMIT 3`

/** Null if the row does not match its checksums. */
function sessionRowOf(row: StoredSession): MoveSessionRow | null {
  const { n, id, card, cardSum, seq, at, epoch, worker, due, status, tries, root, folder, parent, origin } = row
  if (!isSound(cardSum, n, id, card) || damageOf(row, row.turnSum, row.headSum) !== null) return null
  const { created, tokens, title, owner } = factsOfRow(row)
  return {
    type: 'session',
    number: n,
    id,
    seq,
    at,
    epoch,
    worker,
    due,
    urgent: row.urgent === 1,
    tries,
    trouble: row.trouble === null ? null : (JSON.parse(row.trouble) as SessionTrouble),
    status,
    root,
    folder,
    parent,
    agent: row.agent ?? '',
    created,
    tokens,
    title,
    owner,
    origin,
    card: bareCard(JSON.parse(card) as Card),
  }
}

function damagedSessionFault(id: string, what: string): Fault {
  const next = `\`terret store check\` finds all that is damaged; \`${shellCommand`terret delete ${id}`}\` takes it out.`
  return new Fault('session_damaged', `Session ${shownId(id)} cannot be moved: ${what}. ${next}`)
}

/** Writes rows into an empty file, inside a transaction. The events of a session lie side by side. */
class SqliteMoveWriter {
  readonly #sql: SqliteStatements
  #n = 0
  #pos = 0
  /** The last event position of the session that is being written. */
  #end = 0
  #sum = 0
  readonly #event: Statement

  constructor(sql: SqliteStatements) {
    this.#sql = sql
    this.#event = sql.prepared('INSERT INTO events (pos, session, sum, body) VALUES (?, ?, ?, ?)')
  }

  add(row: MoveRow): void {
    const sql = this.#sql
    if (row.type === 'session') this.#session(row)
    else if (row.type === 'event') this.#append(row.body)
    else if (row.type === 'inbox') sql.admit.get(this.#n, row.id, row.seq, this.#pos + row.seq)
    else if (row.type === 'ref') sql.referBlob.get(row.hash, this.#n)
    else if (row.type === 'worker') sql.keepWorker.get(row.id, row.until, row.ttlMs, null, null, null, null)
    else if (row.type === 'hold') {
      const accounts = JSON.stringify(row.accounts)
      const { key, amount, session } = row
      sql.keepHold.get(key, amount, accounts, session, rowSum(key, amount, accounts, session))
    } else if (row.type === 'account') {
      const { id, limit, held, spent, assumed } = row
      sql.keepAccount.get(id, limit, held, spent, assumed, rowSum(id, limit, held, spent, assumed))
    } else if (row.type === 'blob') sql.keepBlob.get(row.hash, row.media, crc32(row.data) | 0, row.data)
    else {
      const { number, session, epoch, agent, events, bytes, at, by } = row
      sql.keepRemoval.get(number, session, epoch, agent, events, bytes, at, by)
    }
  }

  end(): void {
    assert(this.#pos === this.#end, 'each session has as many events as it says')
  }

  #session(row: MoveSessionRow): void {
    this.end()
    const { number: n, id, seq, at, due, tokens, created, title, owner, origin } = row
    this.#n = n
    this.#end = this.#pos + seq
    this.#sum = logSeed(id)
    const { type: _type, number: _number, id: _id, card: bare, ...head } = row
    const place = { n, seq, at, pos: this.#end, tail: `1,${this.#pos + 1}` }
    const facts = { created, tokens, title, owner, words: title }
    const card: Card = { ...bare, seq, at, due }
    writeSession(this.#sql, id, { ...head, ...place, sum: 0, tailSpans: 1, facts, card }, null)
    const sum = headSumOf({ ...place, tokens })
    insertAll(this.#sql.keepHeads, [n, seq, at, place.pos, place.tail, tokens, sum])
    if (origin !== null) this.#sql.keepFork.get(n, origin)
  }

  #append(body: string): void {
    this.#pos += 1
    this.#sum = addSum(this.#sum, body)
    this.#event.get(this.#pos, this.#n, this.#sum, body)
  }
}
