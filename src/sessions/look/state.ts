// Looking at one session without driving it: its state, its messages and its context. All of it is read from the store.
import type { Frozen, Labels, Metadata, Outcome } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { next, type Waiting } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { Status, Store } from '../../ports/store.ts'
import { cloneJson } from '../../effects/clone-json.ts'
import { cardOf } from '../../view/card.ts'
import type { Services } from '../../engine/wiring.ts'
import type { ContextFill } from '../../context/meter.ts'
import { type ContextReport, contextReport } from '../../context/report.ts'
import { startAt } from '../../effects/last-start.ts'
import { shownWindow } from '../../effects/window.ts'
import { childOf, headOf, heldText } from '../../riders/children/tree.ts'
import type { Spending } from '../../riders/money/usage.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import { waitsOf } from '../../view/pending.ts'
import { readTranscript, upcoming } from '../../view/history.ts'
import { usdOf } from '../../view/usd.ts'
import { contextAt, modelOf } from '../meter.ts'
import { pendingCalls, type PendingCall, pendingOf } from './pending.ts'
import { Collector } from '../result.ts'

/**
 * `queued`: a message waits to be taken up. `model`: a model is asked, or about to be. `tools`: calls run. `children`: child sessions
 * work for it. `waiting`: an open run waits, and `waitsFor` says for what. `idle`: no run is open.
 */
export type Phase = 'idle' | 'queued' | 'model' | 'tools' | 'children' | 'waiting' | 'closed'

/** One session as its log is now. */
export type SessionState = Frozen<{
  sessionId: string
  agent: string
  status: Status
  phase: Phase
  /** Null while it works. `answer` is also that of its children. */
  waitsFor: Waiting | null
  /** When it looks again by itself: a retry, a wake, a question that expires. */
  until: number | null
  /** Why it waits, where there is more to say: a provider that is away, an import that is held, a worker that failed. */
  reason: string | null
  /** How its last settled run ended; null before. */
  outcome: Outcome | null
  /** What the last run said last; of a halted one why it was halted. */
  text: string
  /** Of the last run, with the children that its calls started. */
  usage: Spending['usage']
  /** How full its context is. Null: no reply of late was counted. */
  context: ContextFill | null
  /** Of the session in all its runs: alone, and with the children below it. */
  costUsd: number
  treeCostUsd: number
  pending: readonly PendingCall[]
  /** How many messages wait to be read. */
  inputs: number
  metadata: Metadata
  labels: Labels
  /** The last event, and its time. */
  seq: number
  at: number
}>

export async function stateOf(services: Services, id: string): Promise<SessionState> {
  const { store } = services
  const session = await headOf(store, id)
  const card = await store.card(id)
  const decision = next(session, { now: store.now(), epoch: session.epoch })
  const rest = decision.type === 'rest' ? decision : null
  const { status, outage } = cardOf(id, session, decision)
  const [cost] = card === null ? [] : await withTreeCost(store, [card])
  const last = await lastRun(store, id, session)
  const { agent, cost: own, inputs, metadata = {}, labels = {}, seq, at } = session
  // A copy: a store in memory hands out what the worker goes on with.
  return cloneJson({
    sessionId: id,
    agent,
    status,
    phase: phaseOf(id, session, rest !== null),
    waitsFor: rest?.waiting ?? null,
    until: rest?.until ?? null,
    reason: session.held ? heldText(id) : (outage?.reason ?? card?.trouble?.reason ?? null),
    outcome: session.last,
    text: last.text,
    usage: last.usage,
    context: await contextAt(services, { session: id, agent, seq }),
    costUsd: usdOf(own),
    treeCostUsd: cost?.treeCostUsd ?? usdOf(own),
    pending: await pendingCalls(store, await pendingOf(store, id)),
    inputs: inputs.length,
    metadata,
    labels,
    seq,
    at,
  })
}

/** What a model would read if it were asked now. */
export async function messagesOf(store: Store, id: string): Promise<readonly Message[]> {
  const session = await headOf(store, id)
  const { seq } = session
  const { transcript } = await readTranscript(store, { id, upTo: seq })
  const shows = upcoming(session)
  transcript.take({ seq: seq + 1, at: 0, epoch: 0, type: 'model.started', shows })
  return transcript.messages
}

/** What the next request holds. */
export async function contextOf(services: Services, id: string): Promise<ContextReport> {
  const { store } = services
  const { agent, began } = await headOf(store, id)
  const model = await modelOf(services, agent, await chosenIn(services, id, began))
  if (model === 'workflow')
    throw new Fault('invalid_input', `Session ${id} is a workflow: no model reads it, so it has no context.`)
  return contextReport(store, id, await shownWindow(services, model))
}

/** The options of the last run, by hash, if it had any. */
async function chosenIn({ store }: Services, id: string, began: number): Promise<string | undefined> {
  return began === 0 ? undefined : (await startAt(store, id, began))?.options
}

function phaseOf(id: string, session: Session, rests: boolean): Phase {
  const { closed, run, inputs, deferred } = session
  if (closed) return 'closed'
  if (run === null) return inputs.length === 0 ? 'idle' : rests && !deferred ? 'waiting' : 'queued'
  const asked = run.turn?.open.some(({ state }) => state.type === 'asked') === true
  if (rests) return !asked && waitsOf(session).some((call) => childOf(id, call) !== null) ? 'children' : 'waiting'
  return run.turn !== null && run.turn.open.length > 0 ? 'tools' : 'model'
}

const PAGE = 1_000

async function lastRun(
  store: Store,
  id: string,
  { began, seq }: Session,
): Promise<{ readonly text: string; readonly usage: Spending['usage'] }> {
  const collector = new Collector(id, null)
  for (let after = Math.max(0, began - 1); after < seq; ) {
    const { events } = await store.read(id, after, Math.min(PAGE, seq - after))
    for (const event of events) collector.take(event)
    if (events.length === 0) break
    after += events.length
  }
  await collector.countChildren(store)
  return collector.result([], { waiting: 'nothing', until: null })
}
