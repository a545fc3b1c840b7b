// What people said before in this run, as it matters for an open question. Pure: it reads the folded session. The fold makes sure
// that a yes counts only where this says so.
import type { Json } from '../../kernel/content.ts'
import { type Call, coverersOf, type Said, UNSAID } from '../../kernel/ledger.ts'
import type { Before } from '../../view/pending.ts'
import { judge, type Rule } from './policy.ts'

export function saidBefore(call: Call, said: Said = UNSAID): Before {
  const { gate, tool, args, same, digest = '' } = call.proposal
  if (gate?.type !== 'ask') return {}
  const found = coverersOf(call, said).find(({ rule }) => allows(rule as Rule, tool, args))
  return {
    ...(gate.each ? { each: true } : {}),
    ...(found ? { covered: { call: found.call, by: found.by } } : {}),
    ...(said.denied.includes(same ?? digest) ? { denied: true } : {}),
  }
}

function allows(rule: Rule, tool: string, args: Json): boolean {
  const { environment } = rule
  const action = { tool, args, approval: 'ask', ...(environment === undefined ? {} : { environment }) } as const
  return judge({ rules: [rule] }, action).type === 'allow'
}
