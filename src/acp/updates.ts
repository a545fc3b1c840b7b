// Converts the events of a session to updates of the protocol, in order. A streamed reply and a log that is read again
// give the same updates. It sends nothing.
import type { ContentBlock, PlanEntry, SessionUpdate, ToolCallContent, ToolCallStatus } from '@agentclientprotocol/sdk'
import { boardIn, type BoardStatus } from '../boards/board.ts'
import type { BlobRef, CallKey, CallStatus, Json, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Blob } from '../ports/store.ts'
import type { UiItem } from '../ui/item-builder.ts'
import { isObject } from '../view/untrusted-json.ts'
import { clipText, eventId } from '../view/shown-text.ts'
import {
  type ToolAction,
  callContent,
  toolKind,
  callLocations,
  textContent,
  callTitle,
  writtenDiff,
} from './tool-call.ts'

/** Reads a file of the session; null if there is none. */
type ReadBlob = (ref: Pick<BlobRef, 'hash'>) => Promise<Blob | null>
type ToolResultEvent = Extract<Event, { type: 'agent.tool_result' }>
type ShownResult = {
  readonly status: CallStatus
  readonly content: string | BlobRef
  readonly metadata?: Json | undefined
}

/** The longest text of one result. The log has all of it. */
const RESULT_CHARS_MAX = 32_000
const FILE_BYTES_MAX = 8 * 1024 * 1024
const HASH = /^[0-9a-f]{64}$/

/** Remembers the calls that it has reported, so that a result is shown together with its call. */
export class UpdateBuilder {
  readonly #session: string
  readonly #folder: string
  readonly #blob: ReadBlob
  readonly #calls = new Map<string, ToolAction>()

  constructor(session: string, folder: string, blob: ReadBlob) {
    this.#session = session
    this.#folder = folder
    this.#blob = blob
  }

