// What a commit may do: order, fencing, idempotency and money, decided before anything changes. Pure; every store applies the same plan.
// It is not a store: it sees the present through a View and returns what must be written, or throws the refusing Fault.
import { isDeepStrictEqual } from 'node:util'
import type { Card } from '../../ports/store.ts'
import type { Part } from '../../kernel/content.ts'
import { clockOf } from '../../kernel/clock.ts'
import type { Event, InboxBody, OwnerEvent } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob, InboxWrite, OwnerWrite, Receipt, Snapshot, Write } from '../../ports/store.ts'
import { type AccountChanges, type Ledger, planCharges } from './charges.ts'
import { type Facts, factsAfter, forkedFacts, NO_FACTS } from './facts.ts'
import { checkId } from './id.ts'

/** Where a session stands. `worker` holds its lease, also after the lease expired, until it is taken or released. */
export type Head = {
  readonly seq: number
  readonly at: number
  readonly epoch: number
  readonly worker: string | null
  readonly due: number | null
  /** Something was sent or begun, or the wake that comes next is urgent: it comes before other wakes. */
  readonly urgent: boolean
  readonly status: Card['status']
  /** Attempts in a row that did not get on, with the one that holds the session now. */
  readonly tries: number
  readonly trouble: Trouble | null
  readonly facts: Facts
}

/** Why a session is left alone: how often it failed in a row, why, and until when. Null: until a message or a wake. */
export type Trouble = NonNullable<Card['trouble']>

/** What the plan needs to know of the present. */
export interface View extends Ledger {
  readonly now: number
  head(session: string): Head | null
  /** An inbox event admitted earlier under this id, as stored. */
  admitted(session: string, id: string): { readonly seq: number; readonly body: string } | null
  /** The last epoch of the sessions that had this id and were removed, or null. */
  ended(session: string): number | null
  /** The events after `after` as stored, at most `count`. Asked only for a write that may be there already. */
  bodies(session: string, after: number, count: number): readonly string[]
}

/**
 * Each life of an id begins with a multiple of this. So no epoch comes twice, and a process that knew an earlier session of this id can
 * tell that the one there now is another.
 */
export const LIFE = 2 ** 32

export function lifeOf(epoch: number): number {
  return Math.floor(epoch / LIFE)
}

/** One session as this commit will leave it, and what it adds. A class, so that all of them have one shape. */
export class SessionChange {
  readonly session: string
  /** null when this commit creates the session. */
  readonly was: Head | null
  /** It came with the log it had elsewhere. */
  restored = false
  seq: number
  at: number
  epoch: number
  worker: string | null
  due: number | null
  urgent: boolean
  status: Card['status']
  tries: number
  trouble: Trouble | null
  facts: Facts
  /** The card this commit writes, or null: an inbox event changes only when the session is due. */
  card: Card | null = null
  /** The worker that wrote as the owner, and so proved to be alive. */
  owner: string | null = null
  snapshot: Snapshot | null = null
  readonly events: Event[] = []
  readonly bodies: string[] = []
  /** Ids admitted to the inbox by this commit. */
  readonly ids: { readonly id: string; readonly seq: number }[] = []

  constructor(session: string, was: Head | null, from: Head) {
    this.session = session
    this.was = was
    this.seq = from.seq
    this.at = from.at
    this.epoch = from.epoch
    this.worker = from.worker
    this.due = from.due
    this.urgent = from.urgent
    this.status = from.status
    this.tries = from.tries
    this.trouble = from.trouble
    this.facts = from.facts
  }
}

export type WritePlan = {
  readonly drafts: SessionChange[]
  /** What it changes in the accounts; null when it moves no money. */
  book: AccountChanges | null
  readonly blobs: { readonly session: string; readonly blob: Blob }[]
  /** Sessions that refer to what may have come with another. */
  readonly refs: { readonly session: string; readonly hash: string }[]
  readonly receipts: Receipt[]
}

/**
 * The write that creates a session may bring the log it had in another store, from its first event on, as it was stamped there:
 * every event in order, those of the inbox with epoch 0 and ids of their own, those of the owner with epochs that never go back.
 * The session's next epoch is greater than all of them.
 */
export type Restoration = OwnerWrite & { readonly history: readonly Event[] }

