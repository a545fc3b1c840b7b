// Decides what must happen now: next(session, here) → decision. Pure and level-triggered, so there is no resume path.
//
//   state                                        decision
//   -----------------------------------------------------------------------------------------------------------
//   closed or not created                        rest
//   imported, and no person has let it go on     rest
//   no run, an interrupt over waiting input      record run.settled (interrupted)
//   no run, closing                              record session.closed; with a folder, perform end before
//   no run, input that a pause holds             rest; reports of children rest until others may be read with them
//   no run, input or a due wake                  perform prepare, or rest until it is tried again
//   no run, nothing                              rest until the next wake, or the time of the next message
//   a run that ends                              perform end; after a loss record the intent again, then run.settled
//   something open from an older attempt         record its loss (model.failed lost, result unknown, or a new intent)
//   interrupt, or a limit that stops at once     perform: stop all; when nothing is open, record results, run.settled
//   a run that began elsewhere                   perform review: its setup and its calls are those of here and now
//   model call open                              perform call; input "now" stops it as superseded
//   calls open                                   record what is decided, record intents, perform what is intended
//   calls that a person edited                   perform the admission of the new arguments; no other call starts before
//   calls waiting for people                     rest until the first question expires
//   turn done, verdict ends it                   record run.settled, unless steering waits
//   turn done, or run just begun                 record model.started (promotion)
//
//   Decisions made as events are written (landing.ts)
//   -----------------------------------------------------------------------------------------------------------
//   an effect without an intent lands unwanted   drop it; so too where a sibling is asked about again
//   a reply lands after a stop                   record model.failed with what it said and cost
//   one wake more than may wait                  record note.added (limit)
//   a request that does not fit the money        record run.settled (limit usd)
//   a request about which guard or hooks advise  record the note, the clearing or the end first; wait for a hook that is silent
//   out of requests, and the guard says halted   record run.settled (halted)
//   a run settles that has a finalizer or worktrees   record run.ending first
//   a lost call is begun again or closed         its holds are lost, and its child stops
//   a rest that a short wait ends                stay; after any other rest the session is given back
import { mustStillWait, dueBy } from './clock.ts'
import type { Frozen, Mutable, Outcome } from './content.ts'
import type { OwnerBody } from './event.ts'
import { type Call, intentOf, outsideOf, type Turn } from './ledger.ts'
import {
  activeDeadline,
  earliestTime,
  type Here,
  whyNoRequest,
  type StopReason,
  whyRunStops,
  whyReplyStops,
} from './limits.ts'
import { lossesBy } from './retries.ts'
import {
  closingResult,
  expiresAt,
  failedResult,
  resultWithoutEffect,
  buildRunSettled,
  unknownResult,
} from './result.ts'
import { inputsForRun, type Run, type Session, inputsForRequest, type Wake } from './session.ts'

/**
 * Something to be done in the world, for which the intent is on disk already: prepare a run, ask the model, run a
 * call, compact the context, or end a run.
 */
export type Effect = Frozen<
  | { type: 'prepare'; key: string; inputs: readonly number[]; wakes: readonly Wake[] }
  | { type: 'call'; key: string; seq: number; deadline: number }
  | { type: 'run'; key: string; call: Call; mode: RunMode }
  | { type: 'review'; key: string; open: readonly Call[] }
  /** The finalizer and the worktrees of a run that ends, or of a session that closes: then there is no outcome. */
  | { type: 'end'; key: string; outcome: Outcome | null }
>
/**
 * `clear` asks whether the call may start: it lands as its intent, or as a denial. `edit` admits the arguments that a
 * person gave in place of the model's: it lands as a review. Neither has an intent of its own.
 */
type RunMode = 'edit' | 'clear' | 'execute' | 'reconcile'
/** What a session that rests is waiting for. */
export type Waiting = 'input' | 'approval' | 'answer' | 'retry' | 'resume' | 'nothing'

/** Nothing is to be done now. `until` is when to look again, if nobody comes before. */
export type Rest = Frozen<{
  /** Tells it from the other decisions. */
  type: 'rest'
  /** What the session waits for. */
  waiting: Waiting
  /** When to look again, if no message comes before. Null: the session does not go on by itself. */
  until: number | null
}>
/** What `next` returns: write these events, perform these effects and stop those, or rest. */
export type Decision = Frozen<
  /** The harness decides these facts itself. */
  | { type: 'record'; events: readonly OwnerBody[] }
  /** The outside world must answer. Open effects listed in `stop` are aborted, and still awaited. */
  | { type: 'perform'; effects: readonly Effect[]; stop: readonly Effect[]; reason?: StopReason; until: number | null }
  | Rest
>

