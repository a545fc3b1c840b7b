// One seed, from nothing to rest: real kernel, real driver, real worker, real store (memory unless another is made); simulated everything
// else.
// Two phases: safety (faults on), then liveness (faults off: everything must settle).
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import { parseSnapshot } from '../src/runtime/state/session-cache.ts'
import { fold } from '../src/kernel/fold.ts'
import type { OwnerBody } from '../src/kernel/event.ts'
import type { Claim, CompleteStore } from '../src/ports/store.ts'
import { EMPTY } from '../src/kernel/session.ts'
import { LocalLive } from '../src/live/local-live.ts'
import { Observer } from '../src/runtime/hooks/run-observer.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { Worker } from '../src/runtime/loop/worker.ts'
import { memory } from '../src/stores/memory/memory-store.ts'
import { simAgents } from './agent.ts'
import { type Cast, drawCast, GRACE_MS, RETRY_AFTER_MS, withLongOutage, withStrictHooks } from './cast.ts'
import { simHooks } from './hooks.ts'
import type { Flows } from './flows.ts'
import { Elsewhere } from './elsewhere.ts'
import { Gate, gated } from './gate.ts'
import { Director, graphIn } from './graphs.ts'
import { folderIn, type Trees } from './trees.ts'
import { FAR, Invariants, type Seen } from './invariants.ts'
import { hasBoard, Members } from './members.ts'
import { hasHost, Schedules } from './schedules.ts'
import { hasJobs, Jobs } from './jobs.ts'
import { Cells, hasCells } from './cells.ts'
import { Deliveries, hasDeliveries } from './deliveries.ts'
import { hasPursuits, Pursuits } from './pursuits.ts'
import { Forms, hasForms } from './forms.ts'
import { hasKeepers, Keepers } from './keepers.ts'
import { hasOther, OTHER, OWN, programOf, STRANGE, STRANGE_AGENT, STRANGER } from './programs.ts'
import { hasSecret, leaksInWrites, SECRET, SECRET_NAME } from './secrets.ts'
import { hasSpender, Spenders } from './spenders.ts'
import { Oracle } from './oracle.ts'
import { hasListeners, Listeners } from './listeners.ts'
import { Approver } from './approver.ts'
import { People, type Stage } from './people.ts'
import { type Disk, type Faults, type Running, type Shared, SimProcess, type Tally, Walls } from './process.ts'
import { type Actor, Scheduler } from './scheduler.ts'
import type { Verdicts } from './verdicts.ts'
import { Redactor } from '../src/runtime/redact/redactor.ts'
import { Network, NETWORK_FAULTS, type NetworkFaults, type World, worldOf } from './network.ts'
import { storeWith, withoutTake } from './store-with.ts'
import type { Kept, MakeStore } from './stores.ts'
// Loaded here, as the runtime loads them when they are first needed: a seed must not depend on the seeds that ran before it.
import '../src/runtime/turn/child-place.ts'
import '../src/runtime/turn/compact-context.ts'
import '../src/runtime/turn/prefix-note.ts'
import '../src/runtime/turn/model-failure.ts'
import '../src/runtime/turn/child-orders.ts'
import '../src/runtime/turn/review-run.ts'
import '../src/runtime/turn/run-options.ts'
import '../src/runtime/commit/family.ts'
import '../src/runtime/turn/end-run.ts'
import '../src/runtime/money/allowance.ts'
import '../src/runtime/turn/budgeted-model.ts'
import '../src/runtime/commit/charges.ts'
import '../src/outcomes/take-step.ts'
import '../src/runtime/commit/tell-consumers.ts'
import '../src/runtime/hooks/settled-run.ts'
import '../src/queues/queue-planner.ts'
import '../src/queues/queue-work.ts'
import '../src/tools/core/compile-schema.ts'

