// One simulated process: it can die between any two steps, freeze for longer than its lease, find the disk full, and take a living
// process of its host for a dead one.
// Everything the real worker touches goes through here, so a dead process never moves again.
import { Fault } from '../src/kernel/failure.ts'
import { withCapabilities } from '../src/stores/plan/complete-store.ts'
import type { Claim, ProcessId, CompleteStore, Write } from '../src/ports/store.ts'
import type { Clock, Processes } from '../src/ports/system.ts'
import type { Gate } from './gate.ts'
import { deskOf } from './programs.ts'
import type { Network, NetworkTally } from './network.ts'
import type { Actor, Chance, Scheduler } from './scheduler.ts'

export type Faults = {
  readonly crashBefore: number
  readonly crashAfter: number
  readonly crashInside: number
  readonly stall: number
  /** A commit that takes so long that several effects land meanwhile. */
  readonly slow: number
  readonly diskFull: number
  readonly clockSet: number
  /** A living process is taken for a dead one. */
  readonly misjudge: number
}

export type Tally = NetworkTally & {
  crashes: number
  /** Those right after a commit that also made, answered or stopped another session. */
  familyCrashes: number
  stalls: number
  fenced: number
  conflicts: number
  diskFull: number
  overBudget: number
  clocksSet: number
  /** Leases that were ended because their process was gone, and because it was taken for gone. */
  buried: number
  misjudged: number
  /** Commits that held money beside the log. Their processes may die before they ask for anything. */
  heldBeside: number
}

/** The disk of the simulated machine: full for a while, for all processes. */
export type Disk = { fullUntil: number }

/** What the store's clock is set to, beside the right time: years ahead, and an hour to either side. */
const WRONG_MS = [10 * 365 * 24 * 3_600_000, 3_600_000, -3_600_000, 0] as const

/**
 * The store's clock: that of the one machine, or of the one database. All processes read it, and it may be set while they work. What
 * differs from process to process is the clock that each measures by (`offsetMs`).
 */
export class Walls implements Clock {
  readonly #actor: Actor
  readonly #isOver: () => boolean
  #setMs = 0
  #aheadMs = 0
  /** The latest time that anybody was told. */
  latest = 0

  /** When `isOver`, the clock is right again. */
  constructor(actor: Actor, isOver: () => boolean) {
    this.#actor = actor
    this.#isOver = isOver
  }

  now(): number {
    const now = this.#actor.now() + (this.#isOver() ? 0 : this.#setMs + this.#aheadMs)
    this.latest = Math.max(this.latest, now)
    return now
  }

  timer(ms: number, fire: () => void): () => void {
    return this.#actor.timer(ms, fire)
  }

  /** From now on it is so far ahead of the right time. */
  set(aheadMs: number): void {
    this.#setMs = aheadMs
  }

  /** As if it had been ahead when this was done. Nothing else may be asked meanwhile. */
  async by<T>(aheadMs: number, act: () => Promise<T>): Promise<T> {
    this.#aheadMs = aheadMs
    try {
      return await act()
    } finally {
      this.#aheadMs = 0
    }
  }
}

/** Which process has a number now. A worker that is started again has the number of the one before. */
export type Running = Map<number, SimProcess>

export type Shared = {
  readonly running: Running
  /** Processes of one host can tell each other apart. */
  readonly tells: boolean
  readonly walls: Walls
  readonly scheduler: Scheduler
  readonly store: CompleteStore
  readonly tally: Tally
  readonly disk: Disk
  readonly gate: Gate | null
  /** Faults are on; switched off for the liveness phase. */
  readonly faults: () => Faults | null
  /** A process died: what had been committed, and what was it doing? */
  readonly onCrash: (process: SimProcess) => void
  /** A process holds money for sessions that others have. */
  readonly onHold: (process: SimProcess, sessions: readonly string[]) => void
  /** The worker that last got the lease of a session. */
  readonly holder: (session: string) => string | undefined
  /** The way to the store, if that is on another machine, and how far the clock of the process is from the right time then. */
  readonly network: Network | null
  readonly offsetMs: number
}

/** A promise of its own each time: what waits at one that all share is never forgotten, seed after seed. */
function forever(): Promise<never> {
  return new Promise<never>(() => {})
}

export class SimProcess {
  readonly name: string
  /** Where its tools act: not all processes of a store work in the same folder. */
  readonly place: string
  alive = true
  /** Set while this process's own commit runs, so that its watchers see events and others only a hint. */
  committing = false
  /** Its commits that are under way, where a gate says which one is done now. */
  readonly #own = new Set<unknown>()
  readonly #shared: Shared
  readonly actor: Actor
  /** How often it froze. */
  freezes = 0
  /** How often it found the disk full. */
  full = 0
  #frozenUntil = 0
  readonly clock: Clock
  readonly store: CompleteStore
  readonly processes: Processes
  readonly #self: ProcessId

