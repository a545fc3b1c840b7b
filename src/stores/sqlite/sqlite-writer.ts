// The only writer of a connection: gathers the requests of one macrotask, writes them in one transaction, and only then
// answers. It waits for other processes through the clock, and after a disk error writes nothing more. sqlite-batch.ts
// builds the rows.
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import { keepProcessAlive } from '../plan/system-clock.ts'
import { SqliteBatch, type BatchState } from './sqlite-batch.ts'
import { fileBusyFault, isBusy, isMoved, toFault } from './sqlite-faults.ts'
import { filesIdentity } from './database-file.ts'
import { MarkFile, countRemovals, replacedFault } from './store-mark.ts'
import type { SqliteConnection } from './open-file.ts'

type WriteJob = {
  readonly act: (batch: SqliteBatch) => void
  readonly done: () => void
  readonly fail: (error: Error) => void
  /** When to stop waiting for other processes. */
  readonly deadline: number
}

const BUSY_WAIT_MS = 10_000
const GROUP_MAX = 1024
const ALONE_MIN = 8
const IDENTIFY_EVERY_MS = 1000

/** `now` is the time for written rows; `clock` measures durations. */
type WriterOptions = {
  readonly ground: BatchState
  readonly now: () => number
  readonly clock: Clock
  readonly after: (batch: SqliteBatch) => void
}

export class SqliteWriter {
  /** How many transactions wrote something. Each is one fsync. */
  transactions = 0
  readonly #connection: SqliteConnection
  readonly #ground: BatchState
  readonly #now: () => number
  readonly #clock: Clock
  readonly #after: (batch: SqliteBatch) => void
  readonly #jobs: WriteJob[] = []
  #scheduled = false
  /** The last session that asked, and how often in a row no other did. */
  #asker = ''
  #alone = 0
  #attempts = 0
  #dataVersion = -1
  #identifiedAt = Number.NEGATIVE_INFINITY
  #removals: number | null = null
  #broken: Error | null = null
  readonly #marks: MarkFile
  /** The Fault if the file has less than was acknowledged, otherwise 'no'; null before the first check. */
  #older: Fault | 'no' | null = null

  constructor(connection: SqliteConnection, options: WriterOptions) {
    this.#connection = connection
    this.#marks = new MarkFile(connection)
    this.#ground = options.ground
    this.#now = options.now
    this.#clock = options.clock
    this.#after = options.after
  }

