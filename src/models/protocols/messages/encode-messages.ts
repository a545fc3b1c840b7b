// Writes a request as the JSON body of `POST /v1/messages`. messages-protocol.ts reads answers.
import type { Json, BlobRef, Frozen, Part } from '../../../kernel/content.ts'
import type { Request, ToolSchema } from '../../../ports/model.ts'
import type { EncodedRequest, RequestSettings, ModelTarget } from '../protocol.ts'
import {
  isSameResult,
  mendMessages,
  type SendableTurn,
  type SendableCall,
  type SendableResult,
} from '../mend-messages.ts'
import { OUTPUT_TOOL, toolSchema } from '../tool-schema.ts'
import { buildRequestBody, jsonText } from '../write-json.ts'
import { allowedTools, cacheMark, demandedCall } from '../check-settings.ts'
import { acceptedSchema } from './accepted-schema.ts'
import { type Thinking, thinkingOf, withoutThinking } from '../thinking.ts'
import type { Message } from '../../../kernel/transcript.ts'
import {
  type InlineFile,
  FROM_REPLY,
  isFile,
  madeFileText,
  mediaTypeOf,
  type RemoteFile,
  unseenFileText,
} from '../media.ts'
import { foreignThought, callsBefore, tagThought } from '../thoughts.ts'
import { isObject, type JsonObject } from '../../../view/untrusted-json.ts'
import { writeProviderTools } from '../provider-forms.ts'
import { isCompaction, isServerTool } from './messages-reply.ts'

const HEADERS = { 'anthropic-version': '2023-06-01' } as const
/** https://platform.claude.com/docs/en/build-with-claude/files: required by requests that name an uploaded file. */
const FILES_BETA = 'files-api-2025-04-14'

function headersOf(betas: readonly string[]): EncodedRequest['headers'] {
  return betas.length === 0 ? HEADERS : { ...HEADERS, 'anthropic-beta': betas.join(',') }
}

export function encodeMessages(request: Request, target: ModelTarget): EncodedRequest {
  const { settings, quirks } = target
  const { turns } = mendMessages(request.messages, quirks.idPattern)
  const asked = thinkingOf(target, request.boost)
  const signed = linesOf(turns, encodeContextOf(target, asked.on))
  const fits = !asked.manual || beganThinking(signed)
  const thinking = fits ? asked : withoutThinking(asked)
  const lines = fits ? signed : linesOf(turns, encodeContextOf(target, false))
  const marks = cacheMarkText(settings)
  const served = writeProviderTools(target, 'messages')
  const fields: [string, string | null][] = [
    ['model', jsonText(target.model)],
    [quirks.outputTokensField ?? 'max_tokens', jsonText(thinking.outputTokensMax)],
    ['stream', 'true'],
    ['system', systemOf(request, marks)],
    ['tools', toolsOf(request, served.json, marks)],
    ['tool_choice', choiceOf(request, target, thinking)],
    ['thinking', thinking.field === null ? null : jsonText(thinking.field)],
    ['output_config', outputOf(request, target, thinking)],
    ['temperature', samplingField(settings.temperature, thinking)],
    ['top_p', samplingField(settings.topP, thinking)],
    ['stop_sequences', settings.stop === undefined ? null : jsonText(settings.stop)],
    ['service_tier', settings.serviceTier === undefined ? null : jsonText(settings.serviceTier)],
    ['messages', messageList(lines, marks, target.paused)],
  ]
  const kept = fields.filter((field): field is [string, string] => field[1] !== null)
  return {
    path: '/v1/messages',
    headers: headersOf(turns.some((turn) => namesUpload(turn, target)) ? [...served.betas, FILES_BETA] : served.betas),
    body: buildRequestBody(new Map(kept), fits ? settings.body : bodyWithoutThinking(settings)),
  }
}

function namesUpload({ type, parts }: SendableTurn, { endpoint }: ModelTarget): boolean {
  return type === 'user' && parts.some((part) => part.type === 'file_id' && part.provider === endpoint)
}

/** The caller's fields without thinking, for which the API would refuse these calls. */
function bodyWithoutThinking({ body = {} }: RequestSettings): NonNullable<RequestSettings['body']> {
  const { thinking: _, ...rest } = body
  return rest
}

