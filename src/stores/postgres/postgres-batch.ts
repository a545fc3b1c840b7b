// The rows that one statement of a Postgres store will write: the fetched state, seen through the changes already
// decided. It decides nothing about admission (plan-writes.ts does), reads nothing (fetch-present.ts) and writes
// nothing (write-statement.ts).
import { assert, Fault } from '../../kernel/failure.ts'
import type { AccountRow, Blob, Claim, ProcessId, Receipt, Snapshot, Write } from '../../ports/store.ts'
import type { AccountChanges, Hold } from '../plan/plan-charges.ts'
import { addSum, logSeed } from '../plan/checksum.ts'
import { checkId } from '../plan/store-ids.ts'
import {
  becomesDue,
  changesByClaim,
  changesForFutureTimes,
  extendedLease,
  isAhead,
  isLeaseLive,
  isRenewalDue,
  sessionMissingFault,
  forkOriginOf,
  planWrites,
  changesByRelease,
  type SessionChange,
  type SessionTrouble,
  type StoreView,
  type WritePlan,
} from '../plan/plan-writes.ts'
import { type BatchPresent, SEQ_MAX } from './fetch-present.ts'
import type { PostgresRow, PostgresWorkerRow } from './postgres-rows.ts'

export type PostgresChange = { row: PostgresRow; readonly was: PostgresRow | null }
export type NewEventRow = { readonly n: number; readonly seq: number; readonly sum: number; readonly body: string }

/** Known workers, and logs found damaged, in addition to the fetched rows. */
type KnownState = {
  readonly workers: ReadonlyMap<string, PostgresWorkerRow>
  readonly damaged: ReadonlyMap<number, string>
}

const NOTHING_SAID = { address: null, host: null, pid: null, started: null }

export class PostgresBatch implements StoreView {
  readonly now: number
  readonly changes = new Map<string, PostgresChange>()
  /** The numbers of sessions that stay unchanged and must still exist, because forks read them. */
  readonly guards = new Map<string, number>()
  readonly workers = new Map<string, PostgresWorkerRow>()
  /** Leases found to have ended, which must still be the same when the batch is written. */
  readonly endedLeases = new Map<string, number>()
  readonly accounts = new Map<string, AccountRow>()
  readonly holds = new Map<string, Hold | null>()
  /** The most that this batch adds to the holds of each account at one time. */
  readonly asked = new Map<string, number>()
  /** Accounts whose spending raised a limit. */
  readonly raised = new Set<string>()
  readonly events: NewEventRow[] = []
  readonly letters: { readonly n: number; readonly id: string; readonly seq: number }[] = []
  readonly forks: { readonly n: number; readonly origin: string }[] = []
  readonly blobs = new Map<string, Blob>()
  readonly refs: { readonly n: number; readonly hash: string }[] = []
  readonly snapshots = new Map<string, Snapshot & { readonly n: number }>()
  /** Sessions that grew, in order, for the listeners. */
  readonly grown: SessionChange[] = []
  /** True if a worker was not known before. */
  isNewWorker = false
  /** True if some session may have become due. */
  stirred = false
  readonly #present: BatchPresent
  readonly #known: KnownState
  readonly #numbers: number[]
  readonly #ids = new Map<string, Map<string, { readonly seq: number; readonly body: string }>>()

  constructor(now: number, present: BatchPresent, known: KnownState) {
    this.now = now
    this.#present = present
    this.#numbers = [...present.numbers]
    this.#known = known
  }

  // ---- The present state, as this batch sees it ------------------------------------------------------------------

  head(session: string): PostgresRow | null {
    const row = this.#row(session)
    const damage = row && (row.damage ?? this.#known.damaged.get(row.n) ?? null)
    if (damage === null) return row
    throw new Fault('session_damaged', `Session ${session} is damaged and can only be read.`, damage)
  }

  admitted(session: string, id: string): { readonly seq: number; readonly body: string } | null {
    return this.#ids.get(session)?.get(id) ?? this.#present.view.admitted(session, id)
  }

  account(id: string): AccountRow | null {
    return this.accounts.get(id) ?? this.#present.view.account(id)
  }

  hold(key: string): Hold | null {
    const here = this.holds.get(key)
    return here === undefined ? this.#present.view.hold(key) : here
  }

  holdsOf(session: string): ReadonlyMap<string, Hold> {
    const found = new Map(this.#present.view.holdsOf(session))
    for (const [key, hold] of this.holds) {
      if (hold === null) found.delete(key)
      else if (hold.session === session) found.set(key, hold)
    }
    return found
  }

  ended(session: string): number | null {
    return this.#present.view.ended(session)
  }

  bodies(session: string, after: number, count: number): readonly string[] {
    const found = [...this.#present.view.bodies(session, after, count)]
    // The events of this batch follow the stored ones.
    for (const draft of this.grown) {
      const first = draft.seq - draft.bodies.length
      if (draft.session === session) found.push(...draft.bodies.slice(Math.max(0, after + found.length - first)))
    }
    return found.slice(0, count)
  }

  /** The fetched row, before this batch. */
  was(kind: 'accounts', id: string): AccountRow | null
  was(kind: 'holds', id: string): Hold | null
  was(kind: 'accounts' | 'holds', id: string): AccountRow | Hold | null {
    return kind === 'accounts' ? this.#present.view.account(id) : this.#present.view.hold(id)
  }

  #row(session: string): PostgresRow | null {
    return this.changes.get(session)?.row ?? this.#present.view.head(session)
  }

  #worker(id: string): PostgresWorkerRow | null {
    return this.workers.get(id) ?? this.#present.workers.get(id) ?? this.#known.workers.get(id) ?? null
  }

  #lease({ worker }: PostgresRow): PostgresWorkerRow | null {
    return worker === null ? null : this.#worker(worker)
  }

