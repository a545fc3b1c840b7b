// The AI SDK's UI message stream: a session's items as the chunks that `useChat` reads, and its log as the messages
// that a page begins with. Output only: chat-handler.ts takes the requests.
import type { BlobRef, Json, Part } from '../kernel/content.ts'
import type { RunStream, Session } from '../sessions/verbs.ts'
import type { PageApproval } from './page-approval.ts'
import type { BranchLog } from './chat-branches.ts'
import type { PageEnd } from './page-end.ts'
import { continueFrom, followItems, readAllItems, repeatFrom } from './follow-items.ts'
import { streamAnswer, type ItemEncoder, type SseFrame, framesWithPosition } from './ui-http.ts'
import type { PositionedItem, SpokenPart as PartOf, UiItem } from './item-builder.ts'

type ItemOf<T extends UiItem['type']> = Extract<UiItem, { type: T }>
type Chunk = { readonly type: string; readonly [field: string]: unknown }
type MessageMetadata = { readonly position: string; readonly status?: PageEnd['status'] }

/** A message in the form of `useChat`. Its metadata contains the session's position. */
export type UiMessage = {
  /** The id of the message, the same each time it is read. */
  readonly id: string
  /** Whether a person or the model wrote it. */
  readonly role: 'user' | 'assistant'
  /** What it consists of, in order. */
  readonly parts: UiPart[]
  /** The position of the session up to here, and how its run ended. */
  metadata?: MessageMetadata
}
/** One part of a message of a page, as the AI SDK names them. */
export type UiPart =
  | { readonly type: 'text' | 'reasoning'; text: string; readonly state?: 'done' }
  | { readonly type: 'step-start' }
  | UiSource
  | UiFile
  | UiTool
  | { readonly type: `data-${string}`; readonly id?: string; readonly data: unknown }
type UiSource = {
  readonly type: 'source-url'
  readonly sourceId: string
  readonly url: string
  readonly title?: string
}
type UiFile = {
  readonly type: 'file'
  readonly url: string
  readonly mediaType: string
  readonly filename?: string
  readonly providerMetadata?: { readonly terret: { readonly hash: string; readonly toolCallId?: string } }
}
/** The address of a file for the page. */
export type FileUrl = (file: BlobRef) => string
type UiTool = {
  readonly type: `tool-${string}`
  readonly toolCallId: string
  readonly input: Json
  state: 'input-available' | 'approval-requested' | 'approval-responded' | `output-${'available' | 'error' | 'denied'}`
  output?: unknown
  errorText?: string
  approval?: { readonly id: string; readonly approved?: boolean }
}

/**
 * `fileUrl`: the address of a session's file for the page. Without it a file becomes a `data-file` part with its
 * reference.
 */
export type FileLinks = { readonly fileUrl?: FileUrl | undefined }

/**
 * The response to a request for a new run: the items of `stream`. Open the stream with `deltas: true` to receive texts
 * as they are written.
 */
export async function uiMessageResponse(
  session: Session,
  stream: RunStream,
  { fileUrl }: FileLinks = {},
): Promise<Response> {
  return streamAnswer(await followItems(session, stream), new UiMessageEncoder(true, fileUrl))
}

/**
 * The response to a request that resumes: everything after the position or, without one, the open message from its
 * beginning, as `useChat` expects. 204 if no run is open.
 */
export async function uiMessageResume(
  session: Session,
  after?: string | null,
  { fileUrl }: FileLinks = {},
): Promise<Response> {
  if (typeof after === 'string')
    return streamAnswer(await continueFrom(session, after), new UiMessageEncoder(false, fileUrl))
  const { open } = await readAllItems(session, () => {})
  if (open === null) return new Response(null, { status: 204 })
  return streamAnswer(await repeatFrom(session, open), new UiMessageEncoder(false, fileUrl))
}

/** Continues in the message that the page has. */
export async function uiMessageContinue(session: Session, after: unknown, { fileUrl }: FileLinks): Promise<Response> {
  return streamAnswer(await continueFrom(session, after), new UiMessageEncoder(true, fileUrl))
}

/** All messages of a session, for the first rendering of a page. */
export async function uiMessages(session: Session, files: FileLinks = {}): Promise<readonly UiMessage[]> {
  return uiMessagesOf([{ session, upTo: Number.POSITIVE_INFINITY }], files)
}

/** The same for a chat with branches. */
export async function uiMessagesOf(
  stretches: readonly BranchLog[],
  { fileUrl }: FileLinks = {},
): Promise<readonly UiMessage[]> {
  const builder = new UiMessageBuilder(fileUrl)
  for (const { session, upTo } of stretches) await readAllItems(session, (item) => builder.take(item), upTo)
  return builder.messages
}

class UiMessageEncoder implements ItemEncoder {
  readonly headers = { 'x-vercel-ai-ui-message-stream': 'v1' }
  /** The page shows one message for this response, even if the session has several. */
  readonly #single: boolean
  #begun = false
  #step = false
  readonly #open = new Set<string>()

