// What happened in a session as updates of the protocol, in order: the same for a reply as it comes and for a log that is read again. It
// sends nothing.
import type { ContentBlock, PlanEntry, SessionUpdate, ToolCallContent, ToolCallStatus } from '@agentclientprotocol/sdk'
import { boardIn, type BoardStatus } from '../boards/board.ts'
import type { BlobRef, CallKey, CallStatus, Json, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Blob } from '../ports/store.ts'
import type { Told } from '../ui/teller.ts'
import { isObject } from '../view/json.ts'
import { clipped, eventId } from '../view/text.ts'
import { type Action, contentOf, kindOf, locationsOf, textContent, titleOf, writtenDiff } from './tool-call.ts'

/** The bytes of a file of the session, or null. */
type ReadBlob = (ref: Pick<BlobRef, 'hash'>) => Promise<Blob | null>
type Result = Extract<Event, { type: 'agent.tool_result' }>
type Outcome = { readonly status: CallStatus; readonly content: string | BlobRef; readonly metadata?: Json | undefined }

/** Of one result: the whole of it is in the log. */
const RESULT_CHARS_MAX = 32_000
const FILE_BYTES_MAX = 8 * 1024 * 1024
const HASH = /^[0-9a-f]{64}$/

/** Knows the calls it has told of, so that a result is told with what was called. */
export class Updates {
  readonly #session: string
  readonly #folder: string
  readonly #blob: ReadBlob
  readonly #calls = new Map<string, Action>()

  constructor(session: string, folder: string, blob: ReadBlob) {
    this.#session = session
    this.#folder = folder
    this.#blob = blob
  }

  /** `event` is the event of the log that it is told from, if it is one. */
  async of(told: Told, event: Event | null): Promise<readonly SessionUpdate[]> {
    switch (told.type) {
      case 'user':
        return this.#said('user_message_chunk', told.id, told.parts)
      case 'piece': {
        const sessionUpdate = told.kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk'
        return [chunk(sessionUpdate, text(told.text), this.#reply(told.call, told.kind))]
      }
      case 'output':
        return [chunk('agent_message_chunk', text(JSON.stringify(told.value, null, 2)))]
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

  /** A call that was told of begins. */
  began(id: string): readonly SessionUpdate[] {
    return this.#calls.has(id) ? [{ sessionUpdate: 'tool_call_update', toolCallId: id, status: 'in_progress' }] : []
  }

  /** The call of a child, if it was told of. */
  async ended(id: string, event: Result): Promise<readonly SessionUpdate[]> {
    return this.#calls.has(id) ? this.#result(id, event) : []
  }

  /** For a call of a child, which is told of only when a person is asked about it. */
  child(id: string, action: Action): SessionUpdate | null {
    return this.#calls.has(id) ? null : this.#call(id, action)
  }

  #call(id: string, { tool, args }: Action): SessionUpdate {
    const action = { tool, args }
    this.#calls.set(id, action)
    return { sessionUpdate: 'tool_call', toolCallId: id, status: 'pending', ...shownCall(action, this.#folder) }
  }

  async #result(id: string, { status, content, metadata }: Outcome): Promise<readonly SessionUpdate[]> {
    const action = this.#calls.get(id)
    if (action === undefined) return []
    this.#calls.delete(id)
    const told = clipped(typeof content === 'string' ? content : await this.#text(content), RESULT_CHARS_MAX)
    const update: SessionUpdate = {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: statusOf(status),
      content: [...(await this.#changes(action, metadata, status)), ...textContent(told)],
      rawOutput: { status, text: told },
    }
    const plan = planIn(metadata)
    return plan === null ? [update] : [update, { sessionUpdate: 'plan', entries: plan }]
  }

  /** What the call changed: the file before a `write` lies beside the log. Only what was done is shown. */
  async #changes(action: Action, metadata: Json | undefined, status: CallStatus): Promise<ToolCallContent[]> {
    if (status !== 'ok') return []
    const { replaced } = isObject(metadata) ? metadata : {}
    const blob = typeof replaced === 'string' && HASH.test(replaced) ? await this.#blob({ hash: replaced }) : null
    const before = blob?.media === 'text/plain' ? Buffer.from(blob.data).toString() : null
    const written = before === null ? [] : writtenDiff(action, before, this.#folder)
    return written.length > 0 ? written : contentOf(action, this.#folder)
  }

  async #said(sessionUpdate: Chunk, id: string, parts: readonly Part[]): Promise<readonly SessionUpdate[]> {
    const updates: SessionUpdate[] = []
    for (const part of parts) {
      const block = await this.#block(part)
      if (block) updates.push(chunk(sessionUpdate, block, id))
    }
    return updates
  }

  async #block(part: Part): Promise<ContentBlock | null> {
    if (part.type === 'text') return part.text === '' ? null : text(part.text)
    if (part.type === 'url') return { type: 'resource_link', uri: part.url, name: part.name ?? part.url }
    if (part.type !== 'blob') return null
    const { media, name = 'a file', bytes } = part
    const blob = media.startsWith('image/') && bytes <= FILE_BYTES_MAX ? await this.#blob(part) : null
    if (blob === null) return text(`[${name}, ${media}, ${bytes} bytes]`)
    return { type: 'image', mimeType: media, data: Buffer.from(blob.data).toString('base64') }
  }

  async #text(ref: BlobRef): Promise<string> {
    const blob = ref.bytes > FILE_BYTES_MAX ? null : await this.#blob(ref)
    return blob === null ? `[${ref.bytes} bytes]` : Buffer.from(blob.data).toString()
  }

  /** Texts and thoughts are apart: a change of the id is a new message to an editor. */
  #reply(call: number, kind: 'text' | 'reasoning'): string {
    return kind === 'text' ? eventId(this.#session, call) : `${eventId(this.#session, call)}.thought`
  }
}

/** What a call looks like, also where a person is asked about it. */
export function shownCall(action: Action, folder: string) {
  return {
    title: titleOf(action),
    name: action.tool,
    kind: kindOf(action.tool),
    content: contentOf(action, folder),
    locations: locationsOf(action, folder),
    rawInput: action.args,
  }
}

type Chunk = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'

export function chunk(sessionUpdate: Chunk, content: ContentBlock, messageId?: string): SessionUpdate {
  return { sessionUpdate, content, ...(messageId === undefined ? {} : { messageId }) }
}

export function text(said: string): ContentBlock {
  return { type: 'text', text: said }
}

/** A child's call by a name that no call of the session has. */
export function callName(session: string, sessionId: string, callId: CallKey): string {
  return sessionId === session ? callId : `${sessionId.slice(session.length)}/${callId}`
}

function statusOf(status: CallStatus): ToolCallStatus {
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

/** The board that a result holds, whole: an editor shows the last one. */
function planIn(metadata: Json | undefined): PlanEntry[] | null {
  const board = isObject(metadata) ? boardIn(metadata['board']) : null
  return (
    board &&
    board.cards.map(({ text: said, status }) => ({ content: said, priority: 'medium', status: STATES[status] }))
  )
}
