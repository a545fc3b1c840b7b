// Children: sessions that a call of another session opened, and what joins the commits of both. A child is made in the commit that hands its call over, and answers in
// the commit that settles its run; so none is lost, none is made twice, and the parent gets one result.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Json, Outcome } from '../../kernel/content.ts'
import type { InboxBody, OwnerEvent, Parent } from '../../kernel/event.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import type { Decision, Waiting } from '../../kernel/next.ts'
import type { Blob, Store } from '../../ports/store.ts'
import type { Session } from '../../kernel/session.ts'
import { childId, ownId, stopId } from '../../stores/plan/id.ts'
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
import { textBlob } from '../../engine/wiring.ts'
import { Collector, lastTextOf } from '../../sessions/result.ts'
import { isBroke, waitsOf } from '../../view/pending.ts'
import { type Agents, birth, type Known, taskOf } from './birth.ts'
import { carriedOut, commanded } from './orders.ts'
import { childOf, headOf, questionIn } from './tree.ts'
import { childrenBelow, isDetached, isWorking, isStoppedFromAbove } from './status.ts'
import { CONTINUE } from '../../tools/agents/orders.ts'
import { WORKTREES } from '../../tools/files/own-places.ts'

/** The kind of a result whose child ended without an answer. */
export const UNFINISHED = 'SubAgentIncomplete'
/** Not unfinished: the same task would be answered at the same length. */
const TOO_LONG = { error_type: 'SubAgentAnswerTooLong', reason: 'answer_too_long' } as const
/** A longer answer of a child is cut for a model that can read on. */
const ANSWER_CHARS_MAX = 32_000
/** What is no model cannot use half an answer: it gets the whole, or is told that it is too much for a state. A model that cannot read on gets so much too. */
const WHOLE_CHARS_MAX = 200_000
const NOT_WHOLE = '\n[cut: the model stopped at the limit of one answer, and this is not all of it]'

/** Before what a child is told that goes on with the conversation. */
const HANDED_OVER = 'This conversation was handed over to you: answer the user yourself.'

/** Joins the commits of a session that has a parent or children. */
export function childrenRider(cache: SessionCache, store: Store, known: Agents): Rider {
  const { id } = cache
  return {
    rewrite: ({ session }, body) => (body.type === 'agent.tool_result' ? carriedOut(id, session, body) : body),
    before(commit, body) {
      const { session, first } = commit
      const call = isGivenUp(body, first) ? openCall(session, body.call) : undefined
      if (call?.state.type === 'outside') dismissed(commit.kin, id, call)
      // As the log will have it: what a child tells its parent holds no more than that.
      if (body.type === 'run.settled') commit.end = endOf(session, body.outcome, commit.events, known)
    },
    after({ session, here, kin }, event) {
      const call = event.type === 'agent.custom_tool_use' ? openCall(session, event.call) : undefined
      if (call) handed(kin, { id, session }, call, { at: here.now, ...known })
    },
    finish(commit, decision) {
      const { session, end, events } = commit
      if (end !== null)
        commit.keep(answered(commit.kin, whoseOf(cache, session, known), end, lastTextOf(cache.shown, events)))
      else if (session.parent !== null) awaits(commit.kin, { id, session }, decision)
    },
    complete: (plan) => completed(cache, store, plan, known),
  }
}

/** What must be read first: which siblings work, whom a stop is for, and what was changed in worktrees. Null: nothing. */
function completed(cache: SessionCache, store: Store, plan: CommitPlan, known: Agents): Promise<CommitPlan> | null {
  const { folder, parent } = cache.session
  const end = parent?.tells === undefined ? undefined : plan.events.find(({ type }) => type === 'run.settled')
  if (end?.type === 'run.settled')
    return tellingEnd(cache, store, plan, end).then((told) => finished(cache, store, told, known, folder) ?? told)
  return finished(cache, store, plan, known, folder)
}

