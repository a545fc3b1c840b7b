// The meaning of the log: fold(session, event) → session. Pure. Owner events out of order are a Bug; inbox events never
// are. Copying the session for every event would cost more than everything else here, so `fold` is one copy and a
// `take`. Code that alone holds a session (the driver, a reader catching up) takes events into it in place.
import { writerTime } from './clock.ts'
import type { Event, EventOf } from './event.ts'
import { assert } from './failure.ts'
import {
  applyAnswer,
  copyTurn,
  applyDecision,
  handOutCall,
  type OpenTurn,
  openTurn,
  applyCallReview,
  settleCall,
  startCall,
  UNSAID,
} from './ledger.ts'
import {
  countFailure,
  countLoss,
  countRetry,
  deferRun,
  endDeferral,
  forgetFailures,
  forgiveRetries,
  hastenRetry,
} from './retries.ts'
import { applyImport, countActiveTime, applyDescription, inputOf, newRun, applyReview, addWake } from './session.ts'
import type { OpenRun, OpenSession, Session } from './session.ts'

export type { OpenSession } from './session.ts'

/** What a session is after one more event. Pure: it returns a new session and leaves the given one as it was. */
export function fold(session: Session, e: Event): Session {
  const s = open(session)
  take(s, e)
  return s
}

/** Returns a copy of its own. It copies everything that `take` changes in place; everything deeper is replaced. */
export function open(session: Session): OpenSession {
  const { run } = session
  return { ...session, run: run ? { ...run, turn: run.turn ? copyTurn(run.turn) : null } : null }
}

/** Like `fold`, in place: for long logs, on a session that `open` made. */
export function take(s: OpenSession, e: Event): void {
  if (e.seq !== s.seq + 1) assert(false, `event ${e.seq} follows ${s.seq}`)
  const { epoch } = s
  s.seq = e.seq
  s.at = e.at
  if (e.epoch > epoch) s.epoch = e.epoch
  applyEvent(s, e)
  if (s.deferred) endDeferral(s, e)
  const { cost = 0 } = e as { readonly cost?: number }
  if (cost > 0) {
    s.cost += cost
    if (s.run) s.run.cost += cost
  }
  if (s.run) countActiveTime(s, s.run, e, epoch)
}

/** An event of a type that this version does not know is kept in the log and changes nothing. */
function applyEvent(s: OpenSession, e: Event): void {
  switch (e.type) {
    case 'session.created':
      s.created = true
      s.agent = e.agent
      if (e.planner !== 'model') s.planner = e.planner
      s.parent = e.parent ?? null
      if (e.within) s.within = e.within
      return applyDescription(s, e)
    case 'user.message':
      return applyMessage(s, e)
    case 'user.tool_confirmation':
      // A call that came with an import is asked about again first.
      if (s.run?.turn && !s.run.foreign) applyDecision(s.run.turn, e, s.run)
      return
    case 'user.custom_tool_result':
      if (s.run) applyAnswer(s.run.turn, e, s.run)
      if (s.parent && e.parent !== undefined) s.parent = { ...s.parent, call: e.parent }
      return
    case 'user.interrupt':
      return applyInterrupt(s, e)
    case 'user.withdraw':
      if (s.run && e.message > s.run.seq) s.inputs = s.inputs.filter((input) => input.seq !== e.message)
      return
    case 'run.started':
      return applyRunStart(s, e)
    case 'model.started':
      return applyRequest(s, e)
    case 'agent.message':
      return applyReply(s, e)
    case 'model.failed':
      return applyRequestFailure(s, e)
    case 'agent.tool_use':
      if (startCall(turnOf(s), e.call, e.epoch)) countLoss(runOf(s), e.epoch)
      return
    case 'agent.custom_tool_use':
      return handOutCall(turnOf(s), e.call)
    case 'agent.tool_result':
      return applyResult(s, e)
    case 'note.added':
      s.notes = [...s.notes, e.seq]
      return
    case 'context.compacted':
      if (e.cut !== undefined) s.cut = e.seq
      return
    case 'user.schedule':
    case 'wake.scheduled':
      return addWake(s, e)
    case 'user.unschedule':
      s.wakes = s.wakes.filter((w) => w.key !== e.key)
      return
    case 'run.deferred':
      return deferRun(s, e)
    case 'run.ending':
      return applyEnding(runOf(s), e)
    case 'run.settled':
      return applySettlement(s, e)
    case 'session.closed':
      return applyClose(s)
    case 'session.imported':
      return applyImport(s, e)
    case 'run.reviewed':
      return applyReview(runOf(s), e)
    case 'call.reviewed':
      return applyCallReview(turnOf(s), e)
    case 'user.rename': // It says how a session is listed, and nothing of what happens to it.
  }
}

function applyClose(s: OpenSession): void {
  s.closed = true
  s.inputs = []
  s.wakes = []
}

function applyMessage(s: OpenSession, e: EventOf<'user.message'>): void {
  if (s.closed) return
  const input = inputOf(e)
  s.inputs = [...s.inputs, input]
  if (e.denied && s.run) s.run.said = { ...UNSAID, denied: s.run.said?.denied ?? [] }
  if (input.when === 'after') return
  s.paused = false
  // The run that was about to be completed goes on with it.
  if (s.run?.ending?.outcome.type === 'completed') delete s.run.ending
  if (e.report === undefined) hastenRetry(s, e)
}

