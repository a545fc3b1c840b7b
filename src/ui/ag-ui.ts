// The AG-UI protocol: a session's items as events for its clients, and their requests as operations on the session. The
// thread is the session. An approval ends the client's run with an interrupt, and the next run carries the answer.
import { createHash } from 'node:crypto'
import type { BlobRef, CallKey } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { optionsChecker } from '../options.ts'
import { type Input, readInput } from '../sessions/input.ts'
import type { RunStream, Session, Sessions } from '../sessions/verbs.ts'
import type { Pending } from '../view/pending-calls.ts'
import { parseJson } from '../view/untrusted-json.ts'
import { textOf } from '../view/shown-text.ts'
import { type PageApproval, pageApprovalsIn } from './page-approval.ts'
import { admitToBranch, createBranchBefore, type AdmittedChat, findMessage, findRegenerated } from './chat-branches.ts'
import { type MessageInBranch, isReusedId, type BranchLog, readBranchLogs } from './chat-branches.ts'
import type { PageEnd } from './page-end.ts'
import { continueFrom, followItems, sessionExists, type ItemStream, readAllItems, repeatFrom } from './follow-items.ts'
import {
  streamAnswer,
  readJsonObject,
  readCursor,
  type ItemEncoder,
  type SseFrame,
  framesWithPosition,
  frameText,
} from './ui-http.ts'
import { type JsonFields, type Handler, isJsonFields, refusalResponse, answerFaults } from './ui-http.ts'
import {
  type PageAnswer,
  REQUEST_BYTES_MAX,
  type PageDecision,
  openIfMissing,
  type UiContext,
  sendFromPage,
  takeAnswers,
} from './person.ts'
import { UI_OPTIONS, type UiOptions } from './person.ts'
import type { PositionedItem, SpokenPart as PartOf, UiItem } from './item-builder.ts'

type ItemOf<T extends UiItem['type']> = Extract<UiItem, { type: T }>
type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }
/** The client's own id of its run. */
type RunName = { readonly runId: string }
/** The thread that the client knows, and the session behind it: the thread itself or one of its branches. */
type ThreadBranch = { readonly thread: string; readonly session: string }
type RunRequest = RunName & { readonly place: UiContext; readonly request: Request; readonly known: AdmittedChat }

const checkOptions = optionsChecker<UiOptions>('agUiHandler', UI_OPTIONS)

/**
 * The server side of an AG-UI client such as `HttpAgent`. A last message of the user is sent; if the thread has its id
 * with another text, it is an edit and continues in a branch. `resume` answers approvals: `{ approved: true }` as
 * payload, and with `editedArgs` the call runs with those arguments. `forwardedProps.regenerate` names a message to
 * answer again. A run with none of these receives the messages and follows the session; with `forwardedProps.after`
 * only what comes after that position.
 */
export function agUiHandler(sessions: Sessions, options: UiOptions): Handler {
  checkOptions(options)
  const place = { sessions, options }
  return answerFaults(async (request) => {
    if (request.method !== 'POST') return refusalResponse(405, 'not_found', 'Use POST.')
    const body = await readJsonObject(request, options.bytesMax ?? REQUEST_BYTES_MAX)
    return admitToBranch(place, request, body['threadId'], async (known) => {
      const runId = body['runId']
      if (typeof runId !== 'string' || runId === '') throw new Fault('invalid_input', 'The run must have a runId.')
      const messages = (Array.isArray(body['messages']) ? (body['messages'] as readonly unknown[]) : []).filter(
        isJsonFields,
      )
      return answerRun({ place, request, known, runId }, body, messages)
    })
  })
}

async function answerRun(asking: RunRequest, body: JsonFields, messages: readonly JsonFields[]): Promise<Response> {
  const { place, request, known } = asking
  const last = messages.at(-1)
  const cursor = cursorIn(body, request)
  const again = regeneratedIn(body)
  const resume = Array.isArray(body['resume']) ? (body['resume'] as readonly unknown[]).filter(isJsonFields) : []
  if (resume.length > 0 && !(await leavesBranch(asking, resume, again, last)))
    return continueWithAnswers(asking, cursor, { resume })
  if (again !== null && cursor === null) return regenerateAnswer(asking, again, last)
  if (last?.['role'] === 'tool') return continueWithAnswers(asking, cursor, { messages })
  if (cursor !== null) return connectToThread(asking, cursor)
  if (last?.['role'] === 'user') return answerMessage(asking, last)
  await openIfMissing(place, request, known)
  return connectToThread(asking, null)
}