function finished(
  cache: SessionCache,
  store: Store,
  plan: CommitPlan,
  known: Agents,
  folder: string | undefined,
): Promise<CommitPlan> | null {
  if (folder === undefined) return related(cache, store, plan, known)
  return placed(cache, store, plan, folder).then((whole) => related(cache, store, whole, known) ?? whole)
}

function related(cache: SessionCache, store: Store, plan: CommitPlan, known: Agents): Promise<CommitPlan> | null {
  const { parent } = cache.session
  const { events, write } = plan
  const interrupted = events.some(isStop)
  const reports = parent?.detached === true && write.sends?.some(({ event }) => isReport(event)) === true
  const stops = interrupted || events.some(({ type }) => type === 'session.closed')
  // Without a read where it can be: a read takes the end of this run out of the transaction that the others end in.
  if (reports && !stops && known.isWorkingBelow?.(parent.session, cache.id)) return null
  if (stops || reports) return ending(cache, store, plan, { interrupted, stops, reports })
  return parent && !parent.detached ? indebted(cache, store, plan, known) : null
}

/** The session that its parent named is told of the end, in the commit of the end. One that was removed is told nothing. */
async function tellingEnd(
  { id, session: { parent } }: SessionCache,
  store: Store,
  plan: CommitPlan,
  { seq, outcome }: Extract<OwnerEvent, { type: 'run.settled' }>,
): Promise<CommitPlan> {
  const { tells = '', session: above, task } = parent as Parent
  if ((await store.card(tells)) === null) return plan
  const ended = { session: id, parent: above, ...(task === undefined ? {} : { task }), outcome: outcome.type }
  const event: InboxBody = {
    type: 'user.message',
    id: ownId('ended', id, seq),
    parts: [{ type: 'text', text: JSON.stringify({ run_ended: ended }) }],
    when: 'next',
    by: `session:${id}`,
  }
  return withSends(plan, [...(plan.write.sends ?? []), { session: tells, event }])
}

/** `stops`: it was stopped, or closed while it rested, so its working children are stopped too. */
type Ending = { readonly interrupted: boolean; readonly stops: boolean; readonly reports: boolean }

async function ending(
  cache: SessionCache,
  store: Store,
  plan: CommitPlan,
  { interrupted, stops, reports }: Ending,
): Promise<CommitPlan> {
  const whole = stops ? await stopped(cache.id, store, plan) : plan
  if (!reports) return whole
  // Its parent knows, or a person stopped that too: a report would only make it begin again.
  if (interrupted && (await isStoppedFromAbove(store, cache)))
    return withSends(
      whole,
      (whole.write.sends ?? []).filter(({ event }) => !isReport(event)),
    )
  return timed(cache, store, whole)
}

/** The words to a parent say what was changed in the child's worktree; the worktrees of a session that ended are swept. */
async function placed(
  { id, session }: SessionCache,
  store: Store,
  plan: CommitPlan,
  folder: string,
): Promise<CommitPlan> {
  const { sends = [] } = plan.write
  const ends = plan.events.some(({ type }) => type === 'run.settled' || type === 'session.closed')
  let left: readonly string[] = []
  if (ends && existsSync(join(folder, WORKTREES))) {
    const { sweptBelow } = await import('./places.ts')
    // What cannot be removed now stays, and is tried again at the next end.
    left = await sweptBelow(store, id, folder).catch(() => [])
  }
  const { parent } = session
  // Only an end says it: a question may be told more than once, and must then be the same.
  if (!ends || !parent || parent.parks || !sends.some((send) => isToParent(send, id, parent))) return plan
  const { seenPlace, withLeft, withPlace } = await import('./places.ts')
  const seen = withLeft(await seenPlace(store, id, session), left)
  if (seen === null) return plan
  return withSends(
    plan,
    sends.map((send) => (isToParent(send, id, parent) ? withPlace(send, seen) : send)),
  )
}

function isToParent({ session, event }: Send, id: string, parent: Parent): boolean {
  return session === parent.session && 'by' in event && event.by === `session:${id}`
}

/** The session was stopped or closed: reports of its children are not read any more. */
function isStop(event: OwnerEvent): boolean {
  return (event.type === 'run.settled' && event.outcome.type === 'interrupted') || event.type === 'session.closed'
}

