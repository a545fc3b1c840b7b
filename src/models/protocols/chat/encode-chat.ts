// Writes a request as the JSON body of `POST /chat/completions`. chat-protocol.ts reads answers.
import type { Json, Part } from '../../../kernel/content.ts'
import type { OutputSchema, Request, ToolSchema } from '../../../ports/model.ts'
import type { EncodedRequest, Quirks, RequestSettings, ModelTarget } from '../protocol.ts'
import {
  idPatterns,
  isSameResult,
  mendMessages,
  type SendableCall,
  type SendableResult,
  type SendableTurn,
} from '../mend-messages.ts'
import { allowedTools, cacheMark, demandedCall } from '../check-settings.ts'
import { isStrict } from '../strict-schema.ts'
import { OUTPUT_TOOL, toolSchema } from '../tool-schema.ts'
import type { Message } from '../../../kernel/transcript.ts'
import { buildRequestBody, jsonText } from '../write-json.ts'
import {
  type InlineFile,
  FROM_REPLY,
  isFile,
  madeFileText,
  mediaTypeOf,
  type RemoteFile,
  fileBelowText,
  unseenFileText,
} from '../media.ts'
import { foreignThought, tagThought } from '../thoughts.ts'
import { type JsonObject, isObject, asString } from '../../../view/untrusted-json.ts'

export function encodeChat(request: Request, target: ModelTarget): EncodedRequest {
  const { settings, quirks } = target
  const lacks = new Set<string>(quirks.lacks)
  const { turns } = mendMessages(request.messages, quirks.idPattern ?? idPatterns.chat)
  const marks = cacheMarkFor(target)
  const fields = new Map<string, string>()
  const set = (name: string, value: Json): unknown => fields.set(name, JSON.stringify(value))
  set('model', target.model)
  set('stream', true)
  if (!lacks.has('stream_usage')) set('stream_options', { include_usage: true })
  if (settings.outputTokensMax !== undefined) {
    set(quirks.outputTokensField ?? 'max_completion_tokens', settings.outputTokensMax * (request.boost ? 2 : 1))
  }
  if (settings.temperature !== undefined) set('temperature', settings.temperature)
  if (settings.topP !== undefined) set('top_p', settings.topP)
  if (settings.seed !== undefined) set(quirks.seedField ?? 'seed', settings.seed)
  if (settings.stop !== undefined) set('stop', settings.stop)
  if (settings.serviceTier !== undefined) set('service_tier', settings.serviceTier)
  if (settings.reasoning !== undefined && !lacks.has('reasoning')) {
    for (const [name, value] of Object.entries(reasoningOf(settings.reasoning, quirks))) set(name, value)
  }
  // The host moves this cache mark by itself, so no message changes because of it.
  if (marks) set('cache_control', marks)
  const tools = toolList(request, !lacks.has('strict'))
  if (tools !== '') fields.set('tools', `[${tools}]`)
  const choice = tools === '' || lacks.has('tool_choice') ? null : choiceOf(request, target)
  if (choice !== null) set('tool_choice', choice)
  if (tools !== '' && settings.parallelToolCalls !== undefined) set('parallel_tool_calls', settings.parallelToolCalls)
  if (request.output?.mode === 'native' && !lacks.has('native_output')) {
    set('response_format', formatOf(request.output, !lacks.has('strict')))
  }
  fields.set('messages', `[${systemMessage(request.instructions, marks)}${messageList(turns, target)}]`)
  return { path: '/chat/completions', headers: {}, body: buildRequestBody(fields, settings.body) }
}

type ReasoningSetting = NonNullable<RequestSettings['reasoning']>

