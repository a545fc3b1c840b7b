// The published rules of all three dialects in one list, and the search for the first that a request breaks.
import { chatRules } from './rules-chat.ts'
import { messagesRules } from './rules-messages.ts'
import { responsesRules } from './rules-responses.ts'
import type { RuleRequest, ProviderRule } from './provider-rule.ts'
import type { Dialect } from './chaos-script.ts'
import type { ProviderRefusal } from './answer-encoder.ts'

/** All rules by which the stand-in refuses a request, as the real providers do. */
export const providerRules: readonly ProviderRule[] = [
  ...messagesRules.map((rule) => ({ ...rule, dialect: 'messages' as const })),
  ...responsesRules.map((rule) => ({ ...rule, dialect: 'responses' as const })),
  ...chatRules.map((rule) => ({ ...rule, dialect: 'chat' as const })),
]

export function findBrokenRule(
  dialect: Dialect,
  asked: RuleRequest,
): { readonly rule: ProviderRule; readonly refusal: ProviderRefusal } | null {
  for (const rule of providerRules) {
    const refusal = rule.dialect === dialect ? rule.check(asked) : null
    if (refusal !== null) return { rule, refusal }
  }
  return null
}