/** A report waits for others only while there are siblings that may report too. */
async function timed({ id, session }: SessionCache, store: Store, plan: CommitPlan): Promise<CommitPlan> {
  if (await hasWorkingSibling(store, session.parent?.session ?? '', id)) return plan
  const sends = plan.write.sends?.map((send) =>
    isReport(send.event) ? { ...send, event: { ...send.event, report: 0 } } : send,
  )
  return withSends(plan, sends ?? [])
}

/** One card at a time: to read a card costs more than to find it. */
async function hasWorkingSibling(store: Store, parent: string, id: string): Promise<boolean> {
  const working = { parent, status: 'running', limit: 1 } as const
  const later = await store.list({ ...working, after: id })
  if (later.length > 0) return true
  const [first] = await store.list(working)
  return first !== undefined && first.session !== id
}

function isReport(event: InboxBody): event is Extract<InboxBody, { type: 'user.message' }> {
  return event.type === 'user.message' && event.report !== undefined
}

/** Somebody stopped or closed this session: the children that work for it while it does other things stop too. */
async function stopped(id: string, store: Store, plan: CommitPlan): Promise<CommitPlan> {
  const { sends: told = [], expectedSeq } = plan.write
  const stops = await stopsBelow(store, id, stopId(id, expectedSeq))
  const more = stops.filter(({ session }) => !told.some((send) => send.session === session))
  return more.length === 0 ? plan : withSends(plan, [...told, ...more])
}

/**
 * What stops all that work below a session, at every depth: a detached child that is told later could end meanwhile, and its report
 * would begin a run in one that was stopped. A child that a call waits for is told by its parent (`tells`), if that works: the call
 * ends first. `stop` is the id of what each of them is sent.
 */
export async function stopsBelow(store: Store, id: string, stop: string, tells = false): Promise<readonly Send[]> {
  const sends: Send[] = []
  for await (const card of childrenBelow(store, id)) {
    const { session } = card
    const works = isWorking(card)
    if (works && (!tells || (await isDetached(store, session))))
      sends.push({ session, event: { type: 'user.interrupt', id: stop, mode: 'stop' } })
    sends.push(...(await stopsBelow(store, session, stop, works)))
  }
  return sends
}

function withSends(plan: CommitPlan, sends: readonly Send[]): CommitPlan {
  const write = { ...plan.write, sends }
  const others = plan.writes.filter((each) => each !== plan.write)
  const woken = [...new Set([...plan.woken, ...sends.map(({ session }) => session)])]
  return { ...plan, write, writes: [write, ...others], woken }
}

/**
 * A child with nothing to do may still have to answer its parent. That answer goes into the commit that gives the session back,
 * because no worker looks at the session after it.
 */
async function indebted(cache: SessionCache, store: Store, plan: CommitPlan, known: Agents): Promise<CommitPlan> {
  const { events, write, decision, woken } = plan
  if (events.length > 0 || !write.release || decision.type !== 'rest') return plan
  const send = await owed(store, whoseOf(cache, cache.session, known), decision.waiting)
  if (send === null) return plan
  const paid = { ...write, sends: [send] }
  return { ...plan, write: paid, writes: [paid], woken: [...woken, send.session] }
}

