// Builds the AI SDK's call options from a request: the messages as its prompt, tools, and the form of the answer.
import type {
  JSONObject,
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3ProviderTool,
  LanguageModelV3TextPart,
  LanguageModelV3ToolResultOutput,
  SharedV3ProviderMetadata,
  SharedV3ProviderOptions,
} from '@ai-sdk/provider'
import type { Part } from '../../kernel/content.ts'
import type { Request, ToolSchema } from '../../ports/model.ts'
import { providerFamily, isSameFamily, sdkMarkOf, providerToolDataOf } from './sdk-metadata.ts'
import type { AiSdkSettings, SdkOrigin } from './sdk-settings.ts'
import { endpoints } from '../http/endpoints.ts'
import {
  type InlineFile,
  FROM_REPLY,
  isFile,
  madeFileText,
  mediaTypeOf,
  type RemoteFile,
  fileBelowText,
  unseenFileText,
} from '../protocols/media.ts'
import {
  idPatterns,
  type SendableCall,
  type SendableResult,
  mendMessages,
  type SendableTurn,
} from '../protocols/mend-messages.ts'
import { allowedTools, demandedCall } from '../protocols/check-settings.ts'
import { isStrict } from '../protocols/strict-schema.ts'
import { foreignThought, callsBefore, tagThought } from '../protocols/thoughts.ts'
import { OUTPUT_TOOL, toolSchema } from '../protocols/tool-schema.ts'

/** The members that are used of a provider package's tool. The package's own type does not have them. */
export type SdkProviderTool = { readonly id: `${string}.${string}`; readonly args?: Record<string, unknown> }

type AssistantTurn = Extract<SendableTurn, { type: 'assistant' }>
type AssistantContent = Extract<LanguageModelV3Message, { role: 'assistant' }>['content']

/** With `files`, images and documents are sent as files; else as a line of text. */
export function buildCallOptions(
  origin: SdkOrigin,
  settings: AiSdkSettings,
  request: Request,
  files: boolean,
): LanguageModelV3CallOptions {
  const family = providerFamily(origin)
  const { output } = request
  const native = output?.mode === 'native'
  const served = providerToolsOf(settings.providerTools)
  const unserved = request.tools.filter(({ name }) => !served.some((tool) => tool.name === name))
  const tools = [...functionTools({ ...request, tools: unserved }, family), ...served]
  const own = (settings.providerOptions ?? {}) as SharedV3ProviderOptions
  // OpenAI's package makes every schema strict by default.
  const loose = native && !output.strict ? { [family]: { ...own[family], strictJsonSchema: false } } : {}
  const most = settings.outputTokensMax
  return {
    prompt: promptOf(request, origin, family, files),
    ...(tools.length > 0 ? { tools } : {}),
    ...toolChoiceOf(request, settings),
    ...(native ? { responseFormat: { type: 'json', name: output.name, schema: output.schema as object } } : {}),
    ...(most === undefined ? {} : { maxOutputTokens: most * (request.boost ? 2 : 1) }),
    ...(settings.temperature === undefined ? {} : { temperature: settings.temperature }),
    ...(settings.topP === undefined ? {} : { topP: settings.topP }),
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
    ...(settings.stop === undefined ? {} : { stopSequences: [...settings.stop] }),
    providerOptions: { ...own, ...loose },
  }
}

/** The answer tool is never forced: thinking models refuse that, and a model that only writes text is asked again. */
function toolChoiceOf(request: Request, settings: AiSdkSettings): Pick<LanguageModelV3CallOptions, 'toolChoice'> {
  const { tools, output } = request
  const demand = demandedCall(request, { settings })
  if (demand !== null) {
    return { toolChoice: demand === 'required' ? { type: demand } : { type: 'tool', toolName: demand.tool } }
  }
  const none = tools.length > 0 && allowedTools(request, { settings }) === 'none' && output?.mode !== 'tool'
  return none ? { toolChoice: { type: 'none' } } : {}
}

/** Specification v4 tags the data of a file, also in a result. Nothing else that is sent differs. */
export function toSpecV4(options: LanguageModelV3CallOptions): object {
  const prompt = options.prompt.map((message) => {
    if (message.role === 'user' || message.role === 'assistant') {
      const content = message.content.map((part) =>
        part.type === 'file' ? { ...part, data: tagFileData(part.data) } : part,
      )
      return { ...message, content }
    }
    return message.role === 'tool' ? { ...message, content: message.content.map(resultToSpecV4) } : message
  })
  return { ...options, prompt }
}

function providerToolsOf(tools: AiSdkSettings['providerTools'] = {}): LanguageModelV3ProviderTool[] {
  return Object.entries(tools).map(([name, tool]) => {
    const { id, args = {} } = tool as SdkProviderTool
    return { type: 'provider', id, name, args }
  })
}

function tagFileData(data: LanguageModelV3FilePart['data']): object {
  return data instanceof URL ? { type: 'url', url: data } : { type: 'data', data }
}

