// A request as the JSON body of `POST /v1/messages`. Answers are read in messages.ts.
import type { Json, BlobRef, Frozen, Part } from '../../../kernel/content.ts'
import type { Request, ToolSchema } from '../../../ports/model.ts'
import type { Encoded, Settings, Target } from '../protocol.ts'
import { sameShown, sound, type Turn, type SoundCall, type SoundResult } from '../sound.ts'
import { OUTPUT_TOOL, toolSchema } from '../tool-schema.ts'
import { bodyOf, json } from '../json.ts'
import { allowed, cacheMark, demanded } from '../settings.ts'
import { keptSchema } from './kept-schema.ts'
import { type Thinking, thinkingOf, unthinking } from '../thinking.ts'
import type { Message } from '../../../kernel/transcript.ts'
import { type Data, FROM_REPLY, isFile, madeBelow, mediaOf, type Remote, unseen } from '../media.ts'
import { foreignThought, placeOf, tagged } from '../thoughts.ts'
import { isObject, type JsonObject } from '../../../view/json.ts'
import { providerTools } from '../provider-forms.ts'
import { isCompaction, isServerTool } from './reply.ts'

const HEADERS = { 'anthropic-version': '2023-06-01' } as const
/** https://platform.claude.com/docs/en/build-with-claude/files: needed by requests that name an uploaded file. */
const FILES_BETA = 'files-api-2025-04-14'

function headersOf(betas: readonly string[]): Encoded['headers'] {
  return betas.length === 0 ? HEADERS : { ...HEADERS, 'anthropic-beta': betas.join(',') }
}

export function encode(request: Request, target: Target): Encoded {
  const { settings, quirks } = target
  const { turns } = sound(request.messages, quirks.idPattern)
  const asked = thinkingOf(target, request.boost)
  const signed = linesOf(turns, readerOf(target, asked.on))
  const fits = !asked.manual || loopThinks(signed)
  const thinking = fits ? asked : unthinking(asked)
  const lines = fits ? signed : linesOf(turns, readerOf(target, false))
  const marks = markOf(settings)
  const served = providerTools(target, 'messages')
  const fields: [string, string | null][] = [
    ['model', json(target.model)],
    [quirks.outputTokensField ?? 'max_tokens', json(thinking.outputTokensMax)],
    ['stream', 'true'],
    ['system', systemOf(request, marks)],
    ['tools', toolsOf(request, served.json, marks)],
    ['tool_choice', choiceOf(request, target, thinking)],
    ['thinking', thinking.field === null ? null : json(thinking.field)],
    ['output_config', outputOf(request, target, thinking)],
    ['temperature', sampleOf(settings.temperature, thinking)],
    ['top_p', sampleOf(settings.topP, thinking)],
    ['stop_sequences', settings.stop === undefined ? null : json(settings.stop)],
    ['service_tier', settings.serviceTier === undefined ? null : json(settings.serviceTier)],
    ['messages', messageList(lines, marks, target.paused)],
  ]
  const kept = fields.filter((field): field is [string, string] => field[1] !== null)
  return {
    path: '/v1/messages',
    headers: headersOf(turns.some((turn) => namesUpload(turn, target)) ? [...served.betas, FILES_BETA] : served.betas),
    body: bodyOf(new Map(kept), fits ? settings.body : untold(settings)),
  }
}

function namesUpload({ type, parts }: Turn, { endpoint }: Target): boolean {
  return type === 'user' && parts.some((part) => part.type === 'file_id' && part.provider === endpoint)
}

/** The caller's fields without thinking, which these calls would be refused for. */
function untold({ body = {} }: Settings): NonNullable<Settings['body']> {
  const { thinking: _, ...rest } = body
  return rest
}

/** What makes a block a place that the cache is written to; empty if the caller wants none. */
function markOf(settings: Settings): string {
  const mark = cacheMark(settings)
  return mark === null ? '' : `,"cache_control":${json(mark)}}`
}