/**
 * Whether the run continues in another branch than the one that asked. The client must name every open question in its
 * next run, so a run that edits or regenerates cancels them. They stay unanswered, because their branch is stopped.
 */
async function leavesBranch(
  { place, known }: RunRequest,
  resume: readonly JsonFields[],
  again: string | null,
  last: JsonFields | undefined,
): Promise<boolean> {
  const isCancelled = resume.every(({ status }) => status === 'cancelled')
  if (again !== null && !isCancelled)
    throw new Fault(
      'invalid_input',
      'A run with regenerate answers no question. Answer in a run of its own, or cancel.',
    )
  if (again !== null || !isCancelled || last?.['role'] !== 'user') return again !== null
  const found = await findMessage(place.sessions, known.session, last['id'])
  return found !== null && textOf(found.parts) !== textOf(readInput(inputOf(last)).parts)
}

/** The stream as AG-UI events. Open it with `deltas: true` to receive texts as they are written. */
export async function agUiResponse(session: Session, stream: RunStream, run: RunName): Promise<Response> {
  return answerWithItems({ thread: session.id, session: session.id }, run, await followItems(session, stream))
}

function answerWithItems(
  where: ThreadBranch,
  { runId }: RunName,
  items: ItemStream,
  before: readonly AgUiEvent[] = [],
): Response {
  return streamAnswer(items, new AgUiEncoder(where, runId, before))
}

function threadBranchOf({ chat, session }: Pick<AdmittedChat, 'chat' | 'session'>): ThreadBranch {
  return { thread: chat.id, session: session.id }
}

function cursorIn({ forwardedProps }: JsonFields, request: Request): unknown {
  const given = isJsonFields(forwardedProps) ? forwardedProps['after'] : undefined
  return given ?? readCursor(request)
}

function regeneratedIn({ forwardedProps }: JsonFields): string | null {
  const given = isJsonFields(forwardedProps) ? (forwardedProps['regenerate'] ?? null) : null
  if (given === null || (typeof given === 'string' && given !== '')) return given
  throw new Fault('invalid_input', 'forwardedProps.regenerate must be the id of a message of this thread.')
}

/** Follows the session from the client's position, or from a snapshot of all messages. */
async function connectToThread({ place, known, runId }: RunRequest, cursor: unknown): Promise<Response> {
  const { session } = known
  const where = threadBranchOf(known)
  if (cursor !== null) return answerWithItems(where, { runId }, await continueFrom(session, cursor))
  const { messages, position } = await readMessages(where.thread, await readBranchLogs(place.sessions, session))
  return answerWithItems(where, { runId }, await continueFrom(session, position), [snapshotOf(messages)])
}

function snapshotOf(messages: readonly AgUiMessage[]): AgUiEvent {
  return { type: 'MESSAGES_SNAPSHOT', messages }
}

/** All messages of a branch, and the position after them. */
async function readMessages(
  thread: string,
  stretches: readonly BranchLog[],
): Promise<{ readonly messages: readonly AgUiMessage[]; readonly position: string }> {
  const messages: AgUiMessage[] = []
  let position = ''
  for (const { session, upTo } of stretches) {
    const builder = new AgUiMessageBuilder({ thread, session: session.id }, messages)
    ;({ position } = await readAllItems(session, (item) => builder.take(item), upTo))
  }
  return { messages, position }
}

/**
 * Sends the message. If the thread already has it, its answer is repeated instead. If the thread has its id with
 * another text, it is an edit and continues in a branch that begins before it.
 */
async function answerMessage(asking: RunRequest, last: JsonFields): Promise<Response> {
  const { place, request, known } = asking
  const { chat, session: newest } = known
  const message = { input: inputOf(last), id: last['id'] }
  // A branch does not know the message ids of the logs it comes from. Without branches the session itself reports a
  // reused id.
  const older = newest.id === chat.id ? null : await findMessage(place.sessions, newest, message.id)
  const holder = older?.session ?? newest
  try {
    const stream = await sendFromPage(place, request, { ...known, session: holder }, message)
    return answerWithItems(threadBranchOf({ chat, session: holder }), asking, await followItems(holder, stream))
  } catch (error) {
    if (!isReusedId(error)) throw error
    const found = older ?? (await findMessage(place.sessions, newest, message.id))
    if (found === null) throw error
    // A client has only the text of a message, and perhaps not its sender.
    if (textOf(found.parts) === textOf(readInput(message.input).parts))
      return answerWithItems(
        threadBranchOf({ chat, session: found.session }),
        asking,
        await repeatFrom(found.session, found.seq),
      )
    return answerInBranch(asking, await createBranchBefore(place.sessions, known, found), message)
  }
}

