// The store in a Postgres database: durable, and shared by processes on any machines. This file ties its parts together.
// Admission is plan.ts, writing lane.ts, reading read.ts. Connections, and what other processes write, come from outside.
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type {
  AccountRow,
  Blob,
  Card,
  CardPage,
  CardQuery,
  Claim,
  Holder,
  NetworkHealth,
  Page,
  Post,
  ProcessId,
  Receipt,
  Removal,
  Snapshot,
  Store,
  StoreHealth,
  Taking,
  Write,
} from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { checkCount } from '../plan/count.ts'
import { checkId } from '../plan/id.ts'
import { Listeners } from '../plan/listeners.ts'
import { CLOCK_SLACK_MS, isAhead } from '../plan/plan.ts'
import { checkQuery, queryOf } from '../plan/query.ts'
import type { Ends } from '../plan/removal.ts'
import type { Batch } from './batch.ts'
import { ServerClock } from './clock.ts'
import { Lag } from './lag.ts'
import { commitOf, Lane } from './lane.ts'
import { migrate } from './migrate.ts'
import { readPage } from './pages.ts'
import {
  isAnyAhead,
  type Log,
  readAccount,
  readAddress,
  readAhead,
  readBlob,
  readCard,
  readDue,
  readEnds,
  readGrown,
  readHealth,
  readHolders,
  readBelow,
  readList,
  readLog,
  readMoved,
  readNextDue,
  readNow,
  readRemovals,
  readSent,
} from './read.ts'
import { extendLeases } from './heartbeat.ts'
import { removeSession } from './remove.ts'
import { type FreedRooms, freeRooms } from './rooms.ts'
import { hourOf } from './rows.ts'
import { keepSnapshots, readSnapshot } from './snapshots.ts'
import type { Connections, LaneSql, Sql } from './sql.ts'
import { PAST_WORKERS, takeDue } from './take.ts'
import { inSchema, laneInSchema, SCHEMA_DEFAULT } from './texts.ts'

/** How processes tell each other of their commits: news.ts. Hints may be lost, late, doubled or forged. */
export interface Hints {
  /** For as long as somebody watches. */
  start(): Promise<void>
  stop(): void
  /** From now on others say how far sessions go. Returns its end. */
  follow(): () => void
  /** After a commit: how far these sessions go now (0: removed), and whether one may have become due. */
  tell(grown: ReadonlyMap<string, number>, due: boolean): void
  close(): Promise<void>
}

export type PostgresStoreOptions = {
  /** Where its tables lie. */
  readonly schema?: string
  /** The id of the store that must be there. */
  readonly expects?: string | null
  /** For tests: in place of the database's time, everywhere. */
  readonly clock?: Clock
  /** `heard` is to be called with what other processes did, `lag` with when. */
  readonly hints?: (heard: PostgresStore['heard'], lag: Lag) => Hints
  /** How live deltas travel. Absent: they stay in their process. */
  readonly post?: () => Post
}

export class PostgresStore implements Store {
  readonly reach = 'network'
  readonly #connections: Connections
  readonly #clock: Clock | null
  readonly #schema: string
  readonly #expects: string | null
  readonly #sql: LaneSql
  readonly #reader: Sql
  readonly #heartbeat: Sql
  readonly #server = new ServerClock()
  readonly #lane: Lane
  readonly #listeners = new Listeners()
  /** How far the listeners of a session have been told. */
  readonly #told = new Map<string, number>()
  /** When the cards of all sessions were last compared. */
  #cardsAt = 0
  /** When something was to become due, at the last comparison. */
  #nextDue: number | null = null
  #opening: Promise<void> | null = null
  #closing: Promise<void> | null = null
  /** The latest time that the clock has said, since this process first asked what is due. */
  #latest: number | null = null
  #taken = 0
  readonly #hints: Hints | null
  readonly #claims = { asked: 0, vain: 0 }
  readonly #lag = new Lag(() => this.now())
  readonly post?: () => Post

  constructor(
    connections: Connections,
    { schema = SCHEMA_DEFAULT, expects = null, clock, hints, post }: PostgresStoreOptions = {},
  ) {
    this.#connections = connections
    this.#clock = clock ?? null
    this.#schema = schema
    this.#expects = expects
    if (post) this.post = post
    this.#hints = hints?.((sessions, due) => this.heard(sessions, due), this.#lag) ?? null
    this.#sql = laneInSchema(connections.lane, schema)
    this.#reader = inSchema(connections.reader, schema)
    this.#heartbeat = inSchema(connections.heartbeat, schema)
    this.#lane = new Lane({
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

  /** How many statements wrote something, how often the present had moved by then, and how often an answer was lost. */
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
      // Where a lost answer is simply asked for again.
      this.#server.heard(await readNow(this.#reader), asked)
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
    return this.#write(() => this.#lane.submit(commitOf(writes)))
  }

