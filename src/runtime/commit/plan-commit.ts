// One commit of an attempt as a plan: the landings, the events that `next` records on top, and the card, charges and
// snapshot beside them. Nothing is written here; write-commit.ts writes the plan or drops it. Every decision is a
// function of the kernel (landing.ts).
import type { Mutable } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import { assert, Fault } from '../../kernel/failure.ts'
import {
  announceEnd,
  completeLanding,
  decideRequest,
  givesBack,
  judgeLanding,
  needsAdvice,
  shiftRetry,
  type Shortfall,
} from '../../kernel/landing.ts'
import { type Decision, next } from '../../kernel/next.ts'
import { FOLD_VERSION } from '../../kernel/session.ts'
import type { OwnerWrite, CompleteStore } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { cardOf } from '../../view/card.ts'
import type { LandedFlight, LandingQueue, StopSignal } from '../state/effect.ts'
import { type SessionCache, SNAPSHOT_FROM } from '../state/session-cache.ts'
import { landStoppedReply } from '../turn/landings.ts'
import { addEvent, type CommitParts } from './add-event.ts'
import { CommitDraft, type CommitPlan, type RelativeWrites } from './commit-draft.ts'

/** The view that its commits have of an attempt. */
export type CommitAttempt = {
  readonly cache: SessionCache
  readonly epoch: number
  readonly store: CompleteStore
  readonly clock: Clock
  readonly parts: CommitParts
  /** Whether this attempt has begun a turn. When it begins the next one, it has made progress. */
  readonly progress: { beganTurn: boolean }
  /** For a wait no longer than this, the attempt stays instead of giving the session back. */
  readonly lingerMs: number
}

const SNAPSHOT_EVERY = 1_000
const NO_SESSIONS: readonly string[] = []

/** Folds the events into the cached session, in place: when the commit fails, the cache is read anew. */
export function planCommit(
  attempt: CommitAttempt,
  flights: LandingQueue,
  stopSignal: StopSignal,
  shortfall: Shortfall | null,
): CommitPlan {
  const { cache, epoch, parts } = attempt
  const { session } = cache
  if (session.epoch > epoch) throw new Fault('lease_lost', `Session ${cache.id} is driven by a newer attempt.`)
  const at = attempt.clock.now()
  const here = { now: at + cache.aheadMs, epoch }
  const expectedSeq = session.seq
  const draft = new CommitDraft(cache, here)
  const { landed } = flights
  for (let i = 0; i < landed.length; i++) landFlight(draft, parts, landed[i] as LandedFlight)
  let decision = next(session, here)
  while (
    decision.type === 'record' &&
    stopSignal.reason === null &&
    recordPlanned(draft, parts, decision.events, shortfall)
  )
    decision = next(session, here)
  parts.money?.chargeCommit(draft)
  parts.family?.answerParent(draft, decision)
  const { events } = draft
  const card = cardOf(cache.id, session, decision.type === 'rest' ? shiftByStore(attempt, decision) : decision)
  const write: Mutable<OwnerWrite> = { session: cache.id, lane: 'owner', epoch, expectedSeq, events, card }
  const isOver = stopSignal.reason === 'stopped' && flights.size === landed.length
  if (isOver || (decision.type === 'rest' && leavesSession(attempt, decision))) write.release = true
  if (draft.makesRequest) {
    // A turn was begun before this one, so the one before is complete.
    if (attempt.progress.beganTurn) write.gained = true
    attempt.progress.beganTurn = true
  }
  if (session.seq - cache.snapshotSeq >= (write.release ? SNAPSHOT_FROM : SNAPSHOT_EVERY))
    write.snapshot = { seq: session.seq, version: FOLD_VERSION, body: cache.snapshot() }
  if (draft.blobs) write.blobs = draft.blobs
  if (draft.charges) write.charges = draft.charges
  const { writes, woken } =
    draft.relatives === null ? { writes: [write], woken: NO_SESSIONS } : writeForRelatives(draft.relatives, write)
  return { events, decision, landed: landed.length, write, writes, woken, settled: draft.settled, shortfall, at }
}

function landFlight(draft: CommitDraft, parts: CommitParts, { effect, landing }: LandedFlight): void {
  assert(landing, 'a flight landed without a landing')
  const verdict = judgeLanding(draft.session, effect, landing.events[0], draft.here)
  if (verdict === 'drop') return
  const { events, blobs, charges } = verdict === 'keep' ? landing : landStoppedReply(landing, verdict)
  for (let i = 0; i < events.length; i++) addEvent(draft, parts, completeLanding(draft.session, events[i] as OwnerBody))
  if (blobs) draft.addBlobs(blobs)
  if (charges) draft.addCharges(charges)
}

/**
 * Records the events that `next` planned, or others in their place. False: nothing yet, because a hook has not
 * answered; it rings when it has.
 */
function recordPlanned(
  draft: CommitDraft,
  parts: CommitParts,
  planned: readonly OwnerBody[],
  shortfall: Shortfall | null,
): boolean {
  const { session } = draft
  const { guard, requestHooks, hasEndWork } = parts
  const last = planned[planned.length - 1]?.type
  let events = planned
  // Only a request, and the end of a run, are decided about.
  if (last === 'model.started' || last === 'run.settled') {
    const asked = needsAdvice(planned, shortfall)
    const advice = asked ? (guard?.adviseRequest(session) ?? requestHooks?.adviseRequest(draft) ?? null) : null
    const decided = decideRequest(session, planned, shortfall, advice)
    if (decided === 'wait') return false
    const ends = decided[decided.length - 1]?.type === 'run.settled'
    events = ends ? announceEnd(session, decided, hasEndWork) : decided
  }
  for (let i = 0; i < events.length; i++) addEvent(draft, parts, events[i] as OwnerBody)
  return true
}

/** Adds the writes for other sessions, and lists the sessions that must look afterwards. */
function writeForRelatives(
  { sends, births }: RelativeWrites,
  write: Mutable<OwnerWrite>,
): Pick<CommitPlan, 'writes' | 'woken'> {
  if (sends.length > 0 && write.events.length > 0) write.sends = sends
  return { writes: [write, ...births], woken: [...births, ...sends].map(({ session }) => session) }
}

/** Whether the session is given back at this decision. */
export function leavesSession({ cache, lingerMs }: CommitAttempt, decision: Decision): boolean {
  return decision.type === 'rest' && givesBack(cache.session, decision, cache.now(), lingerMs)
}

/** Adapts a decision to the store's clock, which may have been set since the attempt began. */
export function shiftByStore<D extends Decision>({ cache, store }: CommitAttempt, decision: D): D {
  if (decision.type !== 'rest' || decision.waiting !== 'retry') return decision
  return shiftRetry(decision, store.now() - cache.now())
}
