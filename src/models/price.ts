// Prices and context sizes of models, from the offline data of a maintained package, overridden by the user's own
// table. Sizes that it lacks are in window-table.ts. Nothing is fetched. Amounts are millionths of a dollar, so dollars
// per million tokens equal amounts per token.
import type { Frozen, Usage } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { windowInTable } from './window-table.ts'
import { anyCheck, requiredCheck, optionsChecker, describeValue, tableCheck, optionsCheck } from '../options.ts'

/** What a model costs, in dollars per million tokens. */
export type Price = Frozen<{
  /** Tokens of the request that no cache has. */
  input: number
  /** Tokens of the reply, with its reasoning. */
  output: number
  /** Tokens read from the provider's cache. Absent: as `input`. */
  cached?: number
  /** Tokens written to the provider's cache. Absent: as `input`. */
  cacheWrite?: number
  /** In dollars per thousand searches that the provider ran. Absent: 10. */
  webSearch?: number
}>

/** The user's own prices, by `provider:model` or `provider:*`. */
export type PriceTable = Readonly<Record<string, Price & { readonly contextTokens?: number }>>

/**
 * What is known about a model: its price and how many tokens it reads. Where nothing is known, `known` is false and
 * the price is a guess that is not too low.
 */
export type Profile = Frozen<{
  /** The highest price of all tiers, used to reserve money before the tier of a call is known. */
  price: Price
  /** False if the model is unknown and the price is a cautious guess. */
  known: boolean
  /** Null if unknown. */
  contextTokens: number | null
  /** The price of a reply with this usage, in millionths of a dollar, rounded up. */
  cost: (usage: Usage) => number
}>

/** The price of an unknown model. Never 0: a budget that counts nothing limits nothing. */
export const CAUTIOUS: Price = { input: 3, output: 15, cached: 0.3 }
/** The price at Anthropic and OpenAI. The data of the package has no such price. */
const WEB_SEARCH = 10

export function costOfUsage(price: Price, usage: Usage): number {
  const { cachedTokens = 0, cacheWriteTokens = 0 } = usage
  const plain = Math.max(0, usage.inputTokens - cachedTokens - cacheWriteTokens)
  const read = cachedTokens * (price.cached ?? price.input)
  const written = cacheWriteTokens * (price.cacheWrite ?? price.input)
  return Math.ceil(plain * price.input + read + written + usage.outputTokens * price.output) + searchCost(price, usage)
}

function searchCost({ webSearch = WEB_SEARCH }: Price, { webSearches = 0 }: Usage): number {
  return Math.ceil(webSearches * webSearch * 1_000)
}

export async function profileOf(provider: string, model: string, table: PriceTable = {}): Promise<Profile> {
  const own = priceIn(table, provider, model)
  const found = own?.contextTokens === undefined ? await lookUpProfile(provider, model) : null
  const contextTokens = own?.contextTokens ?? found?.contextTokens ?? windowInTable(provider, model)
  if (!own) return { ...(found ?? UNKNOWN_PROFILE), contextTokens }
  return { price: own, known: true, contextTokens, cost: (usage) => costOfUsage(own, usage) }
}

type PriceEntry = PriceTable[string]
const checkTable = optionsChecker<{ readonly prices?: PriceTable }>('the model', {
  prices: tableCheck(
    optionsCheck<PriceEntry>({
      input: requiredCheck(anyCheck),
      output: requiredCheck(anyCheck),
      cached: anyCheck,
      cacheWrite: anyCheck,
      webSearch: anyCheck,
      contextTokens: anyCheck,
    }),
  ),
})

/** A price that is not a number would limit nothing, so such a table is refused. */
export function checkPrices(table: PriceTable = {}): void {
  checkTable({ prices: table })
  for (const [name, price] of Object.entries(table)) {
    const [, , id = ''] = /^([^:]+):(.+)$/.exec(name) ?? []
    if (id === '')
      throw new Fault('invalid_config', `"${name}" is not a model name. Write provider:model, or provider:*.`)
    for (const kind of ['input', 'output', 'cached', 'cacheWrite', 'webSearch'] as const) {
      const usd: unknown = price[kind]
      const left = usd === undefined && kind !== 'input' && kind !== 'output'
      if (left || (Number.isFinite(usd) && Number(usd) >= 0)) continue
      throw new Fault(
        'invalid_config',
        `The price "${kind}" of ${name} must be dollars per ${kind === 'webSearch' ? 'thousand searches' : 'million tokens'}, 0 or more.`,
      )
    }
    checkTokens(`contextTokens of ${name}`, price.contextTokens)
  }
}

/** An omitted count means the default. */
export function checkTokens(what: string, tokens: number | undefined): void {
  if (tokens === undefined || (Number.isSafeInteger(tokens) && tokens > 0)) return
  throw new Fault(
    'invalid_config',
    `${what} must be a whole number of tokens, 1 or more, not ${describeValue(tokens)}.`,
  )
}

export function priceIn(table: PriceTable, provider: string, model: string): PriceTable[string] | undefined {
  return table[`${provider}:${model}`] ?? table[`${provider}:*`]
}

/** The profile of an unknown model. */
export const UNKNOWN_PROFILE: Profile = {
  price: CAUTIOUS,
  known: false,
  contextTokens: null,
  cost: (usage) => costOfUsage(CAUTIOUS, usage),
}

/** The profile of a local server. */
export const FREE_PROFILE: Profile = {
  price: { input: 0, output: 0 },
  known: true,
  contextTokens: null,
  cost: () => 0,
}

async function lookUpProfile(provider: string, model: string): Promise<Profile | null> {
  const { calcPrice } = await import('@pydantic/genai-prices')
  const calculate = (usage: Readonly<Record<string, number>>) => {
    try {
      return calcPrice(usage, model, { providerId: provider })
    } catch {
      // The package has no price for this combination of counts.
      return null
    }
  }
  const found = calculate({ input_tokens: 1, output_tokens: 1 })
  if (!found) return null
  const contextTokens = found.model.context_window ?? null
  const { input_mtok: input, output_mtok: output } = found.model_price
  // An entry without prices is unknown, unless its name marks it as free.
  if (input === undefined && output === undefined)
    return { ...(model.endsWith(':free') ? FREE_PROFILE : UNKNOWN_PROFILE), contextTokens }
  const price = dearestPrice(found.model_price)
  const cost = (usage: Usage): number => {
    const priced = calculate(toPackageUsage(usage))
    return priced ? Math.ceil(priced.total_price * 1_000_000) + searchCost(price, usage) : costOfUsage(price, usage)
  }
  return { price, known: true, contextTokens, cost }
}

function toPackageUsage(usage: Usage): Readonly<Record<string, number>> {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 } = usage
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    ...(cachedTokens > 0 ? { cache_read_tokens: cachedTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cache_write_tokens: cacheWriteTokens } : {}),
  }
}

type PackagePrice = Readonly<
  Record<string, number | { readonly base: number; readonly tiers: readonly { readonly price: number }[] } | undefined>
>

function dearestPrice(listed: PackagePrice): Price {
  const most = (name: string): number | undefined => {
    const price = listed[name]
    if (price === undefined || typeof price === 'number') return price
    return Math.max(price.base, ...price.tiers.map((tier) => tier.price))
  }
  const cached = most('cache_read_mtok')
  const cacheWrite = most('cache_write_mtok')
  return {
    input: most('input_mtok') ?? CAUTIOUS.input,
    output: most('output_mtok') ?? CAUTIOUS.output,
    ...(cached === undefined ? {} : { cached }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
  }
}
