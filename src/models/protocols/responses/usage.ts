// Tokens and money as the Responses API counts them, made plain. Input already includes what came from a cache, output what was
// spent on reasoning.
import type { Json, Mutable, Usage } from '../../../kernel/content.ts'
import { isObject } from '../../../view/json.ts'

/** Null if it was not told, or if any number of it cannot be true. */
export function usageOf(usage: Json | undefined): Usage | null {
  if (!isObject(usage)) return null
  const { input_tokens: input, output_tokens: output } = usage
  if (!isCount(input) || !isCount(output)) return null
  const told: Mutable<Usage> = { inputTokens: input, outputTokens: output }
  for (const [group, name, field] of DETAILS) {
    const details = usage[group]
    const count = isObject(details) ? (details[name] ?? null) : null
    if (count === null) continue
    if (!isCount(count)) return null
    told[field] = count
  }
  return told
}

const DETAILS = [
  ['input_tokens_details', 'cached_tokens', 'cachedTokens'],
  ['input_tokens_details', 'cache_write_tokens', 'cacheWriteTokens'],
  ['output_tokens_details', 'reasoning_tokens', 'reasoningTokens'],
] as const

/** Hosts that tell their own price do so in dollars. In millionths, rounded up: money is counted in integers. */
export function costOf(usage: Json | undefined): number | null {
  const cost = isObject(usage) ? usage['cost'] : null
  if (typeof cost !== 'number' || !(cost >= 0)) return null
  // 0.00014 dollars are 140 millionths, and not 140.00000000000003.
  const millionths = Math.ceil(Number((cost * 1e6).toPrecision(12)))
  return isCount(millionths) ? millionths : null
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
