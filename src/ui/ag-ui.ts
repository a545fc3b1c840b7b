// AG-UI: what a session tells, as the events that its clients read, and what they send, taken as verbs of a session. The thread is
// the session. An approval ends the client's run with an interrupt, and the next run brings the answer.
import { createHash } from 'node:crypto'
import type { BlobRef, CallKey } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { optionsOf } from '../options.ts'
import { type Input, readInput } from '../sessions/input.ts'
import type { RunStream, Session, Sessions } from '../sessions/verbs.ts'
import type { Pending } from '../view/pending.ts'
import { parsed } from '../view/json.ts'
import { textOf } from '../view/text.ts'
import { type Approval, approvalsIn } from './approval.ts'
import { admitToBranch, branchBefore, type Chatting, findMessage, findRegenerated } from './branches.ts'
import { type MessageInBranch, isReusedId, type Stretch, stretchesOf } from './branches.ts'
import type { End } from './end.ts'
import { continued, followed, isThere, type Items, readAll, repeated } from './follow.ts'
import { answer, bodyOf, cursorOf, type Encoder, type Frame, framed, frameText } from './http.ts'
import { type Fields, type Handler, isFields, refusal, refusing } from './http.ts'
import { type Answered, BYTES_MAX, type Decided, opened, type Place, sent, take } from './person.ts'
import { UI_OPTIONS, type UiOptions } from './person.ts'
import type { Item, Of as PartOf, Told } from './teller.ts'

type Of<T extends Told['type']> = Extract<Told, { type: T }>
type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }
/** The client's own name for its run. */
type RunName = { readonly runId: string }
/** The thread that the client knows, and the session that has it: the thread itself, or a branch of it. */
type Where = { readonly thread: string; readonly session: string }
type Asking = RunName & { readonly place: Place; readonly request: Request; readonly known: Chatting }

const checkOptions = optionsOf<UiOptions>('agUiHandler', UI_OPTIONS)

/**
 * The server side of an AG-UI client such as `HttpAgent`. A message of the user that stands last is sent; one whose id the thread has
 * with another text is an edit, and goes on in a branch. `resume` answers approvals: `{ approved: true }` as payload, and with
 * `editedArgs` the call is made with these arguments. `forwardedProps.regenerate` names a message that gets another answer. A run that
 * brings none of these is told the messages and what goes on; with `forwardedProps.after` only what comes after that position.
 */
export function agUiHandler(sessions: Sessions, options: UiOptions): Handler {
  checkOptions(options)
  const place = { sessions, options }
  return refusing(async (request) => {
    if (request.method !== 'POST') return refusal(405, 'not_found', 'Use POST.')
    const body = await bodyOf(request, options.bytesMax ?? BYTES_MAX)
    return admitToBranch(place, request, body['threadId'], async (known) => {
      const runId = body['runId']
      if (typeof runId !== 'string' || runId === '') throw new Fault('invalid_input', 'The run must have a runId.')
      const messages = (Array.isArray(body['messages']) ? (body['messages'] as readonly unknown[]) : []).filter(
        isFields,
      )
      return answerRun({ place, request, known, runId }, body, messages)
    })
  })
}

async function answerRun(asking: Asking, body: Fields, messages: readonly Fields[]): Promise<Response> {
  const { place, request, known } = asking
  const last = messages.at(-1)
  const cursor = afterIn(body, request)
  const again = regeneratedIn(body)
  const resume = Array.isArray(body['resume']) ? (body['resume'] as readonly unknown[]).filter(isFields) : []
  if (resume.length > 0 && !(await leavesBranch(asking, resume, again, last))) return goOn(asking, cursor, { resume })
  if (again !== null && cursor === null) return regenerate(asking, again, last)
  if (last?.['role'] === 'tool') return goOn(asking, cursor, { messages })
  if (cursor !== null) return connect(asking, cursor)
  if (last?.['role'] === 'user') return answerMessage(asking, last)
  await opened(place, request, known)
  return connect(asking, null)
}

/**
 * Whether the run goes on in another branch than the one that asked. The client must name every open question in its next run, so one
 * that edits or regenerates cancels them; they are not answered, because their branch is stopped.
 */
