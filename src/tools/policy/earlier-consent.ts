// The earlier answers of people in this run, as far as they concern an open question. It reads the folded session. The
// fold makes sure that an approval counts only where this file says so.
import type { Proposal } from '../../kernel/content.ts'
import { type Call, coveringApprovals, type RunConsent, UNSAID } from '../../kernel/ledger.ts'
import type { PriorConsent } from '../../view/pending-calls.ts'
import { judgeCall, type Rule } from './policy.ts'

export async function earlierConsent(call: Call, said: RunConsent = UNSAID): Promise<PriorConsent> {
  const { gate, same, digest = '' } = call.proposal
  if (gate?.type !== 'ask') return {}
  const found = await findCovering(call, said)
  return {
    ...(gate.each ? { each: true } : {}),
    ...(found ? { covered: { call: found.call, by: found.by } } : {}),
    ...(said.denied.includes(same ?? digest) ? { denied: true } : {}),
  }
}

async function findCovering(
  call: Call,
  said: RunConsent,
): Promise<ReturnType<typeof coveringApprovals>[number] | null> {
  for (const each of coveringApprovals(call, said)) if (await ruleAllows(each.rule as Rule, call.proposal)) return each
  return null
}

/** Uses the links that the call was asked about with: the approval covers no others. */
async function ruleAllows(rule: Rule, { tool, args, links = [] }: Proposal): Promise<boolean> {
  const { environment } = rule
  const action = { tool, args, links, approval: 'ask', ...(environment === undefined ? {} : { environment }) } as const
  return (await judgeCall({ rules: [rule] }, action)).type === 'allow'
}
