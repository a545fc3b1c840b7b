// Plans a commit: order, fencing, idempotency and money are decided before anything changes. Pure; every store applies
// the same plan. It is not a store: it sees the present state through a StoreView and returns what must be written, or
// throws the Fault of a refusal.
import { isDeepStrictEqual } from 'node:util'
import type { Card } from '../../ports/store.ts'
import type { Part } from '../../kernel/content.ts'
import { writerTime } from '../../kernel/clock.ts'
import type { Event, InboxBody, OwnerEvent } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob, InboxWrite, OwnerWrite, Receipt, Snapshot, Write } from '../../ports/store.ts'
import { type AccountChanges, type AccountBook, planCharges } from './plan-charges.ts'
import { type LogFacts, cardFacts, factsAfter, factsOfFork, NO_FACTS } from './log-facts.ts'
import { checkId } from './store-ids.ts'

/**
 * The stored position of a session. `worker` has its lease, also after the lease expired, until it is taken or
 * released.
 */
export type SessionRecord = {
  /** The seq of its last event. */
  readonly seq: number
  /** The time of its last event. */
  readonly at: number
  /** The number of the last claim. */
  readonly epoch: number
  /** The worker that holds the lease. Null if nobody does. */
  readonly worker: string | null
  /** When a worker should look. Null for never. */
  readonly due: number | null
  /** Something was sent or begun, or the next wake is urgent: the session comes before other wakes. */
  readonly urgent: boolean
  /** What its card says that it does. */
  readonly status: Card['status']
  /** How many attempts in a row made no progress, including the one that holds the session now. */
  readonly tries: number
  /** Why workers leave it alone. Null if they do not. */
  readonly trouble: SessionTrouble | null
  /** What its card has from the log itself. */
  readonly facts: LogFacts
}

/** The card as a reader gets it: what its owner wrote, with what the store knows of the session. */
export function cardOfRecord(written: Card, { seq, at, due, trouble, facts }: SessionRecord): Card {
  const { title: _title, owner: _owner, created: _created, tokens: _tokens, ...card } = written
  return { ...card, seq, at, due, ...(trouble ? { trouble } : {}), ...cardFacts(facts) }
}

/**
 * Why workers leave a session alone: how many failures in a row, the reason, and until when. Null: until a message or a
 * wake.
 */
export type SessionTrouble = NonNullable<Card['trouble']>

/** The present state that the plan needs. */
export interface StoreView extends AccountBook {
  /** The time by the store's clock. */
  readonly now: number
  /** The record of a session. Null if there is no such session. */
  head(session: string): SessionRecord | null
  /** An inbox event admitted earlier under this id, as stored. */
  admitted(session: string, id: string): { readonly seq: number; readonly body: string } | null
  /** The last epoch of removed sessions with this id, or null. */
  ended(session: string): number | null
  /** The stored events after `after`, at most `count`. Asked only for a write that may exist already. */
  bodies(session: string, after: number, count: number): readonly string[]
}

/**
 * Each use of an id begins with a multiple of this. So no epoch comes twice, and a process that knew an earlier session
 * with this id can tell that the present one is another.
 */
export const LIFE = 2 ** 32

export function lifeOf(epoch: number): number {
  return Math.floor(epoch / LIFE)
}

/** One session as this commit will leave it, and the events it adds. A class, so that all of them have one shape. */
export class SessionChange {
  /** The session that changes. */
  readonly session: string
  /** null when this commit creates the session. */
  readonly was: SessionRecord | null
  /** The session was created with its log from another store. */
  restored = false
  /** The seq of its last event, after the commit. */
  seq: number
  /** The time of that event. */
  at: number
  /** The number of the last claim. */
  epoch: number
  /** The worker that holds the lease, after the commit. Null if nobody does. */
  worker: string | null
  /** When a worker should look, after the commit. Null for never. */
  due: number | null
  /** Whether it comes before other wakes of its time. */
  urgent: boolean
  /** What its card says that it does. */
  status: Card['status']
  /** How many attempts in a row were lost or failed before they completed a turn. */
  tries: number
  /** Why workers leave it alone. Null if they do not. */
  trouble: SessionTrouble | null
  /** What its card has from the log itself. */
  facts: LogFacts
  /** The card this commit writes. Null for inbox events, which change only when the session is due. */
  card: Card | null = null
  /** The worker that wrote as the owner, which proves that it is alive. */
  owner: string | null = null
  /** The snapshot to store. Null for none. */
  snapshot: Snapshot | null = null
  /** The events that the commit adds. */
  readonly events: Event[] = []
  /** The same events as they are stored: each as JSON. */
  readonly bodies: string[] = []
  /** Ids admitted to the inbox by this commit. */
  readonly ids: { readonly id: string; readonly seq: number }[] = []

