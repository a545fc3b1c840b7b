// The lane of a store's writes: what is asked while a batch is under way is the next batch. Each batch is planned on the rows that are
// remembered or fetched, without a lock, and written by one guarded statement. If the present has moved, it is fetched, planned and
// written again; from the third time on under locks. What needs a row that another transaction keeps locked is set aside and tried again,
// while the rest goes on. What is written is batch.ts and write.ts.
import { Fault } from '../../kernel/failure.ts'
import type { Receipt, Write } from '../../ports/store.ts'
import { Batch } from './batch.ts'
import { fetch, nothingKnown, noWants, type Present, type Wants } from './fetch.ts'
import type { Row, WorkerRow } from './rows.ts'
import { holdProcess, steadyClock } from '../plan/clock.ts'
import { isStoreId } from '../plan/id.ts'
import { findLocked } from './locked.ts'
import { needsOf } from '../plan/needs.ts'
import { ROOM } from './schema.ts'
import { type LaneSql, Locked, type Sql, Stale, Unknown } from './sql.ts'
import { Patience } from './trouble.ts'
import { isKnown, type Witness, write } from './write.ts'

type Act<T> = {
  /** Adds what it needs to know. */
  readonly want: (wants: Wants) => void
  /** Runs on the batch. Throws a Fault to be refused, and then has changed nothing. */
  readonly act: (batch: Batch) => T
  /** It may be planned on the rows this process remembers, without reading them: an owner's plain commit, or a claim of a free session. */
  readonly remembered?: boolean
  /** Of the blobs that it brings. */
  readonly blobBytes?: number
}
type Settled = {
  readonly done: () => void
  readonly fail: (error: Error) => void
  /** Until when it is set aside, because a row it needs was found locked. Null: none was. */
  asideUntil: number | null
  /** How many were asked for before it. */
  readonly place: number
}
type Job = Settled & { readonly plan: Act<void> }
/** Runs by itself, when all before it is done. `session`: the one whose row it needs. */
type Alone = Settled & {
  readonly run: (again: boolean) => Promise<void>
  readonly session: string | null
  /** It was run before, and may be done. */
  again: boolean
}

type LaneOptions = {
  readonly sql: LaneSql
  /** The time of what is written, when nothing was fetched that says it. */
  readonly now: () => number
  /** The time of the database, as it was just read: what now counts. */
  readonly heardNow: (time: number, askedAt: number) => number
  readonly askedAt: () => number
  /** What needs a locked row is set aside for so long at most. Then its caller is told, and may ask again. */
  readonly asideMs: number
  /** After a batch was written, before it is answered. */
  readonly after: (batch: Batch) => void
}

const GROUP_MAX = 256
/** Keeps a statement far below the gigabyte that Postgres accepts, and the commits behind it from waiting long. */
const GROUP_BLOB_BYTES_MAX = 64 * 2 ** 20
const LOCKED_FROM = 3
const TRIES_MAX = 12
/** Lost answers are asked for again for so long. */
const LOST_MS_MAX = 10_000
const LOOK_AGAIN_MS = 100
const ROWS_KNOWN_MAX = 10_000

export class Lane {
  /** How many statements wrote something. */
  written = 0
  /** How often the present had moved, and how often an answer was lost. */
  moved = 0
  lost = 0
  readonly #rows = new Map<string, Row>()
  readonly #workers = new Map<string, WorkerRow>()
  /** Sessions whose log was found damaged when it was read, by their number. */
  readonly damaged = new Map<number, string>()
  readonly #options: LaneOptions
  readonly #queue: (Job | Alone)[] = []
  #asked = 0
  /** Those that need a locked row. */
  readonly #setAside: (Job | Alone)[] = []
  /** Resolves when those that are set aside are in the queue again. */
  #returning: Promise<void> | null = null
  #lockFault = new Fault('store_busy', MOVED)
  #running: Promise<void> | null = null
  /** What this process wrote last. All that it knows may be of a past that never was, if the database does not have it. */
  #witness: Witness | null = null
  /** The last partition of events that is surely there. */
  #room = -1

  constructor(options: LaneOptions) {
    this.#options = options
  }