function reasoningOf(asked: ReasoningSetting, { reasoningField }: Quirks): Readonly<Record<string, Json>> {
  if (reasoningField === 'reasoning_details') {
    return { reasoning: typeof asked === 'object' ? { max_tokens: asked.budgetTokens } : { effort: effortOf(asked) } }
  }
  // DeepSeek and Moonshot know efforts, but have a switch of their own for none.
  if (reasoningField === 'reasoning_content' && asked === 'off') return { thinking: { type: 'disabled' } }
  return { reasoning_effort: effortOf(asked) }
}

/** A token budget becomes an effort: most hosts take no number. */
function effortOf(asked: ReasoningSetting): string {
  if (typeof asked === 'string') return asked === 'off' ? 'none' : asked
  return asked.budgetTokens < 4_096 ? 'low' : asked.budgetTokens < 16_384 ? 'medium' : 'high'
}

type ToolListText = { readonly strict: boolean; readonly text: string }
const toolLists = new WeakMap<readonly ToolSchema[], ToolListText>()

/** In the given order, and always all of them: the cached prefix begins with the tools. */
function toolList({ tools, output }: Request, strict: boolean): string {
  const before = toolLists.get(tools)
  const text =
    before?.strict === strict
      ? before.text
      : tools.map((tool) => toolJson(tool, strict && isStrict(tool.parameters))).join(',')
  toolLists.set(tools, { strict, text })
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

/** Null leaves the field out, so the model decides. */
function choiceOf(request: Request, target: ModelTarget): Json {
  const { tools, output } = request
  const { settings, quirks } = target
  const demand = demandedCall(request, target)
  if (demand !== null) return demand === 'required' ? demand : { type: 'function', function: { name: demand.tool } }
  const allow = allowedTools(request, target)
  if (output?.mode !== 'tool') return allow === 'none' ? 'none' : null
  // A reasoning model cannot be forced, and hosts with a reasoning field have models that reason without being asked.
  const thinks = quirks.reasoningField !== undefined && settings.reasoning !== 'off'
  const alone = tools.length === 0 || allow === 'none'
  return alone && !thinks ? { type: 'function', function: { name: output.name } } : null
}

function formatOf({ name, schema, strict }: OutputSchema, known: boolean): Json {
  const kept: Json = known ? { strict: strict && isStrict(schema) } : {}
  return { type: 'json_schema', json_schema: { name, schema, ...kept } }
}

// The messages of a request. The JSON of each message is cached, so a long history is not serialised again for every
// request. Later messages never change earlier ones.

type AssistantTurn = Extract<SendableTurn, { type: 'assistant' }>
type Reasoning = Extract<Part, { type: 'reasoning' }>

/** Only Anthropic's models need cache marks. */
function cacheMarkFor({ model, settings, quirks }: ModelTarget): Json {
  const marks = quirks.cacheMarks === true && /anthropic|claude/i.test(model)
  return marks ? cacheMark(settings) : null
}

/** Marked in every request or in none, so the message does not change. */
function systemMessage(instructions: string, mark: Json): string {
  if (instructions.trim() === '') return ''
  const content = mark === null ? instructions : [{ type: 'text', text: instructions, cache_control: mark }]
  return `${jsonText({ role: 'system', content })},`
}

/** Everything besides the turn on which its JSON depends. */
type EncodeContext = {
  readonly key: string
  readonly endpoint: string
  readonly images: boolean
  readonly files: boolean
  readonly audio: boolean
  /** Reasoning is sent back unchanged, but signed reasoning only if it came after `sealedAfter`. */
  readonly thinks: boolean
  readonly sealedAfter: number
  /** A user message may not follow a tool result directly. */
  readonly bridges: boolean
  readonly field: ModelTarget['quirks']['reasoningField']
  /** The model whose thoughts go back as parts of the content; null if no model's do. */
  readonly thoughtParts: string | null
}

/** Mistral requires an assistant message between tool results and a user message. */
const BRIDGE = '{"role":"assistant","content":"(The results are noted.)"}'

/** Hosts refuse an empty list of messages. */
const NOTHING_SAID = '{"role":"user","content":"(no message)"}'

type SentList = {
  readonly key: string
  readonly turns: readonly SendableTurn[]
  readonly text: string
  /** The list ends with tool results. */
  readonly results: boolean
}
/** The list as last sent, by its first turn. The next list nearly always begins with it. */
const sentLists = new WeakMap<SendableTurn, SentList>()

/** The messages, separated by commas. */
function messageList(turns: readonly SendableTurn[], target: ModelTarget): string {
  const sending = encodeContextOf(target)
  const [first] = turns
  if (first === undefined) return NOTHING_SAID
  const before = sentLists.get(first)
  const same = before?.key === sending.key && before.turns.every((turn, at) => turn === turns[at])
  let { text, results } = same ? before : { text: '', results: false }
  for (let at = same ? before.turns.length : 0; at < turns.length; at++) {
    const turn = turns[at] as SendableTurn
    const more = writeTurn(turn, sending)
    if (more === '') continue
    const bridge = sending.bridges && results && turn.type === 'user' ? `${BRIDGE},` : ''
    text = text === '' ? more : `${text},${bridge}${more}`
    results = turn.type === 'assistant' && turn.results.length > 0
  }
  sentLists.set(first, { key: sending.key, turns, text, results })
  return text === '' ? NOTHING_SAID : text
}

function encodeContextOf({ endpoint, model, settings, quirks, sealedAfter = 0 }: ModelTarget): EncodeContext {
  const [images, files] = [!quirks.lacks?.includes('images'), !quirks.lacks?.includes('files')]
  const thinks = settings.reasoning !== 'off'
  const field = quirks.reasoningField
  const bridges = quirks.lacks?.includes('user_after_tool') === true
  const thoughtParts = quirks.thoughtParts && thinks ? model : null
  const audio = quirks.audio === true
  const key = JSON.stringify([endpoint, images, files, audio, thinks, sealedAfter, bridges, field, thoughtParts])
  return { key, endpoint, images, files, audio, thinks, sealedAfter, bridges, field, thoughtParts }
}

type WrittenTurn = { readonly key: string; readonly turn: SendableTurn; readonly text: string }
const writtenTurns = new WeakMap<Message, WrittenTurn>()

function writeTurn(turn: SendableTurn, sending: EncodeContext): string {
  const before = writtenTurns.get(turn.of)
  if (before?.key === sending.key && isSameTurn(before.turn, turn)) return before.text
  const text = turn.type === 'user' ? userMessage(turn.parts, sending) : assistantMessages(turn, sending)
  writtenTurns.set(turn.of, { key: sending.key, turn, text })
  return text
}

/** Results have the ids of their calls, so the comparison also finds a remapped id. */
function isSameTurn(before: SendableTurn, now: SendableTurn): boolean {
  if (before === now || before.type === 'user' || now.type === 'user') return before.type === now.type
  if (before.results.length !== now.results.length) return false
  return before.results.every((result, i) => result.id === now.results[i]?.id && isSameResult(result, now.results[i]))
}

function userMessage(parts: readonly Part[], sending: EncodeContext): string {
  const content = parts.flatMap((part) => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    return isFile(part) ? [filePart(part, sending)] : []
  })
  if (content.length === 0) return ''
  const texts = content.flatMap((part) => ('text' in part ? [asString(part['text'])] : []))
  return jsonText({ role: 'user', content: texts.length === content.length ? texts.join('\n\n') : content })
}

