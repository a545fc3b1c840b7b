// The store in an SQLite file: durable, and shared by any number of processes on one machine. This file ties its parts together.
// Admission is plan.ts, transactions writer.ts, reading read.ts, other processes watch.ts.
import type { Card } from '../../ports/store.ts'
import type { Event } from '../../kernel/event.ts'
import { assert, Fault } from '../../kernel/failure.ts'
import type {
  AccountRow,
  Blob,
  CardPage,
  CardQuery,
  Claim,
  Holder,
  Page,
  ProcessId,
  Receipt,
  Removal,
  Snapshot,
  Store,
  StoreHealth,
  Write,
} from '../../ports/store.ts'
import type { Reader } from '../move/rows.ts'
import type { Ends } from '../plan/removal.ts'
import type { Clock } from '../../ports/system.ts'
import { checkCount } from '../plan/count.ts'
import { checkQuery, queryOf } from '../plan/query.ts'
import { Listeners } from '../plan/listeners.ts'
import type { Batch, Ground } from './batch.ts'
import type { CardNews } from './card-news.ts'
import type { Driver } from './driver.ts'
import type { FileSystemOf } from './file.ts'
import { isAhead, isLive } from '../plan/plan.ts'
import type { Mark } from './mark.ts'
import type { Connection } from './open.ts'
import type * as Opened from './opened.ts'
import type { WorkerRow } from './rows.ts'
import type { Statements } from './schema.ts'
import type { Watcher } from './watch.ts'
import type { Writer } from './writer.ts'

/** What the store takes from the machine. */
export type Machine = {
  readonly clock: Clock
  /** For what lasts. Default: the same. */
  readonly steady?: Clock
  readonly loadDriver: () => Driver
  readonly fileSystemOf: FileSystemOf
}

const MAKE_WRITABLE = 'Make the file and its folder writable, and open it again.'

/** A few milliseconds' worth. */
const SHRINK_PAGES = 512
/** With less free room than a write-ahead log takes before SQLite empties it, the file gets smaller in small steps. */
const LOW_ROOM_BYTES = 8 * 1024 * 1024
const SHRINK_PAGES_LOW = 16

type Open = {
  /** The code that works on an open file. */
  readonly parts: typeof Opened
  readonly connection: Connection
  readonly ground: Ground
  readonly writer: Writer
  readonly watcher: Watcher
  /** What is open is a copy. */
  readonly readOnly: boolean
  /** The disk was full when it was opened: it is only read, and opened again when there is room. */
  readonly full: boolean
}

export class SqliteStore implements Store {
  readonly reach = 'machine'
  readonly #path: string
  readonly #machine: Machine
  readonly #clock: Clock
  readonly #listeners = new Listeners()
  /** How far the listeners of a session have been told. */
  readonly #told = new Map<string, number>()
  /** Null while nobody watches the cards of all sessions. */
  #cards: CardNews | null = null
  #shrinking: Promise<void> | null = null
  #open: Open | null = null
  #opening: Promise<Open> | null = null
  #closed = false
  /** A reader uses the connection of a store on a full disk, so that one stays open until the store is closed. */
  #isLent = false
  /** The latest time that the clock has said, since this process first asked what is due. */
  #latest: number | null = null
  #dataVersion = -1

  constructor(path: string, machine: Machine) {
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
    const page = await this.#read((sql, { readLog }) => readLog(sql, session, { after, limit, bytesMax }))
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
    return this.#read((sql, { readSnapshot }) => readSnapshot(sql, session, upTo))
  }

