// One seed, from nothing to rest: real kernel, real driver, real worker, real memory store; simulated everything else.
// Two phases: safety (faults on), then liveness (faults off: everything must settle).
import { cardOf } from '../src/kernel/card.ts'
import type { Limits } from '../src/kernel/content.ts'
import type { OwnerBody, OwnerEvent } from '../src/kernel/event.ts'
import { fold } from '../src/kernel/fold.ts'
import { next } from '../src/kernel/next.ts'
import type { Store } from '../src/kernel/ports.ts'
import { EMPTY, type Session } from '../src/kernel/session.ts'
import { LocalLive } from '../src/runtime/live.ts'
import { Worker } from '../src/runtime/worker.ts'
import { memory } from '../src/stores/memory.ts'
import { simAgent, simLimits } from './agent.ts'
import { Invariants, type Seen } from './invariants.ts'
import { Oracle } from './oracle.ts'
import { People } from './people.ts'
import { type Disk, type Faults, type Shared, SimProcess, type Tally } from './process.ts'
import { Chance, Scheduler } from './scheduler.ts'
import { Redactor } from '../src/runtime/redact.ts'

const FAULTY_MS = 1_500
const PATIENCE_MS = 60_000
const FAULTS: Faults = { crashBefore: 0.014, crashAfter: 0.02, stall: 0.005, diskFull: 0.008 }

export type Report = {
  readonly seed: number
  readonly violations: readonly string[]
  readonly hash: string
  readonly sessions: number
  readonly workers: number
  readonly acked: number
  readonly restarts: number
  /** A process died while some call of its was between intent and result. */
  readonly betweenIntentAndResult: boolean
  readonly seen: Seen
  readonly tally: Tally
}

export async function simulate(seed: number): Promise<Report> {
  const stage = new Simulation(seed)
  await stage.play()
  return stage.report()
}

class Simulation {
  readonly #seed: number
  readonly #scheduler: Scheduler
  readonly #store: Store
  readonly #oracle = new Oracle()
  readonly #invariants = new Invariants(this.#oracle)
  readonly #tally: Tally = { crashes: 0, stalls: 0, fenced: 0, conflicts: 0, diskFull: 0, overBudget: 0 }
  readonly #disk: Disk = { fullUntil: 0 }
  readonly #people: People
  readonly #limits = new Map<string, Limits>()
  readonly #errors: string[] = []
  readonly #workers: number
  #sessions = 0
  #restarts = 0
  #between = false
  #over = false

