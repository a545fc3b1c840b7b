// Writes a request as the JSON body of `POST /responses`. Stateless unless chaining is on: then only the turns after
// the newest response that the provider stored are sent. responses-protocol.ts reads answers.
import type { Json, Part } from '../../../kernel/content.ts'
import type { OutputSchema, Request, ToolSchema } from '../../../ports/model.ts'
import { CLEARED, type Message } from '../../../kernel/transcript.ts'
import { NEVER_REASONS } from '../efforts.ts'
import type { EncodedRequest, Opaque, RequestSettings, ModelTarget } from '../protocol.ts'
import {
  isSameResult,
  mendMessages,
  type SendableTurn,
  type SendableCall,
  type SendableResult,
} from '../mend-messages.ts'
import { allowedTools, demandedCall } from '../check-settings.ts'
import { isStrict } from '../strict-schema.ts'
import { toolSchema } from '../tool-schema.ts'
import { buildRequestBody, jsonText } from '../write-json.ts'
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
import { isObject, type JsonObject, asString } from '../../../view/untrusted-json.ts'
import { writeProviderTools } from '../provider-forms.ts'

/** The lowest effort of models that always reason; null if it cannot be set. All other models take `none`. */
const LEAST: readonly (readonly [RegExp, string | null])[] = [
  [/^(ft:)?(gpt-5|o\d).*-pro/, null],
  [/^(ft:)?o\d|codex|gpt-oss/, 'low'],
  [/^(ft:)?gpt-5(?!\.)/, 'minimal'],
]
const OUTPUT_TOKENS_MIN = 16
const CACHE_KEY_CHARS_MAX = 64
const NOTHING_SAID = '{"type":"message","role":"user","content":[{"type":"input_text","text":"(no message)"}]}'

export function encodeResponses(request: Request, target: ModelTarget): EncodedRequest {
  const { settings, quirks } = target
  const lacks = new Set<string>(quirks.lacks)
  const reasons = !lacks.has('reasoning') && !NEVER_REASONS.test(target.model)
  const { turns } = mendMessages(request.messages, quirks.idPattern)
  const link = settings.chain === true && !target.unlinked ? linkIn(turns, target) : null
  const fields = new Map<string, string>()
  const set = (name: string, value: Json): unknown => fields.set(name, JSON.stringify(value))
  set('model', target.model)
  set('stream', true)
  set('store', settings.chain === true)
  const served = writeProviderTools(target, 'responses')
  const include = [...(reasons ? ['reasoning.encrypted_content'] : []), ...served.include]
  if (include.length > 0) set('include', include)
  if (link) set('previous_response_id', link.response)
  if (request.instructions.trim() !== '') set('instructions', request.instructions)
  for (const [name, json] of toolFields(request, target, served.json)) fields.set(name, json)
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
  if (settings.topP !== undefined) set('top_p', settings.topP)
  if (settings.serviceTier !== undefined) set('service_tier', settings.serviceTier)
  if (settings.cache !== false) set('prompt_cache_key', cacheKey(request.tree ?? request.session))
  fields.set('input', `[${inputOf(turns, link, target, reasons)}]`)
  return { path: '/responses', headers: {}, body: buildRequestBody(fields, settings.body) }
}

/** The end of a session id is its unique part. */
function cacheKey(session: string): string {
  return session.slice(-CACHE_KEY_CHARS_MAX).replace(/[^\x21-\x7e]/g, '_')
}

type StoredLink = { readonly response: string; readonly at: number }

/**
 * The newest reply that this endpoint and model stored. Null, so that everything is sent, if the stored messages differ
 * from the log (because it was compacted since, or an id was remapped), or if there is nothing new to send.
 */
function linkIn(turns: readonly SendableTurn[], { endpoint, model }: ModelTarget): StoredLink | null {
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at] as SendableTurn
    if (turn.type !== 'assistant') continue
    const mark = turn.parts.map((part) => markOf(part, endpoint)).find((found) => found?.type === 'response')
    if (mark?.type !== 'response' || mark.model !== model) continue
    const isLast = at === turns.length - 1 && turn.results.length === 0
    // A summary comes before the turns it keeps but was written after them.
    const isStored = turns.slice(0, at).every((before) => before.of.seq < turn.of.seq && !hasCleared(before))
    return !isLast && isStored && hasOwnIds(turn) ? { response: mark.response, at } : null
  }
  return null
}

