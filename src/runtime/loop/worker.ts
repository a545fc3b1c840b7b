// The worker: holds leases and drives sessions, one attempt a session at a time. It decides nothing about a session. It
// only looks when asked (`wake`) or when something is due (`work`: due-loop.ts).
import { Fault } from '../../kernel/failure.ts'
import type { Effect, Waiting } from '../../kernel/next.ts'
import type { Claim, TakeOptions } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import {
  functionCheck,
  type Check,
  type Checks,
  clockCheck,
  countCheck,
  flagCheck,
  withoutUndefined,
  msCheck,
  requiredCheck,
  optionsChecker,
  waitCheck,
} from '../../options.ts'
import { commitWithRetry } from '../state/store-retry.ts'
import { type SessionCache, SessionCaches } from '../state/session-cache.ts'
import { isStoreId } from '../../stores/plan/store-ids.ts'
import { Leases } from './leases.ts'
import { Peers, ownProcessId } from './dead-workers.ts'
import { RetryTimers, sleep } from '../state/sleep.ts'
import type { CommitPlan } from '../commit/commit-draft.ts'
import { type Attempt, type AttemptEnd, driveAttempt } from './drive.ts'
import { SessionHeads, reportRest } from '../state/session-tree.ts'
import type { AbandonEffect, FlightOptions } from './flights.ts'
import type { Landing, StopSignal } from '../state/effect.ts'
import { loadParts } from './attempt.ts'
import { landAbandoned, effectDeadline, lateResult, shownText, TOO_LONG } from '../turn/landings.ts'
import { checkWorkOptions, DueLoop, type LookResult, type WorkResult, type WorkOptions } from './due-loop.ts'
import { Performer } from '../turn/perform-effect.ts'
import { isInfrastructureFault, lostWorkersTrouble, attemptTrouble } from './attempt-trouble.ts'
import { mayBeLane } from '../../view/lanes.ts'
import { mayBeOwn } from '../state/program.ts'
import type { Services } from '../state/runtime-ports.ts'

/** Options of the worker in a harness: its name, how long it holds a session, and how many it drives at once. */
export type WorkerOptions = {
  /**
   * The name of its leases. Two living processes with one name share their leases: each can take a session from the
   * other at once, and effects that the other had in flight there are lost, as after a crash. Epochs fence this, so
   * nothing is written twice.
   */
  readonly id: string
  /** The host chose the name, so other processes may have it too. */
  readonly named?: boolean
  /** `false`: the worker only reports the state of a session, and drives none. */
  readonly drives?: boolean
  /** How long a lease lasts without a heartbeat, in ms. */
  readonly leaseMs?: number
  /** How long a call that was aborted may take to return, in ms. */
  readonly graceMs?: number
  /** A session that waits longer than this, in ms, is given back. */
  readonly lingerMs?: number
  /** How long a caller waits while a provider is unavailable, in ms. */
  readonly patienceMs?: number
  /** The clock whose timers keep no process alive. Default: the clock of the services. */
  readonly alarm?: Clock
  /** How many sessions this worker drives at once when it looks for due ones itself. */
  readonly width?: number
  /**
   * After this many attempts in a row that failed or were lost without progress, the session is left alone until a
   * message or a wake.
   */
  readonly attemptsMax?: number
  /** Called with the error that an attempt threw: a Fault of the store, or a Bug. */
  readonly onError?: (session: string, error: unknown) => void
}

const workerIdCheck: Check = (value) =>
  isStoreId(value) ? null : 'must be a text of 1 to 512 well-formed characters. Leave it out for a name of its own'
export const WORKER_OPTIONS: Checks<Partial<Omit<WorkerOptions, 'named' | 'drives' | 'alarm'>>> = {
  id: workerIdCheck,
  leaseMs: waitCheck,
  graceMs: msCheck,
  lingerMs: msCheck,
  patienceMs: msCheck,
  width: countCheck(1),
  attemptsMax: countCheck(1),
  onError: functionCheck,
}
const checkWorker = optionsChecker<WorkerOptions>('new Worker', {
  ...WORKER_OPTIONS,
  id: requiredCheck(workerIdCheck),
  named: flagCheck,
  drives: flagCheck,
  alarm: clockCheck,
})

