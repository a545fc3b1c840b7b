// Which settings a model takes, as far as that is published. A setting that would be ignored or refused is refused when the model is
// made, in one sentence. What is not known is left to the host. Reasoning has its own file, efforts.ts.
import type { Allow, Json } from '../../kernel/content.ts'
import type { Request } from '../../ports/model.ts'
import { NEVER_REASONS } from './efforts.ts'
import type { Protocol, Settings, Target, ToolChoice } from './protocol.ts'
import { isClaude, thinkingOf } from './thinking.ts'

type ProtocolName = Protocol<unknown>['name']
type Demand = Exclude<ToolChoice, 'auto' | 'none'>
export type Refused = { readonly setting: keyof Settings; readonly why: string }

/** The first setting that this model is known not to take; null if there is none. */
export function unsettable(target: Target, protocol: ProtocolName): Refused | null {
  return (
    samplingOf(target, protocol) ??
    fieldsOf(target, protocol) ??
    choiceOf(target, protocol) ??
    cacheOf(target, protocol)
  )
}

/** What chooses the tools of a request. */
type Choosing = { readonly settings: Pick<Settings, 'toolChoice'> }

/** The tools that a request may use, with the caller's choice. */
export function allowed({ allow }: Request, { settings }: Choosing): Allow {
  return settings.toolChoice === 'none' ? 'none' : allow
}

/** The call that the caller demands of this request; null if the model may choose. */
export function demanded({ messages, tools, allow }: Request, { settings }: Choosing): Demand | null {
  const { toolChoice = 'auto' } = settings
  if (toolChoice === 'auto' || toolChoice === 'none' || tools.length === 0 || allow !== 'all') return null
  return messages.at(-1)?.role === 'user' ? toolChoice : null
}

/** A tool that must be called and is not there: the sentence for it, else null. */
export function missingChoice({ tools }: Request, { toolChoice }: Pick<Settings, 'toolChoice'>): string | null {
  if (typeof toolChoice !== 'object' || tools.some(({ name }) => name === toolChoice.tool)) return null
  return `The setting toolChoice names the tool "${toolChoice.tool}", which this agent does not have. Correct it.`
}

/** The mark for the prompt cache; null if the caller wants none. Five minutes is what a mark means by itself. */
export function cacheMark({ cache = true }: Settings): Json {
  if (cache === false) return null
  return typeof cache === 'object' && cache.ttl === '1h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

function refused(setting: keyof Settings, why: string): Refused {
  return { setting, why }
}

/** OpenAI models that always reason; and those that do when asked to. https://developers.openai.com/api/docs/guides/latest-model */
const ALWAYS_REASONS = /^(ft:)?(o\d|gpt-5(?!\.)|gpt-[6-9])/
const REASONS_IF_ASKED = /^(ft:)?gpt-5\.\d/

function samplingOf(target: Target, protocol: ProtocolName): Refused | null {
  const { settings, model } = target
  const set = settings.temperature !== undefined ? 'temperature' : settings.topP !== undefined ? 'topP' : null
  if (set === null) return null
  if (protocol === 'messages' && isClaude(model)) {
    if (!thinkingOf(target, false).samples) return refused(set, CLAUDE_SAMPLES)
    const both = settings.temperature !== undefined && settings.topP !== undefined
    return both ? refused('topP', 'it takes `temperature` or `topP`, not both. Leave one out') : null
  }
  if (protocol !== 'responses' || NEVER_REASONS.test(model)) return null
  const asked = settings.reasoning !== undefined && settings.reasoning !== 'off'
  const reasons = ALWAYS_REASONS.test(model) || (REASONS_IF_ASKED.test(model) && asked)
  return reasons ? refused(set, 'a model that reasons takes none. Leave it out') : null
}

const CLAUDE_SAMPLES =
  'Claude models after 4.6 take none, and no Claude model does while it thinks. Leave it out, or set `reasoning` to "off" if the model is 4.6 or older'

function fieldsOf({ settings, quirks }: Target, protocol: ProtocolName): Refused | null {
  const lacks = new Set<string>(quirks.lacks)
  const { seed, stop, parallelToolCalls, serviceTier } = settings
  if (seed !== undefined && (protocol !== 'chat' || lacks.has('seed'))) return refused('seed', NO_FIELD)
  if (stop !== undefined && (protocol === 'responses' || lacks.has('stop'))) return refused('stop', NO_FIELD)
  if (parallelToolCalls !== undefined && lacks.has('parallel')) return refused('parallelToolCalls', NO_FIELD)
  const { serviceTiers: tiers } = quirks
  if (serviceTier === undefined || tiers === undefined || tiers.includes(serviceTier)) return null
  if (tiers.length === 0) return refused('serviceTier', NO_FIELD)
  const names = tiers.map((tier) => `"${tier}"`).join(' or ')
  return refused('serviceTier', `it takes ${names}. Choose one of them, or leave it out`)
}

const NO_FIELD = 'its host has no such field. Leave it out'

function choiceOf(target: Target, protocol: ProtocolName): Refused | null {
  const { toolChoice = 'auto' } = target.settings
  if (toolChoice === 'auto') return null
  if (target.quirks.lacks?.includes('tool_choice')) return refused('toolChoice', NO_FIELD)
  if (protocol !== 'messages' || toolChoice === 'none' || !isClaude(target.model)) return null
  return thinkingOf(target, false).on ? refused('toolChoice', CLAUDE_CHOICE) : null
}

const CLAUDE_CHOICE =
  'a Claude model that thinks cannot be made to call a tool. Set `reasoning` to "off" if the model can stop thinking, or leave it out'

function cacheOf({ settings, quirks, model }: Target, protocol: ProtocolName): Refused | null {
  if (typeof settings.cache !== 'object' || protocol === 'messages') return null
  if (quirks.cacheMarks && protocol === 'chat' && /anthropic|claude/i.test(model)) return null
  return refused('cache', 'its host decides by itself how long it keeps a prompt. Write `cache: true` or leave it out')
}