function sampleOf(value: number | undefined, { samples }: Thinking): string | null {
  return samples && value !== undefined ? json(value) : null
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

const tools = new WeakMap<ToolSchema, string>()

function toolJson(tool: ToolSchema): string {
  const known = tools.get(tool)
  if (known !== undefined) return known
  const described = tool.description.trim() === '' ? '' : `"description":${json(tool.description)},`
  const text = `{"name":${json(tool.name)},${described}"input_schema":${json(toolSchema(tool.parameters))}}`
  tools.set(tool, text)
  return text
}

function choiceOf(request: Request, target: Target, { on }: Thinking): string | null {
  const { tools: own, output } = request
  const { settings, quirks } = target
  const given = [...own, ...(settings.providerTools ?? [])]
  const answers = output?.mode === 'tool'
  if ((given.length === 0 && !answers) || quirks.lacks?.includes('tool_choice')) return null
  const allow = allowed(request, target)
  const single = settings.parallelToolCalls === false ? SINGLE : ''
  const demand = demanded(request, target)
  if (demand === 'required') return `{"type":"any"${single}}`
  if (demand !== null) return `{"type":"tool","name":${json(demand.tool)}${single}}`
  if (!answers && allow === 'none') return '{"type":"none"}'
  // A thinking model cannot be forced to call a tool.
  const forced = answers && (given.length === 0 || allow === 'none') && !on
  return forced ? `{"type":"tool","name":${json(output.name)}${SINGLE}}` : `{"type":"auto"${single}}`
}

const SINGLE = ',"disable_parallel_tool_use":true'

function outputOf({ output }: Request, { quirks }: Target, { effort }: Thinking): string | null {
  const native = output?.mode === 'native' && !quirks.lacks?.includes('native_output')
  if (!native && effort === null) return null
  const config: Record<string, Json> = {}
  if (effort !== null) config.effort = effort
  if (native) config.format = { type: 'json_schema', schema: keptSchema(output.schema) }
  return json(config)
}

// The list of messages: user and assistant alternate, the user begins and ends, and tool results come first in the message after
// their calls.

/**
 * Fills a missing user message: before a first assistant message, between two assistant messages and after a last one. Models
 * since 4.6 refuse a list that ends with the assistant.
 */
const GOES_ON = textBlock('(the conversation goes on)')

/** One message. */
type Line = {
  readonly role: 'user' | 'assistant'
  /** Its blocks, without the brackets. */
  content: string
  /** It begins with the results of calls. */
  readonly answers: boolean
  /** It begins with a thinking block. */
  readonly thinks: boolean
}

/** The last two user messages are marked for the prompt cache: one to write now, one to read from the last request. */
function messageList(lines: readonly Line[], mark: string, paused?: readonly Json[]): string {
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
  // Signed, so not by `json`.
  return paused === undefined ? `${list}]` : `${list},{"role":"assistant","content":${JSON.stringify(paused)}}]`
}

/** Adds the mark as the last field of the last block. */
function withMark(blocks: string, mark: string): string {
  return mark === '' ? blocks : blocks.slice(0, -1) + mark
}

/** Whether the calls in progress began with a thinking block. True if there are none. */
function loopThinks(lines: readonly Line[]): boolean {
  let at = lines.length - 1
  while (lines[at]?.answers) at -= 2
  return lines[at + 1]?.thinks ?? true
}

function linesOf(turns: readonly Turn[], reader: Reader): readonly Line[] {
  const lines: Line[] = []
  const add = (role: Line['role'], content: string, begins: 'answers' | 'thinks' | null): void => {
    const last = lines.at(-1)
    if (content === '') return
    if (last?.role === role) last.content += `,${content}`
    else lines.push({ role, content, answers: begins === 'answers', thinks: begins === 'thinks' })
  }
  for (const turn of turns) {
    const { said, results, thinksFirst } = written(turn, reader)
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

/** Everything besides the turn that its JSON depends on. */
type Reader = Frozen<{
  endpoint: string
  model: string
  /** Signed blocks that came after `sealedAfter` are sent back. */
  signed: boolean
  sealedAfter: number
  images: boolean
  files: boolean
  /** All of the above as one cache key. */
  key: string
}>

type AssistantTurn = Extract<Turn, { type: 'assistant' }>
type UserTurn = Extract<Turn, { type: 'user' }>
/** Blocks separated by commas, without brackets; empty if there is nothing to send. */
type Written = Frozen<{ said: string; results: string; thinksFirst: boolean }>

function readerOf({ endpoint, model, quirks, sealedAfter = 0 }: Target, signed: boolean): Reader {
  const images = !quirks.lacks?.includes('images')
  const files = !quirks.lacks?.includes('files')
  const key = JSON.stringify([endpoint, model, signed, sealedAfter, images, files])
  return { endpoint, model, signed, sealedAfter, images, files, key }
}

function textBlock(text: string, more = ''): string {
  return `{"type":"text","text":${json(text)}${more}}`
}

/** `results` begins the user message that must follow: the results of calls, and what the model made. */
function written(turn: Turn, reader: Reader): Written {
  const memo = memos.get(turn.of)
  if (memo !== undefined && memo.key === reader.key && isOf(memo, turn)) return memo
  const fresh = turn.type === 'user' ? ofUser(turn, reader) : ofAssistant(turn, reader)
  memos.set(turn.of, fresh)
  return fresh
}

type Memo = Written & Frozen<{ key: string; calls: readonly SoundCall[]; answers: readonly SoundResult[] }>

const memos = new WeakMap<Message, Memo>()

/** Ids can be remapped and results cleared while the message stays the same, so both are compared. */
function isOf({ calls, answers }: Memo, turn: Turn): boolean {
  if (turn.type === 'user') return true
  const { results } = turn
  return (
    calls.length === turn.calls.length &&
    calls.every((call, i) => call.id === turn.calls[i]?.id) &&
    answers.every((answer, i) => answer.ok === results[i]?.ok && sameShown(answer, results[i]))
  )
}

function ofUser(turn: UserTurn, reader: Reader): Memo {
  const blocks: string[] = []
  for (const part of turn.parts) blocks.push(...partBlocks(part, reader))
  return { said: blocks.join(','), results: '', thinksFirst: false, key: reader.key, calls: [], answers: [] }
}

function ofAssistant(turn: AssistantTurn, reader: Reader): Memo {
  const { calls, results } = turn
  const blocks: { readonly thinks: boolean; readonly text: string }[] = []
  const thoughts: string[] = []
  const made: string[] = []
  const isReplayed = turn.of.seq > reader.sealedAfter
  let called = 0
  let cites = ''
  const callUpTo = (count: number): void => {
    for (; called < Math.min(count, calls.length); called++) {
      blocks.push({ thinks: false, text: callBlock(calls[called] as SoundCall) })
    }
  }
  for (const part of turn.parts) {
    if (part.type === 'text') {
      blocks.push({ thinks: false, text: textBlock(part.text, cites) })
      cites = ''
    } else if (part.type === 'blob') {
      blocks.push({ thinks: false, text: textBlock(unshown(part)) })
    } else if (isFile(part)) {
      const shown = shownBlock(part, reader)
      blocks.push({ thinks: false, text: textBlock(shown === null ? unshown(part) : madeBelow(part)) })
      if (shown !== null) made.push(shown)
    } else if (part.type === 'provider') {
      callUpTo(placeOf(part))
      const own = isReplayed ? servedBlock(part, turn, reader) : null
      if (own !== null) blocks.push({ thinks: false, text: own })
    } else if (part.type === 'reasoning') {
      const signed = isReplayed ? signedBlock(part, reader) : null
      if (isReplayed) cites = citationsOf(part, reader)
      callUpTo(placeOf(part))
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
    blocks.unshift({ thinks: false, text: textBlock(tagged(thoughts.join('\n\n'))) })
  }
  const said = blocks.map(({ text }) => text).join(',')
  const thinksFirst = blocks[0]?.thinks ?? false
  const told = results.map((result) => resultBlock(result, reader))
  if (made.length > 0) told.push(textBlock(FROM_REPLY), ...made)
  return { said, results: told.join(','), thinksFirst, key: reader.key, calls, answers: results }
}

/** The provider's block; null if it may not be sent to this model. */
function signedBlock(part: Extract<Part, { type: 'reasoning' }>, reader: Reader): string | null {
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

/** What the provider's own tool was asked or gave; null if it may not be sent: to another provider, or half of a pair. */
function servedBlock(part: Served, { parts }: AssistantTurn, { endpoint }: Reader): string | null {
  const data = servedData(part, endpoint)
  if (data === null) return null
  if (isCompaction(data)) return JSON.stringify(data)
  const at = parts.indexOf(part)
  const paired = parts.some((each, place) => {
    const other = each.type === 'provider' ? servedData(each, endpoint) : null
    if (data.tool_use_id === undefined) return place > at && other?.tool_use_id === data.id
    return place < at && other?.tool_use_id === undefined && other?.id === data.tool_use_id
  })
  return paired ? JSON.stringify(data) : null
}

type Served = Extract<Part, { type: 'provider' }>

function servedData({ opaque }: Served, endpoint: string): JsonObject | null {
  const data = isObject(opaque) && opaque.by === endpoint ? opaque.data : null
  if (!isObject(data)) return null
  return isCompaction(data) || (isServerTool(data) && typeof (data.tool_use_id ?? data.id) === 'string') ? data : null
}

/** The field of the text block that follows. */
function citationsOf({ opaque }: Extract<Part, { type: 'reasoning' }>, { endpoint }: Reader): string {
  const data = isObject(opaque) && opaque.by === endpoint ? opaque.data : null
  return isObject(data) && Array.isArray(data.citations) ? `,"citations":${JSON.stringify(data.citations)}` : ''
}

function callBlock({ id, tool, args }: SoundCall): string {
  return `{"type":"tool_use","id":${json(id)},"name":${json(tool)},"input":${json(args)}}`
}

function resultBlock({ id, ok, content, parts }: SoundResult, reader: Reader): string {
  const begin = `{"type":"tool_result","tool_use_id":${json(id)},"content":`
  if (parts === undefined) return `${begin}${json(content)}${ok ? '' : ',"is_error":true'}}`
  const blocks = parts.flatMap((part) => partBlocks(part, reader))
  // The API refuses an error with anything but text in it. The content says that it failed.
  const texts = blocks.every((block) => block.startsWith('{"type":"text"'))
  return `${begin}[${[textBlock(content), ...blocks].join(',')}]${ok || !texts ? '' : ',"is_error":true'}}`
}

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
/** The API refuses a longer image, counted in base64 characters. */
const IMAGE_CHARS_MAX = 5_242_880
/** A request may have 32 MB in all. */
const FILE_CHARS_MAX = 31_457_280

type FilePart = Data | Remote | BlobRef

/** None of what only a reply has. */
function partBlocks(part: Part, reader: Reader): readonly string[] {
  if (part.type === 'reasoning' || part.type === 'provider' || part.type === 'source') return []
  return [part.type === 'text' ? textBlock(part.text) : fileBlock(part, reader)]
}

function fileBlock(part: FilePart, reader: Reader): string {
  return (part.type === 'blob' ? null : shownBlock(part, reader)) ?? textBlock(unshown(part))
}

/** Null: the model does not take it. */
function shownBlock(part: Data | Remote, reader: Reader): string | null {
  const media = mediaOf(part.media)
  const { images, files } = reader
  const source = sourceOf(part, media, reader)
  const chars = part.type === 'data' ? part.data.length : 0
  if (source === null) return null
  if (images && IMAGES.has(media) && chars <= IMAGE_CHARS_MAX) return `{"type":"image","source":${source}}`
  if (!files || media !== 'application/pdf' || chars > FILE_CHARS_MAX) return null
  return `{"type":"document","source":${source}${part.name === undefined ? '' : `,"title":${json(part.name)}`}}`
}

/** Null: this host does not have the file. */
function sourceOf(part: Data | Remote, media: string, { endpoint }: Reader): string | null {
  if (part.type === 'url') return `{"type":"url","url":${json(part.url)}}`
  if (part.type === 'file_id') return part.provider === endpoint ? `{"type":"file","file_id":${json(part.id)}}` : null
  return part.data === '' ? null : `{"type":"base64","media_type":${json(media)},"data":${json(part.data)}}`
}

function unshown(part: FilePart): string {
  if (part.type !== 'data' && part.type !== 'blob') return unseen(part)
  const name = part.type === 'data' && part.name !== undefined ? `${part.name} ` : ''
  const bytes = part.type === 'blob' ? part.bytes : bytesOf(part.data)
  return `[file ${name}(${part.media}, ${bytes} bytes) cannot be shown to this model]`
}

function bytesOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding)
}
