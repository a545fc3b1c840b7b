// One commit of an attempt, drafted: what landed, what `next` records on top, and the card, charges and snapshot beside it.
// Nothing is written here; the driver (drive.ts) commits the draft or drops it.
import type { Account, Mutable, Shortage } from '../kernel/content.ts'
import { timesOf } from '../kernel/clock.ts'
import type { OwnerBody, OwnerEvent } from '../kernel/event.ts'
import { assert, Fault } from '../kernel/failure.ts'
import { take } from '../kernel/fold.ts'
import type { Call } from '../kernel/ledger.ts'
import { type Here, stopping, unwanted } from '../kernel/limits.ts'
import { type Decision, type Effect, next } from '../kernel/next.ts'
import { settlement } from '../kernel/result.ts'
import type { Blob, Charge, Clock, OwnerWrite, Store, Write } from '../kernel/ports.ts'
import { FOLD_VERSION, type Session } from '../kernel/session.ts'
import type { SessionCache } from './session-cache.ts'
import { cardOf } from './card.ts'
import { chargesOf } from '../riders/money/charges.ts'
import { answered, awaits, dismissed, type End, endOf, type Family, handed } from '../riders/children/children.ts'
import { type FlightOptions, type Flights, hasIntent, type Landing } from './flights.ts'
import type { Traits } from '../riders/guard/guard.ts'
import { holdsUnder } from '../riders/money/budgeted-model.ts'
import { charsOf } from '../view/history.ts'
import { stoppedReply } from '../effects/outcomes.ts'
import { spokenIn } from '../sessions/result.ts'
import type { SpendingLimits } from '../riders/money/spending-limits.ts'
import type { Redactor } from '../riders/redact/redact.ts'

export type Job = {
  readonly cache: SessionCache
  readonly epoch: number
  /** Whether this attempt has begun a turn: the next one it begins shows that it got on. */
  readonly attempt: { turned: boolean }
  readonly store: Store
  readonly clock: Clock
  readonly flights: FlightOptions
  readonly spending: SpendingLimits
  readonly redactor: Redactor
  /** What the guard must know of the tools. Null: no language model is guarded here. */
  readonly traits: (() => Traits) | null
  /** What answers the turns of an agent's sessions. */
  readonly plannerOf: (agent: string) => string
  /** The tool with which an agent reads kept texts. */
  readonly readerOf: (agent: string) => string | undefined
  /** These events are on disk, and these other sessions have something to look at. */
  readonly committed: (plan: CommitPlan) => void
  /** A commit succeeded that was begun at this time: the lease was ours then. */
  readonly renewed: (at: number) => void
  /** The lease has ended by the clock, and another worker may have the session by now. */
  readonly lapsed: () => boolean
  /** Stay for a wait as short as this instead of giving the session back. */
  readonly lingerMs: number
  /** How long to keep trying when the disk is full or the store is busy. */
  readonly patienceMs: number
}

/** The end of an attempt from outside: the lease is lost, or the process wants to stop. */
export type StopSignal = { reason: 'lost' | 'stopped' | null; ring: () => void }

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

/** Takes the events into the cached session, in place: when the commit fails the cache is read anew. */
export function planCommit(job: Job, flights: Flights, stopSignal: StopSignal, broke: Broke | null): CommitPlan {
  const { cache, epoch, redactor } = job
  const { session: s, guard } = cache
  if (s.epoch > epoch) throw new Fault('lease_lost', `Session ${cache.id} is driven by a newer attempt.`)
  const begun = job.clock.now()
  const here = { now: cache.now(), epoch }
  const expectedSeq = s.seq
  const first = s.epoch < epoch
  const spender = { id: cache.id, root: s.parent?.root ?? cache.id, run: s.began, open: s.run?.model ?? null }
  const events: OwnerEvent[] = []
  const blobs: Blob[] = []
  const spent: Charge[] = []
  const family: Family = { sends: [], births: [] }
  let end: End | null = null
  const add = (body: OwnerBody): void => {
    const call = isGivenUp(body, first) ? openCall(s, body.call) : undefined
    if (call?.state.type === 'outside') dismissed(family, cache.id, call)
    else if (call?.state.type === 'running') spent.push({ type: 'lost', key: holdsUnder(cache.id, call.key) })
    const clean = redactor.idle ? body : redactor.body(body)
    // As the log will have it: what a child tells its parent holds no more than that.
    if (clean.type === 'run.settled') end = endOf(s, clean.outcome, events)
    const held =
      body.type === 'model.started' ? job.spending.hold(() => charsAfter(cache, events), body.boost === true) : null
    const event = stamped(s, here, clean)
    if (held !== null) Object.assign(event, { held })
    take(s, event)
    guard.take(event)
    events.push(event)
    if (event.type === 'agent.custom_tool_use') {
      const call = openCall(s, event.call)
      if (call) handed(family, cache, call, { at: here.now, plannerOf: job.plannerOf, readerOf: job.readerOf })
    }
  }
  const landed = flights.landed()
  for (const { effect, landing } of landed) {
    assert(landing, 'a flight landed without a landing')
    const written = writtenOf(effect, landing, s, here)
    for (const body of written.events) add(bounded(s, body))
    if (written.blobs) blobs.push(...written.blobs)
    if (written.charges) spent.push(...written.charges)
  }
  let decision = next(s, here)
  while (decision.type === 'record' && stopSignal.reason === null) {
    advance(job, decision.events, broke, add)
    decision = next(s, here)
  }
  if (end !== null) blobs.push(...answered(family, cache, end, spokenIn(cache.shown?.messages ?? [], events)))
  else if (s.parent !== null) awaits(family, cache, decision)
  const over = stopSignal.reason === 'stopped' && flights.size === landed.length
  const write: Mutable<OwnerWrite> = {
    session: cache.id,
    lane: 'owner',
    epoch,
    expectedSeq,
    events,
    card: cardOf(cache.id, s, byTheStore(job, decision)),
  }
  const charges = chargesOf(spender, events, job.spending)
  if (charges.length + spent.length > 0) write.charges = [...charges, ...spent]
  if (blobs.length > 0) write.blobs = blobs
  if (family.sends.length > 0 && events.length > 0) write.sends = family.sends
  if (over || (decision.type === 'rest' && leaves(job, decision))) write.release = true
  if (getsOn(job.attempt, events)) write.gained = true
  if (s.seq - cache.snapshotSeq >= (write.release ? SNAPSHOT_EVERY / 10 : SNAPSHOT_EVERY))
    write.snapshot = { seq: s.seq, version: FOLD_VERSION, body: JSON.stringify(s) }
  const writes = family.births.length > 0 ? [write, ...family.births] : [write]
  const woken = family.births.length + family.sends.length > 0 ? namesOf(family) : NOBODY
  const ended = end === null ? null : beganOf(end)
  return { events, decision, landed: landed.length, write, writes, woken, ended, broke, at: begun }
}

