// What a reply used and cost, out of the shapes hosts tell it in. A number that cannot be is no number: then nothing is said.
import type { Mutable, Usage } from '../../../kernel/content.ts'
import { type JsonObject, isObject } from '../../../view/json.ts'

/** At the chunk's top, inside `x_groq` (Groq), or on the choice (Moonshot). Undefined: this chunk says nothing of it. */
export function usageIn(chunk: JsonObject, choice: JsonObject | null): JsonObject | undefined {
  if (isObject(chunk['usage'])) return chunk['usage']
  const groq = chunk['x_groq']
  if (isObject(groq) && isObject(groq['usage'])) return groq['usage']
  return choice !== null && isObject(choice['usage']) ? choice['usage'] : undefined
}

export function usageOf(told: JsonObject): Usage | null {
  const prompt = isObject(told['prompt_tokens_details']) ? told['prompt_tokens_details'] : {}
  const completion = isObject(told['completion_tokens_details']) ? told['completion_tokens_details'] : {}
  const input = count(told['prompt_tokens'])
  const written = count(prompt['cache_write_tokens'])
  const output = count(told['completion_tokens'])
  const reasoning = count(completion['reasoning_tokens'])
  const total = count(told['total_tokens'])
  // OpenAI's name, Moonshot's and DeepSeek's.
  const cached = count(prompt['cached_tokens'] ?? told['cached_tokens'] ?? told['prompt_cache_hit_tokens'])
  if ([input, written, output, reasoning, total, cached].some(Number.isNaN)) return null
  if (input === undefined || output === undefined) return null
  const fromCache = (cached ?? 0) + (written ?? 0)
  const usage: Mutable<Usage> = {
    // A host that counts the cache beside its input, and not within, shows it by a part that is larger than the whole.
    inputTokens: fromCache > input ? input + fromCache : input,
    // xAI and Gemini leave reasoning out of the completion and count it in the total.
    outputTokens: Math.max(output, (total ?? 0) - input),
  }
  if (cached !== undefined) usage.cachedTokens = cached
  if (written !== undefined) usage.cacheWriteTokens = written
  if (reasoning !== undefined) usage.reasoningTokens = reasoning
  return usage
}

/** Millionths of a dollar, as far as the host itself says what it charged: OpenRouter in dollars, xAI in ticks. */
export function costOf(told: JsonObject): number | undefined {
  const ticks = told['cost_in_usd_ticks']
  if (isAmount(ticks)) return millionths(ticks / 10_000)
  const { cost, cost_details: details } = told
  if (!isAmount(cost)) return undefined
  // With a key of one's own at the provider behind OpenRouter, `cost` is only OpenRouter's fee.
  const behind = told['is_byok'] === true && isObject(details) ? details['upstream_inference_cost'] : 0
  return millionths((cost + (isAmount(behind) ? behind : 0)) * 1_000_000)
}

/** Rounded up, but not for the last bit of a binary fraction. */
function millionths(amount: number): number | undefined {
  const rounded = Math.max(0, Math.ceil(amount - 1e-6))
  return Number.isSafeInteger(rounded) ? rounded : undefined
}

function count(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : Number.NaN
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
