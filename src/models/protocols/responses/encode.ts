// A request as one body for `POST /responses`. Stateless unless chaining is asked for: then only what came after the newest
// response that the provider stored is sent. It reads no answers: that is stream.ts.
import type { Json } from '../../../kernel/content.ts'
import type { OutputSchema, Request, ToolSchema } from '../../../kernel/ports.ts'
import { CLEARED } from '../../../kernel/transcript.ts'
import type { Encoded, Settings, Target } from '../protocol.ts'
import { sound, type Turn } from '../sound.ts'
import { isStrict } from '../strict.ts'
import { toolSchema } from '../tool-schema.ts'
import { hasOwnIds, itemsOf, resultsOf, sendingTo } from './input.ts'
import { markOf } from './marks.ts'

/** Models that refuse every word about reasoning. All later ones know it. */
const NEVER_REASONS = /^(ft:)?(gpt-[34]|chatgpt-|gpt-5-chat)/
/** The least that a model which cannot stop reasoning takes; null: it has but one. All others know `none`. */
const LEAST: readonly (readonly [RegExp, string | null])[] = [
  [/^(ft:)?(gpt-5|o\d).*-pro/, null],
  [/^(ft:)?o\d|codex|gpt-oss/, 'low'],
  [/^(ft:)?gpt-5(?!\.)/, 'minimal'],
]
const OUTPUT_TOKENS_MIN = 16
const CACHE_KEY_CHARS_MAX = 64
const NOTHING_SAID = '{"type":"message","role":"user","content":[{"type":"input_text","text":"(no message)"}]}'

export function encode(request: Request, target: Target): Encoded {
  const { settings, quirks } = target
  const lacks = new Set<string>(quirks.lacks)
  const reasons = !lacks.has('reasoning') && !NEVER_REASONS.test(target.model)
  const { turns } = sound(request.messages, quirks.idPattern)
  const link = settings.chain === true && !target.unlinked ? linkIn(turns, target) : null
  const fields = new Map<string, string>()
  const set = (name: string, value: Json): unknown => fields.set(name, JSON.stringify(value))
  set('model', target.model)
  set('stream', true)
  set('store', settings.chain === true)
  if (reasons) set('include', ['reasoning.encrypted_content'])
  if (link) set('previous_response_id', link.response)
  if (request.instructions.trim() !== '') set('instructions', request.instructions)
  for (const [name, json] of toolFields(request, lacks)) fields.set(name, json)
  if (request.output?.mode === 'native' && !lacks.has('native_output')) {
    set('text', { format: formatOf(request.output, lacks) })
  }
  const reasoning = reasons && settings.reasoning !== undefined ? reasoningOf(settings.reasoning, target.model) : null
  if (reasoning) set('reasoning', lacks.has('summary') ? { effort: reasoning.effort } : reasoning)
  if (settings.outputTokensMax !== undefined) {
    const most = settings.outputTokensMax * (request.boost ? 2 : 1)
    set(quirks.outputTokensField ?? 'max_output_tokens', Math.max(OUTPUT_TOKENS_MIN, most))
  }
  if (settings.temperature !== undefined) set('temperature', settings.temperature)
  if (settings.cache !== false) set('prompt_cache_key', cacheKey(request.session))
  fields.set('input', `[${inputOf(turns, link, target, reasons)}]`)
  for (const [name, value] of Object.entries(settings.body ?? {})) {
    fields.delete(name)
    set(name, value)
  }
  const body = [...fields].map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')
  return { path: '/responses', headers: {}, body: `{${body}}` }
}

/** Sessions that differ do so at their end. */
function cacheKey(session: string): string {
  return session.slice(-CACHE_KEY_CHARS_MAX).replace(/[^\x21-\x7e]/g, '_')
}

type Link = { readonly response: string; readonly at: number }

/**
 * The newest reply that this endpoint and model stored. Null, and everything is sent, if what is stored there is not what the
 * log shows now: it was compacted since, or an id was mapped. Null too if there is nothing new to say.
 */
