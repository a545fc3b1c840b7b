// The state of a session as people and programs ask for it, computed from the folded log and what was read beside it.
// A harness and a client of a server compute it by the same function.
import type { Frozen, Labels, Metadata, Outcome } from '../../kernel/content.ts'
import { next, type Waiting } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { Status, Store } from '../../ports/store.ts'
import type { ContextFill } from '../../context/request-tokens.ts'
import { ResultCollector } from '../../runtime/state/run-result.ts'
import { type Cost, costOf, type Spending } from '../../runtime/state/run-usage.ts'
import { cardOf } from '../../view/card.ts'
import { type Phase, sessionPhase } from '../../view/session-phase.ts'
import { importHeldText } from '../../view/session-program.ts'
import type { PendingCall } from './pending.ts'

/** One session as its log describes it now. */
export type SessionState = Frozen<{
  /** The id of the session. */
  sessionId: string
  /** The name of its agent. */
  agent: string
  /** What the session does, as its card says. */
  status: Status
  /** What its open run does now. */
  phase: Phase
  /** Null while it works. `answer` also covers its children's questions. */
  waitsFor: Waiting | null
  /** The time of its next look by itself: a retry, a wake, the expiry of a question. */
  until: number | null
  /**
   * The reason for waiting, if more is known: a provider that is unavailable, an import that is held, a worker that
   * failed.
   */
  reason: string | null
  /** The outcome of its last settled run; null before the first. */
  outcome: Outcome | null
  /** The last text of the last run; for a halted run the reason. */
  text: string
  /** The usage of the last run, with the children that its calls started. */
  usage: Spending['usage']
  /** How full its context is. Null: no recent reply was counted. */
  context: ContextFill | null
  /** The cost of all its runs. */
  cost: Cost
  /** The calls that wait for people in it and in the sessions below it. */
  pending: readonly PendingCall[]
  /** The number of unread messages. */
  inputs: number
  /** The host's metadata of the session. Empty if there is none. */
  metadata: Metadata
  /** The labels of the session. Empty if there are none. */
  labels: Labels
  /** The seq of the last event. */
  seq: number
  /** The time of the last event, in ms since 1970. */
  at: number
}>

/** The text of the last run, and its usage with the children that its calls started. */
export type LastRunText = { readonly text: string; readonly usage: Spending['usage'] }

/** `trouble`: why workers leave the session alone, as its card says. `treeCost`: with the children below it, in millionths of a dollar. */
export type StateParts = {
  readonly id: string
  readonly session: Session
  readonly now: number
  readonly trouble: string | undefined
  readonly treeCost: number | undefined
  readonly last: LastRunText
  readonly context: ContextFill | null
  readonly pending: readonly PendingCall[]
}

export function buildSessionState({ id, session, now, trouble, ...parts }: StateParts): SessionState {
  const decision = next(session, { now, epoch: session.epoch })
  const rest = decision.type === 'rest' ? decision : null
  const { status, outage } = cardOf(id, session, decision)
  const { agent, cost: own, inputs, metadata = {}, labels = {}, seq, at } = session
  return {
    sessionId: id,
    agent,
    status,
    phase: sessionPhase(id, session, rest !== null),
    waitsFor: rest?.waiting ?? null,
    until: rest?.until ?? null,
    reason: session.held ? importHeldText(id) : (outage?.reason ?? trouble ?? null),
    outcome: session.last,
    text: parts.last.text,
    usage: parts.last.usage,
    context: parts.context,
    cost: costOf(parts.treeCost ?? own, own),
    pending: parts.pending,
    inputs: inputs.length,
    metadata,
    labels,
    seq,
    at,
  }
}

const PAGE = 1_000

export async function readLastRun(log: Pick<Store, 'read'>, id: string, { began, seq }: Session): Promise<LastRunText> {
  const collector = new ResultCollector(id, null)
  for (let after = Math.max(0, began - 1); after < seq; ) {
    const { events } = await log.read(id, after, Math.min(PAGE, seq - after))
    for (const event of events) collector.take(event)
    if (events.length === 0) break
    after += events.length
  }
  await collector.countChildren(log)
  return collector.result([], { waiting: 'nothing', until: null })
}