  keep(session: string, snapshots: Parameters<Store['keep']>[1]): Promise<void> {
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
    if (this.#open) this.#cards ??= new this.#open.parts.CardNews(this.#open.ground.sql)
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

  async due(limit: number, agents?: readonly string[]): Promise<readonly string[]> {
    checkCount('limit', limit)
    const { damaged } = (this.#open ?? (await this.#start())).ground
    await this.#doubt()
    // A damaged session cannot go on, and must not keep workers busy trying.
    const found = await this.#read((sql, { readDue }) => readDue(sql, this.now(), limit + damaged.size, agents))
    return found.filter((session) => !damaged.has(session)).slice(0, limit)
  }

  /**
   * Looked for when this process first asks what is due, and again when the clock went back or a lease lies ahead: then some process
   * had another clock, and what it wrote would wait for its time.
   */
  async #doubt(): Promise<void> {
    if (this.#open?.readOnly) return
    const now = this.now()
    const back = this.#latest === null || isAhead(this.#latest, now)
    this.#latest = back ? now : Math.max(this.#latest ?? 0, now)
    const leased = await this.#read((sql, { isAnyAhead }) => isAnyAhead(sql, now))
    if (!back && !leased) return
    const ahead = await this.#read((sql, { readAhead }) => readAhead(sql, now))
    if (ahead.length > 0 || leased) await this.#write((batch) => batch.doubt(ahead))
  }

  async nextDue(agents?: readonly string[]): Promise<number | null> {
    const { damaged } = (this.#open ?? (await this.#start())).ground
    const now = this.now()
    // A lease that lies ahead hides nothing: asking what is due takes it away.
    return this.#read((sql, { isAnyAhead, readNextDue }) =>
      isAnyAhead(sql, now) ? now : readNextDue(sql, damaged, agents),
    )
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<readonly Card[]> {
    checkCount('limit', filter.limit)
    if (filter.newest) return (await this.page(queryOf(filter))).cards
    return this.#read((sql, { readList }) => readList(sql, filter))
  }

  async listBelow(roots: readonly string[], limit: number): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql, { readBelow }) => readBelow(sql, roots, limit))
  }

  async page(query: CardQuery): Promise<CardPage> {
    checkQuery(query)
    const { parts } = this.#open ?? (await this.#start())
    return parts.readPage((act) => this.#read(act), query)
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
      const worker = sql.address.get(session) as WorkerRow | undefined
      return worker && isLive(worker, this.now()) ? worker.address : null
    })
  }

  /** How far it is now: which file, and its last event. Keep it to notice an older copy later. */
  mark(): Promise<Mark> {
    return this.#read((_sql, { readMark }) => readMark(this.#connection().db))
  }

  /** Refuses with `store_replaced` unless this is the store of that mark, and has all that it had then. */
  verify(mark: Mark): Promise<void> {
    return this.#read((_sql, { checkMark }) => checkMark(this.#connection().db, this.#connection().file, mark))
  }

