// Children: sessions that a call of another session opened, and what joins the commits of both. A child is made in the commit that hands its call over, and answers in
// the commit that settles its run; so none is lost, none is made twice, and the parent gets one result.
import type { CallKey, Json, Outcome } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody, OwnerEvent, Parent } from '../../kernel/event.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import type { Decision, Waiting } from '../../kernel/next.ts'
import type { Blob, InboxWrite, OwnerWrite, Store } from '../../ports/store.ts'
import { EMPTY, type Session } from '../../kernel/session.ts'
import { childId, ownId } from '../../stores/plan/id.ts'
import { clip, readOn } from '../../tools/core/bound.ts'
import {
  type CommitPlan,
  type End,
  type Family,
  isGivenUp,
  openCall,
  type Rider,
  type Send,
} from '../../engine/commit.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import { ownerWrite } from '../../engine/card.ts'
import { textBlob } from '../../engine/wiring.ts'
import { Collector, spokenIn } from '../../sessions/result.ts'
import { isBroke, waitsOf } from '../../view/calls.ts'
import { childOf, headOf, questionIn } from './tree.ts'

/** The kind of a result whose child ended without an answer. */
export const UNFINISHED = 'SubAgentIncomplete'
/** Not unfinished: the same task would be answered at the same length. */
const TOO_LONG = { error_type: 'SubAgentAnswerTooLong', reason: 'answer_too_long' } as const
/** A longer answer of a child is cut for a model that can read on. */
const ANSWER_CHARS_MAX = 32_000
/** What is no model cannot use half an answer: it gets the whole, or is told that it is too much for a state. A model that cannot read on gets so much too. */
const WHOLE_CHARS_MAX = 200_000
const NOT_WHOLE = '\n[cut: the model stopped at the limit of one answer, and this is not all of it]'

/** Joins the commits of a session that has a parent or children. */
export function childrenRider(cache: SessionCache, store: Store, known: Agents): Rider {
  const { id } = cache
  return {
    before(commit, body) {
      const { session, first } = commit
      const call = isGivenUp(body, first) ? openCall(session, body.call) : undefined
      if (call?.state.type === 'outside') dismissed(commit.kin, id, call)
      // As the log will have it: what a child tells its parent holds no more than that.
      if (body.type === 'run.settled') commit.end = endOf(session, body.outcome, commit.events)
    },
    after({ session, here, kin }, event) {
      const call = event.type === 'agent.custom_tool_use' ? openCall(session, event.call) : undefined
      if (call) handed(kin, { id, session }, call, { at: here.now, ...known })
    },
    finish(commit, decision) {
      const { session, end, events } = commit
      if (end !== null)
        commit.keep(answered(commit.kin, { id, session }, end, spokenIn(cache.shown?.messages ?? [], events)))
      else if (session.parent !== null) awaits(commit.kin, { id, session }, decision)
    },
    complete: (plan) => (cache.session.parent ? indebted(cache, store, plan) : null),
  }
}

/**
 * A child with nothing to do may still have to answer its parent. That answer goes into the commit that gives the session back,
 * because no worker looks at the session after it.
 */
async function indebted(cache: SessionCache, store: Store, plan: CommitPlan): Promise<CommitPlan> {
  const { events, write, decision, woken } = plan
  if (events.length > 0 || !write.release || decision.type !== 'rest') return plan
  const send = await owed(store, cache, decision.waiting)
  if (send === null) return plan
  const paid = { ...write, sends: [send] }
  return { ...plan, write: paid, writes: [paid], woken: [...woken, send.session] }
}

/** A call was handed out: to a new child, or to one that waits for an answer. Nothing if it is answered by a person or a program. */
function handed(family: Family, { id, session }: Pick<SessionCache, 'id' | 'session'>, call: Call, known: Known): void {
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

/** What a birth must know of the agents: what answers their turns, and the tool with which they read kept texts. */
export type Agents = {
  readonly plannerOf: (agent: string) => string
  readonly readerOf: (agent: string) => string | undefined
  /** The trace context of a call of this session: its child is in the same trace. */
  readonly traceOf: (call: CallKey) => string | undefined
}
type Known = Agents & { readonly at: number }

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
  traceOf,
}: Born): readonly (OwnerWrite | InboxWrite)[] {
  const { root = id, depth = 0 } = session.parent ?? {}
  // A model can be told of a question and answer it; what is no model can only wait.
  const parks: { readonly parks?: true } = plannerOf(session.agent) === 'model' ? {} : { parks: true }
  const reader = readerOf(session.agent)
  const reads = reader === undefined || parks.parks ? {} : { reader }
  const parent = { session: id, call: call.key, root, depth: depth + 1, ...parks, ...reads }
  const planner = plannerOf(child)
  const { labels, run } = session
  const said = { ...(run?.metadata ? { metadata: run.metadata } : {}), ...(labels ? { labels } : {}) }
  const created: OwnerBody = { type: 'session.created', agent: child, planner, parent, ...said }
  const born = childId(id, call.key)
  const parts = [{ type: 'text', text: task }] as const
  const traceparent = traceOf(call.key)
  const trace = traceparent === undefined ? {} : { traceparent }
  const message: InboxBody = {
    type: 'user.message',
    id: ownId('task'),
    parts,
    when: 'next',
    by: `session:${id}`,
    ...trace,
  }
  return [
    ownerWrite(born, EMPTY, [created], { now: at, epoch: 0 }),
    { session: born, lane: 'inbox', events: [message] },
  ]
}