function hasCleared(turn: SendableTurn): boolean {
  return (
    turn.type === 'assistant' &&
    turn.results.some(({ content }) => typeof content === 'string' && content.startsWith(CLEARED))
  )
}

function inputOf(
  turns: readonly SendableTurn[],
  link: StoredLink | null,
  target: ModelTarget,
  reasons: boolean,
): string {
  const sending = encodeContextOf(target, reasons && target.settings.reasoning !== 'off')
  let input = ''
  for (let at = link?.at ?? 0; at < turns.length; at++) {
    const turn = turns[at] as SendableTurn
    const items = at === link?.at && turn.type === 'assistant' ? resultsOf(turn, sending) : itemsOf(turn, sending)
    if (items !== '') input += input === '' ? items : `,${items}`
  }
  return input === '' ? NOTHING_SAID : input
}

type Reasoning = { readonly effort: string; readonly summary?: 'auto' }

/** Null leaves the field out, so the model reasons as usual. */
function reasoningOf(wanted: NonNullable<RequestSettings['reasoning']>, model: string): Reasoning | null {
  if (wanted === 'off') {
    const [, effort] = LEAST.find(([pattern]) => pattern.test(model)) ?? [null, 'none']
    return effort === null ? null : { effort }
  }
  if (typeof wanted === 'string') return { effort: wanted, summary: 'auto' }
  // This protocol has no budgets, only efforts.
  const { budgetTokens } = wanted
  return { effort: budgetTokens < 4_096 ? 'low' : budgetTokens < 16_384 ? 'medium' : 'high', summary: 'auto' }
}

function formatOf({ name, schema, strict }: OutputSchema, lacks: ReadonlySet<string>): Json {
  const format = { type: 'json_schema', name, schema }
  return lacks.has('strict') ? format : { ...format, strict: strict && isStrict(schema) }
}

function toolFields(
  request: Request,
  target: ModelTarget,
  served: readonly string[],
): readonly (readonly [string, string])[] {
  const { tools, output } = request
  const lacks = new Set<string>(target.quirks.lacks)
  const listed = [...tools.map((tool) => toolJson(tool, lacks.has('strict'))), ...served]
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
  const choice = toolChoiceOf(request, target, served.length)
  if (choice !== null && !lacks.has('tool_choice')) fields.push(['tool_choice', JSON.stringify(choice)])
  fields.push(['parallel_tool_calls', String(target.settings.parallelToolCalls ?? true)])
  return fields
}

