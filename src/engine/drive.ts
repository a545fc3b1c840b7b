// The driver: make wanted things happen, and write down what happened. One attempt, from its claim to its rest.
// D1: nothing starts before its intent is on disk.   D2: what landed is written, even if it is no longer wanted.
// D3: one suspension point while nothing is to be written (bell.wait).   D4: a lost lease ends the attempt at once.
import { Fault } from '../kernel/failure.ts'
import type { Waiting } from '../kernel/next.ts'
import { Bell } from './bell.ts'
import { type Broke, byTheStore, type CommitPlan, planCommit, type Job, leaves } from './commit.ts'
import { Flights } from './flights.ts'
import type { StopSignal } from './leases.ts'
import { sleep } from './sleep.ts'

export type Ended =
  | { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
  | { readonly type: 'lost' }
  | { readonly type: 'stopped' }

export async function drive(job: Job, stopSignal: StopSignal): Promise<Ended> {
  const { cache, store } = job
  const bell = new Bell(job.clock)
  const flights = new Flights(job.flights, bell.ring)
  let stale = false
  const notice: Parameters<typeof store.watch>[1] = (news) => {
    stale ||= news === null || news.some((event) => event.epoch === 0)
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
      if (stopSignal.reason === 'stopped') flights.abortAll('interrupted', cache.now())
      const { decision, write: written } = await write(job, flights, stopSignal)
      // One look at the clock for all of this pass: it is the attempt's, and a pass takes no time.
      const at = job.clock.now()
      if (stopSignal.reason === 'lost' || job.leases.lapsed(at)) return { type: 'lost' }
      if (stopSignal.reason === 'stopped' && flights.size === 0) {
        if (written.release) return { type: 'stopped' }
        // It was told to stop while it wrote: the lease is given back before it ends.
        continue
      }
      if (decision.type === 'rest') {
        // What was given back is left, and nothing else: the commit took its time, and the clock may say otherwise by now.
        if (written.release) return { ...byTheStore(job, decision), type: 'rested' }
        if (leaves(job, decision)) continue
      }
      const now = at + cache.aheadMs
      const held = job.leases.held(at)
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

/** Commits what landed and all that `next` records on top, in one write, and returns it with what must be happening then. */
async function write(job: Job, flights: Flights, stopSignal: StopSignal): Promise<CommitPlan> {
  const { cache, store, clock } = job
  let plan = planCommit(job, flights, stopSignal, null)
  for (let giveUpAt = 0, asked = false, told = false; ; ) {
    if (plan.events.length === 0 && !plan.write.release) break
    try {
      if (!asked) for (const rider of job.riders) if (rider.complete) plan = (await rider.complete(plan)) ?? plan
      asked = true // From here on its answer may get lost: then the very same is written again.
      await store.commit(plan.writes)
      job.renewed(plan.at)
      for (const event of plan.events) cache.keep(event)
      job.committed(plan)
      if (plan.write.snapshot) cache.snapshotSeq = plan.write.snapshot.seq
      break
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const { code } = error
      giveUpAt ||= plan.at + job.patienceMs
      if (code !== 'store_busy') asked = false
      if (code === 'conflict' || (code === 'over_budget' && !plan.broke)) {
        // The uncommitted is dropped, the log is read again, and all is decided anew. What landed stays in hand.
        const broke = code === 'over_budget' && !(await flights.recounted()) ? await brokeBy(error) : null
        await cache.open()
        plan = planCommit(job, flights, stopSignal, broke)
      } else if ((code === 'disk_full' || code === 'store_busy') && clock.now() < giveUpAt) {
        // Another worker may have it: this one can write nothing more, or has written all it had to.
        if (stopSignal.reason === 'lost') throw new Fault('lease_lost', error.message)
        if (code === 'disk_full') {
          // Nothing it could still write would get through: a process that is told to end does not wait for room.
          if (stopSignal.reason === 'stopped') throw error
          if (!told) job.waitsForRoom()
          told = true
        }
        await sleep(clock, 250)
      } else throw error
    }
  }
  flights.written(plan.landed)
  return plan
}

async function brokeBy(error: Fault): Promise<Broke> {
  const charges = await import('../riders/money/charges.ts')
  return charges.brokeBy(error)
}