  async read(session: string, after: number, limit = Number.MAX_SAFE_INTEGER, bytesMax?: number): Promise<Page> {
    checkCount('after', after)
    checkCount('limit', limit)
    if (bytesMax !== undefined) checkCount('bytesMax', bytesMax)
    const log = (): Promise<Log> =>
      this.#read((sql) => readLog(sql, session, { after, limit, bytesMax: bytesMax ?? null }))
    const first = await log()
    // As in the lane: a table that was made just then may not have been seen.
    const { n, away, ...page } = first.damaged && !first.away ? await log() : first
    // What is only elsewhere may come back.
    if (page.damaged && !away) this.#lane.damaged.set(n, `event ${page.damaged.seq}: ${page.damaged.reason}`)
    return page
  }

  sent(session: string, id: string): Promise<number | null> {
    return this.#read((sql) => readSent(sql, session, id))
  }

  async snapshot(session: string, upTo?: number): Promise<Snapshot | null> {
    if (upTo !== undefined) checkCount('upTo', upTo)
    return this.#read((sql) => readSnapshot(sql, session, upTo))
  }

  keep(session: string, snapshots: Parameters<Store['keep']>[1]): Promise<void> {
    return this.#write(() => this.#lane.alone(() => keepSnapshots(this.#sql, session, snapshots), session))
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

  /** Hints are listened for while somebody watches, and asked for while somebody follows what others write. */
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
    // Only the database knows whether another worker's lease has ended. That a session is free is checked by the statement itself.
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

  /** Claims up to `limit` due sessions in the order of `due`: only of these agents if given, and with `fresh` none that failed before. */
  async take(worker: string, ttlMs: number, wanted: Taking): Promise<ReadonlyMap<string, Claim>> {
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
    return this.#read((sql) => readHolders(sql, host, this.now()))
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
    return this.#read((sql) => readCard(sql, session))
  }

  async due(limit: number, agents?: readonly string[]): Promise<readonly string[]> {
    checkCount('limit', limit)
    await this.#doubt()
    return this.#read((sql) => readDue(sql, this.now(), limit, { skip: [...this.#lane.damaged.keys()], agents }))
  }

  /**
   * Looked for when this process first asks what is due, and again when the clock went back or a lease lies ahead: then some process
   * had another clock, and what it wrote would wait for its time.
   */
  async #doubt(): Promise<void> {
    await this.open()
    const now = this.now()
    const back = this.#latest === null || isAhead(this.#latest, now)
    this.#latest = back ? now : Math.max(this.#latest ?? 0, now)
    const leased = await isAnyAhead(this.#reader, now)
    if (!back && !leased) return
    const ahead = await readAhead(this.#reader, now)
    const want = (wants: { readonly sessions: Set<string> }): void => {
      for (const session of ahead) wants.sessions.add(session)
    }
    if (ahead.length > 0) await this.#lane.submit({ want, act: (batch) => batch.doubt(ahead) })
    if (leased) await this.#lane.alone(() => this.#sql.ask('past workers', PAST_WORKERS, [now]))
  }

  async nextDue(agents?: readonly string[]): Promise<number | null> {
    return this.#read((sql) => readNextDue(sql, this.now(), { skip: [...this.#lane.damaged.keys()], agents }))
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<readonly Card[]> {
    checkCount('limit', filter.limit)
    if (filter.newest) return (await this.page(queryOf(filter))).cards
    return this.#read((sql) => readList(sql, filter))
  }

  async listBelow(roots: readonly string[], limit: number): Promise<readonly Card[]> {
    checkCount('limit', limit)
    return this.#read((sql) => readBelow(sql, roots, limit))
  }

  async page(query: CardQuery): Promise<CardPage> {
    checkQuery(query)
    return this.#read((sql) => readPage(sql, query))
  }

  blob(hash: string, of?: string): Promise<Blob | null> {
    return this.#read((sql) => readBlob(sql, hash, of))
  }

  account(id: string): Promise<AccountRow | null> {
    return this.#read((sql) => readAccount(sql, id))
  }

  async announce(worker: string, address: string, ttlMs: number): Promise<void> {
    const want = (wants: { readonly workers: Set<string> }): void => void wants.workers.add(worker)
    await this.#write(() => this.#lane.submit({ want, act: (batch) => void batch.extend(worker, ttlMs, { address }) }))
  }

  address(session: string): Promise<string | null> {
    return this.#read((sql) => readAddress(sql, session, this.now()))
  }

  remove(session: string, by: string, ends?: Ends): Promise<readonly Removal[]> {
    let now: number | null = null
    return this.#write(() =>
      this.#lane.alone(async (again) => {
        // The same for all tries: the removal is found again by it.
        now ??= this.now()
        const removed = await removeSession(this.#sql, { session, by, now, ends }, again)
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
    return this.#read((sql) => readRemovals(sql, limit))
  }

  health(): Promise<StoreHealth> {
    // Asked where it writes: reads are kept in another way.
    return this.#write(() => this.#lane.alone(() => readHealth(this.#sql, this.now(), this.#met)))
  }

  get #met(): Omit<NetworkHealth, 'server'> {
    const { made: connects } = this.#connections
    return { ...this.counts, connects, claims: { ...this.#claims }, news: this.#lag.counts }
  }

  /** Gives back the space of events whose sessions are all gone. Says which tables went, and which could not. */
  freeRooms(): Promise<FreedRooms> {
    return this.#write(() => this.#lane.alone(() => freeRooms(this.#sql)))
  }

  /** As no other store calls itself. */
  async id(): Promise<string> {
    const [meta] = await this.#read((sql) => sql.ask<{ store: string }>('store id', 'select store from ~meta'))
    return meta?.store ?? ''
  }

  /** Why it takes no writes: it was moved to another store, or what is moved to it is not complete. Null: it does. */
  moved(): Promise<string | null> {
    return this.#read(readMoved)
  }

  /** What was asked before is still written. */
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
   * Other processes have written: these sessions go so far by now (0: removed), and `due` says whether one may have become due. What is
   * known already is not told again. Null: news may have been missed, and everything that is watched is compared.
   */
  async heard(sessions: ReadonlyMap<string, number> | null, due: boolean): Promise<void> {
    if (this.#closing !== null) return
    const ends = sessions === null ? await this.#compared() : null
    const seqs = sessions ?? new Map([...(ends ?? [])].map(([session, { seq }]) => [session, seq]))
    for (const [session, seq] of seqs) {
      const told = this.#told.get(session)
      // What a hint says may be wrong: then the next comparison says otherwise.
      const isNews = told !== undefined && (sessions === null ? seq !== told : seq > told || (seq === 0 && told > 0))
      if (isNews) this.#told.set(session, seq)
      if (isNews) this.#listeners.tell(session, null)
      if (isNews && ends !== null) this.#lag.miss(ends.get(session)?.at ?? null)
      if (sessions !== null) this.#listeners.tellCard(session)
    }
    if (sessions === null ? await this.#isDueNews() : due) this.#listeners.tellDue()
  }

  /** Whether something is due, or the next time at which something will be is another than at the last comparison. */
  async #isDueNews(): Promise<boolean> {
    if (!this.#listeners.hasDue) return false
    const before = this.#nextDue
    this.#nextDue = await this.nextDue()
    return this.#nextDue !== before || (this.#nextDue !== null && this.#nextDue <= this.now())
  }

  /** Where everything that is watched ends. Cards are told at once. */
  async #compared(): Promise<ReadonlyMap<string, { readonly seq: number; readonly at: number | null }>> {
    const watched = [...this.#listeners.sessions]
    const ends = await readEnds(this.#reader, watched)
    if (this.#listeners.hasCards) {
      const since = this.#cardsAt - CLOCK_SLACK_MS
      this.#cardsAt = this.now()
      for (const session of await readGrown(this.#reader, since, hourOf(since))) this.#listeners.tellCard(session)
    }
    return new Map(watched.map((session) => [session, ends.get(session) ?? { seq: 0, at: null }]))
  }

  /** How far a session went when it was first watched: what comes after it is news. */
  #learn(session: string): void {
    const known = this.#lane.remembered(session)
    if (known) return void this.#told.set(session, known.seq)
    const learned = readEnds(this.#reader, [session]).then((ends) => {
      if (!this.#told.has(session)) this.#told.set(session, ends.get(session)?.seq ?? 0)
    })
    // If it cannot be read, the next comparison or commit tells.
    learned.catch(() => {})
  }

  /** After our own commit. A listener that missed another's events is told to read for itself. */
  #tell(batch: Batch): void {
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
    // What is asked in the same moment goes on in the order in which it was asked.
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

/** So often the clock is read when the store is opened: the quickest answer tells it best. */
const CLOCK_ASKED = 3
