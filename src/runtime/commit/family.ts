// Writes of a session and its relatives in one commit. A child is created in the commit that hands its call over, and
// answers in the commit that settles its run. So none is lost, none is created twice, and the parent gets one result.
import type { InboxBody, OwnerBody, OwnerEvent, Parent } from '../../kernel/event.ts'
import { givesUpCall, openCall, runEnd } from '../../kernel/landing.ts'
import { type Call, outsideOf } from '../../kernel/ledger.ts'
import type { Decision } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { OutgoingMessage, CompleteStore } from '../../ports/store.ts'
import { harnessId, stopId } from '../../stores/plan/store-ids.ts'
import { childId } from '../../view/ids.ts'
import { listChildren, isDetached, isStoppedByParent, isChildWorking } from '../state/children-below.ts'
import { lastTextOf } from '../state/run-result.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { childOnCall } from '../../view/pending-calls.ts'
import { answerFor, answerWaitingParent, askParent, isReport, type AnsweringChild } from '../turn/parent-messages.ts'
import { carryOutOrders, orderResult } from './carry-orders.ts'
import type { CommitDraft, CommitPlan } from './commit-draft.ts'
import { type AgentFacts, createChild, type ChildContext, taskFromArgs } from './create-child.ts'

type ToolResultBody = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** The text before the task of a child that takes the conversation over. */
const HANDOFF_PREFACE = 'This conversation was handed over to you: answer the user yourself.'

/** The additions to the commits of a session that has a parent or children. Loaded by the first such session. */
export class FamilyPart {
  readonly #cache: SessionCache
  readonly #store: CompleteStore
  readonly #facts: AgentFacts

  constructor(cache: SessionCache, store: CompleteStore, facts: AgentFacts) {
    this.#cache = cache
    this.#store = store
    this.#facts = facts
  }

