// The store in a Postgres database: durable, and shared by processes on any machines. This file ties its parts
// together: plan-writes.ts admits, write-queue.ts writes, database-queries.ts reads. Connections and the news of other
// processes are passed in.
import type { Labels } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type {
  AccountRow,
  Blob,
  Card,
  CardFilter,
  CardPage,
  CardQuery,
  Claim,
  CompleteStore,
  DueSessions,
  Holder,
  NetworkHealth,
  Page,
  DeltaChannel,
  ProcessId,
  Receipt,
  Removal,
  Snapshot,
  Snapshots,
  StoreHealth,
  TakeOptions,
  Write,
} from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { checkCount } from '../plan/check-count.ts'
import { checkId } from '../plan/store-ids.ts'
import { Listeners } from '../plan/listeners.ts'
import { CLOCK_SLACK_MS, isAhead } from '../plan/plan-writes.ts'
import { checkQuery } from '../plan/card-query.ts'
import type { ExpectedEnds } from '../plan/plan-removal.ts'
import type { PostgresBatch } from './postgres-batch.ts'
import { DatabaseClock } from './database-clock.ts'
import { HintLag } from './hint-lag.ts'
import { commitWork, WriteQueue } from './write-queue.ts'
import { migrate } from './migrate.ts'
import { queryCardPage } from './postgres-pages.ts'
import {
  isAnyLeaseAhead,
  type LogPage,
  queryAccount,
  queryAddress,
  queryAhead,
  queryBlob,
  queryCard,
  queryDue,
  queryEnds,
  queryGrown,
  queryHealth,
  queryHolders,
  queryCardsBelow,
  queryWakingCards,
  queryCardList,
  queryLog,
  queryMoved,
  queryNextDue,
  queryNow,
  queryRemovals,
  queryInboxSeq,
} from './database-queries.ts'
import { extendLeases } from './heartbeat.ts'
import { removeSessionRows } from './remove-session.ts'
import { type FreedRooms, freeRooms } from './event-rooms.ts'
import { hourOf } from './postgres-rows.ts'
import { insertSnapshots, querySnapshot } from './postgres-snapshots.ts'
import type { StoreConnections, WriteSql, Sql } from './sql.ts'
import { PAST_WORKERS, takeDue } from './take-due.ts'
import { sqlInSchema, writeSqlInSchema, SCHEMA_DEFAULT } from './schema-texts.ts'

/** Tells other processes of commits; commit-hints.ts implements it. Hints may be lost, late, doubled or forged. */
export interface HintSender {
  /** Used as long as there are watchers. */
  start(): Promise<void>
  stop(): void
  /** From now on other processes report growth. Returns a function that ends it. */
  follow(): () => void
  /** Called after a commit: the new seqs of these sessions (0: removed), and whether one may have become due. */
  tell(grown: ReadonlyMap<string, number>, due: boolean): void
  close(): Promise<void>
}

export type PostgresStoreOptions = {
  /** The schema of its tables. */
  readonly schema?: string
  /** The id of the store that must exist. */
  readonly expects?: string | null
  /** For tests: replaces the database's time everywhere. */
  readonly clock?: Clock
  /** Must call `heard` with the changes of other processes, and `lag` with their times. */
  readonly hints?: (heard: PostgresStore['heard'], lag: HintLag) => HintSender
  /** Opens a channel for live deltas. Absent: they stay in their process. */
  readonly post?: () => DeltaChannel
}

export class PostgresStore implements CompleteStore {
  readonly workers = this
  readonly notifications = this
  readonly snapshots = this
  readonly search = this
  readonly upkeep = this
  readonly deltas = this
  readonly moving = this
  readonly reach = 'network'
  readonly #connections: StoreConnections
  readonly #clock: Clock | null
  readonly #schema: string
  readonly #expects: string | null
  readonly #sql: WriteSql
  readonly #reader: Sql
  readonly #heartbeat: Sql
  readonly #server = new DatabaseClock()
  readonly #lane: WriteQueue
  readonly #listeners = new Listeners()
  /** The seq that the listeners of each session have been told. */
  readonly #told = new Map<string, number>()
  /** When the cards of all sessions were last compared. */
  #cardsAt = 0
  /** The next due time at the last comparison. */
  #nextDue: number | null = null
  #opening: Promise<void> | null = null
  #closing: Promise<void> | null = null
  /** The latest time of the clock since this process first asked for due sessions. */
  #latest: number | null = null
  #taken = 0
  readonly #hints: HintSender | null
  readonly #claims = { asked: 0, vain: 0 }
  readonly #lag = new HintLag(() => this.now())
  readonly post?: () => DeltaChannel

