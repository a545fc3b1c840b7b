// AG-UI: what a session tells, as the events that its clients read, and what they send, taken as verbs of a session. The thread is
// the session. An approval ends the client's run with an interrupt, and the next run brings the answer.
import type { BlobRef } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { optionsOf } from '../options.ts'
import type { Input } from '../sessions/input.ts'
import type { RunStream, Session, Sessions } from '../sessions/verbs.ts'
import type { Pending } from '../view/pending.ts'
import { parsed } from '../view/json.ts'
import { textOf } from '../view/text.ts'
import { approvalsIn } from './approval.ts'
import type { End } from './end.ts'
import { continued, followed, type Items, readAll } from './follow.ts'
import { answer, bodyOf, cursorOf, type Encoder, type Frame, framed, frameText } from './http.ts'
import { type Fields, type Handler, isFields, refusal, refusing } from './http.ts'
import { admitted, type Answered, BYTES_MAX, type Decided, type Known, opened, sent, take } from './person.ts'
import { UI_OPTIONS, type UiOptions } from './person.ts'
import type { Item, Of as PartOf, Told } from './teller.ts'

type Of<T extends Told['type']> = Extract<Told, { type: T }>
type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }
/** The client's own name for its run. */
type RunName = { readonly runId: string }

const checkOptions = optionsOf<UiOptions>('agUiHandler', UI_OPTIONS)

/**
 * The server side of an AG-UI client such as `HttpAgent`. A message of the user that stands last is sent. `resume` answers
 * approvals: `{ approved: true }` as payload, and with `editedArgs` the call is made with these arguments. A run that brings neither is told the messages and what goes on; with
 * `forwardedProps.after` only what comes after that position.
 */
export function agUiHandler(sessions: Sessions, options: UiOptions): Handler {
  checkOptions(options)
  const place = { sessions, options }
  return refusing(async (request) => {
    if (request.method !== 'POST') return refusal(405, 'not_found', 'Use POST.')
    const body = await bodyOf(request, options.bytesMax ?? BYTES_MAX)
    return admitted(place, request, body['threadId'], async (known) => {
      const runId = body['runId']
      if (typeof runId !== 'string' || runId === '') throw new Fault('invalid_input', 'The run must have a runId.')
      const messages = (Array.isArray(body['messages']) ? (body['messages'] as readonly unknown[]) : []).filter(
        isFields,
      )
      const last = messages.at(-1)
      const cursor = afterIn(body, request)
      if (Array.isArray(body['resume']) && body['resume'].length > 0)
        return goOn(known, { runId }, cursor, { resume: body['resume'] as readonly unknown[] })
      if (last?.['role'] === 'tool') return goOn(known, { runId }, cursor, { messages })
      if (cursor !== null) return connect(known.session, { runId }, cursor)
      if (last?.['role'] !== 'user') {
        await opened(place, request, known)
        return connect(known.session, { runId }, null)
      }
      const stream = await sent(place, request, known, { input: inputOf(last), id: last['id'] })
      return agUiResponse(known.session, stream, { runId })
    })
  })
}

/** The events of a stream. Open the stream with `deltas: true` to have texts as they come. */
export async function agUiResponse(session: Session, stream: RunStream, run: RunName): Promise<Response> {
  return told(session, run, await followed(session, stream))
}

function told(session: Session, run: RunName, items: Items, before: readonly AgUiEvent[] = []): Response {
  return answer(items, new AgUiEncoder(session.id, run.runId, before))
}

function afterIn({ forwardedProps }: Fields, request: Request): unknown {
  const given = isFields(forwardedProps) ? forwardedProps['after'] : undefined
  return given ?? cursorOf(request)
}

/** What goes on, after what the client has: its position, or all messages as they are now. */
async function connect(session: Session, run: RunName, cursor: unknown): Promise<Response> {
  if (cursor !== null) return told(session, run, await continued(session, cursor))
  const builder = new MessageBuilder(session.id)
  const { position } = await readAll(session, (item) => builder.take(item))
  const snapshot = { type: 'MESSAGES_SNAPSHOT', messages: builder.messages }
  return told(session, run, await continued(session, position), [snapshot])
}

/** The client answers what was asked. */
async function goOn(
  known: Known,
  run: RunName,
  cursor: unknown,
  { resume = [], messages = [] }: { readonly resume?: readonly unknown[]; readonly messages?: readonly Fields[] },
): Promise<Response> {
  const asked = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
  const after = await take(known, cursor, resume.filter(isFields).map(decisionIn), asked.flatMap(answerIn))
  return told(known.session, run, await continued(known.session, after))
}

/** One that was abandoned is a no. */
function decisionIn({ interruptId, status, payload }: Fields): Decided {
  const said = isFields(payload) ? payload : { approved: payload }
  if (status === 'cancelled') return { id: interruptId, allow: false, why: said['reason'] }
  return { id: interruptId, allow: said['approved'], why: said['reason'], args: said['editedArgs'] }
}

