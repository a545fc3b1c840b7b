// The ledger of calls: the states of a call from proposal to result. Pure transitions, no decisions.
import type { CallKey, Frozen, Gate, Json, Mutable, Outside, Proposal, CallTerms, Verdict } from './content.ts'
import { writerTime } from './clock.ts'
import { type ArgumentsEdit, callKey, type EventOf, type OwnerBody, type OwnerEvent } from './event.ts'
import { assert, Bug } from './failure.ts'

/** How a call of the open turn stands: whether it may run, waits for somebody, runs, or has its result. */
export type CallState = Frozen<
  | { type: 'ready' }
  /** `since` is the seq of the review that asked. Without it, the reply itself asked. */
  | { type: 'asked'; votes: readonly string[]; since?: number }
  | { type: 'denied'; by: string; why: string }
  /** A person allowed the call with other arguments, in the confirmation at `seq`. The owner must admit them first. */
  | ({ type: 'edited'; seq: number; by: string; role: string } & ArgumentsEdit)
  /** The intent is on disk. `tries` counts the attempts that were lost with their worker. */
  | { type: 'running'; epoch: number; tries: number }
  | { type: 'outside' }
  | { type: 'answered'; seq: number; ok: boolean }
>

/** A call of the open turn. */
export type Call = Frozen<{
  /** The key of the call, which is also its idempotency key. */
  key: CallKey
  /** The place of the call in its reply, from 0. */
  index: number
  /** The call as it was admitted, with the arguments that run. */
  proposal: Proposal
  /** How the call stands. */
  state: CallState
  /** The person who changed the arguments, and those of the model. Absent if they were not changed. */
  edited?: EditRecord
}>
export type EditRecord = Frozen<{ by: string; args: Json }>

/** A reply whose calls are in progress. */
export type Turn = Frozen<{
  /** The seq of the reply. */
  seq: number
  /** What the reply means. */
  verdict: Verdict
  /** The calls that have no result yet. */
  open: readonly Call[]
  /** For each call the seq of its result, 0 while it has none. */
  results: readonly number[]
  /** The calls would exceed the limit of tool calls, so none of them runs. */
  over: boolean
  /** The reply stopped at the length limit of an answer. */
  cut?: true
  /** The tools that have used a retry in this reply: one each, however many of their calls failed. */
  retried?: readonly string[]
}>

/**
 * The decisions of people in this run that matter for later calls: approvals that cover more than one call, and
 * denials.
 */
export type RunConsent = Frozen<{ yes: readonly WideApproval[]; denied: readonly string[] }>
/**
 * `rule` says which calls it covers, in the `place` of its own call. Code outside the kernel reads the rule. It stays
 * valid until a person denies any call.
 */
export type WideApproval = Frozen<{ call: CallKey; by: string; rule: Json; place: string }>

export type OpenTurn = Omit<Mutable<Turn>, 'open' | 'results'> & { open: Call[]; results: number[] }

export function openTurn(e: Extract<OwnerEvent, { type: 'agent.message' }>, over: boolean): OpenTurn {
  // Loops instead of `map`: optimised code gives mapped arrays another shape, and everything compiled for the first
  // shape is lost.
  const open: Call[] = []
  const results: number[] = []
  for (const proposal of e.calls) {
    const state: CallState = proposal.gate?.type === 'ask' ? { type: 'asked', votes: [] } : READY
    open.push({ key: callKey(e.seq, open.length), index: open.length, proposal, state })
    results.push(0)
  }
  const turn: OpenTurn = { seq: e.seq, verdict: e.verdict, open, results, over }
  if (e.finish === 'length') turn.cut = true
  return turn
}

export function copyTurn(turn: Turn): OpenTurn {
  return { ...turn, open: turn.open.slice(), results: turn.results.slice() }
}

/**
 * Only an open question is decided: once, in time, and for the exact action shown. A denial ends every wider approval
 * of the run.
 */
