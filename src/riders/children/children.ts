// Children: sessions that a call of another session opened. A child is made in the commit that hands its call over, and answers in
// the commit that settles its run; so none is lost, none is made twice, and the parent gets one result.
import type { Frozen, Json, Outcome } from '../../kernel/content.ts'
import type { InboxBody, OwnerEvent, Parent } from '../../kernel/event.ts'
import { fold } from '../../kernel/fold.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import { type Decision, next } from '../../kernel/next.ts'
import type { Blob, InboxWrite, OwnerWrite } from '../../kernel/ports.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import { childId, ownId } from '../../stores/plan/id.ts'
import { clip, readOn } from '../../tools/core/bound.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { cardOf } from '../../engine/card.ts'
import { textBlob } from '../../engine/wiring.ts'
import { isBroke } from '../../view/calls.ts'

export type Send = Frozen<{ session: string; event: InboxBody }>
/** What a commit must also write for the children of a session. */
export type Family = { readonly sends: Send[]; readonly births: (OwnerWrite | InboxWrite)[] }

/** What the end of a child begins with that is no answer. */
export const INCOMPLETE = 'The subagent did not finish: '
/** A longer answer of a child is cut for a model that can read on. */
const ANSWER_CHARS_MAX = 32_000
/** What is no model cannot use half an answer: it gets the whole, or is told that it is too much for a state. A model that cannot read on gets so much too. */
const WHOLE_CHARS_MAX = 200_000
const NOT_WHOLE = '\n[cut: the model stopped at the limit of one answer, and this is not all of it]'

/** The child that works on a call of this session, if one does. */
export function childOf(session: string, { key, proposal }: Call): string | null {
  const { child, answers } = outsideOf(proposal) ?? {}
  return answers?.session ?? (child === undefined ? null : childId(session, key))
}

/** The call with which a session asks something outside that is not its own child. */
export function questionIn({ run }: Session): Call | undefined {
  return run?.turn?.open.find(({ state, proposal }) => state.type === 'outside' && !isChild(proposal))
}

/** A call was handed out: to a new child, or to one that waits for an answer. Nothing if it is answered by a person or a program. */
export function handed(
  family: Family,
  { id, session }: Pick<SessionCache, 'id' | 'session'>,
  call: Call,
  known: Known,
): void {
  const { child, answers } = outsideOf(call.proposal) ?? {}
  const task = taskOf(call)
  if (answers) {
    const { session: to, call: question } = answers
    const event: InboxBody = {
      type: 'user.custom_tool_result',
      id: ownId('answer', question, call.key),
      call: question,
      ok: true,
      content: task,
      by: `session:${id}`,
      parent: call.key,
    }
    family.sends.push({ session: to, event })
  } else if (child !== undefined) family.births.push(...birth({ id, session, call, child, task, ...known }))
}

/** What a birth must know of the agents. */
type Known = {
  readonly at: number
  readonly plannerOf: (agent: string) => string
  readonly readerOf: (agent: string) => string | undefined
}

type Born = Known & {
  readonly id: string
  readonly session: Session
  readonly call: Call
  readonly child: string
  readonly task: string
}

function birth({
  id,
  session,
  call,
  child,
  task,
  at,
  plannerOf,
  readerOf,
}: Born): readonly (OwnerWrite | InboxWrite)[] {
  const { root = id, depth = 0 } = session.parent ?? {}
  // A model can be told of a question and answer it; what is no model can only wait.
  const parks: { readonly parks?: true } = plannerOf(session.agent) === 'model' ? {} : { parks: true }
  const reader = readerOf(session.agent)
  const reads = reader === undefined || parks.parks ? {} : { reader }
  const parent = { session: id, call: call.key, root, depth: depth + 1, ...parks, ...reads }
  const planner = plannerOf(child)
  const created: OwnerEvent = { seq: 1, at, epoch: 0, type: 'session.created', agent: child, planner, parent }
  const after = fold(EMPTY, created)
  const born = childId(id, call.key)
  const card = cardOf(born, after, next(after, { now: at, epoch: 0 }))
  const parts = [{ type: 'text', text: task }] as const
  const message: InboxBody = { type: 'user.message', id: ownId('task'), parts, when: 'next', by: `session:${id}` }
  return [
    { session: born, lane: 'owner', epoch: 0, expectedSeq: 0, events: [created], card },
    { session: born, lane: 'inbox', events: [message] },
  ]
}