/** The field that makes the cache write up to a block; empty if the caller wants none. */
function cacheMarkText(settings: RequestSettings): string {
  const mark = cacheMark(settings)
  return mark === null ? '' : `,"cache_control":${jsonText(mark)}}`
}

function samplingField(value: number | undefined, { samples }: Thinking): string | null {
  return samples && value !== undefined ? jsonText(value) : null
}

function systemOf({ instructions }: Request, mark: string): string | null {
  if (instructions.trim() === '') return null
  const block = textBlock(instructions)
  return `[${withMark(block, mark)}]`
}

/** In the given order, and always all of them: the cached prefix begins with the tools. */
function toolsOf({ tools, output }: Request, served: readonly string[], mark: string): string | null {
  const listed = [...tools.map(toolJson), ...served]
  if (output?.mode === 'tool') {
    listed.push(toolJson({ name: output.name, description: OUTPUT_TOOL, parameters: output.schema }))
  }
  if (listed.length === 0) return null
  return `[${withMark(listed.join(','), mark)}]`
}

const toolTexts = new WeakMap<ToolSchema, string>()

function toolJson(tool: ToolSchema): string {
  const known = toolTexts.get(tool)
  if (known !== undefined) return known
  const described = tool.description.trim() === '' ? '' : `"description":${jsonText(tool.description)},`
  const text = `{"name":${jsonText(tool.name)},${described}"input_schema":${jsonText(toolSchema(tool.parameters))}}`
  toolTexts.set(tool, text)
  return text
}

function choiceOf(request: Request, target: ModelTarget, { on }: Thinking): string | null {
  const { tools: own, output } = request
  const { settings, quirks } = target
  const given = [...own, ...(settings.providerTools ?? [])]
  const answers = output?.mode === 'tool'
  if ((given.length === 0 && !answers) || quirks.lacks?.includes('tool_choice')) return null
  const allow = allowedTools(request, target)
  const single = settings.parallelToolCalls === false ? SINGLE : ''
  const demand = demandedCall(request, target)
  if (demand === 'required') return `{"type":"any"${single}}`
  if (demand !== null) return `{"type":"tool","name":${jsonText(demand.tool)}${single}}`
  if (!answers && allow === 'none') return '{"type":"none"}'
  // A thinking model cannot be forced to call a tool.
  const forced = answers && (given.length === 0 || allow === 'none') && !on
  return forced ? `{"type":"tool","name":${jsonText(output.name)}${SINGLE}}` : `{"type":"auto"${single}}`
}

const SINGLE = ',"disable_parallel_tool_use":true'

function outputOf({ output }: Request, { quirks }: ModelTarget, { effort }: Thinking): string | null {
  const native = output?.mode === 'native' && !quirks.lacks?.includes('native_output')
  if (!native && effort === null) return null
  const config: Record<string, Json> = {}
  if (effort !== null) config.effort = effort
  if (native) config.format = { type: 'json_schema', schema: acceptedSchema(output.schema) }
  return jsonText(config)
}

// The list of messages: user and assistant alternate, the user begins and ends, and tool results come first in the message after
// their calls.

/**
 * Stands in for a missing user message: before a first assistant message, between two assistant messages and after a
 * last one. Models since 4.6 refuse a list that ends with the assistant.
 */
const GOES_ON = textBlock('(the conversation goes on)')

type MessageLine = {
  readonly role: 'user' | 'assistant'
  /** Its blocks, without the brackets. */
  content: string
  /** It begins with the results of calls. */
  readonly answers: boolean
  /** It begins with a thinking block. */
  readonly thinks: boolean
}

/** Marks the last two user messages for the prompt cache: one to write now, one to read from the last request. */
function messageList(lines: readonly MessageLine[], mark: string, paused?: readonly Json[]): string {
  // Without the second mark the cache lookup goes back only 20 blocks, and one turn can have more.
  const marked = new Set([lines.length - 1, lines.length - 3])
  // Concatenation copies nothing; the body is copied once, when it is sent.
  let list = ''
  for (const [at, { role, content }] of lines.entries()) {
    list += at === 0 ? '[{"role":"' : ',{"role":"'
    list += role
    list += '","content":['
    list += marked.has(at) ? withMark(content, mark) : content
    list += ']}'
  }
  // The content is signed, so it is not written by `jsonText`.
  return paused === undefined ? `${list}]` : `${list},{"role":"assistant","content":${JSON.stringify(paused)}}]`
}