/**
 * Why a worker stopped driving a session: it rests until a time or an answer, somebody else has it, or the worker was
 * stopped.
 */
export type RestReport =
  | { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
  /** Another worker drives the session. */
  | { readonly type: 'contended' }
  /** The session belongs to another program, whose workers drive it. `why` names that program. */
  | ElsewhereReport
  | { readonly type: 'lost' }
  | { readonly type: 'stopped' }

export type ElsewhereReport = { readonly type: 'elsewhere'; readonly why: string }

/** A caller that waits for a session to rest. `wake` makes it check again. */
export type RestWaiter = { wake: () => void }

/** What came of one look at a session. */
export type WorkerLook = {
  /** The result for the due loop. */
  readonly seen: LookResult
  /** The report for a caller. Null after an error, which `onError` received. */
  readonly looked: RestReport | null
}

type AttemptSlot = {
  readonly stopSignal: StopSignal
  epoch: number
  lookAgain: boolean
  /** A caller asked for the session, or it was found to be due; `alone` if it failed before. */
  why: 'asked' | 'found' | 'alone'
  /** The session failed before and must be looked at alone, later. */
  later: boolean
  /** The attempt failed, and the session's card says so. */
  noted: boolean
  /** The cached session that the attempt drives, once it is read. */
  cache: SessionCache | null
  readonly ended: Promise<RestReport>
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
const LEFT_ALONE: RestReport = { type: 'rested', waiting: 'nothing', until: null }

const WAITS_FOR_ROOM = 'The disk is full. The run waits for room, and goes on by itself when there is some.'

export class Worker {
  readonly heads: SessionHeads
  readonly id: string
  /** How many claims this worker made, and how many were in vain because another worker had the session. */
  readonly claims = { asked: 0, vain: 0 }
  readonly #services: Services
  readonly #options: Required<Omit<WorkerOptions, 'id' | 'onError'>> & Pick<WorkerOptions, 'onError'>
  readonly #performer: Performer
  readonly #attempts = new Map<string, AttemptSlot>()
  readonly #caches: SessionCaches
  readonly #readers = new Set<RestWaiter>()
  #lastLeft = (): void => {}
  /** Timers for sessions that this worker drove and that wait for a provider longer than it lingers. */
  readonly #sleepers: RetryTimers
  readonly #leases: Leases
  readonly #peers: Peers
  #closing = false
  #dueLoop: DueLoop | null = null

  constructor(services: Services, options: WorkerOptions) {
    checkWorker(options)
    this.id = options.id
    this.#services = services
    this.#performer = new Performer(services)
    this.heads = new SessionHeads(services.store)
    this.#options = { ...DEFAULTS, alarm: services.clock, ...withoutUndefined(options) }
    const { store, clock } = services
    const { alarm, leaseMs, named } = this.#options
    this.#caches = new SessionCaches(services)
    this.#leases = new Leases({ worker: options.id, leaseMs, store, clock, driven: this.#attempts, named })
    this.#peers = new Peers({ store, clock, leaseMs, processes: services.processes })
    this.#sleepers = new RetryTimers(clock, alarm, (session) => void this.look(session, false))
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

  /** Sends one heartbeat: a write like any other that changes no session. */
  async beat(): Promise<void> {
    await this.#services.store.extend(this.id, this.#options.leaseMs)
  }

  /**
   * Looks at a session, and drives it until it rests. Looks are coalesced: one that comes during an attempt is part of
   * that attempt.
   */
  wake(session: string): Promise<RestReport> {
    if (this.#closing) return Promise.resolve({ type: 'stopped' })
    if (!this.#options.drives) return this.#seen(session)
    const running = this.#attempts.get(session)
    if (!running) return this.#begin(session, 'asked').ended
    running.lookAgain = true
    running.why = 'asked'
    return running.ended
  }

  async #seen(session: string): Promise<RestReport> {
    const { store } = this.#services
    await store.open()
    return reportRest(this.heads, session, { now: store.now() }, this.#options.lingerMs)
  }

  #begin(session: string, why: AttemptSlot['why'], claim: Claim | null = null): AttemptSlot {
    const stopSignal: StopSignal = { reason: null, ring: () => {} }
    const ended = this.#attempt(session, stopSignal, claim).finally(() => this.#left(session, attempt))
    const attempt: AttemptSlot = {
      stopSignal,
      epoch: claim?.epoch ?? 0,
      lookAgain: false,
      why,
      later: false,
      noted: false,
      cache: null,
      ended,
    }
    this.#attempts.set(session, attempt)
    return attempt
  }

  /** Drives every session that becomes due, until `close`. */
  start(): void {
    if (!this.#dueLoop) this.work().catch(() => {})
  }

  /** Drives every session that becomes due. Sleeps exactly until the next due time. */
  async work(options: WorkOptions = {}): Promise<WorkResult> {
    checkWorkOptions(options)
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

  /** The look of the due loop: a session that failed too often is left alone. It never rejects. */
  async look(session: string, alone: boolean, claim?: Claim): Promise<WorkerLook> {
    const attempt = await this.#attemptFor(session, alone ? 'alone' : 'found', claim)
    if (!attempt) {
      if (claim) await this.#services.store.release(session, claim.epoch).catch(() => {})
      return { seen: 'seen', looked: { type: 'stopped' } }
    }
    try {
      const looked = await attempt.ended
      // The store does not know that the session is another program's. So this worker remembers it, and looks less and
      // less often.
      if (looked.type === 'elsewhere') return { seen: 'failed', looked }
      return { seen: attempt.later ? 'later' : 'seen', looked }
    } catch (error) {
      this.#options.onError?.(session, error)
      return { seen: attempt.noted ? 'seen' : 'failed', looked: null }
    }
  }

  /**
   * A worker with a name that other processes may have does not use `take`: it could not tell sessions taken without an
   * answer from those that the other processes drive.
   */
  get #canTake(): boolean {
    return this.#services.store.take !== undefined && !this.#options.named
  }

  /** Claims due sessions, for `look`. */
  async take(wanted: Omit<TakeOptions, 'process'>): Promise<ReadonlyMap<string, Claim>> {
    if (!this.#canTake) throw new Fault('invalid_input', CANNOT_TAKE)
    if (this.#closing) return new Map()
    const { store, clock } = this.#services
    const begun = clock.now()
    const self = ownProcessId(this.#services)
    const whole = self ? { ...wanted, process: self } : wanted
    const taken = (await store.take?.(this.id, this.#options.leaseMs, whole)) ?? new Map<string, Claim>()
    if (taken.size > 0) this.#leases.renew(begun + this.#options.leaseMs)
    this.claims.asked += taken.size
    return taken
  }

  /**
   * The same for this worker's own due loop. Null for a named session whose card says that it is another program's: it
   * is not claimed.
   */
  async #takeOwn({ among, ...wanted }: Omit<TakeOptions, 'process'>): Promise<ReadonlyMap<string, Claim | null>> {
    if (among === undefined) return this.take(wanted)
    const { store } = this.#services
    const cards = await Promise.all(among.map((session) => store.card(session)))
    const own = among.filter((_, i) => {
      const card = cards[i]
      return card && mayBeOwn(this.#services, card)
    })
    const taken = new Map<string, Claim | null>(own.length > 0 ? await this.take({ ...wanted, among: own }) : [])
    for (const [i, session] of among.entries()) if (cards[i] && !own.includes(session)) taken.set(session, null)
    return taken
  }

  /**
   * The attempt that a look waits for. With a claim, it is one that claimed the session after this claim, or a new one.
   * An attempt that claimed it before has lost its lease: it can write nothing more, and is awaited. A session never has
   * two attempts here, also when several looks await the same one: nothing may happen between its end and the next
   * `#begin`. Undefined while the worker closes.
   */
  async #attemptFor(
    session: string,
    why: AttemptSlot['why'],
    claim: Claim | undefined,
  ): Promise<AttemptSlot | undefined> {
    for (;;) {
      const running = this.#attempts.get(session)
      if (this.#closing && !(claim && running)) return undefined
      if (!running) return this.#begin(session, why, claim)
      if (!claim) return running
      if (running.epoch !== 0 && running.epoch < claim.epoch) {
        running.stopSignal.reason ??= 'lost'
        running.stopSignal.ring()
      }
      await running.ended.catch(() => {})
      if (running.epoch > claim.epoch) return running
    }
  }

  /** Resolves when this worker drives no such session any more, or after so many ms. */
  async awaitRest(isAwaited: (session: string) => boolean, ms: number): Promise<void> {
    const over = new AbortController()
    const late = sleep(this.#services.clock, ms, over.signal).then(() => 'late')
    for (;;) {
      const open = [...this.#attempts].flatMap(([session, { ended }]) => (isAwaited(session) ? [ended] : []))
      if (open.length === 0 || (await Promise.race([Promise.allSettled(open), late])) === 'late') break
    }
    over.abort()
  }

  /** Aborts effects in flight, writes down their landings, and gives every session back. */
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

  /** The store is not closed under a waiting caller: closing wakes all waiters, and waits until they have left. */
  addWaiter(): RestWaiter {
    const reader = { wake: () => {} }
    this.#readers.add(reader)
    return reader
  }

  removeWaiter(reader: RestWaiter): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0) this.#lastLeft()
  }

  #rested(session: string, { waiting, until }: Extract<AttemptEnd, { type: 'rested' }>): void {
    this.#services.observer?.rested(session, waiting)
    const { clock, store } = this.#services
    // A lane rests until its next try. No other look is sure to come in a process that only starts runs.
    if ((waiting === 'retry' || mayBeLane(session)) && until !== null)
      this.#sleepers.add(session, clock.now() + until - store.now())
    else this.#sleepers.delete(session)
  }

  /** A worker that drives nothing has no heartbeat, and keeps no process alive. */
  #left(session: string, attempt: AttemptSlot): void {
    if (this.#attempts.get(session) === attempt) this.#attempts.delete(session)
    this.#dueLoop?.ring()
    if (this.#attempts.size === 0) this.#leases.stop()
  }

  async #attempt(session: string, stopSignal: StopSignal, taken: Claim | null): Promise<RestReport> {
    const { live } = this.#services
    for (let given = taken; ; given = null) {
      // Live deltas must have an address before this attempt commits its first event: followers then look it up.
      await live.serve(this.id, this.#options.leaseMs)
      const claim = given ?? (await this.#claim(session))
      if (!claim) return { type: 'contended' }
      const attempt = this.#attempts.get(session)
      if (attempt) attempt.epoch = claim.epoch
      this.#leases.startHeartbeat()
      if (attempt && (await this.#leaves(session, claim, attempt))) {
        if (!attempt.lookAgain || this.#closing) return LEFT_ALONE
        // A caller asked for the session while it was being given back, so it is driven.
        attempt.lookAgain = false
        continue
      }
      const ended = await this.#drive(session, claim, stopSignal)
      if (ended.type === 'elsewhere') return ended
      if (ended.type === 'rested') this.#rested(session, ended)
      await this.#services.observer?.awaitDelivery(session)
      if (ended.type !== 'rested' || this.#closing) return ended
      // Callers that asked while this attempt was ending. Go on only if there is something to do.
      let isDue = false
      while (attempt?.lookAgain && !isDue) {
        attempt.lookAgain = false
        isDue = await this.#isDue(session)
      }
      if (isDue) continue
      // At once: who asks from here on begins an attempt of its own, and is not part of one that looks no more.
      if (this.#attempts.get(session) === attempt) this.#attempts.delete(session)
      return ended
    }
  }

  async #isDue(session: string): Promise<boolean> {
    const { store } = this.#services
    const { due = null } = (await store.card(session)) ?? {}
    return due !== null && due <= store.now()
  }

  /** A session that is held by an ended process of this host is free at once. */
  async #claim(session: string): Promise<Claim | null> {
    const { store, clock } = this.#services
    const { leaseMs } = this.#options
    const claim = async (): Promise<Claim | null> => {
      const begun = clock.now()
      this.#leases.noteClaim(session)
      const got = await store.claim(session, this.id, leaseMs, ownProcessId(this.#services))
      this.#leases.forgetClaim(session)
      this.claims.asked += 1
      if (got) this.#leases.renew(begun + leaseMs)
      else this.claims.vain += 1
      return got
    }
    return (await claim()) ?? ((await this.#peers.look()).ended > 0 ? claim() : null)
  }

  /**
   * Whether a session that failed before is given back untouched, because it failed too often or must be looked at
   * alone.
   */
  async #leaves(session: string, claim: Claim, attempt: AttemptSlot): Promise<boolean> {
    const over = claim.failed >= this.#options.attemptsMax
    attempt.later = attempt.why === 'found' && claim.failed > 0 && !over
    if (attempt.why === 'asked' || !(over || attempt.later)) return false
    await this.#services.store.release(session, claim.epoch, over ? lostWorkersTrouble(claim) : undefined)
    return true
  }

  async #drive(session: string, claim: Claim, stopSignal: StopSignal): Promise<AttemptEnd | ElsewhereReport> {
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
      const giveUp: AbandonEffect = (effect, reason, started) => {
        if (effect.type === 'prepare') return fail(effect, TOO_LONG)
        const shown = effect.type === 'call' ? shownText(this.#services.live.said(session), effect.seq) : undefined
        return landAbandoned(effect, reason, started, shown)
      }
      const flights = {
        perform,
        fail,
        abandon: giveUp,
        deadlineOf: effectDeadline,
        graceMs,
        held: () => leases.held(clock.now()),
        late,
      }
      const onRenewed = (at: number): void => leases.renew(at + (leaseMs * 2) / 3)
      const around = { ring: () => stopSignal.ring(), isWorkingBelow: this.#isWorkingBelow }
      const parts = await loadParts(this.#services, this.#performer, cache, around)
      const { id } = cache
      const { agent } = cache.session
      const onCommitted = (plan: CommitPlan): void => {
        wrote ||= plan.events.length > 0
        this.#services.observer?.committed(id, agent, { began: cache.session.began, ended: plan.settled }, plan.events)
        if (plan.woken.length > 0) this.#wakeAll(plan.woken)
      }
      const progress = { beganTurn: false }
      const onDiskFull = (): void => this.#services.report?.(`session ${id}`, new Fault('disk_full', WAITS_FOR_ROOM))
      const told = { onCommitted, onRenewed, onDiskFull }
      const waits = { leases, lingerMs, patienceMs }
      const attempt: Attempt = { cache, epoch, store, clock, flights, parts, progress, ...told, ...waits }
      const ended = await driveAttempt(attempt, stopSignal)
      // Only a clean rest leaves the cache equal to the log. After any other end it may hold events that were never
      // committed.
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

  /** Gives back a session of another program. If it rests, there is nothing to drive, and the report says so. */
  async #leaveElsewhere(session: string, epoch: number, why: string): Promise<AttemptEnd | ElsewhereReport> {
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

  /** The attempt is over, so the `deps` that the host built for its tools are closed. */
  async #close(cache: SessionCache): Promise<void> {
    const { context } = cache
    cache.context = null
    await context?.close()
  }

  /**
   * Reports a late result through the inbox, which is open to all, because another worker has the session by now. If
   * that fails too, nothing more can be done.
   */
  async #late(session: string, effect: Effect, landing: Landing): Promise<void> {
    const { redactor } = this.#services
    const event = lateResult(effect, landing)
    if (event === null) return
    await commitWithRetry(this.#services, [{ session, lane: 'inbox', events: [redactor.body(event)] }]).catch(() => {})
  }

  /** Gives back a session whose attempt threw, and records the reason on it if the trouble is the session's own. */
  async #fail(session: string, claim: Claim, error: unknown, wrote: boolean): Promise<void> {
    const { store, redactor } = this.#services
    const failing = { claim, wrote, now: store.now(), attemptsMax: this.#options.attemptsMax }
    const { reason, ...trouble } = attemptTrouble(error, failing)
    const noted = !isInfrastructureFault(error)
    try {
      await store.release(session, claim.epoch, noted ? { ...trouble, reason: redactor.text(reason) } : undefined)
    } catch {
      // The store itself is in trouble. The lease ends by the clock, and the claim has already counted this attempt.
      return
    }
    const attempt = this.#attempts.get(session)
    if (attempt) attempt.noted = noted
  }

  /** Wakes other sessions that now have something to do: new children, and parents that were answered. */
  #wakeAll(sessions: readonly string[]): void {
    for (const other of sessions) this.wake(other).catch((error) => this.#options.onError?.(other, error))
  }
}