const FAULTY_MS = 1_500
/** How often it is asked whether all is at rest. */
const LOOK_MS = 10
/** After the faults: a worker whose clock was set looks again within a minute (due-loop.ts), and then there is work to do. */
const PATIENCE_MS = FAULTY_MS + 60_000 + 5_000
/** After an outage a request that fails is repeated only after half a minute, and some fail several times in a row. */
const AFTER_OUTAGE_MS = 400_000
/** An answer that was cut four times in a row is asked for again only after half a minute. */
const CUTTING_MS = 300_000
/** Further ahead than any clock is ever set. */
const FAR_MS = 20 * 365 * 24 * 3_600_000
/** How far the clocks of processes are from the store's. */
const OFFSETS_MS = [0, 3_600_000, -3_600_000] as const
const FAULTS: Faults = {
  crashBefore: 0.014,
  crashAfter: 0.02,
  crashInside: 0.02,
  stall: 0.005,
  slow: 0.05,
  diskFull: 0.008,
  clockSet: 0.006,
  misjudge: 0.02,
}

export type Report = {
  readonly seed: number
  readonly violations: readonly string[]
  readonly hash: string
  readonly sessions: number
  readonly workers: number
  readonly acked: number
  readonly restarts: number
  readonly cared: number
  /** A process died while some call of its was between intent and result. */
  readonly betweenIntentAndResult: boolean
  readonly seen: Seen
  readonly hooks: Verdicts['tally']
  /** Requests that a provider refused because it was down. */
  readonly refused: number
  /** Tools that a run needs were away. */
  readonly absent: number
  readonly elsewhere: Elsewhere['tally']
  /** Of the members of a shared board; null where there is none. */
  readonly members: Members['tally'] | null
  /** Of the consumers; null where there are none. */
  readonly listeners: Listeners['tally'] | null
  /** Of the cron jobs; null where there are none. */
  readonly jobs: Jobs['tally'] | null
  /** Of the events from outside; null where there are none. */
  readonly deliveries: Deliveries['tally'] | null
  /** Of the cell of a script; null where there is none. */
  readonly cells: Cells['tally'] | null
  /** Of what sessions pursue in rounds; null where nothing is pursued. */
  readonly pursuits: Pursuits['tally'] | null
  /** Of those who fork, compact, close and remove sessions; null where there are none. */
  readonly keepers: Keepers['tally'] | null
  /** Of a budget that is raised; null where there is none. */
  readonly spenders: Spenders['tally'] | null
  /** Of answers with a schema; null where there are none. */
  readonly forms: Forms['tally'] | null
  /** Runs of the sessions of another program; null where there is none. */
  readonly strange: number | null
  /** Tools and models say a secret. */
  readonly secret: boolean
  /** Of the graphs that drive a session. */
  readonly flows: Flows['tally']
  /** Of the worktrees that are swept when a run ends. */
  readonly trees: Trees['seen']
  readonly tally: Tally
  /** `skewed`: how many processes had a clock of their own that was an hour off. */
  readonly world: World & { readonly skewed: number }
}

export type Around = {
  /** Sees the store when all is at rest. */
  readonly look?: (store: CompleteStore) => Promise<void>
  /** Another store than that in memory. */
  readonly make?: MakeStore | null
  /** One actor more. */
  readonly beside?: (stage: Stage) => Promise<void>
}

export async function simulate(seed: number, { look, make = null, beside }: Around = {}): Promise<Report> {
  const simulation = new Simulation(seed, make)
  await simulation.play(beside)
  await look?.(simulation.store)
  await simulation.end()
  return simulation.report()
}

/** How long answers that are cut, and an outage, hold all up. After a long one a wait is as long as the provider asked, or a part of it. */
function outageMs({ outage, roles }: Cast): number {
  const cutting = [...roles.values()].some((role) => role.cutting) ? CUTTING_MS : 0
  if (outage === null) return cutting
  return cutting + outage.forMs + AFTER_OUTAGE_MS + (outage.long ? outage.forMs + 2 * RETRY_AFTER_MS : 0)
}