/** Adds the mark as the last field of the last block. */
function withMark(blocks: string, mark: string): string {
  return mark === '' ? blocks : blocks.slice(0, -1) + mark
}

/** Whether the calls in progress began with a thinking block. True if there are none. */
function beganThinking(lines: readonly MessageLine[]): boolean {
  let at = lines.length - 1
  while (lines[at]?.answers) at -= 2
  return lines[at + 1]?.thinks ?? true
}

function linesOf(turns: readonly SendableTurn[], reader: EncodeContext): readonly MessageLine[] {
  const lines: MessageLine[] = []
  const add = (role: MessageLine['role'], content: string, begins: 'answers' | 'thinks' | null): void => {
    const last = lines.at(-1)
    if (content === '') return
    if (last?.role === role) last.content += `,${content}`
    else lines.push({ role, content, answers: begins === 'answers', thinks: begins === 'thinks' })
  }
  for (const turn of turns) {
    const { said, results, thinksFirst } = writeTurn(turn, reader)
    if (turn.type === 'user') add('user', said, null)
    else if (said !== '') {
      if (lines.at(-1)?.role !== 'user') add('user', GOES_ON, null)
      add('assistant', said, thinksFirst ? 'thinks' : null)
      add('user', results, turn.results.length > 0 ? 'answers' : null)
    }
  }
  if (lines.at(-1)?.role !== 'user') add('user', GOES_ON, null)
  return lines
}

// One turn as content blocks. The JSON is cached, so a long history is not serialised again for every request.

/** Everything besides the turn on which its JSON depends. */
type EncodeContext = Frozen<{
  endpoint: string
  model: string
  /** Signed blocks after `sealedAfter` are sent back. */
  signed: boolean
  sealedAfter: number
  images: boolean
  files: boolean
  /** All of the above as one cache key. */
  key: string
}>

type AssistantTurn = Extract<SendableTurn, { type: 'assistant' }>
type UserTurn = Extract<SendableTurn, { type: 'user' }>
/** Blocks separated by commas, without brackets; empty if there is nothing to send. */
type WrittenTurn = Frozen<{ said: string; results: string; thinksFirst: boolean }>

function encodeContextOf({ endpoint, model, quirks, sealedAfter = 0 }: ModelTarget, signed: boolean): EncodeContext {
  const images = !quirks.lacks?.includes('images')
  const files = !quirks.lacks?.includes('files')
  const key = JSON.stringify([endpoint, model, signed, sealedAfter, images, files])
  return { endpoint, model, signed, sealedAfter, images, files, key }
}

function textBlock(text: string, more = ''): string {
  return `{"type":"text","text":${jsonText(text)}${more}}`
}

/** `results` begins the user message that must follow: the results of calls, and files that the model made. */
function writeTurn(turn: SendableTurn, reader: EncodeContext): WrittenTurn {
  const memo = cachedTurns.get(turn.of)
  if (memo !== undefined && memo.key === reader.key && isSameTurn(memo, turn)) return memo
  const fresh = turn.type === 'user' ? writeUserTurn(turn, reader) : writeAssistantTurn(turn, reader)
  cachedTurns.set(turn.of, fresh)
  return fresh
}

type CachedTurn = WrittenTurn &
  Frozen<{ key: string; calls: readonly SendableCall[]; answers: readonly SendableResult[] }>

const cachedTurns = new WeakMap<Message, CachedTurn>()

/** Ids can be remapped and results cleared while the message stays the same, so both are compared. */
function isSameTurn({ calls, answers }: CachedTurn, turn: SendableTurn): boolean {
  if (turn.type === 'user') return true
  const { results } = turn
  return (
    calls.length === turn.calls.length &&
    calls.every((call, i) => call.id === turn.calls[i]?.id) &&
    answers.every((answer, i) => answer.ok === results[i]?.ok && isSameResult(answer, results[i]))
  )
}

