// Builds the card of a session: the one row that indexes read. Derived from the folded session alone, so a worker, a
// server or a page can build it again at any time. Pure.
import type { CallKey, Mutable } from '../kernel/content.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Decision } from '../kernel/next.ts'
import type { Session } from '../kernel/session.ts'
import type { Card, CardOutcome, Status } from '../ports/store.ts'
import { isForChild } from './pending-calls.ts'

/** The outcomes by which sessions can be listed. */
export const CARD_OUTCOMES: Readonly<Record<CardOutcome, true>> = {
  completed: true,
  interrupted: true,
  limit: true,
  halted: true,
  failed: true,
  unknown: true,
  quarantined: true,
}

/** The card of a session, derived from the session and from what happens next in it. */
export function cardOf(session: string, s: Session, decision: Decision): Card {
  const open = s.run?.turn?.open ?? []
  const due = decision.type === 'rest' ? decision.until : s.at
  const card: Mutable<Card> = {
    session,
    agent: s.agent,
    root: s.parent?.root ?? session,
    status: s.closed || decision.type === 'rest' ? statusOf(s, decision) : 'running',
    due,
    seq: s.seq,
    at: s.at,
    cost: s.cost,
    asks: open.length === 0 ? NONE : keysOf(open, 'asked'),
    waits: open.length === 0 ? NONE : keysOf(open, 'outside'),
    wakes: s.wakes.length,
    outcome: s.last?.type ?? null,
  }
  const { trouble, failures = 0 } = s.run ?? {}
  if (trouble)
    card.outage = { reason: `${trouble.class}: ${trouble.message}`.slice(0, REASON_CHARS_MAX), tries: failures }
  else if (s.deferred)
    card.outage = { reason: s.deferred.reason.slice(0, REASON_CHARS_MAX), tries: s.deferred.tries, begins: false }
  if (s.last?.type === 'halted') card.cause = s.last.reason.slice(0, REASON_CHARS_MAX)
  else if (s.last?.type === 'failed') card.cause = s.last.failure.message.slice(0, REASON_CHARS_MAX)
  else if (s.last?.type === 'limit') card.limit = s.last.limit
  if (s.unknown !== undefined) card.unknown = s.unknown
  if (s.held) card.held = true
  if (s.parent !== null) card.parent = s.parent.session
  if (s.parent?.task !== undefined) card.task = s.parent.task
  if (s.folder !== undefined) card.folder = s.folder
  if (s.labels !== undefined) card.labels = s.labels
  if (s.program !== undefined) card.program = s.program
  // A session with such a wake comes before other wakes of that time.
  if (s.wakes.some((wake) => wake.urgent && wake.due === due)) card.urgent = true
  return card
}

const REASON_CHARS_MAX = 500

const NONE: readonly CallKey[] = []

function keysOf(open: readonly Call[], state: Call['state']['type']): readonly CallKey[] {
  let keys: CallKey[] | null = null
  for (let i = 0; i < open.length; i++) {
    const { key, state: is } = open[i] as Call
    if (is.type === state) (keys ??= []).push(key)
  }
  return keys ?? NONE
}

function statusOf(s: Session, decision: Decision): Status {
  if (s.closed) return 'terminated'
  if (decision.type !== 'rest') return 'running'
  if (decision.waiting === 'retry') return 'rescheduling'
  if (decision.waiting === 'answer') return waitsForChildren(s) ? 'running' : 'requires_action'
  if (decision.waiting === 'approval' || decision.waiting === 'resume') return 'requires_action'
  return s.wakes.length > 0 || s.inputs.some(({ due }) => due !== undefined) ? 'rescheduling' : 'idle'
}

/**
 * True if it waits only for children: it goes on by itself when they have answered. A child's questions are on the
 * child's card.
 */
function waitsForChildren({ run }: Session): boolean {
  return (run?.turn?.open ?? []).every((call) => call.state.type !== 'outside' || isForChild(call))
}