export function planWrites(writes: readonly Write[], view: View): WritePlan {
  const plan: WritePlan = { drafts: [], book: null, blobs: [], refs: [], receipts: [] }
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i] as Write
    const receipt = write.lane === 'owner' ? planOwner(plan, view, write) : planInbox(plan, view, write)
    plan.receipts.push(receipt)
    if (write.blobs && !receipt.duplicate)
      for (const blob of write.blobs) plan.blobs.push({ session: write.session, blob })
  }
  const { drafts } = plan
  for (let i = 0; i < drafts.length; i++) if (drafts[i]?.was === null) finish(plan, view, drafts[i] as SessionChange)
  return plan
}

/** The session whose log a fork reads before its own. */
export function originOf({ was, events }: SessionChange): string | null {
  const [created] = was === null ? events : []
  return created?.type === 'session.created' ? (created.fork?.session ?? null) : null
}

/** What can be said of a new session only with the whole commit in view. */
function finish(plan: WritePlan, view: View, draft: SessionChange): void {
  const [created] = draft.events
  if (created?.type !== 'session.created') return
  const origin = originOf(draft)
  if (origin !== null) {
    const from = plan.drafts.find(({ session }) => session === origin) ?? view.head(origin)
    if (from === null) throw missingSession(origin)
    draft.facts = forkedFacts(draft.facts, created, from.facts)
  }
  if (created.attachments) for (const { hash } of created.attachments) plan.refs.push({ session: draft.session, hash })
  // The logs of an import share what came with one of them.
  if (draft.restored) for (const { blob } of plan.blobs) plan.refs.push({ session: draft.session, hash: blob.hash })
}

/** Whether some worker may now find work it could not see before. A running owner moves its own due time silently. */
export function becomesDue(draft: SessionChange): boolean {
  if (draft.due === null) return false
  const { was } = draft
  if (was === null || was.due === null || draft.due < was.due || draft.ids.length > 0) return true
  return was.worker !== null && draft.worker === null
}

/** Clocks of one machine may differ by this much, or be set back by it, and nothing is doubted. */
export const CLOCK_SLACK_MS = 60_000

/** How long a worker holds what it holds. `ttlMs` is the longest time that was asked for it. */
export type Lease = { readonly until: number; readonly ttlMs: number }

/** A lease that ends later than its time allows was taken by a worker whose clock is ahead. It counts as past. */
export function isLive({ until, ttlMs }: Lease, now: number): boolean {
  return until > now && !isAhead(until - ttlMs, now)
}

/** Written by a clock that was ahead of the present one. */
export function isAhead(time: number, now: number): boolean {
  return time > now + CLOCK_SLACK_MS
}

/** The lease after a heartbeat. One that was asked for longer stays so, unless it is not to be believed. */
export function extended(known: Lease | null, ttlMs: number, now: number): Lease {
  const until = now + ttlMs
  const keeps = known !== null && known.ttlMs > ttlMs && known.until > until && isLive(known, now)
  return keeps ? { until: known.until, ttlMs: known.ttlMs } : { until, ttlMs }
}

/** Writing as the owner proves that the worker lives. Noted once in a third of the lease, not with each commit. */
export function isProven(lease: Lease, now: number): boolean {
  return lease.until - now < (lease.ttlMs * 2) / 3 || !isLive(lease, now)
}

/** Of one whose worker was lost: its time has come, or lies where only a clock that was ahead could have put it. */
export function isDue({ at, due }: Pick<Head, 'at' | 'due'>, now: number): boolean {
  return due !== null && (due <= now || (isAhead(due, now) && isAhead(at, now)))
}

/** How a session is left whose times lie ahead: due now, so that a worker looks, and its card says why. */
export function doubted({ at, due, tries }: Head, now: number): Pick<Head, 'due' | 'trouble'> {
  const latest = new Date(Math.max(at, due ?? 0)).toISOString()
  const reason = `Times up to ${latest} were written by a clock that was ahead. They are not waited for.`
  // Never later than it was: the clock that doubts may be ahead itself.
  const until = due === null ? now : Math.min(due, now)
  return { due: due === null ? null : until, trouble: { attempts: tries, reason, until } }
}

export const LOST = 'The worker was lost before it had done a whole turn.'

/**
 * How a claim leaves its session. The attempt counts at once, and until it has done a whole turn or come to its rest: so one that
 * dies has counted, also if it wrote what it was about to do.
 */
