// The card of a session, derived: the one row that indexes read. It can be made again from the log at any time.
import type { CallKey, Mutable } from '../kernel/content.ts'
import type { Call } from '../kernel/ledger.ts'
import type { Decision } from '../kernel/next.ts'
import type { Card, Status } from '../kernel/ports.ts'
import type { Session } from '../kernel/session.ts'

export function cardOf(session: string, s: Session, decision: Decision): Card {
  const open = s.run?.turn?.open ?? []
  const due = decision.type === 'rest' ? decision.until : s.at
  const card: Mutable<Card> = {
    session,
    agent: s.agent,
    root: s.parent?.root ?? session,
    status: statusOf(s, decision),
    due,
    seq: s.seq,
    at: s.at,
    cost: s.cost,
    asks: keysOf(open, 'asked'),
    waits: keysOf(open, 'outside'),
    wakes: s.wakes.length,
    outcome: s.last?.type ?? null,
  }
  const { trouble, failures = 0 } = s.run ?? {}
  if (trouble)
    card.outage = { reason: `${trouble.class}: ${trouble.message}`.slice(0, REASON_CHARS_MAX), tries: failures }
  else if (s.deferred)
    card.outage = { reason: s.deferred.reason.slice(0, REASON_CHARS_MAX), tries: s.deferred.tries, begins: false }
  if (s.held) card.held = true
  // What is looked at then comes before other wakes of that time.
  if (s.wakes.some((wake) => wake.urgent && wake.due === due)) card.urgent = true
  return card
}

const REASON_CHARS_MAX = 500

const NONE: readonly CallKey[] = []

function keysOf(open: readonly Call[], state: Call['state']['type']): readonly CallKey[] {
  if (!open.some((call) => call.state.type === state)) return NONE
  return open.filter((call) => call.state.type === state).map((call) => call.key)
}

function statusOf(s: Session, decision: Decision): Status {
  if (s.closed) return 'terminated'
  if (decision.type !== 'rest') return 'running'
  if (decision.waiting === 'retry') return 'rescheduling'
  if (decision.waiting === 'approval' || decision.waiting === 'answer' || decision.waiting === 'resume')
    return 'requires_action'
  return s.wakes.length > 0 ? 'rescheduling' : 'idle'
}