  submit<T>(plan: Act<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let value: T
      const act = (batch: Batch): void => {
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

  /** `again`: the present had moved, or the answer was lost, and what was asked may be done. */
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

  /** When all that was asked is done. */
  async idle(): Promise<void> {
    while (this.#running || this.#returning) await (this.#running ?? this.#returning)
  }

  remembered(session: string): Row | null {
    return this.#rows.get(session) ?? null
  }

  remember(session: string, row: Row): void {
    if (this.#rows.size > ROWS_KNOWN_MAX) this.#rows.clear()
    this.#rows.set(session, row)
  }

  knowsWorker(id: string): boolean {
    return this.#workers.has(id)
  }

  rememberWorker(id: string, row: WorkerRow): void {
    this.#workers.set(id, row)
  }

  forget(session: string): void {
    this.#rows.delete(session)
  }

  #push(job: Job | Alone): void {
    this.#queue.push(job)
    this.#running ??= this.#drain()
  }

  /** Sets aside those that need a row which is locked now, or one that was asked for before them and is set aside. Returns the others. */
  async #withoutLocked<T extends Job | Alone>(jobs: readonly T[]): Promise<readonly T[]> {
    const before = new Set(this.#setAside.flatMap((job) => [...wantsOfOne(job).sessions]))
    const wants = jobs.map(wantsOfOne)
    const locked = await findLocked(this.#options.sql, wants)
    return jobs.filter((job, i) => {
      const isKept = locked.has(i) || [...(wants[i]?.sessions ?? [])].some((session) => before.has(session))
      if (isKept) this.#putAside(job)
      return !isKept
    })
  }

  #putAside(job: Job | Alone): void {
    job.asideUntil ??= steadyClock.now() + this.#options.asideMs
    if (steadyClock.now() >= job.asideUntil) return job.fail(this.#lockFault)
    this.#setAside.push(job)
    this.#returning ??= this.#returnLater()
  }

  async #returnLater(): Promise<void> {
    const release = holdProcess()
    await new Promise<void>((done) => void steadyClock.timer(LOOK_AGAIN_MS, done))
    release()
    this.#returning = null
    // Some were set aside while others, which were asked for before them, came back and were set aside again.
    const all = [...this.#setAside.splice(0), ...this.#queue.splice(0)]
    this.#queue.push(...all.sort((one, other) => one.place - other.place))
    this.#running ??= this.#drain()
  }

  /** While some are set aside, the next jobs are looked at before they are done: they may need the same rows. */
  #mayNeedLocked(jobs: readonly (Job | Alone)[]): boolean {
    return this.#setAside.length > 0 || jobs.some(({ asideUntil }) => asideUntil !== null)
  }

  async #drain(): Promise<void> {
    // What is asked in the same moment goes together.
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
      // In the same moment as the last look at the queue: what is asked after it finds nobody at work.
      this.#running = null
    }
  }

  /** Takes the next jobs that are written together. */
  #group(): readonly Job[] {
    let [count, bytes] = [0, 0]
    for (const job of this.#queue) {
      if ('run' in job || count === GROUP_MAX) break
      bytes += job.plan.blobBytes ?? 0
      if (count > 0 && bytes > GROUP_BLOB_BYTES_MAX) break
      count += 1
    }
    return this.#queue.splice(0, count) as Job[]
  }