async function leavesBranch(
  { place, known }: Asking,
  resume: readonly Fields[],
  again: string | null,
  last: Fields | undefined,
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

/** The events of a stream. Open the stream with `deltas: true` to have texts as they come. */
export async function agUiResponse(session: Session, stream: RunStream, run: RunName): Promise<Response> {
  return answerItems({ thread: session.id, session: session.id }, run, await followed(session, stream))
}

function answerItems(where: Where, { runId }: RunName, items: Items, before: readonly AgUiEvent[] = []): Response {
  return answer(items, new AgUiEncoder(where, runId, before))
}

function whereOf({ chat, session }: Pick<Chatting, 'chat' | 'session'>): Where {
  return { thread: chat.id, session: session.id }
}

function afterIn({ forwardedProps }: Fields, request: Request): unknown {
  const given = isFields(forwardedProps) ? forwardedProps['after'] : undefined
  return given ?? cursorOf(request)
}

function regeneratedIn({ forwardedProps }: Fields): string | null {
  const given = isFields(forwardedProps) ? (forwardedProps['regenerate'] ?? null) : null
  if (given === null || (typeof given === 'string' && given !== '')) return given
  throw new Fault('invalid_input', 'forwardedProps.regenerate must be the id of a message of this thread.')
}

/** What goes on, after what the client has: its position, or all messages as they are now. */
async function connect({ place, known, runId }: Asking, cursor: unknown): Promise<Response> {
  const { session } = known
  const where = whereOf(known)
  if (cursor !== null) return answerItems(where, { runId }, await continued(session, cursor))
  const { messages, position } = await readMessages(where.thread, await stretchesOf(place.sessions, session))
  return answerItems(where, { runId }, await continued(session, position), [snapshotOf(messages)])
}

function snapshotOf(messages: readonly Kept[]): AgUiEvent {
  return { type: 'MESSAGES_SNAPSHOT', messages }
}

/** All messages of a branch, and the position behind them. */
async function readMessages(
  thread: string,
  stretches: readonly Stretch[],
): Promise<{ readonly messages: readonly Kept[]; readonly position: string }> {
  const messages: Kept[] = []
  let position = ''
  for (const { session, upTo } of stretches) {
    const builder = new MessageBuilder({ thread, session: session.id }, messages)
    ;({ position } = await readAll(session, (item) => builder.take(item), upTo))
  }
  return { messages, position }
}

/**
 * Sends the message. One that the thread has is not sent twice: its answer is told again. With another text it is an edit, and goes on
 * in a branch that begins before it.
 */
async function answerMessage(asking: Asking, last: Fields): Promise<Response> {
  const { place, request, known } = asking
  const { chat, session: newest } = known
  const message = { input: inputOf(last), id: last['id'] }
  // A branch does not know the ids of the logs that it comes from. Without branches the session itself tells an id that it has.
  const older = newest.id === chat.id ? null : await findMessage(place.sessions, newest, message.id)
  const holder = older?.session ?? newest
  try {
    const stream = await sent(place, request, { ...known, session: holder }, message)
    return answerItems(whereOf({ chat, session: holder }), asking, await followed(holder, stream))
  } catch (error) {
    if (!isReusedId(error)) throw error
    const found = older ?? (await findMessage(place.sessions, newest, message.id))
    if (found === null) throw error
    // A client has only the text of a message, and perhaps not the person who sent it.
    if (textOf(found.parts) === textOf(readInput(message.input).parts))
      return answerItems(whereOf({ chat, session: found.session }), asking, await repeated(found.session, found.seq))
    return answerInBranch(asking, await branchBefore(place.sessions, known, found), message)
  }
}

/** Another answer to a message of the user: the one that is named, or the one that the named answer belongs to. */
async function regenerate(asking: Asking, target: string, last: Fields | undefined): Promise<Response> {
  const { place, known, runId } = asking
  const { sessions } = place
  const run = createHash('sha256').update(runId).digest('hex')
  const before = await findRegenerated(sessions, known.session, run)
  const { id, ...found } = before ?? (await findAsked(asking, target, last))
  const branch = before ? known.session : await branchBefore(sessions, known, found, { run, message: id })
  const said = last?.['role'] === 'user' && last['id'] === id ? inputOf(last) : null
  const isEdit = said !== null && textOf(readInput(said).parts) !== textOf(found.parts)
  return answerInBranch(asking, branch, { input: isEdit ? said : (found.parts as Input), id })
}

async function findAsked(
  { place, known }: Asking,
  target: string,
  last: Fields | undefined,
): Promise<MessageInBranch & { readonly id: string }> {
  const there = await isThere(known.session)
  const stretches = there ? await stretchesOf(place.sessions, known.session) : []
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

/** The client is told which messages the branch has before the answer comes: it may still have others. */
async function answerInBranch(
  asking: Asking,
  session: Session,
  message: { readonly input: Input; readonly id: unknown },
): Promise<Response> {
  const { place, request, known } = asking
  const where = whereOf({ ...known, session })
  const { messages } = await readMessages(where.thread, await stretchesOf(place.sessions, session))
  const at = messages.findIndex(({ id }) => id === message.id)
  const own: Kept = { id: String(message.id), role: 'user', content: textOf(readInput(message.input).parts) }
  const snapshot = snapshotOf([...messages.slice(0, at < 0 ? undefined : at), own])
  const stream = await sent(place, request, { ...known, session }, message)
  return answerItems(where, asking, await followed(session, stream), [snapshot])
}

/** The client answers what was asked. */
async function goOn(
  { known, runId }: Asking,
  cursor: unknown,
  { resume = [], messages = [] }: { readonly resume?: readonly Fields[]; readonly messages?: readonly Fields[] },
): Promise<Response> {
  const where = whereOf(known)
  const asked = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
  const answers = asked.flatMap((message) => answerIn(where, message))
  const after = await take(known, cursor, resume.map(decisionIn), answers)
  return answerItems(where, { runId }, await continued(known.session, after))
}

/** One that was abandoned is a no. */
function decisionIn({ interruptId, status, payload }: Fields): Decided {
  const said = isFields(payload) ? payload : { approved: payload }
  if (status === 'cancelled') return { id: interruptId, allow: false, why: said['reason'] }
  return { id: interruptId, allow: said['approved'], why: said['reason'], args: said['editedArgs'] }
}

function decidedValue(where: Where, { id, allow, args, editedBy }: Of<'decided'>): object {
  return { toolCallId: callIdIn(where, id), allow, ...(editedBy === undefined ? {} : { editedArgs: args, editedBy }) }
}

function answerIn(where: Where, { toolCallId, content, error }: Fields): readonly Answered[] {
  if (typeof toolCallId !== 'string' || typeof content !== 'string') return []
  return [{ callId: callKeyIn(where, toolCallId), content, ok: error === undefined }]
}

/** Each log counts its calls by itself, so a call of a branch has the branch in its id: a client looks calls up in the whole thread. */
function callIdIn({ thread, session }: Where, call: CallKey): string {
  return session === thread ? call : `${session}:${call}`
}

/** The call that a client names. One of another branch becomes a key that no session has. */
function callKeyIn({ thread, session }: Where, id: string): CallKey {
  if (session === thread) return id
  return id.startsWith(`${session}:`) ? id.slice(session.length + 1) : `${thread}:${id}`
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
  readonly #where: Where
  readonly #before: readonly AgUiEvent[]
  /** Null while no run of the client is open. */
  #run: string | null
  #output: unknown
  readonly #open = new Map<string, Of<'piece'>['kind']>()

  constructor(where: Where, run: string, before: readonly AgUiEvent[]) {
    this.#where = where
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
        return [{ type: 'CUSTOM', name: 'terret.decided', value: decidedValue(this.#where, item) }]
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

  #piece(item: Of<'piece'>): readonly AgUiEvent[] {
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

  #input({ id, tool, text: delta, of, resumed, ends }: Of<'input'>): readonly AgUiEvent[] {
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

  #call({ id, tool, args, of, written }: Of<'call'>): readonly AgUiEvent[] {
    const toolCallId = callIdIn(this.#where, id)
    const parentMessageId = replyId(this.#where, of)
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
    const outcome = status === 'interrupted' ? { type: 'cancelled' } : outcomeOf(pending, this.#where)
    const result = this.#output === undefined ? {} : { result: this.#output }
    return [...open, { type: 'RUN_FINISHED', threadId: this.#where.thread, runId, outcome, ...result }]
  }
}

function approvalIn(where: Where, approval: Approval): Approval {
  return { ...approval, toolCallId: callIdIn(where, approval.toolCallId) }
}

function outcomeOf(pending: readonly Pending[], where: Where): object {
  const interrupts = approvalsIn(pending, where.session).map((asked) => {
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

/** The calls of a reply belong to its first text. */
function replyId({ session }: Where, call: number): string {
  return `${session}:${call}`
}

function messageId(where: Where, { kind, call, n }: PartOf): string {
  return kind === 'text' && n === 0 ? replyId(where, call) : `${replyId(where, call)}:${kind}:${n}`
}

function toolMessage(where: Where, { id, status, content }: Of<'result'>) {
  const text = contentText(content)
  const said = status === 'ok' || text !== '' ? text : `The call ended as ${status}.`
  return { messageId: `${where.session}:${id}`, toolCallId: callIdIn(where, id), content: said, role: 'tool' }
}

function contentText(content: string | BlobRef): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

type Kept = { readonly id: string; readonly role: string; content?: string; toolCalls?: object[]; toolCallId?: string }

/** The same items, put together as messages of AG-UI. */
class MessageBuilder {
  readonly messages: Kept[]
  readonly #where: Where

  constructor(where: Where, messages: Kept[]) {
    this.#where = where
    this.messages = messages
  }

  take({ told: item }: Item): void {
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

  #at(id: string, role: string): Kept {
    const known = this.messages.find((message) => message.id === id)
    if (known) return known
    const message = { id, role }
    this.messages.push(message)
    return message
  }
}