function writeUserTurn(turn: UserTurn, reader: EncodeContext): CachedTurn {
  const blocks: string[] = []
  for (const part of turn.parts) blocks.push(...partBlocks(part, reader))
  return { said: blocks.join(','), results: '', thinksFirst: false, key: reader.key, calls: [], answers: [] }
}

function writeAssistantTurn(turn: AssistantTurn, reader: EncodeContext): CachedTurn {
  const { calls, results } = turn
  const blocks: { readonly thinks: boolean; readonly text: string }[] = []
  const thoughts: string[] = []
  const made: string[] = []
  const isReplayed = turn.of.seq > reader.sealedAfter
  let called = 0
  let cites = ''
  const callUpTo = (count: number): void => {
    for (; called < Math.min(count, calls.length); called++) {
      blocks.push({ thinks: false, text: callBlock(calls[called] as SendableCall) })
    }
  }
  for (const part of turn.parts) {
    if (part.type === 'text') {
      blocks.push({ thinks: false, text: textBlock(part.text, cites) })
      cites = ''
    } else if (part.type === 'blob') {
      blocks.push({ thinks: false, text: textBlock(unshownFileText(part)) })
    } else if (isFile(part)) {
      const shown = nativeFileBlock(part, reader)
      blocks.push({ thinks: false, text: textBlock(shown === null ? unshownFileText(part) : madeFileText(part)) })
      if (shown !== null) made.push(shown)
    } else if (part.type === 'provider') {
      callUpTo(callsBefore(part))
      const own = isReplayed ? providerToolBlock(part, turn, reader) : null
      if (own !== null) blocks.push({ thinks: false, text: own })
    } else if (part.type === 'reasoning') {
      const signed = isReplayed ? signedBlock(part, reader) : null
      if (isReplayed) cites = citationsOf(part, reader)
      callUpTo(callsBefore(part))
      if (signed !== null) {
        blocks.push({ thinks: true, text: signed })
      } else {
        const told = foreignThought(part, (by) => by === reader.endpoint)
        if (told !== null) thoughts.push(told)
      }
    }
  }
  callUpTo(calls.length)
  // A message may not end with a thinking block: drop reasoning that was cut off.
  while (blocks.at(-1)?.thinks) blocks.pop()
  // Signed blocks must stay first, so unsigned reasoning is sent only if there are none.
  if (thoughts.length > 0 && !blocks.some(({ thinks }) => thinks)) {
    blocks.unshift({ thinks: false, text: textBlock(tagThought(thoughts.join('\n\n'))) })
  }
  const said = blocks.map(({ text }) => text).join(',')
  const thinksFirst = blocks[0]?.thinks ?? false
  const told = results.map((result) => resultBlock(result, reader))
  if (made.length > 0) told.push(textBlock(FROM_REPLY), ...made)
  return { said, results: told.join(','), thinksFirst, key: reader.key, calls, answers: results }
}

/** The provider's block; null if it may not be sent to this model. */
function signedBlock(part: Extract<Part, { type: 'reasoning' }>, reader: EncodeContext): string | null {
  const { opaque } = part
  // A signature is valid for one model only: another model of the provider refuses the whole request.
  if (!reader.signed || !isObject(opaque) || opaque.by !== reader.endpoint || opaque.model !== reader.model) return null
  const { data } = opaque
  if (!isObject(data)) return null
  const whole =
    data.type === 'thinking'
      ? typeof data.thinking === 'string' && typeof data.signature === 'string' && data.signature !== ''
      : data.type === 'redacted_thinking' && typeof data.data === 'string'
  return whole ? JSON.stringify(data) : null
}

/**
 * A call or a result of the provider's own tool; null if it may not be sent: to another provider, or half of a pair.
 */
function providerToolBlock(part: ProviderPart, { parts }: AssistantTurn, { endpoint }: EncodeContext): string | null {
  const data = providerToolDataOf(part, endpoint)
  if (data === null) return null
  if (isCompaction(data)) return JSON.stringify(data)
  const at = parts.indexOf(part)
  const paired = parts.some((each, place) => {
    const other = each.type === 'provider' ? providerToolDataOf(each, endpoint) : null
    if (data.tool_use_id === undefined) return place > at && other?.tool_use_id === data.id
    return place < at && other?.tool_use_id === undefined && other?.id === data.tool_use_id
  })
  return paired ? JSON.stringify(data) : null
}