  constructor(
    connections: StoreConnections,
    { schema = SCHEMA_DEFAULT, expects = null, clock, hints, post }: PostgresStoreOptions = {},
  ) {
    this.#connections = connections
    this.#clock = clock ?? null
    this.#schema = schema
    this.#expects = expects
    if (post) this.post = post
    this.#hints = hints?.((sessions, due) => this.heard(sessions, due), this.#lag) ?? null
    this.#sql = writeSqlInSchema(connections.lane, schema)
    this.#reader = sqlInSchema(connections.reader, schema)
    this.#heartbeat = sqlInSchema(connections.heartbeat, schema)
    this.#lane = new WriteQueue({
      sql: this.#sql,
      now: () => this.now(),
      asideMs: connections.patienceMs,
      askedAt: () => this.#server.asked,
      heardNow: (time, asked) => {
        this.#server.heard(time, asked)
        return this.now()
      },
      after: (batch) => this.#tell(batch),
    })
  }

  /**
   * How many statements wrote something, how often rows had changed before the write, and how often an answer was lost.
   */
  get counts(): { readonly written: number; readonly moved: number; readonly lost: number } {
    const { written, moved, lost } = this.#lane
    return { written, moved, lost }
  }

  async open(): Promise<void> {
    this.#check()
    this.#opening ??= this.#start().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #start(): Promise<void> {
    await this.#connections.open()
    await this.#lane.alone(() =>
      migrate(this.#sql, this.#schema, (work) => this.#sql.transaction(work, { isLong: true }), this.#expects),
    )
    for (let i = 0; i < CLOCK_ASKED; i++) {
      const asked = this.#server.asked
      // On the reader, where a lost answer is simply asked for again.
      this.#server.heard(await queryNow(this.#reader), asked)
    }
    this.#cardsAt = this.now()
    for (const session of this.#listeners.sessions) this.#learn(session)
  }

  now(): number {
    const now = this.#clock?.now() ?? this.#server.now()
    if (this.#latest !== null && now > this.#latest) this.#latest = now
    return now
  }

  commit(writes: readonly Write[]): Promise<readonly Receipt[]> {
    return this.#write(() => this.#lane.submit(commitWork(writes)))
  }

  async read(session: string, after: number, limit = Number.MAX_SAFE_INTEGER, bytesMax?: number): Promise<Page> {
    checkCount('after', after)
    checkCount('limit', limit)
    if (bytesMax !== undefined) checkCount('bytesMax', bytesMax)
    const log = (): Promise<LogPage> =>
      this.#read((sql) => queryLog(sql, session, { after, limit, bytesMax: bytesMax ?? null }))
    const first = await log()
    // As in the write queue: a table created at that moment may not have been seen.
    const { n, away, ...page } = first.damaged && !first.away ? await log() : first
    // Events in a detached table may come back.
    if (page.damaged && !away) this.#lane.damaged.set(n, `event ${page.damaged.seq}: ${page.damaged.reason}`)
    return page
  }

  sent(session: string, id: string): Promise<number | null> {
    return this.#read((sql) => queryInboxSeq(sql, session, id))
  }

  async snapshot(session: string, upTo?: number): Promise<Snapshot | null> {
    if (upTo !== undefined) checkCount('upTo', upTo)
    return this.#read((sql) => querySnapshot(sql, session, upTo))
  }

  keep(session: string, snapshots: Parameters<Snapshots['keep']>[1]): Promise<void> {
    return this.#write(() => this.#lane.alone(() => insertSnapshots(this.#sql, session, snapshots), session))
  }

  watch(session: string, listener: (news: readonly Event[] | null) => void, only?: 'inbox'): () => void {
    const isFirst = !this.#listeners.watches(session)
    const remove = this.#listeners.addSession(session, listener)
    if (isFirst) this.#told.delete(session)
    if (isFirst && this.#opening !== null && this.#closing === null) this.#learn(session)
    return this.#listening(remove, only !== 'inbox')
  }

  watchDue(listener: () => void): () => void {
    return this.#listening(this.#listeners.addDue(listener), false)
  }

  watchCards(listener: (session: string) => void): () => void {
    if (!this.#listeners.hasCards) this.#cardsAt = this.now()
    return this.#listening(this.#listeners.addCards(listener), true)
  }

  /** Listens for hints while there are watchers, and asks for growth hints while a watcher follows other processes. */
  #listening(remove: () => void, follows: boolean): () => void {
    if (this.#closing === null) this.#hints?.start().catch(() => {})
    const leave = follows && this.#closing === null ? this.#hints?.follow() : null
    return () => {
      remove()
      leave?.()
      if (this.#listeners.empty) this.#hints?.stop()
    }
  }

  async claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Promise<Claim | null> {
    const holder = this.#lane.remembered(session)?.worker
    // Only the database knows whether another worker's lease has ended. The statement itself checks that a session is
    // free.
    const remembered = holder === null || holder === worker
    const claimed = await this.#write(() =>
      this.#lane.submit({
        want: (wants) => {
          wants.sessions.add(session)
          if (!remembered || !this.#lane.knowsWorker(worker)) wants.workers.add(worker)
        },
        act: (batch) => batch.claim(session, worker, ttlMs, process),
        remembered,
      }),
    )
    this.#claims.asked += 1
    if (claimed === null) this.#claims.vain += 1
    return claimed
  }

  /**
   * Claims up to `limit` due sessions in the order of `due`: only of these agents if given, and with `fresh` none that
   * failed before.
   */
  async take(worker: string, ttlMs: number, wanted: TakeOptions): Promise<ReadonlyMap<string, Claim>> {
    checkId('worker id', worker)
    checkCount('limit', wanted.limit)
    return this.#write(async () => {
      await this.#doubt()
      const token = `${this.now()}.${this.#taken++}`
      return this.#lane.alone(async () => {
        const [now, damaged] = [this.#clock?.now() ?? null, [...this.#lane.damaged.keys()]]
        const taken = await takeDue(this.#sql, { worker, ttlMs, wanted, token, now, damaged })
        const { host = null, pid = null, started = null } = wanted.process ?? {}
        for (const { session, row, claim, ttlMs: keptMs } of taken) {
          this.#lane.remember(session, row)
          this.#lane.rememberWorker(worker, { until: claim.until, ttlMs: keptMs, address: null, host, pid, started })
        }
        this.#claims.asked += taken.length
        return new Map(taken.map(({ session, claim }) => [session, claim]))
      })
    })
  }

  extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>> {
    return this.#write(async () => {
      checkId('worker id', worker)
      await this.#lane.verify(this.#heartbeat)
      const beat = await extendLeases(this.#heartbeat, { worker, ttlMs, now: this.#clock?.now() ?? null })
      this.#lane.rememberWorker(worker, beat.worker)
      return beat.held
    })
  }

  holders(host: string): Promise<readonly Holder[]> {
    return this.#read((sql) => queryHolders(sql, host, this.now()))
  }

  expire(worker: string, process: ProcessId): Promise<boolean> {
    const want = { want: (wants: { readonly workers: Set<string> }) => void wants.workers.add(worker) }
    return this.#write(() => this.#lane.submit({ ...want, act: (batch) => batch.expire(worker, process) }))
  }

  release(session: string, epoch: number, trouble?: Card['trouble']): Promise<void> {
    const want = (wants: { readonly sessions: Set<string> }): void => void wants.sessions.add(session)
    return this.#write(() => this.#lane.submit({ want, act: (batch) => batch.release(session, epoch, trouble) }))
  }

  card(session: string): Promise<Card | null> {
    return this.#read((sql) => queryCard(sql, session))
  }

  async due(limit: number, agents?: readonly string[]): Promise<DueSessions> {
    checkCount('limit', limit)
    const sessions = limit === 0 ? [] : await this.#due(limit, agents)
    return { sessions, next: sessions.length > 0 ? this.now() : await this.#readNextDue(agents) }
  }

  async #due(limit: number, agents?: readonly string[]): Promise<readonly string[]> {
    await this.#doubt()
    return this.#read((sql) => queryDue(sql, this.now(), limit, { skip: [...this.#lane.damaged.keys()], agents }))
  }

  /**
   * Runs when this process first asks for due sessions, and again when the clock went back or a lease has times in the
   * future. Then some process had a wrong clock, and the due times that it wrote would delay their sessions.
   */
  async #doubt(): Promise<void> {
    await this.open()
    const now = this.now()
    const back = this.#latest === null || isAhead(this.#latest, now)
    this.#latest = back ? now : Math.max(this.#latest ?? 0, now)
    const leased = await isAnyLeaseAhead(this.#reader, now)
    if (!back && !leased) return
    const ahead = await queryAhead(this.#reader, now)
    const want = (wants: { readonly sessions: Set<string> }): void => {
      for (const session of ahead) wants.sessions.add(session)
    }
    if (ahead.length > 0) await this.#lane.submit({ want, act: (batch) => batch.doubt(ahead) })
    if (leased) await this.#lane.alone(() => this.#sql.ask('past workers', PAST_WORKERS, [now]))
  }

  #readNextDue(agents?: readonly string[]): Promise<number | null> {
    return this.#read((sql) => queryNextDue(sql, this.now(), { skip: [...this.#lane.damaged.keys()], agents }))
  }

  async list(filter: CardFilter): Promise<readonly Card[]> {
    checkCount('limit', filter.limit)
    return this.#read((sql) => queryCardList(sql, filter))
  }

  async listBelow(roots: readonly string[], limit: number): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql) => queryCardsBelow(sql, roots, limit))
  }

  async listWaking(limit: number, where: Labels = {}): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql) => queryWakingCards(sql, limit, where))
  }

  async page(query: CardQuery): Promise<CardPage> {
    checkQuery(query)
    return this.#read((sql) => queryCardPage(sql, query))
  }

  blob(hash: string, of?: string): Promise<Blob | null> {
    return this.#read((sql) => queryBlob(sql, hash, of))
  }

  account(id: string): Promise<AccountRow | null> {
    return this.#read((sql) => queryAccount(sql, id))
  }

  async announce(worker: string, address: string, ttlMs: number): Promise<void> {
    const want = (wants: { readonly workers: Set<string> }): void => void wants.workers.add(worker)
    await this.#write(() => this.#lane.submit({ want, act: (batch) => void batch.extend(worker, ttlMs, { address }) }))
  }

  address(session: string): Promise<string | null> {
    return this.#read((sql) => queryAddress(sql, session, this.now()))
  }

  remove(session: string, by: string, ends?: ExpectedEnds): Promise<readonly Removal[]> {
    let now: number | null = null
    return this.#write(() =>
      this.#lane.alone(async (again) => {
        // The same for all tries: a repeated removal is recognised by it.
        now ??= this.now()
        const removed = await removeSessionRows(this.#sql, { session, by, now, ends }, again)
        for (const each of removed) {
          this.#lane.forget(each.session)
          this.#told.set(each.session, 0)
          this.#listeners.tell(each.session, null)
          this.#listeners.tellCard(each.session)
        }
        this.#hints?.tell(new Map(removed.map((each) => [each.session, 0])), false)
        return removed
      }, session),
    )
  }

  async removals(limit: number): Promise<readonly Removal[]> {
    checkCount('limit', limit)
    return this.#read((sql) => queryRemovals(sql, limit))
  }

  health(): Promise<StoreHealth> {
    // Asked on the writing connection, because the reader keeps commits differently.
    return this.#write(() => this.#lane.alone(() => queryHealth(this.#sql, this.now(), this.#met)))
  }

  get #met(): Omit<NetworkHealth, 'server'> {
    const { made: connects } = this.#connections
    return { ...this.counts, connects, claims: { ...this.#claims }, news: this.#lag.counts }
  }

  /**
   * Frees the space of event tables whose sessions are all removed. Returns which tables were dropped, and which could
   * not be.
   */
  freeRooms(): Promise<FreedRooms> {
    return this.#write(() => this.#lane.alone(() => freeRooms(this.#sql)))
  }

  /** Unique among all stores. */
  async id(): Promise<string> {
    const [meta] = await this.#read((sql) => sql.ask<{ store: string }>('store id', 'select store from ~meta'))
    return meta?.store ?? ''
  }

  /** Why it takes no writes: it was moved to another store, or a move to it is not complete. Null: it takes writes. */
  moved(): Promise<string | null> {
    return this.#read(queryMoved)
  }

  /** Earlier requests are still written. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    this.#listeners.clear()
    await this.#opening?.catch(() => {})
    await this.#lane.idle()
    await this.#hints?.close()
    await this.#connections.close()
  }

  /**
   * Other processes have written: these sessions have new seqs (0: removed), and `due` says whether one may have become
   * due. Known changes are not told again. Null: news may have been missed, and everything watched is compared.
   */
  async heard(sessions: ReadonlyMap<string, number> | null, due: boolean): Promise<void> {
    if (this.#closing !== null) return
    try {
      await this.#compare(sessions, due)
    } catch (error) {
      if (error instanceof Fault && error.code === 'store_replaced') this.#tellAll()
      throw error
    }
  }

  /** Everybody who waits for news asks the store, and so learns that it is gone. */
  #tellAll(): void {
    for (const session of this.#listeners.sessions) this.#listeners.tell(session, null)
    this.#listeners.tellDue()
  }

  async #compare(sessions: ReadonlyMap<string, number> | null, due: boolean): Promise<void> {
    const ends = sessions === null ? await this.#compared() : null
    const seqs = sessions ?? new Map([...(ends ?? [])].map(([session, { seq }]) => [session, seq]))
    for (const [session, seq] of seqs) {
      const told = this.#told.get(session)
      // A hint may be wrong; then the next comparison corrects it.
      const isNews = told !== undefined && (sessions === null ? seq !== told : seq > told || (seq === 0 && told > 0))
      if (isNews) this.#told.set(session, seq)
      if (isNews) this.#listeners.tell(session, null)
      if (isNews && ends !== null) this.#lag.miss(ends.get(session)?.at ?? null)
      if (sessions !== null) this.#listeners.tellCard(session)
    }
    if (sessions === null ? await this.#isDueNews() : due) this.#listeners.tellDue()
  }

  /** True if something is due, or if the next due time has changed since the last comparison. */
  async #isDueNews(): Promise<boolean> {
    if (!this.#listeners.hasDue) return false
    const before = this.#nextDue
    this.#nextDue = await this.#readNextDue()
    return this.#nextDue !== before || (this.#nextDue !== null && this.#nextDue <= this.now())
  }

  /** The last seqs of all watched sessions. Changed cards are told at once. */
  async #compared(): Promise<ReadonlyMap<string, { readonly seq: number; readonly at: number | null }>> {
    const watched = [...this.#listeners.sessions]
    const ends = await queryEnds(this.#reader, watched)
    if (this.#listeners.hasCards) {
      const since = this.#cardsAt - CLOCK_SLACK_MS
      this.#cardsAt = this.now()
      for (const session of await queryGrown(this.#reader, since, hourOf(since))) this.#listeners.tellCard(session)
    }
    return new Map(watched.map((session) => [session, ends.get(session) ?? { seq: 0, at: null }]))
  }

  /** Notes the seq of a session when it is first watched: later events are news. */
  #learn(session: string): void {
    const known = this.#lane.remembered(session)
    if (known) return void this.#told.set(session, known.seq)
    const learned = queryEnds(this.#reader, [session]).then((ends) => {
      if (!this.#told.has(session)) this.#told.set(session, ends.get(session)?.seq ?? 0)
    })
    // If it cannot be read, the next comparison or commit tells the listeners.
    learned.catch(() => {})
  }

  /** After this process's own commit. A listener that missed another's events is told to read them itself. */
  #tell(batch: PostgresBatch): void {
    for (const { session, was, seq, events } of batch.grown) {
      if (!this.#listeners.watches(session)) continue
      const told = this.#told.get(session)
      this.#told.set(session, seq)
      const isWhole = told === undefined || told === (was?.seq ?? 0)
      this.#listeners.tell(session, isWhole ? events : null)
    }
    if (this.#listeners.hasCards) for (const session of batch.changes.keys()) this.#listeners.tellCard(session)
    if (batch.stirred) this.#listeners.tellDue()
    const grown = new Map<string, number>()
    for (const [session, { row }] of batch.changes) grown.set(session, row.seq)
    if (grown.size > 0 || batch.stirred) this.#hints?.tell(grown, batch.stirred)
  }

  async #write<T>(act: () => Promise<T>): Promise<T> {
    // Requests of the same moment keep their order.
    await this.open()
    return act()
  }

  async #read<T>(act: (sql: Sql) => Promise<T>): Promise<T> {
    await this.open()
    return act(this.#reader)
  }

  #check(): void {
    if (this.#closing !== null) throw new Fault('store_closed', 'The store is closed.')
  }
}

/** How often the clock is read when the store is opened: the quickest answer is the most exact. */
const CLOCK_ASKED = 3