  // ---- Operations: each is either refused and changes nothing, or decided ----------------------------------------

  commit(writes: readonly Write[]): readonly Receipt[] {
    const plan = planWrites(writes, this)
    for (const draft of plan.drafts) {
      if (draft.seq >= SEQ_MAX) throw new Fault('invalid_input', `Session ${draft.session} is full.`)
      if (draft.card) checkTexts(draft)
    }
    for (const { blob } of plan.blobs) checkText('media type of a blob', blob.media)
    for (const { hash } of [...plan.refs, ...plan.blobs.map(({ blob }) => blob)]) checkText('hash of a blob', hash)
    for (const draft of plan.drafts) this.#grow(draft)
    this.#note(plan)
    if (plan.book) this.#pay(plan.book, writes)
    // Money and blobs without events: only the row's version changes, so that a removal that did not see them is
    // planned again.
    for (const [i, { session, charges, blobs }] of writes.entries()) {
      const isBeside = (charges?.length || blobs?.length) && plan.receipts[i]?.duplicate === false
      if (isBeside && !this.changes.has(session)) this.#touch(session)
    }
    for (const draft of plan.drafts) {
      const origin = forkOriginOf(draft)
      if (origin !== null) this.#guard(origin)
    }
    return plan.receipts
  }

  claim(session: string, worker: string, ttlMs: number, process?: ProcessId): Claim | null {
    checkId('worker id', worker)
    const row = this.head(session)
    if (row === null) throw sessionMissingFault(session)
    const lease = this.#lease(row)
    const live = lease !== null && isLeaseLive(lease, this.now)
    if (row.worker !== worker && live) return null
    const ahead = lease !== null && lease.until > this.now && !live
    if (row.worker !== null && row.worker !== worker && lease !== null && !this.workers.has(row.worker))
      this.endedLeases.set(row.worker, lease.until)
    const { until } = this.extend(worker, ttlMs, process)
    const epoch = row.epoch + 1
    const claimed = { ...changesByClaim(row, this.now), ...(ahead ? changesForFutureTimes(row, this.now) : null) }
    this.#change(session, { ...row, worker, epoch, ...claimed })
    return { epoch, seq: row.seq, until, failed: row.tries }
  }

  /** Also registers a new worker. */
  extend(worker: string, ttlMs: number, says?: Partial<PostgresWorkerRow>): PostgresWorkerRow {
    checkId('worker id', worker)
    for (const [kind, text] of Object.entries({ address: says?.address, host: says?.host }))
      if (text) checkText(`${kind} of a worker`, text)
    const known = this.#worker(worker)
    const row = { ...NOTHING_SAID, ...known, ...says, ...extendedLease(known, ttlMs, this.now) }
    this.workers.set(worker, row)
    this.endedLeases.delete(worker)
    this.isNewWorker ||= known === null
    return row
  }