/** Answers a message of the user again: the named message, or the one that the named answer belongs to. */
async function regenerateAnswer(asking: RunRequest, target: string, last: JsonFields | undefined): Promise<Response> {
  const { place, known, runId } = asking
  const { sessions } = place
  const run = createHash('sha256').update(runId).digest('hex')
  const before = await findRegenerated(sessions, known.session, run)
  const { id, ...found } = before ?? (await findMessageToRegenerate(asking, target, last))
  const branch = before ? known.session : await createBranchBefore(sessions, known, found, { run, message: id })
  const said = last?.['role'] === 'user' && last['id'] === id ? inputOf(last) : null
  const isEdit = said !== null && textOf(readInput(said).parts) !== textOf(found.parts)
  return answerInBranch(asking, branch, { input: isEdit ? said : (found.parts as Input), id })
}

async function findMessageToRegenerate(
  { place, known }: RunRequest,
  target: string,
  last: JsonFields | undefined,
): Promise<MessageInBranch & { readonly id: string }> {
  const there = await sessionExists(known.session)
  const stretches = there ? await readBranchLogs(place.sessions, known.session) : []
  const { messages } = await readMessages(known.chat.id, stretches)
  const at = messages.findIndex(({ id }) => id === target)
  const id = messages.slice(0, at + 1).findLast(({ role }) => role === 'user')?.id
  const found = id === undefined ? null : await findMessage(place.sessions, known.session, id)
  if (id === undefined || found === null)
    throw new Fault('invalid_input', `This thread does not have the message to answer again. ${RELOAD}`)
  if (last?.['role'] === 'user' && !messages.some((message) => message.id === last['id']))
    throw new Fault('invalid_input', 'A new message is not answered with regenerate. Send it in a run of its own.')
  return { ...found, id }
}

const RELOAD = 'Load its messages with a run that brings no message.'

/** The client gets the branch's messages before the answer: it may still show others. */
async function answerInBranch(
  asking: RunRequest,
  session: Session,
  message: { readonly input: Input; readonly id: unknown },
): Promise<Response> {
  const { place, request, known } = asking
  const where = threadBranchOf({ ...known, session })
  const { messages } = await readMessages(where.thread, await readBranchLogs(place.sessions, session))
  const at = messages.findIndex(({ id }) => id === message.id)
  const own: AgUiMessage = { id: String(message.id), role: 'user', content: textOf(readInput(message.input).parts) }
  const snapshot = snapshotOf([...messages.slice(0, at < 0 ? undefined : at), own])
  const stream = await sendFromPage(place, request, { ...known, session }, message)
  return answerWithItems(where, asking, await followItems(session, stream), [snapshot])
}

/** Continues after the client answered questions. */
async function continueWithAnswers(
  { known, runId }: RunRequest,
  cursor: unknown,
  {
    resume = [],
    messages = [],
  }: { readonly resume?: readonly JsonFields[]; readonly messages?: readonly JsonFields[] },
): Promise<Response> {
  const where = threadBranchOf(known)
  const asked = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
  const answers = asked.flatMap((message) => answerIn(where, message))
  const after = await takeAnswers(known, cursor, resume.map(decisionIn), answers)
  return answerWithItems(where, { runId }, await continueFrom(known.session, after))
}

/** An abandoned question counts as denied. */
function decisionIn({ interruptId, status, payload }: JsonFields): PageDecision {
  const said = isJsonFields(payload) ? payload : { approved: payload }
  if (status === 'cancelled') return { id: interruptId, allow: false, why: said['reason'] }
  return { id: interruptId, allow: said['approved'], why: said['reason'], args: said['editedArgs'] }
}

function decisionValue(where: ThreadBranch, { id, allow, args, editedBy }: ItemOf<'decided'>): object {
  return { toolCallId: callIdIn(where, id), allow, ...(editedBy === undefined ? {} : { editedArgs: args, editedBy }) }
}

function answerIn(where: ThreadBranch, { toolCallId, content, error }: JsonFields): readonly PageAnswer[] {
  if (typeof toolCallId !== 'string' || typeof content !== 'string') return []
  return [{ callId: callKeyIn(where, toolCallId), content, ok: error === undefined }]
}

/**
 * Each log numbers its own calls, so the id of a call in a branch includes the branch: clients look calls up in the
 * whole thread.
 */
