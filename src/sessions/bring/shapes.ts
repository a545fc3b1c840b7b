// Reads messages of other libraries into one neutral form: chat completions (`tool_calls`, `tool_call_id`), the
// messages API (`tool_use`, `tool_result`) and the AI SDK (`tool-call`, `tool-result`). It reads and checks; bring.ts
// writes the log.
import type { BlobRef, Json, Part } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Blob } from '../../ports/store.ts'
import { describeValue } from '../../options.ts'

import { type Input, readInput } from '../input.ts'

/** One message of a conversation from elsewhere, in the form of your library. */
export type BroughtMessage = {
  /** Who speaks: `user`, `assistant` or `tool`. Others are refused. */
  readonly role: string
  /** A text or a list of parts: texts, images, files, calls and their results. */
  readonly content?: unknown
  /** Calls of an assistant message, where the content does not hold them. */
  readonly tool_calls?: unknown
  /** For the role `tool`: the id of the call that it answers. */
  readonly tool_call_id?: unknown
}

export type BroughtCall = { readonly id: string; readonly tool: string; readonly args: Json }
export type BroughtResult = {
  readonly id: string
  readonly ok: boolean
  readonly content: string
  readonly parts: readonly BlobRef[]
}
/** A message in the neutral form. `at` is its index in the given list. */
export type NeutralMessage =
  | { readonly role: 'user'; readonly at: number; readonly parts: readonly Part[] }
  | {
      readonly role: 'assistant'
      readonly at: number
      readonly parts: readonly Part[]
      readonly calls: readonly BroughtCall[]
    }
  | { readonly role: 'tool'; readonly at: number; readonly result: BroughtResult }

type Fields = Readonly<Record<string, unknown>>
type ReadPart = { readonly part: Part | null } | { readonly call: BroughtCall } | { readonly result: BroughtResult }

const MESSAGES_MAX = 10_000

/** Throws `invalid_input` naming the message that cannot be read. Pictures and files are added to `blobs`. */
export function readBroughtMessages(messages: readonly BroughtMessage[], blobs: Blob[]): readonly NeutralMessage[] {
  if (messages.length > MESSAGES_MAX)
    throw new Fault('too_many', `A session is opened with at most ${MESSAGES_MAX} messages. Leave out the oldest.`)
  return messages.flatMap((message, at) => readMessage(message, at, blobs))
}

function readMessage(message: unknown, at: number, blobs: Blob[]): readonly NeutralMessage[] {
  const fields = isObject(message) ? message : {}
  const { role } = fields
  if (role === 'system' || role === 'developer')
    throw badMessage(at, `has the role "${role}". Give its text as \`instructions\` of the agent or of the run`)
  if (role !== 'user' && role !== 'assistant' && role !== 'tool')
    throw badMessage(at, `has the role ${describeValue(role)}. Write user, assistant or tool`)
  if (role === 'tool' && fields['tool_call_id'] !== undefined) return [readToolMessage(fields, at, blobs)]
  const read = partsIn(fields['content'], at).map((part) => readPart(part, at, blobs))
  const parts = read.flatMap((each) => ('part' in each && each.part !== null ? [each.part] : []))
  const calls = [...read.flatMap((each) => ('call' in each ? [each.call] : [])), ...readListedCalls(fields, at)]
  const results = read.flatMap((each): readonly NeutralMessage[] =>
    'result' in each ? [{ role: 'tool', at, result: each.result }] : [],
  )
  if (parts.length + calls.length + results.length === 0) throw badMessage(at, 'has no content. Leave it out')
  if (role === 'assistant') {
    if (results.length > 0)
      throw badMessage(at, 'has a result in an assistant message. Give it in the message after it')
    return [{ role, at, parts, calls }]
  }
  if (calls.length > 0)
    throw badMessage(at, `has a call in a message of the role "${role}". Calls are of the assistant`)
  if (parts.length === 0) return results
  if (role === 'tool') throw badMessage(at, 'has a part that is no result. Give it in a user message')
  return [...results, { role, at, parts }]
}

