// The AI SDK's UI message stream: what a session tells, as the chunks that `useChat` reads, and its log as the messages that a page
// begins with. Only the wire; what comes back from the browser is chat.ts.
import type { BlobRef, Json, Part } from '../kernel/content.ts'
import type { RunStream, Session } from '../sessions/verbs.ts'
import type { Approval } from './approval.ts'
import type { Stretch } from './branches.ts'
import type { End } from './end.ts'
import { continued, followed, readAll, repeated } from './follow.ts'
import { answer, type Encoder, type Frame, framed } from './http.ts'
import type { Item, Of as PartOf, Told } from './teller.ts'

type Of<T extends Told['type']> = Extract<Told, { type: T }>
type Chunk = { readonly type: string; readonly [field: string]: unknown }
type Metadata = { readonly position: string; readonly status?: End['status'] }

/** A message as `useChat` takes it. Its metadata says where the session stood. */
export type UiMessage = {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly parts: UiPart[]
  metadata?: Metadata
}
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
/** Where a page gets a file from. */
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

/** `fileUrl` says where the page gets the files of a session from. Without it a file is a part `data-file` with its reference. */
export type Files = { readonly fileUrl?: FileUrl | undefined }

/** The answer to a request for a new run: what `stream` tells. Open the stream with `deltas: true` to have texts as they come. */
export async function uiMessageResponse(
  session: Session,
  stream: RunStream,
  { fileUrl }: Files = {},
): Promise<Response> {
  return answer(await followed(session, stream), new UiMessageEncoder(true, fileUrl))
}

/**
 * The answer to a request that resumes: what comes after the position, or without one the open message from its beginning, as
 * `useChat` expects it. 204 if no run is open.
 */
export async function uiMessageResume(
  session: Session,
  after?: string | null,
  { fileUrl }: Files = {},
): Promise<Response> {
  if (typeof after === 'string') return answer(await continued(session, after), new UiMessageEncoder(false, fileUrl))
  const { open } = await readAll(session, () => {})
  if (open === null) return new Response(null, { status: 204 })
  return answer(await repeated(session, open), new UiMessageEncoder(false, fileUrl))
}

/** Goes on in the message that the page has. */
export async function uiMessageContinue(session: Session, after: unknown, { fileUrl }: Files): Promise<Response> {
  return answer(await continued(session, after), new UiMessageEncoder(true, fileUrl))
}

/** All messages of a session, for the page to begin with. */
export async function uiMessages(session: Session, files: Files = {}): Promise<readonly UiMessage[]> {
  return uiMessagesOf([{ session, upTo: Number.POSITIVE_INFINITY }], files)
}

/** The same of a chat that has branches. */
export async function uiMessagesOf(
  stretches: readonly Stretch[],
  { fileUrl }: Files = {},
): Promise<readonly UiMessage[]> {
  const builder = new MessageBuilder(fileUrl)
  for (const { session, upTo } of stretches) await readAll(session, (item) => builder.take(item), upTo)
  return builder.messages
}

class UiMessageEncoder implements Encoder {
  readonly headers = { 'x-vercel-ai-ui-message-stream': 'v1' }
  /** The page has one message for this answer, whatever it is made of here. */
  readonly #single: boolean
  #begun = false
  #step = false
  readonly #open = new Set<string>()

  readonly #fileUrl: FileUrl | undefined

  constructor(single: boolean, fileUrl: FileUrl | undefined) {
    this.#single = single
    this.#fileUrl = fileUrl
  }

  begin(): readonly Frame[] {
    return []
  }

