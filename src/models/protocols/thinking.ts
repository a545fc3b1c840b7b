// How to request thinking of a Claude model or switch it off, and how many tokens it gets. Each generation takes
// different fields, and the wrong ones are a 400. It does not read messages or replies.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { Effort, RequestSettings, ModelTarget } from './protocol.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'

export type Thinking = Frozen<{
  /** The model may think in this request: signed blocks are sent back, and no tool can be forced. */
  on: boolean
  /** Thinking by a budget. Refused if the calls in progress did not begin with a thinking block. */
  manual: boolean
  /** The field `thinking`; null to leave it out. */
  field: Json | null
  effort: Exclude<Effort, 'off'> | null
  outputTokensMax: number
  /** The model takes a temperature and a `top_p`. */
  samples: boolean
}>

/**
 * `budget`: up to 4.5, only by a budget. `both`: 4.6. `effort`: after 4.6, a budget is refused. `default`: 5, thinks
 * unless it is switched off. `always`: after 5, cannot be switched off. `unknown`: not a Claude model, takes any
 * request.
 */
type ThinkingKind = 'budget' | 'both' | 'effort' | 'default' | 'always' | 'unknown'

/** Default output limits, for Claude models and for unknown ones. */
const OUTPUT_TOKENS = 16_000
const UNKNOWN_TOKENS = 8_192
const BUDGET_TOKENS_MIN = 1_024
const BUDGET_TOKENS = { minimal: 1_024, low: 2_048, medium: 8_192, high: 24_576, xhigh: 32_768, max: 48_000 } as const

export function thinkingOf({ settings, quirks, model }: ModelTarget, boost: boolean): Thinking {
  const kind = thinkingKind(model)
  const own = settings.body?.['thinking']
  const mode = isObject(own) && own['type'] !== undefined ? ownMode(own) : modeFor(kind, settings.reasoning, quirks)
  // A limit that the caller set includes thinking.
  const plain = settings.outputTokensMax ?? (kind === 'unknown' ? UNKNOWN_TOKENS : OUTPUT_TOKENS)
  const thought = settings.outputTokensMax === undefined ? thinkingTokensOf(mode, kind) : 0
  const max = Math.min(plain * (boost ? 2 : 1) + thought, maxAnswerTokens(model, settings))
  const tokens = budgetIn(mode, maxThinkingTokens(settings, max))
  // A limit too small for the smallest budget is refused when it is set. Here it switches thinking off.
  const kept = mode.type === 'enabled' && tokens === 0 ? LEFT_OFF : mode
  // Models after 4.6 refuse every temperature but their own, and so does every Claude model that thinks.
  const samples = kind === 'unknown' || (!kept.on && (kind === 'budget' || kind === 'both'))
  return {
    on: kept.on,
    manual: kept.type === 'enabled',
    field: fieldOf(kept, tokens),
    effort: 'effort' in kept ? kept.effort : null,
    outputTokensMax: max,
    samples,
  }
}

/**
 * The most of `max` tokens that thinking may take. For a level with a limit of the caller, half of it stays for the
 * answer.
 */
function maxThinkingTokens({ outputTokensMax, reasoning, body }: RequestSettings, max: number): number {
  if (outputTokensMax === undefined) return max - Math.floor(max / 8)
  const isLevel = typeof reasoning === 'string' && !isObject(body?.['thinking'])
  return isLevel ? Math.floor(max / 2) : max - 1
}

/** Why the caller's limit leaves no room for the requested thinking, with the solution; null if there is room. */
export function whyTooTight({ settings, quirks, model }: ModelTarget): string | null {
  const { outputTokensMax, reasoning } = settings
  if (outputTokensMax === undefined || reasoning === undefined || isObject(settings.body?.['thinking'])) return null
  const mode = modeFor(thinkingKind(model), reasoning, quirks)
  if (mode.type !== 'enabled') return null
  const isLevel = typeof reasoning === 'string'
  const least = isLevel ? 2 * BUDGET_TOKENS_MIN : mode.tokens + 1
  if (outputTokensMax >= least) return null
  const takes = isLevel
    ? `at least ${BUDGET_TOKENS_MIN} tokens, and as many are left for the answer`
    : `${mode.tokens} tokens`
  return `\`outputTokensMax\` is ${outputTokensMax}, and its thoughts, which count in it, take ${takes}. Set it to ${least} or more, or \`reasoning\` to "off"`
}

/** The same request without thinking. */
export function withoutThinking(thinking: Thinking): Thinking {
  return { ...thinking, on: false, manual: false, field: { type: 'disabled' }, effort: null }
}

export function isClaude(model: string): boolean {
  return thinkingKind(model) !== 'unknown'
}

/**
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs: models from 4.5 on, and Opus from 4.1 on.
 */
export function acceptsSchemas(model: string): boolean {
  const version = versionOf(model) ?? 0
  return thinkingKind(model) === 'always' || version >= 405 || (version === 401 && /opus/.test(model))
}

