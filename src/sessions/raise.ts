// Adds money for sessions that ended at their budget: the session, or children that it waits for. The work continues in
// new runs. Loaded by the first decision about money.
import { Fault } from '../kernel/failure.ts'
import { actAsOwner } from '../runtime/loop/act-as-owner.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { isDetached } from '../runtime/state/children-below.ts'
import { rootAgentOf } from '../runtime/state/session-tree.ts'
import { raiseCharges, wasRaised } from '../runtime/money/spending-limits.ts'
import { BUDGET, isOverBudget } from '../view/pending-calls.ts'
import type { ApprovalDecision } from './approval-decision.ts'
import { pendingInTree } from './look/pending.ts'

/** A session of the decision, and the seq of the event that records the decision there. */
export type RaisedBudget = { readonly session: string; readonly seq: number }

/** An account that several of them share is raised once. A denial is noted. */
export async function raiseBudget(
  services: Services,
  id: string,
  decision: ApprovalDecision,
): Promise<readonly RaisedBudget[]> {
  const { allow, usd = 0 } = decision
  const amount = Math.round(usd * 1_000_000)
  if (allow && amount === 0)
    throw new Fault('invalid_input', 'Say how much more the session may spend, in dollars: usd, at least 0.000001.')
  const waiting = (await pendingInTree(services.store, id)).filter(({ callId }) => callId === BUDGET)
  const raised: RaisedBudget[] = []
  for (const { sessionId } of waiting) {
    // A detached child works on its own, and is decided under its own id.
    if (sessionId !== id && (await isDetached(services.store, sessionId))) continue
    raised.push({
      session: sessionId,
      seq: await raiseSessionBudget(services, sessionId, decision, amount, raised.length === 0),
    })
  }
  if (raised.length === 0) throw notWaitingFault(id)
  return raised
}

async function raiseSessionBudget(
  services: Services,
  id: string,
  { allow, by, why, usd }: ApprovalDecision,
  amount: number,
  shared: boolean,
): Promise<number> {
  const { store, random } = services
  const { value: seq } = await actAsOwner(services, id, async (session) => {
    const payer = { session: id, root: session.parent?.root ?? id, run: session.began, at: store.now() }
    const agent = await rootAgentOf(session, store)
    if (session.run !== null || !isOverBudget(session.last) || (await wasRaised(agent, payer, store)))
      throw notWaitingFault(id)
    const decided = allow ? `${by} raised the budget by $${usd}` : `${by} did not raise the budget`
    const text = `${decided}${why === undefined ? '' : `: ${why}`}.`
    const note = { type: 'note.added', kind: 'limit', text } as const
    if (!allow) return { value: session.seq + 1, events: [note] }
    const parts = [{ type: 'text', text: 'The budget was raised. Go on.' }] as const
    const go = { type: 'user.message', id: random.id(), parts, when: 'after', by } as const
    const charges = raiseCharges(agent, payer, amount, shared)
    return { value: session.seq + 2, events: [note], charges, sends: [go] }
  })
  return seq
}

function notWaitingFault(id: string): Fault {
  return new Fault('decision_stale', `Session ${id} does not wait for a budget.`)
}
