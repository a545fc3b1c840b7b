// The queue of a store's writes: requests that arrive while a batch is in progress form the next batch. Each batch is
// planned on remembered or fetched rows, without a lock, and written by one guarded statement. If the rows have changed
// since, they are fetched, and the batch is planned and written again; from the third try on under locks. A request
// that needs a locked row is set aside and tried again while the rest goes on. postgres-batch.ts and write-statement.ts
// do the writing.
import { Fault } from '../../kernel/failure.ts'
import type { Receipt, Write } from '../../ports/store.ts'
import { PostgresBatch } from './postgres-batch.ts'
import { fetchPresent, emptyPresent, emptyBatchNeeds, type BatchPresent, type BatchNeeds } from './fetch-present.ts'
import type { PostgresRow, PostgresWorkerRow } from './postgres-rows.ts'
import { keepProcessAlive, steadyClock } from '../plan/system-clock.ts'
import { isStoreId } from '../plan/store-ids.ts'
import { findLocked } from './find-locked.ts'
import { needsOf } from '../plan/plan-needs.ts'
import { ROOM } from './postgres-schema.ts'
import { type WriteSql, LockedError, type Sql, StaleError, UnknownOutcomeError } from './sql.ts'
import { Patience } from './database-trouble.ts'
import { isWitnessKnown, type Witness, writeBatch } from './write-statement.ts'

type QueuedWork<T> = {
  /** Adds the rows it needs. */
  readonly want: (wants: BatchNeeds) => void
  /** Runs on the batch. A Fault refuses it; then it has changed nothing. */
  readonly act: (batch: PostgresBatch) => T
  /**
   * It may be planned on remembered rows without reading them: a plain commit of an owner, or a claim of a free
   * session.
   */
  readonly remembered?: boolean
  /** The size of its blobs. */
  readonly blobBytes?: number
}
type QueueEntry = {
  readonly done: () => void
  readonly fail: (error: Error) => void
  /** Until when it is set aside, because a row it needs was locked. Null: no row was. */
  asideUntil: number | null
  /** How many requests came before it. */
  readonly place: number
}
type BatchJob = QueueEntry & { readonly plan: QueuedWork<void> }
/** Runs alone when everything before it is done. `session` is the one whose row it needs. */
type SoloJob = QueueEntry & {
  readonly run: (again: boolean) => Promise<void>
  readonly session: string | null
  /** It ran before, and may be done. */
  again: boolean
}

type WriteQueueOptions = {
  readonly sql: WriteSql
  /** The time for written rows if no fetched row contains it. */
  readonly now: () => number
  /** Takes the database time just read, and returns the present time. */
  readonly heardNow: (time: number, askedAt: number) => number
  readonly askedAt: () => number
  /** The longest time a request is set aside for a locked row. Then the caller gets a Fault and may ask again. */
  readonly asideMs: number
  /** Called after a batch was written, before its requests are answered. */
  readonly after: (batch: PostgresBatch) => void
}

const GROUP_MAX = 256
/** Keeps a statement far below the gigabyte that Postgres accepts, and later commits from waiting long. */
const GROUP_BLOB_BYTES_MAX = 64 * 2 ** 20
const LOCKED_FROM = 3
const TRIES_MAX = 12
/** How long a request is repeated after lost answers. */
const LOST_MS_MAX = 10_000
const LOOK_AGAIN_MS = 100
const ROWS_KNOWN_MAX = 10_000

export class WriteQueue {
  /** The number of statements that wrote something. */
  written = 0
  /** `moved`: how often the rows had changed. `lost`: how often an answer was lost. */
  moved = 0
  lost = 0
  readonly #rows = new Map<string, PostgresRow>()
  readonly #workers = new Map<string, PostgresWorkerRow>()
  /** Sessions whose log was found damaged on reading, by their number. */
  readonly damaged = new Map<number, string>()
  readonly #options: WriteQueueOptions
  readonly #queue: (BatchJob | SoloJob)[] = []
  #asked = 0
  /** The requests that need a locked row. */
  readonly #setAside: (BatchJob | SoloJob)[] = []
  /** Resolves when the set-aside requests are back in the queue. */
  #returning: Promise<void> | null = null
  #lockFault = new Fault('store_busy', MOVED)
  #running: Promise<void> | null = null
  /**
   * The last write of this process. If the database does not have it, everything remembered here may be from a state
   * that no longer exists.
   */
  #witness: Witness | null = null
  /** The last partition of events that surely exists. */
  #room = -1