  expire(worker: string, { host, pid, started }: ProcessId): boolean {
    const known = this.#worker(worker)
    if (known?.host !== host || known.pid !== pid || known.started !== started) return false
    this.workers.set(worker, { ...known, until: 0 })
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
      if (row === null || row.damage !== null || !isAhead(row.at, this.now) || !isAhead(row.due ?? 0, this.now))
        continue
      const lease = this.#lease(row)
      if (lease !== null && isLeaseLive(lease, this.now)) continue
      this.#change(session, { ...row, worker: null, ...changesForFutureTimes(row, this.now) })
      this.stirred = true
    }
  }

  release(session: string, epoch: number, trouble?: SessionTrouble): void {
    const row = this.#row(session)
    if (row?.epoch !== epoch || row.worker === null || row.damage !== null) return
    const released = { ...row, worker: null, ...changesByRelease(row, trouble, this.now) }
    this.#change(session, released)
    this.stirred ||= released.due !== null
  }

  #grow(draft: SessionChange): void {
    const { session, seq, at, epoch, worker, due, urgent, status, tries, trouble, bodies } = draft
    // Everything in this write existed already.
    if (bodies.length === 0 && draft.card === null) return
    const was = this.#row(session)
    const n = was?.n ?? this.#number()
    const first = seq - bodies.length + 1
    let sum = was?.sum ?? logSeed(session)
    for (const [i, body] of bodies.entries()) {
      sum = addSum(sum, body)
      this.events.push({ n, seq: first + i, sum, body })
    }
    const ids = this.#ids.get(session) ?? new Map<string, { seq: number; body: string }>()
    for (const letter of draft.ids) {
      ids.set(letter.id, { seq: letter.seq, body: bodies[letter.seq - first] ?? '' })
      this.letters.push({ n, ...letter })
    }
    this.#ids.set(session, ids)
    if (draft.owner !== null) this.#prove(draft.owner)
    const origin = forkOriginOf(draft)
    if (origin !== null) this.forks.push({ n, origin })
    const { snapshot } = draft
    // Of several snapshots in one batch the newest is enough.
    if (snapshot && snapshot.seq >= (this.snapshots.get(session)?.seq ?? 0))
      this.snapshots.set(session, { n, ...snapshot })
    const card = draft.card === null ? (was?.card ?? '') : JSON.stringify(draft.card)
    const { root, folder = null, parent = null, agent } = draft.card ?? was ?? { root: session, agent: '' }
    const damage = epoch >= Number.MAX_SAFE_INTEGER ? `its epoch is ${epoch}` : null
    // Every commit creates such a row. It is written without a spread, so that V8 gives all of them one shape, which is
    // faster.
    this.#change(session, {
      n,
      v: was?.v ?? 0,
      seq,
      at,
      sum,
      epoch,
      worker,
      due,
      urgent,
      tries,
      status,
      trouble,
      root,
      agent,
      folder,
      parent,
      card,
      facts: draft.facts,
      damage,
    })
    if (bodies.length > 0) this.grown.push(draft)
    this.stirred ||= becomesDue(draft)
  }

  #touch(session: string): void {
    const row = this.#row(session)
    if (row) this.#change(session, row)
  }

  /**
   * The session must still exist when this batch is written. Sessions that the batch creates or changes are guarded
   * already.
   */
  #guard(session: string): void {
    const row = this.#row(session)
    assert(row, `session ${session} is there when it is guarded`)
    if (!this.changes.has(session)) this.guards.set(session, row.n)
  }

  #note({ blobs, refs }: WritePlan): void {
    for (const { session, blob } of blobs) {
      if (!this.blobs.has(blob.hash)) this.blobs.set(blob.hash, { ...blob, data: blob.data.slice() })
      this.#refer(session, blob.hash)
    }
    for (const { session, hash } of refs) this.#refer(session, hash)
  }

  #refer(session: string, hash: string): void {
    const row = this.#row(session)
    if (row) this.refs.push({ n: row.n, hash })
  }

  #pay({ accounts, holds }: AccountChanges, writes: readonly Write[]): void {
    for (const [id, row] of accounts) this.accounts.set(id, row)
    for (const [key, hold] of holds) this.holds.set(key, hold)
    for (const charge of writes.flatMap((write) => write.charges ?? [])) {
      if (charge.type === 'hold')
        for (const id of charge.accounts) this.asked.set(id, (this.asked.get(id) ?? 0) + charge.amount)
      if (charge.type === 'limit' && charge.raisedBy !== undefined) this.raised.add(charge.raisedBy)
    }
  }

  #prove(worker: string): void {
    const known = this.#worker(worker)
    if (known && isRenewalDue(known, this.now)) this.extend(worker, known.ttlMs)
  }

  #number(): number {
    const n = this.#numbers.shift()
    assert(n !== undefined, 'a number was fetched for each session that is made')
    return n
  }

  #change(session: string, row: PostgresRow): void {
    const known = this.changes.get(session)
    this.guards.delete(session)
    if (known) known.row = row
    else this.changes.set(session, { row, was: this.#present.view.head(session) })
  }

  /** Guards alone write nothing. */
  get changed(): boolean {
    const counts = [this.changes, this.workers, this.accounts, this.holds, this.blobs, this.snapshots].map(
      (each) => each.size,
    )
    return Math.max(...counts, this.refs.length) > 0
  }
}

/** Texts with columns of their own must be valid in the database: an invalid one would fail the whole batch. */
function checkTexts({ card, session }: SessionChange): void {
  const { agent, root, folder, parent, labels = {} } = card ?? { agent: '', root: session }
  for (const [kind, text] of Object.entries({ agent, root, folder, parent }))
    if (text !== undefined) checkText(`${kind} of session ${session}`, text)
  for (const text of Object.entries(labels).flat()) checkText(`label of session ${session}`, text)
}

function checkText(kind: string, text: string): void {
  if (!/[\0\uD800-\uDFFF]/u.test(text)) return
  throw new Fault('invalid_input', `The ${kind} must be well-formed characters.`)
}
