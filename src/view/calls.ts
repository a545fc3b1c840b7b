// The calls of a session as its log has them: each proposal with its intents, its decision, its answer and its result, and what
// still waits for somebody. Pure. It shows what happened; what happens next is decided by the kernel alone.
import type { BlobRef, CallKey, Frozen, Json, Outcome, Proposal, Shortage, Terms } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { open, take } from '../kernel/fold.ts'
import { type Call, outsideOf, type Said } from '../kernel/ledger.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import type { Card } from '../ports/store.ts'
import { usdOf } from './usd.ts'

type Of<T extends Event['type']> = Extract<Event, { type: T }>

/** One call, and the events about it so far. */
export type LoggedCall = {
  readonly key: CallKey
  readonly reply: Of<'agent.message'>
  readonly proposal: Proposal
  /** Those of the proposal, or of its last review. */
  terms: Pick<Terms, 'gate'>
  /** The first of its intents, and how many there were: more than one after a worker was lost. */
  intent: Of<'agent.tool_use' | 'agent.custom_tool_use'> | null
  starts: number
  result: Of<'agent.tool_result'> | null
  /** The answer from outside that its result repeats. */
  answer: Of<'user.custom_tool_result'> | null
}

export class CallLog {
  readonly #calls = new Map<CallKey, LoggedCall>()
  readonly #answers = new Map<number, Of<'user.custom_tool_result'>>()