/** https://platform.openai.com/docs/guides/images-vision and …/guides/pdf-files */
const IMAGES = /^image\/(png|jpeg|webp|gif)$/
const FILES = /^application\/pdf$/
/** https://platform.openai.com/docs/guides/audio: the formats that `input_audio` takes. */
const SOUNDS: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
}
const IMAGE_CHARS_MAX = 20_971_520
const FILE_CHARS_MAX = 33_554_432

function filePart(part: InlineFile | RemoteFile, sending: EncodeContext) {
  return nativeFilePart(part, sending) ?? { type: 'text', text: unseenFileText(part) }
}

/** Null if the host does not take the file. */
function nativeFilePart(
  part: InlineFile | RemoteFile,
  { endpoint, images, files, audio }: EncodeContext,
): JsonObject | null {
  const media = mediaTypeOf(part.media)
  const url = part.type === 'data' ? `data:${media};base64,${part.data}` : part.type === 'url' ? part.url : null
  if (url === null) return files && isUploadedTo(part, endpoint) ? { type: 'file', file: { file_id: part.id } } : null
  if (images && IMAGES.test(media) && url.length <= IMAGE_CHARS_MAX) return { type: 'image_url', image_url: { url } }
  if (part.type !== 'data') return null
  if (files && FILES.test(media) && url.length <= FILE_CHARS_MAX) {
    return { type: 'file', file: { filename: part.name ?? 'file.pdf', file_data: url } }
  }
  const format = audio ? SOUNDS[media] : undefined
  return format === undefined ? null : { type: 'input_audio', input_audio: { data: part.data, format } }
}