/** A call was handed out: to a new child, or to one that waits for an answer. Nothing if it is answered by a person or a program. */
function handed(family: Family, { id, session }: Pick<SessionCache, 'id' | 'session'>, call: Call, known: Known): void {
  const { child, answers, orders, folder, options, fork, handoff } = outsideOf(call.proposal) ?? {}
  if (orders) return commanded(family, { id, session }, call, orders, known)
  const task = taskOf(call.proposal.args)
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
  } else if (child !== undefined) {
    const more = { ...(folder && { folder }), ...(fork && { fork }), ...(handoff && { handoff }) }
    const order = { child, ...(options && { options }), ...more }
    const told = handoff ? `${HANDED_OVER} ${task}` : task
    const born = childId(id, call.key)
    family.births.push(...birth({ id, session, key: call.key, born, order, task: told, ...known }))
  }
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
function endOf(session: Session, outcome: Outcome, events: readonly OwnerEvent[], { modelName }: Agents): End {
  const { run, seq, denied: before = false } = session
  const { requests = 0, toolCalls = 0, turn = null } = run ?? {}
  const output = turn?.verdict.type === 'final' ? turn.verdict.output : undefined
  const failed = events.findLast((event) => event.type === 'model.failed')
  const barred = failed?.type === 'model.failed' && failed.class === 'auth' ? (modelName?.(session) ?? '') : null
  const reply = events.findLast((event) => event.type === 'agent.message')
  const cut = reply?.type === 'agent.message' && reply.finish === 'length' && output === undefined
  const denied = before || (run?.said?.denied.length ?? 0) > 0
  return { outcome, output, requests, toolCalls, barred, cut, denied, began: run?.seq ?? seq + 1, seq: seq + 1 }
}

type Whose = {
  readonly id: string
  readonly session: Session
  /** Its parent reads at most so much of its answer. Absent: as much as of any. */
  readonly charsMax?: number | undefined
}

function whoseOf({ id }: SessionCache, session: Session, { charsMaxOf }: Agents): Whose {
  return { id, session, charsMax: charsMaxOf?.(session.agent) }
}

/**
 * A child's run ended: its parent's call gets its one result. Where only money is missing there is none yet: people are asked at the
 * top, and what they allow lets the child go on. Returns what must be kept beside the log.
 */
function answered(family: Family, { id, session, charsMax }: Whose, end: End, text: string): readonly Blob[] {
  const { parent, agent } = session
  if (!parent || isBroke(end.outcome)) return []
  const common = { agent, session: id, model_requests: end.requests, tool_calls: end.toolCalls }
  const kept: Blob[] = []
  if (parent.detached) {
    const told = toldOf({ id, end, text, parent, common, kept, charsMax })
    family.sends.push(reportOf({ id, session }, `${end.seq}`, told, end.denied))
    return kept
  }
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: ownId('child', id, end.seq),
    call: parent.call,
    by: `session:${id}`,
    ...toldOf({ id, end, text, parent, common, kept, charsMax }),
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
  readonly charsMax: number | undefined
}

function toldOf({ id, end, text, parent, common, kept, charsMax }: Telling): Told {
  const { outcome, output } = end
  const { parks, reader } = parent
  const cut = (said: string): string => shortened(said, { id, reader, charsMax }, kept)
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
  const choices = choicesOf(asked.proposal.args)
  const content = [
    `The subagent cannot go on without an answer to this question: ${what}`,
    ...(choices.length === 0 ? [] : [`It can be answered with one of: ${choices.join(' | ')}`]),
    `Do not start this task again. ${parent.detached ? ANSWER : `When you know the answer, call subagent with "session": "${id}" and the answer as "task".`}`,
  ].join('\n')
  const metadata = { agent, session: id, status: 'awaiting', call: asked.key, question: what }
  const about = choices.length === 0 ? metadata : { ...metadata, options: choices }
  if (parent.detached) {
    family.sends.push(reportOf({ id, session }, asked.key, { ok: true, content, metadata: about }, false))
    return
  }
  const event: InboxBody = {
    type: 'user.custom_tool_result',
    id: ownId('child', id, asked.key, parent.call),
    call: parent.call,
    ok: true,
    content,
    by: `session:${id}`,
    metadata: about,
  }
  family.sends.push({ session: parent.session, event })
}

const ANSWER = `Answer it with ${CONTINUE} when you know the answer; ask the user if you do not.`

/** The choices that a question offers, if it does. */
function choicesOf(args: Json): readonly string[] {
  const { options, choices } = args as { readonly options?: Json; readonly choices?: Json }
  const offered = Array.isArray(options) ? options : Array.isArray(choices) ? choices : []
  return offered.filter((choice): choice is string => typeof choice === 'string')
}

