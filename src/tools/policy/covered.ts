// What people said before in this run, as it matters for an open question. Pure: it reads the folded session. The fold makes sure
// that a yes counts only where this says so.
import type { Proposal } from '../../kernel/content.ts'
import { type Call, coverersOf, type Said, UNSAID } from '../../kernel/ledger.ts'
import type { Before } from '../../view/pending.ts'
import { judge, type Rule } from './policy.ts'

export function saidBefore(call: Call, said: Said = UNSAID): Before {
  const { gate, same, digest = '' } = call.proposal
  if (gate?.type !== 'ask') return {}
  const found = coverersOf(call, said).find(({ rule }) => allows(rule as Rule, call.proposal))
  return {
    ...(gate.each ? { each: true } : {}),
    ...(found ? { covered: { call: found.call, by: found.by } } : {}),
    ...(said.denied.includes(same ?? digest) ? { denied: true } : {}),
  }
}

/** Its links are those that it was asked about with: an approval is for no others. */
function allows(rule: Rule, { tool, args, links = [] }: Proposal): boolean {
  const { environment } = rule
  const action = { tool, args, links, approval: 'ask', ...(environment === undefined ? {} : { environment }) } as const
  return judge({ rules: [rule] }, action).type === 'allow'
}