  constructor(options: WriteQueueOptions) {
    this.#options = options
  }

  submit<T>(plan: QueuedWork<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let value: T
      const act = (batch: PostgresBatch): void => {
        value = plan.act(batch)
      }
      const { want, remembered = false, blobBytes = 0 } = plan
      this.#push({
        plan: { want, act, remembered, blobBytes },
        done: () => resolve(value),
        fail: reject,
        asideUntil: null,
        place: this.#asked++,
      })
    })
  }

  /** `again`: the rows had changed or the answer was lost, so the request may be done already. */
  alone<T>(act: (again: boolean) => Promise<T>, session: string | null = null): Promise<T> {
    return new Promise((resolve, reject) => {
      let value: T
      const run = async (again: boolean): Promise<void> => {
        value = await act(again)
      }
      const settled = { done: () => resolve(value), fail: reject, asideUntil: null, place: this.#asked++ }
      this.#push({ run, session, again: false, ...settled })
    })
  }

  /** Resolves when all requests are done. */
  async idle(): Promise<void> {
    while (this.#running || this.#returning) await (this.#running ?? this.#returning)
  }

  remembered(session: string): PostgresRow | null {
    return this.#rows.get(session) ?? null
  }

  remember(session: string, row: PostgresRow): void {
    if (this.#rows.size > ROWS_KNOWN_MAX) this.#rows.clear()
    this.#rows.set(session, row)
  }

  knowsWorker(id: string): boolean {
    return this.#workers.has(id)
  }

  rememberWorker(id: string, row: PostgresWorkerRow): void {
    this.#workers.set(id, row)
  }

  forget(session: string): void {
    this.#rows.delete(session)
  }

  #push(job: BatchJob | SoloJob): void {
    this.#queue.push(job)
    this.#running ??= this.#drain()
  }

  /**
   * Sets aside the jobs that need a row which is locked now, or which an earlier set-aside job needs. Returns the
   * others.
   */
  async #withoutLocked<T extends BatchJob | SoloJob>(jobs: readonly T[]): Promise<readonly T[]> {
    const before = new Set(this.#setAside.flatMap((job) => [...needsOfJob(job).sessions]))
    const wants = jobs.map(needsOfJob)
    const locked = await findLocked(this.#options.sql, wants)
    return jobs.filter((job, i) => {
      const isKept = locked.has(i) || [...(wants[i]?.sessions ?? [])].some((session) => before.has(session))
      if (isKept) this.#putAside(job)
      return !isKept
    })
  }

  #putAside(job: BatchJob | SoloJob): void {
    job.asideUntil ??= steadyClock.now() + this.#options.asideMs
    if (steadyClock.now() >= job.asideUntil) return job.fail(this.#lockFault)
    this.#setAside.push(job)
    this.#returning ??= this.#returnLater()
  }

  async #returnLater(): Promise<void> {
    const release = keepProcessAlive()
    await new Promise<void>((done) => void steadyClock.timer(LOOK_AGAIN_MS, done))
    release()
    this.#returning = null
    // Some were set aside while earlier ones came back and were set aside again.
    const all = [...this.#setAside.splice(0), ...this.#queue.splice(0)]
    this.#queue.push(...all.sort((one, other) => one.place - other.place))
    this.#running ??= this.#drain()
  }

  /** While some jobs are set aside, the next ones are checked first, because they may need the same rows. */
  #mayNeedLocked(jobs: readonly (BatchJob | SoloJob)[]): boolean {
    return this.#setAside.length > 0 || jobs.some(({ asideUntil }) => asideUntil !== null)
  }

  async #drain(): Promise<void> {
    // Requests of the same moment go together.
    await Promise.resolve()
    try {
      for (let first = this.#queue[0]; first; first = this.#queue[0]) {
        if ('run' in first) {
          this.#queue.shift()
          await this.#runAlone(first)
          continue
        }
        await this.#run(this.#group())
      }
    } finally {
      // In the same moment as the last look at the queue: a later request then starts a new run.
      this.#running = null
    }
  }

  /** Takes the next jobs that can be written together. */
  #group(): readonly BatchJob[] {
    let [count, bytes] = [0, 0]
    for (const job of this.#queue) {
      if ('run' in job || count === GROUP_MAX) break
      bytes += job.plan.blobBytes ?? 0
      if (count > 0 && bytes > GROUP_BLOB_BYTES_MAX) break
      count += 1
    }
    return this.#queue.splice(0, count) as BatchJob[]
  }

  async #runAlone(job: SoloJob): Promise<void> {
    const { run, done, fail, session } = job
    const patience = new Patience(steadyClock, LOST_MS_MAX)
    for (let tries = 1; ; tries++) {
      try {
        const isSuspect = session !== null && this.#mayNeedLocked([job])
        if (isSuspect && (await this.#withoutLocked([job])).length === 0) return
        await this.verify()
        await run(job.again)
        return done()
      } catch (error) {
        job.again = true
        if (error instanceof LockedError) this.#lockFault = error.fault
        if (error instanceof LockedError && session !== null) return this.#putAside(job)
        const fault = await this.#faultOf(error, tries, patience)
        if (fault !== null) return fail(fault)
      }
    }
  }

  /** Throws if the database is older than this process knows it. */
  async verify(sql: Sql = this.#options.sql): Promise<void> {
    const witness = this.#witness
    if (witness === null || (await isWitnessKnown(sql, witness))) return
    const text = `The database does not have event ${witness.seq} of session ${witness.session}, which this process wrote: it was restored to an earlier time, or is another one. Nothing more is written. Start the process again to go on with what is there.`
    throw new Fault('store_replaced', text)
  }

  /** Null: try again. */
  async #faultOf(error: unknown, tries: number, patience: Patience): Promise<Error | null> {
    if (error instanceof StaleError) {
      this.moved += 1
      return tries < TRIES_MAX ? null : new Fault('store_busy', MOVED)
    }
    if (error instanceof UnknownOutcomeError || error instanceof LockedError) {
      if (error instanceof UnknownOutcomeError) this.lost += 1
      return patience.after(error.fault).then(
        () => null,
        (fault: Fault) => fault,
      )
    }
    return error instanceof Error ? error : new Error(String(error))
  }

  /** Runs a group and answers each of its jobs. */
  async #run(group: readonly BatchJob[]): Promise<void> {
    let jobs = group
    const patience = new Patience(steadyClock, LOST_MS_MAX)
    for (let tries = 1; jobs.length > 0; tries++) {
      try {
        if (this.#mayNeedLocked(jobs)) jobs = await this.#withoutLocked(jobs)
        if (jobs.length === 0) return
        const { batch, refused, spoiled } = await (tries < LOCKED_FROM
          ? this.#try(jobs, tries > 1)
          : this.#underLocks(jobs))
        if (spoiled === null) return this.#answer(jobs, batch, refused)
        // The job may have left the batch half done, so the others are planned without it.
        spoiled.job.fail(spoiled.error)
        jobs = jobs.filter((job) => job !== spoiled.job)
      } catch (error) {
        const count = jobs.length
        if (error instanceof LockedError) jobs = await this.#afterLock(jobs, error)
        if (jobs.length < count) continue
        // The guard that failed may be the witness.
        const trouble =
          error instanceof StaleError
            ? await this.verify().then(
                () => error,
                (worse: unknown) => worse,
              )
            : error
        const fault = await this.#faultOf(trouble, tries, patience)
        if (fault !== null) return this.#fail(jobs, fault)
      }
    }
  }

  /** Returns the jobs that can go on: all of them if the lock is gone, or was not on a row. */
  #afterLock(jobs: readonly BatchJob[], { fault }: LockedError): Promise<readonly BatchJob[]> {
    this.#lockFault = fault
    return this.#withoutLocked(jobs).catch(() => jobs)
  }

  /** One of many may fail the others, so each is tried alone. Database trouble is the same for all. */
  async #fail(jobs: readonly BatchJob[], error: Error): Promise<void> {
    this.#rows.clear()
    if (jobs.length === 1 || error instanceof Fault) for (const job of jobs) job.fail(error)
    else for (const job of jobs) await this.#run([job])
  }

  #answer(jobs: readonly BatchJob[], batch: PostgresBatch, refused: PlannedBatch['refused']): void {
    if (batch.changed) this.#settle(batch)
    for (const job of jobs) {
      const refusal = refused.get(job)
      if (refusal) job.fail(refusal)
      else job.done()
    }
  }

  async #try(jobs: readonly BatchJob[], fresh: boolean, sql: Sql = this.#options.sql): Promise<PlannedBatch> {
    const first = await this.#present(jobs, fresh, sql)
    let planned = this.#plan(jobs, first)
    // A refusal based on remembered rows may be wrong.
    if (first.isRemembered && (planned.refused.size > 0 || planned.spoiled))
      planned = this.#plan(jobs, await this.#present(jobs, true, sql))
    const { batch, spoiled } = planned
    if (spoiled || !batch.changed) return planned
    await this.#makeRoom(batch, sql)
    const askedAt = this.#options.askedAt()
    this.#options.heardNow(await writeBatch(sql, batch, this.#witness), askedAt)
    this.written += 1
    return planned
  }

  #underLocks(jobs: readonly BatchJob[]): Promise<PlannedBatch> {
    const { sessions, accounts, holds, lost } = needsOfJobs(jobs)
    return this.#options.sql.transaction(async (sql) => {
      await sql.ask('lock sessions', LOCK_SESSIONS, [[...sessions].filter(isStoreId)])
      await sql.ask('lock accounts', LOCK_ACCOUNTS, [[...accounts].filter(isStoreId)])
      await sql.ask('lock holds', LOCK_HOLDS, [[...holds].filter(isStoreId), [...lost].filter(isStoreId)])
      return this.#try(jobs, true, sql)
    })
  }

  /** The rows that the jobs need: remembered ones where all needs of a job allow it, and fetched ones. */
  async #present(jobs: readonly BatchJob[], fresh: boolean, sql: Sql): Promise<PlanBasis> {
    const { now, heardNow, askedAt } = this.#options
    const wants = needsOfJobs(jobs)
    const unknown = fresh ? jobs : jobs.filter(({ plan }) => !plan.remembered)
    const must = unknown.length === 0 ? NONE : needsOfJobs(unknown).sessions
    const known = this.#recall(wants, must)
    const isNeeded = Object.values(wants).some((want) => (typeof want === 'number' ? want > 0 : sizeOfNeed(want) > 0))
    const asked = askedAt()
    let present = isNeeded ? await fetchPresent(sql, wants) : emptyPresent()
    // A statement planned while another process created the newest events table does not see that table. Asked again,
    // it does.
    if ([...present.view.heads.values()].some((row) => row?.damage)) present = await fetchPresent(sql, wants)
    const time = isNeeded ? heardNow(present.view.now, asked) : now()
    for (const [session, row] of known) {
      present.view.heads.set(session, row)
      present.view.stored.set(session, new Map([[row.seq, []]]))
    }
    for (const [session, row] of present.view.heads) if (row !== null) this.remember(session, row)
    for (const [id, row] of present.workers) if (row !== null) this.#workers.set(id, row)
    return { present, now: time, isRemembered: known.size > 0 }
  }

  /**
   * Removes remembered rows from the needs. If the log goes on where a write begins, it may contain that write, so it
   * is fetched.
   */
  #recall(wants: BatchNeeds, must: ReadonlySet<string>): ReadonlyMap<string, PostgresRow> {
    const known = new Map<string, PostgresRow>()
    const elsewhere = new Set<string>()
    for (const { session, after } of wants.bodies) if (this.#rows.get(session)?.seq !== after) elsewhere.add(session)
    for (const session of wants.sessions) {
      const row = this.#rows.get(session)
      if (!row || elsewhere.has(session) || must.has(session)) continue
      known.set(session, row)
      wants.sessions.delete(session)
      wants.fresh.delete(session)
    }
    const spans = wants.bodies.filter(({ session }) => !known.has(session))
    wants.bodies.splice(0, wants.bodies.length, ...spans)
    wants.numbers = wants.fresh.size
    return known
  }

  #plan(jobs: readonly BatchJob[], { present, now }: PlanBasis): PlannedBatch {
    const batch = new PostgresBatch(now, present, { workers: this.#workers, damaged: this.damaged })
    const refused = new Map<BatchJob, Fault>()
    for (const job of jobs) {
      try {
        job.plan.act(batch)
      } catch (error) {
        if (!(error instanceof Fault)) return { batch, refused, spoiled: { job, error: toError(error) } }
        refused.set(job, error)
      }
    }
    return { batch, refused, spoiled: null }
  }

  async #makeRoom({ changes }: PostgresBatch, sql: Sql): Promise<void> {
    for (const { row, was } of changes.values()) {
      const room = Math.floor(row.n / ROOM)
      if (was !== null || room <= this.#room) continue
      await sql.ask('room', 'select ~make_room($1)', [room])
      this.#room = room
    }
  }

  /** After the statement, the written rows are the remembered ones. */
  #settle(batch: PostgresBatch): void {
    for (const [session, { row }] of batch.changes) this.remember(session, { ...row, v: row.v + 1 })
    for (const [id, row] of batch.workers) this.#workers.set(id, row)
    for (const { session } of batch.grown) {
      const row = batch.changes.get(session)?.row
      if (row) this.#witness = { session, n: row.n, seq: row.seq, sum: row.sum }
    }
    this.#options.after(batch)
  }
}

