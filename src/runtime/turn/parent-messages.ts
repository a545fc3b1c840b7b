// Messages of a child to its parent: the end of its run, its question, or its report. This file has texts and events;
// commit/family.ts writes them.
import type { Json, Outcome } from '../../kernel/content.ts'
import type { InboxBody, Parent } from '../../kernel/event.ts'
import type { RunEnd } from '../../kernel/landing.ts'
import type { Decision, Waiting } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { Blob, OutgoingMessage, CompleteStore } from '../../ports/store.ts'
import { harnessId } from '../../stores/plan/store-ids.ts'
import { CONTINUE } from '../../tools/agents/order-tools.ts'
import { clip, readOnHint } from '../../tools/core/bound-content.ts'
import { isOverBudget, outsideCalls } from '../../view/pending-calls.ts'
import type { Planner } from '../state/agent.ts'
import { ResultCollector } from '../state/run-result.ts'
import { textBlob } from '../state/content-blobs.ts'
import { readSessionHead, findOutsideQuestion } from '../state/session-tree.ts'
import { childOnCall } from '../../view/pending-calls.ts'

/** The kind of a result whose child ended without an answer. */
export const UNFINISHED = 'SubAgentIncomplete'
/** The answer is too long, which is not unfinished: the same task would be answered at the same length. */
const TOO_LONG = { error_type: 'SubAgentAnswerTooLong', reason: 'answer_too_long' } as const
/** A longer answer of a child is cut for a model that can read on. */
const ANSWER_CHARS_MAX = 32_000
/**
 * A planner that is no model cannot use half an answer: it gets the whole answer up to this length, or is told that the
 * answer is too long. A model that cannot read on also gets up to this length.
 */
const WHOLE_CHARS_MAX = 200_000
const ANSWER_CUT_NOTE = '\n[cut: the model stopped at the limit of one answer, and this is not all of it]'

/** The child that answers or asks its parent. */
export type AnsweringChild = {
  readonly id: string
  readonly session: Session
  /** The most characters that its parent reads of its answer. Absent: no own limit. */
  readonly charsMax?: number | undefined
  /** How its planner says what a run without an answer had so far. Absent: by its last text. */
  readonly unfinished?: Planner['describeUnfinished'] | undefined
}

/** The message for the parent, and the texts to store beside the child's log because they were cut. */
export type ParentMessage = { readonly send: OutgoingMessage | null; readonly kept: readonly Blob[] }

/**
 * A child's run ended, so its parent's call gets its one result. A run that ended only because its money was used up
 * gives no result yet: the root session asks people for more, and then the child goes on.
 */
export function answerFor(child: AnsweringChild, end: RunEnd, text: string): ParentMessage {
  const { id, session, charsMax, unfinished } = child
  const { parent, agent } = session
  if (!parent || isOverBudget(end.outcome)) return { send: null, kept: [] }
  const common = { agent, session: id, model_requests: end.requests, tool_calls: end.toolCalls }
  const kept: Blob[] = []
  const answer = withWorkspace(
    buildChildAnswer({ id, end, text, parent, common, kept, charsMax, unfinished }),
    end,
    parent,
  )
  if (parent.detached) return { send: reportOf({ id, session }, `${end.seq}`, answer, end.denied), kept }
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: harnessId('child', id, end.seq),
    call: parent.call,
    by: `session:${id}`,
    ...answer,
    ...(end.denied ? { denied: true } : {}),
  }
  return { send: { session: parent.session, event }, kept }
}

type ChildAnswer = Pick<Extract<InboxBody, { type: 'user.custom_tool_result' }>, 'ok' | 'content' | 'metadata'>
type AnswerParts = {
  readonly id: string
  readonly end: RunEnd
  readonly text: string
  readonly parent: Parent
  readonly common: { readonly [name: string]: Json }
  /** A text that is cut is put here as a whole. */
  readonly kept: Blob[]
  readonly charsMax: number | undefined
  readonly unfinished: AnsweringChild['unfinished']
}

function buildChildAnswer(parts: AnswerParts): ChildAnswer {
  const { id, end, text, parent, common, kept, charsMax, unfinished } = parts
  const { outcome, output } = end
  const { parks, reader } = parent
  const cut = (said: string): string => shortenAnswer(said, { id, reader, charsMax }, kept)
  const incomplete = { ...common, status: 'incomplete', error_type: UNFINISHED }
  if (outcome.type !== 'completed') {
    const { reason, cause } = outcomeReason(outcome)
    const last = output === undefined ? (unfinished?.(text, outcome) ?? text) : JSON.stringify(output)
    const content = cut(incompleteText(id, cause, last))
    return { ok: false, content, metadata: { ...incomplete, reason, ...permanentRefusal(end) } }
  }
  const said = output === undefined ? text : JSON.stringify(output)
  if (parks && said.length > WHOLE_CHARS_MAX)
    return { ok: false, content: answerTooLongText(id, said.length), metadata: { ...incomplete, ...TOO_LONG } }
  const content = `${parks ? said : cut(said)}${end.cut && output === undefined ? ANSWER_CUT_NOTE : ''}`
  const structured = output !== undefined && content === said ? { structured_output: true } : {}
  return { ok: true, content, metadata: { ...common, status: 'completed', ...structured } }
}

