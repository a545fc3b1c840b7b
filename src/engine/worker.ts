// The worker: holds leases and drives sessions, one attempt a session at a time. It decides nothing about a session;
// it only looks when asked (`wake`) or when something is due (`work`: due-loop.ts).
import { Fault } from '../kernel/failure.ts'
import type { Effect, Waiting } from '../kernel/next.ts'
import type { Claim, Taking } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import {
  callable,
  type Check,
  type Checks,
  clockCheck,
  count,
  flag,
  given,
  ms,
  needed,
  optionsOf,
  wait,
} from '../options.ts'
import { commit } from './again.ts'
import { type SessionCache, SessionCaches } from './session-cache.ts'
import { isStoreId } from '../stores/plan/id.ts'
import { Leases, type StopSignal } from './leases.ts'
import { Peers, selfOf } from './peers.ts'
import { Sleepers } from './sleep.ts'
import type { CommitPlan, Job } from './commit.ts'
import { drive, type Ended } from './drive.ts'
import { Heads, seenAt } from '../riders/children/tree.ts'
import type { Abandon, FlightOptions, Landing } from './flights.ts'
import { ridersFor } from '../riders/riders.ts'
import { abandon, deadlineOf, lateResult, shownText, TOO_LONG } from '../effects/outcomes.ts'
import { checkWork, DueLoop, type LookResult, type Worked, type WorkOptions } from './due-loop.ts'
import { Performer } from '../effects/perform.ts'
import { isElsewhere, lostTrouble, troubleOf } from './backoff.ts'
import { maybeOwn } from './program.ts'
import type { Services } from './wiring.ts'

export type WorkerOptions = {
  /**
   * The name its leases have. Two living processes with one name share their leases: either takes a session from the other at once, and
   * what the other had in flight there is lost, as after a crash. Epochs fence it, so nothing is written twice.
   */
  readonly id: string
  /** The host chose the name, so other processes may have it too. */
  readonly named?: boolean
  /** `false`: it only says how a session stands, and drives none. */
  readonly drives?: boolean
  readonly leaseMs?: number
  readonly graceMs?: number
  readonly lingerMs?: number
  readonly patienceMs?: number
  /** Its timers keep no process alive. Default: the clock of the services. */
  readonly alarm?: Clock
  /** How many sessions this worker drives at once when it looks for due ones itself. */
  readonly width?: number
  /** After so many attempts in a row that failed or were lost without progress, the session is left alone until a message or a wake. */
  readonly attemptsMax?: number
  /** Called with what an attempt threw: a Fault of the store, or a Bug. */
  readonly onError?: (session: string, error: unknown) => void
}

const isId: Check = (value) =>
  isStoreId(value) ? null : 'must be a text of 1 to 512 well-formed characters. Leave it out for a name of its own'
export const WORKER_OPTIONS: Checks<Partial<Omit<WorkerOptions, 'named' | 'drives' | 'alarm'>>> = {
  id: isId,
  leaseMs: wait,
  graceMs: ms,
  lingerMs: ms,
  patienceMs: ms,
  width: count(1),
  attemptsMax: count(1),
  onError: callable,
}
const checkWorker = optionsOf<WorkerOptions>('new Worker', {
  ...WORKER_OPTIONS,
  id: needed(isId),
  named: flag,
  drives: flag,
  alarm: clockCheck,
})