function isUploadedTo(
  part: InlineFile | RemoteFile,
  endpoint: string,
): part is Extract<RemoteFile, { type: 'file_id' }> {
  return part.type === 'file_id' && part.provider === endpoint
}

/** The message and the results of its calls; empty if no host would accept any of it. */
function assistantMessages(turn: AssistantTurn, sending: EncodeContext): string {
  const { texts, thoughts, plain, own, details, extras, made } = sortParts(turn, sending)
  if (turn.calls.length === 0 && texts.length + thoughts.length === 0) return ''
  const said = [...thoughts, ...texts].join('\n\n')
  const content = own.length > 0 ? jsonText(contentParts(own, said)) : said === '' ? 'null' : jsonText(said)
  const fields = [`"role":"assistant","content":${content}`]
  // Signed reasoning must go back byte for byte.
  if (details.length > 0) fields.push(`"reasoning_details":${JSON.stringify(details)}`)
  const bare = details.length === 0 || sending.field === 'reasoning_content'
  if (bare && turn.calls.length > 0 && sending.thinks) fields.push(...plainReasoning(plain, sending))
  if (turn.calls.length > 0) {
    const calls = turn.calls.map((call, at) => toolCall(call, extras.get(at)))
    fields.push(`"tool_calls":[${calls.join(',')}]`)
  }
  const results = turn.results.map((result) => toolMessage(result, sending))
  return [`{${fields.join(',')}}`, ...results, ...filesAfterResults(turn.results, made, sending)].join(',')
}

/** A tool message has only text here: it names the place of its pictures and files. */
function toolMessage({ id, content, parts = [] }: SendableResult, sending: EncodeContext): string {
  const notes = parts.flatMap((part) => {
    if (part.type === 'text') return [part.text]
    return isFile(part) ? [laterFilePart(part, sending) ? fileBelowText(part) : unseenFileText(part)] : []
  })
  return jsonText({ role: 'tool', tool_call_id: id, content: [content, ...notes].join('\n') })
}

/**
 * Files that the model made, and the files of the results, as a message of the user, which may stand only after the
 * last result.
 */
function filesAfterResults(
  results: readonly SendableResult[],
  made: readonly JsonObject[],
  sending: EncodeContext,
): readonly string[] {
  const shown = results.flatMap(({ tool, parts = [] }) => {
    const files = parts
      .flatMap((part) => (isFile(part) ? [laterFilePart(part, sending)] : []))
      .filter((part) => part !== null)
    return files.length === 0 ? [] : [{ type: 'text', text: `[from the result of ${tool}]` }, ...files]
  })
  const content = made.length === 0 ? shown : [{ type: 'text', text: FROM_REPLY }, ...made, ...shown]
  return content.length === 0 ? [] : [jsonText({ role: 'user', content })]
}