function resultToSpecV4(part: Extract<LanguageModelV3Message, { role: 'tool' }>['content'][number]): object {
  if (part.type !== 'tool-result' || part.output.type !== 'content') return part
  const value = part.output.value.map((item) => {
    if (item.type !== 'image-data' && item.type !== 'file-data') return item
    return { ...item, type: 'file', data: { type: 'data', data: item.data } }
  })
  return { ...part, output: { ...part.output, value } }
}

function functionTools({ tools, output }: Request, family: string): LanguageModelV3FunctionTool[] {
  const all: ToolSchema[] = [...tools]
  if (output?.mode === 'tool') all.push({ name: output.name, description: OUTPUT_TOOL, parameters: output.schema })
  return all.map(({ name, description, parameters }) => {
    const inputSchema = toolSchema(parameters) as JSONObject
    const tool = { type: 'function', name, description, inputSchema } as const
    // OpenAI makes a schema strict unless told otherwise. Other providers may not know the field.
    return family === 'openai' ? { ...tool, strict: isStrict(parameters) } : tool
  })
}

function promptOf(request: Request, origin: SdkOrigin, family: string, files: boolean): LanguageModelV3Message[] {
  const pattern = endpoints[family]?.quirks.idPattern ?? idPatterns.chat
  const prompt: LanguageModelV3Message[] = []
  if (request.instructions.trim() !== '') prompt.push({ role: 'system', content: request.instructions })
  for (const turn of mendMessages(request.messages, pattern).turns) prompt.push(...messagesOf(turn, origin, files))
  const spoken = prompt.some(({ role }) => role !== 'system')
  return spoken ? prompt : [...prompt, { role: 'user', content: [{ type: 'text', text: '(no message)' }] }]
}

function messagesOf(turn: SendableTurn, origin: SdkOrigin, files: boolean): readonly LanguageModelV3Message[] {
  if (turn.type === 'user') {
    const content = turn.parts.flatMap((part) => userPart(part, files))
    return content.length > 0 ? [{ role: 'user', content }] : []
  }
  const content = assistantParts(turn, origin, files)
  if (content.length === 0) return []
  const said: LanguageModelV3Message = { role: 'assistant', content: [...content] }
  const made = TAKES_MADE.test(origin.provider) || !files ? [] : madeFilesMessage(turn.parts)
  if (turn.results.length === 0) return [said, ...made]
  const native = files && TAKES_FILES.test(origin.provider)
  const results = turn.results.map((result) => {
    const output = resultOutput(result, native, files)
    return { type: 'tool-result' as const, toolCallId: result.id, toolName: result.tool, output }
  })
  return [
    said,
    { role: 'tool', content: results },
    ...made,
    ...(native || !files ? [] : resultFilesMessage(turn.results)),
  ]
}

/** Providers whose packages send a file back as part of the model's reply. Others leave it out or refuse it. */
const TAKES_MADE = /^(google|vertex)/

/** The files that the model made, as a message of the user. */
function madeFilesMessage(parts: readonly Part[]): readonly LanguageModelV3Message[] {
  const shown = parts.flatMap((part) => (isFile(part) && dataOf(part) !== null ? userPart(part, true) : []))
  return shown.length === 0 ? [] : [{ role: 'user', content: [{ type: 'text', text: FROM_REPLY }, ...shown] }]
}

/**
 * Providers whose packages send files in a result. Others write them into its text as base64, so their files go into a
 * message after it.
 */
const TAKES_FILES = /^(anthropic|google|vertex|amazon-bedrock|bedrock)|\.(responses|messages)$/

function resultOutput(
  { ok, content, parts }: SendableResult,
  native: boolean,
  files: boolean,
): LanguageModelV3ToolResultOutput {
  if (parts === undefined) return { type: ok ? 'text' : 'error-text', value: content }
  const value = parts.flatMap((part): readonly ResultContent[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    if (part.type !== 'data') return []
    return [native ? resultFile(part) : { type: 'text', text: files ? fileBelowText(part) : unseenFileText(part) }]
  })
  if (native) return { type: 'content', value: [{ type: 'text', text: content }, ...value] }
  const notes = value.flatMap((each) => (each.type === 'text' ? [each.text] : []))
  return { type: ok ? 'text' : 'error-text', value: [content, ...notes].join('\n') }
}

type ResultContent = Extract<LanguageModelV3ToolResultOutput, { type: 'content' }>['value'][number]

function resultFile({ media, data, name }: InlineFile): ResultContent {
  const mediaType = mediaTypeOf(media)
  if (mediaType.startsWith('image/')) return { type: 'image-data', data, mediaType }
  return { type: 'file-data', data, mediaType, ...(name === undefined ? {} : { filename: name }) }
}

/** The files of the results, as a message of the user. */
function resultFilesMessage(results: readonly SendableResult[]): readonly LanguageModelV3Message[] {
  const content = results.flatMap(({ tool, parts = [] }) => {
    const shown = parts.flatMap((part) => (part.type === 'data' ? userPart(part, true) : []))
    return shown.length === 0 ? [] : [{ type: 'text' as const, text: `[from the result of ${tool}]` }, ...shown]
  })
  return content.length === 0 ? [] : [{ role: 'user', content }]
}

