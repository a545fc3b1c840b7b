// A request as one body for `POST /chat/completions`: all that stands around the conversation, which is messages.ts.
import type { Json } from '../../../kernel/content.ts'
import type { OutputSchema, Request, ToolSchema } from '../../../kernel/ports.ts'
import type { Encoded, Quirks, Settings, Target } from '../protocol.ts'
import { idPatterns, sound } from '../sound.ts'
import { isStrict } from '../strict.ts'
import { toolSchema } from '../tool-schema.ts'
import { marked, messageList, systemMessage } from './messages.ts'

export function encode(request: Request, target: Target): Encoded {
  const { settings, quirks } = target
  const lacks = new Set<string>(quirks.lacks)
  const { turns } = sound(request.messages, quirks.idPattern ?? idPatterns.chat)
  const marks = marked(target)
  const fields = new Map<string, string>()
  const set = (name: string, value: Json): unknown => fields.set(name, JSON.stringify(value))
  set('model', target.model)
  set('stream', true)
  if (!lacks.has('stream_usage')) set('stream_options', { include_usage: true })
  if (settings.outputTokensMax !== undefined) {
    set(quirks.outputTokensField ?? 'max_completion_tokens', settings.outputTokensMax * (request.boost ? 2 : 1))
  }
  if (settings.temperature !== undefined) set('temperature', settings.temperature)
  if (settings.reasoning !== undefined && !lacks.has('reasoning')) {
    for (const [name, value] of Object.entries(reasoningOf(settings.reasoning, quirks))) set(name, value)
  }
  // The host moves this mark along by itself: no message changes because of it.
  if (marks) set('cache_control', { type: 'ephemeral' })
  const tools = toolList(request, !lacks.has('strict'))
  if (tools !== '') fields.set('tools', `[${tools}]`)
  const choice = tools === '' || lacks.has('tool_choice') ? null : choiceOf(request, target)
  if (choice !== null) set('tool_choice', choice)
  if (request.output?.mode === 'native' && !lacks.has('native_output')) {
    set('response_format', formatOf(request.output, !lacks.has('strict')))
  }
  fields.set('messages', `[${systemMessage(request.instructions, marks)}${messageList(turns, target)}]`)
  for (const [name, value] of Object.entries(settings.body ?? {})) {
    fields.delete(name)
    set(name, value)
  }
  // Not by join, which would copy the whole history once more.
  let body = ''
  for (const [name, text] of fields) body += `${body === '' ? '{' : ','}${JSON.stringify(name)}:${text}`
  return { path: '/chat/completions', headers: {}, body: `${body}}` }
}

type Asked = NonNullable<Settings['reasoning']>

function reasoningOf(asked: Asked, { reasoningField }: Quirks): Readonly<Record<string, Json>> {
  if (reasoningField === 'reasoning_details') {
    return { reasoning: typeof asked === 'object' ? { max_tokens: asked.budgetTokens } : { effort: effortOf(asked) } }
  }
  // DeepSeek and Moonshot know efforts, but have a switch of their own for none.
  if (reasoningField === 'reasoning_content' && asked === 'off') return { thinking: { type: 'disabled' } }
  return { reasoning_effort: effortOf(asked) }
}

/** A budget is told in words here: most hosts take no number. */
function effortOf(asked: Asked): string {
  if (typeof asked === 'string') return asked === 'off' ? 'none' : asked
  return asked.budgetTokens < 4_096 ? 'low' : asked.budgetTokens < 16_384 ? 'medium' : 'high'
}

const OUTPUT_TOOL = 'Gives the final answer. Call it once, alone, when the work is done.'

type Listed = { readonly strict: boolean; readonly text: string }
const listed = new WeakMap<readonly ToolSchema[], Listed>()

/** In the given order, and always all of them: the cache begins with them. */
function toolList({ tools, output }: Request, strict: boolean): string {
  const before = listed.get(tools)
  const text =
    before?.strict === strict
      ? before.text
      : tools.map((tool) => toolJson(tool, strict && isStrict(tool.parameters))).join(',')
  listed.set(tools, { strict, text })
  if (output?.mode !== 'tool') return text
  const tool = { name: output.name, description: OUTPUT_TOOL, parameters: output.schema }
  const answer = toolJson(tool, strict && output.strict && isStrict(output.schema))
  return text === '' ? answer : `${text},${answer}`
}

function toolJson({ name, description, parameters }: ToolSchema, strict: boolean): string {
  const described = description.trim() === '' ? {} : { description }
  const called: Json = { name, ...described, parameters: toolSchema(parameters), ...(strict ? { strict } : {}) }
  return JSON.stringify({ type: 'function', function: called })
}

/** Null leaves it to the host, which then lets the model decide. */
function choiceOf({ tools, allow, output }: Request, { settings, quirks }: Target): Json {
  if (output?.mode !== 'tool') return allow === 'none' ? 'none' : null
  // A model that thinks cannot be forced, and hosts with a field for thoughts have models that think unasked.
  const thinks = quirks.reasoningField !== undefined && settings.reasoning !== 'off'
  const alone = tools.length === 0 || allow === 'none'
  return alone && !thinks ? { type: 'function', function: { name: output.name } } : null
}

function formatOf({ name, schema, strict }: OutputSchema, known: boolean): Json {
  const kept: Json = known ? { strict: strict && isStrict(schema) } : {}
  return { type: 'json_schema', json_schema: { name, schema, ...kept } }
}