/** The efforts that a Claude model takes; null for any other model. */
export function claudeEfforts(model: string): readonly Effort[] | null {
  const kind = thinkingKind(model)
  if (kind === 'unknown') return null
  // An effort is a budget for these models, so each effort is possible.
  if (kind === 'budget') {
    const thinks = (versionOf(model) ?? 0) >= 307
    return thinks ? ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] : ['off']
  }
  return kind === 'both' ? ['off', 'low', 'medium', 'high', 'max'] : ['off', 'low', 'medium', 'high', 'xhigh', 'max']
}

type ThinkingDepth = Exclude<Effort, 'off'>
type ThinkingMode =
  | Frozen<{ type: 'left'; on: boolean; effort?: ThinkingDepth }>
  | Frozen<{ type: 'disabled'; on: false }>
  | Frozen<{ type: 'adaptive'; on: true; effort: ThinkingDepth }>
  | Frozen<{ type: 'enabled'; on: true; tokens: number }>

const LEFT_OFF: ThinkingMode = { type: 'left', on: false }

function modeFor(
  kind: ThinkingKind,
  wish: RequestSettings['reasoning'],
  { lacks }: ModelTarget['quirks'],
): ThinkingMode {
  return lacks?.includes('reasoning') ? LEFT_OFF : modeOf(kind, wish)
}

/** The caller wrote the field into the body, where it stays unchanged. */
function ownMode({ type, budget_tokens: budget }: JsonObject): ThinkingMode {
  if (type === 'disabled') return { type: 'disabled', on: false }
  if (type !== 'enabled') return { type: 'left', on: true }
  return { type: 'enabled', on: true, tokens: typeof budget === 'number' ? budget : BUDGET_TOKENS_MIN }
}

function modeOf(kind: ThinkingKind, wish: RequestSettings['reasoning']): ThinkingMode {
  if (wish === undefined) return { type: 'left', on: kind === 'default' || kind === 'always' || kind === 'unknown' }
  // Thinking that cannot be switched off is kept short.
  if (wish === 'off')
    return kind === 'always' ? { type: 'left', on: true, effort: 'low' } : { type: 'disabled', on: false }
  if (typeof wish === 'string') {
    if (kind === 'budget') return { type: 'enabled', on: true, tokens: BUDGET_TOKENS[wish] }
    return { type: 'adaptive', on: true, effort: wish }
  }
  const manual = kind === 'budget' || kind === 'both' || kind === 'unknown'
  if (!manual) return { type: 'adaptive', on: true, effort: depthOf(wish.budgetTokens) }
  return { type: 'enabled', on: true, tokens: Math.max(BUDGET_TOKENS_MIN, Math.floor(wish.budgetTokens) || 0) }
}

/** `max_tokens` includes thinking and must exceed its budget, so the budget is reduced to fit. */
function budgetIn(mode: ThinkingMode, most: number): number {
  const fitting = mode.type === 'enabled' ? Math.min(mode.tokens, most) : 0
  return fitting < BUDGET_TOKENS_MIN ? 0 : fitting
}

/** The tokens for thinking besides the answer. An estimate if the model decides by itself. */
function thinkingTokensOf(mode: ThinkingMode, kind: ThinkingKind): number {
  if (mode.type === 'enabled') return mode.tokens
  if (!mode.on || (mode.type === 'left' && kind === 'unknown')) return 0
  return BUDGET_TOKENS[mode.effort ?? 'medium']
}

/**
 * The longest answer of this model: a higher limit is a 400. A limit that the caller set is trusted, but not doubled
 * beyond this.
 * https://platform.claude.com/docs/en/about-claude/models/overview
 */
function maxAnswerTokens(model: string, { outputTokensMax = 0 }: RequestSettings): number {
  const version = versionOf(model)
  if (version === null) return Number.POSITIVE_INFINITY
  const opus4 = version < 405 && /opus/.test(model)
  const most = version < 305 ? 4_096 : version < 307 ? 8_192 : opus4 ? 32_000 : 64_000
  return Math.max(most, outputTokensMax)
}

function fieldOf(mode: ThinkingMode, tokens: number): Json | null {
  if (mode.type === 'left') return null
  return mode.type === 'enabled' ? { type: 'enabled', budget_tokens: tokens } : { type: mode.type }
}

function depthOf(budgetTokens: number): ThinkingDepth {
  if (budgetTokens < BUDGET_TOKENS.medium) return 'low'
  return budgetTokens < BUDGET_TOKENS.high ? 'medium' : 'high'
}

function thinkingKind(model: string): ThinkingKind {
  if (/claude-(fable|mythos)/.test(model)) return 'always'
  const version = versionOf(model)
  if (version === null) return 'unknown'
  if (version < 406) return 'budget'
  if (version < 407) return 'both'
  if (version < 500) return 'effort'
  return version === 500 ? 'default' : 'always'
}

/** 407 for 4.7; null if the name has no version. */
function versionOf(model: string): number | null {
  // `claude-3-7-sonnet-20250219`, `claude-opus-4-20250514`, `anthropic/claude-opus-4.6`, `claude-opus-5-5`.
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model)
  return found ? Number(found[1]) * 100 + Number(found[2] ?? 0) : null
}