/**
 * What must happen to a session now: an event to be written, effects to be performed, or nothing until something
 * comes. Pure.
 */
export function next(s: Session, here: Here): Decision {
  if (!s.created || s.closed) return rest('nothing')
  if (s.held) return rest('resume')
  if (!s.run) return openRunOrRest(s, here)
  if (s.run.ending) return endRun(s, s.run, s.run.ending, here)
  const why = whyRunStops(s, s.run, here)
  const lost = lossEvents(s.run, here, why !== null)
  if (lost.length > 0) return record(lost)
  if (why) return stopRun(s, s.run, why, here)
  if (s.run.foreign)
    return perform([{ type: 'review', key: `review:${s.run.seq}`, open: s.run.turn?.open.slice() ?? [] }], null)
  if (s.run.model) return awaitReply(s, s.run, s.run.model, here)
  if (s.run.turn && s.run.turn.open.length > 0) return advanceCalls(s, s.run, s.run.turn, here)
  return requestOrSettle(s, s.run, here)
}

function openRunOrRest(s: Session, here: Here): Decision {
  if (s.inputs.some((input) => input.seq < s.stop)) return record([buildRunSettled(s, { type: 'interrupted' })])
  if (s.closing) return closeSession(s)
  if (s.paused) return rest('resume')
  const inputs = dueBy(s.inputs, here.now)
  const wakes = dueBy(s.wakes, here.now)
  const [first] = [...inputs, ...wakes]
  if (!first) return rest('input', earliestTime([...s.inputs, ...s.wakes].map(({ due = 0 }) => due)))
  const { retryAt = 0, at = 0 } = s.deferred ?? {}
  if (mustStillWait(retryAt, at, here.now)) return rest('retry', retryAt)
  const { report } = inputs.find((input) => !input.report) ?? inputs[0] ?? {}
  if (report && mustStillWait(report.until, report.at, here.now)) return rest('input', report.until)
  const key = `prepare:${first.seq}`
  return perform([{ type: 'prepare', key, inputs: inputsForRun(inputs), wakes }], null)
}

/** A session with a folder may have worktrees to sweep. The interrupt that closes it is the intent of that. */
function closeSession({ folder }: Session): Decision {
  return folder === undefined
    ? record([{ type: 'session.closed' }])
    : perform([{ type: 'end', key: 'end:close', outcome: null }], null)
}

/** How many attempts may be lost while a run ends. After that the run settles without its finalizer. */
const ENDINGS_MAX = 3

/** The end of a run may be performed again: a finalizer only reads, and a sweep removes what nobody needs. */
function endRun(s: Session, run: Run, { outcome, epoch, tries }: NonNullable<Run['ending']>, here: Here): Decision {
  if (epoch === here.epoch) return perform([{ type: 'end', key: `end:${run.seq}`, outcome }], null)
  return record([tries < ENDINGS_MAX ? { type: 'run.ending', outcome } : buildRunSettled(s, outcome)])
}

/** An intent is closed only by its own flight or by a loss. A loss is recorded here, when a newer attempt looks. */
function lossEvents(run: Run, here: Here, stop: boolean): readonly OwnerBody[] {
  const events: OwnerBody[] = []
  if (run.model && run.model.epoch < here.epoch) {
    const message = 'The worker was lost during the call.'
    events.push({ type: 'model.failed', class: 'lost', message, retryable: true })
  }
  for (const { key, state, proposal } of run.turn?.open ?? []) {
    // A call that ran elsewhere is left to the review: the imported log cannot decide whether it may run again.
    if (state.type !== 'running' || state.epoch >= here.epoch || (run.foreign && !stop)) continue
    if (proposal.effect === 'once') {
      if (!proposal.reconcile) events.push(unknownResult(key))
    } else if (stop || lossesBy(run, here.epoch) >= run.limits.lossesMax)
      events.push(failedResult(key, 'aborted', 'The run ended before this call could be repeated.'))
    else events.push({ type: 'agent.tool_use', call: key })
  }
  return events
}

/**
 * Stops everything in flight and waits for it. When nothing is in flight, gives every call its result and settles the
 * run.
 */
function stopRun(s: Session, run: Run, why: Outcome, here: Here): Decision {
  const flying = run.model ? [requestEffect(run.model, run)] : callEffects(run.turn, here)
  const reason = why.type === 'limit' ? 'limit' : 'interrupted'
  if (flying.length > 0) return { type: 'perform', effects: [], stop: flying, reason, until: null }
  const text = why.type === 'limit' ? 'Not run: a limit was reached.' : 'Not run: the run was interrupted.'
  return record([...(run.turn?.open ?? []).map((call) => closingResult(call, text)), buildRunSettled(s, why)])
}