class Simulation {
  readonly #seed: number
  readonly #scheduler: Scheduler
  readonly #walls: Walls
  readonly #store: CompleteStore
  /** Of a store that does real input and output. */
  readonly #gate: Gate | null
  readonly #throwAway: Kept['end']
  readonly #oracle = new Oracle()
  readonly #cast: Cast
  readonly #invariants: Invariants
  readonly #faults: Faults
  readonly #world: World
  readonly #tally: Tally = {
    crashes: 0,
    familyCrashes: 0,
    stalls: 0,
    fenced: 0,
    conflicts: 0,
    diskFull: 0,
    overBudget: 0,
    clocksSet: 0,
    buried: 0,
    misjudged: 0,
    heldBeside: 0,
    lostAnswers: 0,
    darkened: 0,
    latePackets: 0,
    deafened: 0,
  }
  readonly #running: Running = new Map()
  readonly #disk: Disk = { fullUntil: 0 }
  readonly #people: People
  readonly #approver: Approver
  readonly #elsewhere: Elsewhere
  readonly #members: Members | null
  readonly #director: Director | null
  readonly #schedules: Schedules | null
  readonly #listeners: Listeners | null
  readonly #jobs: Jobs | null
  readonly #deliveries: Deliveries | null
  readonly #cells: Cells | null
  readonly #pursuits: Pursuits | null
  readonly #keepers: Keepers | null
  readonly #spenders: Spenders | null
  readonly #forms: Forms | null
  readonly #errors: string[] = []
  readonly #workers: number
  readonly #sessions: readonly string[]
  #restarts = 0
  #skewed = 0
  #between = false
  #over = false

  constructor(seed: number, make: MakeStore | null) {
    this.#seed = seed
    this.#gate = make && new Gate()
    this.#scheduler = new Scheduler(seed, this.#gate)
    const { chance } = this.#scheduler.actor('cast')
    this.#sessions = Array.from({ length: chance.between(3, 5) }, (_, i) => `s${i}`)
    const drawn = withLongOutage(seed, withStrictHooks(seed, drawCast(chance, this.#sessions)))
    this.#cast = { ...drawn, secret: hasSecret(seed) }
    this.#invariants = new Invariants(this.#oracle, this.#cast)
    this.#faults = this.#cast.clocks ? FAULTS : { ...FAULTS, clockSet: 0 }
    this.#walls = new Walls(this.#scheduler.actor('store'), () => this.#scheduler.elapsed() >= FAULTY_MS)
    const made = make?.(this.#walls, seed) ?? { store: memory({ clock: this.#walls }), end: async () => {} }
    this.#throwAway = made.end
    this.#world = worldOf(seed)
    const observed = this.#observed(this.#world.takes ? made.store : withoutTake(made.store))
    this.#store = this.#gate ? gated(observed, this.#gate) : observed
    const stageOf = (name: string): Stage => this.#stageOf(name)
    this.#people = new People(stageOf)
    this.#approver = new Approver(stageOf('approver'))
    this.#elsewhere = new Elsewhere(stageOf('traveller'))
    this.#members = hasBoard(seed) ? new Members(stageOf('members')) : null
    // A try that a clock put off which was an hour ahead is waited for, and no seed lasts that long.
    this.#listeners = hasListeners(seed) && !this.#cast.clocks ? new Listeners(this.#invariants) : null
    const graph = graphIn(seed)
    this.#director = graph && new Director(stageOf('director'), graph)
    this.#schedules = hasHost(seed) ? new Schedules(stageOf('host')) : null
    this.#jobs = hasJobs(seed, this.#cast) ? new Jobs(stageOf('jobs'), this.#walls) : null
    this.#deliveries = hasDeliveries(seed, this.#cast) ? new Deliveries(stageOf('deliveries')) : null
    this.#cells = hasCells(seed, this.#cast) ? new Cells(stageOf('cells'), seed, this.#oracle) : null
    this.#pursuits = hasPursuits(seed, this.#cast) ? new Pursuits(stageOf('pursuits')) : null
    this.#keepers = hasKeepers(seed, this.#cast) ? new Keepers(stageOf('keepers'), this.#oracle) : null
    this.#spenders = hasSpender(seed, this.#cast) ? new Spenders(stageOf('spenders')) : null
    this.#forms = hasForms(seed, this.#cast) ? new Forms(stageOf('forms')) : null
    this.#workers = chance.between(2, 3)
    const { outage } = this.#cast
    const from = this.#scheduler.now() + (outage?.fromMs ?? 0)
    if (outage) this.#oracle.outage = { from, until: from + outage.forMs, long: outage.long === true }
  }

  async play(beside?: (stage: Stage) => Promise<void>): Promise<void> {
    await this.#cells?.load()
    await this.#store.open()
    for (const session of this.#sessions) await this.#create(session, session, OWN)
    if (hasOther(this.#seed)) for (const session of STRANGE) await this.#create(session, STRANGE_AGENT, OTHER)
    for (let i = 0; i < this.#workers; i++) this.#boot(`w${i}`, 0)
    if (hasOther(this.#seed)) this.#boot(STRANGER, 0)
    for (const session of this.#sessions) this.#live(this.#people.user(session))
    this.#live(this.#approver.play())
    this.#live(this.#people.meddler())
    this.#live(this.#people.overseer())
    this.#live(this.#people.caretaker())
    this.#live(this.#elsewhere.traveller())
    if (this.#members) this.#live(this.#members.play())
    if (this.#director) this.#live(this.#director.play())
    if (this.#schedules) this.#live(this.#schedules.play())
    if (this.#jobs) this.#live(this.#jobs.play())
    if (this.#deliveries) this.#live(this.#deliveries.play())
    if (this.#cells) this.#live(this.#cells.play())
    if (this.#pursuits) this.#live(this.#pursuits.play())
    if (this.#keepers) this.#live(this.#keepers.play())
    if (this.#spenders) this.#live(this.#spenders.play())
    if (this.#forms) this.#live(this.#forms.play())
    if (hasOther(this.#seed)) for (const session of STRANGE) this.#live(this.#people.user(session))
    if (beside) this.#live(beside(this.#stageOf('beside')))
    await this.#pass(PATIENCE_MS + outageMs(this.#cast))
    this.#over = true
    this.#invariants.close()
    if (!this.#broken()) await this.#audit()
  }

  /** Lets time pass until all is at rest, a rule is broken, or patience is at its end. */
  async #pass(patienceMs: number): Promise<void> {
    // Looked at each ten milliseconds, and not at each timer, so that an actor who only looks moves nothing.
    const begun = this.#scheduler.now()
    let looked = begun
    for (let at = await this.#scheduler.next(); at !== null && !this.#broken(); at = await this.#scheduler.next()) {
      const look = begun + (Math.ceil((at - begun) / LOOK_MS) - 1) * LOOK_MS
      if (look > looked && look > begun + FAULTY_MS && this.#rested(look)) return
      looked = Math.max(looked, look)
      if (this.#scheduler.elapsed() >= patienceMs) {
        this.#errors.push(`L1 not settled: ${this.#invariants.settled(this.#scheduler.now()).join('; ')}`)
        return
      }
      this.#scheduler.fire()
    }
  }

  #stageOf(name: string): Stage {
    const around = {
      actor: this.#scheduler.actor(name),
      store: this.#store,
      disk: this.#disk,
      invariants: this.#invariants,
      over: (): boolean => this.#over,
    }
    return { ...around, say: (session, event) => this.#people.say(around, session, event) }
  }

  get store(): CompleteStore {
    return this.#store
  }

  async end(): Promise<void> {
    await this.#scheduler.still()
    await this.#throwAway()
  }

  report(): Report {
    return {
      seed: this.#seed,
      violations: [
        ...this.#oracle.violations,
        ...this.#invariants.violations,
        ...(this.#members?.violations ?? []),
        ...(this.#listeners?.violations ?? []),
        ...(this.#jobs?.violations ?? []),
        ...(this.#deliveries?.violations ?? []),
        ...(this.#pursuits?.violations ?? []),
        ...(this.#keepers?.violations ?? []),
        ...(this.#spenders?.violations ?? []),
        ...this.#errors,
      ],
      hash: this.#invariants.close(),
      sessions: this.#sessions.length,
      workers: this.#workers,
      acked: this.#people.acks.length,
      restarts: this.#restarts,
      cared: this.#people.cared,
      betweenIntentAndResult: this.#between,
      seen: this.#invariants.seen,
      hooks: this.#invariants.verdicts.tally,
      refused: this.#oracle.refused,
      absent: this.#oracle.absent,
      elsewhere: this.#elsewhere.tally,
      members: this.#members?.tally ?? null,
      listeners: this.#listeners?.tally ?? null,
      jobs: this.#jobs?.tally ?? null,
      deliveries: this.#deliveries?.tally ?? null,
      cells: this.#cells?.tally ?? null,
      pursuits: this.#pursuits?.tally ?? null,
      keepers: this.#keepers?.tally ?? null,
      spenders: this.#spenders?.tally ?? null,
      forms: this.#forms?.tally ?? null,
      secret: this.#cast.secret,
      strange: hasOther(this.#seed) ? this.#strangeRuns() : null,
      flows: this.#invariants.flows.tally,
      trees: this.#invariants.trees.seen,
      tally: this.#tally,
      world: { ...this.#world, skewed: this.#skewed },
    }
  }

  #strangeRuns(): number {
    return STRANGE.reduce((sum, session) => sum + (this.#invariants.ended.get(session)?.length ?? 0), 0)
  }

  #broken(): boolean {
    const { violations = [] } = this.#members ?? {}
    const others = [this.#listeners, this.#jobs, this.#deliveries, this.#pursuits, this.#keepers, this.#spenders]
    const heard = others.reduce((sum, actor) => sum + (actor?.violations.length ?? 0), 0)
    const { length } = this.#oracle.violations
    return length + this.#invariants.violations.length + violations.length + heard + this.#errors.length > 0
  }

  #rested(now: number): boolean {
    const quiet =
      this.#people.busy +
        this.#elsewhere.busy +
        (this.#members?.busy ?? 0) +
        (this.#director?.busy ?? 0) +
        (this.#schedules?.busy ?? 0) +
        (this.#jobs?.busy ?? 0) +
        (this.#deliveries?.busy ?? 0) +
        (this.#cells?.busy ?? 0) +
        (this.#pursuits?.busy ?? 0) +
        (this.#keepers?.busy ?? 0) +
        (this.#spenders?.busy ?? 0) +
        (this.#forms?.busy ?? 0) ===
      0
    return quiet && this.#invariants.isSettled(now)
  }

  /** Sees every commit and every lease as they happen. */
  #observed(store: CompleteStore): CompleteStore {
    const watched = new Map<string, () => void>()
    // A store that lost the answer of a commit tells that there is something new, and not what.
    const unread = new Set<string>()
    const commit: CompleteStore['commit'] = (writes) => {
      for (const { session } of writes) {
        if (watched.has(session)) continue
        const unwatch = store.watch(session, (news) => {
          if (news === null) unread.add(session)
          else if (!unread.has(session)) this.#invariants.take(session, news)
        })
        watched.set(session, unwatch)
      }
      this.#jobs?.look(writes)
      this.#pursuits?.look(writes)
      if (this.#cast.secret) this.#errors.push(...leaksInWrites(writes))
      // The store in memory tells its listeners before it returns, the others before they answer.
      const receipts = store.commit(writes)
      if (this.#gate) return this.#readOn(store, unread, receipts)
      this.#invariants.committed()
      return receipts
    }
    const claim: CompleteStore['claim'] = async (session, worker, ttlMs, self) => {
      const given = await store.claim(session, worker, ttlMs, self)
      if (given) this.#invariants.leases.set(session, { epoch: given.epoch, worker })
      return given
    }
    const remove: CompleteStore['remove'] = async (session, by) => {
      const removed = await store.remove(session, by)
      for (const { session: gone } of removed) {
        watched.get(gone)?.()
        watched.delete(gone)
        unread.delete(gone)
        this.#invariants.forget(gone)
      }
      return removed
    }
    if (!store.take) return storeWith(store, { commit, claim, remove })
    const take: typeof store.take = async (worker, ttlMs, wanted) => {
      const taken = (await store.take?.(worker, ttlMs, wanted)) ?? new Map<string, Claim>()
      for (const [session, { epoch }] of taken) this.#invariants.leases.set(session, { epoch, worker })
      return taken
    }
    return storeWith(store, { commit, claim, take, remove })
  }

  /** Takes, after a commit, what the store did not say of it, and then the commit as a whole. */
  async #readOn<T>(store: CompleteStore, unread: Set<string>, receipts: Promise<T>): Promise<T> {
    try {
      return await receipts
    } finally {
      for (const session of unread) {
        const { events } = await store.read(session, this.#invariants.seqOf(session))
        unread.delete(session)
        this.#invariants.take(session, events)
      }
      this.#invariants.committed()
    }
  }

  async #create(session: string, agent: string, program: string): Promise<void> {
    const { chance } = this.#scheduler.actor(`create ${session}`)
    const folder = folderIn(this.#seed)
    const created = { type: 'session.created', agent, planner: 'model', program } as const
    const bodies: OwnerBody[] = [folder === undefined ? created : { ...created, folder }]
    // Made by a machine whose clock was wrong: its wakes lie ahead of the right time.
    const aheadMs = this.#cast.clocks && chance.yes(0.2) ? FAR_MS : 0
    const at = this.#scheduler.now() + aheadMs
    if (aheadMs === 0 && chance.yes(0.2))
      bodies.push({ type: 'wake.scheduled', due: at + 2 * FAR_MS, reason: 'simulated', key: FAR })
    if (chance.yes(0.4)) {
      const due = at + chance.between(100, 1_200)
      bodies.push(
        { type: 'wake.scheduled', due, reason: 'simulated', key: 'w' },
        { type: 'wake.scheduled', due: due + 50, reason: 'again', key: 'w' },
      )
    }
    const limit = this.#cast.allowances.get(session) ?? null
    const charges = [{ type: 'limit', account: `session:${session}`, limit } as const]
    const write = { ...ownerWrite(session, EMPTY, bodies, { now: at, epoch: 0 }), charges }
    await this.#walls.by(aheadMs, () => this.#store.commit([write]))
  }

  #boot(name: string, generation: number): void {
    const process = new SimProcess(
      `${name}.${generation}`,
      this.#shared(name, generation, ({ actor }) => this.#later(name, generation, actor)),
    )
    const { chance } = process
    const random = { id: () => `${process.name}-${chance.between(0, 1e9)}`, fraction: () => chance.fraction() }
    const lanes = this.#listeners?.agentsIn(process)
    const agents = simAgents(this.#cast, process, this.#oracle)
    const jobs = this.#jobs?.agentIn(process)
    const triggers = this.#deliveries?.agentIn(process)
    const cells = this.#cells?.agentIn(process)
    const host = { services: null as unknown, wake: (id: string): Promise<unknown> => worker.wake(id) }
    const poets = this.#pursuits?.agentIn(process, () => host)
    const others = [this.#keepers, this.#spenders, this.#forms].flatMap((actor) => actor?.agentIn(process) ?? [])
    const otherAgent = (name: string): Agent | null =>
      others.reduce<Agent | null>((found, of) => found ?? of(name), null)
    const agent: typeof agents = (name) =>
      lanes?.get(name) ??
      jobs?.(name) ??
      triggers?.(name) ??
      cells?.(name) ??
      poets?.(name) ??
      otherAgent(name) ??
      agents(name)
    const { store, clock } = process
    const hooks = this.#cast.hooks ? simHooks(this.#cast.hooks, process, this.#invariants.verdicts) : null
    const report = (error: unknown): void => this.#errored(process.name, 'observer', error)
    const services = {
      store,
      live: new LocalLive(),
      clock,
      random,
      processes: process.processes,
      agent,
      code: 'sim',
      redactor: new Redactor(this.#cast.secret ? { [SECRET_NAME]: SECRET } : {}),
      program: { names: [programOf(process.name)], given: programOf(process.name) === OTHER },
      watchdog: null,
      worktrees: this.#invariants.trees.of(process),
      choosable: [],
      model: () => {
        throw new Error('no simulated run chooses its model')
      },
      schemas: new Map(),
      makeDeps: null,
      hooks,
      breaker: this.#cast.breaker ? {} : (false as const),
      compaction: this.#cast.window === null ? {} : { windowTokens: this.#cast.window },
      observer: hooks && new Observer({ store, clock, hooks, tracer: null, report }),
      consumers: {
        told: (this.#listeners?.names ?? []).map((name) => ({ name })),
        existing: new Set<string>(),
      },
    }
    host.services = services
    const options = { leaseMs: 120, graceMs: GRACE_MS, lingerMs: 2_000, patienceMs: 2_000, width: 8 }
    const onError = (session: string, error: unknown): void => this.#errored(process.name, session, error)
    const worker = new Worker(services, { id: process.name, ...options, onError })
    worker.start()
    if (chance.yes(0.15)) this.#live(this.#deploy(process, worker, name, generation))
  }

  #shared(name: string, generation: number, crashed: (process: SimProcess) => void): Shared {
    const faults = (): Faults | null => (this.#scheduler.elapsed() < FAULTY_MS ? this.#faults : null)
    const onCrash = (process: SimProcess): void => {
      for (const [session, { fold: state }] of this.#invariants.sessions()) {
        const ours = this.#invariants.leases.get(session)?.worker === process.name
        if (ours && state.run?.turn?.open.some((call) => call.state.type === 'running')) this.#between = true
      }
      crashed(process)
    }
    const holder = (session: string): string | undefined => this.#invariants.leases.get(session)?.worker
    const onHold = ({ name }: SimProcess, sessions: readonly string[]): void => {
      this.#errors.push(`M4 ${name} holds money for ${sessions.join(', ')}, which another worker has`)
    }
    return {
      running: this.#running,
      tells: this.#cast.tells,
      walls: this.#walls,
      scheduler: this.#scheduler,
      store: this.#store,
      tally: this.#tally,
      disk: this.#disk,
      gate: this.#gate,
      faults,
      onCrash,
      onHold,
      holder,
      ...this.#networkOf(name, generation),
    }
  }

  #networkOf(name: string, generation: number): Pick<Shared, 'network' | 'offsetMs'> {
    if (!this.#world.networked) return { network: null, offsetMs: 0 }
    const actor = this.#scheduler.actor(`network ${name}.${generation}`)
    const faults = (): NetworkFaults | null => (this.#scheduler.elapsed() < FAULTY_MS ? NETWORK_FAULTS : null)
    const network = new Network(actor, faults, this.#tally)
    const offsetMs = actor.chance.pick(OFFSETS_MS)
    if (offsetMs !== 0) this.#skewed += 1
    return { network, offsetMs }
  }

  #later(name: string, generation: number, actor: Actor): void {
    actor.timer(actor.chance.between(5, 150), () => this.#boot(name, generation + 1))
  }

  /** A clean stop in the middle of things, as a deploy does, and a new process after it. */
  async #deploy(process: SimProcess, worker: Worker, name: string, generation: number): Promise<void> {
    await process.sleep(process.chance.between(50, 900))
    await worker.close()
    if (!process.alive) return
    this.#restarts += 1
    process.alive = false
    this.#later(name, generation, process.actor)
  }

  #errored(worker: string, session: string, error: unknown): void {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // Somebody removed the session after the lease of a worker had run out, and the worker hears of it when it writes.
    if (code === 'session_missing' && this.#invariants.gone.has(session)) return
    // The disk stayed full for longer than the attempt's patience: the attempt ends, and a worker looks again later.
    if (code === 'disk_full' || code === 'lease_lost' || code === 'store_busy') return
    this.#errors.push(
      `E1 ${worker} ${session}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`,
    )
  }

  /** What was acknowledged is in the log; the log, refolded, is what was seen; the snapshot says the same; money adds up. */
  async #audit(): Promise<void> {
    for (const { session, seq, id } of this.#people.acks) {
      if (this.#invariants.gone.has(session)) continue
      const [event] = (await this.#store.read(session, seq - 1, 1)).events
      if (!event || !('id' in event) || event.id !== id)
        this.#errors.push(`A1 ${session}@${seq}: acknowledged ${id} is not there`)
    }
    for (const [session, { fold: live }] of this.#invariants.sessions()) {
      const { events } = await this.#store.read(session, 0)
      const whole = JSON.stringify(events.reduce(fold, EMPTY))
      if (whole !== JSON.stringify(live)) this.#errors.push(`A2 ${session}: refolding the log gives another session`)
      const snapshot = await this.#store.snapshot(session)
      if (snapshot) {
        const tail = events.slice(snapshot.seq).reduce(fold, parseSnapshot(snapshot.body).session)
        if (JSON.stringify(tail) !== whole)
          this.#errors.push(`A3 ${session}: the snapshot and its tail give another session`)
      }
    }
    const others = [this.#keepers, this.#spenders, this.#forms]
    for (const actor of [this.#listeners, this.#jobs, this.#deliveries, this.#cells, this.#pursuits, ...others])
      this.#errors.push(...((await actor?.audit(this.#store)) ?? []))
    const beside = Math.max(this.#oracle.summaries, this.#tally.heldBeside)
    this.#errors.push(...(await this.#invariants.money.audit(this.#store, beside)))
  }

  #live(actor: Promise<void>): void {
    actor.catch((error: unknown) =>
      this.#errors.push(`E2 ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    )
  }
}