  constructor(name: string, shared: Shared) {
    this.name = name
    this.#self = selfOf(name)
    shared.running.set(this.#self.pid, this)
    this.processes = { self: () => (shared.tells ? this.#self : null), isGone: (other) => this.#judges(other) }
    this.place = /[13579]\./.test(name) ? 'another folder' : 'a folder'
    this.#shared = shared
    this.actor = shared.scheduler.actor(`process ${name}`)
    this.clock = { now: () => shared.scheduler.now() + shared.offsetMs, timer: (ms, fire) => this.#timer(ms, fire) }
    this.store = this.#connect()
  }

  get chance(): Chance {
    return this.actor.chance
  }

  #judges(other: ProcessId): boolean {
    const { running, tally } = this.#shared
    const found = running.get(other.pid)
    const gone = !found?.alive || found.#self.started !== other.started
    const wrong = !gone && this.chance.yes(this.#shared.faults()?.misjudge ?? 0)
    if (gone) tally.buried += 1
    if (wrong) tally.misjudged += 1
    return gone || wrong
  }

  crash(): void {
    if (!this.alive) return
    this.alive = false
    this.#shared.tally.crashes += 1
    this.#shared.onCrash(this)
  }

  /** Dies here, now and then, while faults are on. */
  falters(): boolean {
    const faults = this.#shared.faults()
    if (faults && this.chance.yes(faults.crashInside)) this.crash()
    return !this.alive
  }

  /** Sleeps in virtual time; never returns if the process died, later if it froze. */
  async sleep(ms: number): Promise<void> {
    await this.actor.sleep(ms)
    while (this.alive && this.#frozenUntil > this.actor.now()) {
      await this.actor.sleep(this.#frozenUntil - this.actor.now())
    }
    if (!this.alive) await forever()
  }

  #timer(ms: number, fire: () => void): () => void {
    const { actor } = this
    let cancel = (): void => {}
    const due = (): void => {
      if (!this.alive) return
      if (this.#frozenUntil > actor.now()) cancel = actor.timer(this.#frozenUntil - actor.now(), due)
      else fire()
    }
    cancel = actor.timer(ms, due)
    return () => cancel()
  }

  /** The way to the store and back: takes time, and is where processes die and freeze. */
  async #hop(writes: boolean, stalls = 1): Promise<void> {
    const faults = this.#shared.faults()
    if (faults && writes && this.chance.yes(faults.crashBefore)) this.crash()
    if (faults && this.chance.yes(faults.stall * stalls)) {
      this.#shared.tally.stalls += 1
      this.freezes += 1
      this.#frozenUntil = this.actor.now() + this.chance.between(130, 400)
    }
    if (faults && this.chance.yes(faults.clockSet)) {
      this.#shared.tally.clocksSet += 1
      this.#shared.walls.set(this.chance.pick(WRONG_MS))
    }
    await this.sleep(this.chance.between(0, 2))
  }

  #needsRoom(): void {
    const { tally, disk } = this.#shared
    if (disk.fullUntil <= this.actor.now()) return
    tally.diskFull += 1
    this.full += 1
    throw new Fault('disk_full', 'The disk is full. Free some space; the run goes on by itself.')
  }

  #heldForOthers(writes: readonly Write[]): readonly string[] {
    const holds = writes.filter(({ charges }) => charges?.some(({ type }) => type === 'hold'))
    const isOurs = (holder = this.name): boolean => holder === this.name || holder.includes(deskOf(this.name))
    return holds.map(({ session }) => session).filter((id) => !isOurs(this.#shared.holder(id)))
  }

  async #commit(writes: readonly Write[]): Promise<Awaited<ReturnType<CompleteStore['commit']>>> {
    const { store, tally, disk } = this.#shared
    // To freeze hurts most where money is about to be held beside the log: the session may have another worker by then.
    const beside = writes.some(({ lane, charges }) => lane === 'inbox' && charges?.some(({ type }) => type === 'hold'))
    await this.#hop(true, beside ? 40 : 1)
    const faults = this.#shared.faults()
    // Money that was short when a run had to end for it may be there a slow commit later: no rule could tell.
    const ends = writes.some(
      ({ lane, events }) => lane === 'owner' && events.some(({ type }) => type === 'run.settled'),
    )
    if (faults && !ends && this.chance.yes(faults.slow)) await this.sleep(this.chance.between(10, 60))
    if (faults && this.chance.yes(faults.diskFull)) disk.fullUntil = this.actor.now() + this.chance.between(20, 400)
    this.#needsRoom()
    const { network } = this.#shared
    const act = async (): Promise<Awaited<ReturnType<CompleteStore['commit']>>> => {
      const strange = this.#heldForOthers(writes)
      const receipts = await store.commit(writes)
      // What was written before holds nothing now.
      const fresh = strange.filter((id) => !receipts[writes.findIndex(({ session }) => session === id)]?.duplicate)
      if (fresh.length > 0) this.#shared.onHold(this, fresh)
      return receipts
    }
    if (beside) tally.heldBeside += 1
    this.committing = true
    this.#own.add(writes)
    const waits = (ms: number): Promise<void> => {
      this.committing = false
      return this.sleep(ms)
    }
    try {
      const receipts = await (network ? network.ask(waits, act) : act())
      // Written, but the writer never learns it. That hurts most in commits of several sessions.
      const shared = writes.length > 1 || writes.some((write) => write.lane === 'owner' && write.sends !== undefined)
      if (faults && this.chance.yes(faults.crashAfter * (shared ? 4 : 1))) this.crash()
      if (shared && !this.alive) tally.familyCrashes += 1
      await this.sleep(this.chance.between(0, 1))
      return receipts
    } catch (error) {
      if (error instanceof Fault && error.code === 'lease_lost') tally.fenced += 1
      if (error instanceof Fault && error.code === 'conflict') tally.conflicts += 1
      if (error instanceof Fault && error.code === 'over_budget') tally.overBudget += 1
      throw error
    } finally {
      this.committing = false
      this.#own.delete(writes)
    }
  }

  /** What happened elsewhere is heard a moment later, and later still when the network says nothing. */
  #hears(listener: () => void): void {
    const delayMs = this.chance.between(0, 40)
    this.#timer(this.#shared.network?.hears(delayMs) ?? delayMs, listener)
  }

  /** A hint that is under way is about all that happens until it comes. */
  #hints(listener: () => void): () => void {
    let isUnderWay = false
    return () => {
      if (isUnderWay || !this.alive) return
      isUnderWay = true
      this.#hears(() => {
        isUnderWay = false
        listener()
      })
    }
  }

  #connect(): CompleteStore {
    const { store, walls, network, gate } = this.#shared
    const far = async <T>(writes: boolean, act: () => Promise<T>): Promise<T> => {
      await this.#hop(writes)
      if (writes) this.#needsRoom()
      const waits = (ms: number): Promise<void> => this.sleep(ms)
      const answer = await (network ? (writes ? network.ask(waits, act) : network.read(waits, act)) : act())
      if (!this.alive) await forever()
      return answer
    }
    const take: CompleteStore['take'] = store.take
      ? (...wanted) => far(true, async () => (await store.take?.(...wanted)) ?? new Map<string, Claim>())
      : undefined
    return withCapabilities({
      reach: 'machine',
      open: () => store.open(),
      now: () => walls.now(),
      commit: (writes) => this.#commit(writes),
      read: (session, after, limit, bytesMax) => far(false, () => store.read(session, after, limit, bytesMax)),
      sent: (session, id) => store.sent(session, id),
      snapshot: (session, upTo) => far(false, () => store.snapshot(session, upTo)),
      keep: (session, snapshots) => far(true, () => store.keep(session, snapshots)),
      page: (query) => store.page(query),
      watch: (session, listener) => {
        const hint = this.#hints(() => listener(null))
        return store.watch(session, (news) => {
          if (gate ? this.#own.has(gate.current) : this.committing) listener(news)
          else hint()
        })
      },
      watchDue: (listener) => store.watchDue(this.#hints(listener)),
      watchCards: (listener) => store.watchCards((id) => this.#hears(() => listener(id))),
      ...(take ? { take } : {}),
      claim: (session, worker, ttlMs, self) => far(true, () => store.claim(session, worker, ttlMs, self)),
      extend: (worker, ttlMs) => far(true, () => store.extend(worker, ttlMs)),
      holders: (host) => far(false, () => store.holders(host)),
      expire: (worker, gone) => far(true, () => store.expire(worker, gone)),
      release: (session, epoch, trouble) => far(true, () => store.release(session, epoch, trouble)),
      card: (session) => far(false, () => store.card(session)),
      due: (limit, agents) => far(false, () => store.due(limit, agents)),
      list: (filter) => store.list(filter),
      blob: (hash, of) => far(false, () => store.blob(hash, of)),
      account: (id) => store.account(id),
      announce: (worker, address, ttlMs) => store.announce(worker, address, ttlMs),
      address: (session) => store.address(session),
      remove: (session, by) => far(true, () => store.remove(session, by)),
      removals: (limit) => store.removals(limit),
      health: () => store.health(),
      close: () => Promise.resolve(),
    })
  }
}

/** The first two workers share a host; the third is alone on another. */
function selfOf(name: string): ProcessId {
  const [worker = '', generation = ''] = name.split('.')
  return {
    host: worker === 'w2' ? 'another host' : 'a host',
    pid: Number(worker.slice(1)),
    started: Number(generation),
  }
}