  /** Why it takes no writes: it was moved, what is moved to it is not complete, or it has less than was acknowledged. Null: it does. */
  moved(): Promise<string | null> {
    return this.#read((_sql, { moveIn, MarkFile }) => {
      const connection = this.#connection()
      return moveIn(connection.db)?.text ?? new MarkFile(connection).check()?.message ?? null
    })
  }

  /** All rows. On a full disk no second connection can be opened, so there the reader uses the one of this store. */
  async reader(): Promise<Reader> {
    const open = await this.#opened(false)
    const { readConnection, readSqlite } = await import('./move.ts')
    if (!open.full) return readSqlite(this.#path)
    this.#isLent = true
    return readConnection(open.connection)
  }

  #connection(): Connection {
    assert(this.#open, 'whoever reads has opened')
    return this.#open.connection
  }

  async remove(session: string, by: string, ends?: Ends): Promise<readonly Removal[]> {
    const removed = await this.#write((batch) => batch.remove(session, by, ends), session)
    // Of many that are removed together, one makes the file smaller for all.
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

  /** What was asked before is still written. */
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
    open.parts.closeFile(open.connection)
    if (open.readOnly) open.parts.dropCopy(open.connection.file)
  }

  async #write<T>(act: (batch: Batch) => T, session = ''): Promise<T> {
    const open = this.#healthy ?? (await this.#opened(true))
    this.#check()
    if (open.full) throw open.parts.fullFault()
    if (open.readOnly) throw new Fault('io_error', `${this.#path} cannot be written, only read. ${MAKE_WRITABLE}`)
    return open.writer.submit(session, act)
  }

  /** What is open, at once: no turn waits for a disk that is not full. */
  get #healthy(): Open | null {
    return this.#open?.full === false ? this.#open : null
  }

  /** One that was opened on a full disk is opened again where there may be room by now, as it keeps other processes out. */
  async #opened(writes: boolean): Promise<Open> {
    const open = this.#open ?? (await this.#start())
    if (!open.full || this.#closed || this.#isLent) return open
    if (!writes && !open.parts.hasRoom(open.connection.file)) return open
    if (this.#open === open) {
      this.#open = null
      this.#opening = null
      open.watcher.stop()
      open.writer.close()
      open.parts.closeFile(open.connection)
    }
    return this.#start()
  }

  async #read<T>(act: (sql: Statements, parts: typeof Opened) => T): Promise<T> {
    const open = this.#healthy ?? (await this.#opened(false))
    this.#check()
    open.writer.checkFile()
    return open.parts.whenFree(this.#clock, () => act(open.ground.sql, open.parts))
  }

  /**
   * Gives the pages of removed sessions back to the disk, a few at a time, so that other writers do not wait long. It is no part of the
   * removal: a file that cannot do it, or is busy, uses its free pages again.
   */
  async #shrink(): Promise<void> {
    const open = this.#open
    if (open === null) return
    const { db, file, statements } = open.connection
    const { whenFree, hasRoom } = open.parts
    const isLow = !hasRoom(file, LOW_ROOM_BYTES)
    const pages = isLow ? SHRINK_PAGES_LOW : SHRINK_PAGES
    try {
      for (let before = Number.POSITIVE_INFINITY; !this.#closed; ) {
        // The write-ahead log takes room as well, and nothing goes back to the disk before it was moved into the file.
        if (isLow) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
        const { freelist_count: free } = statements.free.get() as { freelist_count: number }
        if (free === 0 || free >= before) return
        before = free
        await whenFree(this.#clock, () => db.exec(`PRAGMA incremental_vacuum(${pages})`))
        await new Promise((resolve) => setImmediate(resolve))
      }
    } catch {
      // Whatever it was, the next write meets it and reports it.
    }
  }

  #check(): void {
    if (this.#closed) throw new Fault('store_closed', 'The store is closed.')
  }

  /** Opens on first use. A failed opening is tried again by the next call. */
  #start(): Promise<Open> {
    this.#check()
    this.#opening ??= this.#connect().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #connect(): Promise<Open> {
    const driver = this.#machine.loadDriver()
    const parts = await import('./opened.ts')
    const { file, readOnly } = parts.prepareReading(this.#path, this.#machine.fileSystemOf)
    const { connection, full } = await parts.openReadable(file, driver, this.#clock)
    const sql = connection.statements
    const ground: Ground = { sql, rows: new Map(), workers: new Map(), damaged: new Map(), pos: 0 }
    const writer = new parts.Writer(connection, {
      ground,
      now: () => this.now(),
      clock: this.#clock,
      after: (batch) => this.#tell(batch),
    })
    const watcher = new parts.Watcher(file, this.#clock, () => this.#look())
    this.#open = { parts, connection, ground, writer, watcher, readOnly, full }
    if (this.#listeners.hasCards) this.#cards = new parts.CardNews(sql)
    if (!this.#listeners.empty) this.#listen()
    return this.#open
  }

  #listen(): void {
    if (this.#closed) return
    const open = this.#open
    // Opening starts the watcher when it is done. Its failure is reported by the next read or write.
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

  /** After our own commit. A listener that missed another's events is told to read for itself. */
  #tell(batch: Batch): void {
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
    } catch {
      // Busy or damaged: the next read reports it, and the next write makes us look again.
      this.#dataVersion = -1
    }
  }
}

function seqOf(open: Open, session: string): number {
  return (open.ground.sql.seq.get(session) as { seq: number } | undefined)?.seq ?? 0
}

function dataVersionOf(open: Open): number {
  return (open.ground.sql.dataVersion.get() as { data_version: number }).data_version
}