  writeOrderResult(session: Session, body: ToolResultBody): ToolResultBody {
    return orderResult(this.#cache.id, session, body)
  }

  /** Stops the child that works on a lost call, and keeps the end of a run for the parent. */
  noteEndedCall(draft: CommitDraft, body: OwnerBody): void {
    const { session, isFirst } = draft
    const call = givesUpCall(body, isFirst) ? openCall(session, body.call) : undefined
    if (call?.state.type === 'outside') stopChild(draft, call)
    // `body` is already redacted, so a child tells its parent no more than the log has.
    if (body.type === 'run.settled') draft.end = runEnd(session, body, (now) => this.#facts.modelName?.(now) ?? '')
  }

  startChild(draft: CommitDraft, event: OwnerEvent): void {
    const call = event.type === 'agent.custom_tool_use' ? openCall(draft.session, event.call) : undefined
    if (call) startChild(draft, call, { at: draft.here.now, ...this.#facts })
  }

  answerParent(draft: CommitDraft, decision: Decision): void {
    const { id, session, end, events } = draft
    if (end !== null) {
      const { send, kept } = answerFor(this.#child(session), end, lastTextOf(this.#cache.loadedTranscript, events))
      if (send) draft.writesForRelatives().sends.push(send)
      draft.addBlobs(kept)
    } else if (session.parent !== null) {
      const send = askParent({ id, session }, decision)
      if (send) draft.writesForRelatives().sends.push(send)
    }
  }

  /** Reads what the writes for relatives need: working siblings, and targets of a stop. Null: nothing must be read. */
  addressRelatives(plan: CommitPlan): Promise<CommitPlan> | null {
    const { parent } = this.#cache.session
    const end = parent?.tells === undefined ? undefined : plan.events.find(({ type }) => type === 'run.settled')
    if (end?.type !== 'run.settled') return this.#addressOthers(plan)
    return announceRunEnd(this.#cache, this.#store, plan, end).then((told) => this.#addressOthers(told) ?? told)
  }

  #addressOthers(plan: CommitPlan): Promise<CommitPlan> | null {
    const { parent } = this.#cache.session
    const { events, write } = plan
    const interrupted = events.some(isStopEvent)
    const reports = parent?.detached === true && write.sends?.some(({ event }) => isReport(event)) === true
    const stops = interrupted || events.some(({ type }) => type === 'session.closed')
    // Avoid a read where possible: it would delay this commit, so it could not share a transaction with the ends of
    // sibling runs.
    if (reports && !stops && this.#facts.isWorkingBelow?.(parent.session, this.#cache.id)) return null
    if (stops || reports) return stopAndReport(this.#cache, this.#store, plan, { interrupted, stops, reports })
    return parent && !parent.detached ? this.#answerLate(plan) : null
  }

  /**
   * A child with nothing to do may still have to answer its parent. The answer goes into the commit that gives the
   * session back, because no worker looks at the session after it.
   */
  async #answerLate(plan: CommitPlan): Promise<CommitPlan> {
    const { events, write, decision, woken } = plan
    if (events.length > 0 || !write.release || decision.type !== 'rest') return plan
    const send = await answerWaitingParent(this.#store, this.#child(this.#cache.session), decision.waiting)
    if (send === null) return plan
    const answering = { ...write, sends: [send] }
    return { ...plan, write: answering, writes: [answering], woken: [...woken, send.session] }
  }

  #child(session: Session): AnsweringChild {
    const { charsMaxOf, unfinishedOf } = this.#facts
    const { agent } = session
    return { id: this.#cache.id, session, charsMax: charsMaxOf?.(agent), unfinished: unfinishedOf?.(agent) }
  }
}

/** Tells the session that the parent named of the run's end, in the same commit. A removed session gets nothing. */
async function announceRunEnd(
  { id, session: { parent } }: SessionCache,
  store: CompleteStore,
  plan: CommitPlan,
  { seq, outcome }: Extract<OwnerEvent, { type: 'run.settled' }>,
): Promise<CommitPlan> {
  const { tells = '', session: above, task } = parent as Parent
  if ((await store.card(tells)) === null) return plan
  const ended = { session: id, parent: above, ...(task === undefined ? {} : { task }), outcome: outcome.type }
  const event: InboxBody = {
    type: 'user.message',
    id: harnessId('ended', id, seq),
    parts: [{ type: 'text', text: JSON.stringify({ run_ended: ended }) }],
    when: 'next',
    by: `session:${id}`,
  }
  return withSends(plan, [...(plan.write.sends ?? []), { session: tells, event }])
}

/** `stops`: it was stopped, or closed while it rested, so its working children are stopped too. */
type EndEffects = { readonly interrupted: boolean; readonly stops: boolean; readonly reports: boolean }

async function stopAndReport(
  cache: SessionCache,
  store: CompleteStore,
  plan: CommitPlan,
  { interrupted, stops, reports }: EndEffects,
): Promise<CommitPlan> {
  const whole = stops ? await stopChildren(cache.id, store, plan) : plan
  if (!reports) return whole
  // The parent made this stop, or was stopped too, so it needs no report: a report would only start it again.
  if (interrupted && (await isStoppedByParent(store, cache)))
    return withSends(
      whole,
      (whole.write.sends ?? []).filter(({ event }) => !isReport(event)),
    )
  return setReportWait(cache, store, whole)
}

/** The session was stopped or closed, so reports of its children are not read any more. */
function isStopEvent(event: OwnerEvent): boolean {
  return (event.type === 'run.settled' && event.outcome.type === 'interrupted') || event.type === 'session.closed'
}

/** A report waits for others only while siblings are working that may report too. */
async function setReportWait(
  { id, session }: SessionCache,
  store: CompleteStore,
  plan: CommitPlan,
): Promise<CommitPlan> {
  if (await hasWorkingSibling(store, session.parent?.session ?? '', id)) return plan
  const sends = plan.write.sends?.map((send) =>
    isReport(send.event) ? { ...send, event: { ...send.event, report: 0 } } : send,
  )
  return withSends(plan, sends ?? [])
}

/** One card at a time: to read a card costs more than to find it. */
async function hasWorkingSibling(store: CompleteStore, parent: string, id: string): Promise<boolean> {
  const working = { parent, status: 'running', limit: 1 } as const
  const later = await store.list({ ...working, after: id })
  if (later.length > 0) return true
  const [first] = await store.list(working)
  return first !== undefined && first.session !== id
}

/** This session was stopped or closed: the children that work for it in the background stop too. */
async function stopChildren(id: string, store: CompleteStore, plan: CommitPlan): Promise<CommitPlan> {
  const { sends: told = [], expectedSeq } = plan.write
  const stops = await stopMessagesBelow(store, id, stopId(id, expectedSeq))
  const more = stops.filter(({ session }) => !told.some((send) => send.session === session))
  return more.length === 0 ? plan : withSends(plan, [...told, ...more])
}

/**
 * Messages that stop all sessions that work below this one, at every depth: a detached child that is stopped later
 * could end meanwhile, and its report would begin a run in a stopped session. A child that a call waits for is stopped
 * by its parent (`tells`), if that works: the call ends first. `stop` is the id of each message.
 */
export async function stopMessagesBelow(
  store: CompleteStore,
  id: string,
  stop: string,
  tells = false,
): Promise<readonly OutgoingMessage[]> {
  const sends: OutgoingMessage[] = []
  for await (const card of listChildren(store, id)) {
    const { session } = card
    const works = isChildWorking(card)
    if (works && (!tells || (await isDetached(store, session))))
      sends.push({ session, event: { type: 'user.interrupt', id: stop, mode: 'stop' } })
    sends.push(...(await stopMessagesBelow(store, session, stop, works)))
  }
  return sends
}

function withSends(plan: CommitPlan, sends: readonly OutgoingMessage[]): CommitPlan {
  const write = { ...plan.write, sends }
  const others = plan.writes.filter((each) => each !== plan.write)
  const woken = [...new Set([...plan.woken, ...sends.map(({ session }) => session)])]
  return { ...plan, write, writes: [write, ...others], woken }
}

/**
 * A call was handed out: to a new child, or to one that waits for an answer. Does nothing if a person or a program
 * answers it.
 */
function startChild(draft: CommitDraft, call: Call, known: ChildContext): void {
  const { id, session } = draft
  const { child, answers, orders, folder, options, fork, handoff } = outsideOf(call.proposal) ?? {}
  if (orders) return carryOutOrders(draft, call, orders, known)
  const task = taskFromArgs(call.proposal.args)
  if (answers) {
    const { session: to, call: question } = answers
    const event: InboxBody = {
      type: 'user.custom_tool_result',
      id: harnessId('answer', question, call.key),
      call: question,
      ok: true,
      content: task,
      by: `session:${id}`,
      parent: call.key,
    }
    draft.writesForRelatives().sends.push({ session: to, event })
  } else if (child !== undefined) {
    const more = { ...(folder && { folder }), ...(fork && { fork }), ...(handoff && { handoff }) }
    const order = { child, ...(options && { options }), ...more }
    const told = handoff ? `${HANDOFF_PREFACE} ${task}` : task
    const born = childId(id, call.key)
    draft
      .writesForRelatives()
      .births.push(...createChild({ id, session, key: call.key, born, order, task: told, ...known }))
  }
}

/** A call that a child works on was closed: the child is told to stop. */
function stopChild(draft: CommitDraft, call: Call): void {
  const { id } = draft
  const { births, sends } = draft.writesForRelatives()
  const to = childOnCall(id, call)
  if (to === null) return
  const event = { type: 'user.interrupt', id: harnessId('parent', call.key), mode: 'stop' } as const
  // A child that this same commit creates exists only after its creation, so the message comes after it.
  if (births.some(({ session }) => session === to)) {
    births.push({ session: to, lane: 'inbox', events: [event] })
  } else sends.push({ session: to, event })
}
