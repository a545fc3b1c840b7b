// The card: the one derived row of a session that indexes read. It can be rebuilt from the log at any time.
import type { CallKey, Frozen, Outcome } from './content.ts'
import type { Call } from './ledger.ts'
import type { Decision } from './next.ts'
import type { Session } from './session.ts'

export type Status = 'idle' | 'running' | 'rescheduling' | 'requires_action' | 'terminated'

// biome-ignore format: related fields share a line
export type Card = Frozen<{
  session: string; agent: string; root: string; status: Status
  /** When somebody should look: now while work is open (so a crash is found), later for a wake, null for nobody. */
  due: number | null
  seq: number; at: number; cost: number
  asks: readonly CallKey[]; waits: readonly CallKey[]; wakes: number; outcome: Outcome['type'] | null
}>

export function cardOf(session: string, s: Session, decision: Decision): Card {
  const open = s.run?.turn?.open ?? []
  return {
    session,
    agent: s.agent,
    root: s.root ?? session,
    status: statusOf(s, decision),
    due: decision.type === 'rest' ? decision.until : s.at,
    seq: s.seq,
    at: s.at,
    cost: s.cost,
    asks: keysOf(open, 'asked'),
    waits: keysOf(open, 'outside'),
    wakes: s.wakes.length,
    outcome: s.last?.type ?? null,
  }
}

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
