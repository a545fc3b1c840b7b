// How much of a landing the log keeps, and the decisions right before a request. Pure, as `next` is; the rows of its
// table are in next.ts.
import type { Account, Frozen, Json, Outcome, Shortage, WorktreeReport } from './content.ts'
import type { AgentToolResult, AgentToolUse, ContextCompacted, OwnerBody, RunSettled, WakeScheduled } from './event.ts'
import type { Call, CallState } from './ledger.ts'
import { type Here, whyRunStops, type StopReason, whyReplyStops } from './limits.ts'
import { type Decision, type Effect, next, type Rest } from './next.ts'
import { buildRunSettled } from './result.ts'
import { type Session, WAKES_MAX } from './session.ts'

/** Whether the log says that the effect started. */
export function hasIntent(effect: Effect): boolean {
  return effect.type === 'call' || (effect.type === 'run' && effect.mode !== 'clear' && effect.mode !== 'edit')
}

export function openCall(s: Session, key: string): Call | undefined {
  return s.run?.turn?.open.find((call) => call.key === key)
}

/**
 * How much of a landing the log takes, by its first event: all of it, nothing, or, for a reply that came after a stop,
 * only its cost and its text (then the reason of the stop is returned).
 */
export function judgeLanding(
  s: Session,
  effect: Effect,
  first: OwnerBody | undefined,
  here: Here,
): 'keep' | 'drop' | StopReason {
  if (effect.type === 'call') return whyReplyStops(s, here) ?? 'keep'
  return hasIntent(effect) || (isWanted(s, effect, here) && !waitsForSibling(s, first)) ? 'keep' : 'drop'
}

/** An effect without an intent counts only if it is still wanted when it lands. */
function isWanted(s: Session, effect: Effect, here: Here): boolean {
  if (effect.type === 'run') {
    const { state } = openCall(s, effect.call.key) ?? {}
    const waits = effect.mode === 'edit' ? isSameEdit(state, effect.call.state) : state?.type === 'ready'
    return waits && s.run !== null && !s.paused && whyRunStops(s, s.run, here) === null
  }
  const decision = next(s, here)
  const wanted = decision.type === 'perform' ? decision.effects.find(({ key }) => key === effect.key) : undefined
  if (wanted === undefined) return false
  // A run that was about to complete went on with a message, and ends in another way now.
  if (wanted.type === 'end' && effect.type === 'end') return wanted.outcome?.type === effect.outcome?.type
  // A wake that was dropped since begins no run, even if another one with its key waits now.
  return effect.type !== 'prepare' || effect.wakes.every((wake) => s.wakes.some(({ seq }) => seq === wake.seq))
}

function isSameEdit(now: CallState | undefined, then: CallState): boolean {
  return now?.type === 'edited' && then.type === 'edited' && now.seq === then.seq
}

/**
 * A call that was allowed while a sibling was asked about again does not start. It is checked once more after the
 * answer.
 */
function waitsForSibling(s: Session, first: OwnerBody | undefined): boolean {
  if (first?.type !== 'agent.tool_use' && first?.type !== 'agent.custom_tool_use') return false
  return s.run?.turn?.open.some(({ state }) => state.type === 'asked' || state.type === 'edited') === true
}

/** A landed event as the log keeps it, given what came since its effect began. Most events stay as they are. */
export function completeLanding(s: Session, body: OwnerBody): OwnerBody {
  if (body.type === 'wake.scheduled') return boundWakes(s, body)
  // The inputs that the end of a run consumes are those of the moment it is written.
  if (body.type === 'run.settled' && s.run?.ending) return { ...body, ...buildRunSettled(s, body.outcome) }
  return body
}

/** The wake, or a note for the model that it was dropped because too many wait. */
function boundWakes({ wakes, run }: Session, body: WakeScheduled): OwnerBody {
  const wake = run?.options === undefined ? body : { ...body, options: run.options }
  if (wakes.some(({ key }) => key === body.key)) return wake
  const most = run?.limits.wakes ?? Number.POSITIVE_INFINITY
  if ((run?.wakes ?? 0) >= most)
    return wakeNotKept(`this run asked for ${most} wakes already, which is the most of one run`)
  return wakes.length < WAKES_MAX ? wake : wakeNotKept(`${WAKES_MAX} wakes wait already`)
}

function wakeNotKept(why: string): OwnerBody {
  return { type: 'note.added', kind: 'limit', text: `A wake was not kept: ${why}.` }
}

/** The account whose money does not cover a request. */
export type Shortfall = { readonly account?: Account; readonly short?: Shortage }

/** Advice before a request: a note for the model, how the run must end instead, or that a hook has not answered yet. */
export type RequestAdvice =
  | { readonly type: 'note'; readonly kind: 'limit' | 'nudge' | 'context'; readonly text: string }
  | { readonly type: 'settle'; readonly outcome: Outcome }
  /** Old results are cleared first. */
  | { readonly type: 'compact'; readonly body: ContextCompacted }
  | { readonly type: 'wait' }

