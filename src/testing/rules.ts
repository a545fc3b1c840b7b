// The published rules of all three dialects in one list, and the first of them that a request breaks.
import { chatRules } from './rules-chat.ts'
import { messagesRules } from './rules-messages.ts'
import { responsesRules } from './rules-responses.ts'
import type { Asked, ProviderRule } from './rule.ts'
import type { Dialect } from './script.ts'
import type { Refusal } from './voice.ts'

export const providerRules: readonly ProviderRule[] = [
  ...messagesRules.map((rule) => ({ ...rule, dialect: 'messages' as const })),
  ...responsesRules.map((rule) => ({ ...rule, dialect: 'responses' as const })),
  ...chatRules.map((rule) => ({ ...rule, dialect: 'chat' as const })),
]

export function broken(
  dialect: Dialect,
  asked: Asked,
): { readonly rule: ProviderRule; readonly refusal: Refusal } | null {
  for (const rule of providerRules) {
    const refusal = rule.dialect === dialect ? rule.check(asked) : null
    if (refusal !== null) return { rule, refusal }
  }
  return null
}
