// One commit of an attempt, drafted: what landed, what `next` records on top, and the card, charges and snapshot beside it.
// Nothing is written here; the driver (drive.ts) commits the draft or drops it.
import type { Account, Frozen, Json, Mutable, Outcome, Shortage } from '../kernel/content.ts'
import type { InboxBody, OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { assert, Fault } from '../kernel/failure.ts'
import { type OpenSession, take } from '../kernel/fold.ts'
import type { Call, CallState } from '../kernel/ledger.ts'
import { type Here, stopping, unwanted } from '../kernel/limits.ts'
import { type Decision, type Effect, next } from '../kernel/next.ts'
import { settlement } from '../kernel/result.ts'
import type { Blob, Charge, InboxWrite, OwnerWrite, Store, Write } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { FOLD_VERSION, type Run, type Session } from '../kernel/session.ts'
import { stoppedReply } from '../effects/outcomes.ts'
import { cardOf } from '../view/card.ts'
import { stamped } from './card.ts'
import { type Flight, type FlightOptions, type Flights, hasIntent, type Landing } from './flights.ts'
import type { Leases, StopSignal } from './leases.ts'
import type { Word } from '../riders/guard/guard.ts'
import { type SessionCache, SNAPSHOT_FROM } from './session-cache.ts'

export type Job = {
  readonly cache: SessionCache
  readonly epoch: number
  /** Whether this attempt has begun a turn: the next one it begins shows that it got on. */
  readonly attempt: { turned: boolean }
  readonly store: Store
  readonly clock: Clock
  readonly flights: FlightOptions
  /** What joins each commit, in the order in which they speak. */
  readonly riders: readonly Rider[]
  /** These events are on disk, and these other sessions have something to look at. */
  readonly committed: (plan: CommitPlan) => void
  /** A commit succeeded that was begun at this time: the lease was ours then. */
  readonly renewed: (at: number) => void
  /** Whether the session is still ours. */
  readonly leases: Pick<Leases, 'held' | 'lapsed'>
  /** Stay for a wait as short as this instead of giving the session back. */
  readonly lingerMs: number
  /** Told once for each commit that the full disk keeps waiting. */
  readonly waitsForRoom: () => void
  /** How long to keep trying when the disk is full or the store is busy. */
  readonly patienceMs: number
}

/** A request did not fit the money of this account. */
export type Broke = { readonly account?: Account; readonly short?: Shortage }

const SNAPSHOT_EVERY = 1_000

export type CommitPlan = {
  readonly events: readonly OwnerEvent[]
  readonly decision: Decision
  readonly landed: number
  readonly write: OwnerWrite
  /** The whole commit: the session itself, and the children it makes. */
  readonly writes: readonly Write[]
  readonly woken: readonly string[]
  /** The run that this commit settles, by the seq of its start; null if it settles none. */
  readonly ended: number | null
  readonly broke: Broke | null
  /** When it was drafted, by this process's clock: the lease is ours at this time if the commit goes through. */
  readonly at: number
}

/**
 * What joins a commit besides its events: guard, redaction, money and children. An attempt freezes its list when it begins
 * (riders/riders.ts), in the order in which they speak; a session that needs none has an empty list, and their code is not loaded.
 */
export interface Rider {
  /** The event as the log will have it. */
  rewrite?(commit: Commit, body: OwnerBody): OwnerBody
  /** It is about to be folded: the session is as it was before. */
  before?(commit: Commit, body: OwnerBody): void
  /** It was folded. */
  after?(commit: Commit, event: OwnerEvent): void
  /**
   * Asked right before a request is recorded, and before a run ends because it has no request left. Null: nothing to say. `wait`: the
   * request is not recorded yet; the rider rings when it knows more.
   */
  beforeRequest?(commit: Commit): Word | Wait | null
  /** All events are in: what else is written in the same commit. */
  finish?(commit: Commit, decision: Decision): void
  /** Right before it is written: what must be read from the store first. */
  complete?(plan: CommitPlan): Promise<CommitPlan> | null
}

export type Wait = { readonly type: 'wait' }

export type Send = Frozen<{ session: string; event: InboxBody }>
/** What a commit also writes for other sessions. */
export type Family = { readonly sends: Send[]; readonly births: (OwnerWrite | InboxWrite)[] }

/** How a run ended, as a child tells its parent. */
export type End = {
  readonly outcome: Outcome
  /** What its schema made of the answer. */
  readonly output: Json | undefined
  readonly requests: number
  readonly toolCalls: number
  /** The name of the model whose provider refuses: no key, no access, no money there. Null for none: what may pass is no refusal. */
  readonly barred: string | null
  /** The last reply was cut at its longest. */
  readonly cut: boolean
  /** A person denied one of its calls, or one of a child of its own. */
  readonly denied: boolean
  /** seq of the run's start, and of its end. A run that was held back before it began has only an end. */
  readonly began: number
  readonly seq: number
}

/** One commit while it is put together. A class with one shape: two are made in every turn, and most have nothing beside events. */
export class Commit {
  readonly job: Job
  readonly session: OpenSession
  readonly here: Here
  /** Nothing was written by this attempt before. */
  readonly first: boolean
  /** Before its events: the last run that began, and the model call that was open. */
  readonly began: number
  readonly model: Run['model']
  readonly events: OwnerEvent[] = []
  blobs: Blob[] | null = null
  charges: readonly Charge[] | null = null
  /** What goes to the inboxes of other sessions, and the sessions it makes. */
  family: Family | null = null
  /** The run that it settles, by the seq of its start. */
  ended: number | null = null
  /** How that run ended, as its parent is told. */
  end: End | null = null
  /** A request is made. */
  asks = false

  constructor(job: Job, here: Here) {
    const { session } = job.cache
    this.job = job
    this.session = session
    this.here = here
    this.first = session.epoch < here.epoch
    this.began = session.began
    this.model = session.run?.model ?? null
  }

  add(body: OwnerBody): void {
    const { session, here } = this
    const { riders } = this.job
    let clean = body
    for (let i = 0; i < riders.length; i++) clean = riders[i]?.rewrite?.(this, clean) ?? clean
    for (let i = 0; i < riders.length; i++) riders[i]?.before?.(this, clean)
    if (clean.type === 'run.settled') this.ended = session.run?.seq ?? session.seq + 1
    const event = stamped(session, here, clean)
    take(session, event)
    if (event.type === 'model.started') this.asks = true
    this.events.push(event)
    for (let i = 0; i < riders.length; i++) riders[i]?.after?.(this, event)
  }

  charge(charges: readonly Charge[]): void {
    if (charges.length > 0) this.charges = this.charges ? [...this.charges, ...charges] : charges
  }

  keep(blobs: readonly Blob[]): void {
    if (blobs.length > 0) this.blobs = this.blobs ? [...this.blobs, ...blobs] : [...blobs]
  }

  /** What this commit also writes for other sessions. */
  get kin(): Family {
    this.family ??= { sends: [], births: [] }
    return this.family
  }
}

/** Takes the events into the cached session, in place: when the commit fails the cache is read anew. */
export function planCommit(job: Job, flights: Flights, stopSignal: StopSignal, broke: Broke | null): CommitPlan {
  const { cache, epoch, riders } = job
  const { session: s } = cache
  if (s.epoch > epoch) throw new Fault('lease_lost', `Session ${cache.id} is driven by a newer attempt.`)
  const at = job.clock.now()
  const here = { now: at + cache.aheadMs, epoch }
  const expectedSeq = s.seq
  const commit = new Commit(job, here)
  const landed = flights.landed()
  for (let i = 0; i < landed.length; i++) gather(commit, landed[i] as Flight)
  let decision = next(s, here)
  while (decision.type === 'record' && stopSignal.reason === null && advance(commit, decision.events, broke))
    decision = next(s, here)
  for (let i = 0; i < riders.length; i++) riders[i]?.finish?.(commit, decision)
  const { events } = commit
  const card = cardOf(cache.id, s, byTheStore(job, decision))
  const write: Mutable<OwnerWrite> = { session: cache.id, lane: 'owner', epoch, expectedSeq, events, card }
  const over = stopSignal.reason === 'stopped' && flights.size === landed.length
  if (over || (decision.type === 'rest' && leaves(job, decision))) write.release = true
  if (commit.asks && getsOn(job.attempt)) write.gained = true
  if (s.seq - cache.snapshotSeq >= (write.release ? SNAPSHOT_FROM : SNAPSHOT_EVERY))
    write.snapshot = { seq: s.seq, version: FOLD_VERSION, body: cache.snapshot() }
  if (commit.blobs) write.blobs = commit.blobs
  if (commit.charges) write.charges = commit.charges
  const { writes, woken } = commit.family ? related(write, commit.family) : { writes: [write], woken: NOBODY }
  return { events, decision, landed: landed.length, write, writes, woken, ended: commit.ended, broke, at }
}

function gather(commit: Commit, { effect, landing }: Flight): void {
  assert(landing, 'a flight landed without a landing')
  const { events, blobs, charges } = writtenOf(effect, landing, commit.session, commit.here)
  for (let i = 0; i < events.length; i++) commit.add(boundWakes(commit.session, events[i] as OwnerBody))
  if (blobs) commit.keep(blobs)
  if (charges) commit.charge(charges)
}

/** With what goes to other sessions, and which of them have something to look at then. */
function related(write: Mutable<OwnerWrite>, { sends, births }: Family): Pick<CommitPlan, 'writes' | 'woken'> {
  if (sends.length > 0 && write.events.length > 0) write.sends = sends
  return { writes: [write, ...births], woken: [...births, ...sends].map(({ session }) => session) }
}

const NOBODY: readonly string[] = []

/** How many wakes may wait in one session. One more is not kept, and the model is told. */
const WAKES_MAX = 100

function boundWakes({ wakes, run }: Session, body: OwnerBody): OwnerBody {
  if (body.type !== 'wake.scheduled') return body
  const wake = run?.options === undefined ? body : { ...body, options: run.options }
  if (wakes.some(({ key }) => key === body.key)) return wake
  const most = run?.limits.wakes ?? Number.POSITIVE_INFINITY
  if ((run?.wakes ?? 0) >= most)
    return notKept(`this run asked for ${most} wakes already, which is the most of one run`)
  return wakes.length < WAKES_MAX ? wake : notKept(`${WAKES_MAX} wakes wait already`)
}

function notKept(why: string): OwnerBody {
  return { type: 'note.added', kind: 'limit', text: `A wake was not kept: ${why}.` }
}

/** A turn begins that is not the first of its attempt: the one before is whole. */
function getsOn(attempt: Job['attempt']): boolean {
  const before = attempt.turned
  attempt.turned = true
  return before
}

/**
 * What `next` records, unless it is a request that must not be made, or before which something must be said. False: nothing, because a
 * rider must be waited for. It rings when it knows more.
 */
function advance(commit: Commit, events: readonly OwnerBody[], broke: Broke | null): boolean {
  const { session } = commit
  // A request, and the end of a run, are always the last thing recorded.
  const last = events[events.length - 1]
  const asks = last?.type === 'model.started'
  if (asks && broke) return added(commit, [settlement(session, { type: 'limit', limit: 'usd', ...broke })])
  // A run that got nowhere and is out of requests says why it got nowhere.
  const word = asks || (last && isCapped(last)) ? wordBefore(commit) : null
  if (word?.type === 'settle' && (asks || word.outcome.type === 'halted'))
    return added(commit, [settlement(session, word.outcome)])
  if (asks && word?.type === 'note') return added(commit, [{ type: 'note.added', kind: word.kind, text: word.text }])
  if (asks && word?.type === 'compact') return added(commit, [word.body])
  return asks && word?.type === 'wait' ? false : added(commit, events)
}

function added(commit: Commit, events: readonly OwnerBody[]): true {
  for (let i = 0; i < events.length; i++) commit.add(events[i] as OwnerBody)
  return true
}

function wordBefore(commit: Commit): Word | Wait | null {
  const { riders } = commit.job
  for (let i = 0; i < riders.length; i++) {
    const word = riders[i]?.beforeRequest?.(commit) ?? null
    if (word !== null) return word
  }
  return null
}

function isCapped(body: OwnerBody): boolean {
  return body.type === 'run.settled' && body.outcome.type === 'limit' && body.outcome.limit === 'model_requests'
}

export function openCall(s: Session, key: string): Call | undefined {
  return s.run?.turn?.open.find((call) => call.key === key)
}

type Closed = Extract<OwnerBody, { type: 'agent.tool_use' | 'agent.tool_result' }>

/**
 * A call that is begun again, or closed by something else than its own flight: what runs when an attempt writes `first` is lost.
 * The lost attempt may have asked models, and cannot report what that cost.
 */
export function isGivenUp(body: OwnerBody, first: boolean): body is Closed {
  if (body.type === 'agent.tool_use') return first
  if (body.type !== 'agent.tool_result') return false
  return first || body.status === 'aborted' || body.status === 'timeout' || body.status === 'unknown'
}

/** A short wait for a provider, or for more reports of children, is sat out; everything else gives the session back. */
export function leaves(job: Job, rest: Extract<Decision, { type: 'rest' }>): boolean {
  const short = rest.waiting === 'retry' || (rest.waiting === 'input' && job.cache.session.inputs.length > 0)
  return !short || rest.until === null || rest.until - job.cache.now() > job.lingerMs
}

/** What is written of a landing: an answer that the log has stopped is no reply any more. */
function writtenOf(effect: Effect, landing: Landing, s: Session, here: Here): Landing {
  if (!hasIntent(effect)) return wanted(effect, s, here) && !waitsForSibling(s, landing) ? landing : NOTHING
  const stop = effect.type === 'call' ? unwanted(s, here) : null
  return stop === null ? landing : stoppedReply(landing, stop)
}

const NOTHING: Landing = { events: [] }

/** A wait for a provider does not get longer because the machine's clock was set back since the attempt began. */
export function byTheStore<D extends Decision>({ cache, store }: Job, decision: D): D {
  if (decision.type !== 'rest' || decision.waiting !== 'retry' || decision.until === null) return decision
  const setByMs = store.now() - cache.now()
  return setByMs > -SET_MS_MIN ? decision : { ...decision, until: decision.until + setByMs }
}
const SET_MS_MIN = 1_000

/** A call that was let go while a sibling of it was asked about again does not start: it is looked at once more after the answer. */
function waitsForSibling(s: Session, { events: [body] }: Landing): boolean {
  if (body?.type !== 'agent.tool_use' && body?.type !== 'agent.custom_tool_use') return false
  return s.run?.turn?.open.some(({ state }) => state.type === 'asked' || state.type === 'edited') === true
}

function isSameEdit(now: CallState | undefined, then: CallState): boolean {
  return now?.type === 'edited' && then.type === 'edited' && now.seq === then.seq
}

/** What has no intent counts only if it is still wanted when it lands. */
function wanted(effect: Effect, s: Session, here: Here): boolean {
  if (effect.type === 'run') {
    const { state } = openCall(s, effect.call.key) ?? {}
    const waits = effect.mode === 'edit' ? isSameEdit(state, effect.call.state) : state?.type === 'ready'
    return waits && s.run !== null && !s.paused && stopping(s, s.run, here) === null
  }
  const decision = next(s, here)
  return decision.type === 'perform' && decision.effects.some(({ key }) => key === effect.key)
}