/** Adds what the child left in its worktree. An answer that fits a schema stays unchanged, unless it is a report. */
function withWorkspace(answer: ChildAnswer, { workspace, output }: RunEnd, { parks, detached }: Parent): ChildAnswer {
  if (!workspace || parks) return answer
  const about = answer.metadata as { readonly [name: string]: Json }
  const isValue = output !== undefined && about.structured_output === true && !detached
  const content = isValue ? answer.content : [answer.content, ...workspace.lines].join('\n')
  return { ...answer, content, metadata: { ...about, ...workspace.metadata } }
}

/**
 * A child asks a question: its parent's call gets the question, and the parent may go on. Null: there is no question.
 */
export function askParent({ id, session }: AnsweringChild, decision: Decision): OutgoingMessage | null {
  const { parent, agent } = session
  if (!parent || parent.parks || decision.type !== 'rest' || decision.waiting !== 'answer') return null
  const asked = findOutsideQuestion(session)
  if (!asked) return null
  const { question } = asked.proposal.args as { readonly question?: Json }
  const what = typeof question === 'string' ? question : `${asked.proposal.tool} ${JSON.stringify(asked.proposal.args)}`
  const choices = choicesOf(asked.proposal.args)
  const content = [
    `The subagent cannot go on without an answer to this question: ${what}`,
    ...(choices.length === 0 ? [] : [`It can be answered with one of: ${choices.join(' | ')}`]),
    `Do not start this task again. ${parent.detached ? ANSWER : `When you know the answer, call subagent with "session": "${id}" and the answer as "task".`}`,
  ].join('\n')
  const metadata = { agent, session: id, status: 'awaiting', call: asked.key, question: what }
  const about = choices.length === 0 ? metadata : { ...metadata, options: choices }
  if (parent.detached) return reportOf({ id, session }, asked.key, { ok: true, content, metadata: about }, false)
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: harnessId('child', id, asked.key, parent.call),
    call: parent.call,
    ok: true,
    content,
    by: `session:${id}`,
    metadata: about,
  }
  return { session: parent.session, event }
}

const ANSWER = `Answer it with ${CONTINUE} when you know the answer; ask the user if you do not.`

/** The choices that a question offers, if any. */
function choicesOf(args: Json): readonly string[] {
  const { options, choices } = args as { readonly options?: Json; readonly choices?: Json }
  const offered = Array.isArray(options) ? options : Array.isArray(choices) ? choices : []
  return offered.filter((choice): choice is string => typeof choice === 'string')
}

/** Text that a model could take for the beginning or the end of a report. */
const REPORT_TAG = /<(\s*\/?\s*subagent_report)/gi
/** How long a report waits for others. A question does not wait. */
const REPORT_MS = 3_000

/** The same report with another content. */
function reportWith(report: string, content: string): string {
  return `${report.slice(0, report.indexOf('\n'))}\n${content.replace(REPORT_TAG, '<\\$1')}\n</subagent_report>`
}

/** The message of a detached child to its parent, which steers an open run or opens one. Its content is data. */
function reportOf(
  { id, session }: AnsweringChild,
  of: string,
  { content, metadata }: ChildAnswer,
  denied: boolean,
): OutgoingMessage {
  const { parent, agent } = session
  const above = parent?.session ?? ''
  const { status } = (metadata ?? {}) as { readonly status?: Json }
  const about = `agent=${JSON.stringify(agent)} session=${JSON.stringify(id)} status=${JSON.stringify(status ?? '')}`
  const text = reportWith(`<subagent_report ${about}>\n</subagent_report>`, content)
  const parts = [{ type: 'text', text }] as const
  const by = `session:${id}`
  const no = denied ? { denied: true as const } : {}
  return {
    session: above,
    event: {
      type: 'user.message',
      id: harnessId('child', id, of),
      parts,
      when: 'next',
      by,
      report: status === 'awaiting' ? 0 : REPORT_MS,
      ...no,
    },
  }
}

/** Asking this model again cannot help because there is no access to it. Only the harness itself sets this. */
function permanentRefusal({ outcome, barred }: RunEnd): { readonly permanent?: true; readonly model?: string } {
  const refused = outcome.type === 'failed' && outcome.reason === 'provider_error' && barred !== null
  return refused ? { permanent: true, model: barred } : {}
}

