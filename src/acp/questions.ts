// Asks the pending calls of a session in the editor: approvals, bound to the digest of exactly the shown action, and
// questions of the model. It decides nothing itself: without a person's choice nothing happens.
import { RequestError, type PermissionOption } from '@agentclientprotocol/sdk'
import { Fault } from '../kernel/failure.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session } from '../sessions/verbs.ts'
import { BUDGET } from '../view/pending-calls.ts'
import { clean, oneLine, shownId } from '../view/clean.ts'
import type { SessionHost, EditorIo } from './session-host.ts'
import type { Editor } from './editor.ts'
import { ASK_USER, parseQuestion, questionText, textContent, writtenDiff } from './tool-call.ts'
import { toolCallIdOf, messageChunk, describeCall, textBlock, type UpdateBuilder } from './updates.ts'
import { shellCommand } from '../view/shell-command.ts'

/** `go`: follow the session. `later`: the person answers with the next prompt. `stop`: the editor withdrew the question. */
export type AskOutcome = 'go' | 'later' | 'stop'

type QuestionContext = {
  readonly desk: SessionHost
  readonly editor: Editor
  readonly folder: string
  readonly doors: EditorIo
  readonly updates: UpdateBuilder
  readonly session: Session
  /** The pending calls of this session and of the sessions below it. */
  readonly pending: () => Promise<readonly PendingCall[]>
  /** The session that waits: this one, or one below it. */
  readonly sessionOf: (id: string) => Promise<Session>
  readonly signal: AbortSignal
  /** The calls that this prompt has decided, by call and digest. */
  readonly decided: Set<string>
}

/** The longest that a timer can wait. */
const TIMER_MS_MAX = 2_147_483_647
/** A question with more choices is answered in writing. */
const CHOICES_MAX = 12

export async function askPending(place: QuestionContext): Promise<AskOutcome> {
  const pending = await place.pending()
  if (pending.length === 0) throw waitingError((await place.session.status()).reason ?? 'The session is paused.')
  for (const each of pending) {
    if (place.signal.aborted) return 'go'
    const asked = await askPendingCall(place, each)
    if (asked !== 'go') return asked
  }
  return 'go'
}

function askPendingCall(place: QuestionContext, pending: PendingCall): Promise<AskOutcome> {
  const { callId, needs, tool, sessionId } = pending
  if (callId === BUDGET)
    throw waitingError(
      `The budget is used up${amountText(pending)}. Raise it: ${shellCommand`terret approve ${sessionId} budget --usd DOLLARS`}.`,
    )
  if (needs === 'approval') return askPermission(place, pending)
  if (tool === ASK_USER) return askQuestion(place, pending)
  const way = shellCommand`terret answer ${sessionId} ${callId} TEXT`
  throw waitingError(`Call ${shownId(callId)} of ${oneLine(tool)} waits for an answer from outside: ${way}`)
}

async function askPermission(place: QuestionContext, pending: PendingCall): Promise<AskOutcome> {
  const { desk, editor, session, decided } = place
  const { callId, sessionId, digest, n = 1, votes = [] } = pending
  const key = `${sessionId} ${callId} ${digest ?? ''}`
  const way = shellCommand`terret approve ${sessionId} ${callId}`
  if (digest === undefined) throw waitingError(`Call ${callId} cannot be decided here. Decide it with: ${way}`)
  if (decided.has(key) || votes.includes(desk.by))
    throw waitingError(
      `${votes.length} of ${n} people have approved call ${callId}. Another person must: ${shellCommand`terret approve ${sessionId} ${callId} --by NAME`}`,
    )
  const shown = await describePending(place, pending)
  const options: readonly PermissionOption[] = [
    { optionId: `allow:${digest}`, name: n > 1 ? `Allow (${n} people must)` : 'Allow once', kind: 'allow_once' },
    { optionId: `deny:${digest}`, name: 'Deny', kind: 'reject_once' },
  ]
  const chosen = await askWhileOpen(place, pending, (signal) => editor.choose(session.id, shown, options, signal))
  if (chosen === null || chosen.type === 'gone') return outcomeWhenWithdrawn(place, chosen)
  if (chosen.type !== 'chosen')
    throw waitingError(`Your editor could not ask about call ${callId}. Decide it with: ${way}`)
  decided.add(key)
  const allow = chosen.id === `allow:${digest}`
  return ignoreStale(() => session.decide({ callId, sessionId, digest, allow, by: desk.by }))
}

/**
 * If the call was decided elsewhere or cancelled, the log says how the session goes on. If the editor itself withdrew
 * the question, the prompt stops.
 */
function outcomeWhenWithdrawn({ signal }: QuestionContext, answered: object | null): AskOutcome {
  return answered === null || signal.aborted ? 'go' : 'stop'
}

/** Shows exactly the action that would run: its arguments, the current files, and warnings about misleading text. */
async function describePending(place: QuestionContext, pending: PendingCall) {
  const { desk, editor, folder, session, updates } = place
  const { tool, args, callId, sessionId, agent } = pending
  const preview = await desk.preview(place, pending)
  const toolCallId = toolCallIdOf(session.id, sessionId, callId)
  const told = updates.child(toolCallId, pending)
  if (told) await editor.update(session.id, told)
  const call = describeCall({ tool, args }, folder)
  const path = tool === 'write' && call.locations[0] ? call.locations[0].path : null
  const before = path === null ? null : await desk.textOf(place, path)
  const content = before === null ? call.content : writtenDiff({ tool, args }, before, folder)
  const lines = [
    ...(sessionId === session.id ? [] : [`Asked by the agent ${agent}.`]),
    ...(preview.trouble === null ? [] : [`As things are it would fail: ${preview.trouble}.`]),
    ...preview.warnings,
    ...(content.length > 0 ? [] : [JSON.stringify(args, null, 2)]),
  ]
  const status = 'pending' as const
  return { ...call, toolCallId, status, content: [...content, ...textContent(clean(lines.join('\n')))] }
}