/** What a model could take for the begin or the end of a report. */
const MARK = /<(\s*\/?\s*subagent_report)/gi
/** How long a report waits for others. A question waits for none. */
const REPORT_MS = 3_000

/** The same report with other words. */
export function reportWith(report: string, content: string): string {
  return `${report.slice(0, report.indexOf('\n'))}\n${content.replace(MARK, '<\\$1')}\n</subagent_report>`
}

/** What a detached child says to its parent: a message, which steers an open run or opens one. What is in it is data. */
function reportOf({ id, session }: Whose, of: string, { content, metadata }: Told, denied: boolean): Send {
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
      id: ownId('child', id, of),
      parts,
      when: 'next',
      by,
      report: status === 'awaiting' ? 0 : REPORT_MS,
      ...no,
    },
  }
}

/** Asking this model again cannot help: there is no access to it. Only the harness itself says so. */
function permanent({ outcome, barred }: End): { readonly permanent?: true; readonly model?: string } {
  const refused = outcome.type === 'failed' && outcome.reason === 'provider_error' && barred !== null
  return refused ? { permanent: true, model: barred } : {}
}

function reasonOf(outcome: Outcome): { readonly reason: string; readonly cause: string } {
  if (outcome.type === 'failed') return { reason: outcome.reason, cause: outcome.failure.message }
  if (outcome.type === 'limit')
    return { reason: `limit:${outcome.limit}`, cause: `it reached its limit (${outcome.limit})` }
  if (outcome.type === 'halted') return { reason: 'halted', cause: outcome.reason }
  return { reason: 'interrupted', cause: 'it was interrupted' }
}

export function incompleteText(id: string, cause: string, text: string): string {
  const progress = text.trim() === '' ? 'It left no text.' : `What it had so far:\n${text}`
  return `The subagent did not finish: ${cause}\n${progress}\nIts record is session ${id}.`
}

function tooLong(id: string, chars: number): string {
  return `The answer of session ${id} has ${chars} characters, and at most ${WHOLE_CHARS_MAX} can be kept in a state. Keep long texts with context.keep, and their hash in the answer.`
}

type Reading = { readonly id: string; readonly reader: string | undefined; readonly charsMax: number | undefined }

/** A parent that can read kept texts gets the beginning and the way to the rest, another one as much as can be. */
function shortened(text: string, { id, reader, charsMax = WHOLE_CHARS_MAX }: Reading, kept: Blob[]): string {
  const most = Math.min(charsMax, reader === undefined ? WHOLE_CHARS_MAX : ANSWER_CHARS_MAX)
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
async function owed(store: Store, own: Whose, waiting: Waiting): Promise<Send | null> {
  const { id, session } = own
  const { parent } = session
  if (!parent) return null
  const above = await headOf(store, parent.session)
  const call = waitsOf(above).find((open) => childOf(parent.session, open) === id)
  if (!call) return null
  const family: Family = { sends: [], births: [] }
  const whose = { ...own, session: { ...session, parent: { ...parent, call: call.key } } }
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
  return { end: { outcome, output, ...counts, barred: null, cut, denied, began, seq }, text }
}

/** How a child that does not work stands: its question, or how its last run ended. */
export async function endedText(store: Store, id: string): Promise<string> {
  const session = await headOf(store, id)
  const family: Family = { sends: [], births: [] }
  const whose = { id, session }
  if (session.run) awaits(family, whose, { type: 'rest', waiting: 'answer', until: null })
  else if (session.last) {
    const { end, text } = await lastEnd(store, id, session, session.last)
    answered(family, whose, end, text)
  }
  const event = family.sends[0]?.event
  if (event?.type === 'user.custom_tool_result') return event.content
  const [part] = event?.type === 'user.message' ? event.parts : []
  if (part?.type === 'text' && session.folder !== undefined) {
    const { placedText, seenPlace } = await import('./places.ts')
    return placedText(part.text, (await seenPlace(store, id, session))?.lines ?? [])
  }
  return part?.type === 'text'
    ? part.text
    : `Subagent ${id} does not work, and has said nothing yet. A person may be asked about it.`
}