function outcomeReason(outcome: Outcome): { readonly reason: string; readonly cause: string } {
  if (outcome.type === 'failed') return { reason: outcome.reason, cause: outcome.failure.message }
  if (outcome.type === 'limit')
    return { reason: `limit:${outcome.limit}`, cause: `it reached its limit (${outcome.limit})` }
  if (outcome.type === 'halted') return { reason: 'halted', cause: outcome.reason }
  return { reason: 'interrupted', cause: 'it was interrupted' }
}

function incompleteText(id: string, cause: string, text: string): string {
  const progress = text.trim() === '' ? 'It left no text.' : `What it had so far:\n${text}`
  return `The subagent did not finish: ${cause}\n${progress}\nIts record is session ${id}.`
}

function answerTooLongText(id: string, chars: number): string {
  return `The answer of session ${id} has ${chars} characters, and at most ${WHOLE_CHARS_MAX} can be kept in a state. Keep long texts with context.keep, and their hash in the answer.`
}

type AnswerLimits = { readonly id: string; readonly reader: string | undefined; readonly charsMax: number | undefined }

/**
 * A parent that can read stored texts gets the beginning and the way to the rest; any other gets as much as possible.
 */
function shortenAnswer(text: string, { id, reader, charsMax = WHOLE_CHARS_MAX }: AnswerLimits, kept: Blob[]): string {
  const most = Math.min(charsMax, reader === undefined ? WHOLE_CHARS_MAX : ANSWER_CHARS_MAX)
  if (text.length <= most) return text
  const whole = textBlob(text, 'text/plain')
  kept.push(whole)
  const note = `the whole answer has ${text.length} characters and is in session ${id}; ${readOnHint(whole.hash, reader)}`
  return `${clip(text, most)}\n[cut: ${note}]`
}

export function isReport(event: InboxBody): event is Extract<InboxBody, { type: 'user.message' }> {
  return event.type === 'user.message' && event.report !== undefined
}

/**
 * The answer that a parent still waits for, when its child has nothing to do. The parent's answer to the child's
 * question may have come after another answer: then no end of a run and no new question is left that would answer the
 * parent's call.
 */
export async function answerWaitingParent(
  store: CompleteStore,
  child: AnsweringChild,
  waiting: Waiting,
): Promise<OutgoingMessage | null> {
  const { id, session } = child
  const { parent } = session
  if (!parent) return null
  const above = await readSessionHead(store, parent.session)
  const call = outsideCalls(above).find((open) => childOnCall(parent.session, open) === id)
  if (!call) return null
  return readLastMessage(store, { ...child, session: { ...session, parent: { ...parent, call: call.key } } }, waiting)
}

/** The question of a child that rests, or how its last run ended. */
async function readLastMessage(
  store: CompleteStore,
  child: AnsweringChild,
  waiting: Waiting,
): Promise<OutgoingMessage | null> {
  const { id, session } = child
  if (session.run) return askParent(child, { type: 'rest', waiting, until: null })
  if (!session.last) return null
  const { end, text } = await readLastEnd(store, id, session, session.last)
  return answerFor(child, end, text).send
}

/** Reads from the log how the last run of a session ended. Its worktree may have changed since, and is left out. */
async function readLastEnd(
  store: CompleteStore,
  id: string,
  { began, seq, denied: before = false }: Session,
  outcome: Outcome,
): Promise<{ readonly end: RunEnd; readonly text: string }> {
  const collector = new ResultCollector(id, null)
  for (const event of (await store.read(id, Math.max(0, began - 1))).events) collector.take(event)
  const result = collector.result([], { waiting: 'nothing', until: null })
  const { text, usage } = result
  const output = result.status === 'completed' && result.output !== text ? result.output : undefined
  const cut = result.stopReason === 'max_tokens' && output === undefined
  const denied = before || result.calls.some(({ status }) => status === 'denied')
  const counts = { requests: usage.modelRequests, toolCalls: usage.toolCalls }
  return { end: { outcome, output, workspace: undefined, ...counts, barred: null, cut, denied, began, seq }, text }
}

/** The state of a child that does not work: its question, or how its last run ended. */
export async function restingChildText(store: CompleteStore, id: string): Promise<string> {
  const session = await readSessionHead(store, id)
  const event = (await readLastMessage(store, { id, session }, 'answer'))?.event
  if (event?.type === 'user.custom_tool_result') return event.content
  const [part] = event?.type === 'user.message' ? event.parts : []
  if (part?.type === 'text' && session.folder !== undefined) {
    const { addReportLines, describeWorktree } = await import('./child-worktrees.ts')
    return addReportLines(part.text, (await describeWorktree(store, id, session))?.lines ?? [])
  }
  return part?.type === 'text'
    ? part.text
    : `Subagent ${id} does not work, and has said nothing yet. A person may be asked about it.`
}