  /** In the order they were proposed. */
  get all(): readonly LoggedCall[] {
    return [...this.#calls.values()]
  }

  at(key: CallKey): LoggedCall | undefined {
    return this.#calls.get(key)
  }

  /** Takes the next event. Returns the calls it proposes, or the known call it is about. */
  take(e: Event): readonly LoggedCall[] {
    if (e.type === 'agent.message') return e.calls.map((proposal, index) => this.#propose(e, proposal, index))
    const call = 'call' in e ? this.#calls.get(e.call) : undefined
    if (!call) return []
    if (e.type === 'agent.tool_use' || e.type === 'agent.custom_tool_use') {
      call.intent ??= e
      call.starts += 1
    } else if (e.type === 'call.reviewed') call.terms = e
    else if (e.type === 'user.custom_tool_result') this.#answers.set(e.seq, e)
    else if (e.type === 'agent.tool_result') {
      call.result = e
      call.answer = this.#answers.get(e.from ?? 0) ?? null
      this.#answers.delete(e.from ?? 0)
    }
    return [call]
  }

  #propose(reply: Of<'agent.message'>, proposal: Proposal, index: number): LoggedCall {
    const key = callKey(reply.seq, index)
    const call = { key, reply, proposal, terms: proposal, intent: null, starts: 0, result: null, answer: null }
    this.#calls.set(key, call)
    return call
  }
}

export function contentOf({ answer, result }: Pick<LoggedCall, 'answer' | 'result'>): string | BlobRef {
  return answer?.content ?? result?.content ?? ''
}

/** `voters` are all whose yes or no counted, where more than one yes was needed. */
export type Decided = Frozen<{ allow: boolean; by: string; why?: string; voters?: readonly string[] }>

export type CallDecision = {
  readonly tool: string
  /** Every confirmation that counted, in order: also votes for a call that is not decided yet. */
  readonly counted: Of<'user.tool_confirmation'>[]
  /** Null while it is open, and after it was asked anew. */
  decided: Decided | null
}

/** How calls were decided, in order. The fold says which confirmations count: some come too late, twice, or for another action. */
export function decisionsIn(events: readonly Event[]): ReadonlyMap<CallKey, CallDecision> {
  const decisions = new Map<CallKey, CallDecision>()
  if (!events.some(({ type }) => type === 'user.tool_confirmation')) return decisions
  const session = open(EMPTY)
  const find = (key: CallKey) => session.run?.turn?.open.find((call) => call.key === key)
  for (const event of events) {
    const before = event.type === 'user.tool_confirmation' ? find(event.call) : undefined
    // These may be the events of one run: what lies before it and between is not there.
    session.seq = event.seq - 1
    take(session, event)
    // What was decided elsewhere, or before it was asked anew, is no decision here.
    if (event.type === 'session.imported') for (const decision of decisions.values()) decision.decided = null
    const reviewed = event.type === 'call.reviewed' ? decisions.get(event.call) : undefined
    if (reviewed) reviewed.decided = null
    if (event.type !== 'user.tool_confirmation' || before?.state.type !== 'asked') continue
    const after = find(event.call)
    if (after?.state === before.state) continue
    const { gate, tool } = before.proposal
    const decision = decisions.get(event.call) ?? { tool, counted: [], decided: null }
    decisions.set(event.call, decision)
    decision.counted.push(event)
    if (after?.state.type === 'asked') continue
    const { allow, by, why } = event
    const voters = gate?.type === 'ask' && gate.n > 1 ? { voters: [...before.state.votes, by] } : {}
    decision.decided = { allow, by, ...(why === undefined ? {} : { why }), ...voters }
  }
  return decisions
}

/** A call as others see it: which tool, and its arguments as they were admitted. */
export type AnyCall = { readonly tool: string; readonly args: Json }

/** A call that waits for somebody, told apart by `tool` where the tools of the harness are known as types. */
export type Pending<Of extends AnyCall = AnyCall> =
  | (Of extends unknown ? Waiting & Of : never)
  // A session that ended at its budget waits too.
  | (string extends Of['tool'] ? never : Waiting & { readonly tool: typeof BUDGET; readonly args: Json })

type Waiting = Frozen<
  {
    callId: CallKey
    /** `approval`: use `decide`. `answer`: use `answer`. */
    needs: 'approval' | 'answer'
    digest?: string
    expiresAt?: number | null
    /** For an approval: what kind it is, how many people it needs, of which roles, and who said yes so far. */
    class?: string
    n?: number
    roles?: readonly string[]
    votes?: readonly string[]
    /** The session that waits, and the sessions from the top down to it: this one, or children below it. */
    sessionId: string
    path: readonly string[]
    /** What the session that waits has cost so far, in dollars: alone, and with the children below it. */
    costUsd: number
    treeCostUsd: number
    /** For `callId: 'budget'`: how the money stands that does not cover the next call. */
    amounts?: Amounts
  } & Before
>

/** In dollars. `heldUsd` is set aside for calls at work; `neededUsd` is the most that the next call may cost. */
export type Amounts = Frozen<{ limitUsd: number; spentUsd: number; heldUsd: number; neededUsd: number }>

/** What waits, before the costs of the sessions below it are read. */
export type OwnPending = Omit<Pending, 'treeCostUsd'>

/** What people said before in this run about a call that is asked about. */
export type Before = Frozen<{
  /** Asked each time: a yes to another call never covers it. */
  each?: true
  /** A yes for this run, given with that call, covers it. */
  covered?: Frozen<{ call: CallKey; by: string }>
  /** The same call was denied in this run. */
  denied?: true
}>

/** What `decide` takes for a session that ended at its budget. */
export const BUDGET = 'budget'

export function isBroke(outcome: Outcome | null): outcome is Extract<Outcome, { type: 'limit' }> {
  return outcome?.type === 'limit' && outcome.limit === 'usd'
}

/** What a session itself waits for. `path` ends with it. What a rule of an earlier yes covers is for `saidBefore` to judge. */
export function ownPending(
  { run, inputs, last, cost }: Session,
  path: readonly string[],
  saidBefore: (call: Call, said?: Said) => Before,
): readonly OwnPending[] {
  const where = { sessionId: path.at(-1) ?? '', path, costUsd: usdOf(cost) }
  if (run === null && inputs.length === 0 && isBroke(last)) {
    const { account, short } = last
    const args = { ...(account === undefined ? {} : { account }), ...short }
    const amounts = short && { amounts: amountsOf(short) }
    return [{ callId: BUDGET, tool: BUDGET, args, needs: 'approval', ...where, ...amounts }]
  }
  // What came from elsewhere is asked about anew, when it goes on.
  const calls = run?.foreign ? [] : (run?.turn?.open ?? [])
  return calls.flatMap((call): readonly OwnPending[] => {
    const { tool, args, gate, digest } = call.proposal
    const common = { callId: call.key, tool, args, ...where }
    if (call.state.type === 'outside') return isForChild(call) ? [] : [{ ...common, needs: 'answer' }]
    if (call.state.type !== 'asked' || gate?.type !== 'ask') return []
    const { expiresAt, class: kind, n, roles } = gate
    const asked = { expiresAt, class: kind, n, roles, votes: call.state.votes }
    const before = saidBefore(call, run?.said)
    return [{ ...common, needs: 'approval', ...asked, ...before, ...(digest === undefined ? {} : { digest }) }]
  })
}

function amountsOf({ limit, spent, held, needed }: Shortage): Amounts {
  return { limitUsd: usdOf(limit), spentUsd: usdOf(spent), heldUsd: usdOf(held), neededUsd: usdOf(needed) }
}

/** Only a child answers it, or ends it with a report: no person, and no program outside. */
export function isForChild({ proposal }: Call): boolean {
  const { child, awaits, orders } = outsideOf(proposal) ?? {}
  return child !== undefined || awaits !== undefined || orders !== undefined
}

/** The calls that are answered from outside, by a child or by somebody else. */
export function waitsOf({ run }: Session): readonly Call[] {
  return (run?.turn?.open ?? []).filter(({ state }) => state.type === 'outside')
}

/** Was it interrupted, or a session above that waits for it? Then nothing of it can be decided any more. */
export async function isStopped({ stop, parent }: Session, headOf: HeadOf): Promise<boolean> {
  if (stop > 0 || parent === null) return stop > 0
  const above = await headOf(parent.session)
  return waitsOf(above).some(({ key }) => key === parent.call) && isStopped(above, headOf)
}

/** A session as its log is now. */
type HeadOf = (session: string) => Promise<Session>

/** What this one session waits for, without its children. A decided call is not pending, even before the session goes on. */
export async function waitingIn(
  id: string,
  headOf: HeadOf,
  saidBefore: (call: Call, said?: Said) => Before,
): Promise<readonly OwnPending[]> {
  const head = await headOf(id)
  if (await isStopped(head, headOf)) return []
  const pending = ownPending(head, pathOf(id), saidBefore)
  const { parent } = head
  if (parent === null || parent.detached || pending[0]?.callId !== BUDGET) return pending
  // Nothing is pending in a child whose parent no longer waits for it.
  const above = await headOf(parent.session)
  return waitsOf(above).some(({ key }) => key === parent.call) ? pending : []
}

/** A person is asked, or the last run ended at a limit, which may be its budget. */
export function mayWait({ status, outcome }: Card): boolean {
  return status === 'requires_action' || (status === 'idle' && outcome === 'limit')
}

/** The ids from the root down: a child's id begins with its parent's. */
function pathOf(session: string): readonly string[] {
  const parts = session.split('~')
  return parts.map((_, i) => parts.slice(0, i + 1).join('~'))
}