function taskOf({ proposal }: Call): string {
  const { task } = proposal.args as { readonly task?: Json }
  return typeof task === 'string' ? task : JSON.stringify(proposal.args)
}

/** A call that a child works on was closed: the child is told to stop. */
export function dismissed(family: Family, id: string, call: Call): void {
  const to = childOf(id, call)
  if (to === null) return
  const event = { type: 'user.interrupt', id: ownId('parent', call.key), mode: 'stop' } as const
  // One that this very commit makes is there only after it was made.
  if (family.births.some(({ session }) => session === to)) {
    family.births.push({ session: to, lane: 'inbox', events: [event] })
  } else family.sends.push({ session: to, event })
}

/** How a run ended, as its child tells it. */
export type End = {
  readonly outcome: Outcome
  /** What its schema made of the answer. */
  readonly output: Json | undefined
  readonly requests: number
  readonly toolCalls: number
  /** The provider refuses: no key, no access, no money there. What may pass, or what only this request met, is no such word. */
  readonly barred: boolean
  /** The last reply was cut at its longest. */
  readonly cut: boolean
  /** A person denied one of its calls, or one of a child of its own. */
  readonly denied: boolean
  /** seq of the run's start, and of its end. A run that was held back before it began has only an end. */
  readonly began: number
  readonly seq: number
}

/** The end of the open run, right before it is taken, with what the same commit took before it. */
export function endOf({ run, seq }: Session, outcome: Outcome, events: readonly OwnerEvent[]): End {
  const { requests = 0, toolCalls = 0, turn = null } = run ?? {}
  const output = turn?.verdict.type === 'final' ? turn.verdict.output : undefined
  const failed = events.findLast((event) => event.type === 'model.failed')
  const barred = failed?.type === 'model.failed' && failed.class === 'auth'
  const reply = events.findLast((event) => event.type === 'agent.message')
  const cut = reply?.type === 'agent.message' && reply.finish === 'length' && output === undefined
  const denied = (run?.said?.denied.length ?? 0) > 0
  return { outcome, output, requests, toolCalls, barred, cut, denied, began: run?.seq ?? seq + 1, seq: seq + 1 }
}

type Whose = { readonly id: string; readonly session: Session }

/**
 * A child's run ended: its parent's call gets its one result. Where only money is missing there is none yet: people are asked at the
 * top, and what they allow lets the child go on. Returns what must be kept beside the log.
 */
export function answered(family: Family, { id, session }: Whose, end: End, text: string): readonly Blob[] {
  const { parent, agent } = session
  if (!parent || isBroke(end.outcome)) return []
  const common = { agent, session: id, model_requests: end.requests, tool_calls: end.toolCalls }
  const kept: Blob[] = []
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: ownId('child', id, end.seq),
    call: parent.call,
    by: `session:${id}`,
    ...toldOf({ id, end, text, parent, common, kept }),
    ...(end.denied ? { denied: true } : {}),
  }
  family.sends.push({ session: parent.session, event })
  return kept
}

type Told = Pick<Extract<InboxBody, { type: 'user.custom_tool_result' }>, 'ok' | 'content' | 'metadata'>
type Telling = {
  readonly id: string
  readonly end: End
  readonly text: string
  readonly parent: Parent
  readonly common: { readonly [name: string]: Json }
  /** What is cut is put here as a whole. */
  readonly kept: Blob[]
}

