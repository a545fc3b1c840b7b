// The store in an SQLite file: durable, and shared by any number of processes on one machine. This file ties its parts
// together: plan-writes.ts admits, sqlite-writer.ts runs transactions, read-store.ts reads, wal-watcher.ts notices
// other processes.
import type { Card } from '../../ports/store.ts'
import type { Labels } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { assert, Fault } from '../../kernel/failure.ts'
import type {
  AccountRow,
  Blob,
  CardFilter,
  CardPage,
  CardQuery,
  Claim,
  CompleteStore,
  DueSessions,
  Holder,
  Page,
  ProcessId,
  Receipt,
  Removal,
  Snapshot,
  Snapshots,
  StoreHealth,
  Write,
} from '../../ports/store.ts'
import type { StoreReader } from '../move/move-rows.ts'
import type { ExpectedEnds } from '../plan/plan-removal.ts'
import type { Clock } from '../../ports/system.ts'
import { checkCount } from '../plan/check-count.ts'
import { checkQuery } from '../plan/card-query.ts'
import { Listeners } from '../plan/listeners.ts'
import type { SqliteBatch, BatchState } from './sqlite-batch.ts'
import type { CardChanges } from './card-changes.ts'
import type { Driver } from './driver.ts'
import type { FileSystemOf } from './database-file.ts'
import { isAhead, isLeaseLive } from '../plan/plan-writes.ts'
import type { Mark } from './store-mark.ts'
import type { SqliteConnection } from './open-file.ts'
import type * as Opened from './store-parts.ts'
import type { SqliteWorkerRow } from './sqlite-rows.ts'
import type { SqliteStatements } from './sqlite-schema.ts'
import type { WalWatcher } from './wal-watcher.ts'
import type { SqliteWriter } from './sqlite-writer.ts'

/** The parts of the machine that the store uses. */
export type SqliteMachine = {
  readonly clock: Clock
  /** For durations. Default: the same clock. */
  readonly steady?: Clock
  readonly loadDriver: () => Driver
  readonly fileSystemOf: FileSystemOf
}

const MAKE_WRITABLE = 'Make the file and its folder writable, and open it again.'

/** A few milliseconds of work. */
const SHRINK_PAGES = 512
/** If less room is free than a write-ahead log takes before SQLite empties it, the file shrinks in small steps. */
const LOW_ROOM_BYTES = 8 * 1024 * 1024
const SHRINK_PAGES_LOW = 16

type OpenStore = {
  /** The code that works on an open file. */
  readonly parts: typeof Opened
  readonly connection: SqliteConnection
  readonly ground: BatchState
  readonly writer: SqliteWriter
  readonly watcher: WalWatcher
  /** The open file is a copy. */
  readonly readOnly: boolean
  /** The disk was full when the file was opened: it is only read, and opened again when there is room. */
  readonly full: boolean
}

export class SqliteStore implements CompleteStore {
  readonly workers = this
  readonly notifications = this
  readonly snapshots = this
  readonly search = this
  readonly upkeep = this
  readonly deltas = this
  readonly moving = this
  readonly reach = 'machine'
  readonly #path: string
  readonly #machine: SqliteMachine
  readonly #clock: Clock
  readonly #listeners = new Listeners()
  /** The seq that the listeners of each session have been told. */
  readonly #told = new Map<string, number>()
  /** Null while nothing watches the cards of all sessions. */
  #cards: CardChanges | null = null
  #shrinking: Promise<void> | null = null
  #open: OpenStore | null = null
  #opening: Promise<OpenStore> | null = null
  #closed = false
  /** A reader uses the connection of a store on a full disk, so it stays open until the store is closed. */
  #isLent = false
  /** The latest time of the clock since this process first asked for due sessions. */
  #latest: number | null = null
  #dataVersion = -1

  constructor(path: string, machine: SqliteMachine) {
    this.#path = path
    this.#machine = machine
    this.#clock = machine.steady ?? machine.clock
  }

