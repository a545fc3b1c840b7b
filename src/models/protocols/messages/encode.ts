// A request as the body of POST /v1/messages. The conversation in it is turns.ts; this is all that stands around it.
import type { Json } from '../../../kernel/content.ts'
import type { Request, ToolSchema } from '../../../kernel/ports.ts'
import type { Encoded, Target } from '../protocol.ts'
import { sound } from '../sound.ts'
import { toolSchema } from '../tool-schema.ts'
import { readerOf, textBlock } from './blocks.ts'
import { json } from '../json.ts'
import { type Thinking, thinkingOf, unthinking } from './thinking.ts'
import { linesOf, loopThinks, messageList, withMark } from './turns.ts'

const HEADERS = { 'anthropic-version': '2023-06-01' } as const

export function encode(request: Request, target: Target): Encoded {
  const { settings, quirks } = target
  const { turns } = sound(request.messages, quirks.idPattern)
  const asked = thinkingOf(target, request.boost)
  const signed = linesOf(turns, readerOf(target, asked.on))
  const fits = !asked.manual || loopThinks(signed)
  const thinking = fits ? asked : unthinking(asked)
  const lines = fits ? signed : linesOf(turns, readerOf(target, false))
  const marks = settings.cache !== false
  const fields: readonly (readonly [string, string | null])[] = [
    ['model', json(target.model)],
    [quirks.outputTokensField ?? 'max_tokens', json(thinking.outputTokensMax)],
    ['stream', 'true'],
    ['system', systemOf(request, marks)],
    ['tools', toolsOf(request, marks)],
    ['tool_choice', choiceOf(request, target, thinking)],
    ['thinking', thinking.field === null ? null : json(thinking.field)],
    ['output_config', outputOf(request, target, thinking)],
    ['temperature', thinking.temperature === null ? null : json(thinking.temperature)],
    ['messages', messageList(lines, marks)],
  ]
  const own = Object.entries(settings.body ?? {}).map(([name, value]) => [name, json(value)] as const)
  const kept = fields.filter(([name, value]) => value !== null && !Object.hasOwn(settings.body ?? {}, name))
  let body = ''
  for (const [name, value] of [...kept, ...own]) body += `${body === '' ? '{' : ','}${json(name)}:${value}`
  return { path: '/v1/messages', headers: HEADERS, body: `${body}}` }
}

function systemOf({ instructions }: Request, marks: boolean): string | null {
  if (instructions.trim() === '') return null
  const block = textBlock(instructions)
  return `[${marks ? withMark(block) : block}]`
}

/** In the given order, and never fewer for one request: the cache begins with them. */
function toolsOf({ tools, output }: Request, marks: boolean): string | null {
  const listed = tools.map(toolJson)
  if (output?.mode === 'tool') {
    listed.push(toolJson({ name: output.name, description: OUTPUT_TOOL, parameters: output.schema }))
  }
  if (listed.length === 0) return null
  return `[${marks ? withMark(listed.join(',')) : listed.join(',')}]`
}

const OUTPUT_TOOL = 'Gives the final answer. Call it once, alone, when the work is done.'

const tools = new WeakMap<ToolSchema, string>()

function toolJson(tool: ToolSchema): string {
  const known = tools.get(tool)
  if (known !== undefined) return known
  const described = tool.description.trim() === '' ? '' : `"description":${json(tool.description)},`
  const text = `{"name":${json(tool.name)},${described}"input_schema":${json(toolSchema(tool.parameters))}}`
  tools.set(tool, text)
  return text
}

function choiceOf({ tools: given, allow, output }: Request, { quirks }: Target, { on }: Thinking): string | null {
  const answers = output?.mode === 'tool'
  if ((given.length === 0 && !answers) || quirks.lacks?.includes('tool_choice')) return null
  if (!answers) return allow === 'none' ? '{"type":"none"}' : '{"type":"auto"}'
  // A model that thinks cannot be forced.
  const forced = (given.length === 0 || allow === 'none') && !on
  return forced ? `{"type":"tool","name":${json(output.name)},"disable_parallel_tool_use":true}` : '{"type":"auto"}'
}

function outputOf({ output }: Request, { quirks }: Target, { effort }: Thinking): string | null {
  const native = output?.mode === 'native' && !quirks.lacks?.includes('native_output')
  if (!native && effort === null) return null
  const config: Record<string, Json> = {}
  if (effort !== null) config.effort = effort
  if (native) config.format = { type: 'json_schema', schema: output.schema }
  return json(config)
}