/** Whether guard and hooks are asked before these events are recorded. Asking starts a hook, so it must be needed. */
export function needsAdvice(planned: readonly OwnerBody[], shortfall: Shortfall | null): boolean {
  const last = planned[planned.length - 1]
  return last?.type === 'model.started' ? shortfall === null : last !== undefined && isOutOfRequests(last)
}

/** The events to record, given the events that `next` planned and the advice; `wait`: nothing yet. */
export function decideRequest(
  s: Session,
  planned: readonly OwnerBody[],
  shortfall: Shortfall | null,
  advice: RequestAdvice | null,
): readonly OwnerBody[] | 'wait' {
  // A request, and the end of a run, are always the last event planned.
  const asks = planned[planned.length - 1]?.type === 'model.started'
  if (asks && shortfall) return [buildRunSettled(s, { type: 'limit', limit: 'usd', ...shortfall })]
  // A run that made no progress and is out of requests settles as halted, with the reason.
  if (advice?.type === 'settle' && (asks || advice.outcome.type === 'halted'))
    return [buildRunSettled(s, advice.outcome)]
  if (!asks || advice === null || advice.type === 'settle') return planned
  if (advice.type === 'wait') return 'wait'
  if (advice.type === 'compact') return [advice.body]
  return [{ type: 'note.added', kind: advice.kind, text: advice.text }]
}

/**
 * When `next` or advice ends a run that has a finalizer or worktrees, the end is announced first. The effect `end` runs
 * them and lands as the end itself.
 */
export function announceEnd(
  s: Session,
  events: readonly OwnerBody[],
  hasEndWork: (s: Session, outcome: Outcome) => boolean,
): readonly OwnerBody[] {
  const last = events[events.length - 1]
  if (last?.type !== 'run.settled' || s.run === null || s.run.ending || !hasEndWork(s, last.outcome)) return events
  return [...events.slice(0, -1), { type: 'run.ending', outcome: last.outcome }]
}

function isOutOfRequests(body: OwnerBody): boolean {
  return body.type === 'run.settled' && body.outcome.type === 'limit' && body.outcome.limit === 'model_requests'
}

/**
 * A call that is begun again, or closed by something other than its own flight: calls that were running when an attempt
 * writes its first events are lost. The lost attempt may have asked models, and cannot report the cost.
 */
export function givesUpCall(body: OwnerBody, firstOfAttempt: boolean): body is AgentToolUse | AgentToolResult {
  if (body.type === 'agent.tool_use') return firstOfAttempt
  if (body.type !== 'agent.tool_result') return false
  return firstOfAttempt || body.status === 'aborted' || body.status === 'timeout' || body.status === 'unknown'
}

/** A worker stays for a short wait for a provider, or for more reports of children; else it gives the session back. */
export function givesBack(s: Session, { waiting, until }: Rest, now: number, lingerMs: number): boolean {
  const short = waiting === 'retry' || (waiting === 'input' && s.inputs.some(({ report }) => report !== undefined))
  return !short || until === null || until - now > lingerMs
}

/** A wait for a provider does not get longer when the machine's clock was set back during the attempt. */
export function shiftRetry<D extends Decision>(decision: D, setByMs: number): D {
  if (decision.type !== 'rest' || decision.waiting !== 'retry' || decision.until === null) return decision
  return setByMs > -SET_MS_MIN ? decision : { ...decision, until: decision.until + setByMs }
}
const SET_MS_MIN = 1_000

/** The run that is settled now, by the seq of its start. A run that was held back before it began has only an end. */
export function settledRun({ run, seq }: Session): number {
  return run?.seq ?? seq + 1
}

/** How a run ended, for the report of a child to its parent. */
export type RunEnd = Frozen<{
  outcome: Outcome
  /** The value that the answer's schema made of it, or that of the finalizer of a stopped run. */
  output: Json | undefined
  /** A description of its worktree, for the parent. */
  workspace: WorktreeReport | undefined
  requests: number
  toolCalls: number
  /**
   * The name of the model whose provider refuses: no key, no access, or no money there. Null for none: temporary
   * trouble is no refusal.
   */
  barred: string | null
  /** The last reply was cut at its length limit. */
  cut: boolean
  /** A person denied one of the run's calls, or one of a child below it. */
  denied: boolean
  /** seq of the run's start, and of its end. */
  began: number
  seq: number
}>

/** The end of the open run, right before it is folded. */
export function runEnd(
  s: Session,
  { outcome, output: finalized, workspace }: RunSettled,
  modelName: (s: Session) => string,
): RunEnd {
  const { run, seq, denied: before = false } = s
  const { requests = 0, toolCalls = 0, turn = null } = run ?? {}
  const output = turn?.verdict.type === 'final' ? turn.verdict.output : finalized
  const barred = outcome.type === 'failed' && outcome.class === 'auth' ? modelName(s) : null
  const cut = turn?.cut === true && output === undefined
  const denied = before || (run?.said?.denied.length ?? 0) > 0
  return { outcome, output, workspace, requests, toolCalls, barred, cut, denied, began: settledRun(s), seq: seq + 1 }
}
