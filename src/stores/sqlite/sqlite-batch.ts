// The rows that one transaction of an SQLite store will write: the present state seen through the changes already
// decided, then all rows at once. It decides nothing about admission (plan-writes.ts does) and knows nothing about
// transactions (sqlite-writer.ts does).
import { assert, Fault } from '../../kernel/failure.ts'
import type { AccountRow, Claim, ProcessId, Receipt, Removal, Snapshots, Write } from '../../ports/store.ts'
import type { AccountChanges, Hold } from '../plan/plan-charges.ts'
import { crc32, addSum, isSound, rowSum, logSeed } from '../plan/checksum.ts'
import { checkId } from '../plan/store-ids.ts'
import {
  CLOCK_SLACK_MS,
  changesByClaim,
  changesForFutureTimes,
  type SessionChange,
  extendedLease,
  isAhead,
  isLeaseLive,
  isRenewalDue,
  sessionMissingFault,
  forkOriginOf,
  type WritePlan,
  planWrites,
  changesByRelease,
  becomesDue,
  type SessionTrouble,
  type StoreView,
} from '../plan/plan-writes.ts'
import { type ExpectedEnds, type RemovalView, planRemoval } from '../plan/plan-removal.ts'
import type { SqliteValue } from './driver.ts'
import { readAccount, readBodies, unsoundFault } from './read-store.ts'
import { dropAccounts, dropEvents, dropSession, type EventsToDrop } from './drop-session.ts'
import { damageOf, factsOfRow, headSumOf, insertAll, insertEvents } from './sqlite-rows.ts'
import { type SqliteRow, type StoredSqliteRow, type SqliteWorkerRow, writeSession } from './sqlite-rows.ts'

import { SPAN, type SqliteStatements, TAIL_MAX } from './sqlite-schema.ts'
import { writeReaderSnapshots, writeSnapshot } from './sqlite-snapshots.ts'

/** The state of a connection beside its file. The cached rows are valid until another connection writes. */
export type BatchState = {
  readonly sql: SqliteStatements
  readonly rows: Map<string, SqliteRow>
  readonly workers: Map<string, SqliteWorkerRow>
  /** Damaged sessions and their damage. They can be read but not written. */
  readonly damaged: Map<string, string>
  /** The last used position in the table of events. */
  pos: number
}

type LogPlace = Pick<SqliteRow, 'pos' | 'tail' | 'tailSpans'>
/** A row as stored in the file. */
type StoredHead = StoredSqliteRow & {
  readonly sum: number | null
  readonly headSum: number | null
  readonly turnSum: number | null
}
type RowChange = { row: SqliteRow; readonly was: SqliteRow | null }
type StoredHold = {
  readonly key: string
  readonly amount: number
  readonly accounts: string
  readonly session: string | null
  readonly sum: number | null
}

const WORKER_KEPT_MS = 24 * 60 * 60 * 1000
const NOTHING_SAID = { address: null, host: null, pid: null, started: null }
const ROWS_KNOWN_MAX = 10_000

export class SqliteBatch implements StoreView, RemovalView {
  readonly now: number
  /** Sessions that were removed. */
  readonly removed: string[] = []
  /** Sessions that grew, in order, for the listeners. */
  readonly grown: SessionChange[] = []
  /** True if some session may have become due. */
  stirred = false
  readonly #ground: BatchState
  readonly #sql: SqliteStatements
  readonly #changes = new Map<string, RowChange>()
  readonly #workers = new Map<string, SqliteWorkerRow>()
  readonly #accounts = new Map<string, AccountRow>()
  readonly #holds = new Map<string, Hold | null>()
  readonly #ids = new Map<string, { readonly seq: number; readonly body: string }>()
  readonly #events: SqliteValue[] = []
  readonly #spans: SqliteValue[] = []
  /** Writes to rarer tables. */
  readonly #rest: (() => void)[] = []
  readonly #left: EventsToDrop[] = []
  #anyRemoved: boolean | null = null
  #sessions = 0
  #pos: number

  constructor(now: number, ground: BatchState) {
    this.now = now
    this.#ground = ground
    this.#sql = ground.sql
    this.#pos = ground.pos
  }