  /** How many transactions this store has written. Each is one fsync. */
  get transactions(): number {
    return this.#open?.writer.transactions ?? 0
  }

  async open(): Promise<void> {
    await this.#start()
  }

  now(): number {
    const now = this.#machine.clock.now()
    if (this.#latest !== null && now > this.#latest) this.#latest = now
    return now
  }

  commit(writes: readonly Write[]): Promise<readonly Receipt[]> {
    return this.#write((batch) => batch.commit(writes), writes[0]?.session)
  }

  async read(session: string, after: number, limit = Number.MAX_SAFE_INTEGER, bytesMax?: number): Promise<Page> {
    checkCount('after', after)
    checkCount('limit', limit)
    if (bytesMax !== undefined) checkCount('bytesMax', bytesMax)
    const page = await this.#read((sql, { readStoredLog }) => readStoredLog(sql, session, { after, limit, bytesMax }))
    if (page.damaged) {
      const { seq, reason } = page.damaged
      this.#open?.ground.damaged.set(session, `event ${seq}: ${reason}`)
    }
    return page
  }

  sent(session: string, id: string): Promise<number | null> {
    return this.#read((sql) => (sql.sent.get(session, id) as { seq: number } | undefined)?.seq ?? null)
  }

  async snapshot(session: string, upTo?: number): Promise<Snapshot | null> {
    if (upTo !== undefined) checkCount('upTo', upTo)
    return this.#read((sql, { readStoredSnapshot }) => readStoredSnapshot(sql, session, upTo))
  }

  keep(session: string, snapshots: Parameters<Snapshots['keep']>[1]): Promise<void> {
    return this.#write((batch) => batch.keep(session, snapshots))
  }

  watch(session: string, listener: (news: readonly Event[] | null) => void): () => void {
    const first = !this.#listeners.watches(session)
    const remove = this.#listeners.addSession(session, listener)
    if (this.#open && first) this.#told.set(session, seqOf(this.#open, session))
    this.#listen()
    return () => this.#unlisten(remove)
  }

  watchDue(listener: () => void): () => void {
    const remove = this.#listeners.addDue(listener)
    this.#listen()
    return () => this.#unlisten(remove)
  }

  watchCards(listener: (session: string) => void): () => void {
    const remove = this.#listeners.addCards(listener)
    if (this.#open) this.#cards ??= new this.#open.parts.CardChanges(this.#open.ground.sql)
    this.#listen()
    return () => this.#unlisten(remove)
  }

  claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Promise<Claim | null> {
    return this.#write((batch) => batch.claim(session, worker, ttlMs, process))
  }

  extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>> {
    return this.#write((batch) => {
      batch.extend(worker, ttlMs)
      return batch.held(worker)
    })
  }

  holders(host: string): Promise<readonly Holder[]> {
    return this.#read((sql, { readHolders }) => readHolders(sql, host, this.now()))
  }

  expire(worker: string, process: ProcessId): Promise<boolean> {
    return this.#write((batch) => batch.expire(worker, process))
  }

  release(session: string, epoch: number, trouble?: Card['trouble']): Promise<void> {
    return this.#write((batch) => batch.release(session, epoch, trouble))
  }

  card(session: string): Promise<Card | null> {
    return this.#read((sql, { readCard }) => readCard(sql, session))
  }

  async due(limit: number, agents?: readonly string[]): Promise<DueSessions> {
    checkCount('limit', limit)
    const sessions = limit === 0 ? [] : await this.#due(limit, agents)
    return { sessions, next: sessions.length > 0 ? this.now() : await this.#nextDue(agents) }
  }

  async #due(limit: number, agents?: readonly string[]): Promise<readonly string[]> {
    const { damaged } = (this.#open ?? (await this.#start())).ground
    await this.#doubt()
    // A damaged session cannot go on, and must not keep workers busy.
    const found = await this.#read((sql, { readDue }) => readDue(sql, this.now(), limit + damaged.size, agents))
    return found.filter((session) => !damaged.has(session)).slice(0, limit)
  }

  /**
   * Runs when this process first asks for due sessions, and again when the clock went back or a lease has times in the
   * future. Then some process had a wrong clock, and the due times that it wrote would delay their sessions.
   */
  async #doubt(): Promise<void> {
    if (this.#open?.readOnly) return
    const now = this.now()
    const back = this.#latest === null || isAhead(this.#latest, now)
    this.#latest = back ? now : Math.max(this.#latest ?? 0, now)
    const leased = await this.#read((sql, { hasLeaseAhead }) => hasLeaseAhead(sql, now))
    if (!back && !leased) return
    const ahead = await this.#read((sql, { readSessionsAhead }) => readSessionsAhead(sql, now))
    if (ahead.length > 0 || leased) await this.#write((batch) => batch.doubt(ahead))
  }

  async #nextDue(agents?: readonly string[]): Promise<number | null> {
    const { damaged } = (this.#open ?? (await this.#start())).ground
    const now = this.now()
    // A lease with times in the future hides nothing: asking for due sessions removes it.
    return this.#read((sql, { hasLeaseAhead, readNextDue }) =>
      hasLeaseAhead(sql, now) ? now : readNextDue(sql, damaged, agents),
    )
  }

  async list(filter: CardFilter): Promise<readonly Card[]> {
    checkCount('limit', filter.limit)
    return this.#read((sql, { readCardList }) => readCardList(sql, filter))
  }

  async listBelow(roots: readonly string[], limit: number): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql, { readCardsBelow }) => readCardsBelow(sql, roots, limit))
  }

  async listWaking(limit: number, where: Labels = {}): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql, { readWakingCards }) => readWakingCards(sql, limit, where))
  }

  async page(query: CardQuery): Promise<CardPage> {
    checkQuery(query)
    const { parts } = this.#open ?? (await this.#start())
    return parts.readStoredPage((act) => this.#read(act), query)
  }

  blob(hash: string, of?: string): Promise<Blob | null> {
    return this.#read((sql, { readBlob }) => readBlob(sql, hash, of))
  }

  account(id: string): Promise<AccountRow | null> {
    return this.#read((sql, { readAccount }) => readAccount(sql, id))
  }

  async announce(worker: string, address: string, ttlMs: number): Promise<void> {
    await this.#write((batch) => batch.extend(worker, ttlMs, { address }))
  }

  address(session: string): Promise<string | null> {
    return this.#read((sql) => {
      const worker = sql.address.get(session) as SqliteWorkerRow | undefined
      return worker && isLeaseLive(worker, this.now()) ? worker.address : null
    })
  }

  /** The present state as a mark: the file's id and its last event. Keep it to notice an older copy later. */
  mark(): Promise<Mark> {
    return this.#read((_sql, { readMark }) => readMark(this.#connection().db))
  }

  /** Refuses with `store_replaced` unless this is the store of that mark, and has everything it had then. */
  verify(mark: Mark): Promise<void> {
    return this.#read((_sql, { checkMark }) => checkMark(this.#connection().db, this.#connection().file, mark))
  }

  /**
   * Why it takes no writes: it was moved, a move to it is not complete, or it has less than was acknowledged. Null: it
   * takes writes.
   */
  moved(): Promise<string | null> {
    return this.#read((_sql, { findMove, MarkFile }) => {
      const connection = this.#connection()
      return findMove(connection.db)?.text ?? new MarkFile(connection).check()?.message ?? null
    })
  }

  /** Reads all rows. A full disk allows no second connection, so there the reader uses that of this store. */
  async reader(): Promise<StoreReader> {
    const open = await this.#opened(false)
    const { readConnection, readSqlite } = await import('./sqlite-move.ts')
    if (!open.full) return readSqlite(this.#path)
    this.#isLent = true
    return readConnection(open.connection)
  }

  #connection(): SqliteConnection {
    assert(this.#open, 'a read comes after the file was opened')
    return this.#open.connection
  }

  async remove(session: string, by: string, ends?: ExpectedEnds): Promise<readonly Removal[]> {
    const removed = await this.#write((batch) => batch.remove(session, by, ends), session)
    // After many removals at once, one run shrinks the file for all.
    this.#shrinking ??= this.#shrink().finally(() => {
      this.#shrinking = null
    })
    await this.#shrinking
    return removed
  }

  async removals(limit: number): Promise<readonly Removal[]> {
    checkCount('limit', limit)
    return this.#read((sql) => (sql.removals.all(limit) as Removal[]).map((row) => ({ ...row })))
  }

  async health(): Promise<StoreHealth> {
    const problem = await this.moved()
    const health = await this.#read((sql, { readHealth }) => readHealth(sql, this.#connection().db, this.now()))
    return problem === null ? health : { ...health, problem }
  }

  /** Earlier requests are still written. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#listeners.clear()
    const open = this.#open ?? (await this.#opening?.catch(() => null)) ?? null
    if (!open) return
    open.watcher.stop()
    await open.writer.submit('', () => {}).catch(() => {})
    this.#open = null
    this.#opening = null
    open.writer.close()
    open.parts.closeSqliteFile(open.connection)
    if (open.readOnly) open.parts.dropCopy(open.connection.file)
  }

  async #write<T>(act: (batch: SqliteBatch) => T, session = ''): Promise<T> {
    const open = this.#healthy ?? (await this.#opened(true))
    this.#check()
    if (open.full) throw open.parts.fullFault()
    if (open.readOnly) throw new Fault('io_error', `${this.#path} cannot be written, only read. ${MAKE_WRITABLE}`)
    return open.writer.submit(session, act)
  }

  /** The open file, without waiting: no turn waits for a disk that is not full. */
  get #healthy(): OpenStore | null {
    return this.#open?.full === false ? this.#open : null
  }

  /**
   * A file that was opened on a full disk is opened again when there may be room, because it keeps other processes out.
   */
  async #opened(writes: boolean): Promise<OpenStore> {
    const open = this.#open ?? (await this.#start())
    if (!open.full || this.#closed || this.#isLent) return open
    if (!writes && !open.parts.hasRoom(open.connection.file)) return open
    if (this.#open === open) {
      this.#open = null
      this.#opening = null
      open.watcher.stop()
      open.writer.close()
      open.parts.closeSqliteFile(open.connection)
    }
    return this.#start()
  }

  async #read<T>(act: (sql: SqliteStatements, parts: typeof Opened) => T): Promise<T> {
    const open = this.#healthy ?? (await this.#opened(false))
    this.#check()
    open.writer.checkFile()
    return open.parts.runWhenFree(this.#clock, () => act(open.ground.sql, open.parts))
  }

  /**
   * Gives the pages of removed sessions back to the disk, a few at a time, so that other writers do not wait long. It
   * is not part of the removal: a file that cannot shrink, or is busy, reuses its free pages.
   */
  async #shrink(): Promise<void> {
    const open = this.#open
    if (open === null) return
    const { db, file, statements } = open.connection
    const { runWhenFree, hasRoom } = open.parts
    const isLow = !hasRoom(file, LOW_ROOM_BYTES)
    const pages = isLow ? SHRINK_PAGES_LOW : SHRINK_PAGES
    try {
      for (let before = Number.POSITIVE_INFINITY; !this.#closed; ) {
        // The write-ahead log takes room as well, and nothing goes back to the disk before the log was moved into the
        // file.
        if (isLow) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
        const { freelist_count: free } = statements.free.get() as { freelist_count: number }
        if (free === 0 || free >= before) return
        before = free
        await runWhenFree(this.#clock, () => db.exec(`PRAGMA incremental_vacuum(${pages})`))
        await new Promise((resolve) => setImmediate(resolve))
      }
    } catch {
      // The next write meets the same error and reports it.
    }
  }

  #check(): void {
    if (this.#closed) throw new Fault('store_closed', 'The store is closed.')
  }

  /** Opens on first use. A failed opening is tried again by the next call. */
  #start(): Promise<OpenStore> {
    this.#check()
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #connect(): Promise<OpenStore> {
    const driver = this.#machine.loadDriver()
    const parts = await import('./store-parts.ts')
    const { file, readOnly } = parts.prepareReading(this.#path, this.#machine.fileSystemOf)
    const { connection, full } = await parts.openReadable(file, driver, this.#clock)
    const sql = connection.statements
    const ground: BatchState = { sql, rows: new Map(), workers: new Map(), damaged: new Map(), pos: 0 }
    const writer = new parts.SqliteWriter(connection, {
      ground,
      now: () => this.now(),
      clock: this.#clock,
      after: (batch) => this.#tell(batch),
    })
    const watcher = new parts.WalWatcher(file, this.#clock, () => this.#look())
    this.#open = { parts, connection, ground, writer, watcher, readOnly, full }
    if (this.#listeners.hasCards) this.#cards = new parts.CardChanges(sql)
    if (!this.#listeners.empty) this.#listen()
    return this.#open
  }

  #listen(): void {
    if (this.#closed) return
    const open = this.#open
    // Opening starts the watcher when it is done. The next read or write reports its failure.
    if (!open) return void this.#start().catch(() => {})
    if (open.watcher.running) return
    open.watcher.start()
    this.#dataVersion = dataVersionOf(open)
    for (const session of this.#listeners.sessions) this.#told.set(session, seqOf(open, session))
  }

  #unlisten(remove: () => void): void {
    remove()
    if (!this.#listeners.hasCards) this.#cards = null
    if (this.#listeners.empty) this.#open?.watcher.stop()
  }

  /** After this process's own commit. A listener that missed another's events is told to read them itself. */
  #tell(batch: SqliteBatch): void {
    this.#open?.watcher.wrote()
    for (const session of batch.removed) {
      this.#told.set(session, 0)
      this.#listeners.tell(session, null)
    }
    for (const { session, was, seq, events } of batch.grown) {
      if (!this.#listeners.watches(session)) continue
      const told = this.#told.get(session)
      this.#told.set(session, seq)
      this.#listeners.tell(session, told === (was?.seq ?? 0) ? events : null)
    }
    if (this.#cards) for (const session of batch.touched) this.#listeners.tellCard(session)
    if (batch.stirred) this.#listeners.tellDue()
  }

  /** Something was written to the file, perhaps by another process. */
  #look(): void {
    const open = this.#open
    if (!open) return
    try {
      open.writer.checkFile()
      const version = dataVersionOf(open)
      if (version === this.#dataVersion) return
      this.#dataVersion = version
      for (const session of this.#listeners.sessions) {
        const seq = seqOf(open, session)
        if (seq === this.#told.get(session)) continue
        this.#told.set(session, seq)
        this.#listeners.tell(session, null)
      }
      for (const session of this.#cards?.look() ?? []) this.#listeners.tellCard(session)
      this.#listeners.tellDue()
    } catch (error) {
      // Busy or damaged: the next read reports it, and the next write triggers another look.
      this.#dataVersion = -1
      if (error instanceof Fault && error.code === 'store_replaced') this.#tellAll()
    }
  }

  /** Everybody who waits for news asks the store, and so learns that its file is gone. */
  #tellAll(): void {
    for (const session of this.#listeners.sessions) this.#listeners.tell(session, null)
    this.#listeners.tellDue()
  }
}

function seqOf(open: OpenStore, session: string): number {
  return (open.ground.sql.seq.get(session) as { seq: number } | undefined)?.seq ?? 0
}

function dataVersionOf(open: OpenStore): number {
  return (open.ground.sql.dataVersion.get() as { data_version: number }).data_version
}
