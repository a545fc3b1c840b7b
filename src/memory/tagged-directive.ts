// The loop directive for a model without tools: a tagged block of JSON at the end of its text. The block becomes the
// call that a model with tools would make, so it is checked, run and recorded in the same way. A block that cannot be
// read stays part of the answer.
import type { Json, Part } from '../kernel/content.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../ports/model.ts'
import type { Message } from '../kernel/transcript.ts'
import { isPriced, outputTokensOf, type Priced } from '../models/http/hosted-model.ts'
import { resolveModel } from '../models/resolve-model.ts'
import { readTolerantJson } from '../view/tolerant-json.ts'
import { type Directive, directive, LOOP_DIRECTIVE } from '../tools/core/directive.ts'
import { textOf } from '../view/shown-text.ts'
import { isObject } from '../view/untrusted-json.ts'

type AssistantMessage = Extract<Message, { role: 'assistant' }>

/**
 * Wraps a model, which is then asked without tools. The agent must have `directiveTool` among its tools; the model asks
 * for other tools in the block.
 */
export function taggedDirective(given: string | Model): Model {
  const model = resolveModel(given)
  const { name } = model
  const call = (request: Request, context: CallContext) => callTagged(model, request, context)
  if (!isPriced(model)) return { name, call }
  const { able, outputTokensMax, secrets } = model
  const askWindow: Priced['askWindow'] = async (clock) => model.askWindow?.(clock)
  const outputTokensWith: Priced['outputTokensWith'] = (settings) => outputTokensOf(model, settings)
  const priced: Priced = {
    name,
    call,
    able,
    outputTokensMax,
    secrets,
    profile: () => model.profile(),
    outputTokensWith,
    askWindow,
  }
  return priced
}

async function callTagged(model: Model, request: Request, context: CallContext): Promise<Reply | ModelFailure> {
  const others = request.tools.filter((tool) => tool.name !== LOOP_DIRECTIVE)
  // There is no directive tool to take the call.
  if (others.length === request.tools.length) return model.call(request, context)
  const said = answerAlreadyGiven(request.messages)
  if (said !== null) return { type: 'reply', parts: said, calls: [], finish: 'stop', usage: null }
  const instructions = [request.instructions, instructionsOf(others)].filter((text) => text !== '').join('\n\n')
  const plain = { ...request, tools: [], instructions, messages: request.messages.flatMap(asPlainMessages) }
  const reply = await model.call(plain, context)
  return reply.type === 'reply' ? withCalls(reply, request) : reply
}

/** After the directive's result the answer is the text that came with it, unless a message has arrived since. */
function answerAlreadyGiven(messages: readonly Message[]): readonly Part[] | null {
  const at = messages.findLastIndex(({ role }) => role === 'assistant')
  const last = messages[at]
  if (last?.role !== 'assistant' || last.calls.length === 0) return null
  const rest = messages.slice(at + 1)
  const settled = rest.every((message) => message.role === 'tool' || isNotice(message))
  return settled && last.calls.every(({ tool }) => tool === LOOP_DIRECTIVE) ? textsOf(last, last.calls[0]?.args) : null
}

function isNotice(message: Message): boolean {
  const [first] = message.role === 'user' ? message.parts : []
  return first?.type === 'text' && first.text.startsWith('<harness_notice kind="')
}

/** If the reply is only the block, the answer is its summary. */
function textsOf({ parts }: Pick<AssistantMessage, 'parts'>, args: Json | undefined): readonly Part[] {
  const texts = parts.filter((part) => part.type === 'text')
  if (texts.some(({ text }) => text.trim() !== '')) return texts
  return [{ type: 'text', text: (args as Directive | undefined)?.summary ?? '' }]
}

function withCalls(reply: Reply, { tools, seq }: Request): Reply {
  const text = textOf(reply.parts)
  const block = blockIn(text, reply.finish === 'length')
  if (block === null) return reply
  const asked = block.toolRequest
  if (asked && !tools.some(({ name }) => name === asked.name)) return reply
  const call = (tool: string, args: Json): ReplyCall => ({
    id: `block-${seq}-${tool}`,
    tool,
    args: JSON.stringify(args),
  })
  const calls = [call(LOOP_DIRECTIVE, block.directive), ...(asked ? [call(asked.name, asked.input)] : [])]
  const rest = reply.parts.filter((part) => part.type !== 'text')
  const parts = block.before === '' ? rest : [...rest, { type: 'text', text: block.before } as const]
  return { ...reply, parts, calls, finish: 'calls' }
}

