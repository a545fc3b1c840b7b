// The driver: it performs the effects that `next` asks for and writes down what happened. It runs one attempt, from its
// claim to its rest.
// D1: nothing starts before its intent is on disk.   D2: a landing is written even if its effect is no longer wanted.
// D3: there is one suspension point while nothing is to be written (bell.wait).   D4: a lost lease ends the attempt at
// once.
import { Fault } from '../../kernel/failure.ts'
import type { Effect, Waiting } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import { leavesSession, shiftByStore } from '../commit/plan-commit.ts'
import { writeCommit, type WritingAttempt } from '../commit/write-commit.ts'
import type { StopSignal } from '../state/effect.ts'
import { Bell } from './bell.ts'
import { type FlightOptions, Flights } from './flights.ts'
import type { Leases } from './leases.ts'

export type Attempt = WritingAttempt & {
  readonly flights: FlightOptions
  /** Whether the session is still ours. */
  readonly leases: Pick<Leases, 'held' | 'lapsed'>
}

export type AttemptEnd =
  | { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
  | { readonly type: 'lost' }
  | { readonly type: 'stopped' }

export async function driveAttempt(attempt: Attempt, stopSignal: StopSignal): Promise<AttemptEnd> {
  const { cache, store } = attempt
  const bell = new Bell(attempt.clock)
  const flights = new Flights(attempt.flights, bell.ring)
  let stale = false
  const notice: Parameters<typeof store.watch>[1] = (news) => {
    if (news === null) stale = true
    else for (let i = 0; i < news.length; i++) if (news[i]?.epoch === 0) stale = true
    if (stale) bell.ring()
  }
  const unwatch = store.watch(cache.id, notice, 'inbox')
  stopSignal.ring = bell.ring
  try {
    for (;;) {
      if (stale) {
        stale = false
        await cache.catchUp()
      }
      if (stopSignal.reason === 'stopped')
        flights.abortAll('interrupted', cache.now(), (effect) => leavesNode(cache.session, effect))
      const { decision, write } = await writeCommit(attempt, flights, stopSignal)
      // The clock is read once for this whole pass, which belongs to the attempt and takes no time.
      const at = attempt.clock.now()
      const held = attempt.leases.held(at)
      if (stopSignal.reason === 'lost' || (!held && attempt.leases.lapsed(at))) return { type: 'lost' }
      if (stopSignal.reason === 'stopped' && flights.size === 0) {
        if (write.release) return { type: 'stopped' }
        // The stop came during the write, so the next pass gives the lease back before the attempt ends.
        continue
      }
      if (decision.type === 'rest') {
        // Only a session that was given back is left. The commit took time, so the clock may give another answer by
        // now.
        if (write.release) return { ...shiftByStore(attempt, decision), type: 'rested' }
        if (leavesSession(attempt, decision)) continue
      }
      const now = at + cache.aheadMs
      if (stopSignal.reason === null && decision.type === 'perform') flights.reconcile(decision, now, held)
      const until = decision.type === 'record' ? null : decision.until
      const next = Math.min(flights.tick(now, held), until ?? Number.POSITIVE_INFINITY)
      await bell.wait(next - cache.aheadMs)
    }
  } catch (error) {
    if (error instanceof Fault && error.code === 'lease_lost') return { type: 'lost' }
    throw error
  } finally {
    unwatch()
    bell.close()
    flights.abandonAll('lost')
  }
}

/**
 * A node of a graph that was stopped with its worker would fail the graph, which no model is there to judge. What may
 * run again is repeated by the next worker, as after a kill.
 */
function leavesNode({ planner = '' }: Session, effect: Effect): boolean {
  return planner.startsWith('graph:') && effect.type === 'run' && effect.call.proposal.effect !== 'once'
}