function decidedValue({ id: toolCallId, allow, args, editedBy }: Of<'decided'>): object {
  return { toolCallId, allow, ...(editedBy === undefined ? {} : { editedArgs: args, editedBy }) }
}

function answerIn({ toolCallId, content, error }: Fields): readonly Answered[] {
  if (typeof toolCallId !== 'string' || typeof content !== 'string') return []
  return [{ callId: toolCallId, content, ok: error === undefined }]
}

function inputOf({ content }: Fields): Input {
  if (typeof content === 'string') return content
  const parts = (Array.isArray(content) ? (content as readonly unknown[]) : []).filter(isFields)
  const texts = parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
  if (texts.length === 0 || texts.length < parts.length)
    throw new Fault('invalid_input', 'A message here is a text. Send files with the session itself.')
  return texts.map((text) => ({ type: 'text', text }))
}

class AgUiEncoder implements Encoder {
  readonly headers = {}
  readonly #thread: string
  readonly #before: readonly AgUiEvent[]
  /** Null while no run of the client is open. */
  #run: string | null
  #output: unknown
  readonly #open = new Map<string, Of<'piece'>['kind']>()

  constructor(thread: string, run: string, before: readonly AgUiEvent[]) {
    this.#thread = thread
    this.#run = run
    this.#before = before
  }

