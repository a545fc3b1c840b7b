// The published reasoning efforts of models. An unknown effort is left to the host, which refuses it in its own words.
// Each protocol decides how an effort is sent.
import type { Effort, RequestSettings, ModelTarget } from './protocol.ts'
import { claudeEfforts, whyTooTight } from './thinking.ts'

/** OpenAI models that refuse the reasoning fields. All later models take them. */
export const NEVER_REASONS = /^(ft:)?(gpt-[34]|chatgpt-|gpt-5-chat)/

const PLAIN: readonly Effort[] = ['off', 'low', 'medium', 'high']

/**
 * `off` is the least effort of a model that cannot stop reasoning, if it has one.
 * https://developers.openai.com/api/docs/guides/reasoning
 */
const OPENAI: readonly (readonly [RegExp, readonly Effort[]])[] = [
  [NEVER_REASONS, ['off']],
  [/^(ft:)?gpt-5-pro/, ['high']],
  [/^(ft:)?gpt-5\.\d-pro/, ['medium', 'high', 'xhigh']],
  [/^(ft:)?o\d.*-pro/, ['low', 'medium', 'high']],
  [/^(ft:)?gpt-5\.1-codex-max/, [...PLAIN, 'xhigh']],
  [/^(ft:)?(o\d|gpt-5-codex|gpt-5\.1(?!\d)|gpt-oss)/, PLAIN],
  [/^(ft:)?gpt-5(?!\.)/, ['off', 'minimal', 'low', 'medium', 'high']],
  [/^(ft:)?gpt-5\.[2-5](?!\d)/, [...PLAIN, 'xhigh']],
  [/^(ft:)?gpt-(5\.|[6-9])/, [...PLAIN, 'xhigh', 'max']],
]

/** The problem of this setting for this model, with its solution; null if none is known. */
export function whyNotReasoning(target: ModelTarget, protocol: string): string | null {
  const { model, settings, quirks } = target
  const { reasoning } = settings
  if (reasoning === undefined) return null
  if (quirks.lacks?.includes('reasoning')) {
    return 'its host has no setting for it that is known here. Leave it out, or write the fields of the host into `body`'
  }
  const taken = quirks.efforts ?? effortsOf(model, protocol)
  const fits = protocol === 'messages' ? whyTooTight(target) : null
  if (taken === null || takesReasoning(taken, reasoning)) return fits
  if (taken.every((effort) => effort === 'off')) return 'it does not reason. Leave it out'
  return `it takes ${taken.map((effort) => `"${effort}"`).join(' or ')}. Choose one of them, or leave it out`
}

/** Whether this model can think; undefined if nothing is published. */
export function canReason(
  { model, quirks }: Pick<ModelTarget, 'model' | 'quirks'>,
  protocol: string,
): boolean | undefined {
  const taken = quirks.efforts ?? effortsOf(model, protocol)
  return taken?.some((effort) => effort !== 'off')
}

/** If a host takes no budget, a budget becomes an effort. */
function takesReasoning(taken: readonly Effort[], reasoning: NonNullable<RequestSettings['reasoning']>): boolean {
  return typeof reasoning === 'string' ? taken.includes(reasoning) : taken.some((effort) => effort !== 'off')
}

function effortsOf(model: string, protocol: string): readonly Effort[] | null {
  if (protocol === 'messages') return claudeEfforts(model)
  if (protocol !== 'responses') return null
  return OPENAI.find(([pattern]) => pattern.test(model))?.[1] ?? null
}
