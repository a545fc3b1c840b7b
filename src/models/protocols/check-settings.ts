// The published settings of models. A setting that would be ignored or refused is refused when the model is made, with
// one sentence. An unknown setting is left to the host. Reasoning has its own file, efforts.ts.
import type { Allow, Json } from '../../kernel/content.ts'
import type { Request } from '../../ports/model.ts'
import { NEVER_REASONS } from './efforts.ts'
import type { Protocol, RequestSettings, ModelTarget, ToolChoice } from './protocol.ts'
import { isClaude, thinkingOf } from './thinking.ts'

type ProtocolName = Protocol<unknown>['name']
type DemandedCall = Exclude<ToolChoice, 'auto' | 'none'>
export type RefusedSetting = { readonly setting: keyof RequestSettings; readonly why: string }

/** The first setting that this model is known not to take; null if there is none. */
export function findRefusedSetting(target: ModelTarget, protocol: ProtocolName): RefusedSetting | null {
  return (
    checkSampling(target, protocol) ??
    checkFields(target, protocol) ??
    checkToolChoice(target, protocol) ??
    checkCache(target, protocol)
  )
}

/** The setting that chooses the tools of a request. */
type ChoiceSettings = { readonly settings: Pick<RequestSettings, 'toolChoice'> }

/** The tools that a request may use, after the caller's choice. */
export function allowedTools({ allow }: Request, { settings }: ChoiceSettings): Allow {
  return settings.toolChoice === 'none' ? 'none' : allow
}

/** The call that the caller demands of this request; null if the model may choose. */
export function demandedCall({ messages, tools, allow }: Request, { settings }: ChoiceSettings): DemandedCall | null {
  const { toolChoice = 'auto' } = settings
  if (toolChoice === 'auto' || toolChoice === 'none' || tools.length === 0 || allow !== 'all') return null
  return messages.at(-1)?.role === 'user' ? toolChoice : null
}

/** The problem if a tool that must be called is missing; else null. */
export function whyChoiceMissing(
  { tools }: Request,
  { toolChoice }: Pick<RequestSettings, 'toolChoice'>,
): string | null {
  if (typeof toolChoice !== 'object' || tools.some(({ name }) => name === toolChoice.tool)) return null
  return `The setting toolChoice names the tool "${toolChoice.tool}", which this agent does not have. Correct it.`
}

/** The mark for the prompt cache; null if the caller wants none. A mark without a duration means five minutes. */
export function cacheMark({ cache = true }: RequestSettings): Json {
  if (cache === false) return null
  return typeof cache === 'object' && cache.ttl === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

function refuseSetting(setting: keyof RequestSettings, why: string): RefusedSetting {
  return { setting, why }
}

/**
 * OpenAI models that always reason, and models that reason if requested.
 * https://developers.openai.com/api/docs/guides/latest-model
 */
const ALWAYS_REASONS = /^(ft:)?(o\d|gpt-5(?!\.)|gpt-[6-9])/
const REASONS_IF_ASKED = /^(ft:)?gpt-5\.\d/

function checkSampling(target: ModelTarget, protocol: ProtocolName): RefusedSetting | null {
  const { settings, model } = target
  const set = settings.temperature !== undefined ? 'temperature' : settings.topP !== undefined ? 'topP' : null
  if (set === null) return null
  if (protocol === 'messages' && isClaude(model)) {
    if (!thinkingOf(target, false).samples) return refuseSetting(set, CLAUDE_SAMPLES)
    const both = settings.temperature !== undefined && settings.topP !== undefined
    return both ? refuseSetting('topP', 'it takes `temperature` or `topP`, not both. Leave one out') : null
  }
  if (protocol !== 'responses' || NEVER_REASONS.test(model)) return null
  const asked = settings.reasoning !== undefined && settings.reasoning !== 'off'
  const reasons = ALWAYS_REASONS.test(model) || (REASONS_IF_ASKED.test(model) && asked)
  return reasons ? refuseSetting(set, 'a model that reasons takes none. Leave it out') : null
}

const CLAUDE_SAMPLES =
  'Claude models after 4.6 take none, and no Claude model does while it thinks. Leave it out, or set `reasoning` to "off" if the model is 4.6 or older'

function checkFields({ settings, quirks }: ModelTarget, protocol: ProtocolName): RefusedSetting | null {
  const lacks = new Set<string>(quirks.lacks)
  const { seed, stop, parallelToolCalls, serviceTier } = settings
  if (seed !== undefined && (protocol !== 'chat' || lacks.has('seed'))) return refuseSetting('seed', NO_FIELD)
  if (stop !== undefined && (protocol === 'responses' || lacks.has('stop'))) return refuseSetting('stop', NO_FIELD)
  if (parallelToolCalls !== undefined && lacks.has('parallel')) return refuseSetting('parallelToolCalls', NO_FIELD)
  const { serviceTiers: tiers } = quirks
  if (serviceTier === undefined || tiers === undefined || tiers.includes(serviceTier)) return null
  if (tiers.length === 0) return refuseSetting('serviceTier', NO_FIELD)
  const names = tiers.map((tier) => `"${tier}"`).join(' or ')
  return refuseSetting('serviceTier', `it takes ${names}. Choose one of them, or leave it out`)
}

const NO_FIELD = 'its host has no such field. Leave it out'

function checkToolChoice(target: ModelTarget, protocol: ProtocolName): RefusedSetting | null {
  const { toolChoice = 'auto' } = target.settings
  if (toolChoice === 'auto') return null
  if (target.quirks.lacks?.includes('tool_choice')) return refuseSetting('toolChoice', NO_FIELD)
  if (protocol !== 'messages' || toolChoice === 'none' || !isClaude(target.model)) return null
  return thinkingOf(target, false).on ? refuseSetting('toolChoice', CLAUDE_CHOICE) : null
}

const CLAUDE_CHOICE =
  'a Claude model that thinks cannot be made to call a tool. Set `reasoning` to "off" if the model can stop thinking, or leave it out'

function checkCache({ settings, quirks, model }: ModelTarget, protocol: ProtocolName): RefusedSetting | null {
  if (typeof settings.cache !== 'object' || protocol === 'messages') return null
  if (quirks.cacheMarks && protocol === 'chat' && /anthropic|claude/i.test(model)) return null
  return refuseSetting(
    'cache',
    'its host decides by itself how long it keeps a prompt. Write `cache: true` or leave it out',
  )
}
