// What the log means: fold(session, event) → session. Pure. Owner events out of order are a Bug; inbox events never are.
// Copying the session for every event would cost more than all else here, so `fold` is a copy and a `take`. Code that
// alone holds a session (the driver, a reader catching up) takes events into it in place.
import { clockOf } from './clock.ts'
import type { Event } from './event.ts'
import { assert } from './failure.ts'
import { answer, copyTurn, decide, hand, type OpenTurn, openTurn, review, settle, start, UNSAID } from './ledger.ts'
import {
  countFailure,
  countLoss,
  countRetry,
  defer,
  endDeferral,
  forgetFailures,
  forgiveRetries,
  hastenRetry,
} from './retries.ts'
import { arrive, clock, describe, inputOf, newRun, renewed, wakeOf } from './session.ts'
import type { OpenRun, OpenSession, Session } from './session.ts'

export type { OpenSession } from './session.ts'
type Of<T extends Event['type']> = Extract<Event, { type: T }>

export function fold(session: Session, e: Event): Session {
  const s = open(session)
  take(s, e)
  return s
}

/** A copy of its own. Everything `take` changes in place is in it; everything deeper is replaced. */
export function open(session: Session): OpenSession {
  const { run } = session
  return { ...session, run: run ? { ...run, turn: run.turn ? copyTurn(run.turn) : null } : null }
}

export function take(s: OpenSession, e: Event): void {
  if (e.seq !== s.seq + 1) assert(false, `event ${e.seq} follows ${s.seq}`)
  const { epoch } = s
  s.seq = e.seq
  s.at = e.at
  if (e.epoch > epoch) s.epoch = e.epoch
  apply(s, e)
  if (s.deferred) endDeferral(s, e)
  const { cost = 0 } = e as { readonly cost?: number }
  if (cost > 0) {
    s.cost += cost
    if (s.run) s.run.cost += cost
  }
  if (s.run) clock(s, s.run, e, epoch)
}

function apply(s: OpenSession, e: Event): void {
  switch (e.type) {
    case 'session.created':
      s.created = true
      s.agent = e.agent
      if (e.planner !== 'model') s.planner = e.planner
      s.parent = e.parent ?? null
      if (e.within) s.within = e.within
      return describe(s, e)
    case 'user.message':
      return receive(s, e)
    case 'user.tool_confirmation':
      // What came from elsewhere is asked anew first.
      if (s.run?.turn && !s.run.foreign) decide(s.run.turn, e, s.run)
      return
    case 'user.custom_tool_result':
      if (s.run) answer(s.run.turn, e, s.run)
      if (s.parent && e.parent !== undefined) s.parent = { ...s.parent, call: e.parent }
      return
    case 'user.interrupt':
      return interrupt(s, e)
    case 'run.started':
      return begin(s, e)
    case 'model.started':
      return ask(s, e)
    case 'agent.message':
      return reply(s, e)
    case 'model.failed':
      return fail(s, e)
    case 'agent.tool_use':
      if (start(turnOf(s), e.call, e.epoch)) countLoss(runOf(s), e.epoch)
      return
    case 'agent.custom_tool_use':
      return hand(turnOf(s), e.call)
    case 'agent.tool_result':
      return result(s, e)
    case 'note.added':
      s.notes = [...s.notes, e.seq]
      return
    case 'context.compacted':
      if (e.cut !== undefined) s.cut = e.seq
      return
    case 'wake.scheduled':
      // A pending wake with the same key is the same wake: the first stands.
      if (s.wakes.some((w) => w.key === e.key)) return
      s.wakes = [...s.wakes, wakeOf(e)]
      if (s.run) s.run.wakes = (s.run.wakes ?? 0) + 1
      return
    case 'run.deferred':
      return defer(s, e)
    case 'run.settled':
      return conclude(s, e)
    case 'session.closed':
      s.closed = true
      s.inputs = []
      s.wakes = []
      return
    case 'session.imported':
      return arrive(s, e)
    case 'run.reviewed':
      return renewed(runOf(s), e)
    case 'call.reviewed':
      return review(turnOf(s), e)
    default:
      // An event of a type this version does not know is kept in the log and changes nothing.
      return
  }
}

function receive(s: OpenSession, e: Of<'user.message'>): void {
  if (s.closed) return
  s.inputs = [...s.inputs, inputOf(e)]
  if (e.denied && s.run) s.run.said = { ...UNSAID, denied: s.run.said?.denied ?? [] }
  if (e.when === 'after') return
  s.paused = false
  if (e.report === undefined) hastenRetry(s, e)
}