  constructor(session: string, was: SessionRecord | null, from: SessionRecord) {
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

/** What a store has to write, in one transaction, for the writes it was given. */
export type WritePlan = {
  /** The sessions that change. */
  readonly drafts: SessionChange[]
  /** The changes of accounts; null if no money moves. */
  book: AccountChanges | null
  /** The bytes to store, each with the session that brought it. */
  readonly blobs: { readonly session: string; readonly blob: Blob }[]
  /** Sessions that refer to blobs which may have come with another session. */
  readonly refs: { readonly session: string; readonly hash: string }[]
  /** What the callers get, one for each write. */
  readonly receipts: Receipt[]
}

/**
 * The write that creates a session may bring its log from another store, complete and as it was stamped there: all
 * events in order, inbox events with epoch 0 and unique ids, owner events with epochs that never go back. The session's
 * next epoch is greater than all of them. With `continues` it is that of the last owner event: what that attempt had
 * begun is not lost, and goes on.
 */
export type Restoration = OwnerWrite & { readonly history: readonly Event[]; readonly continues?: true }

/**
 * The rules of every store: which writes are accepted, what they get for numbers, and which fault refuses them all. A
 * store reads, asks this, and writes the plan.
 */
export function planWrites(writes: readonly Write[], view: StoreView): WritePlan {
  const plan: WritePlan = { drafts: [], book: null, blobs: [], refs: [], receipts: [] }
  for (let i = 0; i < writes.length; i++) {
    const write = writes[i] as Write
    const receipt = write.lane === 'owner' ? planOwnerWrite(plan, view, write) : planInboxWrite(plan, view, write)
    plan.receipts.push(receipt)
    if (write.blobs && !receipt.duplicate)
      for (const blob of write.blobs) plan.blobs.push({ session: write.session, blob })
  }
  const { drafts } = plan
  for (let i = 0; i < drafts.length; i++)
    if (drafts[i]?.was === null) finishNewSession(plan, view, drafts[i] as SessionChange)
  return plan
}

/** The session that a fork reads before its own log. */
export function forkOriginOf({ was, events }: SessionChange): string | null {
  const [created] = was === null ? events : []
  return created?.type === 'session.created' ? (created.fork?.session ?? null) : null
}

/** The parts of a new session that need the whole commit. */
function finishNewSession(plan: WritePlan, view: StoreView, draft: SessionChange): void {
  const [created] = draft.events
  if (created?.type !== 'session.created') return
  const origin = forkOriginOf(draft)
  if (origin !== null) {
    const from = plan.drafts.find(({ session }) => session === origin) ?? view.head(origin)
    if (from === null) throw sessionMissingFault(origin)
    // As it was when the fork was made: the origin's title first, and then what a restored log says after that.
    const begun = factsOfFork(factsAfter(NO_FACTS, created), created, from.facts)
    draft.facts = factsOfFork(draft.events.slice(1).reduce(factsAfter, begun), created, from.facts)
  }
  if (created.attachments) for (const { hash } of created.attachments) plan.refs.push({ session: draft.session, hash })
  // The logs of one import share their blobs.
  if (draft.restored) for (const { blob } of plan.blobs) plan.refs.push({ session: draft.session, hash: blob.hash })
}

/**
 * Nearly every write of a driven session: events alone, in order, by the worker that holds it, in a run that goes on. It
 * changes neither when the session is due nor who has it, so a store may append it without a plan. Every other write is
 * planned, and refused there if it must be.
 */
export function onlyAppends(head: SessionRecord, write: OwnerWrite, now: number): boolean {
  const { card, events, epoch } = write
  if (write.blobs || write.charges || write.sends || write.snapshot || write.release || 'history' in write) return false
  if (head.worker === null || head.epoch !== epoch || head.seq !== write.expectedSeq) return false
  if (card.status !== 'running' || head.status !== 'running' || !head.urgent) return false
  if (head.due === null || card.due === null || head.due > card.due || card.due > now) return false
  let { seq, at } = head
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as OwnerEvent
    seq += 1
    if (event.seq !== seq || !(event.at >= at) || event.epoch !== epoch) return false
    if (event.type === 'agent.tool_result' && event.parts) return false
    at = event.at
  }
  return events.length > 0
}

/** Whether a worker may now find work it could not see before. A running owner moves its own due time silently. */
export function becomesDue(draft: SessionChange): boolean {
  if (draft.due === null) return false
  const { was } = draft
  if (was === null || was.due === null || draft.due < was.due || draft.ids.length > 0) return true
  return was.worker !== null && draft.worker === null
}

/** Clocks of one machine may differ, or be set back, by this much without being distrusted. */
export const CLOCK_SLACK_MS = 60_000

/** How long a worker holds its sessions. `ttlMs` is the longest time that was requested. */
export type Lease = { readonly until: number; readonly ttlMs: number }

/** A lease that ends later than its time allows was taken by a worker whose clock is ahead. It counts as ended. */
export function isLeaseLive({ until, ttlMs }: Lease, now: number): boolean {
  return until > now && !isAhead(until - ttlMs, now)
}

/** True if a clock ahead of the present one wrote this time. */
export function isAhead(time: number, now: number): boolean {
  return time > now + CLOCK_SLACK_MS
}

/** The lease after a heartbeat. A lease requested for longer is kept, unless it cannot be trusted. */
export function extendedLease(known: Lease | null, ttlMs: number, now: number): Lease {
  const until = now + ttlMs
  const keeps = known !== null && known.ttlMs > ttlMs && known.until > until && isLeaseLive(known, now)
  return keeps ? { until: known.until, ttlMs: known.ttlMs } : { until, ttlMs }
}

/** Writing as the owner proves that the worker lives. Noted once in a third of the lease, not with each commit. */
export function isRenewalDue(lease: Lease, now: number): boolean {
  const leftMs = lease.until - now
  // The second: its worker's clock is ahead, as in isLeaseLive.
  return leftMs < (lease.ttlMs * 2) / 3 || leftMs > lease.ttlMs + CLOCK_SLACK_MS
}

/** For a session whose worker was lost: it is due, or its due time can only come from a clock that was ahead. */
export function isLostSessionDue({ at, due }: Pick<SessionRecord, 'at' | 'due'>, now: number): boolean {
  return due !== null && (due <= now || (isAhead(due, now) && isAhead(at, now)))
}

/** The changes for a session whose times lie in the future: due now, so that a worker looks, and the card says why. */
export function changesForFutureTimes(
  { at, due, tries }: SessionRecord,
  now: number,
): Pick<SessionRecord, 'due' | 'trouble'> {
  const latest = new Date(Math.max(at, due ?? 0)).toISOString()
  const reason = `Times up to ${latest} were written by a clock that was ahead. They are not waited for.`
  // Never later than before: the present clock may itself be ahead.
  const until = due === null ? now : Math.min(due, now)
  return { due: due === null ? null : until, trouble: { attempts: tries, reason, until } }
}

export const LOST = 'The worker was lost before it had done a whole turn.'

/**
 * The changes a claim makes. The attempt counts at once, until it has completed a turn or come to rest. So an attempt
 * that dies has counted, even if it wrote its intents.
 */
export function changesByClaim(head: SessionRecord, now: number): Pick<SessionRecord, 'due' | 'tries' | 'trouble'> {
  const { at, due, worker, tries, trouble } = head
  const lost = worker !== null && tries > 0
  // The present worker may be lost too, and the next one must not wait for a wrong time.
  const ahead = due !== null && isAhead(due, now) && isAhead(at, now)
  const told = lost ? { attempts: tries, reason: LOST, until: now } : trouble
  return { due: ahead ? now : due, tries: tries + 1, trouble: told }
}

/**
 * The changes for giving a session back without a commit. Without trouble they are as if no worker had looked; with
 * trouble the session is delayed or quarantined.
 */
export function changesByRelease(
  head: SessionRecord,
  trouble: SessionTrouble | undefined,
  now: number,
): Pick<SessionRecord, 'due' | 'tries' | 'trouble'> {
  const { at, due, tries, trouble: known } = head
  // A message came while the last attempt failed, so the session is not quarantined.
  const lifted = trouble?.until === null && tries === 0
  if (trouble === undefined || lifted) {
    // The search for such times may have skipped the session while it was held.
    const ahead = due !== null && isAhead(due, now) && isAhead(at, now)
    return { due, trouble: known, ...(ahead ? changesForFutureTimes(head, now) : null), tries: Math.max(0, tries - 1) }
  }
  const { until, attempts } = trouble
  return { due: until === null || due === null ? null : Math.max(due, until), tries: attempts, trouble }
}

function planOwnerWrite(plan: WritePlan, view: StoreView, write: OwnerWrite): Receipt {
  const known = changeFor(plan, view, write.session)
  if (known !== null && onlyAppends(known, write, view.now)) return planAppend(known, write)
  if (known !== null && isAlreadyWritten(known, view, write))
    return { seqs: write.events.map(({ seq }) => seq), duplicate: true }
  if (known !== null) checkOwner(known, write)
  const draft = known ?? planNewSession(plan, view, write)
  const seqs: number[] = []
  const { events } = write
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as OwnerEvent
    if (event.seq !== draft.seq + 1) throw misstampedFault(write, `event ${event.seq} follows ${draft.seq}`)
    if (!(event.at >= draft.at))
      throw misstampedFault(write, `event ${event.seq} is at ${event.at}, before ${draft.at}`)
    if (event.epoch !== write.epoch) throw misstampedFault(write, `event ${event.seq} carries epoch ${event.epoch}`)
    appendEvent(draft, event, bodyOf(event))
    seqs.push(event.seq)
    if (event.type === 'agent.tool_result' && event.parts) referToBlobs(plan, write.session, event.parts)
  }
  draft.card = write.card
  draft.status = write.card.status
  draft.due = keepEarlierDue(draft.due, dueOf(write, view.now), view.now)
  draft.urgent = write.card.status === 'running' || write.card.urgent === true
  if (write.gained || write.release) clearTrouble(draft)
  draft.owner = draft.worker
  if (write.snapshot) draft.snapshot = write.snapshot
  if (write.release) draft.worker = null
  if (write.charges?.length) plan.book = planCharges(plan.book, view, write.session, write.charges)
  if (write.sends) for (const { session, event } of write.sends) planSend(plan, view, session, event)
  return { seqs, duplicate: false }
}