  constructor(seed: number) {
    this.#seed = seed
    this.#scheduler = new Scheduler(new Chance(seed))
    this.#store = this.#observed(memory({ clock: this.#scheduler }))
    const over = (): boolean => this.#over
    this.#people = new People({
      scheduler: this.#scheduler,
      store: this.#store,
      disk: this.#disk,
      invariants: this.#invariants,
      over,
    })
    this.#workers = this.#scheduler.chance.between(2, 3)
  }

  async play(): Promise<void> {
    const { chance } = this.#scheduler
    this.#sessions = chance.between(3, 5)
    for (let i = 0; i < this.#sessions; i++) await this.#create(`s${i}`)
    for (let i = 0; i < this.#workers; i++) this.#boot(`w${i}`, 0)
    for (let i = 0; i < this.#sessions; i++) this.#live(this.#people.user(`s${i}`))
    this.#live(this.#people.approver())
    this.#live(this.#people.meddler())
    while (await this.#scheduler.step()) {
      if (this.#broken() || this.#rested()) break
      if (this.#scheduler.elapsed() < PATIENCE_MS) continue
      this.#errors.push(`L1 not settled: ${this.#invariants.settled(this.#scheduler.now()).join('; ')}`)
      break
    }
    this.#over = true
    this.#invariants.close()
    if (!this.#broken()) await this.#audit()
  }

  report(): Report {
    return {
      seed: this.#seed,
      violations: [...this.#oracle.violations, ...this.#invariants.violations, ...this.#errors],
      hash: this.#invariants.close(),
      sessions: this.#sessions,
      workers: this.#workers,
      acked: this.#people.acks.length,
      restarts: this.#restarts,
      betweenIntentAndResult: this.#between,
      seen: this.#invariants.seen,
      tally: this.#tally,
    }
  }

  #broken(): boolean {
    return this.#oracle.violations.length + this.#invariants.violations.length + this.#errors.length > 0
  }

  #rested(): boolean {
    const quiet = this.#scheduler.elapsed() > FAULTY_MS && this.#people.busy === 0
    return quiet && this.#invariants.settled(this.#scheduler.now()).length === 0
  }

  /** Sees every commit and every lease as they happen. */
  #observed(store: Store): Store {
    const watched = new Set<string>()
    const commit: Store['commit'] = (writes) => {
      for (const { session } of writes) {
        if (watched.has(session)) continue
        watched.add(session)
        store.watch(session, (news) => this.#invariants.take(session, news ?? []))
      }
      return store.commit(writes)
    }
    const claim: Store['claim'] = async (session, worker, ttlMs) => {
      const given = await store.claim(session, worker, ttlMs)
      if (given) this.#invariants.leases.set(session, { epoch: given.epoch, worker })
      return given
    }
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'commit') return commit
        if (name === 'claim') return claim
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
  }

  async #create(session: string): Promise<void> {
    const { chance } = this.#scheduler
    // The first session may make the three calls of its first answer.
    const drawn = simLimits(chance)
    const limits = session === 's0' ? { ...drawn, toolCalls: null, activeMs: 60_000 } : drawn
    this.#limits.set(session, limits)
    const agent = chance.yes(0.3) ? `${session}-expiring` : session
    const bodies: OwnerBody[] = [{ type: 'session.created', agent, planner: 'model' }]
    if (chance.yes(0.4)) {
      const due = this.#scheduler.now() + chance.between(100, 1_200)
      bodies.push(
        { type: 'wake.scheduled', due, reason: 'simulated', key: 'w' },
        { type: 'wake.scheduled', due: due + 50, reason: 'again', key: 'w' },
      )
    }
    const at = this.#scheduler.now()
    const events = bodies.map((body, i): OwnerEvent => ({ seq: i + 1, at, epoch: 0, ...body }))
    const state: Session = events.reduce(fold, EMPTY)
    const card = cardOf(session, state, next(state, { now: at, epoch: 0 }))
    const limit = limits.hold > 0 ? limits.hold * chance.between(2, 8) : null
    const charges = [{ type: 'limit', account: `session:${session}`, limit } as const]
    await this.#store.commit([{ session, lane: 'owner', epoch: 0, expectedSeq: 0, events, card, charges }])
  }

  #boot(name: string, generation: number): void {
    const process = new SimProcess(
      `${name}.${generation}`,
      this.#shared(() => this.#later(name, generation)),
    )
    const random = {
      id: () => `${process.name}-${this.#scheduler.chance.between(0, 1e9)}`,
      fraction: () => this.#scheduler.chance.fraction(),
    }
    const agent = (agentName: string) => {
      const session = agentName.replace('-expiring', '')
      return simAgent(agentName, this.#limits.get(session) as Limits, process, this.#oracle)
    }
    const { store, clock } = process
    const world = {
      store,
      live: new LocalLive(),
      clock,
      random,
      agent,
      code: 'sim',
      redactor: new Redactor({}),
      watchdog: null,
    }
    const options = { leaseMs: 120, graceMs: 15, lingerMs: 2_000, patienceMs: 400, width: 8 }
    const onError = (session: string, error: unknown): void => this.#errored(process.name, session, error)
    const worker = new Worker(world, { id: process.name, ...options, onError })
    worker.start()
    if (this.#scheduler.chance.yes(0.15)) this.#live(this.#deploy(process, worker, name, generation))
  }

  #shared(crashed: () => void): Shared {
    const faults = (): Faults | null => (this.#scheduler.elapsed() < FAULTY_MS ? FAULTS : null)
    const onCrash = (process: SimProcess): void => {
      for (const [session, { fold: state }] of this.#invariants.sessions()) {
        const ours = this.#invariants.leases.get(session)?.worker === process.name
        if (ours && state.run?.turn?.open.some((call) => call.state.type === 'running')) this.#between = true
      }
      crashed()
    }
    return { scheduler: this.#scheduler, store: this.#store, tally: this.#tally, disk: this.#disk, faults, onCrash }
  }

  #later(name: string, generation: number): void {
    this.#scheduler.timer(this.#scheduler.chance.between(5, 150), () => this.#boot(name, generation + 1))
  }

  /** A clean stop in the middle of things, as a deploy does, and a new process after it. */
  async #deploy(process: SimProcess, worker: Worker, name: string, generation: number): Promise<void> {
    await process.sleep(this.#scheduler.chance.between(50, 900))
    await worker.close()
    if (!process.alive) return
    this.#restarts += 1
    process.alive = false
    this.#later(name, generation)
  }

  #errored(worker: string, session: string, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // The disk stayed full for longer than the attempt's patience: it ends, and somebody looks again later.
    if (code === 'disk_full' || code === 'lease_lost') return
    this.#errors.push(
      `E1 ${worker} ${session}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`,
    )
  }

  /** What was acknowledged is in the log; the log, refolded, is what was seen; the snapshot says the same; money adds up. */
  async #audit(): Promise<void> {
    for (const { session, seq, id } of this.#people.acks) {
      const [event] = (await this.#store.read(session, seq - 1, 1)).events
      if (!event || !('id' in event) || event.id !== id)
        this.#errors.push(`A1 ${session}@${seq}: acknowledged ${id} is not there`)
    }
    for (const [session, { fold: live, spent }] of this.#invariants.sessions()) {
      const { events } = await this.#store.read(session, 0)
      const whole = JSON.stringify(events.reduce(fold, EMPTY))
      if (whole !== JSON.stringify(live)) this.#errors.push(`A2 ${session}: refolding the log gives another session`)
      const snapshot = await this.#store.snapshot(session)
      if (snapshot) {
        const tail = events.slice(snapshot.seq).reduce(fold, JSON.parse(snapshot.body) as Session)
        if (JSON.stringify(tail) !== whole)
          this.#errors.push(`A3 ${session}: the snapshot and its tail give another session`)
      }
      const account = await this.#store.account(`session:${session}`)
      const limit = account?.limit ?? Number.POSITIVE_INFINITY
      if (account && account.held !== 0) this.#errors.push(`A4 ${session}: ${account.held} is still held`)
      if (account && account.spent !== spent)
        this.#errors.push(`A5 ${session}: spent ${account.spent}, the log says ${spent}`)
      if (account && account.spent > limit) this.#errors.push(`A6 ${session}: spent ${account.spent} over ${limit}`)
    }
  }

  #live(actor: Promise<void>): void {
    actor.catch((error: unknown) =>
      this.#errors.push(`E2 ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    )
  }
}