function interrupt(s: OpenSession, e: Of<'user.interrupt'>): void {
  if (e.run !== undefined && e.run !== s.run?.seq) return
  const busy = s.run !== null || s.inputs.length > 0
  if (e.closes) s.closing = true
  if (s.held && e.mode !== 'pause') s.held = false
  if (e.mode === 'resume') hastenRetry(s, e)
  if (e.mode !== 'resume') s.wakes = []
  s.paused = e.mode === 'pause' && busy
  if (e.mode === 'stop' && busy) s.stop = e.seq
  // A run that ended for want of money is not asked about any more.
  else if (e.mode === 'stop' && s.last?.type === 'limit' && s.last.limit === 'usd') s.last = { type: 'interrupted' }
}

function begin(s: OpenSession, e: Of<'run.started'>): void {
  assert(s.run === null, 'a run started inside a run')
  s.wakes = s.wakes.filter((w) => !e.wakes.includes(w.key))
  // What opens the run joins its first request, also what asked to come after the one before.
  s.inputs = s.inputs.map((input) => (e.inputs.includes(input.seq) ? { ...input, when: 'next' } : input))
  s.paused = false
  s.began = e.seq
  delete s.unknown
  s.run = newRun(e)
}

function ask(s: OpenSession, e: Of<'model.started'>): void {
  const run = runOf(s)
  assert(run.model === null, 'a model call was opened inside another')
  assert(!run.turn || run.turn.open.length === 0, 'a request was made over an unanswered call')
  if (s.inputs.length > 0) s.inputs = s.inputs.filter((input) => !e.shows.includes(input.seq))
  if (s.unshown.length > 0) s.unshown = []
  if (s.notes.length > 0) s.notes = []
  if (run.turn) run.losses = 0
  const last = run.turn?.verdict.type
  if (last === 'retry_user_message' || last === 'retry_tool_output') run.outputRetries += 1
  if (e.boost) run.boosts += 1
  run.model = { seq: e.seq, epoch: e.epoch, at: clockOf(e), held: e.held ?? 0 }
  run.turn = null
  run.retryAt = 0
}

function reply(s: OpenSession, e: Of<'agent.message'>): void {
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

function fail(s: OpenSession, e: Of<'model.failed'>): void {
  const run = runOf(s)
  assert(run.model, 'a model call failed that was not open')
  const { at } = run.model
  run.model = null
  run.retryAt = e.retryAt ?? 0
  if (e.class === 'superseded' || e.class === 'interrupted') return
  if (e.class === 'lost') return countLoss(run, e.epoch)
  if (e.class === 'overflow') s.paused = true
  countFailure(run, e, at)
}

function result(s: OpenSession, e: Of<'agent.tool_result'>): void {
  const run = runOf(s)
  const turn = turnOf(s)
  const { state, proposal } = settle(turn, e.call, e.seq)
  if (e.ends !== undefined) run.ends = e.ends
  if (state.type === 'running' && state.epoch < e.epoch && proposal.effect !== 'once') countLoss(run, e.epoch)
  if (e.status === 'unknown') s.unknown = (s.unknown ?? 0) + 1
  // What a hook held back was not a call.
  if (e.status === 'denied' && state.type === 'ready' && proposal.clear) run.toolCalls -= 1
  if (e.retryKind !== undefined) countRetry(run, turn, proposal)
  else if (e.status === 'ok') forgiveRetries(run, turn, proposal)
  else if (proposal.fails && e.status !== 'denied' && e.status !== 'aborted')
    run.broken ??= `Tool "${proposal.tool}" failed: ${e.failure?.message ?? 'no reason was given'}`
}

function conclude(s: OpenSession, e: Of<'run.settled'>): void {
  assert(!s.run?.model, 'a run settled over an open model call')
  assert(!s.run?.turn?.open.length, 'a run settled over an open call')
  const { outcome, inputs: swallowed = [] } = e
  // What a hook held back before there was a run is never shown to a model, nor what it could not be asked about.
  const held = !s.run && ('hook' in outcome || ('reason' in outcome && outcome.reason === 'hook_error'))
  s.unshown = [...s.unshown, ...(s.run?.turn?.results ?? []), ...s.notes, ...(held ? [] : swallowed)]
  s.notes = []
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