export function claimedFrom(head: Head, now: number): Pick<Head, 'due' | 'tries' | 'trouble'> {
  const { at, due, worker, tries, trouble } = head
  const lost = worker !== null && tries > 0
  // The worker that looks may be lost too, and the next one must not wait for a wrong time.
  const ahead = due !== null && isAhead(due, now) && isAhead(at, now)
  const told = lost ? { attempts: tries, reason: LOST, until: now } : trouble
  return { due: ahead ? now : due, tries: tries + 1, trouble: told }
}

/** How a session is given back without a commit: as if no worker had looked, or with trouble, and then put off or left alone. */
export function releasedFrom(
  head: Head,
  trouble: Trouble | undefined,
  now: number,
): Pick<Head, 'due' | 'tries' | 'trouble'> {
  const { at, due, tries, trouble: known } = head
  // A message came while the last attempt failed: then it is not left alone.
  const lifted = trouble?.until === null && tries === 0
  if (trouble === undefined || lifted) {
    // Whoever looked for such times may have passed over it while it was held.
    const ahead = due !== null && isAhead(due, now) && isAhead(at, now)
    return { due, trouble: known, ...(ahead ? doubted(head, now) : null), tries: Math.max(0, tries - 1) }
  }
  const { until, attempts } = trouble
  return { due: until === null || due === null ? null : Math.max(due, until), tries: attempts, trouble }
}

function planOwner(plan: WritePlan, view: View, write: OwnerWrite): Receipt {
  const known = draftOf(plan, view, write.session)
  if (known !== null && isWritten(known, view, write))
    return { seqs: write.events.map(({ seq }) => seq), duplicate: true }
  if (known !== null) checkOwner(known, write)
  const draft = known ?? create(plan, view, write)
  const seqs: number[] = []
  const { events } = write
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as OwnerEvent
    if (event.seq !== draft.seq + 1) throw misstamped(write, `event ${event.seq} follows ${draft.seq}`)
    if (!(event.at >= draft.at)) throw misstamped(write, `event ${event.seq} is at ${event.at}, before ${draft.at}`)
    if (event.epoch !== write.epoch) throw misstamped(write, `event ${event.seq} carries epoch ${event.epoch}`)
    append(draft, event, bodyOf(event))
    seqs.push(event.seq)
    if (event.type === 'agent.tool_result' && event.parts) refer(plan, write.session, event.parts)
  }
  draft.card = write.card
  draft.status = write.card.status
  draft.due = since(draft.due, dueOf(write, view.now), view.now)
  draft.urgent = write.card.status === 'running' || write.card.urgent === true
  if (write.gained || write.release) forgive(draft)
  draft.owner = draft.worker
  if (write.snapshot) draft.snapshot = write.snapshot
  if (write.release) draft.worker = null
  if (write.charges?.length) plan.book = planCharges(plan.book, view, write.session, write.charges)
  if (write.sends) for (const { session, event } of write.sends) send(plan, view, session, event)
  return { seqs, duplicate: false }
}

/**
 * This very write is in the log: its answer was lost, and its writer asks again. It has its money, letters and lease as it left them, and
 * nothing of it is done twice. A log that ends where the write begins, which is nearly every one, costs one comparison.
 */
function isWritten({ was, session, bodies }: SessionChange, view: View, write: OwnerWrite): boolean {
  const { expectedSeq, events } = write
  if (was === null || bodies.length > 0 || events.length === 0 || was.seq < expectedSeq + events.length) return false
  if (isRestoration(write)) return false
  const stored = view.bodies(session, expectedSeq, events.length)
  return events.every((event, i) => event.epoch === write.epoch && stored[i] === bodyOf(event))
}

/** Fencing comes first: a worker that lost its lease must hear that, and not a conflict it could try to settle. */
function checkOwner(draft: SessionChange, write: OwnerWrite): void {
  const { session, epoch, expectedSeq } = write
  if ((epoch === 0 && expectedSeq === 0) || isRestoration(write))
    throw new Fault('session_exists', `Session ${session} exists already.`)
  checkLease(draft, epoch)
  if (draft.status === 'terminated' && (write.events.length > 0 || write.card.status !== 'terminated')) {
    throw closed(session)
  }
  if (expectedSeq !== draft.seq) {
    throw new Fault(
      'conflict',
      `Session ${session} has grown.`,
      `expected seq ${expectedSeq}, the log ends at ${draft.seq}`,
    )
  }
}