const NONE: ReadonlySet<string> = new Set()
const LOCK_SESSIONS = 'select 1 from ~sessions where id = any($1) order by id for update'
const LOCK_ACCOUNTS = 'select 1 from ~accounts where id = any($1) order by id for update'
const LOCK_HOLDS = 'select 1 from ~holds where key = any($1) or session = any($2) order by key for update'
const MOVED = 'Other processes kept changing what this commit needs. Nothing was written; try again.'

type PlanBasis = { readonly present: BatchPresent; readonly now: number; readonly isRemembered: boolean }
type PlannedBatch = {
  readonly batch: PostgresBatch
  readonly refused: ReadonlyMap<BatchJob, Fault>
  /** The job whose plan failed with an error other than a refusal. */
  readonly spoiled: { readonly job: BatchJob; readonly error: Error } | null
}

export function commitWork(writes: readonly Write[]): QueuedWork<readonly Receipt[]> {
  const blobs = writes.flatMap((write) => write.blobs ?? [])
  return {
    want: (wants) => void needsOf(writes, wants),
    act: (batch) => batch.commit(writes),
    remembered: true,
    blobBytes: blobs.reduce((sum, { data }) => sum + data.byteLength, 0),
  }
}

function needsOfJob(job: BatchJob | SoloJob): BatchNeeds {
  const wants = emptyBatchNeeds()
  if (!('run' in job)) job.plan.want(wants)
  else if (job.session !== null) wants.sessions.add(job.session)
  return wants
}

function needsOfJobs(jobs: readonly BatchJob[]): BatchNeeds {
  const wants = emptyBatchNeeds()
  for (const { plan } of jobs) plan.want(wants)
  wants.numbers = wants.fresh.size
  return wants
}

function sizeOfNeed(want: Exclude<BatchNeeds[keyof BatchNeeds], number>): number {
  return Array.isArray(want) ? want.length : (want as ReadonlySet<unknown>).size
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
