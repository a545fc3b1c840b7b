// More money for what ended at its budget: the session, or children that it waits for. The work goes on in new runs. Loaded by the first
// decision about money.
import { Fault } from '../kernel/failure.ts'
import { asOwner } from '../engine/owner.ts'
import type { Services } from '../engine/wiring.ts'
import { isDetached } from '../riders/children/status.ts'
import { rootAgentOf } from '../riders/children/tree.ts'
import { raiseOf, wasRaised } from '../riders/money/spending-limits.ts'
import { BUDGET, isBroke } from '../view/pending.ts'
import type { ApprovalDecision } from './approval-decision.ts'
import { pendingOf } from './look/pending.ts'

/** Where it was said: the seq of what records it in the first of these sessions. */
export type Raised = { readonly session: string; readonly seq: number }

/** What is shared by all of them is raised once. A denial is noted. */
export async function raise(services: Services, id: string, decision: ApprovalDecision): Promise<readonly Raised[]> {
  const { allow, usd = 0 } = decision
  const amount = Math.round(usd * 1_000_000)
  if (allow && amount === 0)
    throw new Fault('invalid_input', 'Say how much more the session may spend, in dollars: usd, at least 0.000001.')
  const waiting = (await pendingOf(services.store, id)).filter(({ callId }) => callId === BUDGET)
  const raised: Raised[] = []
  for (const { sessionId } of waiting) {
    // It works on its own, and is decided by its own id.
    if (sessionId !== id && (await isDetached(services.store, sessionId))) continue
    raised.push({ session: sessionId, seq: await raiseOwn(services, sessionId, decision, amount, raised.length === 0) })
  }
  if (raised.length === 0) throw notWaiting(id)
  return raised
}

async function raiseOwn(
  services: Services,
  id: string,
  { allow, by, why, usd }: ApprovalDecision,
  amount: number,
  shared: boolean,
): Promise<number> {
  const { store, random } = services
  const { value: seq } = await asOwner(services, id, async (session) => {
    const payer = { session: id, root: session.parent?.root ?? id, run: session.began, at: store.now() }
    const agent = await rootAgentOf(session, store)
    if (session.run !== null || !isBroke(session.last) || (await wasRaised(agent, payer, store))) throw notWaiting(id)
    const decided = allow ? `${by} raised the budget by $${usd}` : `${by} did not raise the budget`
    const text = `${decided}${why === undefined ? '' : `: ${why}`}.`
    const note = { type: 'note.added', kind: 'limit', text } as const
    if (!allow) return { value: session.seq + 1, events: [note] }
    const parts = [{ type: 'text', text: 'The budget was raised. Go on.' }] as const
    const go = { type: 'user.message', id: random.id(), parts, when: 'after', by } as const
    const charges = raiseOf(agent, payer, amount, shared)
    return { value: session.seq + 2, events: [note], charges, sends: [go] }
  })
  return seq
}

function notWaiting(id: string): Fault {
  return new Fault('decision_stale', `Session ${id} does not wait for a budget.`)
}
