// Which reasoning efforts a model takes, as far as that is published. An unknown one is left to the host, which refuses it in its
// own words. How an effort is sent is for each protocol.
import type { Effort, Settings, Target } from './protocol.ts'
import { claudeEfforts, tooTight } from './thinking.ts'

/** Models of OpenAI that refuse the reasoning fields. All later ones take them. */
export const NEVER_REASONS = /^(ft:)?(gpt-[34]|chatgpt-|gpt-5-chat)/

const PLAIN: readonly Effort[] = ['off', 'low', 'medium', 'high']

/** `off` is the least effort of a model that cannot stop, if it has one. https://developers.openai.com/api/docs/guides/reasoning */
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

/** What is wrong with this setting for this model, and what to do; null if nothing is known to be. */
export function unreasonable(target: Target, protocol: string): string | null {
  const { model, settings, quirks } = target
  const { reasoning } = settings
  if (reasoning === undefined) return null
  if (quirks.lacks?.includes('reasoning')) {
    return 'its host has no setting for it that is known here. Leave it out, or write the fields of the host into `body`'
  }
  const taken = quirks.efforts ?? effortsOf(model, protocol)
  const fits = protocol === 'messages' ? tooTight(target) : null
  if (taken === null || isTaken(taken, reasoning)) return fits
  if (taken.every((effort) => effort === 'off')) return 'it does not reason. Leave it out'
  return `it takes ${taken.map((effort) => `"${effort}"`).join(' or ')}. Choose one of them, or leave it out`
}

/** Whether this model can think; undefined where nothing is published. */
export function reasons({ model, quirks }: Pick<Target, 'model' | 'quirks'>, protocol: string): boolean | undefined {
  const taken = quirks.efforts ?? effortsOf(model, protocol)
  return taken?.some((effort) => effort !== 'off')
}

/** A budget becomes an effort where a host takes none. */
function isTaken(taken: readonly Effort[], reasoning: NonNullable<Settings['reasoning']>): boolean {
  return typeof reasoning === 'string' ? taken.includes(reasoning) : taken.some((effort) => effort !== 'off')
}

function effortsOf(model: string, protocol: string): readonly Effort[] | null {
  if (protocol === 'messages') return claudeEfforts(model)
  if (protocol !== 'responses') return null
  return OPENAI.find(([pattern]) => pattern.test(model))?.[1] ?? null
}
