// The store in memory: the same contract as the durable ones, for tests, simulation and runs that need no file.
// Nothing survives the process. Events are kept as JSON, so that nobody can change the log through an object they hold.
import type { Card } from '../kernel/card.ts'
import type { Event } from '../kernel/event.ts'
import { assert, Fault } from '../kernel/failure.ts'
import type { AccountRow, Blob, Claim, Clock, Page, Receipt, Snapshot, Store, Write } from '../kernel/ports.ts'
import { upcast } from '../kernel/upcast.ts'
import type { Hold } from './charges.ts'
import { systemClock } from './clock.ts'
import { checkId } from './id.ts'
import { Listeners } from './listeners.ts'
import { type Draft, type Head, type Plan, planCommit, stirs, type View } from './plan.ts'

export function memory(options: { readonly clock?: Clock } = {}): Store {
  return new MemoryStore(options.clock ?? systemClock)
}

type Log = { -readonly [K in keyof Head]: Head[K] } & {
  readonly id: string
  /** Counts sessions in the order of their creation. */
  readonly n: number
  card: Card
  readonly bodies: string[]
  readonly ids: Map<string, number>
  snapshot: Snapshot | null
}

type Worker = { until: number; ttlMs: number; address: string | null; readonly held: Set<Log> }

class MemoryStore implements Store {
  readonly #clock: Clock
  readonly #logs = new Map<string, Log>()
  /** Logs with a due time: what `due` looks at. */
  readonly #timed = new Set<Log>()
  readonly #workers = new Map<string, Worker>()
  readonly #accounts = new Map<string, AccountRow>()
  readonly #holds = new Map<string, Hold>()
  readonly #blobs = new Map<string, Blob>()
  readonly #listeners = new Listeners()
  readonly #view: View & { now: number } = {
    now: 0,
    head: (session) => this.#logs.get(session) ?? null,
    admitted: (session, id) => {
      const log = this.#logs.get(session)
      const seq = log?.ids.get(id)
      return log && seq !== undefined ? { seq, body: log.bodies[seq - 1] ?? '' } : null
    },
    account: (id) => this.#accounts.get(id) ?? null,
    hold: (key) => this.#holds.get(key) ?? null,
  }
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    this.#view.now = Math.max(this.#view.now, this.#clock.now())
    return this.#view.now
  }

  async commit(writes: readonly Write[]): Promise<readonly Receipt[]> {
    const now = this.#check()
    const plan = planCommit(writes, this.#view)
    let stir = false
    for (const draft of plan.drafts) {
      // Asked before it is applied: a draft remembers what was by pointing at the log itself.
      stir ||= stirs(draft)
      this.#applyDraft(draft, now)
    }
    this.#applyRest(plan)
    for (const { session, events } of plan.drafts) if (events.length > 0) this.#listeners.tell(session, events)
    if (stir) this.#listeners.tellDue()
    return plan.receipts
  }

  async read(session: string, after: number, limit = Number.MAX_SAFE_INTEGER): Promise<Page> {
    this.#check()
    const bodies = this.#find(session).bodies.slice(after, after + limit)
    const events = JSON.parse(`[${bodies.join(',')}]`) as Event[]
    return { events: events.map(upcast) }
  }

  async snapshot(session: string): Promise<Snapshot | null> {
    this.#check()
    return this.#logs.get(session)?.snapshot ?? null
  }

  watch(session: string, listener: (news: readonly Event[] | null) => void): () => void {
    return this.#listeners.addSession(session, listener)
  }

  watchDue(listener: () => void): () => void {
    return this.#listeners.addDue(listener)
  }

  async claim(session: string, worker: string, ttlMs: number): Promise<Claim | null> {
    const now = this.#check()
    const log = this.#find(session)
    if (log.worker !== worker && this.#leased(log, now)) return null
    const claimant = this.#extend(worker, ttlMs, now)
    this.#give(log, worker)
    log.epoch += 1
    return { epoch: log.epoch, until: claimant.until }
  }

  async extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>> {
    const { held } = this.#extend(worker, ttlMs, this.#check())
    return new Map([...held].map((log) => [log.id, log.epoch]))
  }

  async release(session: string, epoch: number): Promise<void> {
    this.#check()
    const log = this.#logs.get(session)
    if (log?.epoch !== epoch || log.worker === null) return
    this.#give(log, null)
    if (log.due !== null) this.#listeners.tellDue()
  }

  async card(session: string): Promise<Card | null> {
    this.#check()
    const log = this.#logs.get(session)
    return log ? cardOf(log) : null
  }

  async due(limit: number): Promise<readonly string[]> {
    const now = this.#check()
    const found = [...this.#timed].filter((log) => (log.due ?? 0) <= now && !this.#leased(log, now))
    found.sort((a, b) => (a.due ?? 0) - (b.due ?? 0) || a.n - b.n)
    return found.slice(0, limit).map((log) => log.id)
  }

  async nextDue(): Promise<number | null> {
    this.#check()
    let next = Number.POSITIVE_INFINITY
    for (const log of this.#timed) {
      const until = log.worker === null ? 0 : (this.#workers.get(log.worker)?.until ?? 0)
      next = Math.min(next, Math.max(log.due ?? 0, until))
    }
    return Number.isFinite(next) ? next : null
  }

  async list(filter: Parameters<Store['list']>[0]): Promise<readonly Card[]> {
    this.#check()
    const { status, root, after, limit } = filter
    const found = [...this.#logs.values()].filter(
      (log) =>
        (status === undefined || log.status === status) &&
        (root === undefined || log.card.root === root) &&
        (after === undefined || compareIds(log.id, after) > 0),
    )
    return found
      .sort((a, b) => compareIds(a.id, b.id))
      .slice(0, limit)
      .map(cardOf)
  }

  async blob(hash: string): Promise<Blob | null> {
    this.#check()
    const blob = this.#blobs.get(hash)
    return blob ? { ...blob, data: blob.data.slice() } : null
  }

  async account(id: string): Promise<AccountRow | null> {
    this.#check()
    return this.#accounts.get(id) ?? null
  }

  async announce(worker: string, address: string, ttlMs: number): Promise<void> {
    this.#extend(worker, ttlMs, this.#check()).address = address
  }

  async address(session: string): Promise<string | null> {
    const now = this.#check()
    const log = this.#logs.get(session)
    return log && this.#leased(log, now) ? (this.#workers.get(log.worker ?? '')?.address ?? null) : null
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
  }

  #check(): number {
    if (this.#closed) throw new Fault('store_closed', 'The store is closed.')
    return this.now()
  }

  #find(session: string): Log {
    const log = this.#logs.get(session)
    if (!log) throw new Fault('session_missing', `There is no session ${session}.`)
    return log
  }

  /** A lease lives as long as its worker is known to live. */
  #leased(log: Log, now: number): boolean {
    return log.worker !== null && (this.#workers.get(log.worker)?.until ?? 0) > now
  }

  #extend(worker: string, ttlMs: number, now: number): Worker {
    checkId('worker id', worker)
    const known = this.#workers.get(worker) ?? { until: 0, ttlMs, address: null, held: new Set() }
    known.until = Math.max(known.until, now + ttlMs)
    known.ttlMs = ttlMs
    this.#workers.set(worker, known)
    return known
  }

  #give(log: Log, worker: string | null): void {
    if (log.worker === worker) return
    if (log.worker !== null) this.#workers.get(log.worker)?.held.delete(log)
    if (worker !== null) this.#workers.get(worker)?.held.add(log)
    log.worker = worker
  }

  #applyDraft(draft: Draft, now: number): void {
    const log = this.#logs.get(draft.session) ?? this.#create(draft)
    if (draft.owner !== null) this.#prove(draft.owner, now)
    this.#give(log, draft.worker)
    for (const body of draft.bodies) log.bodies.push(body)
    for (const { id, seq } of draft.ids) log.ids.set(id, seq)
    log.seq = draft.seq
    log.at = draft.at
    log.status = draft.status
    if (draft.card) log.card = draft.card
    if (draft.snapshot) log.snapshot = draft.snapshot
    if (log.due !== draft.due) {
      log.due = draft.due
      if (draft.due === null) this.#timed.delete(log)
      else this.#timed.add(log)
    }
  }

  #create(draft: Draft): Log {
    const { session: id, seq, at, epoch, worker, status, card } = draft
    assert(card, 'a session is created with a card')
    const n = this.#logs.size
    const head = { id, n, seq, at, epoch, worker, due: null, status }
    const log: Log = { ...head, card, bodies: [], ids: new Map(), snapshot: null }
    this.#logs.set(id, log)
    return log
  }

  /** Writing as the owner proves that the worker lives; a third of the lease apart, as a durable store would note it. */
  #prove(worker: string, now: number): void {
    const known = this.#workers.get(worker)
    if (known && known.until - now < (known.ttlMs * 2) / 3) known.until = now + known.ttlMs
  }

  #applyRest(plan: Plan): void {
    for (const [id, row] of plan.book?.accounts ?? []) this.#accounts.set(id, row)
    for (const [key, hold] of plan.book?.holds ?? []) {
      if (hold) this.#holds.set(key, hold)
      else this.#holds.delete(key)
    }
    for (const { blob } of plan.blobs) {
      if (!this.#blobs.has(blob.hash)) this.#blobs.set(blob.hash, { ...blob, data: blob.data.slice() })
    }
  }
}

function cardOf(log: Log): Card {
  return { ...log.card, seq: log.seq, at: log.at, due: log.due }
}

/** As SQLite orders text: by its UTF-8 bytes. */
function compareIds(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
