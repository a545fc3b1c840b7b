// The store in memory: the same contract as the durable ones, for tests, simulation and runs that need no file. Nothing
// survives the process. Events are kept as JSON, so that a caller's object cannot change the log.
import type { Card } from '../../ports/store.ts'
import type { Event, OwnerEvent } from '../../kernel/event.ts'
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
  OwnerWrite,
  Page,
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
import { clockCheck, countCheck, optionsChecker } from '../../options.ts'
import { DueHeap } from './due-heap.ts'
import { MemoryBlobs, refersToBlob } from './memory-blobs.ts'
import {
  cardOfLog,
  eventsAfter,
  flattenText,
  keepSnapshot,
  listMemoryCards,
  MemoryLog,
  matchesAgents,
  pageOfCards,
  findSnapshot,
} from './memory-log.ts'
import { sessionsNamedIn, findSettledTree } from './make-room.ts'
import { type ClaimRequest, findHolders, findLostSessions, nextHeldDue, type MemoryWorker } from './memory-workers.ts'
import { type Hold, isOwnAccount } from '../plan/plan-charges.ts'
import { systemClock } from '../plan/system-clock.ts'
import { checkCount } from '../plan/check-count.ts'
import { factsAfter } from '../plan/log-facts.ts'
import { checkQuery } from '../plan/card-query.ts'
import { checkId, compareIds } from '../plan/store-ids.ts'
import { Listeners } from '../plan/listeners.ts'
import {
  becomesDue,
  bodyOf,
  changesByClaim,
  changesForFutureTimes,
  extendedLease,
  type SessionRecord,
  isAhead,
  isLeaseLive,
  isRenewalDue,
  onlyAppends,
  sessionMissingFault,
  planWrites,
  changesByRelease,
  type SessionChange,
  type StoreView,
  type WritePlan,
} from '../plan/plan-writes.ts'
import { type ExpectedEnds, type RemovalView, planRemoval } from '../plan/plan-removal.ts'
import { candidateLimit, pickByTree } from '../plan/tree-share.ts'

/** Options of `memory`: a clock for tests, and how many sessions it may hold. */
export type MemoryOptions = {
  /** Gives the time of the store. Default: the clock of the machine. */
  readonly clock?: Clock
  /**
   * How many sessions are kept, children included. One more replaces the oldest settled root with its children, which
   * is forgotten. If none has settled, the new session is refused with `too_many`. Default: 10,000.
   */
  readonly sessionsMax?: number
}

const checkOptions = optionsChecker<MemoryOptions>('memory', { clock: clockCheck, sessionsMax: countCheck(1) })
const SESSIONS_MAX = 10_000

/** A store in the memory of this process, for tests and for work that may be lost: it ends with the process. */
export function memory(options: MemoryOptions = {}): CompleteStore {
  checkOptions(options)
  return new MemoryStore(options.clock ?? systemClock, options.sessionsMax ?? SESSIONS_MAX)
}

/**
 * The `by` of a session that was removed to make room. These removals are not listed, because the list would grow for
 * ever.
 */
const FORGOTTEN = 'the bound on sessions'