function callIdIn({ thread, session }: ThreadBranch, call: CallKey): string {
  return session === thread ? call : `${session}:${call}`
}

/** The key of the call that a client names. A call of another branch becomes a key that no session has. */
function callKeyIn({ thread, session }: ThreadBranch, id: string): CallKey {
  if (session === thread) return id
  return id.startsWith(`${session}:`) ? id.slice(session.length + 1) : `${thread}:${id}`
}

function inputOf({ content }: JsonFields): Input {
  if (typeof content === 'string') return content
  const parts = (Array.isArray(content) ? (content as readonly unknown[]) : []).filter(isJsonFields)
  const texts = parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
  if (texts.length === 0 || texts.length < parts.length)
    throw new Fault('invalid_input', 'A message here is a text. Send files with the session itself.')
  return texts.map((text) => ({ type: 'text', text }))
}

class AgUiEncoder implements ItemEncoder {
  readonly headers = {}
  readonly #where: ThreadBranch
  readonly #before: readonly AgUiEvent[]
  /** Null while no run of the client is open. */
  #run: string | null
  #output: unknown
  readonly #open = new Map<string, ItemOf<'piece'>['kind']>()

  constructor(where: ThreadBranch, run: string, before: readonly AgUiEvent[]) {
    this.#where = where
    this.#run = run
    this.#before = before
  }