/** Null also if a message of the user may not follow a result. */
function laterFilePart(part: InlineFile | RemoteFile, sending: EncodeContext): JsonObject | null {
  return sending.bridges ? null : nativeFilePart(part, sending)
}

/** https://docs.mistral.ai/capabilities/reasoning: the thoughts come first, unchanged. */
function contentParts(own: readonly string[], said: string): Json {
  const thoughts = own.map((text) => ({ type: 'thinking', thinking: [{ type: 'text', text }] }))
  return said === '' ? thoughts : [...thoughts, { type: 'text', text: said }]
}

/** Unsigned reasoning goes back only beside calls: elsewhere hosts ignore or refuse it. */
function plainReasoning(plain: readonly string[], { field }: EncodeContext): readonly string[] {
  if (field === undefined) return []
  const name = field === 'reasoning_content' ? field : 'reasoning'
  if (plain.length > 0) return [`"${name}":${jsonText(plain.join('\n\n'))}`]
  // DeepSeek and Moonshot refuse a call without this field, and treat an empty string as missing.
  return field === 'reasoning_content' ? [`"${name}":" "`] : []
}

function sortParts({ of, parts, results }: AssistantTurn, sending: EncodeContext) {
  const signed = sending.thinks && of.seq > sending.sealedAfter
  const [texts, thoughts, plain, own]: [string[], string[], string[], string[]] = [[], [], [], []]
  const details: Json[] = []
  const made: JsonObject[] = []
  const extras = new Map<number, Json>()
  for (const part of parts) {
    if (part.type === 'text') texts.push(part.text)
    if (isFile(part)) {
      const shown = results.length > 0 ? laterFilePart(part, sending) : nativeFilePart(part, sending)
      texts.push(shown === null ? unseenFileText(part) : madeFileText(part))
      if (shown !== null) made.push(shown)
    }
    if (part.type !== 'reasoning') continue
    const kept = ownData(part, sending.endpoint)
    const { reasoning_details: list, extra_content: extra } = kept?.data ?? {}
    if (extra !== undefined) extras.set(kept?.at ?? 0, extra)
    else if (signed && Array.isArray(list)) details.push(...(list as readonly Json[]))
    else if (part.text.trim() === '') continue
    // Without provider data it is plain text, and a field for plain reasoning takes that of any provider.
    else if (sending.thinks && sending.field !== undefined && isPlain(part)) plain.push(part.text)
    else if (isOwnThought(part, sending)) own.push(part.text)
    else {
      const told = foreignThought(part, (by) => by === sending.endpoint)
      if (told !== null) thoughts.push(tagThought(told))
    }
  }
  return { texts, thoughts, plain, own, details, extras, made }
}

function isPlain({ opaque }: Reasoning): boolean {
  return !isObject(opaque) || opaque['data'] === null
}

/** Written by this model, on a host that takes thoughts as parts of the content. */
function isOwnThought({ opaque }: Reasoning, { endpoint, thoughtParts }: EncodeContext): boolean {
  return isObject(opaque) && opaque['by'] === endpoint && opaque['model'] === thoughtParts
}

/** The data this endpoint attached to its own reasoning. */
function ownData({ opaque }: Reasoning, endpoint: string): { readonly at: number; readonly data: JsonObject } | null {
  if (!isObject(opaque) || opaque['by'] !== endpoint || !isObject(opaque['data'])) return null
  return { at: typeof opaque['at'] === 'number' ? opaque['at'] : 0, data: opaque['data'] }
}

function toolCall({ id, tool, args, raw = jsonText(args) }: SendableCall, extra: Json | undefined): string {
  const called = jsonText({ id, type: 'function', function: { name: tool, arguments: raw } })
  return extra === undefined ? called : `${called.slice(0, -1)},"extra_content":${JSON.stringify(extra)}}`
}