  // ---- The present state, as this transaction sees it -------------------------------------------------------------

  head(session: string): SqliteRow | null {
    const row = this.#row(session)
    const damage = this.#ground.damaged.get(session)
    if (damage === undefined) return row
    throw new Fault('session_damaged', `Session ${session} is damaged and can only be read.`, damage)
  }

  admitted(session: string, id: string): { readonly seq: number; readonly body: string } | null {
    const row = this.head(session)
    if (row === null) return null
    const here = this.#ids.get(`${row.n}:${id}`)
    return here ?? (this.#sql.admitted.get(row.n, id) as { seq: number; body: string } | undefined) ?? null
  }

  account(id: string): AccountRow | null {
    return this.#accounts.get(id) ?? readAccount(this.#sql, id)
  }

  hold(key: string): Hold | null {
    const here = this.#holds.get(key)
    if (here !== undefined) return here
    const row = this.#sql.hold.get(key) as StoredHold | undefined
    return row ? holdOf(row) : null
  }

  ended(session: string): number | null {
    // Most files have no removals: asked once, not for each new session.
    this.#anyRemoved ??= (this.#sql.anyRemoved.get() as { any: number }).any === 1
    if (!this.#anyRemoved) return null
    return (this.#sql.ended.get(session) as { epoch: number | null }).epoch
  }

  bodies(session: string, after: number, count: number): readonly string[] {
    const found = readBodies(this.#sql, session, after, count)
    // The events of this transaction follow those in the file.
    for (const draft of this.grown) {
      const first = draft.seq - draft.bodies.length
      if (draft.session === session) found.push(...draft.bodies.slice(Math.max(0, after + found.length - first)))
    }
    return found.slice(0, count)
  }

  rootOf(session: string): string | null {
    return this.#row(session)?.root ?? null
  }

  family(root: string): readonly string[] {
    return (this.#sql.family.all(root) as { id: string }[]).map(({ id }) => id)
  }

  endOf(session: string): number | null {
    return this.#row(session)?.seq ?? null
  }

  isDriven(session: string): boolean {
    const worker = this.#row(session)?.worker ?? null
    const lease = worker === null ? null : this.#worker(worker)
    return lease !== null && isLeaseLive(lease, this.now)
  }

  /** A session created in this very transaction has no id in the file yet. */
  forksOf(session: string): readonly string[] {
    return (this.#sql.forksOf.all(session) as { n: number; id: string | null }[]).map(({ n, id }) => id ?? `no. ${n}`)
  }

  holdsOf(session: string): ReadonlyMap<string, Hold> {
    const holds = new Map((this.#sql.holdsOf.all(session) as StoredHold[]).map((row) => [row.key, holdOf(row)]))
    for (const [key, hold] of this.#holds) {
      if (hold === null) holds.delete(key)
      else if (hold.session === session) holds.set(key, hold)
    }
    return holds
  }

  #row(session: string): SqliteRow | null {
    return this.#changes.get(session)?.row ?? this.#ground.rows.get(session) ?? this.#load(session)
  }

  #load(session: string): SqliteRow | null {
    const stored = this.#sql.head.get(session) as StoredHead | undefined
    // The session may have been damaged, and removed by another process.
    if (!stored) this.#ground.damaged.delete(session)
    if (!stored) return null
    const { headSum, turnSum, ...found } = stored
    const damage = damageOf(found, turnSum, headSum)
    if (damage !== null) this.#ground.damaged.set(session, damage)
    else if (found.sum === null) this.#ground.damaged.set(session, `its last event, ${found.seq}, is missing`)
    const rest = { sum: found.sum ?? 0, card: null, tailSpans: found.tail.split(',').length >> 1 }
    const trouble = found.trouble === null ? null : (JSON.parse(found.trouble) as SessionTrouble)
    const told = { facts: factsOfRow(found), agent: found.agent ?? '' }
    const row = { ...found, ...rest, ...told, urgent: found.urgent === 1, trouble }
    this.#ground.rows.set(session, row)
    return row
  }

  #worker(id: string): SqliteWorkerRow | null {
    const known = this.#workers.get(id) ?? this.#ground.workers.get(id)
    if (known) return known
    const row = this.#sql.worker.get(id) as SqliteWorkerRow | undefined
    if (row) this.#ground.workers.set(id, row)
    return row ?? null
  }

  // ---- Operations: each is either refused and changes nothing, or decided -----------------------------------------

  commit(writes: readonly Write[]): readonly Receipt[] {
    const plan = planWrites(writes, this)
    for (const { session, seq } of plan.drafts) {
      if (seq >= SPAN) throw new Fault('invalid_input', `Session ${session} is full.`, `it holds ${SPAN} events`)
    }
    for (const draft of plan.drafts) this.#grow(draft)
    this.#note(plan)
    return plan.receipts
  }

  claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Claim | null {
    checkId('worker id', worker)
    const row = this.head(session)
    if (row === null) throw sessionMissingFault(session)
    if (row.worker !== worker && this.isDriven(session)) return null
    const lease = row.worker === null ? null : this.#worker(row.worker)
    const ahead = lease !== null && lease.until > this.now && !isLeaseLive(lease, this.now)
    const { until } = this.extend(worker, ttlMs, process)
    const epoch = row.epoch + 1
    this.#change(session, {
      ...row,
      worker,
      epoch,
      ...changesByClaim(row, this.now),
      ...(ahead ? changesForFutureTimes(row, this.now) : null),
    })
    return { epoch, seq: row.seq, until, failed: row.tries }
  }

  /** Also registers a new worker. */
  extend(worker: string, ttlMs: number, says?: Partial<SqliteWorkerRow>): SqliteWorkerRow {
    checkId('worker id', worker)
    const known = this.#worker(worker)
    const row = { ...NOTHING_SAID, ...known, ...says, ...extendedLease(known, ttlMs, this.now) }
    this.#workers.set(worker, row)
    if (!known) this.#rest.push(() => this.#sql.forgetWorkers.run(this.now - WORKER_KEPT_MS))
    return row
  }

  expire(worker: string, { host, pid, started }: ProcessId): boolean {
    const known = this.#worker(worker)
    if (known?.host !== host || known.pid !== pid || known.started !== started) return false
    this.#workers.set(worker, { ...known, until: 0 })
    this.stirred = true
    return true
  }

  /**
   * Sessions with times in the future become due now, and their cards say why. Checked again, because another process
   * may have been faster.
   */
  doubt(sessions: readonly string[]): void {
    for (const session of sessions) {
      const row = this.#row(session)
      if (row === null || !isAhead(row.at, this.now) || !isAhead(row.due ?? 0, this.now) || this.isDriven(session))
        continue
      this.#change(session, { ...row, worker: null, ...changesForFutureTimes(row, this.now) })
      this.stirred = true
    }
    this.#ground.workers.clear()
    this.#rest.push(() => this.#sql.pastWorkers.run(this.now, this.now + CLOCK_SLACK_MS))
  }

  held(worker: string): ReadonlyMap<string, number> {
    const rows = this.#sql.held.all(worker) as { id: string; epoch: number }[]
    const held = new Map(rows.map(({ id, epoch }) => [id, epoch]))
    for (const [session, { row }] of this.#changes) {
      if (row.worker === worker) held.set(session, row.epoch)
      else held.delete(session)
    }
    return held
  }

  release(session: string, epoch: number, trouble?: SessionTrouble): void {
    const row = this.#row(session)
    if (row?.epoch !== epoch || row.worker === null) return
    const released = { ...row, worker: null, ...changesByRelease(row, trouble, this.now) }
    this.#change(session, released)
    this.stirred ||= released.due !== null
  }

  keep(session: string, snapshots: Parameters<Snapshots['keep']>[1]): void {
    this.#rest.push(() => writeReaderSnapshots(this.#sql, session, snapshots))
  }

  /** Written at once, except for the events: later requests find the session gone. */
  remove(session: string, by: string, ends?: ExpectedEnds): readonly Removal[] {
    for (const [id, { row }] of this.#changes) {
      // Rows that are not in the file yet cannot be removed from it: then each request runs alone, in its turn.
      if (id === session || row.root === session) throw new Error(`${session} is removed together with what it grew by`)
    }
    const { sessions, book } = planRemoval(session, by, this, ends)
    if (book) this.#pay(book)
    this.#anyRemoved = true
    return sessions.map((id) => {
      const row = this.#row(id)
      assert(row, `session ${id} is there while it is removed`)
      const { removal, left } = dropSession(this.#sql, id, row, { at: this.now, by })
      for (const account of dropAccounts(this.#sql, id)) this.#accounts.delete(account)
      this.#left.push(left)
      this.#ground.rows.delete(id)
      this.#ground.damaged.delete(id)
      this.removed.push(id)
      return removal
    })
  }

  #grow(draft: SessionChange): void {
    const { session, seq, at, epoch, worker, due, urgent, status, tries, trouble, bodies } = draft
    // Everything in this write existed already.
    if (bodies.length === 0 && draft.card === null) return
    const was = this.#row(session)
    const n = was?.n ?? this.#number()
    const first = { seq: seq - bodies.length + 1, pos: this.#pos + 1 }
    let sum = was?.sum ?? logSeed(session)
    for (const body of bodies) {
      sum = addSum(sum, body)
      this.#events.push(n, sum, body)
    }
    this.#pos += bodies.length
    for (const { id, seq: at } of draft.ids) {
      const pos = first.pos + at - first.seq
      this.#ids.set(`${n}:${id}`, { seq: at, body: bodies[at - first.seq] ?? '' })
      this.#rest.push(() => this.#sql.admit.run(n, id, at, pos))
    }
    if (draft.owner !== null) this.#prove(draft.owner)
    const origin = forkOriginOf(draft)
    if (origin !== null) this.#sql.keepFork.run(n, origin)
    const { snapshot } = draft
    if (snapshot) this.#rest.push(() => writeSnapshot(this.#sql, n, session, snapshot))
    const card = draft.card ?? was?.card ?? null
    const root = card?.root ?? was?.root ?? ''
    const { folder = null, parent = null } = card ?? was ?? {}
    const agent = card?.agent ?? was?.agent ?? ''
    const place = bodies.length > 0 ? this.#place(n, was, first) : was
    assert(place, `session ${session} begins without an event`)
    const { pos, tail, tailSpans } = place
    const row: SqliteRow = {
      n,
      seq,
      at,
      epoch,
      worker,
      due,
      urgent,
      status,
      tries,
      trouble,
      pos,
      sum,
      tail,
      tailSpans,
      root,
      folder,
      parent,
      agent,
      facts: draft.facts,
      card,
    }
    this.#change(session, row)
    if (bodies.length > 0) this.grown.push(draft)
    this.stirred ||= becomesDue(draft)
  }

  /**
   * The new log position of a session that grew. A new span begins if another session wrote last; full tails move to
   * the spans table.
   */
  #place(n: number, was: SqliteRow | null, { seq, pos: first }: { seq: number; pos: number }): LogPlace {
    const pos = this.#pos
    if (was?.pos === first - 1) return { pos, tail: was.tail, tailSpans: was.tailSpans }
    const tail = was && was.tailSpans > 0 ? `${was.tail},${seq},${first}` : `${seq},${first}`
    const tailSpans = (was?.tailSpans ?? 0) + 1
    if (tailSpans < TAIL_MAX) return { pos, tail, tailSpans }
    const marks = JSON.parse(`[${tail}]`) as number[]
    for (let i = 0; i < marks.length; i += 2) this.#spans.push(n * SPAN + (marks[i] ?? 0), marks[i + 1] ?? 0)
    return { pos, tail: '', tailSpans: 0 }
  }

  #note({ book, blobs, refs }: WritePlan): void {
    if (book) this.#pay(book)
    for (const { session, blob } of blobs) {
      this.#rest.push(() => {
        this.#sql.keepBlob.run(blob.hash, blob.media, crc32(blob.data) | 0, blob.data)
        this.#sql.referBlob.run(blob.hash, this.#row(session)?.n ?? 0)
      })
    }
    // At once, so that a removal in the same transaction does not delete blobs that are referred to.
    for (const { session, hash } of refs) this.#sql.referBlob.run(hash, this.#row(session)?.n ?? 0)
  }

  #pay({ accounts, holds }: AccountChanges): void {
    for (const [id, row] of accounts) this.#accounts.set(id, row)
    for (const [key, hold] of holds) this.#holds.set(key, hold)
  }

  #prove(worker: string): void {
    const known = this.#worker(worker)
    if (known && isRenewalDue(known, this.now)) this.extend(worker, known.ttlMs)
  }