/** In chat completions the whole message is one result. */
function readToolMessage({ tool_call_id: id, content }: Fields, at: number, blobs: Blob[]): NeutralMessage {
  if (typeof id !== 'string' || id === '')
    throw badMessage(at, 'names no call. Give the id of the call as tool_call_id')
  return { role: 'tool', at, result: { id, ok: true, ...readContent(content, at, blobs) } }
}

function partsIn(content: unknown, at: number): readonly unknown[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return content.trim() === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content))
    throw badMessage(at, `has a content that is ${describeValue(content)}. Write a text or a list of parts`)
  return content as readonly unknown[]
}

function readPart(value: unknown, at: number, blobs: Blob[]): ReadPart {
  const part = isObject(value) ? value : {}
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
      return { part: typeof part['text'] === 'string' && part['text'] !== '' ? textPart(part['text']) : null }
    case 'reasoning':
    case 'thinking':
      return { part: reasoningPart(part) }
    // Thoughts that a provider encrypted are of no use elsewhere.
    case 'redacted_thinking':
      return { part: null }
    case 'tool_use':
      return { call: readBroughtCall(part['id'], part['name'], part['input'], at) }
    case 'tool-call':
      return { call: readBroughtCall(part['toolCallId'], part['toolName'], part['input'] ?? part['args'], at) }
    case 'tool_result':
      return {
        result: { ...readResult(part['tool_use_id'], part['content'], at, blobs), ok: part['is_error'] !== true },
      }
    case 'tool-result':
      return { result: readSdkResult(part, at, blobs) }
    default:
      return { part: filePart(part, at, blobs) }
  }
}

function textPart(text: string): Part {
  return { type: 'text', text }
}

/** Keeps the text only. The signed form is valid only in the session in which it was made. */
function reasoningPart({ text, thinking }: Fields): Part | null {
  const words = typeof text === 'string' ? text : thinking
  return typeof words === 'string' && words !== '' ? { type: 'reasoning', text: words } : null
}

function readListedCalls({ tool_calls: calls }: Fields, at: number): readonly BroughtCall[] {
  if (calls === undefined || calls === null) return []
  if (!Array.isArray(calls)) throw badMessage(at, `has tool_calls that are ${describeValue(calls)}. Write a list`)
  return (calls as readonly unknown[]).map((value) => {
    const { id, function: called } = isObject(value) ? value : ({} as Fields)
    const { name, arguments: args } = isObject(called) ? called : ({} as Fields)
    return readBroughtCall(id, name, typeof args === 'string' ? parseArguments(args, at) : args, at)
  })
}

function parseArguments(text: string, at: number): unknown {
  try {
    return text.trim() === '' ? {} : (JSON.parse(text) as unknown)
  } catch {
    throw badMessage(at, 'has a call whose arguments are not JSON. Leave the call out')
  }
}

const NAME_CHARS_MAX = 200

function readBroughtCall(id: unknown, tool: unknown, input: unknown, at: number): BroughtCall {
  const isName = (value: unknown): value is string =>
    typeof value === 'string' && value !== '' && value.length <= NAME_CHARS_MAX
  if (!isName(id) || !isName(tool)) throw badMessage(at, 'has a call without an id or without a name. Give both')
  return { id, tool, args: copyAsJson(input ?? {}, at) }
}

/** Copies the value as plain JSON. */
function copyAsJson(value: unknown, at: number): Json {
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null') as Json
  } catch {
    throw badMessage(at, 'has a value that is not JSON. Give plain data')
  }
}

function readResult(id: unknown, content: unknown, at: number, blobs: Blob[]): Omit<BroughtResult, 'ok'> {
  if (typeof id !== 'string' || id === '')
    throw badMessage(at, 'has a result that names no call. Give the id of the call')
  return { id, ...readContent(content, at, blobs) }
}