type ProviderPart = Extract<Part, { type: 'provider' }>

function providerToolDataOf({ opaque }: ProviderPart, endpoint: string): JsonObject | null {
  const data = isObject(opaque) && opaque.by === endpoint ? opaque.data : null
  if (!isObject(data)) return null
  return isCompaction(data) || (isServerTool(data) && typeof (data.tool_use_id ?? data.id) === 'string') ? data : null
}

/** The citations field of the text block that follows. */
function citationsOf({ opaque }: Extract<Part, { type: 'reasoning' }>, { endpoint }: EncodeContext): string {
  const data = isObject(opaque) && opaque.by === endpoint ? opaque.data : null
  return isObject(data) && Array.isArray(data.citations) ? `,"citations":${JSON.stringify(data.citations)}` : ''
}

function callBlock({ id, tool, args }: SendableCall): string {
  return `{"type":"tool_use","id":${jsonText(id)},"name":${jsonText(tool)},"input":${jsonText(args)}}`
}

function resultBlock({ id, ok, content, parts }: SendableResult, reader: EncodeContext): string {
  const begin = `{"type":"tool_result","tool_use_id":${jsonText(id)},"content":`
  if (parts === undefined) return `${begin}${jsonText(content)}${ok ? '' : ',"is_error":true'}}`
  const blocks = parts.flatMap((part) => partBlocks(part, reader))
  // The API refuses an error result with any block but text. The content says that it failed.
  const texts = blocks.every((block) => block.startsWith('{"type":"text"'))
  return `${begin}[${[textBlock(content), ...blocks].join(',')}]${ok || !texts ? '' : ',"is_error":true'}}`
}

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
/** The API refuses a longer image, counted in base64 characters. */
const IMAGE_CHARS_MAX = 5_242_880
/** A request may have 32 MB in all. */
const FILE_CHARS_MAX = 31_457_280

type FilePart = InlineFile | RemoteFile | BlobRef

/** The blocks of a part; none for parts that only a reply has. */
function partBlocks(part: Part, reader: EncodeContext): readonly string[] {
  if (part.type === 'reasoning' || part.type === 'provider' || part.type === 'source') return []
  return [part.type === 'text' ? textBlock(part.text) : fileBlock(part, reader)]
}

function fileBlock(part: FilePart, reader: EncodeContext): string {
  return (part.type === 'blob' ? null : nativeFileBlock(part, reader)) ?? textBlock(unshownFileText(part))
}

/** Null if the model does not take it. */
function nativeFileBlock(part: InlineFile | RemoteFile, reader: EncodeContext): string | null {
  const media = mediaTypeOf(part.media)
  const { images, files } = reader
  const source = sourceOf(part, media, reader)
  const chars = part.type === 'data' ? part.data.length : 0
  if (source === null) return null
  if (images && IMAGES.has(media) && chars <= IMAGE_CHARS_MAX) return `{"type":"image","source":${source}}`
  if (!files || media !== 'application/pdf' || chars > FILE_CHARS_MAX) return null
  return `{"type":"document","source":${source}${part.name === undefined ? '' : `,"title":${jsonText(part.name)}`}}`
}

/** Null if this host does not have the file. */
function sourceOf(part: InlineFile | RemoteFile, media: string, { endpoint }: EncodeContext): string | null {
  if (part.type === 'url') return `{"type":"url","url":${jsonText(part.url)}}`
  if (part.type === 'file_id')
    return part.provider === endpoint ? `{"type":"file","file_id":${jsonText(part.id)}}` : null
  return part.data === '' ? null : `{"type":"base64","media_type":${jsonText(media)},"data":${jsonText(part.data)}}`
}

function unshownFileText(part: FilePart): string {
  if (part.type !== 'data' && part.type !== 'blob') return unseenFileText(part)
  const name = part.type === 'data' && part.name !== undefined ? `${part.name} ` : ''
  const bytes = part.type === 'blob' ? part.bytes : base64Bytes(part.data)
  return `[file ${name}(${part.media}, ${bytes} bytes) cannot be shown to this model]`
}

function base64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding)
}