  /** `event` is the log event that this item comes from, or null. */
  async of(told: UiItem, event: Event | null): Promise<readonly SessionUpdate[]> {
    switch (told.type) {
      case 'user':
        return this.#said('user_message_chunk', told.id, told.parts)
      case 'piece': {
        const sessionUpdate = told.kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk'
        return [messageChunk(sessionUpdate, textBlock(told.text), this.#reply(told.call, told.kind))]
      }
      case 'output':
        return [messageChunk('agent_message_chunk', textBlock(JSON.stringify(told.value, null, 2)))]
      case 'file':
        return told.call === undefined ? this.#said('agent_message_chunk', told.id, [told.file]) : []
      case 'call':
        return [this.#call(told.id, told)]
      case 'result': {
        const metadata = event?.type === 'agent.tool_result' ? event.metadata : undefined
        return this.#result(told.id, { ...told, metadata })
      }
      default:
        return []
    }
  }

  /** Reports that a known call has begun. */
  began(id: string): readonly SessionUpdate[] {
    return this.#calls.has(id) ? [{ sessionUpdate: 'tool_call_update', toolCallId: id, status: 'in_progress' }] : []
  }

  /** Reports the result of a child's call, if the call is known. */
  async ended(id: string, event: ToolResultEvent): Promise<readonly SessionUpdate[]> {
    return this.#calls.has(id) ? this.#result(id, event) : []
  }

  /** Reports a call of a child. That happens only when a person is asked about it. */
  child(id: string, action: ToolAction): SessionUpdate | null {
    return this.#calls.has(id) ? null : this.#call(id, action)
  }

  #call(id: string, { tool, args }: ToolAction): SessionUpdate {
    const action = { tool, args }
    this.#calls.set(id, action)
    return { sessionUpdate: 'tool_call', toolCallId: id, status: 'pending', ...describeCall(action, this.#folder) }
  }

  async #result(id: string, { status, content, metadata }: ShownResult): Promise<readonly SessionUpdate[]> {
    const action = this.#calls.get(id)
    if (action === undefined) return []
    this.#calls.delete(id)
    const told = clipText(typeof content === 'string' ? content : await this.#text(content), RESULT_CHARS_MAX)
    const update: SessionUpdate = {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: toolCallStatus(status),
      content: [...(await this.#changes(action, metadata, status)), ...textContent(told)],
      rawOutput: { status, text: told },
    }
    const plan = planEntries(metadata)
    return plan === null ? [update] : [update, { sessionUpdate: 'plan', entries: plan }]
  }

  /** The changes that the call made. The file before a `write` is stored beside the log. A failed call shows none. */
  async #changes(action: ToolAction, metadata: Json | undefined, status: CallStatus): Promise<ToolCallContent[]> {
    if (status !== 'ok') return []
    const { replaced } = isObject(metadata) ? metadata : {}
    const blob = typeof replaced === 'string' && HASH.test(replaced) ? await this.#blob({ hash: replaced }) : null
    const before = blob?.media === 'text/plain' ? Buffer.from(blob.data).toString() : null
    const written = before === null ? [] : writtenDiff(action, before, this.#folder)
    return written.length > 0 ? written : callContent(action, this.#folder)
  }

  async #said(sessionUpdate: ChunkType, id: string, parts: readonly Part[]): Promise<readonly SessionUpdate[]> {
    const updates: SessionUpdate[] = []
    for (const part of parts) {
      const block = await this.#block(part)
      if (block) updates.push(messageChunk(sessionUpdate, block, id))
    }
    return updates
  }

  async #block(part: Part): Promise<ContentBlock | null> {
    if (part.type === 'text') return part.text === '' ? null : textBlock(part.text)
    if (part.type === 'url') return { type: 'resource_link', uri: part.url, name: part.name ?? part.url }
    if (part.type !== 'blob') return null
    const { media, name = 'a file', bytes } = part
    const blob = media.startsWith('image/') && bytes <= FILE_BYTES_MAX ? await this.#blob(part) : null
    if (blob === null) return textBlock(`[${name}, ${media}, ${bytes} bytes]`)
    return { type: 'image', mimeType: media, data: Buffer.from(blob.data).toString('base64') }
  }

  async #text(ref: BlobRef): Promise<string> {
    const blob = ref.bytes > FILE_BYTES_MAX ? null : await this.#blob(ref)
    return blob === null ? `[${ref.bytes} bytes]` : Buffer.from(blob.data).toString()
  }

  /** Text and reasoning have different ids, because an editor begins a new message when the id changes. */
  #reply(call: number, kind: 'text' | 'reasoning'): string {
    return kind === 'text' ? eventId(this.#session, call) : `${eventId(this.#session, call)}.thought`
  }
}

/** The fields of a call for an editor, also used where a person is asked about it. */
export function describeCall(action: ToolAction, folder: string) {
  return {
    title: callTitle(action),
    name: action.tool,
    kind: toolKind(action.tool),
    content: callContent(action, folder),
    locations: callLocations(action, folder),
    rawInput: action.args,
  }
}

type ChunkType = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'

export function messageChunk(sessionUpdate: ChunkType, content: ContentBlock, messageId?: string): SessionUpdate {
  return { sessionUpdate, content, ...(messageId === undefined ? {} : { messageId }) }
}

export function textBlock(said: string): ContentBlock {
  return { type: 'text', text: said }
}

/** The id of a child's call contains its session, so that it differs from all calls of the parent. */
export function toolCallIdOf(session: string, sessionId: string, callId: CallKey): string {
  return sessionId === session ? callId : `${sessionId.slice(session.length)}/${callId}`
}

function toolCallStatus(status: CallStatus): ToolCallStatus {
  return status === 'ok' ? 'completed' : 'failed'
}

const STATES: Readonly<Record<BoardStatus, PlanEntry['status']>> = {
  todo: 'pending',
  awaiting_approval: 'pending',
  ready: 'pending',
  blocked: 'pending',
  in_progress: 'in_progress',
  done: 'completed',
  rejected: 'completed',
}

/** The whole board of a result. An editor shows the last one. */
function planEntries(metadata: Json | undefined): PlanEntry[] | null {
  const board = isObject(metadata) ? boardIn(metadata['board']) : null
  return (
    board &&
    board.cards.map(({ text: said, status }) => ({ content: said, priority: 'medium', status: STATES[status] }))
  )
}