function userPart(part: Part, files: boolean): readonly (LanguageModelV3TextPart | LanguageModelV3FilePart)[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (!isFile(part)) return []
  const data = files ? dataOf(part) : null
  if (data === null) return [{ type: 'text', text: unseenFileText(part) }]
  const { media, name } = part
  return [{ type: 'file', mediaType: media, data, ...(name === undefined ? {} : { filename: name }) }]
}

/** Null if the SDK has no form of it that every provider's package knows. */
function dataOf(part: InlineFile | RemoteFile): string | URL | null {
  if (part.type === 'file_id') return null
  return part.type === 'url' ? new URL(part.url) : part.data
}

/**
 * In the original order if the marks give it; else texts before calls. Reasoning of other providers is sent as text.
 */
function assistantParts(turn: AssistantTurn, origin: SdkOrigin, files: boolean): AssistantContent {
  const content: AssistantContent = []
  const thoughts: string[] = []
  const callMarks = new Map<number, SharedV3ProviderMetadata | null>()
  let textMark: SharedV3ProviderMetadata | null = null
  let fileMark: SharedV3ProviderMetadata | null = null
  let called = 0
  const callUpTo = (end: number): void => {
    for (; called < end && called < turn.calls.length; called++) {
      content.push(callPart(turn.calls[called] as SendableCall, callMarks.get(called) ?? null))
    }
  }
  for (const part of turn.parts) {
    if (part.type === 'text') {
      content.push({ type: 'text', text: part.text, ...withMetadata(textMark) })
      textMark = null
      continue
    }
    if (isFile(part)) {
      content.push(madeFilePart(part, origin, files, fileMark))
      fileMark = null
      continue
    }
    if (part.type === 'provider') {
      callUpTo(callsBefore(part))
      content.push(...providerToolContent(part, turn, origin))
      continue
    }
    if (part.type !== 'reasoning') continue
    const mark = sdkMarkOf(part, origin)
    callUpTo(callsBefore(part))
    if (mark?.of === 'reasoning') content.push({ type: 'reasoning', text: part.text, ...withMetadata(mark.metadata) })
    else if (mark?.of === 'text') textMark = mark.metadata
    else if (mark?.of === 'file') fileMark = mark.metadata
    else if (mark?.of === 'call') callMarks.set(mark.at, mark.metadata)
    else {
      const told = foreignThought(part, (by) => isSameFamily(by, origin))
      if (told !== null) thoughts.push(tagThought(told))
    }
  }
  callUpTo(turn.calls.length)
  const told: AssistantContent = thoughts.map((text) => ({ type: 'text', text }))
  // Reasoning without anything after it was cut off, and is refused.
  const leads = content.some(({ type }) => type !== 'reasoning')
  return leads ? [...told, ...content] : told
}

/** A file that the model made: unchanged if the provider's package takes it back, else a line that names its place. */
function madeFilePart(
  part: InlineFile | RemoteFile,
  origin: SdkOrigin,
  files: boolean,
  metadata: SharedV3ProviderMetadata | null,
): AssistantContent[number] {
  if (!files || dataOf(part) === null) return { type: 'text', text: unseenFileText(part) }
  if (!TAKES_MADE.test(origin.provider)) return { type: 'text', text: madeFileText(part) }
  // The package takes no URL here.
  if (part.type !== 'data') return { type: 'text', text: unseenFileText(part) }
  return { type: 'file', mediaType: part.media, data: part.data, ...withMetadata(metadata) }
}

/** A call or a result of the provider's own tool, unchanged. Half of such a pair would be refused. */
function providerToolContent(
  part: Extract<Part, { type: 'provider' }>,
  { parts }: AssistantTurn,
  origin: SdkOrigin,
): AssistantContent {
  const kept = providerToolDataOf(part, origin)
  if (kept === null) return []
  const { call: toolCallId, tool: toolName, of, value, metadata } = kept
  const paired = parts.some((each) => {
    const other = providerToolDataOf(each, origin)
    return other?.call === toolCallId && (other.of === 'input') !== (of === 'input')
  })
  if (!paired) return []
  const told = { toolCallId, toolName, ...withMetadata(metadata) }
  if (of === 'input') return [{ type: 'tool-call', ...told, input: value, providerExecuted: true }]
  const type = of === 'error' ? ('error-json' as const) : ('json' as const)
  return [{ type: 'tool-result', ...told, output: { type, value } }]
}

function callPart(
  { id, tool, args }: SendableCall,
  metadata: SharedV3ProviderMetadata | null,
): AssistantContent[number] {
  return { type: 'tool-call', toolCallId: id, toolName: tool, input: args, ...withMetadata(metadata) }
}

function withMetadata(metadata: SharedV3ProviderMetadata | null): {
  readonly providerOptions?: SharedV3ProviderOptions
} {
  return metadata === null ? {} : { providerOptions: metadata }
}