function checkLease({ session, worker, epoch: held }: SessionChange, epoch: number): void {
  if (epoch === held && worker !== null) return
  const detail = `epoch ${epoch}, the store has ${held}${worker === null ? ', released' : ''}`
  throw new Fault('lease_lost', `This worker no longer holds session ${session}.`, detail)
}

function create(plan: WritePlan, view: View, write: OwnerWrite): SessionChange {
  const { session, card } = write
  checkId('session id', session)
  if (write.epoch !== 0 || write.expectedSeq !== 0) throw missingSession(session)
  const history = isRestoration(write) ? write.history : []
  if (write.events.length + history.length === 0) throw misstamped(write, 'a session begins with an event')
  if (write.events.length > 0 && history.length > 0) throw misstamped(write, 'a history is the whole log')
  const draft = new SessionChange(session, null, { ...NOTHING, status: card.status })
  draft.card = card
  draft.restored = history.length > 0
  const ids = new Set<string>()
  for (const event of history) restore(draft, write, event, ids)
  const ended = view.ended(session)
  if (ended !== null) draft.epoch = Math.max(draft.epoch, (lifeOf(ended) + 1) * LIFE)
  plan.drafts.push(draft)
  return draft
}

const NOBODY = { worker: null, due: null, urgent: false, tries: 0, trouble: null } as const
const NOTHING = { seq: 0, at: 0, epoch: 0, ...NOBODY, facts: NO_FACTS } as const

/** A session that made progress, or got a message, counts its failures from zero. */
function forgive(draft: SessionChange): void {
  draft.tries = 0
  draft.trouble = null
}

function isRestoration(write: OwnerWrite): write is Restoration {
  return 'history' in write
}

/** Everything a commit would have asked of this event when it was written. */
function restore(draft: SessionChange, write: OwnerWrite, event: Event, ids: Set<string>): void {
  const { seq, at, epoch } = event
  if (seq !== draft.seq + 1) throw misstamped(write, `event ${seq} follows ${draft.seq}`)
  if (!(at >= draft.at)) throw misstamped(write, `event ${seq} is at ${at}, before ${draft.at}`)
  const inbox = epoch === 0 && 'id' in event
  if (!inbox && !(Number.isSafeInteger(epoch) && epoch >= draft.epoch))
    throw misstamped(write, `event ${seq} carries epoch ${epoch} after ${draft.epoch}`)
  if (inbox) {
    checkId('event id', event.id)
    if (ids.has(event.id)) throw misstamped(write, `event ${seq} repeats the id ${event.id}`)
    ids.add(event.id)
    draft.ids.push({ id: event.id, seq })
  } else draft.epoch = epoch
  append(draft, event)
}

function planInbox(plan: WritePlan, view: View, write: InboxWrite): Receipt {
  const draft = draftOf(plan, view, write.session)
  if (draft === null) {
    checkId('session id', write.session)
    throw missingSession(write.session)
  }
  if (write.epoch !== undefined) checkLease(draft, write.epoch)
  const seqs: number[] = []
  let fresh = 0
  for (const body of write.events) {
    const known = admitted(draft, view, body)
    if (known === 0 && draft.status === 'terminated') throw closed(write.session)
    if (known === 0) fresh += 1
    seqs.push(known === 0 ? admit(draft, view, body) : known)
    if (known === 0 && body.type === 'user.message') refer(plan, write.session, body.parts)
  }
  const duplicate = fresh === 0 && seqs.length > 0
  if (write.charges?.length && !duplicate) plan.book = planCharges(plan.book, view, write.session, write.charges)
  return { seqs, duplicate }
}

/** A message, or a result that is told again, may carry a blob of another session. */
function refer(plan: WritePlan, session: string, parts: readonly Part[]): void {
  for (const part of parts) if (part.type === 'blob') plan.refs.push({ session, hash: part.hash })
}

/** A closed session accepts nothing more, and that must not keep the sender from going on. */
function send(plan: WritePlan, view: View, session: string, body: InboxBody): void {
  const draft = draftOf(plan, view, session)
  if (draft === null) throw missingSession(session)
  if (admitted(draft, view, body) !== 0 || draft.status === 'terminated') return
  admit(draft, view, body)
  if (body.type === 'user.message') refer(plan, session, body.parts)
}