  /**
   * `act` runs inside the transaction. It throws a Fault to be refused, which does not affect the others in the group.
   */
  submit<T>(asker: string, act: (batch: SqliteBatch) => T): Promise<T> {
    this.#alone = asker === this.#asker ? this.#alone + 1 : 0
    this.#asker = asker
    return new Promise((resolve, reject) => {
      let value: T
      const run = (batch: SqliteBatch) => {
        value = act(batch)
      }
      const deadline = this.#clock.now() + BUSY_WAIT_MS
      this.#jobs.push({ act: run, done: () => resolve(value), fail: reject, deadline })
      if (!this.#scheduled) this.#schedule()
    })
  }

  /**
   * At the end of the macrotask, so that others join the group. A session that has been alone for long does not wait
   * for others, except every eighth time, so that timers and sockets get their turn.
   */
  #schedule(): void {
    this.#scheduled = true
    if (this.#alone < ALONE_MIN || this.#alone % ALONE_MIN === 0) setImmediate(() => this.#flush())
    else void NOW.then(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
    // Requests from listeners have their own turn, so that two that answer each other cannot block everything else.
    for (let left = this.#jobs.length; left > 0; ) {
      const group = this.#jobs.splice(0, Math.min(left, GROUP_MAX))
      left -= group.length
      const waiting = this.#run(group)
      if (waiting.length === 0) continue
      this.#jobs.unshift(...waiting)
      this.#wait()
      return
    }
  }

  /**
   * Writes a group as one transaction and answers it. Returns the jobs that must wait because another process writes.
   */
  #run(group: readonly WriteJob[]): readonly WriteJob[] {
    let refused: Map<WriteJob, Error> | null = null
    let batch: SqliteBatch
    try {
      if (this.#broken) throw this.#broken
      this.#ground.sql.begin.get()
      this.#checkMark()
      this.#refresh()
      batch = new SqliteBatch(this.#now(), this.#ground)
      for (const job of group) {
        const refusal = runJob(job, batch)
        if (refusal) (refused ??= new Map<WriteJob, Error>()).set(job, refusal)
      }
      this.#commit(batch)
      // Writes into a file that is gone are not acknowledged. Checked once, and here, because each check costs as much
      // as a row.
      this.checkFile(0)
      this.#acknowledge(batch)
    } catch (error) {
      return this.#recover(group, error)
    }
    this.#attempts = 0
    batch.settle()
    this.#after(batch)
    for (const job of group) {
      const refusal = refused?.get(job)
      if (refusal) job.fail(refusal)
      else job.done()
    }
    return []
  }

  #commit(batch: SqliteBatch): void {
    // SQLite ends a transaction by itself after some errors. Later writes would then stand alone.
    if (!this.#connection.db.isTransaction)
      throw new Fault('io_error', 'The transaction was lost. Nothing was written.')
    batch.write()
    this.#ground.sql.commit.get()
    if (batch.changed) this.transactions += 1
  }

  /** Nothing of the group was written. A busy file is waited for; a group may contain one job that fails the others. */
  #recover(group: readonly WriteJob[], error: unknown): readonly WriteJob[] {
    this.#rollBack()
    if (isBusy(error)) return group
    const fault = toFault(error)
    if (fault === this.#older || isMoved(error)) {
      for (const job of group) job.fail(fault)
      return []
    }
    if (fault instanceof Fault && (fault.code === 'io_error' || fault.code === 'store_replaced')) {
      // After a failed write or fsync the content of the disk is unknown: only opening the file again finds out.
      this.#broken = fault
    } else if (group.length > 1) {
      for (const [i, job] of group.entries()) if (this.#run([job]).length > 0) return group.slice(i)
      return []
    }
    for (const job of group) job.fail(fault)
    return []
  }

  #rollBack(): void {
    this.#dataVersion = -1
    try {
      if (this.#connection.db.isTransaction) this.#connection.db.exec('ROLLBACK')
    } catch (error) {
      this.#broken = toFault(error)
    }
  }

  close(): void {
    this.#marks.close()
  }

  /** Jittered by process, so that several waiting processes do not return together. */
  #wait(): void {
    const now = this.#clock.now()
    for (let i = this.#jobs.length - 1; i >= 0; i--) {
      if ((this.#jobs[i]?.deadline ?? 0) > now) continue
      for (const job of this.#jobs.splice(i, 1)) job.fail(fileBusyFault())
    }
    if (this.#jobs.length === 0) return
    this.#attempts += 1
    this.#scheduled = true
    const release = keepProcessAlive()
    this.#clock.timer(jitterMs(this.#attempts), () => {
      release()
      this.#flush()
    })
  }

  /** Cached rows are valid only while no other process has written. */
  #refresh(): void {
    const { data_version: version } = this.#ground.sql.dataVersion.get() as { data_version: number }
    if (version === this.#dataVersion) return
    this.#dataVersion = version
    this.#ground.rows.clear()
    this.#ground.workers.clear()
    const { pos } = this.#ground.sql.last.get() as { pos: number }
    this.#checkPos(pos)
    this.#ground.pos = pos
  }

  /** Events are only ever added and their last position grows, unless a session was removed. */
  #checkPos(pos: number): void {
    const { db, file } = this.#connection
    const before = this.#removals
    if (before !== null && pos >= this.#ground.pos) return
    this.#removals = countRemovals(db)
    if (before === null || this.#removals > before) return
    throw replacedFault(file, 'is older than it was a moment ago. Open the store again.')
  }

  /**
   * If the file or its log is removed or replaced, this connection writes where no other process reads. Commits always
   * check this, reads once a second.
   */
  checkFile(everyMs = IDENTIFY_EVERY_MS): void {
    if (this.#broken instanceof Fault && this.#broken.code === 'store_replaced') throw this.#broken
    const now = this.#clock.now()
    if (now - this.#identifiedAt < everyMs) return
    this.#identifiedAt = now
    const { file, identity } = this.#connection
    if (filesIdentity(file) === identity) return
    this.#broken = replacedFault(
      file,
      'or its -wal file was removed or replaced while it was open. Put the files back, and open the store again.',
    )
    throw this.#broken
  }

  /**
   * Records the acknowledged state beside the file: a file that has less when it is opened again has lost something.
   */
  #acknowledge(batch: SqliteBatch): void {
    if (batch.removed.length > 0) {
      this.#removals = countRemovals(this.#connection.db)
      this.#marks.keepAll()
    } else if (batch.last !== null) this.#marks.keep(batch.last, this.#removals ?? 0)
  }

  /** Once, before the first commit. It does not stop readers. */
  #checkMark(): void {
    this.#older ??= this.#marks.check() ?? 'no'
    if (this.#older !== 'no') throw this.#older
  }
}

/** As queueMicrotask, which makes an AsyncResource each time. */
const NOW = Promise.resolve()

/** Tries until the file is not busy. For work without a place in the queue: opening and reading. */
export async function runWhenFree<T>(clock: Clock, act: () => T): Promise<T> {
  const deadline = clock.now() + BUSY_WAIT_MS
  for (let attempts = 1; ; attempts++) {
    try {
      return act()
    } catch (error) {
      if (!isBusy(error)) throw toFault(error)
      if (clock.now() >= deadline) throw fileBusyFault()
    }
    await pauseFor(clock, jitterMs(attempts))
  }
}

function pauseFor(clock: Clock, ms: number): Promise<void> {
  const release = keepProcessAlive()
  return new Promise((resolve) => {
    clock.timer(ms, () => {
      release()
      resolve()
    })
  })
}

function jitterMs(attempt: number): number {
  return 5 + (Math.imul(process.pid + attempt * 7919, 0x9e3779b1) >>> 27)
}

/**
 * A refusal leaves the batch unchanged. Any other error may not: it ends the transaction, and each job is tried alone.
 */
function runJob(job: WriteJob, batch: SqliteBatch): Fault | null {
  try {
    job.act(batch)
    return null
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}