/** Null leaves the field out, so the model decides. */
function toolChoiceOf(request: Request, target: ModelTarget, served: number): Json {
  const { tools, output } = request
  const demand = demandedCall(request, target)
  if (demand !== null) return demand === 'required' ? demand : { type: 'function', name: demand.tool }
  const none = allowedTools(request, target) === 'none'
  // If no other tool may be called, the answer tool must be.
  if (output?.mode === 'tool' && (tools.length + served === 0 || none)) return { type: 'function', name: output.name }
  return none ? 'none' : null
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

/** Without `strict` the provider makes a schema strict by itself, so the field is always sent to hosts that know it. */
function writeTool({ name, description, parameters }: ToolSchema, strict: boolean | null): string {
  const tool = { type: 'function', name, description, parameters: toolSchema(parameters) }
  return JSON.stringify(strict === null ? tool : { ...tool, strict })
}

// One turn as input items. The JSON is cached, so a long history is not serialised again for every request.

type AssistantTurn = Extract<SendableTurn, { type: 'assistant' }>

/** Everything besides the turn on which its JSON depends. */
type EncodeContext = {
  readonly key: string
  readonly endpoint: string
  /** Reasoning items are sent back unchanged. */
  readonly native: boolean
  /** Only reasoning items after this event are sent back. */
  readonly sealedAfter: number
  readonly images: boolean
  readonly files: boolean
}

function encodeContextOf({ endpoint, quirks, sealedAfter = 0 }: ModelTarget, native: boolean): EncodeContext {
  const [images, files] = [!quirks.lacks?.includes('images'), !quirks.lacks?.includes('files')]
  const key = JSON.stringify([endpoint, native, sealedAfter, images, files])
  return { key, endpoint, native, sealedAfter, images, files }
}

type WrittenTurn = {
  readonly key: string
  readonly said: string
  readonly results: readonly SendableResult[]
  readonly told: string
}
const writtenTurns = new WeakMap<Message, WrittenTurn>()

/**
 * Items separated by commas, or an empty string. The items of an assistant are followed by the results of its calls.
 */
function itemsOf(turn: SendableTurn, sending: EncodeContext): string {
  if (turn.type === 'user') return cachedTurn(turn, sending).said
  const { said, told } = cachedTurn(turn, sending)
  return told === '' ? said : said === '' ? told : `${said},${told}`
}

/** Only the results: the provider has stored the rest. */
function resultsOf(turn: AssistantTurn, sending: EncodeContext): string {
  return turn.results.map((result) => resultItem(result, sending)).join(',')
}

function cachedTurn(turn: SendableTurn, sending: EncodeContext): WrittenTurn {
  // A remapped id depends on earlier turns, so such a turn is not cached.
  if (turn.type === 'assistant' && !hasOwnIds(turn)) return writeTurn(turn, sending)
  const before = writtenTurns.get(turn.of)
  const results = turn.type === 'assistant' ? turn.results : []
  if (before?.key === sending.key && sameResults(before.results, results)) return before
  const fresh = writeTurn(turn, sending)
  writtenTurns.set(turn.of, fresh)
  return fresh
}

function writeTurn(turn: SendableTurn, sending: EncodeContext): WrittenTurn {
  const { key } = sending
  if (turn.type === 'user') return { key, said: userItem(turn.parts, sending), results: [], told: '' }
  const { items, made } = assistantItems(turn, sending)
  const told = [resultsOf(turn, sending), made].filter((items) => items !== '').join(',')
  return { key, said: items.join(','), results: turn.results, told }
}

function hasOwnIds({ of, calls }: AssistantTurn): boolean {
  return of.role === 'assistant' && calls.every(({ id }, i) => of.calls[i]?.id === id)
}

function sameResults(left: readonly SendableResult[], right: readonly SendableResult[]): boolean {
  return left.length === right.length && left.every((result, i) => isSameResult(result, right[i]))
}

function inputContent(parts: readonly Part[], sending: EncodeContext): readonly string[] {
  return parts.flatMap((part) => {
    if (part.type === 'text') return [jsonText({ type: 'input_text', text: part.text })]
    return isFile(part) ? [fileContent(part, sending)] : []
  })
}

function userItem(parts: readonly Part[], sending: EncodeContext): string {
  const content = inputContent(parts, sending)
  return content.length === 0 ? '' : `{"type":"message","role":"user","content":[${content.join(',')}]}`
}

/** https://developers.openai.com/api/docs/guides/images-vision and …/guides/file-inputs */
const IMAGES = /^image\/(png|jpeg|webp|gif)$/
const FILES =
  /^(text\/.+|application\/(pdf|json|rtf|msword|vnd\.ms-(excel|powerpoint)|vnd\.openxmlformats-officedocument\..+))$/
const IMAGE_CHARS_MAX = 20_971_520
const FILE_CHARS_MAX = 33_554_432

function fileContent(part: InlineFile | RemoteFile, sending: EncodeContext): string {
  return nativeFileContent(part, sending) ?? jsonText({ type: 'input_text', text: unseenFileText(part) })
}

/** Null if the host does not take it. */
function nativeFileContent(part: InlineFile | RemoteFile, sending: EncodeContext): string | null {
  const media = mediaTypeOf(part.media)
  const chars = part.type === 'data' ? part.data.length + media.length + 13 : 0
  if (sending.images && IMAGES.test(media) && chars <= IMAGE_CHARS_MAX) {
    const source = sourceOf(part, media, sending, 'image_url')
    if (source !== null) return jsonText({ type: 'input_image', detail: 'auto', ...source })
  }
  if (sending.files && FILES.test(media) && chars <= FILE_CHARS_MAX) {
    const source = sourceOf(part, media, sending, part.type === 'url' ? 'file_url' : 'file_data')
    const name = part.type === 'data' ? { filename: part.name ?? fileNameFor(media) } : {}
    if (source !== null) return jsonText({ type: 'input_file', ...name, ...source })
  }
  return null
}

/** Null if this host does not have the file. */
function sourceOf(
  part: InlineFile | RemoteFile,
  media: string,
  { endpoint }: EncodeContext,
  field: string,
): JsonObject | null {
  if (part.type === 'data') return { [field]: `data:${media};base64,${part.data}` }
  if (part.type === 'url') return { [field]: part.url }
  return part.provider === endpoint ? { file_id: part.id } : null
}

/** The provider reads the type of a file from its name. */
function fileNameFor(media: string): string {
  return media === 'text/plain' ? 'file.txt' : `file.${media.split(/[/.+-]/).at(-1) ?? 'txt'}`
}

type AssistantItems = { readonly items: readonly string[]; readonly made: string }

/**
 * In the order of the reply if the marks give it; else texts before calls. `made` is a message with the files that the
 * model made, or empty.
 */
function assistantItems(turn: AssistantTurn, sending: EncodeContext): AssistantItems {
  const items: string[] = []
  const made: string[] = []
  let texts: string[] = []
  let phase: string | null = null
  let called = 0
  const flush = (): void => {
    if (texts.length > 0) items.push(messageItem(texts, phase))
    texts = []
    phase = null
  }
  const callsUpTo = (end: number): void => {
    for (; called < end && called < turn.calls.length; called++) {
      flush()
      items.push(callItem(turn.calls[called] as SendableCall))
    }
  }
  const fresh = turn.of.seq > sending.sealedAfter
  const native = sending.native && fresh
  // An item of the provider's tool is refused without the reasoning that led to it.
  const replays = fresh && (native || !turn.parts.some((part) => markOf(part, sending.endpoint)?.type === 'item'))
  turn.parts.forEach((part, i) => {
    if (part.type === 'provider') {
      callsUpTo(callsBefore(part))
      const item =
        replays || (fresh && isCompaction(part)) ? providerItem(part, turn.parts[i + 1], sending.endpoint) : null
      if (item === null) return
      flush()
      items.push(item)
      return
    }
    if (part.type !== 'reasoning') {
      if (part.type === 'text') texts.push(part.text)
      else if (isFile(part) && !(replays && isInPictureItem(turn.parts[i - 1], part, sending.endpoint))) {
        const shown = nativeFileContent(part, sending)
        texts.push(shown === null ? unseenFileText(part) : madeFileText(part))
        if (shown !== null) made.push(shown)
      }
      return
    }
    const mark = markOf(part, sending.endpoint)
    callsUpTo(callsBefore(part))
    if (mark?.type === 'message') {
      flush()
      phase = mark.phase
    } else if (mark?.type === 'item' && native && isFollowed(turn, i, called, sending.endpoint)) {
      flush()
      items.push(JSON.stringify(mark.item))
    } else {
      const told = foreignThought(part, (by) => by === sending.endpoint)
      if (told !== null) texts.push(tagThought(told))
    }
  })
  callsUpTo(turn.calls.length)
  flush()
  const content = [jsonText({ type: 'input_text', text: FROM_REPLY }), ...made].join(',')
  return { items, made: made.length === 0 ? '' : `{"type":"message","role":"user","content":[${content}]}` }
}

/** Whether the picture goes back in the provider's own item, which stands before it. */
function isInPictureItem(before: Part | undefined, part: Part, endpoint: string): boolean {
  return before?.type === 'provider' && before.tool === IMAGE_TOOL && providerItem(before, part, endpoint) !== null
}

/**
 * A reasoning item is refused without the message or call that it led to, also if that is a call of a provider tool
 * that is left out.
 */
function isFollowed({ calls, parts }: AssistantTurn, at: number, called: number, endpoint: string): boolean {
  const isSent = (part: Part, i: number): boolean =>
    part.type === 'text' ||
    (part.type === 'provider' && !isCompaction(part) && providerItem(part, parts[i + 1], endpoint) !== null)
  return called < calls.length || parts.some((part, i) => i > at && isSent(part, i))
}

function messageItem(texts: readonly string[], phase: string | null): string {
  const content = texts.map((text) => jsonText({ type: 'output_text', text })).join(',')
  const label = phase === null ? '' : `,"phase":${jsonText(phase)}`
  return `{"type":"message","role":"assistant","content":[${content}]${label}}`
}

function callItem({ id, tool, args, raw = jsonText(args) }: SendableCall): string {
  return jsonText({ type: 'function_call', call_id: id, name: tool, arguments: raw })
}

/** https://developers.openai.com/api/docs/guides/function-calling: an output may be a list of texts, images and files. */
function resultItem({ id, content, parts }: SendableResult, sending: EncodeContext): string {
  if (parts === undefined) return jsonText({ type: 'function_call_output', call_id: id, output: content })
  const output = inputContent([{ type: 'text', text: content }, ...parts], sending)
  return `{"type":"function_call_output","call_id":${jsonText(id)},"output":[${output.join(',')}]}`
}

// Marks: the data that this protocol keeps on reasoning parts (the provider's reasoning item, the message of a text,
// the stored response). They are sent back only to the endpoint that they came from.

/** The source of a reply, and whether the provider was asked to store it. */
export type ResponseOrigin = { readonly by: string; readonly model: string; readonly chain: boolean }

type ItemMark =
  | { readonly type: 'item'; readonly at: number; readonly model: string; readonly item: Json }
  /** A message began here, perhaps with the provider's `phase`. */
  | { readonly type: 'message'; readonly at: number; readonly model: string; readonly phase: string | null }
  | { readonly type: 'response'; readonly at: number; readonly model: string; readonly response: string }

export function itemPart(origin: ResponseOrigin, at: number, text: string, item: Json): Part {
  return { type: 'reasoning', text, opaque: opaqueOf(origin, at, item) }
}

/** A call of a tool that the provider ran, with its result. */
export function providerItemPart(origin: ResponseOrigin, at: number, item: Json, type: string): Part {
  return { type: 'provider', tool: type.replace(/_call$/, ''), opaque: opaqueOf(origin, at, item) }
}

const SERVED = /^((web_search|code_interpreter|file_search)_call|compaction(_summary)?)$/

/** The provider's summary of a long context. The messages before it mean nothing without it. */
function isCompaction({ tool }: Extract<Part, { type: 'provider' }>): boolean {
  return tool === 'compaction' || tool === 'compaction_summary'
}

export const IMAGE_CALL = 'image_generation_call'
const IMAGE_TOOL = 'image_generation'

/** The unchanged item; null for an item of another endpoint. The bytes of a picture are in the part after it. */
function providerItem(
  { opaque: kept }: Extract<Part, { type: 'provider' }>,
  after: Part | undefined,
  endpoint: string,
): string | null {
  const item = isObject(kept) && kept['by'] === endpoint ? kept['data'] : null
  if (!isObject(item)) return null
  if (item['type'] === IMAGE_CALL)
    return after?.type === 'data' ? JSON.stringify({ ...item, result: after.data }) : null
  return SERVED.test(asString(item['type'])) ? JSON.stringify(item) : null
}

export function messagePart(origin: ResponseOrigin, at: number, phase: string | null): Part {
  return { type: 'reasoning', text: '', opaque: opaqueOf(origin, at, { phase }) }
}

export function responsePart(origin: ResponseOrigin, at: number, response: string): Part {
  return { type: 'reasoning', text: '', opaque: opaqueOf(origin, at, { response }) }
}

function opaqueOf({ by, model }: ResponseOrigin, at: number, data: Json): Opaque {
  return { by, model, at, data }
}

/** Null for the data of another endpoint or protocol. */
function markOf(part: Part, endpoint: string): ItemMark | null {
  if (part.type !== 'reasoning' || !isObject(part.opaque)) return null
  const { by, model, at, data } = part.opaque
  if (by !== endpoint || typeof model !== 'string' || typeof at !== 'number' || !isObject(data)) return null
  if (data['type'] === 'reasoning') return { type: 'item', at, model, item: data }
  const { response, phase } = data
  if (typeof response === 'string') return { type: 'response', at, model, response }
  if (phase === undefined) return null
  return { type: 'message', at, model, phase: typeof phase === 'string' ? phase : null }
}