/** The type of `output` says its kind: a text, JSON, an error, or a list of parts. */
function readSdkResult({ toolCallId, output, result }: Fields, at: number, blobs: Blob[]): BroughtResult {
  const { type, value, reason } = isObject(output) ? output : { type: 'json', value: output ?? result }
  if (type === 'content' && Array.isArray(value)) return { ...readResult(toolCallId, value, at, blobs), ok: true }
  const told = type === 'execution-denied' ? (reason ?? 'It was denied.') : value
  const text = typeof told === 'string' ? told : JSON.stringify(copyAsJson(told ?? null, at))
  return { ...readResult(toolCallId, text, at, blobs), ok: type === 'text' || type === 'json' }
}

function readContent(content: unknown, at: number, blobs: Blob[]): Pick<BroughtResult, 'content' | 'parts'> {
  if (typeof content === 'string') return { content, parts: [] }
  const parts = partsIn(content, at).map((part) => readPart(part, at, blobs))
  const texts = parts.flatMap((each) => ('part' in each && each.part?.type === 'text' ? [each.part.text] : []))
  const files = parts.flatMap((each) => ('part' in each && each.part?.type === 'blob' ? [each.part] : []))
  return { content: texts.join('\n'), parts: files }
}

const IMAGE_TYPES: Readonly<Record<string, string>> = { png: 'image/png', gif: 'image/gif', webp: 'image/webp' }

/** Reads a picture or a file, in any of the forms, as `send` takes it. */
function filePart(part: Fields, at: number, blobs: Blob[]): Part {
  const { type } = part
  const known = type === 'image' || type === 'image_url' || type === 'file' || type === 'document' || type === 'media'
  const own = type === 'url' || type === 'file_id'
  // With the hash alone a new session could refer to blobs of another one.
  if (type === 'blob') throw badMessage(at, 'has a blob, which belongs to another session. Give the file itself')
  if (!known && !own)
    throw badMessage(at, `has a part of the type ${describeValue(type)}, which cannot be read. Leave it out`)
  try {
    const read = readInput([own || part['media'] !== undefined ? part : findFileSource(part)] as unknown as Input)
    blobs.push(...read.blobs)
    return read.parts[0] as Part
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw badMessage(at, `has a part that cannot be read: ${error.message.replace(/\.$/, '')}`)
  }
}

/** Finds the bytes of a file and their media type. */
function findFileSource(part: Fields): Fields {
  const source = isObject(part['source']) ? part['source'] : part
  const { image_url: imageUrl, image, data, url } = source
  const where = (isObject(imageUrl) ? imageUrl['url'] : imageUrl) ?? image ?? data ?? url
  const name = source['filename'] ?? source['name']
  const named = typeof name === 'string' ? { name } : {}
  const said = source['media_type'] ?? source['mediaType'] ?? source['mimeType']
  const isImage = part['type'] === 'image' || part['type'] === 'image_url'
  const media = typeof said === 'string' ? said : isImage ? 'image/jpeg' : 'application/octet-stream'
  const type = media.startsWith('image/') ? 'image' : 'file'
  const address = where instanceof URL ? where.href : where
  if (typeof address === 'string') {
    const [, ofData, base64] = /^data:([^;,]+);base64,(.*)$/s.exec(address) ?? []
    if (ofData !== undefined)
      return { type: ofData.startsWith('image/') ? 'image' : 'file', media: ofData, data: base64, ...named }
    const [, ending = ''] = /\.(\w+)(?:[?#].*)?$/.exec(address) ?? []
    if (/^https?:/.test(address))
      return {
        type: 'url',
        media: typeof said === 'string' ? said : (IMAGE_TYPES[ending.toLowerCase()] ?? media),
        url: address,
        ...named,
      }
  }
  return { type, media, data: where instanceof ArrayBuffer ? new Uint8Array(where) : where, ...named }
}

export function badMessage(at: number, what: string): Fault {
  return new Fault('invalid_input', `messages[${at}] ${what}.`)
}

function isObject(value: unknown): value is Fields {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