type ToolRequest = { readonly name: string; readonly input: Json }
type DirectiveBlock = {
  readonly before: string
  readonly directive: Directive
  readonly toolRequest: ToolRequest | null
}

const OPENING = `<${LOOP_DIRECTIVE}>`
const CLOSING = `</${LOOP_DIRECTIVE}>`

/** The last block of a text, parsed tolerantly and then checked strictly. Null if there is none, or it is invalid. */
export function blockIn(text: string, cut = false): DirectiveBlock | null {
  const at = text.lastIndexOf(OPENING)
  if (at < 0) return null
  const end = text.indexOf(CLOSING, at)
  // A block that was cut off may lack something important.
  if (end < 0 && cut) return null
  const after = end < 0 ? '' : text.slice(end + CLOSING.length).replace(/^\s*```\s*$/, '')
  const value = readTolerantJson(text.slice(at + OPENING.length, end < 0 ? text.length : end))
  if (after.trim() !== '' || !isObject(value)) return null
  const { tool_request, ...rest } = value
  const checked = directive.check(rest)
  const toolRequest = toolRequestIn(tool_request)
  if (!('value' in checked) || toolRequest === undefined) return null
  // Some models put a fence around it.
  const before = text.slice(0, at).replace(/```\w*\s*$/, '')
  return { before: before.trimEnd(), directive: checked.value, toolRequest }
}

/** Null if there is no request, undefined if it is invalid. */
function toolRequestIn(value: Json | undefined): ToolRequest | null | undefined {
  if (value === undefined || value === null) return null
  const { name, input = {} } = value as { readonly name?: Json; readonly input?: Json }
  return typeof name === 'string' && typeof input === 'object' && input !== null ? { name, input } : undefined
}

/** Restores the messages as the model wrote them: calls become their block again, and results become text. */
function asPlainMessages(message: Message, i: number, all: readonly Message[]): readonly Message[] {
  if (message.role === 'user') return [message]
  if (message.role === 'tool') {
    if (message.tool === LOOP_DIRECTIVE && message.ok) return []
    const { tool, ok, content } = message
    const said = typeof content === 'string' ? content : JSON.stringify(content)
    const text = `<tool_result tool="${tool}" ok="${ok}">\n${said}\n</tool_result>`
    return [{ role: 'user', seq: message.seq, parts: [{ type: 'text', text }] }]
  }
  const before = all.slice(0, i).findLast(({ role }) => role === 'assistant')
  if (repeatsAnswer(message, before)) return []
  if (message.calls.length === 0) return [message]
  const parts: readonly Part[] = [...message.parts, { type: 'text', text: blockOf(message) }]
  return [{ role: 'assistant', seq: message.seq, parts, calls: [] }]
}

/** Whether the message repeats the answer that came with the directive. */
function repeatsAnswer({ parts, calls }: AssistantMessage, before: Message | undefined): boolean {
  if (calls.length > 0 || before?.role !== 'assistant' || before.calls.length === 0) return false
  if (!before.calls.every(({ tool }) => tool === LOOP_DIRECTIVE)) return false
  return JSON.stringify(parts) === JSON.stringify(textsOf(before, before.calls[0]?.args))
}

function blockOf({ calls }: AssistantMessage): string {
  const said = calls.find(({ tool }) => tool === LOOP_DIRECTIVE)?.args ?? {}
  const other = calls.find(({ tool }) => tool !== LOOP_DIRECTIVE)
  const asked = other ? { tool_request: { name: other.tool, input: other.args } } : {}
  return `\n\n${OPENING}${JSON.stringify({ ...(said as object), ...asked })}${CLOSING}`
}

function instructionsOf(others: Request['tools']): string {
  const listed = others.map(
    ({ name, description, parameters }) => `- ${name}: ${description} ${JSON.stringify(parameters)}`,
  )
  const asks = `\nTo use one tool, add "tool_request": {"name": …, "input": {…}}; its result comes with the next message. Tools:\n${listed.join('\n')}`
  return `You may end your answer with one block, and nothing after it: ${OPENING}{"outcome": "sleep", "summary": "…"}${CLOSING}
It is JSON of this schema: ${JSON.stringify(directive.schema)}
Without it the session sleeps after your answer.${others.length > 0 ? asks : ''}`
}