function awaitReply(s: Session, run: Run, model: NonNullable<Run['model']>, here: Here): Decision {
  const call = requestEffect(model, run)
  const until = activeDeadline(s, run, here)
  return whyReplyStops(s, here) === 'superseded'
    ? { type: 'perform', effects: [], stop: [call], reason: 'superseded', until }
    : perform([call], until)
}

function advanceCalls(s: Session, run: Run, turn: Turn, here: Here): Decision {
  const decided: OwnerBody[] = []
  const asked: Call[] = []
  const edits: Effect[] = []
  let away = 0
  for (let i = 0; i < turn.open.length; i++) {
    const call = turn.open[i] as Call
    const result = resultWithoutEffect(s, turn, call, here.now)
    if (result) decided.push(result)
    else if (call.state.type === 'asked') asked.push(call)
    else if (call.state.type === 'edited') edits.push({ type: 'run', key: `edit:${call.key}`, call, mode: 'edit' })
    else if (call.state.type === 'outside' && outsideOf(call.proposal)?.child) away += 1
  }
  if (decided.length > 0) return record(decided)
  const runs = callEffects(turn, here)
  if (!s.paused) runs.push(...edits)
  if (asked.length + edits.length === 0 && !s.paused) {
    const starts = pickStartableCalls(run, turn, runs.length + away)
    const intents: OwnerBody[] = []
    for (const call of starts) if (!call.proposal.clear) intents.push(intentOf(call))
    if (intents.length > 0) return record(intents)
    for (const call of starts) runs.push({ type: 'run', key: `clear:${call.key}`, call, mode: 'clear' })
  }
  if (runs.length > 0) return perform(runs, activeDeadline(s, run, here))
  if (s.paused) return rest('resume')
  return rest(asked.length > 0 ? 'approval' : 'answer', earliestTime(turn.open.map((call) => expiresAt(call) + 1)))
}

/**
 * The calls that may start now: one if any call is sequential, else up to the limit. Children count toward the limit,
 * questions to people do not.
 */
function pickStartableCalls(run: Run, turn: Turn, running: number): readonly Call[] {
  let width = run.limits.parallel
  for (const { proposal } of turn.open) if (proposal.sequential) width = 1
  let free = width - running
  const starts: Call[] = []
  for (const call of turn.open) {
    if (call.state.type !== 'ready') continue
    const outside = outsideOf(call.proposal)
    if ((outside && !outside.child) || free-- > 0) starts.push(call)
  }
  return starts
}

function requestOrSettle(s: Session, run: Run, here: Here): Decision {
  const verdict = run.turn?.verdict
  const inputs = inputsForRequest(s)
  if (verdict?.type === 'final' && inputs.length === 0) return record([buildRunSettled(s, { type: 'completed' })])
  if (verdict?.type === 'stop')
    return record([buildRunSettled(s, verdict.as ?? { type: 'halted', reason: verdict.reason })])
  const no = whyNoRequest(run)
  if (no) return record([buildRunSettled(s, no)])
  if (s.paused) return rest('resume')
  if (run.retryAt > 0 && mustStillWait(run.retryAt, run.trouble?.at ?? 0, here.now)) return rest('retry', run.retryAt)
  const correction = verdict?.type === 'retry_user_message' ? verdict.text : null
  const shows = s.unshown.slice()
  shows.push(...(run.turn?.results ?? []), ...s.notes)
  if (correction !== null) shows.push(s.seq + 1)
  for (const { seq } of inputs) shows.push(seq)
  const started: Mutable<Extract<OwnerBody, { type: 'model.started' }>> = { type: 'model.started', shows }
  if (run.limits.hold > 0) started.held = run.limits.hold
  if (verdict?.type === 'empty') started.boost = true
  return record(
    correction === null ? [started] : [{ type: 'note.added', kind: 'correction', text: correction }, started],
  )
}

function requestEffect(model: NonNullable<Run['model']>, run: Run): Effect {
  return { type: 'call', key: `call:${model.seq}`, seq: model.seq, deadline: model.at + run.limits.modelMs }
}

function callEffects(turn: Turn | null, here: Here): Effect[] {
  const effects: Effect[] = []
  for (const call of turn?.open ?? []) {
    if (call.state.type !== 'running') continue
    const mode = call.state.epoch < here.epoch ? 'reconcile' : 'execute'
    effects.push({ type: 'run', key: `run:${call.key}`, call, mode })
  }
  return effects
}

function record(events: readonly OwnerBody[]): Decision {
  return { type: 'record', events }
}

function perform(effects: readonly Effect[], until: number | null): Decision {
  return { type: 'perform', effects, stop: [], until }
}

function rest(waiting: Waiting, until: number | null = null): Decision {
  return { type: 'rest', waiting, until }
}
