// What people said before in this run, as it matters for an open question. It reads the folded session. The fold makes sure
// that a yes counts only where this says so.
import type { Json } from '../../kernel/content.ts'
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
  const { tool, args } = call.proposal
  for (const each of coverersOf(call, said)) if (await allows(each.rule as Rule, tool, args)) return each
  return null
}

async function allows(rule: Rule, tool: string, args: Json): Promise<boolean> {
  const { environment } = rule
  const action = { tool, args, approval: 'ask', ...(environment === undefined ? {} : { environment }) } as const
  return (await judgeCall({ rules: [rule] }, action)).type === 'allow'
}