  begin(): readonly Frame[] {
    return [this.#started(this.#run ?? ''), ...this.#before].map((data) => ({ data }))
  }

  tell({ told: item, position }: Item): readonly Frame[] {
    const events = this.#events(item)
    const last = events.at(-1)
    const placed = last ? [...events.slice(0, -1), { ...last, metadata: { position } }] : []
    return framed(placed, position)
  }

  /** A run of the client ends, also when there was nothing to tell. */
  last(): string {
    const end = this.#end({ status: 'completed', finish: 'stop' })
    return end.map((data) => frameText({ data })).join('')
  }

  fail(code: string, message: string): readonly Frame[] {
    this.#run = null
    return [{ data: { type: 'RUN_ERROR', code, message } }]
  }

  #events(item: Told): readonly AgUiEvent[] {
    switch (item.type) {
      case 'user':
      case 'request':
        return []
      case 'message':
        // Another run of the session goes on in the same answer.
        if (this.#run !== null) return []
        this.#run = item.id
        return [this.#started(item.id)]
      case 'piece':
        return this.#piece(item)
      case 'spoken':
        return this.#close(messageId(this.#thread, item))
      case 'input':
        return this.#input(item)
      case 'abandoned':
        return [{ type: 'TOOL_CALL_END', toolCallId: item.id }]
      case 'call':
        return this.#call(item)
      case 'ask':
        return [{ type: 'CUSTOM', name: 'terret.approval', value: item.approval }]
      case 'decided':
        return [{ type: 'CUSTOM', name: 'terret.decided', value: decidedValue(item) }]
      case 'result':
        return [{ type: 'TOOL_CALL_RESULT', ...toolMessage(this.#thread, item) }]
      case 'source': {
        const { url, title } = item
        return [{ type: 'CUSTOM', name: 'terret.source', value: { url, ...(title === undefined ? {} : { title }) } }]
      }
      case 'file': {
        const of = item.call === undefined ? {} : { toolCallId: item.call }
        return [{ type: 'CUSTOM', name: 'terret.file', value: { ...item.file, ...of } }]
      }
      case 'draft':
        return [{ type: 'CUSTOM', name: 'terret.draft', value: item.value }]
      case 'output':
        this.#output = item.value
        return [{ type: 'CUSTOM', name: 'terret.output', value: item.value }]
      case 'retry':
        return [{ type: 'CUSTOM', name: 'terret.retry', value: { message: item.message, at: item.at } }]
      case 'end':
        return this.#end(item.end)
    }
  }

  #started(runId: string): AgUiEvent {
    return { type: 'RUN_STARTED', threadId: this.#thread, runId }
  }

  #piece(item: Of<'piece'>): readonly AgUiEvent[] {
    const id = messageId(this.#thread, item)
    const begun = this.#open.has(id)
    this.#open.set(id, item.kind)
    const prefix = item.kind === 'text' ? 'TEXT_MESSAGE' : 'REASONING_MESSAGE'
    const content = { type: `${prefix}_CONTENT`, messageId: id, delta: item.text }
    const before = this.#endThoughts(item.ends)
    if (begun) return [...before, content]
    if (item.kind === 'text')
      return [...before, { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }, content]
    const start = { type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' }
    return [...before, { type: 'REASONING_START', messageId: id }, start, content]
  }

  #close(id: string): readonly AgUiEvent[] {
    const kind = this.#open.get(id)
    this.#open.delete(id)
    if (kind === undefined) return []
    if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId: id }]
    return [
      { type: 'REASONING_MESSAGE_END', messageId: id },
      { type: 'REASONING_END', messageId: id },
    ]
  }

  #endThoughts(ends: readonly PartOf[]): readonly AgUiEvent[] {
    return ends.flatMap((part) => this.#close(messageId(this.#thread, part)))
  }

  #input({ id: toolCallId, tool, text: delta, of, resumed, ends }: Of<'input'>): readonly AgUiEvent[] {
    const start = {
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: tool,
      parentMessageId: replyId(this.#thread, of),
    }
    const args = { type: 'TOOL_CALL_ARGS', toolCallId, delta }
    return [...this.#endThoughts(ends), ...(resumed ? [] : [start]), args]
  }

  #call({ id: toolCallId, tool, args, of, written }: Of<'call'>): readonly AgUiEvent[] {
    const parentMessageId = replyId(this.#thread, of)
    if (written !== undefined) {
      // Arguments that were repaired, or not told to their end, cannot be taken back in this protocol.
      const isSame = written !== null && JSON.stringify(parsed(written)) === JSON.stringify(args)
      const call = { type: 'CUSTOM', name: 'terret.call', value: { toolCallId, args } }
      return [...(isSame ? [] : [call]), { type: 'TOOL_CALL_END', toolCallId }]
    }
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: tool, parentMessageId },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  }

  #end({ status, trouble, pending = [] }: End): readonly AgUiEvent[] {
    const open = [...this.#open.keys()].flatMap((id) => this.#close(id))
    const runId = this.#run
    this.#run = null
    if (runId === null) return open
    if (trouble) return [...open, { type: 'RUN_ERROR', code: trouble.code, message: trouble.message }]
    const outcome = status === 'interrupted' ? { type: 'cancelled' } : outcomeOf(pending, this.#thread)
    const result = this.#output === undefined ? {} : { result: this.#output }
    return [...open, { type: 'RUN_FINISHED', threadId: this.#thread, runId, outcome, ...result }]
  }
}

function outcomeOf(pending: readonly Pending[], thread: string): object {
  const interrupts = approvalsIn(pending, thread).map((approval) => {
    const { id, toolCallId, tool, expiresAt } = approval
    const until = typeof expiresAt === 'number' ? { expiresAt: new Date(expiresAt).toISOString() } : {}
    const message = `May ${tool} be called with these arguments?`
    return { id, reason: 'approval', toolCallId, message, responseSchema: RESPONSE, metadata: { approval }, ...until }
  })
  if (interrupts.length > 0) return { type: 'interrupt', interrupts }
  const ids = pending.flatMap(({ needs, callId, sessionId }) =>
    needs === 'answer' && sessionId === thread ? [callId] : [],
  )
  return { type: 'success', ...(ids.length > 0 ? { pendingToolCallIds: ids } : {}) }
}

const RESPONSE = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, editedArgs: { type: 'object' } },
  required: ['approved'],
}

/** The calls of a reply belong to its first text. */
function replyId(thread: string, call: number): string {
  return `${thread}:${call}`
}

function messageId(thread: string, { kind, call, n }: PartOf): string {
  return kind === 'text' && n === 0 ? replyId(thread, call) : `${replyId(thread, call)}:${kind}:${n}`
}

function toolMessage(thread: string, { id, status, content }: Of<'result'>) {
  const text = contentText(content)
  const said = status === 'ok' || text !== '' ? text : `The call ended as ${status}.`
  return { messageId: `${thread}:${id}`, toolCallId: id, content: said, role: 'tool' }
}

function contentText(content: string | BlobRef): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

type Kept = { readonly id: string; readonly role: string; content?: string; toolCalls?: object[]; toolCallId?: string }

/** The same items, put together as messages of AG-UI. */
class MessageBuilder {
  readonly messages: Kept[] = []
  readonly #thread: string

  constructor(thread: string) {
    this.#thread = thread
  }

  take({ told: item }: Item): void {
    if (item.type === 'user') this.messages.push({ id: item.id, role: 'user', content: textOf(item.parts) })
    else if (item.type === 'piece') {
      const role = item.kind === 'text' ? 'assistant' : 'reasoning'
      const message = this.#at(messageId(this.#thread, item), role)
      message.content = (message.content ?? '') + item.text
    } else if (item.type === 'call') {
      const { id, tool: name, args } = item
      const message = this.#at(replyId(this.#thread, item.of), 'assistant')
      message.toolCalls ??= []
      message.toolCalls.push({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } })
    } else if (item.type === 'result') {
      const { messageId: id, ...message } = toolMessage(this.#thread, item)
      this.messages.push({ id, ...message })
    }
  }

  #at(id: string, role: string): Kept {
    const known = this.messages.find((message) => message.id === id)
    if (known) return known
    const message = { id, role }
    this.messages.push(message)
    return message
  }
}