export function applyDecision(turn: OpenTurn, e: EventOf<'user.tool_confirmation'>, run: { said?: RunConsent }): void {
  const i = turn.open.findIndex((c) => c.key === e.call)
  const call = turn.open[i]
  if (call?.state.type !== 'asked' || call.proposal.gate?.type !== 'ask') return
  const { gate, digest } = call.proposal
  if (digest !== e.digest) return
  if (gate.expiresAt !== null && writerTime(e) > gate.expiresAt) return
  if (!hasRole(gate, e.role)) return
  const said = run.said ?? UNSAID
  if (!e.allow) {
    run.said = { yes: [], denied: [...said.denied, sameCallKey(call.proposal)] }
    return setCallState(turn, i, { type: 'denied', by: e.by, why: e.why ?? '' })
  }
  if (e.under !== undefined && !coveringApprovals(call, said).some((yes) => yes.call === e.under)) return
  if (e.edit ? e.under !== undefined : call.state.votes.includes(e.by)) return
  const votes = [...call.state.votes, e.by]
  if (e.scope === 'run' && isCoverable(call, UNSAID))
    run.said = {
      ...said,
      yes: [...said.yes, { call: call.key, by: e.by, rule: e.remember ?? null, place: call.proposal.place ?? '' }],
    }
  if (e.edit) return setCallState(turn, i, { type: 'edited', seq: e.seq, by: e.by, role: e.role ?? '', ...e.edit })
  setCallState(turn, i, votes.length >= gate.n ? READY : { ...call.state, votes })
}

function hasRole({ roles }: Extract<Gate, { type: 'ask' }>, role = ''): boolean {
  return roles.length === 0 || roles.includes(role)
}

export const UNSAID: RunConsent = { yes: [], denied: [] }

/** The wider approvals that may cover this call: those given for the place where it would act. */
export function coveringApprovals(call: Call, said: RunConsent): readonly WideApproval[] {
  return isCoverable(call, said) ? said.yes.filter(({ place }) => place === (call.proposal.place ?? '')) : []
}

/** Whether an approval of another call may cover this one. Never if the same call was denied in this run. */
function isCoverable({ proposal }: Call, { denied }: Pick<RunConsent, 'denied'>): boolean {
  const { gate } = proposal
  if (gate?.type !== 'ask' || gate.each || gate.n > 1 || gate.roles.length > 0) return false
  return !denied.includes(sameCallKey(proposal))
}

/** Older logs do not record which calls do the same. There only calls with equal digests do. */
function sameCallKey({ same, digest = '' }: Proposal): string {
  return same ?? digest
}

/**
 * A late or second answer stays in the log and changes nothing. The exception: if a person denied something to a child,
 * wider approvals end here too.
 */
export function applyAnswer(
  turn: OpenTurn | null,
  e: EventOf<'user.custom_tool_result'>,
  run: { said?: RunConsent },
): void {
  if (e.denied) run.said = { yes: [], denied: [...(run.said ?? UNSAID).denied, e.call] }
  if (!turn) return
  const i = turn.open.findIndex((c) => c.key === e.call)
  const call = turn.open[i]
  if (call?.state.type === 'outside') setCallState(turn, i, { type: 'answered', seq: e.seq, ok: e.ok })
}

/** True if an attempt that was lost had started the call before. */
export function startCall(turn: OpenTurn, key: CallKey, epoch: number): boolean {
  const i = findOpenCall(turn, key)
  const { state, proposal } = turn.open[i] as Call
  const again = state.type === 'running' && state.epoch < epoch && proposal.effect !== 'once'
  if (state.type !== 'ready' && !again) assert(false, `call ${key} (${proposal.effect}) was started from ${state.type}`)
  setCallState(turn, i, { type: 'running', epoch, tries: state.type === 'running' ? state.tries + 1 : 0 })
  return again
}

/**
 * A review replaces the terms of the call, whatever was decided before and even if it had begun. A decision that edited
 * the call counts only for the edited call, if that is what was reviewed and the person may decide it. Earlier
 * approvals were for another call.
 */