async function askQuestion(place: QuestionContext, pending: PendingCall): Promise<AskOutcome> {
  const { desk, editor, session } = place
  const { callId, sessionId, args } = pending
  const { question, choices } = parseQuestion(args)
  const toolCallId = toolCallIdOf(session.id, sessionId, callId)
  const say = (content: string, ok: boolean): Promise<AskOutcome> =>
    ignoreStale(() => session.answer({ callId, sessionId, content, ok, by: desk.by }))
  if (editor.hasForms) {
    const filled = await askWhileOpen(place, pending, (signal) =>
      editor.fill(session.id, toolCallId, { question, choices }, signal),
    )
    if (filled?.type === 'answer') return say(filled.text, true)
    if (filled?.type === 'no') return say('The user declined to answer.', false)
    if (filled === null || filled.type === 'gone') return outcomeWhenWithdrawn(place, filled)
  } else if (choices.length > 0 && choices.length <= CHOICES_MAX) {
    const options = choices.map((name, i) => ({
      optionId: `choice:${i}`,
      name: clean(name),
      kind: 'allow_once' as const,
    }))
    const other = { optionId: 'other', name: 'Answer in my next message', kind: 'reject_once' } as const
    const shown = { ...describeCall(pending, place.folder), toolCallId, status: 'pending' as const }
    const chosen = await askWhileOpen(place, pending, (signal) =>
      editor.choose(session.id, shown, [...options, other], signal),
    )
    if (chosen === null || chosen.type === 'gone') return outcomeWhenWithdrawn(place, chosen)
    const picked =
      chosen.type === 'chosen' ? choices[options.findIndex(({ optionId }) => optionId === chosen.id)] : undefined
    if (picked !== undefined) return say(picked, true)
  }
  await sendQuestion(editor, session.id, pending)
  return 'later'
}

/** Sends the question as a message. The person's next prompt is the answer. */
export async function sendQuestion(
  editor: Editor,
  session: string,
  { args, sessionId, callId }: PendingCall,
): Promise<void> {
  await editor.update(
    session,
    messageChunk('agent_message_chunk', textBlock(questionText(args)), `${sessionId}:${callId}.question`),
  )
}

/** The open question of the model, which the next prompt answers. */
export function findOpenQuestion(pending: readonly PendingCall[]): PendingCall | null {
  const asked = pending.find(({ needs, tool }) => needs === 'answer' && tool === ASK_USER)
  return asked && pending.every(({ needs }) => needs === 'answer') ? asked : null
}

/** Null: the call was decided elsewhere or expired before it was answered here. */
async function askWhileOpen<T>(
  place: QuestionContext,
  asked: PendingCall,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const over = new AbortController()
  const done = new AbortController()
  const look = async (): Promise<void> => {
    if (!(await isStillOpen(place, asked))) over.abort()
  }
  const expires = async (): Promise<void> => {
    const { expiresAt = null } = asked
    if (expiresAt === null) return
    await delay(Math.min(Math.max(0, expiresAt - Date.now()), TIMER_MS_MAX), done.signal)
    if (!done.signal.aborted) await look()
  }
  const watching = Promise.all([expires(), recheckOnEvents(place, asked, done.signal, look)]).catch(() => {
    // The session is gone or its log is unreadable, so nothing can be decided here.
    over.abort()
  })
  try {
    const answered = await ask(AbortSignal.any([place.signal, over.signal]))
    return over.signal.aborted ? null : answered
  } finally {
    done.abort()
    await watching
  }
}

/** Checks once, and again after each event of the session that asks. */
async function recheckOnEvents(
  { sessionOf }: QuestionContext,
  { sessionId }: PendingCall,
  signal: AbortSignal,
  look: () => Promise<void>,
): Promise<void> {
  const session = await sessionOf(sessionId)
  const { seq } = await session.status()
  await look()
  for await (const _ of session.follow({ after: seq, signal })) await look()
}

async function isStillOpen(
  place: QuestionContext,
  { sessionId, callId, digest, expiresAt = null }: PendingCall,
): Promise<boolean> {
  const isSame = (other: PendingCall): boolean =>
    other.sessionId === sessionId && other.callId === callId && other.digest === digest
  return (await place.pending()).some(isSame) && (expiresAt === null || Date.now() < expiresAt)
}

export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
  })
}

/** A decision or an answer that came from elsewhere in the meantime stands. */
async function ignoreStale(act: () => Promise<unknown>): Promise<AskOutcome> {
  try {
    await act()
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'decision_stale') throw error
  }
  return 'go'
}

function amountText({ amounts }: PendingCall): string {
  return amounts === undefined ? '' : `: $${amounts.spentUsd.toFixed(4)} of $${amounts.limitUsd.toFixed(4)}`
}

/** The prompt ends. The session waits and can be decided from anywhere. */
function waitingError(message: string): RequestError {
  return new RequestError(-32_603, message, { code: 'waits' })
}