export type Looked =
  | { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
  /** Another worker drives it. */
  | { readonly type: 'contended' }
  /** It belongs to another program, whose workers drive it: `why` says which. */
  | Elsewhere
  | { readonly type: 'lost' }
  | { readonly type: 'stopped' }

export type Elsewhere = { readonly type: 'elsewhere'; readonly why: string }

/** A caller that waits for a session to rest; `wake` makes it look again. */
export type Reader = { wake: () => void }

/** What the due loop must know of it, and what came of it; null if that was an error, which `onError` was told. */
export type Look = { readonly seen: LookResult; readonly looked: Looked | null }

type Attempt = {
  readonly stopSignal: StopSignal
  epoch: number
  again: boolean
  /** It was asked for, or found to be due; `alone` if it failed before. */
  why: 'asked' | 'found' | 'alone'
  /** It failed before, and comes back alone. */
  later: boolean
  /** It failed, and the session says so. */
  noted: boolean
  /** What it drives, once that is read. */
  cache: SessionCache | null
  readonly ended: Promise<Looked>
}

const DEFAULTS = {
  named: false,
  drives: true,
  leaseMs: 30_000,
  graceMs: 5_000,
  lingerMs: 30_000,
  patienceMs: 15 * 60_000,
  width: 64,
  attemptsMax: 5,
}
const CANNOT_TAKE = 'The store has no `take`, or `worker: { id }` names this worker. Leave `take` of the DueLoop out.'
const LEFT_ALONE: Looked = { type: 'rested', waiting: 'nothing', until: null }

const WAITS_FOR_ROOM = 'The disk is full. The run waits for room, and goes on by itself when there is some.'

export class Worker {
  readonly heads: Heads
  readonly id: string
  /** Sessions it asked for, and those of them that it asked for in vain: another worker had them. */
  readonly claims = { asked: 0, vain: 0 }
  readonly #services: Services
  readonly #options: Required<Omit<WorkerOptions, 'id' | 'onError'>> & Pick<WorkerOptions, 'onError'>
  readonly #performer: Performer
  readonly #attempts = new Map<string, Attempt>()
  readonly #caches: SessionCaches
  readonly #readers = new Set<Reader>()
  #lastLeft = (): void => {}
  /** Those it drove that wait for a provider longer than it lingers. */
  readonly #sleepers: Sleepers
  readonly #leases: Leases
  readonly #peers: Peers
  #closing = false
  #dueLoop: DueLoop | null = null

  constructor(services: Services, options: WorkerOptions) {
    checkWorker(options)
    this.id = options.id
    this.#services = services
    this.#performer = new Performer(services)
    this.heads = new Heads(services.store)
    this.#options = { ...DEFAULTS, alarm: services.clock, ...given(options) }
    const { store, clock } = services
    const { alarm, leaseMs, named } = this.#options
    this.#caches = new SessionCaches(services)
    this.#leases = new Leases({ worker: options.id, leaseMs, store, clock, driven: this.#attempts, named })
    this.#peers = new Peers({ store, clock, leaseMs, processes: services.processes })
    this.#sleepers = new Sleepers(clock, alarm, (session) => void this.look(session, false))
  }

  get drives(): boolean {
    return this.#options.drives
  }

  get lingerMs(): number {
    return this.#options.lingerMs
  }

  get closed(): boolean {
    return this.#closing
  }

  /** One heartbeat: a write like any other, which changes no session. */
  async beat(): Promise<void> {
    await this.#services.store.extend(this.id, this.#options.leaseMs)
  }

  /** Look at a session, and drive it until it rests. Coalescing: a look during an attempt is part of that attempt. */
  wake(session: string): Promise<Looked> {
    if (this.#closing) return Promise.resolve({ type: 'stopped' })
    if (!this.#options.drives) return this.#seen(session)
    const running = this.#attempts.get(session)
    if (!running) return this.#begin(session, 'asked').ended
    running.again = true
    running.why = 'asked'
    return running.ended
  }

  async #seen(session: string): Promise<Looked> {
    const { store } = this.#services
    await store.open()
    return seenAt(this.heads, session, { now: store.now() }, this.#options.lingerMs)
  }

  #begin(session: string, why: Attempt['why'], claim: Claim | null = null): Attempt {
    const stopSignal: StopSignal = { reason: null, ring: () => {} }
    const ended = this.#attempt(session, stopSignal, claim).finally(() => this.#left(session))
    const attempt: Attempt = { stopSignal, epoch: 0, again: false, why, later: false, noted: false, cache: null, ended }
    this.#attempts.set(session, attempt)
    return attempt
  }

  /** Drive whatever becomes due, until `close`. */
  start(): void {
    if (!this.#dueLoop) this.work().catch(() => {})
  }

  /** Drive whatever becomes due. Sleeps exactly to the next due time. */
  async work(options: WorkOptions = {}): Promise<Worked> {
    checkWork(options)
    const { width = this.#options.width, idleMs = Number.POSITIVE_INFINITY, looksMax, agents, signal } = options
    if (this.#dueLoop) throw new Fault('invalid_input', 'This worker looks for due sessions already.')
    if (this.#closing || signal?.aborted) return { type: 'stopped', looks: 0 }
    const { store, clock } = this.#services
    const dueLoop = new DueLoop({
      store,
      clock,
      width,
      idleMs,
      peers: this.#peers,
      ...(looksMax === undefined ? {} : { looksMax }),
      ...(agents === undefined ? {} : { agents }),
      ...(this.#canTake ? { take: (wanted) => this.#takeOwn(wanted) } : {}),
      driving: () => this.#attempts.size,
      look: async (session, alone, claim) => (await this.look(session, alone, claim)).seen,
      report: (error) => this.#options.onError?.('', error),
    })
    this.#dueLoop = dueLoop
    const stop = (): void => dueLoop.stop()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      return await dueLoop.done
    } finally {
      signal?.removeEventListener('abort', stop)
      this.#dueLoop = null
    }
  }

  /** As the due loop looks at what is due: a session that failed too often is left alone. Never rejects. */
  async look(session: string, alone: boolean, claim?: Claim): Promise<Look> {
    const running = claim ? await this.#outlasting(session, claim) : this.#attempts.get(session)
    if (this.#closing && !(claim && running)) {
      if (claim) await this.#services.store.release(session, claim.epoch).catch(() => {})
      return { seen: 'seen', looked: { type: 'stopped' } }
    }
    const attempt = running ?? this.#begin(session, alone ? 'alone' : 'found', claim)
    try {
      const looked = await attempt.ended
      // The store does not know that it is another program's: this worker remembers it, and looks ever more seldom.
      if (looked.type === 'elsewhere') return { seen: 'failed', looked }
      return { seen: attempt.later ? 'later' : 'seen', looked }
    } catch (error) {
      this.#options.onError?.(session, error)
      return { seen: attempt.noted ? 'seen' : 'failed', looked: null }
    }
  }

  /** Not under a name that other processes may have: what was taken and not answered could not be told from what these drive. */
  get #canTake(): boolean {
    return this.#services.store.take !== undefined && !this.#options.named
  }

  /** Claims due sessions, for `look`. */
  async take(wanted: Omit<Taking, 'process'>): Promise<ReadonlyMap<string, Claim>> {
    if (!this.#canTake) throw new Fault('invalid_input', CANNOT_TAKE)
    if (this.#closing) return new Map()
    const { store, clock } = this.#services
    const begun = clock.now()
    const self = selfOf(this.#services)
    const whole = self ? { ...wanted, process: self } : wanted
    const taken = (await store.take?.(this.id, this.#options.leaseMs, whole)) ?? new Map<string, Claim>()
    if (taken.size > 0) this.#leases.renew(begun + this.#options.leaseMs)
    this.claims.asked += taken.size
    return taken
  }

  /** The same for its own due loop. Null for one of those named that is another program's, as its card says: it is not claimed. */
  async #takeOwn({ among, ...wanted }: Omit<Taking, 'process'>): Promise<ReadonlyMap<string, Claim | null>> {
    if (among === undefined) return this.take(wanted)
    const { store } = this.#services
    const cards = await Promise.all(among.map((session) => store.card(session)))
    const own = among.filter((_, i) => {
      const card = cards[i]
      return card && maybeOwn(this.#services, card)
    })
    const taken = new Map<string, Claim | null>(own.length > 0 ? await this.take({ ...wanted, among: own }) : [])
    for (const [i, session] of among.entries()) if (cards[i] && !own.includes(session)) taken.set(session, null)
    return taken
  }

  /**
   * An attempt of this worker that claimed the session after this claim was made. One that claimed before it has lost its lease: it can
   * write nothing more, and is waited for.
   */
  async #outlasting(session: string, claim: Claim): Promise<Attempt | undefined> {
    for (;;) {
      const running = this.#attempts.get(session)
      if (!running) return undefined
      if (running.epoch !== 0 && running.epoch < claim.epoch) {
        running.stopSignal.reason ??= 'lost'
        running.stopSignal.ring()
      }
      await running.ended.catch(() => {})
      if (running.epoch > claim.epoch) return running
    }
  }

  /** Abort what is in flight, write down what it came to, and give every session back. */
  async close(): Promise<void> {
    this.#closing = true
    const patrolled = this.#dueLoop?.done
    this.#dueLoop?.stop()
    for (const { stopSignal } of this.#attempts.values()) {
      stopSignal.reason ??= 'stopped'
      stopSignal.ring()
    }
    await Promise.allSettled([...this.#attempts.values()].map((attempt) => attempt.ended))
    this.#leases.stop()
    this.#sleepers.stop()
    await patrolled
    for (const reader of this.#readers) reader.wake()
    if (this.#readers.size === 0) return
    await new Promise<void>((resolve) => {
      this.#lastLeft = resolve
    })
  }

  /** The store is not closed under a reader: closing wakes all readers, and waits until they have left. */
  attend(): Reader {
    const reader = { wake: () => {} }
    this.#readers.add(reader)
    return reader
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#lastLeft()
  }

  #rested(session: string, { waiting, until }: Extract<Ended, { type: 'rested' }>): void {
    this.#services.observer?.rested(session, waiting)
    const { clock, store } = this.#services
    if (waiting === 'retry' && until !== null) this.#sleepers.add(session, clock.now() + until - store.now())
    else this.#sleepers.delete(session)
  }

  /** A worker that drives nothing has no heartbeat, and keeps no process alive. */
  #left(session: string): void {
    this.#attempts.delete(session)
    this.#dueLoop?.ring()
    if (this.#attempts.size === 0) this.#leases.stop()
  }

  async #attempt(session: string, stopSignal: StopSignal, taken: Claim | null): Promise<Looked> {
    const { store, live } = this.#services
    for (let given = taken; ; given = null) {
      // Followers look for the address when the first event of this attempt is committed.
      await live.serve(this.id, this.#options.leaseMs)
      const claim = given ?? (await this.#claim(session))
      if (!claim) return { type: 'contended' }
      const attempt = this.#attempts.get(session)
      if (attempt) attempt.epoch = claim.epoch
      this.#leases.beat()
      if (attempt && (await this.#leaves(session, claim, attempt))) {
        if (!attempt.again || this.#closing) return LEFT_ALONE
        // A caller asked for it while it was being given back: for a caller it is driven.
        attempt.again = false
        continue
      }
      const ended = await this.#drive(session, claim, stopSignal)
      if (ended.type === 'elsewhere') return ended
      if (ended.type === 'rested') this.#rested(session, ended)
      await this.#services.observer?.told(session)
      if (ended.type !== 'rested' || !attempt?.again || this.#closing) return ended
      // A look was asked for while this attempt was ending: go on only if there is something to do.
      attempt.again = false
      const card = await store.card(session)
      const due = card?.due ?? null
      if (due === null || due > store.now()) return ended
    }
  }

  /** One that is held by a process of this host that is gone is free at once. */
  async #claim(session: string): Promise<Claim | null> {
    const { store, clock } = this.#services
    const { leaseMs } = this.#options
    const claim = async (): Promise<Claim | null> => {
      const begun = clock.now()
      this.#leases.asked(session)
      const got = await store.claim(session, this.id, leaseMs, selfOf(this.#services))
      this.#leases.answered(session)
      this.claims.asked += 1
      if (got) this.#leases.renew(begun + leaseMs)
      else this.claims.vain += 1
      return got
    }
    return (await claim()) ?? ((await this.#peers.look()).ended > 0 ? claim() : null)
  }

  /** Whether a session that failed before is given back untouched: it failed too often, or must be looked at alone. */
  async #leaves(session: string, claim: Claim, attempt: Attempt): Promise<boolean> {
    const over = claim.failed >= this.#options.attemptsMax
    attempt.later = attempt.why === 'found' && claim.failed > 0 && !over
    if (attempt.why === 'asked' || !(over || attempt.later)) return false
    await this.#services.store.release(session, claim.epoch, over ? lostTrouble(claim) : undefined)
    return true
  }

  async #drive(session: string, claim: Claim, stopSignal: StopSignal): Promise<Ended | Elsewhere> {
    const { store, clock } = this.#services
    const { graceMs, lingerMs, patienceMs, leaseMs } = this.#options
    const { epoch } = claim
    let wrote = false
    let driven: SessionCache | null = null
    try {
      const cache = await this.#caches.open(session, claim)
      driven = cache
      const why = await this.#performer.whyLeft(cache)
      if (why !== null) return await this.#leaveElsewhere(session, epoch, why)
      const own = this.#attempts.get(session)
      if (own) own.cache = cache
      const leases = this.#leases
      const { perform, fail } = this.#performer.for(cache)
      const late: FlightOptions['late'] = (effect, landing) => void this.#late(session, effect, landing)
      const giveUp: Abandon = (effect, reason, started) => {
        if (effect.type === 'prepare') return fail(effect, TOO_LONG)
        const shown = effect.type === 'call' ? shownText(this.#services.live.said(session), effect.seq) : undefined
        return abandon(effect, reason, started, shown)
      }
      const flights = {
        perform,
        fail,
        abandon: giveUp,
        deadlineOf,
        graceMs,
        held: () => leases.held(clock.now()),
        late,
      }
      const renewed = (at: number): void => leases.renew(at + (leaseMs * 2) / 3)
      const around = { ring: () => stopSignal.ring(), isWorkingBelow: this.#isWorkingBelow }
      const riders = await ridersFor(this.#services, this.#performer, cache, around)
      const { id } = cache
      const { agent } = cache.session
      const committed = (plan: CommitPlan): void => {
        wrote ||= plan.events.length > 0
        this.#committed(id, agent, cache.session.began, plan)
      }
      const attempt = { turned: false }
      const waitsForRoom = (): void => this.#services.report?.(`session ${id}`, new Fault('disk_full', WAITS_FOR_ROOM))
      const rest = { attempt, committed, renewed, leases, lingerMs, patienceMs, waitsForRoom }
      const job: Job = { cache, epoch, store, clock, flights, riders, ...rest }
      const ended = await drive(job, stopSignal)
      // Only a clean rest leaves the cache as the log is; anything else may have taken what was never committed.
      if (ended.type !== 'rested') this.#caches.drop(session)
      return ended
    } catch (error) {
      this.#caches.drop(session)
      await this.#fail(session, claim, error, wrote)
      throw error
    } finally {
      if (driven?.context) await this.#close(driven)
    }
  }

  /** Gives back a session of another program. One that rests says so: there is nothing to drive. */
  async #leaveElsewhere(session: string, epoch: number, why: string): Promise<Ended | Elsewhere> {
    await this.#services.store.release(session, epoch)
    const seen = await this.#seen(session)
    return seen.type === 'rested' ? seen : { type: 'elsewhere', why }
  }

  /** Whether this worker drives a run of another child of this session now. */
  readonly #isWorkingBelow = (parent: string, but: string): boolean => {
    for (const [id, { cache }] of this.#attempts) {
      if (id !== but && cache?.session.run && cache.session.parent?.session === parent) return true
    }
    return false
  }

  /** The attempt is over, and with it what the host built for its tools. */
  async #close(cache: SessionCache): Promise<void> {
    const { context } = cache
    cache.context = null
    await context?.close()
  }

  /** Through the inbox, which is open to all: another worker has the session by now. If that fails too, nothing more can be done. */
  async #late(session: string, effect: Effect, landing: Landing): Promise<void> {
    const { redactor } = this.#services
    const event = lateResult(effect, landing)
    if (event === null) return
    await commit(this.#services, [{ session, lane: 'inbox', events: [redactor.body(event)] }]).catch(() => {})
  }

  /** Gives back a session whose attempt threw, with the reason on it if it is the session's own. */
  async #fail(session: string, claim: Claim, error: unknown, wrote: boolean): Promise<void> {
    const { store, redactor } = this.#services
    const failing = { claim, wrote, now: store.now(), attemptsMax: this.#options.attemptsMax }
    const { reason, ...trouble } = troubleOf(error, failing)
    const noted = !isElsewhere(error)
    try {
      await store.release(session, claim.epoch, noted ? { ...trouble, reason: redactor.text(reason) } : undefined)
    } catch {
      // The store is in trouble itself. The lease ends by the clock, and the attempt has counted when it was claimed.
      return
    }
    const attempt = this.#attempts.get(session)
    if (attempt) attempt.noted = noted
  }

  /** Other sessions have something to look at: children that were made, parents that were answered. */
  #committed(session: string, agent: string, began: number, { events, ended, woken }: CommitPlan): void {
    this.#services.observer?.committed(session, agent, { began, ended }, events)
    for (const other of woken) this.wake(other).catch((error) => this.#options.onError?.(other, error))
  }
}