/** Where this event stands already, or 0. */
function admitted(draft: SessionChange, view: View, body: InboxBody): number {
  checkId('event id', body.id)
  const here = draft.ids.find((entry) => entry.id === body.id)
  const first = draft.seq - draft.bodies.length + 1
  const known = here
    ? { seq: here.seq, body: draft.bodies[here.seq - first] ?? '' }
    : draft.was && view.admitted(draft.session, body.id)
  if (!known) return 0
  if (!isDeepStrictEqual(unstamped(known.body), unstamped(JSON.stringify(body)))) {
    throw new Fault(
      'id_reused',
      `The id ${body.id} was used for another event.`,
      `session ${draft.session}, seq ${known.seq}`,
    )
  }
  return known.seq
}

function unstamped(body: string): object {
  const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...rest } = JSON.parse(body) as Event
  return rest
}

function admit(draft: SessionChange, view: View, body: InboxBody): number {
  const { now } = view
  const seq = draft.seq + 1
  append(draft, { ...body, seq, ...timesOf(draft.at, now), epoch: 0 })
  draft.ids.push({ id: body.id, seq })
  draft.due = Math.min(draft.due ?? now, now)
  draft.urgent = true
  forgive(draft)
  return seq
}

/** The times of an event that follows one at `before` and is written when the clock says `now`. */
export function timesOf(before: number, now: number): Pick<Event, 'at' | 'wall'> {
  return now < before ? { at: before, wall: now } : { at: now }
}

/**
 * Work that is open is due now, whatever time its log has come to: not a wait for a child, which is over at a later time. So is what an
 * owner puts off by a clock that is ahead.
 */
function dueOf({ card: { due, status, waits, at }, events }: OwnerWrite, now: number): number | null {
  if (due === null || !isAhead(due, now)) return due
  const last = events.at(-1)
  const open = status === 'running' && (waits.length === 0 || due <= at)
  return open || (last !== undefined && isAhead(clockOf(last), now)) ? now : due
}

/** Keep the earlier due time while a session stays due: the longest waiting comes first, and a running session moves no index. */
function since(was: number | null, due: number | null, now: number): number | null {
  return was !== null && due !== null && was <= due && due <= now ? was : due
}

function append(draft: SessionChange, event: Event, body = JSON.stringify(event)): void {
  draft.bodies.push(body)
  draft.events.push(event)
  draft.seq = event.seq
  draft.at = event.at
  draft.facts = factsAfter(draft.facts, event)
}

function bodyOf(event: OwnerEvent): string {
  return event.type === 'agent.tool_use' ? intentJson(event) : JSON.stringify(event)
}

type Intent = Extract<Event, { type: 'agent.tool_use' }>
/** Does not compile when an intent gets another field. */
const whole: Exclude<keyof Intent, 'seq' | 'at' | 'wall' | 'epoch' | 'type' | 'call'> extends never ? true : never =
  true

/** As JSON.stringify has it, at a fifth of its cost: every call has one. */
function intentJson(event: Intent): string {
  const { seq, at, wall, epoch, call } = event
  // Two numbers and a dot: nothing that would have to be escaped.
  if (!whole || wall !== undefined || !CALL_KEY.test(call)) return JSON.stringify(event)
  return `{"seq":${seq},"at":${at},"epoch":${epoch},"type":"agent.tool_use","call":"${call}"}`
}
const CALL_KEY = /^\d+\.\d+$/

function draftOf(plan: WritePlan, view: View, session: string): SessionChange | null {
  for (let i = 0; i < plan.drafts.length; i++)
    if (plan.drafts[i]?.session === session) return plan.drafts[i] as SessionChange
  const was = view.head(session)
  if (was === null) return null
  const draft = new SessionChange(session, was, was)
  plan.drafts.push(draft)
  return draft
}

export function missingSession(session: string): Fault {
  return new Fault('session_missing', `There is no session ${session}. Check the id, or open a new one.`)
}

function closed(session: string): Fault {
  return new Fault('session_closed', `Session ${session} is closed and accepts nothing more.`)
}

function misstamped(write: OwnerWrite, detail: string): Fault {
  return new Fault('invalid_input', `The owner's events do not continue session ${write.session}.`, detail)
}
