// The writes of the crash test's own hands: how a session is created, how a plan is sent, and, for the tests of its checks,
// how a log is written that no worker wrote.
import { systemProcesses } from '../../src/runtime/state/processes.ts'
import { resolveModel } from '../../src/models/resolve-model.ts'
import { cardOf } from '../../src/view/card.ts'
import type { InboxBody, OwnerBody, OwnerEvent } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { runtimeClock, systemRandom } from '../../src/runtime/state/machine.ts'
import type { Services } from '../../src/runtime/state/runtime-ports.ts'
import type { Agent } from '../../src/runtime/state/agent.ts'
import { LocalLive } from '../../src/live/local-live.ts'
import { Redactor } from '../../src/runtime/redact/redactor.ts'
import type { OwnerWrite, CompleteStore } from '../../src/ports/store.ts'
import { EMPTY, type Session } from '../../src/kernel/session.ts'
import type { Plan } from './plan.ts'
import { AGENT } from './workload.ts'

/** A worker's services: no hooks, no breakers, and nobody who watches. */
export function servicesOf(store: CompleteStore, agent: Agent): Services {
  return {
    store,
    live: new LocalLive(),
    clock: runtimeClock,
    random: systemRandom,
    processes: systemProcesses,
    code: 'crash',
    agent: () => agent,
    redactor: new Redactor({}),
    watchdog: null,
    model: resolveModel,
    choosable: [],
    schemas: new Map(),
    makeDeps: null,
    hooks: null,
    breaker: false,
    observer: null,
  }
}

/** How the roots of the trees that a person stops are named (deep.ts). */
export const DEEP = 'deep-'
/** How sessions are named that only their own process speaks to. */
export const KEPT = 'kept-'

export const CREATED: OwnerBody = { type: 'session.created', agent: AGENT, planner: 'model' }

export function creation(session: string, at: number): OwnerWrite {
  return ownerWrite(session, EMPTY, { at, epoch: 0, bodies: [CREATED] })
}

type Stamp = { readonly at: number; readonly epoch: number; readonly bodies: readonly OwnerBody[] }

export function ownerWrite(session: string, before: Session, { at, epoch, bodies }: Stamp): OwnerWrite {
  const events = bodies.map((body, i): OwnerEvent => ({ seq: before.seq + 1 + i, at, epoch, ...body }))
  const after = events.reduce(fold, before)
  const card = cardOf(session, after, next(after, { now: at, epoch }))
  return { session, lane: 'owner', epoch, expectedSeq: before.seq, events, card }
}

export function message(id: string, plan: Plan, when: 'next' | 'after' | 'now' = 'next'): InboxBody {
  return { type: 'user.message', id, parts: [{ type: 'text', text: JSON.stringify(plan) }], when }
}