function toldOf({ id, end, text, parent, common, kept }: Telling): Told {
  const { outcome, output } = end
  const { parks, reader } = parent
  const cut = (said: string): string => shortened(said, id, reader, kept)
  const incomplete = { ...common, status: 'incomplete', error_type: 'SubAgentIncomplete' }
  if (outcome.type !== 'completed') {
    const { reason, cause } = reasonOf(outcome)
    const content = cut(incompleteText(id, cause, text))
    return { ok: false, content, metadata: { ...incomplete, reason, ...permanent(end) } }
  }
  const said = output === undefined ? text : JSON.stringify(output)
  if (parks && said.length > WHOLE_CHARS_MAX)
    return { ok: false, content: tooLong(id, said.length), metadata: { ...incomplete, reason: 'answer_too_long' } }
  const content = `${parks ? said : cut(said)}${end.cut && output === undefined ? NOT_WHOLE : ''}`
  const structured = output !== undefined && content === said ? { structured_output: true } : {}
  return { ok: true, content, metadata: { ...common, status: 'completed', ...structured } }
}

/** A child that asks a question: its parent's call gets the question, and the parent may go on. */
export function awaits(family: Family, { id, session }: Whose, decision: Decision): void {
  const { parent, agent } = session
  if (!parent || parent.parks || decision.type !== 'rest' || decision.waiting !== 'answer') return
  const asked = questionIn(session)
  if (!asked) return
  const { question } = asked.proposal.args as { readonly question?: Json }
  const what = typeof question === 'string' ? question : `${asked.proposal.tool} ${JSON.stringify(asked.proposal.args)}`
  const content = [
    `The subagent cannot go on without an answer to this question: ${what}`,
    `Do not start this task again. When you know the answer, call subagent with "session": "${id}" and the answer as "task".`,
  ].join('\n')
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: ownId('child', id, asked.key, parent.call),
    call: parent.call,
    ok: true,
    content,
    by: `session:${id}`,
    metadata: { agent, session: id, status: 'awaiting', call: asked.key, question: what },
  }
  family.sends.push({ session: parent.session, event })
}

/** Was this answer given by a child? */
export function isChildKey(id: string): boolean {
  // Older logs have it without the mark of the harness.
  return id.startsWith(ownId('child', '')) || id.startsWith('child:')
}

/** Did a parent say this to its child? */
export function isParentKey(id: string): boolean {
  return id.startsWith(ownId('parent', '')) || id.startsWith('parent:')
}

function isChild(proposal: Call['proposal']): boolean {
  const outside = outsideOf(proposal)
  return outside?.child !== undefined || outside?.answers !== undefined
}

/** Trying the same again cannot help: no access. Only the harness itself says so. */
function permanent({ outcome, barred }: End): { readonly permanent?: true } {
  const refused = outcome.type === 'failed' && outcome.reason === 'provider_error' && barred
  return refused ? { permanent: true } : {}
}

function reasonOf(outcome: Outcome): { readonly reason: string; readonly cause: string } {
  if (outcome.type === 'failed') return { reason: outcome.reason, cause: outcome.failure.message }
  if (outcome.type === 'limit')
    return { reason: `limit:${outcome.limit}`, cause: `it reached its limit (${outcome.limit})` }
  if (outcome.type === 'halted') return { reason: 'halted', cause: outcome.reason }
  return { reason: 'interrupted', cause: 'it was interrupted' }
}

function incompleteText(id: string, cause: string, text: string): string {
  const progress = text.trim() === '' ? 'It left no text.' : `What it had so far:\n${text}`
  return `${INCOMPLETE}${cause}\n${progress}\nIts record is session ${id}.`
}

function tooLong(id: string, chars: number): string {
  return `The answer of session ${id} has ${chars} characters, and at most ${WHOLE_CHARS_MAX} can be kept in a state. Keep long texts with context.keep, and their hash in the answer.`
}

/** A parent that can read kept texts gets the beginning and the way to the rest, another one as much as can be. */
function shortened(text: string, id: string, reader: string | undefined, kept: Blob[]): string {
  const most = reader === undefined ? WHOLE_CHARS_MAX : ANSWER_CHARS_MAX
  if (text.length <= most) return text
  const whole = textBlob(text, 'text/plain')
  kept.push(whole)
  const note = `the whole answer has ${text.length} characters and is in session ${id}; ${readOn(whole.hash, reader)}`
  return `${clip(text, most)}\n[cut: ${note}]`
}
