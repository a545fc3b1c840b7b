// What waits for somebody: of one session, and on its card. Pure, and without the fold: a list of sessions needs no more than this.
import type { CallKey, FileState, Frozen, Json, Outcome, Shortage } from '../kernel/content.ts'
import { type Call, type Edited, outsideOf, type Said } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import type { Card } from '../ports/store.ts'
import { oneLine } from './clean.ts'
import { isObject, jsonLine, stringOf } from './json.ts'
import { usdOf } from './usd.ts'
import { idsDownTo } from './ids.ts'

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
    /** For an approval: the files that the call would change, as they were when it was asked about. The digest holds them. */
    files?: readonly FileState[]
    /** The session that waits, and the sessions from the top down to it: this one, or children below it. */
    sessionId: string
    path: readonly string[]
    /** What the session that waits has cost so far, in dollars: alone, and with the children below it. */
    costUsd: number
    treeCostUsd: number
    /** A person changed the arguments, and others must approve what it is now. `args` here are those that the model gave. */
    edited?: Edited
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

/** The arguments that say best what a call would do, the first that it has. */
const TELLING = ['command', 'path', 'file_path', 'url', 'question', 'query', 'task', 'pattern', 'message'] as const

/** What it would do on one line: the command, the path, the address, the question, or all arguments; of a budget the amounts. */
export function pendingLine({ args, callId, amounts, edited }: LinePending, chars: number): string {
  if (callId === BUDGET) return amounts === undefined ? '' : amountsLine(amounts)
  const given = edited?.args ?? args
  const told = isObject(given)
    ? TELLING.map((name) => stringOf(given[name])).find((value) => value.trim() !== '')
    : undefined
  return told === undefined ? jsonLine(given, chars) : oneLine(told, chars)
}

function amountsLine(amounts: Amounts): string {
  const { limit, spent, held, needed } = amountTexts(amounts)
  const aside = amounts.heldUsd > 0 ? `, ${held} set aside` : ''
  return `${spent} of ${limit} spent${aside}, the next call needs up to ${needed}`
}

/** With as many digits as it takes to see that what is left is less than what is needed, and that something was spent. */
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
  saidBefore: (call: Call, said?: Said) => Promise<Before>,
): Promise<readonly OwnPending[]> {
  const head = await headOf(id)
  if (await isStopped(head, headOf)) return []
  const before = new Map<Call, Before>()
  for (const call of head.run?.turn?.open ?? []) before.set(call, await saidBefore(call, head.run?.said))
  const pending = ownPending(head, idsDownTo(id), (call) => before.get(call) ?? {})
  const { parent } = head
  if (parent === null || parent.detached || pending[0]?.callId !== BUDGET) return pending
  // Nothing is pending in a child whose parent no longer waits for it.
  const above = await headOf(parent.session)
  return waitsOf(above).some(({ key }) => key === parent.call) ? pending : []
}

/** A person is asked, a call is answered from outside, or the last run ended at a limit, which may be its budget. */
export function mayWait({ status, outcome, asks, waits }: Card): boolean {
  if (status === 'requires_action' || asks.length + waits.length > 0) return true
  return status === 'idle' && outcome === 'limit'
}