/** The usual case is written out: it is made for every event, and a spread of two parts costs a microsecond. */
function stamped({ seq, at }: Session, { now, epoch }: Here, body: OwnerBody): OwnerEvent {
  if (now < at) return { seq: seq + 1, ...timesOf(at, now), epoch, ...body }
  return { seq: seq + 1, at: now, epoch, ...body }
}

/** How many wakes may wait in one session. One more is not kept, and the model is told. */
const WAKES_MAX = 100

function bounded({ wakes }: Session, body: OwnerBody): OwnerBody {
  if (body.type !== 'wake.scheduled' || wakes.length < WAKES_MAX || wakes.some(({ key }) => key === body.key))
    return body
  return { type: 'note.added', kind: 'limit', text: `A wake was not kept: ${WAKES_MAX} wakes wait already.` }
}

/** A turn begins that is not the first of its attempt: the one before is whole. */
function getsOn(attempt: Job['attempt'], events: readonly OwnerEvent[]): boolean {
  if (!events.some(({ type }) => type === 'model.started')) return false
  const before = attempt.turned
  attempt.turned = true
  return before
}

const NOBODY: readonly string[] = []

function namesOf({ births, sends }: Family): readonly string[] {
  return [...births, ...sends].map(({ session }) => session)
}

/** `end` is set within a closure, where the compiler does not look: handed over, it has its type again. */
function beganOf({ began }: End): number {
  return began
}

/** What `next` records, unless it is a request that must not be made, or before which something must be said. */
function advance(job: Job, events: readonly OwnerBody[], broke: Broke | null, add: (body: OwnerBody) => void): void {
  const { cache } = job
  // A request, and the end of a run, are always the last thing recorded.
  const last = events[events.length - 1]
  const asks = last?.type === 'model.started'
  if (asks && broke) return add(settlement(cache.session, { type: 'limit', limit: 'usd', ...broke }))
  // A run that got nowhere and is out of requests says why it got nowhere.
  const word =
    asks || (last && isCapped(last)) ? job.traits && cache.guard.beforeRequest(cache.session, job.traits()) : null
  if (word?.type === 'settle' && (asks || word.outcome.type === 'halted'))
    return add(settlement(cache.session, word.outcome))
  if (asks && word?.type === 'note') return add({ type: 'note.added', kind: word.kind, text: word.text })
  const allow = asks && job.traits ? cache.guard.allow(cache.session, job.traits()) : 'all'
  for (const body of events) add(allow !== 'all' && body.type === 'model.started' ? { ...body, allow } : body)
}

function isCapped(body: OwnerBody): boolean {
  return body.type === 'run.settled' && body.outcome.type === 'limit' && body.outcome.limit === 'model_requests'
}

function openCall(s: Session, key: string): Call | undefined {
  return s.run?.turn?.open.find((call) => call.key === key)
}

type Closed = Extract<OwnerBody, { type: 'agent.tool_use' | 'agent.tool_result' }>

/**
 * A call that is begun again, or closed by something else than its own flight: what runs when an attempt writes `first` is lost.
 * The lost attempt may have asked models, and cannot report what that cost.
 */
function isGivenUp(body: OwnerBody, first: boolean): body is Closed {
  if (body.type === 'agent.tool_use') return first
  if (body.type !== 'agent.tool_result') return false
  return first || body.status === 'aborted' || body.status === 'timeout' || body.status === 'unknown'
}

/** What the request will carry, with what this very commit adds. */
function charsAfter(cache: SessionCache, events: readonly OwnerEvent[]): number {
  return events.reduce((sum, event) => sum + charsOf(event), cache.chars)
}

/** A short wait for a provider is sat out; everything else gives the session back. */
export function leaves(job: Job, rest: Extract<Decision, { type: 'rest' }>): boolean {
  return rest.waiting !== 'retry' || rest.until === null || rest.until - job.cache.now() > job.lingerMs
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
  return s.run?.turn?.open.some(({ state }) => state.type === 'asked') === true
}

/** What has no intent counts only if it is still wanted when it lands. */
function wanted(effect: Effect, s: Session, here: Here): boolean {
  if (effect.type === 'run') {
    const ready = openCall(s, effect.call.key)?.state.type === 'ready'
    return ready && s.run !== null && !s.paused && stopping(s, s.run, here) === null
  }
  const decision = next(s, here)
  return decision.type === 'perform' && decision.effects.some(({ key }) => key === effect.key)
}
