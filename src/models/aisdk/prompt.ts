// A request as the AI SDK's call options: the conversation as its prompt, tools, and the shape of the answer.
import type {
  JSONObject,
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3TextPart,
  SharedV3ProviderMetadata,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider'
import type { Part } from '../../kernel/content.ts'
import type { Request, ToolSchema } from '../../ports/model.ts'
import { familyOf, isOfFamily, markOf, type Origin } from './marks.ts'
import { endpoints } from '../http/endpoints.ts'
import type { Deadlines } from '../http/watch.ts'
import type { PriceTable } from '../price.ts'
import { unseen } from '../protocols/media.ts'
import { idPatterns, type SoundCall, sound, type Turn } from '../protocols/sound.ts'
import type { ToolChoice } from '../protocols/protocol.ts'
import { allowed, demanded } from '../protocols/settings.ts'
import { isStrict } from '../protocols/strict.ts'
import { foreignThought, placeOf, tagged } from '../protocols/thoughts.ts'
import { OUTPUT_TOOL, toolSchema } from '../protocols/tool-schema.ts'

/** Absent settings are left to the provider. */
export type AiSdkSettings = {
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: number
  readonly stop?: readonly string[]
  /** As in `model`: for the first request after a message of the user. */
  readonly toolChoice?: ToolChoice
  readonly headers?: Readonly<Record<string, string>>
  /** As the provider's package takes them, such as `{ anthropic: { thinking: … } }`. */
  readonly providerOptions?: SharedV3ProviderOptions
  readonly prices?: PriceTable
  /** As for every model. The SDK shows no pings before specification v4: a model that thinks in silence needs a longer `idleMs`. */
  readonly deadlines?: Partial<Deadlines>
}

type Assistant = Extract<Turn, { type: 'assistant' }>
type Said = Extract<LanguageModelV3Message, { role: 'assistant' }>['content']

/** With `files`, images and documents are sent as files, else as a line of text. */
export function optionsFor(
  origin: Origin,
  settings: AiSdkSettings,
  request: Request,
  files: boolean,
): LanguageModelV3CallOptions {
  const family = familyOf(origin)
  const { output } = request
  const native = output?.mode === 'native'
  const tools = toolsOf(request, family)
  const own = settings.providerOptions ?? {}
  // OpenAI's package makes every schema strict by default.
  const loose = native && !output.strict ? { [family]: { ...own[family], strictJsonSchema: false } } : {}
  const most = settings.outputTokensMax
  return {
    prompt: promptOf(request, origin, family, files),
    ...(tools.length > 0 ? { tools } : {}),
    ...choiceOf(request, settings),
    ...(native ? { responseFormat: { type: 'json', name: output.name, schema: output.schema as object } } : {}),
    ...(most === undefined ? {} : { maxOutputTokens: most * (request.boost ? 2 : 1) }),
    ...(settings.temperature === undefined ? {} : { temperature: settings.temperature }),
    ...(settings.topP === undefined ? {} : { topP: settings.topP }),
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
    ...(settings.stop === undefined ? {} : { stopSequences: [...settings.stop] }),
    providerOptions: { ...own, ...loose },
  }
}

/** An answer is never forced: thinking models refuse that, and a model that only writes text is asked again. */
function choiceOf(request: Request, settings: AiSdkSettings): Pick<LanguageModelV3CallOptions, 'toolChoice'> {
  const { tools, output } = request
  const demand = demanded(request, { settings })
  if (demand !== null) {
    return { toolChoice: demand === 'required' ? { type: demand } : { type: 'tool', toolName: demand.tool } }
  }
  const none = tools.length > 0 && allowed(request, { settings }) === 'none' && output?.mode !== 'tool'
  return none ? { toolChoice: { type: 'none' } } : {}
}

/** The data of a file has a tag in specification v4. Nothing else that is sent differs. */
export function asV4(options: LanguageModelV3CallOptions): object {
  const prompt = options.prompt.map((message) => {
    if (message.role !== 'user') return message
    const content = message.content.map((part) =>
      part.type === 'file' ? { ...part, data: { type: 'data', data: part.data } } : part,
    )
    return { ...message, content }
  })
  return { ...options, prompt }
}

function toolsOf({ tools, output }: Request, family: string): LanguageModelV3FunctionTool[] {
  const all: ToolSchema[] = [...tools]
  if (output?.mode === 'tool') all.push({ name: output.name, description: OUTPUT_TOOL, parameters: output.schema })
  return all.map(({ name, description, parameters }) => {
    const inputSchema = toolSchema(parameters) as JSONObject
    const tool = { type: 'function', name, description, inputSchema } as const
    // OpenAI makes a schema strict unless told otherwise. Other providers may not know the field.
    return family === 'openai' ? { ...tool, strict: isStrict(parameters) } : tool
  })
}

function promptOf(request: Request, origin: Origin, family: string, files: boolean): LanguageModelV3Message[] {
  const pattern = endpoints[family]?.quirks.idPattern ?? idPatterns.chat
  const prompt: LanguageModelV3Message[] = []
  if (request.instructions.trim() !== '') prompt.push({ role: 'system', content: request.instructions })
  for (const turn of sound(request.messages, pattern).turns) prompt.push(...messagesOf(turn, origin, files))
  const spoken = prompt.some(({ role }) => role !== 'system')
  return spoken ? prompt : [...prompt, { role: 'user', content: [{ type: 'text', text: '(no message)' }] }]
}

function messagesOf(turn: Turn, origin: Origin, files: boolean): readonly LanguageModelV3Message[] {
  if (turn.type === 'user') {
    const content = turn.parts.flatMap((part) => userPart(part, files))
    return content.length > 0 ? [{ role: 'user', content }] : []
  }
  const content = assistantParts(turn, origin)
  if (content.length === 0) return []
  const said: LanguageModelV3Message = { role: 'assistant', content: [...content] }
  if (turn.results.length === 0) return [said]
  const results = turn.results.map(({ id, tool, ok, content: value }) => {
    const output = { type: ok ? ('text' as const) : ('error-text' as const), value }
    return { type: 'tool-result' as const, toolCallId: id, toolName: tool, output }
  })
  return [said, { role: 'tool', content: results }]
}

function userPart(part: Part, files: boolean): readonly (LanguageModelV3TextPart | LanguageModelV3FilePart)[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (part.type !== 'data') return []
  const { media, data, name } = part
  if (files) return [{ type: 'file', mediaType: media, data, ...(name === undefined ? {} : { filename: name }) }]
  return [{ type: 'text', text: unseen(part) }]
}

/** In the original order where the marks give it; else texts before calls. Reasoning of other providers is sent as text. */
function assistantParts(turn: Assistant, origin: Origin): Said {
  const content: Said = []
  const thoughts: string[] = []
  const callMarks = new Map<number, SharedV3ProviderMetadata | null>()
  let textMark: SharedV3ProviderMetadata | null = null
  let called = 0
  const callUpTo = (end: number): void => {
    for (; called < end && called < turn.calls.length; called++) {
      content.push(callPart(turn.calls[called] as SoundCall, callMarks.get(called) ?? null))
    }
  }
  for (const part of turn.parts) {
    if (part.type === 'text') {
      content.push({ type: 'text', text: part.text, ...wanted(textMark) })
      textMark = null
      continue
    }
    if (part.type !== 'reasoning') continue
    const mark = markOf(part, origin)
    callUpTo(placeOf(part))
    if (mark?.of === 'reasoning') content.push({ type: 'reasoning', text: part.text, ...wanted(mark.metadata) })
    else if (mark?.of === 'text') textMark = mark.metadata
    else if (mark?.of === 'call') callMarks.set(mark.at, mark.metadata)
    else {
      const told = foreignThought(part, (by) => isOfFamily(by, origin))
      if (told !== null) thoughts.push(tagged(told))
    }
  }
  callUpTo(turn.calls.length)
  const told: Said = thoughts.map((text) => ({ type: 'text', text }))
  // Reasoning that led to nothing was cut off, and is refused alone.
  const leads = content.some(({ type }) => type !== 'reasoning')
  return leads ? [...told, ...content] : told
}

function callPart({ id, tool, args }: SoundCall, metadata: SharedV3ProviderMetadata | null): Said[number] {
  return { type: 'tool-call', toolCallId: id, toolName: tool, input: args, ...wanted(metadata) }
}

function wanted(metadata: SharedV3ProviderMetadata | null): { readonly providerOptions?: SharedV3ProviderOptions } {
  return metadata === null ? {} : { providerOptions: metadata }
}