export function applyCallReview(turn: OpenTurn, e: Extract<OwnerEvent, { type: 'call.reviewed' }>): void {
  const { type: _type, seq, at: _at, wall: _wall, epoch: _epoch, call, edit: confirmed, ...terms } = e
  const i = findOpenCall(turn, call)
  const { key, index, proposal, state: before, edited: earlier } = turn.open[i] as Call
  const { id, tool, args, raw } = proposal
  if (!REVIEWED.has(before.type)) assert(false, `call ${key} was reviewed when ${before.type}`)
  const edit = before.type === 'edited' && before.seq === confirmed && before
  const said = { id, tool, args: edit ? edit.args : args, ...(!edit && raw !== undefined && { raw }) }
  const edited = edit ? { by: edit.by, args: earlier?.args ?? args } : earlier
  const state = reviewedState(terms, edit, seq)
  turn.open[i] = { key, index, proposal: { ...said, ...terms }, state, ...(edited && { edited }) }
}

const REVIEWED: ReadonlySet<string> = new Set<CallState['type']>(['ready', 'asked', 'running', 'edited'])
type EditedState = Extract<CallState, { type: 'edited' }>

function reviewedState(terms: ReviewedTerms, edit: EditedState | false, seq: number): CallState {
  if (terms.gate?.type !== 'ask') return READY
  const votes = edit && isVoteCounted(terms, edit) ? [edit.by] : []
  return votes.length >= terms.gate.n ? READY : { type: 'asked', votes, since: seq }
}

type ReviewedTerms = Pick<CallTerms, 'gate' | 'digest'>

/** Whether the decision of the person who edited the call counts as a vote under these terms. */
function isVoteCounted(
  { gate, digest }: ReviewedTerms,
  edit: Pick<EditedState, 'digest'> & { readonly role?: string },
): boolean {
  return edit.digest === digest && (gate?.type !== 'ask' || hasRole(gate, edit.role))
}

/** Whether more votes are needed after the edit was admitted under these terms. */
export function isAskedAfterEdit(terms: ReviewedTerms, confirmed: EventOf<'user.tool_confirmation'>): boolean {
  const { edit, role = '' } = confirmed
  return (
    terms.gate?.type === 'ask' && (terms.gate.n > 1 || !edit || !isVoteCounted(terms, { digest: edit.digest, role }))
  )
}

export function handOutCall(turn: OpenTurn, key: CallKey): void {
  const i = findOpenCall(turn, key)
  assert(turn.open[i]?.state.type === 'ready', 'a call was handed out that was not ready')
  setCallState(turn, i, { type: 'outside' })
}

/** The gate of a call that does not run here but is answered by a person, a child or a program. */
export function outsideOf({ gate }: Pick<Proposal, 'gate'>): Outside | undefined {
  return gate?.type === 'ask' ? gate.outside : gate?.type === 'outside' ? gate : undefined
}

export function intentOf({ key, proposal }: Call): OwnerBody {
  return { type: outsideOf(proposal) ? 'agent.custom_tool_use' : 'agent.tool_use', call: key }
}

export function settleCall(turn: OpenTurn, key: CallKey, seq: number): Call {
  const i = findOpenCall(turn, key)
  const call = turn.open[i] as Call
  turn.open.splice(i, 1)
  turn.results[call.index] = seq
  return call
}

const READY: CallState = { type: 'ready' }

/**
 * Looks first at the call's original place, and compares indexes: in a turn with many calls, comparing keys would cost
 * more than everything else.
 */
function findOpenCall(turn: OpenTurn, key: CallKey): number {
  const index = Number(key.slice(key.indexOf('.') + 1))
  let i = turn.open[index]?.index === index ? index : 0
  while (i < turn.open.length && turn.open[i]?.index !== index) i += 1
  if (turn.open[i]?.key !== key) throw new Bug(`call ${key} is not open`)
  return i
}

function setCallState(turn: OpenTurn, i: number, state: CallState): void {
  turn.open[i] = { ...(turn.open[i] as Call), state }
}