function applyInterrupt(s: OpenSession, e: EventOf<'user.interrupt'>): void {
  if (e.run !== undefined && e.run !== s.run?.seq) return
  const busy = s.run !== null || s.inputs.length > 0
  if (e.closes) s.closing = true
  if (s.held && e.mode !== 'pause') s.held = false
  if (e.mode === 'resume') hastenRetry(s, e)
  if (e.mode !== 'resume') s.wakes = []
  s.paused = e.mode === 'pause' && busy
  if (e.mode === 'stop' && busy) s.stop = e.seq
  // A stop ends the question about more money.
  else if (e.mode === 'stop' && s.last?.type === 'limit' && s.last.limit === 'usd') s.last = { type: 'interrupted' }
}

function applyRunStart(s: OpenSession, e: EventOf<'run.started'>): void {
  assert(s.run === null, 'a run started inside a run')
  s.wakes = s.wakes.filter((w) => !e.wakes.includes(w.key))
  // The inputs that open the run join its first request, even those with `when: 'after'`.
  s.inputs = s.inputs.map((input) => (e.inputs.includes(input.seq) ? { ...input, when: 'next' } : input))
  s.paused = false
  s.began = e.seq
  delete s.unknown
  s.run = newRun(e)
}

/** The same list each time, because a request is made often. */
const NO_SEQS: readonly number[] = []

function applyRequest(s: OpenSession, e: EventOf<'model.started'>): void {
  const run = runOf(s)
  assert(run.model === null, 'a model call inside another')
  assert(!run.turn || run.turn.open.length === 0, 'a request over an open call')
  if (s.inputs.length > 0) s.inputs = s.inputs.filter((input) => !e.shows.includes(input.seq))
  s.unshown = NO_SEQS
  s.notes = NO_SEQS
  if (run.turn) run.losses = 0
  // Only the verdicts that ask for another output have a text.
  if (run.turn && 'text' in run.turn.verdict) run.outputRetries += 1
  if (e.boost) run.boosts += 1
  run.model = { seq: e.seq, epoch: e.epoch, at: writerTime(e), held: e.held ?? 0 }
  run.turn = null
  run.retryAt = 0
}

function applyReply(s: OpenSession, e: EventOf<'agent.message'>): void {
  const run = runOf(s)
  assert(run.model, 'a reply without a question')
  const calls = run.toolCalls + (e.verdict.type === 'continue' ? e.calls.length : 0)
  const over = run.limits.toolCalls !== null && calls > run.limits.toolCalls
  run.model = null
  run.turn = openTurn(e, over)
  run.requests += 1
  if (!over) run.toolCalls = calls
  forgetFailures(run)
  if (e.verdict.type !== 'empty') run.boosts = 0
}

function applyRequestFailure(s: OpenSession, e: EventOf<'model.failed'>): void {
  const run = runOf(s)
  assert(run.model, 'a model call failed unopened')
  const { at } = run.model
  run.model = null
  run.retryAt = e.retryAt ?? 0
  if (e.class === 'superseded' || e.class === 'interrupted') return
  if (e.class === 'lost') return countLoss(run, e.epoch)
  if (e.class === 'overflow') s.paused = true
  countFailure(run, e, at)
}

function applyResult(s: OpenSession, e: EventOf<'agent.tool_result'>): void {
  const run = runOf(s)
  const turn = turnOf(s)
  const { state, proposal } = settleCall(turn, e.call, e.seq)
  if (e.ends !== undefined) run.ends = e.ends
  if (state.type === 'running' && state.epoch < e.epoch && proposal.effect !== 'once') countLoss(run, e.epoch)
  if (e.status === 'unknown') s.unknown = (s.unknown ?? 0) + 1
  // A call that a hook held back does not count as a call.
  if (e.status === 'denied' && state.type === 'ready' && proposal.clear) run.toolCalls -= 1
  if (e.retryKind !== undefined) countRetry(run, turn, proposal)
  else if (e.status === 'ok') forgiveRetries(run, turn, proposal)
  else if (proposal.fails && e.status !== 'denied' && e.status !== 'aborted')
    run.broken ??= `Tool "${proposal.tool}" failed: ${e.failure?.message ?? 'no reason was given'}`
}

function applyEnding(run: OpenRun, { outcome, epoch }: EventOf<'run.ending'>): void {
  assert(!run.model && !run.turn?.open.length, 'a run ends over an open call')
  run.ending = { outcome, epoch, tries: (run.ending?.tries ?? 0) + 1 }
}

function applySettlement(s: OpenSession, e: EventOf<'run.settled'>): void {
  assert(!s.run?.model, 'a run settled over a model call')
  assert(!s.run?.turn?.open.length, 'a run settled over an open call')
  const { outcome, inputs: swallowed = [] } = e
  // Input that a hook refused before there was a run is never shown to a model, and neither is input that the hook
  // could not check.
  const held = !s.run && ('hook' in outcome || ('reason' in outcome && outcome.reason === 'hook_error'))
  s.unshown = [...s.unshown, ...(s.run?.turn?.results ?? []), ...s.notes, ...(held ? [] : swallowed)]
  s.notes = NO_SEQS
  s.inputs = s.inputs.filter((input) => !swallowed.includes(input.seq))
  if (e.wakes) s.wakes = s.wakes.filter((wake) => !e.wakes?.includes(wake.key))
  s.stop = 0
  s.paused &&= s.inputs.length > 0
  s.last = outcome
  if (s.parent) s.denied = 'limit' in outcome && outcome.limit === 'usd' && (s.denied || !!s.run?.said?.denied.length)
  s.run = null
}

function runOf(s: OpenSession): OpenRun {
  assert(s.run, 'no run is open')
  return s.run
}

function turnOf(s: OpenSession): OpenTurn {
  assert(s.run?.turn, 'a call without a turn')
  return s.run.turn
}