  /** The next session's number. No other process can take it, because this one holds the write lock. */
  #number(): number {
    if (this.#sessions === 0) this.#sessions = (this.#sql.count.get() as { n: number }).n
    this.#sessions += 1
    return this.#sessions
  }

  #change(session: string, row: SqliteRow): void {
    const known = this.#changes.get(session)
    if (known) known.row = row
    else this.#changes.set(session, { row, was: this.#ground.rows.get(session) ?? null })
  }

  // ---- The rows ----------------------------------------------------------------------------------------------------

  /** The last event it adds: its position and checksum. */
  get last(): { readonly pos: number; readonly sum: number } | null {
    const sum = this.#events.at(-2)
    return typeof sum === 'number' ? { pos: this.#pos, sum } : null
  }

  /** Sessions whose row was written, or that were removed. */
  get touched(): Iterable<string> {
    return [...this.#changes.keys(), ...this.removed]
  }

  get changed(): boolean {
    if (this.#changes.size > 0 || this.#workers.size > 0 || this.#accounts.size > 0) return true
    return this.#rest.length > 0 || this.#left.length > 0
  }

  /** Inside a transaction. Throws only SQLite's errors. */
  write(): void {
    const sql = this.#sql
    const last = insertEvents(sql.insertEvents, this.#events)
    assert(this.#events.length === 0 || last === this.#pos, 'events lie where their spans say')
    insertAll(sql.insertSpans, this.#spans)
    const heads: SqliteValue[] = []
    for (const [session, { row, was }] of this.#changes) {
      const { n, seq, at, pos, tail } = row
      const { tokens } = row.facts
      if (seq !== was?.seq) heads.push(n, seq, at, pos, tail, tokens, headSumOf({ n, seq, at, pos, tail, tokens }))
      writeSession(sql, session, row, was)
    }
    insertAll(sql.keepHeads, heads)
    for (const [id, { until, ttlMs, address, host, pid, started }] of this.#workers) {
      sql.keepWorker.run(id, until, ttlMs, address, host, pid, started)
    }
    for (const { id, limit, held, spent, assumed } of this.#accounts.values()) {
      sql.keepAccount.run(id, limit, held, spent, assumed, rowSum(id, limit, held, spent, assumed))
    }
    for (const [key, hold] of this.#holds) {
      if (!hold) sql.dropHold.run(key)
      else {
        const { amount, session } = hold
        const accounts = JSON.stringify(hold.accounts)
        sql.keepHold.run(key, amount, accounts, session, rowSum(key, amount, accounts, session))
      }
    }
    for (const write of this.#rest) write()
    if (this.#left.length === 0) return
    for (const left of this.#left) dropEvents(sql, left)
    // The last events may be gone, and SQLite then reuses their positions.
    this.#pos = (sql.last.get() as { pos: number }).pos
  }

  /** After the transaction, the written rows are the cached ones. */
  settle(): void {
    const { rows, workers } = this.#ground
    this.#ground.pos = this.#pos
    if (rows.size > ROWS_KNOWN_MAX) rows.clear()
    for (const [session, { row }] of this.#changes) rows.set(session, row)
    for (const [id, row] of this.#workers) workers.set(id, row)
  }
}

function holdOf({ key, amount, accounts, session, sum }: StoredHold): Hold {
  if (!isSound(sum, key, amount, accounts, session)) throw unsoundFault(`The hold ${key}`)
  return { amount, accounts: JSON.parse(accounts) as string[], session: session ?? '' }
}