function planAppend(draft: SessionChange, { events, card, gained }: OwnerWrite): Receipt {
  const seqs: number[] = []
  for (let i = 0; i < events.length; i++) {
    const event = events[i] as OwnerEvent
    appendEvent(draft, event, bodyOf(event))
    seqs.push(event.seq)
  }
  draft.card = card
  if (gained) clearTrouble(draft)
  draft.owner = draft.worker
  return { seqs, duplicate: false }
}

/**
 * True if this very write is in the log: its answer was lost, and its writer asks again. Its money, messages and lease
 * stand, and nothing is done twice. Nearly every log ends where the write begins, which costs one comparison.
 */
function isAlreadyWritten({ was, session, bodies }: SessionChange, view: StoreView, write: OwnerWrite): boolean {
  const { expectedSeq, events } = write
  if (was === null || bodies.length > 0 || events.length === 0 || was.seq < expectedSeq + events.length) return false
  if (isRestoration(write)) return false
  const stored = view.bodies(session, expectedSeq, events.length)
  return events.every((event, i) => event.epoch === write.epoch && stored[i] === bodyOf(event))
}

/**
 * Fencing comes first: a worker that lost its lease must learn that, and not of a conflict that it could try to
 * resolve.
 */
function checkOwner(draft: SessionChange, write: OwnerWrite): void {
  const { session, epoch, expectedSeq } = write
  if ((epoch === 0 && expectedSeq === 0) || isRestoration(write))
    throw new Fault('session_exists', `Session ${session} exists already.`)
  checkLease(draft, epoch)
  if (draft.status === 'terminated' && (write.events.length > 0 || write.card.status !== 'terminated')) {
    throw closedSessionFault(session)
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

function planNewSession(plan: WritePlan, view: StoreView, write: OwnerWrite): SessionChange {
  const { session, card } = write
  checkId('session id', session)
  if (write.epoch !== 0 || write.expectedSeq !== 0) throw sessionMissingFault(session)
  const history = isRestoration(write) ? write.history : []
  if (write.events.length + history.length === 0) throw misstampedFault(write, 'a session begins with an event')
  if (write.events.length > 0 && history.length > 0) throw misstampedFault(write, 'a history is the whole log')
  const draft = new SessionChange(session, null, { ...NOTHING, status: card.status })
  draft.card = card
  draft.restored = history.length > 0
  const ids = new Set<string>()
  for (const event of history) restoreEvent(draft, write, event, ids)
  if (isRestoration(write) && write.continues) draft.epoch = Math.max(0, draft.epoch - 1)
  const ended = view.ended(session)
  if (ended !== null) draft.epoch = Math.max(draft.epoch, (lifeOf(ended) + 1) * LIFE)
  plan.drafts.push(draft)
  return draft
}

const NOBODY = { worker: null, due: null, urgent: false, tries: 0, trouble: null } as const
const NOTHING = { seq: 0, at: 0, epoch: 0, ...NOBODY, facts: NO_FACTS } as const

/** After progress or a message, the failures of a session count from zero again. */
function clearTrouble(draft: SessionChange): void {
  draft.tries = 0
  draft.trouble = null
}

function isRestoration(write: OwnerWrite): write is Restoration {
  return 'history' in write
}

/** Checks everything that a commit would have required of this event when it was written. */
function restoreEvent(draft: SessionChange, write: OwnerWrite, event: Event, ids: Set<string>): void {
  const { seq, at, epoch } = event
  if (seq !== draft.seq + 1) throw misstampedFault(write, `event ${seq} follows ${draft.seq}`)
  if (!(at >= draft.at)) throw misstampedFault(write, `event ${seq} is at ${at}, before ${draft.at}`)
  const inbox = epoch === 0 && 'id' in event
  if (!inbox && !(Number.isSafeInteger(epoch) && epoch >= draft.epoch))
    throw misstampedFault(write, `event ${seq} carries epoch ${epoch} after ${draft.epoch}`)
  if (inbox) {
    checkId('event id', event.id)
    if (ids.has(event.id)) throw misstampedFault(write, `event ${seq} repeats the id ${event.id}`)
    ids.add(event.id)
    draft.ids.push({ id: event.id, seq })
  } else draft.epoch = epoch
  appendEvent(draft, event)
}

function planInboxWrite(plan: WritePlan, view: StoreView, write: InboxWrite): Receipt {
  const draft = changeFor(plan, view, write.session)
  if (draft === null) {
    checkId('session id', write.session)
    throw sessionMissingFault(write.session)
  }
  if (write.epoch !== undefined) checkLease(draft, write.epoch)
  const seqs: number[] = []
  let fresh = 0
  for (const body of write.events) {
    const known = findAdmitted(draft, view, body)
    if (known === 0 && draft.status === 'terminated') throw closedSessionFault(write.session)
    if (known === 0) fresh += 1
    seqs.push(known === 0 ? admitEvent(draft, view, body) : known)
    if (known === 0 && body.type === 'user.message') referToBlobs(plan, write.session, body.parts)
  }
  const duplicate = fresh === 0 && seqs.length > 0
  if (write.charges?.length && !duplicate) plan.book = planCharges(plan.book, view, write.session, write.charges)
  return { seqs, duplicate }
}

/** A message, or a result that is repeated, may carry a blob of another session. */
function referToBlobs(plan: WritePlan, session: string, parts: readonly Part[]): void {
  for (const part of parts) if (part.type === 'blob') plan.refs.push({ session, hash: part.hash })
}

/** A closed session accepts nothing more, but that must not stop the sender. */
function planSend(plan: WritePlan, view: StoreView, session: string, body: InboxBody): void {
  const draft = changeFor(plan, view, session)
  if (draft === null) throw sessionMissingFault(session)
  if (findAdmitted(draft, view, body) !== 0 || draft.status === 'terminated') return
  admitEvent(draft, view, body)
  if (body.type === 'user.message') referToBlobs(plan, session, body.parts)
}

/** The seq of this event if it was admitted already, or 0. */
function findAdmitted(draft: SessionChange, view: StoreView, body: InboxBody): number {
  checkId('event id', body.id)
  const here = draft.ids.find((entry) => entry.id === body.id)
  const first = draft.seq - draft.bodies.length + 1
  const known = here
    ? { seq: here.seq, body: draft.bodies[here.seq - first] ?? '' }
    : draft.was && view.admitted(draft.session, body.id)
  if (!known) return 0
  if (!isDeepStrictEqual(withoutStamp(known.body), withoutStamp(JSON.stringify(body)))) {
    throw new Fault(
      'id_reused',
      `The id ${body.id} was used for another event.`,
      `session ${draft.session}, seq ${known.seq}`,
    )
  }
  return known.seq
}

function withoutStamp(body: string): object {
  const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...rest } = JSON.parse(body) as Event
  return rest
}

function admitEvent(draft: SessionChange, view: StoreView, body: InboxBody): number {
  const { now } = view
  const seq = draft.seq + 1
  appendEvent(draft, { ...body, seq, ...timesOf(draft.at, now), epoch: 0 })
  draft.ids.push({ id: body.id, seq })
  // A title is no work: no worker looks at the session because of it.
  if (body.type === 'user.rename') return seq
  draft.due = Math.min(draft.due ?? now, now)
  draft.urgent = true
  clearTrouble(draft)
  return seq
}

/** The times of an event that follows one at `before` and is written when the clock says `now`. */
export function timesOf(before: number, now: number): Pick<Event, 'at' | 'wall'> {
  return now < before ? { at: before, wall: now } : { at: now }
}

/**
 * Open work is due now, even if its log has times in the future, and so is what an owner postpones by a clock that is
 * ahead. A wait for a child is not due now.
 */
function dueOf({ card: { due, status, waits, at }, events }: OwnerWrite, now: number): number | null {
  if (due === null || !isAhead(due, now)) return due
  const last = events.at(-1)
  const open = status === 'running' && (waits.length === 0 || due <= at)
  return open || (last !== undefined && isAhead(writerTime(last), now)) ? now : due
}

/**
 * Keep the earlier due time while a session stays due, so the longest-waiting one goes first and a running session
 * moves no index.
 */
function keepEarlierDue(was: number | null, due: number | null, now: number): number | null {
  return was !== null && due !== null && was <= due && due <= now ? was : due
}

function appendEvent(draft: SessionChange, event: Event, body = JSON.stringify(event)): void {
  draft.bodies.push(body)
  draft.events.push(event)
  draft.seq = event.seq
  draft.at = event.at
  draft.facts = factsAfter(draft.facts, event)
}

export function bodyOf(event: OwnerEvent): string {
  return event.type === 'agent.tool_use' ? intentJson(event) : JSON.stringify(event)
}

type Intent = Extract<Event, { type: 'agent.tool_use' }>
/** Fails to compile if an intent gets another field. */
const whole: Exclude<keyof Intent, 'seq' | 'at' | 'wall' | 'epoch' | 'type' | 'call'> extends never ? true : never =
  true

/** The same text as JSON.stringify at a fifth of its cost: every call has an intent. */
function intentJson(event: Intent): string {
  const { seq, at, wall, epoch, call } = event
  // Two numbers and a dot need no escaping.
  if (!whole || wall !== undefined || !CALL_KEY.test(call)) return JSON.stringify(event)
  return `{"seq":${seq},"at":${at},"epoch":${epoch},"type":"agent.tool_use","call":"${call}"}`
}
const CALL_KEY = /^\d+\.\d+$/

function changeFor(plan: WritePlan, view: StoreView, session: string): SessionChange | null {
  for (let i = 0; i < plan.drafts.length; i++)
    if (plan.drafts[i]?.session === session) return plan.drafts[i] as SessionChange
  const was = view.head(session)
  if (was === null) return null
  const draft = new SessionChange(session, was, was)
  plan.drafts.push(draft)
  return draft
}

/** The fault for a session that is not in the store. */
export function sessionMissingFault(session: string): Fault {
  return new Fault('session_missing', `There is no session ${session}. Check the id, or open a new one.`)
}

export function closedSessionFault(session: string): Fault {
  return new Fault('session_closed', `Session ${session} is closed and accepts nothing more.`)
}

function misstampedFault(write: OwnerWrite, detail: string): Fault {
  return new Fault('invalid_input', `The owner's events do not continue session ${write.session}.`, detail)
}
