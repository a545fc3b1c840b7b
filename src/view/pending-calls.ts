// The calls of a session that wait for a person or a program, and whether its card shows that there are any. Pure and
// without the fold, because a list of sessions needs no more.
import type { CallKey, FileState, Frozen, Json, Outcome, Shortage } from '../kernel/content.ts'
import { type Call, type EditRecord, outsideOf, type RunConsent } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import type { Card } from '../ports/store.ts'
import { oneLine } from './clean.ts'
import { isObject, jsonLine, asString } from './untrusted-json.ts'
import { usdOf } from './usd.ts'
import { idsDownTo, childId } from './ids.ts'

/** A call as programs see it: its tool, and its admitted arguments. */
export type AnyCall = {
  /** The tool's name. */
  readonly tool: string
  /** The arguments as they were admitted: the call runs with these unless a person edits them. */
  readonly args: Json
}

/**
 * A call that waits for a person or a program, discriminated by `tool` where the types of the harness's tools are
 * known.
 */
export type Pending<Of extends AnyCall = AnyCall> =
  | (Of extends unknown ? WaitingCall & Of : never)
  // A session that ended at its budget waits too.
  | (string extends Of['tool'] ? never : WaitingCall & { readonly tool: typeof BUDGET; readonly args: Json })

type WaitingCall = Frozen<
  {
    /** The key of the call in its session. `budget`: the session ended at its budget and waits for more. */
    callId: CallKey
    /** `approval`: use `decide`. `answer`: use `answer`. */
    needs: 'approval' | 'answer'
    /** For an approval: the hash of the call as it is now. A decision that names another digest is refused. */
    digest?: string
    /** For an approval: when it is denied by itself, in ms since 1970. Null for never. */
    expiresAt?: number | null
    /** For an approval: its class, that of the rule that asks, or else the name of the tool. */
    class?: string
    /** For an approval: how many people must approve. */
    n?: number
    /** For an approval: the roles of which one must decide. Empty: anybody may. */
    roles?: readonly string[]
    /** For an approval: who has approved so far. */
    votes?: readonly string[]
    /**
     * For an approval: the files that the call would change, as they were when it was asked about. The digest covers
     * them.
     */
    files?: readonly FileState[]
    /** The waiting session: this one, or a child below it. */
    sessionId: string
    /** The sessions from the root down to the waiting one. */
    path: readonly string[]
    /** The cost so far of the waiting session alone, in dollars. */
    costUsd: number
    /** The cost so far of the waiting session and the children below it, in dollars. */
    treeCostUsd: number
    /**
     * A person changed the arguments, and others must approve the call as it is now. `args` here are those of the
     * model.
     */
    edited?: EditRecord
    /** For `callId: 'budget'`: the amounts that do not cover the next call. */
    amounts?: Amounts
  } & PriorConsent
>

/** The amounts of an account that does not cover the next call, in dollars. */
export type Amounts = Frozen<{
  /** The most that may be spent and reserved together. */
  limitUsd: number
  /** What was spent so far. */
  spentUsd: number
  /** Reserved for calls in progress. */
  heldUsd: number
  /** The most that the next call may cost. */
  neededUsd: number
}>

/** A waiting call, before the costs of the sessions below are read. */
export type OwnPending = Omit<Pending, 'treeCostUsd'>

/** Earlier decisions in this run that concern a call that is asked about. */
export type PriorConsent = Frozen<{
  /** Asked each time: an approval of another call never covers it. */
  each?: true
  /** An approval for this run, given with that call, covers it. */
  covered?: Frozen<{ call: CallKey; by: string }>
  /** The same call was denied in this run. */
  denied?: true
}>

/** The call id that `decide` takes for a session that ended at its budget. */
export const BUDGET = 'budget'

export function isOverBudget(outcome: Outcome | null): outcome is Extract<Outcome, { type: 'limit' }> {
  return outcome?.type === 'limit' && outcome.limit === 'usd'
}

/**
 * The waiting calls of the session itself. `path` ends with it. `saidBefore` judges which calls an earlier approval
 * covers.
 */
export function ownPending(
  { run, inputs, last, cost }: Session,
  path: readonly string[],
  saidBefore: (call: Call, said?: RunConsent) => PriorConsent,
): readonly OwnPending[] {
  const where = { sessionId: path.at(-1) ?? '', path, costUsd: usdOf(cost) }
  if (run === null && inputs.length === 0 && isOverBudget(last)) {
    const { account, short } = last
    const args = { ...(account === undefined ? {} : { account }), ...short }
    const amounts = short && { amounts: amountsOf(short) }
    return [{ callId: BUDGET, tool: BUDGET, args, needs: 'approval', ...where, ...amounts }]
  }
  // Imported calls are asked about again when the session goes on.
  const calls = run?.foreign ? [] : (run?.turn?.open ?? [])
  return calls.flatMap((call): readonly OwnPending[] => {
    const { tool, args, gate, digest, files } = call.proposal
    const common = { callId: call.key, tool, args, ...where }
    if (call.state.type === 'outside') return isForChild(call) ? [] : [{ ...common, needs: 'answer' }]
    if (call.state.type !== 'asked' || gate?.type !== 'ask') return []
    const { expiresAt, class: kind, n, roles } = gate
    const asked = { expiresAt, class: kind, n, roles, votes: call.state.votes, ...(files ? { files } : {}) }
    const before = { ...saidBefore(call, run?.said), ...(call.edited ? { edited: call.edited } : {}) }
    return [{ ...common, needs: 'approval', ...asked, ...before, ...(digest === undefined ? {} : { digest }) }]
  })
}