function linkIn(turns: readonly Turn[], { endpoint, model }: Target): Link | null {
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at] as Turn
    if (turn.type !== 'assistant') continue
    const mark = turn.parts.map((part) => markOf(part, endpoint)).find((found) => found?.type === 'response')
    if (mark?.type !== 'response' || mark.model !== model) continue
    const isLast = at === turns.length - 1 && turn.results.length === 0
    // A summary stands before what it does not replace, and was written after it.
    const isStored = turns.slice(0, at).every((before) => before.of.seq < turn.of.seq && !hasCleared(before))
    return !isLast && isStored && hasOwnIds(turn) ? { response: mark.response, at } : null
  }
  return null
}

function hasCleared(turn: Turn): boolean {
  return turn.type === 'assistant' && turn.results.some(({ content }) => content === CLEARED)
}

function inputOf(turns: readonly Turn[], link: Link | null, target: Target, reasons: boolean): string {
  const sending = sendingTo(target, reasons && target.settings.reasoning !== 'off')
  let input = ''
  for (let at = link?.at ?? 0; at < turns.length; at++) {
    const turn = turns[at] as Turn
    const items = at === link?.at && turn.type === 'assistant' ? resultsOf(turn) : itemsOf(turn, sending)
    if (items !== '') input += input === '' ? items : `,${items}`
  }
  return input === '' ? NOTHING_SAID : input
}

type Reasoning = { readonly effort: string; readonly summary?: 'auto' }

/** Null: nothing can be said, and the model reasons as it always does. */
function reasoningOf(wanted: NonNullable<Settings['reasoning']>, model: string): Reasoning | null {
  if (wanted === 'off') {
    const [, effort] = LEAST.find(([pattern]) => pattern.test(model)) ?? [null, 'none']
    return effort === null ? null : { effort }
  }
  if (typeof wanted === 'string') return { effort: wanted, summary: 'auto' }
  // There are no budgets here, only efforts.
  const { budgetTokens } = wanted
  return { effort: budgetTokens < 4_096 ? 'low' : budgetTokens < 16_384 ? 'medium' : 'high', summary: 'auto' }
}

function formatOf({ name, schema, strict }: OutputSchema, lacks: ReadonlySet<string>): Json {
  const format = { type: 'json_schema', name, schema }
  return lacks.has('strict') ? format : { ...format, strict: strict && isStrict(schema) }
}

function toolFields(
  { tools, output, allow }: Request,
  lacks: ReadonlySet<string>,
): readonly (readonly [string, string])[] {
  const listed = tools.map((tool) => toolJson(tool, lacks.has('strict')))
  const answer = output?.mode === 'tool' ? output : null
  if (answer) {
    const { name, schema, strict } = answer
    const tool = {
      name,
      description: 'Gives the final answer. Call it alone, when the work is done.',
      parameters: schema,
    }
    listed.push(writeTool(tool, lacks.has('strict') ? null : strict && isStrict(schema)))
  }
  if (listed.length === 0) return []
  const fields: (readonly [string, string])[] = [['tools', `[${listed.join(',')}]`]]
  // Nothing else may be called: then the answer must be.
  const forced = answer !== null && (tools.length === 0 || allow === 'none')
  const choice = forced ? { type: 'function', name: answer.name } : allow === 'none' ? 'none' : null
  if (choice !== null && !lacks.has('tool_choice')) fields.push(['tool_choice', JSON.stringify(choice)])
  fields.push(['parallel_tool_calls', 'true'])
  return fields
}

const plainTools = new WeakMap<ToolSchema, string>()
const strictTools = new WeakMap<ToolSchema, string>()

function toolJson(tool: ToolSchema, plain: boolean): string {
  const kept = plain ? plainTools : strictTools
  const before = kept.get(tool)
  if (before !== undefined) return before
  const json = writeTool(tool, plain ? null : isStrict(tool.parameters))
  kept.set(tool, json)
  return json
}

/** Without `strict` the provider would make a schema strict by itself, so it is always said where it is known. */
function writeTool({ name, description, parameters }: ToolSchema, strict: boolean | null): string {
  const tool = { type: 'function', name, description, parameters: toolSchema(parameters) }
  return JSON.stringify(strict === null ? tool : { ...tool, strict })
}