  async #runAlone(job: Alone): Promise<void> {
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
        if (error instanceof Locked) this.#lockFault = error.fault
        if (error instanceof Locked && session !== null) return this.#putAside(job)
        const fault = await this.#faultOf(error, tries, patience)
        if (fault !== null) return fail(fault)
      }
    }
  }

  /** Throws if the database is older than what this process knows of it. */
  async verify(sql: Sql = this.#options.sql): Promise<void> {
    const witness = this.#witness
    if (witness === null || (await isKnown(sql, witness))) return
    const text = `The database does not have event ${witness.seq} of session ${witness.session}, which this process wrote: it was restored to an earlier time, or is another one. Nothing more is written. Start the process again to go on with what is there.`
    throw new Fault('store_replaced', text)
  }

  /** Null: it is tried again. */
  async #faultOf(error: unknown, tries: number, patience: Patience): Promise<Error | null> {
    if (error instanceof Stale) {
      this.moved += 1
      return tries < TRIES_MAX ? null : new Fault('store_busy', MOVED)
    }
    if (error instanceof Unknown || error instanceof Locked) {
      if (error instanceof Unknown) this.lost += 1
      return patience.after(error.fault).then(
        () => null,
        (fault: Fault) => fault,
      )
    }
    return error instanceof Error ? error : new Error(String(error))
  }

  /** Answers each of them. */
  async #run(group: readonly Job[]): Promise<void> {
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
        // It may have left the batch half done: the others are planned without it.
        spoiled.job.fail(spoiled.error)
        jobs = jobs.filter((job) => job !== spoiled.job)
      } catch (error) {
        const count = jobs.length
        if (error instanceof Locked) jobs = await this.#afterLock(jobs, error)
        if (jobs.length < count) continue
        // The guard that failed may be the witness.
        const trouble =
          error instanceof Stale
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

  /** Returns those of them that can go on. All of them, if the lock is gone by now or is not one of a row. */
  #afterLock(jobs: readonly Job[], { fault }: Locked): Promise<readonly Job[]> {
    this.#lockFault = fault
    return this.#withoutLocked(jobs).catch(() => jobs)
  }

  /** Of many, one may spoil it for the others: then each is done alone. Trouble of the database is the same for all. */
  async #fail(jobs: readonly Job[], error: Error): Promise<void> {
    this.#rows.clear()
    if (jobs.length === 1 || error instanceof Fault) for (const job of jobs) job.fail(error)
    else for (const job of jobs) await this.#run([job])
  }

  #answer(jobs: readonly Job[], batch: Batch, refused: Planned['refused']): void {
    if (batch.changed) this.#settle(batch)
    for (const job of jobs) {
      const refusal = refused.get(job)
      if (refusal) job.fail(refusal)
      else job.done()
    }
  }

  async #try(jobs: readonly Job[], fresh: boolean, sql: Sql = this.#options.sql): Promise<Planned> {
    const first = await this.#present(jobs, fresh, sql)
    let planned = this.#plan(jobs, first)
    // A refusal on rows that are remembered may be wrong.
    if (first.isRemembered && (planned.refused.size > 0 || planned.spoiled))
      planned = this.#plan(jobs, await this.#present(jobs, true, sql))
    const { batch, spoiled } = planned
    if (spoiled || !batch.changed) return planned
    await this.#makeRoom(batch, sql)
    const askedAt = this.#options.askedAt()
    this.#options.heardNow(await write(sql, batch, this.#witness), askedAt)
    this.written += 1
    return planned
  }

  #underLocks(jobs: readonly Job[]): Promise<Planned> {
    const { sessions, accounts, holds, lost } = wantsOf(jobs)
    return this.#options.sql.transaction(async (sql) => {
      await sql.ask('lock sessions', LOCK_SESSIONS, [[...sessions].filter(isStoreId)])
      await sql.ask('lock accounts', LOCK_ACCOUNTS, [[...accounts].filter(isStoreId)])
      await sql.ask('lock holds', LOCK_HOLDS, [[...holds].filter(isStoreId), [...lost].filter(isStoreId)])
      return this.#try(jobs, true, sql)
    })
  }

  /** What the jobs need to know: rows that are remembered, if all of a job's may be, and what is fetched. */
  async #present(jobs: readonly Job[], fresh: boolean, sql: Sql): Promise<Known> {
    const { now, heardNow, askedAt } = this.#options
    const wants = wantsOf(jobs)
    const unknown = fresh ? jobs : jobs.filter(({ plan }) => !plan.remembered)
    const must = unknown.length === 0 ? NONE : wantsOf(unknown).sessions
    const known = this.#recall(wants, must)
    const isNeeded = Object.values(wants).some((want) => (typeof want === 'number' ? want > 0 : sizeOf(want) > 0))
    const asked = askedAt()
    let present = isNeeded ? await fetch(sql, wants) : nothingKnown()
    // A statement that was planned as another process made the table of the newest events does not see it: asked again it does.
    if ([...present.view.heads.values()].some((row) => row?.damage)) present = await fetch(sql, wants)
    const time = isNeeded ? heardNow(present.view.now, asked) : now()
    for (const [session, row] of known) {
      present.view.heads.set(session, row)
      present.view.stored.set(session, new Map([[row.seq, []]]))
    }
    for (const [session, row] of present.view.heads) if (row !== null) this.remember(session, row)
    for (const [id, row] of present.workers) if (row !== null) this.#workers.set(id, row)
    return { present, now: time, isRemembered: known.size > 0 }
  }

  /** Takes out of `wants` what is remembered. A log that goes on where a write begins may hold that very write: then it is fetched. */
  #recall(wants: Wants, must: ReadonlySet<string>): ReadonlyMap<string, Row> {
    const known = new Map<string, Row>()
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

  #plan(jobs: readonly Job[], { present, now }: Known): Planned {
    const batch = new Batch(now, present, { workers: this.#workers, damaged: this.damaged })
    const refused = new Map<Job, Fault>()
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

  async #makeRoom({ changes }: Batch, sql: Sql): Promise<void> {
    for (const { row, was } of changes.values()) {
      const room = Math.floor(row.n / ROOM)
      if (was !== null || room <= this.#room) continue
      await sql.ask('room', 'select ~make_room($1)', [room])
      this.#room = room
    }
  }

  /** After the statement: what was written is what is known. */
  #settle(batch: Batch): void {
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

type Known = { readonly present: Present; readonly now: number; readonly isRemembered: boolean }
type Planned = {
  readonly batch: Batch
  readonly refused: ReadonlyMap<Job, Fault>
  /** The job whose plan failed with what is no refusal. */
  readonly spoiled: { readonly job: Job; readonly error: Error } | null
}

export function commitOf(writes: readonly Write[]): Act<readonly Receipt[]> {
  const blobs = writes.flatMap((write) => write.blobs ?? [])
  return {
    want: (wants) => void needsOf(writes, wants),
    act: (batch) => batch.commit(writes),
    remembered: true,
    blobBytes: blobs.reduce((sum, { data }) => sum + data.byteLength, 0),
  }
}

function wantsOfOne(job: Job | Alone): Wants {
  const wants = noWants()
  if (!('run' in job)) job.plan.want(wants)
  else if (job.session !== null) wants.sessions.add(job.session)
  return wants
}

function wantsOf(jobs: readonly Job[]): Wants {
  const wants = noWants()
  for (const { plan } of jobs) plan.want(wants)
  wants.numbers = wants.fresh.size
  return wants
}

function sizeOf(want: Exclude<Wants[keyof Wants], number>): number {
  return Array.isArray(want) ? want.length : (want as ReadonlySet<unknown>).size
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
