// The calls of a session from its log: each proposal with its intents, its decision, its answer and its result. Pure.
// It shows the past; only the kernel decides the next step.
import type { BlobRef, CallKey, Frozen, Json, Proposal, CallTerms } from '../kernel/content.ts'
import { callKey, type Event, type EventOf } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY } from '../kernel/session.ts'

/** One call, and the events about it so far. */
export type LoggedCall = {
  /** The key of the call. */
  readonly key: CallKey
  /** The reply that proposed it. */
  readonly reply: EventOf<'agent.message'>
  /** The call as it was admitted. */
  readonly proposal: Proposal
  /** The terms of the proposal, or of its last review. */
  terms: Pick<CallTerms, 'gate'>
  /** Its first intent, and how many there were: more than one after a worker was lost. */
  intent: EventOf<'agent.tool_use' | 'agent.custom_tool_use'> | null
  /** How many intents there were: more than one after a worker was lost. */
  starts: number
  /** Its result. Null while it is open. */
  result: EventOf<'agent.tool_result'> | null
  /** The answer from outside that its result repeats. */
  answer: EventOf<'user.custom_tool_result'> | null
  /** A person changed its arguments, and the call was admitted with these. */
  edit: CallEdit | null
}

/** The person who changed the arguments of a call, and the new arguments. */
export type CallEdit = Frozen<{ by: string; args: Json }>

/** The calls of a session as they stand in its log, for pages that show one after another. */
export class CallLog {
  readonly #calls = new Map<CallKey, LoggedCall>()
  readonly #answers = new Map<number, EventOf<'user.custom_tool_result'>>()
  readonly #edits = new Map<number, CallEdit>()

  /** In the order of the proposals. */
  get all(): readonly LoggedCall[] {
    return [...this.#calls.values()]
  }

  /** The call with this key. Undefined if no reply proposed it. */
  at(key: CallKey): LoggedCall | undefined {
    return this.#calls.get(key)
  }

  /** Takes the next event. Returns the calls it proposes, or the known call it refers to. */
  take(e: Event): readonly LoggedCall[] {
    if (e.type === 'agent.message') return e.calls.map((proposal, index) => this.#propose(e, proposal, index))
    const call = 'call' in e ? this.#calls.get(e.call) : undefined
    if (!call) return []
    if (e.type === 'agent.tool_use' || e.type === 'agent.custom_tool_use') {
      call.intent ??= e
      call.starts += 1
    } else if (e.type === 'call.reviewed') {
      call.terms = e
      call.edit = this.#edits.get(e.edit ?? 0) ?? call.edit
    } else if (e.type === 'user.tool_confirmation') {
      if (e.edit) this.#edits.set(e.seq, { by: e.by, args: e.edit.args })
    } else if (e.type === 'user.custom_tool_result') this.#answers.set(e.seq, e)
    else if (e.type === 'agent.tool_result') {
      call.result = e
      call.answer = this.#answers.get(e.from ?? 0) ?? null
      this.#answers.delete(e.from ?? 0)
    }
    return [call]
  }

  #propose(reply: EventOf<'agent.message'>, proposal: Proposal, index: number): LoggedCall {
    const key = callKey(reply.seq, index)
    const call = {
      key,
      reply,
      proposal,
      terms: proposal,
      intent: null,
      starts: 0,
      result: null,
      answer: null,
      edit: null,
    }
    this.#calls.set(key, call)
    return call
  }
}

/** What a call returned, where it stands: in its result, or in the answer from outside that the result repeats. */
export function contentOf({ answer, result }: Pick<LoggedCall, 'answer' | 'result'>): string | BlobRef {
  return answer?.content ?? result?.content ?? ''
}

/** What people decided about a call. */
export type DecisionRecord = Frozen<{
  /** False: the call was denied. */
  allow: boolean
  /** Whose decision made it count: the last one, if several had to approve. */
  by: string
  /** The reason that this person gave. Absent for none. */
  why?: string
  /** All people whose votes counted, if more than one approval was needed. */
  voters?: readonly string[]
}>

/** What people decided about a call, and which of it counted. */
export type CallDecision = {
  /** The name of the tool. */
  readonly tool: string
  /** Every confirmation that counted, in order, including votes for a call that is not decided yet. */
  readonly counted: EventOf<'user.tool_confirmation'>[]
  /** Null while it is open, and after it was asked about again. */
  decided: DecisionRecord | null
}

/**
 * The decisions on calls, in order. The fold says which confirmations count: some come too late, twice, or for another
 * action.
 */
export function decisionsIn(events: readonly Event[]): ReadonlyMap<CallKey, CallDecision> {
  const decisions = new Map<CallKey, CallDecision>()
  if (!events.some(({ type }) => type === 'user.tool_confirmation')) return decisions
  const session = open(EMPTY)
  const find = (key: CallKey) => session.run?.turn?.open.find((call) => call.key === key)
  for (const event of events) {
    const before = event.type === 'user.tool_confirmation' ? find(event.call) : undefined
    // These may be the events of one run, without those before or between.
    session.seq = event.seq - 1
    take(session, event)
    // Decisions made elsewhere, or before the call was asked about again, do not count here.
    if (event.type === 'session.imported') for (const decision of decisions.values()) decision.decided = null
    const reviewed = event.type === 'call.reviewed' ? decisions.get(event.call) : undefined
    // A decision that edited the call counts for the edited call, unless others are still asked.
    const stands =
      event.type === 'call.reviewed' && event.edit !== undefined && find(event.call)?.state.type !== 'asked'
    if (reviewed && !stands) reviewed.decided = null
    if (event.type !== 'user.tool_confirmation' || before?.state.type !== 'asked') continue
    const after = find(event.call)
    if (after?.state === before.state) continue
    const { gate, tool } = before.proposal
    const decision = decisions.get(event.call) ?? { tool, counted: [], decided: null }
    decisions.set(event.call, decision)
    // Approvals of the original call are no approvals of the edited one.
    if (event.edit) decision.counted.length = 0
    decision.counted.push(event)
    if (after?.state.type === 'asked') continue
    const { allow, by, why } = event
    const voters = gate?.type === 'ask' && gate.n > 1 ? { voters: [...before.state.votes, by] } : {}
    decision.decided = { allow, by, ...(why === undefined ? {} : { why }), ...voters }
  }
  return decisions
}