function amountsOf({ limit, spent, held, needed }: Shortage): Amounts {
  return { limitUsd: usdOf(limit), spentUsd: usdOf(spent), heldUsd: usdOf(held), neededUsd: usdOf(needed) }
}

/** The arguments that describe a call best, in order of preference. */
const TELLING = ['command', 'path', 'file_path', 'url', 'question', 'query', 'task', 'pattern', 'message'] as const

/**
 * Describes the call in one line: the command, the path, the address, the question, or all arguments; for a budget the
 * amounts.
 */
export function pendingLine({ args, callId, amounts, edited }: LinePending, chars: number): string {
  if (callId === BUDGET) return amounts === undefined ? '' : amountsLine(amounts)
  const given = edited?.args ?? args
  const told = isObject(given)
    ? TELLING.map((name) => asString(given[name])).find((value) => value.trim() !== '')
    : undefined
  return told === undefined ? jsonLine(given, chars) : oneLine(told, chars)
}

function amountsLine(amounts: Amounts): string {
  const { limit, spent, held, needed } = amountTexts(amounts)
  const aside = amounts.heldUsd > 0 ? `, ${held} set aside` : ''
  return `${spent} of ${limit} spent${aside}, the next call needs up to ${needed}`
}

/** With enough digits to show that the rest is less than needed, and that something was spent. */
export function amountTexts({
  limitUsd,
  spentUsd,
  heldUsd,
  neededUsd,
}: Amounts): Frozen<Record<keyof Shortage, string>> {
  const left = limitUsd - spentUsd - heldUsd
  const shows = (digits: number): boolean =>
    [limitUsd, left].every((usd) => usd.toFixed(digits) !== neededUsd.toFixed(digits)) &&
    [spentUsd, heldUsd].every((usd) => usd === 0 || Number(usd.toFixed(digits)) > 0)
  const digits = [2, 4].find(shows) ?? 6
  const text = (usd: number): string => `$${usd.toFixed(digits)}`
  return { limit: text(limitUsd), spent: text(spentUsd), held: text(heldUsd), needed: text(neededUsd) }
}
type LinePending = Pick<OwnPending, 'args' | 'callId' | 'amounts' | 'edited'>

/** True if only a child answers it, or ends it with a report: no person and no outside program can. */
export function isForChild({ proposal }: Call): boolean {
  const { child, awaits, orders } = outsideOf(proposal) ?? {}
  return child !== undefined || awaits !== undefined || orders !== undefined
}

/** The calls that are answered from outside, by a child, a person or a program. */
export function outsideCalls({ run }: Session): readonly Call[] {
  return (run?.turn?.open ?? []).filter(({ state }) => state.type === 'outside')
}

/**
 * True if it, or a session above that waits for it, was interrupted. Then none of its calls can be decided any more.
 */
export async function isInterrupted({ stop, parent }: Session, headOf: ReadSession): Promise<boolean> {
  if (stop > 0 || parent === null) return stop > 0
  const above = await headOf(parent.session)
  return outsideCalls(above).some(({ key }) => key === parent.call) && isInterrupted(above, headOf)
}

/** Reads a session in its present state. */
type ReadSession = (session: string) => Promise<Session>

/**
 * The waiting calls of this one session, without its children. A decided call is not pending, even before the session
 * goes on.
 */
export async function readOwnPending(
  id: string,
  headOf: ReadSession,
  saidBefore: (call: Call, said?: RunConsent) => Promise<PriorConsent>,
): Promise<readonly OwnPending[]> {
  const head = await headOf(id)
  if (await isInterrupted(head, headOf)) return []
  const before = new Map<Call, PriorConsent>()
  for (const call of head.run?.turn?.open ?? []) before.set(call, await saidBefore(call, head.run?.said))
  const pending = ownPending(head, idsDownTo(id), (call) => before.get(call) ?? {})
  const { parent } = head
  if (parent === null || parent.detached || pending[0]?.callId !== BUDGET) return pending
  // Nothing is pending in a child whose parent no longer waits for it.
  const above = await headOf(parent.session)
  return outsideCalls(above).some(({ key }) => key === parent.call) ? pending : []
}

/**
 * True if a person is asked, a call is answered from outside, or the last run ended at a limit, which may be its
 * budget.
 */
export function mayWait({ status, outcome, asks, waits }: Card): boolean {
  if (status === 'requires_action' || asks.length + waits.length > 0) return true
  return status === 'idle' && outcome === 'limit'
}

/** The child that works on a call of this session, if any. */
export function childOnCall(session: string, { key, proposal }: Call): string | null {
  const { child, answers } = outsideOf(proposal) ?? {}
  return answers?.session ?? (child === undefined ? null : childId(session, key))
}