class MemoryStore implements CompleteStore {
  readonly workers = this
  readonly notifications = this
  readonly snapshots = this
  readonly search = this
  readonly upkeep = this
  readonly deltas = this
  readonly reach = 'process'
  readonly #clock: Clock
  readonly #sessionsMax: number
  readonly #logs = new Map<string, MemoryLog>()
  /** Ordered by id if `#ordered`. */
  readonly #list: MemoryLog[] = []
  #ordered = true
  /**
   * The due times of logs that no worker drives: the urgent ones, and the others. Driven logs are found through their
   * workers.
   */
  readonly #urgent = new DueHeap<MemoryLog>()
  readonly #calm = new DueHeap<MemoryLog>()
  readonly #workers = new Map<string, MemoryWorker>()
  readonly #accounts = new Map<string, AccountRow>()
  readonly #holds = new Map<string, Hold>()
  readonly #blobs = new MemoryBlobs()
  readonly #listeners = new Listeners()
  readonly #removals: { readonly removal: Removal; readonly n: number }[] = []
  /** The last epochs of removed sessions. */
  readonly #ended = new Map<string, number>()
  #created = 0
  /** The latest time of the clock since it was last set back. */
  #latest = 0
  readonly #view: StoreView & RemovalView & { now: number } = {
    now: 0,
    head: (session) => this.#logs.get(session) ?? null,
    admitted: (session, id) => {
      const log = this.#logs.get(session)
      const seq = log?.ids.get(id)
      return log && seq !== undefined ? { seq, body: log.bodies[seq - 1] ?? '' } : null
    },
    account: (id) => this.#accounts.get(id) ?? null,
    hold: (key) => this.#holds.get(key) ?? null,
    ended: (session) => this.#ended.get(session) ?? null,
    bodies: (session, after, count) => this.#logs.get(session)?.bodies.slice(after, after + count) ?? [],
    rootOf: (session) => this.#logs.get(session)?.card.root ?? null,
    endOf: (session) => this.#logs.get(session)?.seq ?? null,
    family: (root) => this.#list.flatMap((log) => (log.card.root === root ? [log.id] : [])),
    isDriven: (session) => this.#leased(this.#find(session), this.#view.now),
    forksOf: (session) => this.#list.flatMap((log) => (log.origin === session ? [log.id] : [])),
    holdsOf: (session) => new Map([...this.#holds].filter(([, hold]) => hold.session === session)),
  }
  #closed = false

  constructor(clock: Clock, sessionsMax: number) {
    this.#clock = clock
    this.#sessionsMax = sessionsMax
  }

  async open(): Promise<void> {}

  now(): number {
    const now = this.#clock.now()
    this.#view.now = now
    if (now > this.#latest) this.#latest = now
    return now
  }

  async commit(writes: readonly Write[]): Promise<readonly Receipt[]> {
    const now = this.#check()
    const [write] = writes
    const log = writes.length === 1 && write?.lane === 'owner' ? this.#logs.get(write.session) : undefined
    if (log !== undefined && onlyAppends(log, write as OwnerWrite, now))
      return this.#append(log, write as OwnerWrite, now)
    if (this.#logs.size >= this.#sessionsMax) this.#makeRoom(writes, now)
    const plan = planWrites(writes, this.#view)
    let stir = false
    const { drafts } = plan
    for (let i = 0; i < drafts.length; i++) {
      const draft = drafts[i] as SessionChange
      // Asked before the change is applied: it refers to the log itself for the earlier state.
      stir ||= becomesDue(draft)
      this.#applyDraft(draft, now)
    }
    if (plan.book !== null || plan.blobs.length > 0 || plan.refs.length > 0) this.#applyRest(plan)
    for (let i = 0; i < drafts.length; i++) {
      const { session, events } = drafts[i] as SessionChange
      if (events.length > 0) this.#listeners.tell(session, events)
      this.#listeners.tellCard(session)
    }
    if (stir) this.#listeners.tellDue()
    return plan.receipts
  }

  /** Does what the plan of such a write would. */
  #append(log: MemoryLog, { events, card, gained }: OwnerWrite, now: number): readonly Receipt[] {
    if (log.worker !== null) this.#prove(log.worker, now)
    const seqs: number[] = []
    for (let i = 0; i < events.length; i++) {
      const event = events[i] as OwnerEvent
      log.bodies.push(flattenText(bodyOf(event)))
      log.facts = factsAfter(log.facts, event)
      seqs.push(event.seq)
      log.seq = event.seq
      log.at = event.at
    }
    log.card = card
    if (gained) {
      log.tries = 0
      log.trouble = null
    }
    this.#listeners.tell(log.id, events)
    this.#listeners.tellCard(log.id)
    return [{ seqs, duplicate: false }]
  }

  async read(
    session: string,
    after: number,
    limit = Number.MAX_SAFE_INTEGER,
    bytesMax = Number.MAX_SAFE_INTEGER,
  ): Promise<Page> {
    this.#check()
    checkCount('after', after)
    checkCount('limit', limit)
    checkCount('bytesMax', bytesMax)
    return { events: eventsAfter(this.#find(session), after, limit, bytesMax) }
  }

  async sent(session: string, id: string): Promise<number | null> {
    this.#check()
    return this.#logs.get(session)?.ids.get(id) ?? null
  }

  async snapshot(session: string, upTo?: number): Promise<Snapshot | null> {
    this.#check()
    if (upTo !== undefined) checkCount('upTo', upTo)
    const log = this.#logs.get(session)
    return log ? findSnapshot(log, upTo) : null
  }

  async keep(session: string, snapshots: Parameters<Snapshots['keep']>[1]): Promise<void> {
    this.#check()
    const log = this.#logs.get(session)
    for (const snapshot of log ? snapshots : []) {
      const body = log?.bodies[snapshot.seq - 1]
      if (log && body !== undefined && (JSON.parse(body) as Event).at === snapshot.at)
        keepSnapshot(log, snapshot, false)
    }
  }

  watch(session: string, listener: (news: readonly Event[] | null) => void): () => void {
    return this.#listeners.addSession(session, listener)
  }

  watchDue(listener: () => void): () => void {
    return this.#listeners.addDue(listener)
  }

  watchCards(listener: (session: string) => void): () => void {
    return this.#listeners.addCards(listener)
  }

  async claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Promise<Claim | null> {
    const now = this.#check()
    const log = this.#find(session)
    if (log.worker !== worker && this.#leased(log, now)) return null
    return this.#claim(log, { worker, ttlMs, now, process })
  }

  #claim(log: MemoryLog, { worker, ttlMs, now, process }: ClaimRequest): Claim {
    // Before the claim: a worker that claims its own session again is trusted from then on.
    const ahead = this.#isAhead(log.worker, now)
    const claimant = this.#extend(worker, ttlMs, now)
    claimant.process = process ?? claimant.process
    const failed = log.tries
    Object.assign(log, changesByClaim(log, now), ahead ? changesForFutureTimes(log, now) : null)
    this.#place(log, { worker, due: log.due, urgent: log.urgent })
    log.epoch += 1
    return { epoch: log.epoch, seq: log.seq, until: claimant.until, failed }
  }

  async extend(worker: string, ttlMs: number): Promise<ReadonlyMap<string, number>> {
    const { held } = this.#extend(worker, ttlMs, this.#check())
    return new Map([...held].map((log) => [log.id, log.epoch]))
  }

  async holders(host: string): Promise<readonly Holder[]> {
    const now = this.#check()
    return findHolders(this.#workers, host, now)
  }

  async expire(worker: string, { host, pid, started }: ProcessId): Promise<boolean> {
    this.#check()
    const known = this.#workers.get(worker)
    const process = known?.process
    if (!known || process?.host !== host || process.pid !== pid || process.started !== started) return false
    known.until = 0
    this.#listeners.tellDue()
    return true
  }

  async release(session: string, epoch: number, trouble?: Card['trouble']): Promise<void> {
    const now = this.#check()
    const log = this.#logs.get(session)
    if (log?.epoch !== epoch || log.worker === null) return
    const { worker } = log
    const { due, ...rest } = changesByRelease(log, trouble, now)
    Object.assign(log, rest)
    this.#place(log, { worker: null, due, urgent: log.urgent })
    // A worker that claims once under its own name is not remembered.
    const known = this.#workers.get(worker)
    if (known?.held.size === 0 && known.address === null) this.#workers.delete(worker)
    if (log.due !== null) this.#listeners.tellDue()
    this.#listeners.tellCard(session)
  }

  async card(session: string): Promise<Card | null> {
    this.#check()
    const log = this.#logs.get(session)
    return log ? cardOfLog(log) : null
  }

  async due(limit: number, agents?: readonly string[]): Promise<DueSessions> {
    const now = this.#check()
    const wanted = matchesAgents(agents)
    const sessions = limit === 0 ? [] : this.#due(now, limit, wanted).map((log) => log.id)
    return { sessions, next: sessions.length > 0 ? now : this.#nextDue(now, wanted) }
  }

  async take(worker: string, ttlMs: number, wanted: TakeOptions): Promise<ReadonlyMap<string, Claim>> {
    const now = this.#check()
    const { limit, agents, among, fresh = false, process } = wanted
    const [isOurs, named] = [matchesAgents(agents), among && new Set(among)]
    checkCount('limit', limit)
    const isWanted = (log: MemoryLog): boolean =>
      isOurs(log) && !(fresh && log.tries > 0) && (named?.has(log.id) ?? true)
    const found = this.#due(now, candidateLimit(limit), isWanted)
    const taken = found.length > limit ? pickByTree(found, ({ card }) => card.root, limit) : found
    return new Map(taken.map((log) => [log.id, this.#claim(log, { worker, ttlMs, now, process })]))
  }

  #due(now: number, limit: number, wanted: (log: MemoryLog) => boolean): readonly MemoryLog[] {
    checkCount('limit', limit)
    this.#doubt(now)
    const free = [this.#urgent, this.#calm].flatMap((agenda) => agenda.upTo(now, limit, wanted))
    const found = free.map(({ item }) => item)
    for (const log of findLostSessions(this.#workers, now)) if (wanted(log)) found.push(log)
    found.sort((a, b) => Number(b.urgent) - Number(a.urgent) || (a.due ?? 0) - (b.due ?? 0) || a.n - b.n)
    return found.slice(0, limit)
  }

  #nextDue(now: number, wanted: (log: MemoryLog) => boolean): number | null {
    const free = [this.#urgent, this.#calm].flatMap((agenda) => agenda.upTo(Number.POSITIVE_INFINITY, 1, wanted))
    const next = Math.min(nextHeldDue(this.#workers, now, wanted), ...free.map(({ due }) => due))
    return Number.isFinite(next) ? next : null
  }

  async list(filter: CardFilter): Promise<readonly Card[]> {
    this.#check()
    checkCount('limit', filter.limit)
    if (!this.#ordered) this.#list.sort((a, b) => compareIds(a.id, b.id))
    this.#ordered = true
    return listMemoryCards(this.#list, filter)
  }

  async page(query: CardQuery): Promise<CardPage> {
    this.#check()
    checkQuery(query)
    return pageOfCards(this.#list, query)
  }

  async blob(hash: string, of?: string): Promise<Blob | null> {
    this.#check()
    const log = of === undefined ? null : this.#logs.get(of)
    if (log === undefined || (log && !refersToBlob(log, hash, this.#list))) return null
    return this.#blobs.get(hash)
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

  async remove(session: string, by: string, ends?: ExpectedEnds): Promise<readonly Removal[]> {
    const at = this.#check()
    const { sessions, book } = planRemoval(session, by, this.#view, ends)
    this.#applyRest({ book, blobs: [], refs: [] })
    const removed = sessions.map((id) => this.#remove(this.#find(id), { at, by }))
    for (const id of sessions) this.#tellRemoved(id)
    return removed
  }

  async removals(limit: number): Promise<readonly Removal[]> {
    this.#check()
    checkCount('limit', limit)
    const newest = this.#removals.toSorted((a, b) => b.removal.at - a.removal.at || b.n - a.n)
    return newest.slice(0, limit).map(({ removal }) => removal)
  }

  async health(): Promise<StoreHealth> {
    const { sessions: waiting } = await this.due(Number.MAX_SAFE_INTEGER)
    const now = this.#check()
    const due = waiting.length
    const waitedMs = Math.max(0, ...waiting.map((id) => now - this.#freeSince(id)))
    const leases = [...this.#workers.values()].reduce(
      (sum, each) => sum + (isLeaseLive(each, now) ? each.held.size : 0),
      0,
    )
    const logs = this.#list.reduce((sum, { bodies }) => bodies.reduce((bytes, { length }) => bytes + length, sum), 0)
    const bytes = logs + this.#blobs.bytes
    return { durability: 'memory', schema: null, bytes, sessions: this.#logs.size, leases, due, waitedMs }
  }

  /** When a due session became due, or lost its worker. */
  #freeSince(session: string): number {
    const { due, worker } = this.#find(session)
    return Math.max(due ?? 0, this.#workers.get(worker ?? '')?.until ?? 0)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#listeners.clear()
  }

  #check(): number {
    if (this.#closed) throw new Fault('store_closed', 'The store is closed.')
    return this.now()
  }

  #find(session: string): MemoryLog {
    const log = this.#logs.get(session)
    if (!log) throw sessionMissingFault(session)
    return log
  }

  /** A lease lives as long as its worker is known to live. */
  #leased(log: MemoryLog, now: number): boolean {
    const worker = log.worker === null ? undefined : this.#workers.get(log.worker)
    return worker !== undefined && isLeaseLive(worker, now)
  }

  #isAhead(worker: string | null, now: number): boolean {
    const lease = worker === null ? undefined : this.#workers.get(worker)
    return lease !== undefined && lease.until > now && !isLeaseLive(lease, now)
  }

  /** When the clock went back, times written before may lie in the future. Such sessions must be looked at now. */
  #doubt(now: number): void {
    if (!isAhead(this.#latest, now)) return
    this.#latest = now
    for (const log of this.#list) {
      if (log.due === null || !isAhead(log.due, now) || !isAhead(log.at, now) || this.#leased(log, now)) continue
      const { due, trouble } = changesForFutureTimes(log, now)
      log.trouble = trouble
      this.#place(log, { worker: null, due, urgent: log.urgent })
    }
  }

  #extend(worker: string, ttlMs: number, now: number): MemoryWorker {
    checkId('worker id', worker)
    const known = this.#workers.get(worker) ?? { until: 0, ttlMs, address: null, process: null, held: new Set() }
    Object.assign(known, extendedLease(known, ttlMs, now))
    this.#workers.set(worker, known)
    return known
  }

  #place(log: MemoryLog, { worker, due, urgent }: Pick<SessionRecord, 'worker' | 'due' | 'urgent'>): void {
    if (log.worker === worker && log.due === due && log.urgent === urgent) return
    if (log.worker !== worker) {
      if (log.worker !== null) this.#workers.get(log.worker)?.held.delete(log)
      if (worker !== null) this.#workers.get(worker)?.held.add(log)
    }
    if (log.worker === null && log.due !== null) (log.urgent ? this.#urgent : this.#calm).remove(log)
    if (worker === null && due !== null) (urgent ? this.#urgent : this.#calm).put(log, due)
    log.worker = worker
    log.due = due
    log.urgent = urgent
  }

  #applyDraft(draft: SessionChange, now: number): void {
    const log = this.#logs.get(draft.session) ?? this.#create(draft)
    if (draft.owner !== null) this.#prove(draft.owner, now)
    this.#place(log, draft)
    const { bodies, ids } = draft
    for (let i = 0; i < bodies.length; i++) log.bodies.push(flattenText(bodies[i] as string))
    if (ids.length > 0) for (const { id, seq } of ids) log.ids.set(id, seq)
    log.seq = draft.seq
    log.at = draft.at
    log.status = draft.status
    log.tries = draft.tries
    log.trouble = draft.trouble
    if (draft.card) log.card = draft.card
    log.facts = draft.facts
    if (draft.snapshot) keepSnapshot(log, draft.snapshot, true)
  }

  #create(draft: SessionChange): MemoryLog {
    assert(draft.card, 'a session is created with a card')
    const log = new MemoryLog(this.#created++, draft, draft.card)
    this.#logs.set(log.id, log)
    this.#list.push(log)
    this.#ordered = false
    return log
  }

  /** Makes room for the sessions this commit creates. Sessions that the commit names are not forgotten. */
  #makeRoom(writes: readonly Write[], now: number): void {
    const fresh = writes.filter((write) => write.lane === 'owner' && !this.#logs.has(write.session))
    const named = sessionsNamedIn(writes, fresh, this.#logs)
    for (let over = this.#logs.size + fresh.length - this.#sessionsMax; fresh.length > 0 && over > 0; ) {
      const gone = findSettledTree(this.#logs, this.#list, named, (log) => this.#leased(log, now))
      if (gone === null) {
        const text = `This store in memory holds ${this.#logs.size} sessions, and none has settled that could be forgotten. Remove some, or use sqlite("file.db").`
        throw new Fault('too_many', text)
      }
      for (const log of gone) this.#remove(log, { at: now, by: FORGOTTEN })
      for (const { id } of gone) this.#tellRemoved(id)
      over -= gone.length
    }
  }

  #tellRemoved(session: string): void {
    this.#listeners.tell(session, null)
    this.#listeners.tellCard(session)
  }

  /** Writing as the owner proves that the worker lives. Noted once in a third of the lease, as in a durable store. */
  #prove(worker: string, now: number): void {
    const known = this.#workers.get(worker)
    if (known && isRenewalDue(known, now)) known.until = now + known.ttlMs
  }

  #remove(log: MemoryLog, { at, by }: Pick<Removal, 'at' | 'by'>): Removal {
    this.#place(log, { worker: null, due: null, urgent: false })
    this.#logs.delete(log.id)
    this.#list.splice(this.#list.indexOf(log), 1)
    const gone = this.#blobs.drop(log, this.#list)
    const bytes = log.bodies.reduce((sum, body) => sum + Buffer.byteLength(body), gone)
    for (const id of this.#accounts.keys()) if (isOwnAccount(log.id, id)) this.#accounts.delete(id)
    const removal = { session: log.id, agent: log.card.agent, events: log.seq, bytes, at, by }
    this.#ended.set(log.id, log.epoch)
    if (by !== FORGOTTEN) this.#removals.push({ removal, n: log.n })
    return removal
  }

  #applyRest(plan: Pick<WritePlan, 'book' | 'blobs' | 'refs'>): void {
    for (const [id, row] of plan.book?.accounts ?? []) this.#accounts.set(id, row)
    for (const [key, hold] of plan.book?.holds ?? []) {
      if (hold) this.#holds.set(key, hold)
      else this.#holds.delete(key)
    }
    for (const { session, blob } of plan.blobs) this.#blobs.add(blob, this.#logs.get(session))
    for (const { session, hash } of plan.refs) this.#blobs.refer(hash, this.#logs.get(session))
  }
}
