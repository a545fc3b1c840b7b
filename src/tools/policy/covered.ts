// What people said before in this run, as it matters for an open question. It reads the folded session. The fold makes sure
// that a yes counts only where this says so.
import type { Proposal } from '../../kernel/content.ts'
import { type Call, coverersOf, type Said, UNSAID } from '../../kernel/ledger.ts'
import type { Before } from '../../view/pending.ts'
import { judgeCall, type Rule } from './policy.ts'

export async function saidBefore(call: Call, said: Said = UNSAID): Promise<Before> {
  const { gate, same, digest = '' } = call.proposal
  if (gate?.type !== 'ask') return {}
  const found = await covererOf(call, said)
  return {
    ...(gate.each ? { each: true } : {}),
    ...(found ? { covered: { call: found.call, by: found.by } } : {}),
    ...(said.denied.includes(same ?? digest) ? { denied: true } : {}),
  }
}

async function covererOf(call: Call, said: Said): Promise<ReturnType<typeof coverersOf>[number] | null> {
  for (const each of coverersOf(call, said)) if (await allows(each.rule as Rule, call.proposal)) return each
  return null
}

/** Its links are those that it was asked about with: an approval is for no others. */
async function allows(rule: Rule, { tool, args, links = [] }: Proposal): Promise<boolean> {
  const { environment } = rule
  const action = { tool, args, links, approval: 'ask', ...(environment === undefined ? {} : { environment }) } as const
  return (await judgeCall({ rules: [rule] }, action)).type === 'allow'
}