  tell({ told, position }: Item): readonly Frame[] {
    return framed(this.#chunks(told, position), position)
  }

  fail(_code: string, message: string): readonly Frame[] {
    return [{ data: { type: 'error', errorText: message } }]
  }

  last(): string {
    return 'data: [DONE]\n\n'
  }

  #chunks(told: Told, position: string): readonly Chunk[] {
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
        return [unmade(told)]
      case 'call':
        if (told.written !== undefined) return [available(told)]
        return [{ type: 'tool-input-start', toolCallId: told.id, toolName: told.tool }, available(told)]
      case 'decided':
        return [available(told)]
      case 'ask':
        return asked(told.approval, position)
      case 'result':
        return [resultOf(told)]
      case 'source':
        return [sourceOf(told)]
      case 'file':
        return [fileOf(told, this.#fileUrl)]
      case 'draft':
      case 'output':
        return [{ type: 'data-output', id: told.id, data: told.value }]
      case 'retry':
        return [{ type: 'data-retry', data: { message: told.message, at: told.at }, transient: true }]
      case 'end':
        return this.#end(told.end, position)
    }
  }

  #message({ id }: Of<'message'>, messageMetadata: Metadata): readonly Chunk[] {
    if (this.#single && this.#begun) return []
    this.#begun = true
    return [...this.#stepEnd(), { type: 'start', messageId: id, messageMetadata }]
  }

  #piece(told: Of<'piece'>): readonly Chunk[] {
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

  #input({ id: toolCallId, tool: toolName, text: inputTextDelta, resumed, ends }: Of<'input'>): readonly Chunk[] {
    const start = resumed ? [] : [{ type: 'tool-input-start', toolCallId, toolName }]
    return [...this.#close(ends), ...start, { type: 'tool-input-delta', toolCallId, inputTextDelta }]
  }

  #stepEnd(): readonly Chunk[] {
    const ended = this.#step ? [{ type: 'finish-step' }] : []
    this.#step = false
    return ended
  }

  /** The error comes last: a page reads nothing after it. */
  #end({ status, finish, trouble }: End, position: string): readonly Chunk[] {
    const finishReason = trouble ? 'error' : status === 'completed' ? FINISH[finish] : REST[status]
    const done = { type: 'finish', finishReason: finishReason ?? 'other', messageMetadata: { position, status } }
    const failed = trouble ? [{ type: 'error', errorText: trouble.message }] : []
    return [...this.#stepEnd(), done, ...failed]
  }
}

const FINISH = { stop: 'stop', length: 'length', refusal: 'content-filter' } as const
const REST: Partial<Record<End['status'], string>> = { requires_action: 'tool-calls' }

function sourceOf({ id: sourceId, url, title }: Of<'source'>): UiSource {
  return { type: 'source-url', sourceId, url, ...(title === undefined ? {} : { title }) }
}

/** The chunk of a file has no name. */
function fileOf({ id, file, call }: Of<'file'>, fileUrl: FileUrl | undefined): UiFile | Kept {
  const of = call === undefined ? {} : { toolCallId: call }
  if (fileUrl === undefined) return { type: 'data-file', id, data: { ...file, ...of } }
  const providerMetadata = { terret: { hash: file.hash, ...of } }
  return { type: 'file', url: fileUrl(file), mediaType: file.media, providerMetadata }
}
type Kept = {
  readonly type: 'data-file'
  readonly id: string
  readonly data: BlobRef & { readonly toolCallId?: string }
}

/** The page began to show it. */
function unmade({ id: toolCallId, tool: toolName }: Of<'abandoned'>): Chunk {
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

function available({ id, tool, args }: Of<'call' | 'decided'>): Chunk {
  return { type: 'tool-input-available', toolCallId: id, toolName: tool, input: args }
}

/** The page hands the position back with its answer. */
function asked(approval: Approval, position: string): readonly Chunk[] {
  const { id, toolCallId } = approval
  return [
    { type: 'data-approval', id, data: approval },
    { type: 'tool-approval-request', approvalId: id, toolCallId },
    { type: 'message-metadata', messageMetadata: { position } },
  ]
}

function resultOf({ id: toolCallId, status, content, asked: gated }: Of<'result'>): Chunk {
  if (status === 'ok') return { type: 'tool-output-available', toolCallId, output: outputOf(content) }
  if (status === 'denied' && gated) return { type: 'tool-output-denied', toolCallId }
  return { type: 'tool-output-error', toolCallId, errorText: errorOf(status, content) }
}

/** Tools that give objects and lists write them as JSON. */
function outputOf(content: string | BlobRef): unknown {
  if (typeof content !== 'string' || !/^\s*[[{]/.test(content)) return content
  try {
    return JSON.parse(content)
  } catch {
    return content
  }
}

function errorOf(status: string, content: string | BlobRef): string {
  return typeof content === 'string' && content !== '' ? content : `The call ended as ${status}.`
}

/** The same items, put together as messages. */
class MessageBuilder {
  readonly messages: UiMessage[] = []
  #answer: UiMessage | null = null
  readonly #fileUrl: FileUrl | undefined

  constructor(fileUrl: FileUrl | undefined) {
    this.#fileUrl = fileUrl
  }

  take({ told, position }: Item): void {
    if (told.type === 'user') {
      this.messages.push({
        id: told.id,
        role: 'user',
        parts: told.parts.flatMap((part) => userPart(part, this.#fileUrl)),
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

  #add(told: Told, parts: UiPart[]): void {
    if (told.type === 'request') parts.push({ type: 'step-start' })
    else if (told.type === 'piece') parts.push({ type: told.kind, text: told.text, state: 'done' })
    else if (told.type === 'source') parts.push(sourceOf(told))
    else if (told.type === 'file') parts.push(fileOf(told, this.#fileUrl))
    else if (told.type === 'output') parts.push({ type: 'data-output', id: told.id, data: told.value })
    else if (told.type === 'call')
      parts.push({ type: `tool-${told.tool}`, toolCallId: told.id, input: told.args, state: 'input-available' })
    else if (told.type === 'ask') {
      const { id, toolCallId } = told.approval
      parts.push({ type: 'data-approval', id, data: told.approval })
      change(parts, toolCallId, { state: 'approval-requested', approval: { id } })
    } else if (told.type === 'decided') {
      const id = toolIn(parts, told.id)?.approval?.id
      if (id !== undefined)
        change(parts, told.id, {
          input: told.args,
          state: 'approval-responded',
          approval: { id, approved: told.allow },
        })
    } else if (told.type === 'result') {
      const { type, output, errorText } = resultOf(told)
      const state = type === 'tool-output-available' ? 'output-available' : null
      if (state) change(parts, told.id, { state, output })
      else if (typeof errorText === 'string') change(parts, told.id, { state: 'output-error', errorText })
      else change(parts, told.id, { state: 'output-denied' })
    }
  }
}

function toolIn(parts: readonly UiPart[], id: string): UiTool | undefined {
  return parts.find((part): part is UiTool => 'toolCallId' in part && part.toolCallId === id)
}

function change(parts: readonly UiPart[], id: string, to: Partial<UiTool>): void {
  const part = toolIn(parts, id)
  if (part) Object.assign(part, to)
}

function userPart(part: Part, fileUrl: FileUrl | undefined): readonly UiPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  if (part.type !== 'blob') return []
  if (fileUrl === undefined) return [{ type: 'data-file', data: part }]
  const named = part.name === undefined ? {} : { filename: part.name }
  return [{ type: 'file', url: fileUrl(part), mediaType: part.media, ...named }]
}