  readonly #fileUrl: FileUrl | undefined

  constructor(single: boolean, fileUrl: FileUrl | undefined) {
    this.#single = single
    this.#fileUrl = fileUrl
  }

  begin(): readonly SseFrame[] {
    return []
  }

  tell({ told, position }: PositionedItem): readonly SseFrame[] {
    return framesWithPosition(this.#chunks(told, position), position)
  }

  fail(_code: string, message: string): readonly SseFrame[] {
    return [{ data: { type: 'error', errorText: message } }]
  }

  last(): string {
    return 'data: [DONE]\n\n'
  }

  #chunks(told: UiItem, position: string): readonly Chunk[] {
    switch (told.type) {
      case 'user':
        return []
      case 'message':
        return this.#message(told, { position })
      case 'request': {
        const before = this.#stepEnd()
        this.#step = true
        return [...before, { type: 'start-step' }]
      }
      case 'piece':
        return this.#piece(told)
      case 'spoken':
        return this.#close([told])
      case 'input':
        return this.#input(told)
      case 'abandoned':
        return [unmadeChunk(told)]
      case 'call':
        if (told.written !== undefined) return [inputChunk(told)]
        return [{ type: 'tool-input-start', toolCallId: told.id, toolName: told.tool }, inputChunk(told)]
      case 'decided':
        return [inputChunk(told)]
      case 'ask':
        return approvalChunks(told.approval, position)
      case 'result':
        return [resultChunk(told)]
      case 'source':
        return [sourcePart(told)]
      case 'file':
        return [filePart(told, this.#fileUrl)]
      case 'draft':
      case 'output':
        return [{ type: 'data-output', id: told.id, data: told.value }]
      case 'retry':
        return [{ type: 'data-retry', data: { message: told.message, at: told.at }, transient: true }]
      case 'end':
        return this.#end(told.end, position)
    }
  }

  #message({ id }: ItemOf<'message'>, messageMetadata: MessageMetadata): readonly Chunk[] {
    if (this.#single && this.#begun) return []
    this.#begun = true
    return [...this.#stepEnd(), { type: 'start', messageId: id, messageMetadata }]
  }

  #piece(told: ItemOf<'piece'>): readonly Chunk[] {
    const id = partId(told)
    const delta = { type: `${told.kind}-delta`, id, delta: told.text }
    const begins = !told.resumed && !this.#open.has(id)
    this.#open.add(id)
    return [...this.#close(told.ends), ...(begins ? [{ type: `${told.kind}-start`, id }] : []), delta]
  }

  #close(parts: readonly PartOf[]): readonly Chunk[] {
    return parts.map((part) => {
      this.#open.delete(partId(part))
      return { type: `${part.kind}-end`, id: partId(part) }
    })
  }

  #input({ id: toolCallId, tool: toolName, text: inputTextDelta, resumed, ends }: ItemOf<'input'>): readonly Chunk[] {
    const start = resumed ? [] : [{ type: 'tool-input-start', toolCallId, toolName }]
    return [...this.#close(ends), ...start, { type: 'tool-input-delta', toolCallId, inputTextDelta }]
  }

  #stepEnd(): readonly Chunk[] {
    const ended = this.#step ? [{ type: 'finish-step' }] : []
    this.#step = false
    return ended
  }

  /** The error comes last, because a page reads nothing after it. */
  #end({ status, finish, trouble }: PageEnd, position: string): readonly Chunk[] {
    const finishReason = trouble ? 'error' : status === 'completed' ? FINISH[finish] : REST[status]
    const done = { type: 'finish', finishReason: finishReason ?? 'other', messageMetadata: { position, status } }
    const failed = trouble ? [{ type: 'error', errorText: trouble.message }] : []
    return [...this.#stepEnd(), done, ...failed]
  }
}

const FINISH = { stop: 'stop', length: 'length', refusal: 'content-filter' } as const
const REST: Partial<Record<PageEnd['status'], string>> = { requires_action: 'tool-calls' }

function sourcePart({ id: sourceId, url, title }: ItemOf<'source'>): UiSource {
  return { type: 'source-url', sourceId, url, ...(title === undefined ? {} : { title }) }
}

/** The file chunk of the AI SDK has no name. */
function filePart({ id, file, call }: ItemOf<'file'>, fileUrl: FileUrl | undefined): UiFile | DataFilePart {
  const of = call === undefined ? {} : { toolCallId: call }
  if (fileUrl === undefined) return { type: 'data-file', id, data: { ...file, ...of } }
  const providerMetadata = { terret: { hash: file.hash, ...of } }
  return { type: 'file', url: fileUrl(file), mediaType: file.media, providerMetadata }
}
type DataFilePart = {
  readonly type: 'data-file'
  readonly id: string
  readonly data: BlobRef & { readonly toolCallId?: string }
}

/** The page has already begun to show the call. */
function unmadeChunk({ id: toolCallId, tool: toolName }: ItemOf<'abandoned'>): Chunk {
  return {
    type: 'tool-input-error',
    toolCallId,
    toolName,
    input: null,
    errorText: 'This call was not made as it was begun.',
  }
}

function partId({ call, kind, n }: PartOf): string {
  return `${call}.${kind}.${n}`
}

function inputChunk({ id, tool, args }: ItemOf<'call' | 'decided'>): Chunk {
  return { type: 'tool-input-available', toolCallId: id, toolName: tool, input: args }
}

/** The page hands this position back with its answer. */
function approvalChunks(approval: PageApproval, position: string): readonly Chunk[] {
  const { id, toolCallId } = approval
  return [
    { type: 'data-approval', id, data: approval },
    { type: 'tool-approval-request', approvalId: id, toolCallId },
    { type: 'message-metadata', messageMetadata: { position } },
  ]
}

function resultChunk({ id: toolCallId, status, content, asked: gated }: ItemOf<'result'>): Chunk {
  if (status === 'ok') return { type: 'tool-output-available', toolCallId, output: parseOutput(content) }
  if (status === 'denied' && gated) return { type: 'tool-output-denied', toolCallId }
  return { type: 'tool-output-error', toolCallId, errorText: toolErrorText(status, content) }
}

/** Tools encode objects and lists as JSON text. */
function parseOutput(content: string | BlobRef): unknown {
  if (typeof content !== 'string' || !/^\s*[[{]/.test(content)) return content
  try {
    return JSON.parse(content)
  } catch {
    return content
  }
}

function toolErrorText(status: string, content: string | BlobRef): string {
  return typeof content === 'string' && content !== '' ? content : `The call ended as ${status}.`
}

/** Builds messages from the same items. */
class UiMessageBuilder {
  readonly messages: UiMessage[] = []
  #answer: UiMessage | null = null
  readonly #fileUrl: FileUrl | undefined

  constructor(fileUrl: FileUrl | undefined) {
    this.#fileUrl = fileUrl
  }

  take({ told, position }: PositionedItem): void {
    if (told.type === 'user') {
      this.messages.push({
        id: told.id,
        role: 'user',
        parts: told.parts.flatMap((part) => userParts(part, this.#fileUrl)),
      })
      return
    }
    if (told.type === 'message') {
      this.#answer = { id: told.id, role: 'assistant', parts: [] }
      this.messages.push(this.#answer)
    }
    if (this.#answer === null) return
    this.#answer.metadata = { position, ...(told.type === 'end' ? { status: told.end.status } : {}) }
    this.#add(told, this.#answer.parts)
    if (told.type === 'end') this.#answer = null
  }

  #add(told: UiItem, parts: UiPart[]): void {
    if (told.type === 'request') parts.push({ type: 'step-start' })
    else if (told.type === 'piece') parts.push({ type: told.kind, text: told.text, state: 'done' })
    else if (told.type === 'source') parts.push(sourcePart(told))
    else if (told.type === 'file') parts.push(filePart(told, this.#fileUrl))
    else if (told.type === 'output') parts.push({ type: 'data-output', id: told.id, data: told.value })
    else if (told.type === 'call')
      parts.push({ type: `tool-${told.tool}`, toolCallId: told.id, input: told.args, state: 'input-available' })
    else if (told.type === 'ask') {
      const { id, toolCallId } = told.approval
      parts.push({ type: 'data-approval', id, data: told.approval })
      changeToolPart(parts, toolCallId, { state: 'approval-requested', approval: { id } })
    } else if (told.type === 'decided') {
      const id = findToolPart(parts, told.id)?.approval?.id
      if (id !== undefined)
        changeToolPart(parts, told.id, {
          input: told.args,
          state: 'approval-responded',
          approval: { id, approved: told.allow },
        })
    } else if (told.type === 'result') {
      const { type, output, errorText } = resultChunk(told)
      const state = type === 'tool-output-available' ? 'output-available' : null
      if (state) changeToolPart(parts, told.id, { state, output })
      else if (typeof errorText === 'string') changeToolPart(parts, told.id, { state: 'output-error', errorText })
      else changeToolPart(parts, told.id, { state: 'output-denied' })
    }
  }
}

function findToolPart(parts: readonly UiPart[], id: string): UiTool | undefined {
  return parts.find((part): part is UiTool => 'toolCallId' in part && part.toolCallId === id)
}

function changeToolPart(parts: readonly UiPart[], id: string, to: Partial<UiTool>): void {
  const part = findToolPart(parts, id)
  if (part) Object.assign(part, to)
}

function userParts(part: Part, fileUrl: FileUrl | undefined): readonly UiPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (part.type !== 'blob') return []
  if (fileUrl === undefined) return [{ type: 'data-file', data: part }]
  const named = part.name === undefined ? {} : { filename: part.name }
  return [{ type: 'file', url: fileUrl(part), mediaType: part.media, ...named }]
}
