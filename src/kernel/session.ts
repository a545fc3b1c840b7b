// What `next` needs to know of a session: plain JSON, bounded by what is open, replaced and never mutated.
// Settled calls and shown messages leave it; the transcript (transcript.ts) keeps what a model must read.
import type { Frozen, Limits, ModelFailureClass, Outcome } from './content.ts'
import type { Event, Parent } from './event.ts'
import type { Said, Turn } from './ledger.ts'

/** Raise it when fold changes meaning: older snapshots are then ignored, and the log is folded anew. */
export const FOLD_VERSION = 6

export type Input = Frozen<{ seq: number; when: 'next' | 'after' | 'now'; patienceMs?: number }>
export type Wake = Frozen<{ seq: number; due: number; key: string; urgent?: true }>

// biome-ignore format: related fields share a line
export type Run = Frozen<{
  seq: number; limits: Limits
  /** The frozen toolset and instructions, by hash. */
  toolset: string; instructions: string
  requests: number; toolCalls: number; outputRetries: number; boosts: number
  toolRetries: Readonly<Record<string, number>>; exhausted: string | null
  /** Provider failures since the last reply; `fatal` when the last will not get better; `ends` when a strict hook failed. */
  failures: number; fatal: Frozen<{ class: ModelFailureClass; message: string }> | null; retryAt: number; losses: number; ends: string | null
  /** Why the provider did not answer last, and how long its tries and the waits between them took. Both end with a reply. */
  trouble: Frozen<{ class: ModelFailureClass; message: string }> | null; waitedMs: number
  /** Answers in a row that were cut after they began. */
  cuts: number
  /** Time spent working, without parked time and without the time nobody drove. `since` is null while parked. */
  activeMs: number; since: number | null; cost: number
  model: Frozen<{ seq: number; epoch: number; at: number; held: number }> | null
  turn: Turn | null
  /** Absent until somebody said more than a yes to one call. */
  said?: Said
}>

// biome-ignore format: related fields share a line
export type Session = Frozen<{
  seq: number; at: number; epoch: number
  created: boolean; closed: boolean; agent: string; parent: Parent | null
  /** Admitted, not yet promoted. */
  inputs: readonly Input[]
  /** What an earlier run left that no request has shown yet: results, notes, and inputs an interrupt swallowed. */
  unshown: readonly number[]
  /** Notes for the next request: they follow the results and precede the inputs. */
  notes: readonly number[]
  wakes: readonly Wake[]
  /** seq of an interrupt that has not taken effect yet, or 0. */
  stop: number; paused: boolean
  /** `began` is the seq of the last run's start, `last` how the last settled one ended. */
  run: Run | null; began: number; last: Outcome | null; cost: number
}>

const NOBODY = { created: false, closed: false, agent: '', parent: null, run: null, last: null, paused: false } as const
const NOTHING = { inputs: [], unshown: [], notes: [], wakes: [], stop: 0, began: 0, cost: 0 } as const
export const EMPTY: Session = { seq: 0, at: 0, epoch: 0, ...NOBODY, ...NOTHING }

/** Input that may join the run at its next request. */
export function steering(s: Session): readonly Input[] {
  return s.inputs.filter((input) => input.when !== 'after')
}

/** The inputs that the next run starts with: the oldest, and every later one that does not ask to come after. */
export function opening(s: Session): readonly number[] {
  return s.inputs.filter((input, i) => i === 0 || input.when !== 'after').map((input) => input.seq)
}

/** Waiting for a person or a provider, with nothing of ours in flight: this time does not count as active. */
export function parked(s: Session, run: Run): boolean {
  if (run.model) return false
  const open = run.turn?.open
  if (!open || open.length === 0) return s.paused || run.retryAt > 0
  for (const { state } of open) {
    if (state.type === 'running' || (!s.paused && state.type !== 'asked' && state.type !== 'outside')) return false
  }
  return true
}

// biome-ignore format: related fields share a line
export function newRun(e: Extract<Event, { type: 'run.started' }>): Run & { readonly turn: null } {
  const { seq, at, limits, toolset, instructions } = e
  return {
    seq, limits, toolset, instructions,
    requests: 0, toolCalls: 0, outputRetries: 0, boosts: 0, toolRetries: {}, exhausted: null,
    failures: 0, fatal: null, retryAt: 0, losses: 0, ends: null, trouble: null, waitedMs: 0, cuts: 0,
    activeMs: 0, since: at, cost: 0, model: null, turn: null,
  }
}