  begin(): readonly SseFrame[] {
    return [this.#started(this.#run ?? ''), ...this.#before].map((data) => ({ data }))
  }

  tell({ told: item, position }: PositionedItem): readonly SseFrame[] {
    const events = this.#events(item)
    const last = events.at(-1)
    const placed = last ? [...events.slice(0, -1), { ...last, metadata: { position } }] : []
    return framesWithPosition(placed, position)
  }

  /** Ends the client's run, even if there were no items. */
  last(): string {
    const end = this.#end({ status: 'completed', finish: 'stop' })
    return end.map((data) => frameText({ data })).join('')
  }

  fail(code: string, message: string): readonly SseFrame[] {
    this.#run = null
    return [{ data: { type: 'RUN_ERROR', code, message } }]
  }

  #events(item: UiItem): readonly AgUiEvent[] {
    switch (item.type) {
      case 'user':
      case 'request':
        return []
      case 'message':
        // Another run of the session continues in the same response.
        if (this.#run !== null) return []
        this.#run = item.id
        return [this.#started(item.id)]
      case 'piece':
        return this.#piece(item)
      case 'spoken':
        return this.#close(messageId(this.#where, item))
      case 'input':
        return this.#input(item)
      case 'abandoned':
        return [{ type: 'TOOL_CALL_END', toolCallId: callIdIn(this.#where, item.id) }]
      case 'call':
        return this.#call(item)
      case 'ask':
        return [{ type: 'CUSTOM', name: 'terret.approval', value: approvalIn(this.#where, item.approval) }]
      case 'decided':
        return [{ type: 'CUSTOM', name: 'terret.decided', value: decisionValue(this.#where, item) }]
      case 'result':
        return [{ type: 'TOOL_CALL_RESULT', ...toolMessage(this.#where, item) }]
      case 'source': {
        const { url, title } = item
        return [{ type: 'CUSTOM', name: 'terret.source', value: { url, ...(title === undefined ? {} : { title }) } }]
      }
      case 'file': {
        const of = item.call === undefined ? {} : { toolCallId: callIdIn(this.#where, item.call) }
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
    return { type: 'RUN_STARTED', threadId: this.#where.thread, runId }
  }

  #piece(item: ItemOf<'piece'>): readonly AgUiEvent[] {
    const id = messageId(this.#where, item)
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
    return ends.flatMap((part) => this.#close(messageId(this.#where, part)))
  }

  #input({ id, tool, text: delta, of, resumed, ends }: ItemOf<'input'>): readonly AgUiEvent[] {
    const toolCallId = callIdIn(this.#where, id)
    const start = {
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: tool,
      parentMessageId: replyId(this.#where, of),
    }
    const args = { type: 'TOOL_CALL_ARGS', toolCallId, delta }
    return [...this.#endThoughts(ends), ...(resumed ? [] : [start]), args]
  }

  #call({ id, tool, args, of, written }: ItemOf<'call'>): readonly AgUiEvent[] {
    const toolCallId = callIdIn(this.#where, id)
    const parentMessageId = replyId(this.#where, of)
    if (written !== undefined) {
      // The protocol cannot take back arguments that were repaired or not fully sent.
      const isSame = written !== null && JSON.stringify(parseJson(written)) === JSON.stringify(args)
      const call = { type: 'CUSTOM', name: 'terret.call', value: { toolCallId, args } }
      return [...(isSame ? [] : [call]), { type: 'TOOL_CALL_END', toolCallId }]
    }
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: tool, parentMessageId },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) },
      { type: 'TOOL_CALL_END', toolCallId },
    ]
  }

  #end({ status, trouble, pending = [] }: PageEnd): readonly AgUiEvent[] {
    const open = [...this.#open.keys()].flatMap((id) => this.#close(id))
    const runId = this.#run
    this.#run = null
    if (runId === null) return open
    if (trouble) return [...open, { type: 'RUN_ERROR', code: trouble.code, message: trouble.message }]
    const outcome = status === 'interrupted' ? { type: 'cancelled' } : outcomeOf(pending, this.#where)
    const result = this.#output === undefined ? {} : { result: this.#output }
    return [...open, { type: 'RUN_FINISHED', threadId: this.#where.thread, runId, outcome, ...result }]
  }
}

function approvalIn(where: ThreadBranch, approval: PageApproval): PageApproval {
  return { ...approval, toolCallId: callIdIn(where, approval.toolCallId) }
}

function outcomeOf(pending: readonly Pending[], where: ThreadBranch): object {
  const interrupts = pageApprovalsIn(pending, where.session).map((asked) => {
    const approval = approvalIn(where, asked)
    const { id, toolCallId, tool, expiresAt } = approval
    const until = typeof expiresAt === 'number' ? { expiresAt: new Date(expiresAt).toISOString() } : {}
    const message = `May ${tool} be called with these arguments?`
    return { id, reason: 'approval', toolCallId, message, responseSchema: RESPONSE, metadata: { approval }, ...until }
  })
  if (interrupts.length > 0) return { type: 'interrupt', interrupts }
  const ids = pending.flatMap(({ needs, callId, sessionId }) =>
    needs === 'answer' && sessionId === where.session ? [callIdIn(where, callId)] : [],
  )
  return { type: 'success', ...(ids.length > 0 ? { pendingToolCallIds: ids } : {}) }
}

const RESPONSE = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, editedArgs: { type: 'object' } },
  required: ['approved'],
}

/** The calls of a reply belong to its first text message. */
function replyId({ session }: ThreadBranch, call: number): string {
  return `${session}:${call}`
}

function messageId(where: ThreadBranch, { kind, call, n }: PartOf): string {
  return kind === 'text' && n === 0 ? replyId(where, call) : `${replyId(where, call)}:${kind}:${n}`
}

function toolMessage(where: ThreadBranch, { id, status, content }: ItemOf<'result'>) {
  const text = toolContentText(content)
  const said = status === 'ok' || text !== '' ? text : `The call ended as ${status}.`
  return { messageId: `${where.session}:${id}`, toolCallId: callIdIn(where, id), content: said, role: 'tool' }
}

function toolContentText(content: string | BlobRef): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

type AgUiMessage = {
  readonly id: string
  readonly role: string
  content?: string
  toolCalls?: object[]
  toolCallId?: string
}

/** Builds AG-UI messages from the same items. */
class AgUiMessageBuilder {
  readonly messages: AgUiMessage[]
  readonly #where: ThreadBranch

  constructor(where: ThreadBranch, messages: AgUiMessage[]) {
    this.#where = where
    this.messages = messages
  }

  take({ told: item }: PositionedItem): void {
    if (item.type === 'user') this.messages.push({ id: item.id, role: 'user', content: textOf(item.parts) })
    else if (item.type === 'piece') {
      const role = item.kind === 'text' ? 'assistant' : 'reasoning'
      const message = this.#at(messageId(this.#where, item), role)
      message.content = (message.content ?? '') + item.text
    } else if (item.type === 'call') {
      const { tool: name, args } = item
      const id = callIdIn(this.#where, item.id)
      const message = this.#at(replyId(this.#where, item.of), 'assistant')
      message.toolCalls ??= []
      message.toolCalls.push({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } })
    } else if (item.type === 'result') {
      const { messageId: id, ...message } = toolMessage(this.#where, item)
      this.messages.push({ id, ...message })
    }
  }

  #at(id: string, role: string): AgUiMessage {
    const known = this.messages.find((message) => message.id === id)
    if (known) return known
    const message = { id, role }
    this.messages.push(message)
    return message
  }
}
