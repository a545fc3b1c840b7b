// The present activity of a session, in one word. It is computed from the folded session; a card does not have it.
import type { Frozen } from '../kernel/content.ts'
import type { Session } from '../kernel/session.ts'
import { outsideCalls, childOnCall } from './pending-calls.ts'

/**
 * `queued`: a message waits to be read. `model`: a model is asked, or about to be. `tools`: calls run. `children`:
 * child sessions work for it. `waiting`: an open run waits, and `waitsFor` says for what. `idle`: no run is open.
 */
export type Phase = 'idle' | 'queued' | 'model' | 'tools' | 'children' | 'waiting' | 'closed'

export function sessionPhase(id: string, session: Session, rests: boolean): Phase {
  const { closed, run, inputs, deferred } = session
  if (closed) return 'closed'
  if (run === null) return inputs.length === 0 ? 'idle' : rests && !deferred ? 'waiting' : 'queued'
  const asked = run.turn?.open.some(({ state }) => state.type === 'asked') === true
  if (rests)
    return !asked && outsideCalls(session).some((call) => childOnCall(id, call) !== null) ? 'children' : 'waiting'
  return run.turn !== null && run.turn.open.length > 0 ? 'tools' : 'model'
}

export function runPhase({ closed, run, inputs }: Session, rests: boolean): RunPhase {
  if (closed) return 'resting'
  if (run === null) return !rests ? 'building' : inputs.length > 0 ? 'waiting' : 'resting'
  if (rests) return 'waiting'
  return run.turn !== null && run.turn.open.length > 0 ? 'tools' : 'model'
}

/**
 * `building`: a run is about to begin. `model`: a model is asked. `tools`: calls run. `waiting`: an open run waits for a person, a
 * child, a provider or a time. `resting`: there is nothing to do.
 */
export type RunPhase = 'building' | 'model' | 'tools' | 'waiting' | 'resting'

/** The last run of a session, and what it does. */
export type RunProgress = Frozen<{
  /** The seq of its `run.started`. Null before the first run. */
  run: number | null
  /** What the run does now. */
  phase: RunPhase
}>