function taskOf({ proposal }: Call): string {
  const { task } = proposal.args as { readonly task?: Json }
  return typeof task === 'string' ? task : JSON.stringify(proposal.args)
}

/** A call that a child works on was closed: the child is told to stop. */
function dismissed(family: Family, id: string, call: Call): void {
  const to = childOf(id, call)
  if (to === null) return
  const event = { type: 'user.interrupt', id: ownId('parent', call.key), mode: 'stop' } as const
  // One that this very commit makes is there only after it was made.
  if (family.births.some(({ session }) => session === to)) {
    family.births.push({ session: to, lane: 'inbox', events: [event] })
  } else family.sends.push({ session: to, event })
}

/** The end of the open run, right before it is taken, with what the same commit took before it. */
function endOf({ run, seq, denied: before = false }: Session, outcome: Outcome, events: readonly OwnerEvent[]): End {
  const { requests = 0, toolCalls = 0, turn = null } = run ?? {}
  const output = turn?.verdict.type === 'final' ? turn.verdict.output : undefined
  const failed = events.findLast((event) => event.type === 'model.failed')
  const barred = failed?.type === 'model.failed' && failed.class === 'auth'
  const reply = events.findLast((event) => event.type === 'agent.message')
  const cut = reply?.type === 'agent.message' && reply.finish === 'length' && output === undefined
  const denied = before || (run?.said?.denied.length ?? 0) > 0
  return { outcome, output, requests, toolCalls, barred, cut, denied, began: run?.seq ?? seq + 1, seq: seq + 1 }
}

type Whose = { readonly id: string; readonly session: Session }

/**
 * A child's run ended: its parent's call gets its one result. Where only money is missing there is none yet: people are asked at the
 * top, and what they allow lets the child go on. Returns what must be kept beside the log.
 */
function answered(family: Family, { id, session }: Whose, end: End, text: string): readonly Blob[] {
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
  const incomplete = { ...common, status: 'incomplete', error_type: UNFINISHED }
  if (outcome.type !== 'completed') {
    const { reason, cause } = reasonOf(outcome)
    const content = cut(incompleteText(id, cause, text))
    return { ok: false, content, metadata: { ...incomplete, reason, ...permanent(end) } }
  }
  const said = output === undefined ? text : JSON.stringify(output)
  if (parks && said.length > WHOLE_CHARS_MAX)
    return { ok: false, content: tooLong(id, said.length), metadata: { ...incomplete, ...TOO_LONG } }
  const content = `${parks ? said : cut(said)}${end.cut && output === undefined ? NOT_WHOLE : ''}`
  const structured = output !== undefined && content === said ? { structured_output: true } : {}
  return { ok: true, content, metadata: { ...common, status: 'completed', ...structured } }
}

/** A child that asks a question: its parent's call gets the question, and the parent may go on. */
function awaits(family: Family, { id, session }: Whose, decision: Decision): void {
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
  return `The subagent did not finish: ${cause}\n${progress}\nIts record is session ${id}.`
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

/**
 * What a child owes its parent, when a look at it found nothing to do. The parent's answer to its question may have come after
 * another answer: then no end of a run and no new question is left that would answer the parent's call.
 */
async function owed(store: Store, { id, session }: SessionCache, waiting: Waiting): Promise<Send | null> {
  const { parent } = session
  if (!parent) return null
  const above = await headOf(store, parent.session)
  const call = waitsOf(above).find((open) => childOf(parent.session, open) === id)
  if (!call) return null
  const family: Family = { sends: [], births: [] }
  const whose = { id, session: { ...session, parent: { ...parent, call: call.key } } }
  if (session.run) awaits(family, whose, { type: 'rest', waiting, until: null })
  else if (session.last) {
    const { end, text } = await lastEnd(store, id, session, session.last)
    answered(family, whose, end, text)
  }
  return family.sends[0] ?? null
}

/** How the last run of a session ended, read again. */
async function lastEnd(
  store: Store,
  id: string,
  { began, seq, denied: before = false }: Session,
  outcome: End['outcome'],
): Promise<{ readonly end: End; readonly text: string }> {
  const collector = new Collector(id, null)
  for (const event of (await store.read(id, Math.max(0, began - 1))).events) collector.take(event)
  const result = collector.result([], { waiting: 'nothing', until: null })
  const { text, usage } = result
  const output = result.status === 'completed' && result.output !== text ? result.output : undefined
  const cut = result.stopReason === 'max_tokens' && output === undefined
  const denied = before || result.calls.some(({ status }) => status === 'denied')
  const counts = { requests: usage.modelRequests, toolCalls: usage.toolCalls }
  return { end: { outcome, output, ...counts, barred: false, cut, denied, began, seq }, text }
}
