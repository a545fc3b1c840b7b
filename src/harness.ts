// The harness: wires agents, tools, models and a store into sessions. sessions/verbs.ts declares its verbs; the kernel
// alone decides what happens to a session.
import { laneAgents } from './consumers/lane-agents.ts'
import { type OutcomeAgents, outcomeAgents } from './outcomes/outcome-agents.ts'
import { type Graph, graphAgents, graphCheck } from './graphs/graph-definition.ts'
import { Fault } from './kernel/failure.ts'
import { registerTriggers, triggersCheck, type Triggers } from './triggers/trigger-definition.ts'
import type { Claim, CompleteStore, Store, TakeOptions } from './ports/store.ts'
import type { Model } from './ports/model.ts'
import type { Clock, Random } from './ports/system.ts'
import type { OutputMode } from './models/structured-output.ts'
import { type Routes, RouteTable } from './models/router.ts'
import {
  anyCheck,
  functionCheck,
  type Check,
  type Checks,
  clockCheck,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  methodsCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  orNull,
  objectCheck,
  msCheck,
  tableCheck,
  textCheck,
  optionsCheck,
} from './options.ts'
import {
  DEFAULT_AGENT,
  AGENT_ELSEWHERE,
  AGENT_OPTIONS,
  type AgentOptions,
  CONTEXT_OPTIONS,
  buildAgents,
  type AgentAnswers,
  modelCheck,
  type SubagentOptions,
  type Subagents,
  type ToolsBelow,
} from './sessions/agent.ts'
import type { BreakerOptions } from './runtime/guard/guard.ts'
import type { Hook } from './runtime/state/hook-events.ts'
import type { Input } from './sessions/input.ts'
import { liveOf } from './live/shared-live.ts'
import { checkBound } from './runtime/hooks/consumers.ts'
import { Observer, type RunTracer } from './runtime/hooks/run-observer.ts'
import { runtimeClock, systemRandom } from './runtime/state/machine.ts'
import { systemProcesses } from './runtime/state/processes.ts'
import { programCheck, readProgramNames } from './runtime/state/program.ts'
import { sessionDescription, ORIGIN_OPTIONS, buildOrigin } from './sessions/origin.ts'
import type { SessionBeginning } from './runtime/loop/act-as-owner.ts'
import type { WorkResult, WorkOptions } from './runtime/loop/due-loop.ts'
import { BUDGET_CHECKS } from './runtime/money/spending-limits.ts'
import type { Budget } from './runtime/state/agent.ts'
import { environmentSecrets, Redactor, type Secrets } from './runtime/redact/redactor.ts'
import type { Result } from './runtime/state/run-result.ts'
import { Watchdog } from './runtime/state/watchdog.ts'
import { type WorkerLook, type RestReport, Worker, WORKER_OPTIONS, type WorkerOptions } from './runtime/loop/worker.ts'
import type { CommitCounter, Compaction, MakeDeps, ProgramNames, Services } from './runtime/state/runtime-ports.ts'
import type { Agent } from './runtime/state/agent.ts'
import type { ApprovalOptions } from './runtime/state/agent-approvals.ts'
import {
  checkPending,
  checkRemove,
  checkSession,
  checkSessionChoice,
  ELSEWHERE,
  type PendingFilter,
  type RemoveOptions,
  RUN_OPTIONS,
  type RunOptions,
  type SessionChoice,
  STREAM_OPTIONS,
  type StreamOptions,
} from './sessions/verb-options.ts'
import type { AgentRow } from './sessions/look/describe.ts'
import type { Health } from './sessions/look/health.ts'
import { type PendingCall, pendingInStore } from './sessions/look/pending.ts'
import type { SessionAccess } from './sessions/await-run.ts'
import { openStream, runInput } from './sessions/drive/driven.ts'
import { createWithMessage, retryNow } from './sessions/drive/enter.ts'
import { createOnce } from './sessions/drive/made.ts'
import { wakeSession } from './sessions/drive/place.ts'
import type { ListedPage, ListOptions } from './sessions/list-page.ts'
import type { BeginOptions, OpenOptions, Removed, RunStream, Session, Sessions } from './sessions/verbs.ts'
import type { TypedSessions } from './sessions/typed.ts'
import type { TriggerEnvelope, TriggerReceipt } from './sessions/trigger-envelope.ts'
import { watchSessionCards } from './sessions/follow/open.ts'
import { labelsCheck } from './sessions/metadata.ts'
import { buildModels } from './sessions/models.ts'
import {
  findAgent,
  agentFinder,
  checkBreaker,
  buildHooks,
  buildReporter,
  emitTerretWarning,
  completeWorkOptions,
  dayBudgetsOf,
} from './sessions/harness-parts.ts'
import { bindPlugins, type BoundPlugins, type Plugin } from './sessions/plugins.ts'
import { SessionHandle } from './session.ts'
import { keepProcessAlive, systemClock as idleClock } from './stores/plan/system-clock.ts'
import { checkSessionId } from './stores/plan/store-ids.ts'
import { memory } from './stores/memory/memory-store.ts'
import { completeStore } from './stores/plan/complete-store.ts'
import type { Tool } from './tools/core/tool.ts'
import type { AnySchema, DepsOf, ToolList } from './tools/core/tool-types.ts'
import { isLaneAgent, mayBeLane } from './view/lanes.ts'
import { VERSION } from './version.ts'

/** How a harness drives sessions: its leases, its width, and what it reports. */
export type HarnessWorker = Partial<Omit<WorkerOptions, 'named' | 'drives' | 'alarm'>> & {
  /** `false`: it records messages to sessions, and drives none of them. Workers on the same store do that. */
  readonly drives?: boolean
  /**
   * Reports on stderr which call blocks the event loop for longer than this. Uses a thread of its own; off unless set.
   */
  readonly watchdogMs?: number
}

/** The models of a harness beside those of its agents. */
export type ModelChoices = {
  /** Models that a run may choose by these names, besides those named `provider:model`. */
  readonly named?: Readonly<Record<string, Model | string>>
  /**
   * A model for each workload. Agents, runs and tools ask for one by `hint:NAME`; `summarization` summarises a full
   * context.
   */
  readonly routes?: Routes
}

/** `new Harness` infers the parameters. Without them, this type has the options that all harnesses share. */
export type HarnessOptions<
  Tools extends ToolList = ToolList,
  Schema extends AnySchema = AnySchema,
  Mode extends OutputMode = OutputMode,
  Agents extends Subagents = Subagents,
  Graphs extends readonly Graph[] = readonly Graph[],
  Plugins extends readonly Plugin[] = readonly Plugin[],
> = AgentOptions<Tools, Schema, Mode> & {
  /** The store of the sessions. Without one they live in memory and end with the process. */
  readonly store?: Store
  /**
   * The name of your program, which its sessions get. Its workers drive these sessions, and leave those of other
   * programs on the same store alone. Of several names, the first is for new sessions. Set it before a second program
   * opens the store.
   */
  readonly program?: string | readonly string[]
  /** The policy, who decides, and how long a question stays open. */
  readonly approvals?: ApprovalOptions
  /**
   * Values that must never be written, shown or sent, by name. Default: environment variables whose names suggest a
   * secret.
   */
  readonly secrets?: Secrets
  /** In dollars: calls that could exceed it are not made. */
  readonly budget?: Budget
  /** `true`: the agent may start children like itself. Or a table of the agents it may start, by name. */
  readonly subagents?: Agents & OnlyKnown<Agents, SubagentOptions>
  /**
   * Subagents work while their parent goes on, and report by a message. The model gets the tools to lead them. Default
   * false.
   */
  readonly detached?: boolean
  /** Workflows, each an agent by its name: `run(input, { agent: 'report' })`. */
  readonly graphs?: Graphs
  /** Events from outside become sessions: `createTriggers` of `terret/triggers`. */
  readonly triggers?: Triggers
  /** Tools, instructions, hooks and consumers of the log that belong together. They are closed with the harness. */
  readonly plugins?: Plugins
  /** Your own code around runs and calls, in this order. */
  readonly hooks?: readonly Hook<ToolsOf<Tools, Agents, Graphs, Plugins>>[]
  /** Models that a run may choose by name, and a model for each kind of work. */
  readonly models?: ModelChoices
  /**
   * Builds the `deps` of tools: clients, connections, the session's user. Called once for each run that a worker
   * drives, before its first call there. Values with `close` or `Symbol.asyncDispose` are closed when the next run
   * begins or the worker leaves the session.
   */
  readonly deps?: MakeDeps
  /** When a run without progress is nudged and halted. `false`: never. */
  readonly breaker?: BreakerOptions | false
  readonly context?: {
    /**
     * How a full context of a session is compacted: old results are cleared, then all but the last messages are
     * summarised by the session's own model. `false`: the run ends instead. `windowTokens`: the models take no more than
     * this; without it, their known windows count. With an object, agents with tools also get `retrieve_original`, which
     * reads cleared or cut text again. `detectPins: false`: rules that users write are not looked for.
     */
    readonly compaction?: Compaction | false
  }
  /** Makes spans of settled runs: `tracing` of `terret/tracing`. It is closed with the harness. */
  readonly tracing?: (place: {
    readonly store: Store
    readonly clock: Clock
    readonly report: (error: unknown) => void
  }) => RunTracer
  /**
   * Called with errors beside a run, which do not end it: a hook that threw, an exporter that failed, an MCP server
   * that is missing. Default: a warning of the process.
   */
  readonly onError?: (where: string, error: unknown) => void
  /** Whether and how it drives sessions. */
  readonly worker?: HarnessWorker
  /** The clock and the randomness of this process. Default: those of the machine. */
  readonly system?: { readonly clock?: Clock; readonly random?: Random }
}

/** All tools that agents of a harness may have. The tools of workflows and plugins are not known. */
type ToolsOf<Tools extends ToolList, Agents, Graphs, Plugins> =
  | Tools[number]
  | ToolsBelow<Agents>
  | ([Graphs | Plugins] extends [never] ? never : Tool)

/** A misspelled option does not compile, even where the options themselves are inferred. */
type OnlyKnown<Table, Options> = {
  readonly [Name in keyof Table]: NoneBut<Table[Name], Options> & {
    readonly [Group in keyof Table[Name] & Grouped & keyof Options]?: NoneBut<Table[Name][Group], Options[Group]>
  }
}
type NoneBut<Given, Options> = { readonly [Key in Exclude<keyof Given, keyof NonNullable<Options>>]: never }
/** The options of agents that are groups of options. */
type Grouped = 'toolAccess' | 'results' | 'context' | 'limits'

/** If a tool needs something of `deps`, the option is required. */
type WithDeps<Deps> = unknown extends Deps ? unknown : { readonly deps: MakeDeps<Deps> }

/** A harness with any options. `new Harness` returns a more precise type. */
export type Harness = Sessions

/** `AgentAnswers` are the types of its agents' answers, by name, and `Tools` all tools that they have: both are inferred. */
export type TypedHarness<
  Answers extends Readonly<Record<string, unknown>>,
  Tools extends ToolList[number],
> = TypedSessions<Answers, Tools>

type NewHarness = new <
  Tools extends ToolList | [] = ToolList,
  Schema extends AnySchema = never,
  Mode extends OutputMode = 'auto',
  Agents extends Subagents = never,
  Graphs extends readonly Graph[] = never,
  Plugins extends readonly Plugin[] = never,
>(
  options: HarnessOptions<Tools, Schema, Mode, Agents, Graphs, Plugins> &
    WithDeps<DepsOf<Tools[number] | ToolsBelow<Agents>>>,
) => TypedHarness<AgentAnswers<Schema, Mode, Agents, Graphs>, ToolsOf<Tools, Agents, Graphs, Plugins>>

const checkTake = optionsChecker<Omit<TakeOptions, 'process'>>('takeDueSessions', {
  limit: requiredCheck(countCheck()),
  agents: listCheck(nonEmptyCheck),
  among: listCheck(nonEmptyCheck),
  fresh: flagCheck,
})

/** A common mistake is to give a path. */
const storeCheck: Check = (value, name, of) => {
  if (typeof value === 'string') return `is a text. Write store: sqlite(${JSON.stringify(value)})`
  return methodsCheck('give one, such as sqlite("file.db")', 'commit', 'read', 'claim', 'list')(value, name, of)
}

const checkModels = optionsCheck<ModelChoices>({ named: tableCheck(modelCheck), routes: tableCheck(modelCheck) })
const checkContext = optionsCheck<NonNullable<HarnessOptions['context']>>({
  ...CONTEXT_OPTIONS,
  compaction: (value, name, of) => (value === false ? null : checkCompaction(value, name, of)),
})
const checkCompaction = optionsCheck<Compaction>({ windowTokens: countCheck(1), detectPins: flagCheck })
/** A function here is often meant to build the `deps` of tools. */
const contextCheck: Check = Object.assign<Check, Check>(
  (value, name, of) =>
    typeof value === 'function' ? 'cannot be a function: write deps for what tools get' : checkContext(value, name, of),
  checkContext,
)

const checkOptions = optionsChecker<HarnessOptions>(
  'new Harness',
  {
    ...AGENT_OPTIONS,
    store: storeCheck,
    program: programCheck,
    approvals: optionsCheck<ApprovalOptions>({
      // `parsePolicy` checks it, like a file of rules.
      policy: objectCheck,
      environment: nonEmptyCheck,
      timeoutMs: orNull(msCheck),
    }),
    secrets: tableCheck(textCheck),
    budget: optionsCheck<Budget>(BUDGET_CHECKS),
    // Each agent is checked later, under its name.
    subagents: (value, name, of) => (value === true ? null : tableCheck(() => null)(value, name, of)),
    detached: flagCheck,
    graphs: listCheck(graphCheck),
    triggers: triggersCheck,
    hooks: listCheck(() => null),
    // Each plugin is checked later, by its position.
    plugins: listCheck(() => null),
    models: checkModels,
    deps: functionCheck,
    breaker: (value, name, of) => (value === false ? null : objectCheck(value, name, of)),
    context: contextCheck,
    tracing: functionCheck,
    onError: functionCheck,
    worker: optionsCheck<HarnessWorker>({ ...WORKER_OPTIONS, drives: flagCheck, watchdogMs: anyCheck }),
    system: optionsCheck<NonNullable<HarnessOptions['system']>>({
      clock: clockCheck,
      random: methodsCheck('give one with id() and fraction()', 'id', 'fraction'),
    }),
  },
  {
    ...AGENT_ELSEWHERE,
    approvalMs: 'Write approvals: { timeoutMs }.',
    strictHooks: 'Write strict: true on each hook that must be.',
  },
)
const checkOpen = optionsChecker<OpenOptions>('open', {
  ...ORIGIN_OPTIONS,
  agent: nonEmptyCheck,
  id: textCheck,
  reuse: flagCheck,
  messages: listCheck(anyCheck),
})
const BEGIN: Checks<BeginOptions> = { agent: nonEmptyCheck, labels: labelsCheck }
const checkRun = optionsChecker<RunOptions & BeginOptions>('run', { ...RUN_OPTIONS, ...BEGIN }, ELSEWHERE)
const checkStream = optionsChecker<StreamOptions & BeginOptions>('stream', { ...STREAM_OPTIONS, ...BEGIN }, ELSEWHERE)

/** How long closing waits for consumers that are being told. */
const CLOSE_MS = 30_000

type HarnessParts = {
  readonly store: CompleteStore
  readonly program: ProgramNames
  readonly drives: boolean
  /** The sources of its triggers. */
  readonly sources: readonly string[]
  /** Has the redactor replace these too. */
  readonly learn: (secrets: Secrets) => void
  /** What it was made of, and its models by their names. */
  readonly options: HarnessOptions
  readonly model: (name: string) => Model
  /** Calls back with the events of each commit as a session's owner. Returns a function that ends it. */
  readonly listen: (counter: CommitCounter) => () => void
}
const harnessStores = new WeakMap<object, HarnessParts>()

/** For a server over a harness. Null if the object is not a harness of this process. */
export function harnessParts(harness: object): HarnessParts | null {
  return harnessStores.get(harness) ?? null
}

/** Drives single sessions, for `terret/worker`. */
type SessionDriver = {
  look(session: string, alone: boolean, claim?: Claim): Promise<WorkerLook>
  take(wanted: Omit<TakeOptions, 'process'>): Promise<ReadonlyMap<string, Claim>>
}
const drivers = new WeakMap<object, SessionDriver>()

export function driverOf(harness: object): SessionDriver {
  const driver = drivers.get(harness)
  if (driver) return driver
  throw new Fault('invalid_config', 'This is no harness of this process. Give one that was made here.')
}

const agentsOfHarness = new WeakMap<object, ReadonlyMap<string, Agent>>()

/**
 * For a command that names them: the tools that the harness's own model is offered, without those of its sources. The
 * last one may be `retrieve_original`, which it gets only after a result was shortened.
 */
export function toolsOfHarness(harness: object): readonly Tool[] {
  const { tools, retrieve } = agentsOfHarness.get(harness)?.get(DEFAULT_AGENT) ?? {}
  const seen = [...(tools?.seen?.values() ?? [])]
  return retrieve && seen.every(({ name }) => name !== retrieve.name) ? [...seen, retrieve] : seen
}

/** What `altered` changes of a harness. `agents` are all that it has, by name. */
export type AlterServices = (services: Services, agents: ReadonlyMap<string, Agent>) => Services

/**
 * A harness whose services are changed before anything uses them, for a what-if. Sources of tools are shared with the
 * harness they came from, so they stay open when this one is closed.
 */
export function alteredHarness(options: HarnessOptions, alter: AlterServices): Harness {
  return new LocalHarness(options, alter)
}

class LocalHarness implements Sessions {
  readonly #services: Services
  readonly #worker: Worker
  readonly #ownsStore: boolean
  readonly #ownsSources: boolean
  readonly #drives: boolean
  readonly #agents: ReadonlyMap<string, Agent>
  readonly #outcomes: OutcomeAgents
  readonly #plugins: BoundPlugins | null
  readonly #table: RouteTable | null
  readonly #triggers: Triggers | null
  #closed = false

  constructor(own: HarnessOptions, alter: AlterServices | null = null) {
    checkOptions(own)
    const plugins = own.plugins?.length ? bindPlugins(own.plugins, own) : null
    const options = plugins ? { ...own, ...plugins.given } : own
    const { clock = runtimeClock, random = systemRandom } = options.system ?? {}
    const { drives = true, watchdogMs, ...worker } = options.worker ?? {}
    const store = options.store ? completeStore(options.store) : memory({ clock })
    const onError = buildReporter(options.onError ?? emitTerretWarning)
    const { named = {}, routes } = options.models ?? {}
    const table = routes ? new RouteTable(routes) : null
    const warn = (text: string): void => onError('tools', new Error(text))
    const shared = { ...options, clock, store, table, sessions: this, warn }
    const consumers = plugins?.consumers ?? []
    const host = { harness: () => this.#consumerHost(), store, clock, report: onError }
    const lanes = laneAgents(consumers, host)
    const graphs = [...(options.graphs ?? []), ...(options.triggers?.graphs ?? [])]
    const agents = graphAgents(graphs, shared, new Map([...buildAgents(options, shared), ...lanes]))
    const outcomes = outcomeAgents(agents, host)
    this.#ownsStore = options.store === undefined
    this.#drives = drives
    this.#agents = agents
    this.#outcomes = outcomes
    agentsOfHarness.set(this, agents)
    this.#plugins = plugins
    this.#table = table
    this.#triggers = options.triggers ?? null
    const live = liveOf(store, clock)
    const hooks = buildHooks({ ...options, clock }, [...agents.keys()], onError)
    const tracer = options.tracing?.({ store, clock, report: (error) => onError('tracing', error) }) ?? null
    const report = (error: unknown): void => onError('observer', error)
    const observe = (): Observer => new Observer({ store, clock, hooks, tracer, report })
    const { keys, ...models } = buildModels(named, table, [...agents.values()])
    const services: Services = {
      watchdog: watchdogMs === undefined ? null : new Watchdog(watchdogMs),
      store,
      live,
      clock,
      random,
      processes: systemProcesses,
      code: `terret@${VERSION}`,
      program: readProgramNames(options.program),
      agent: agentFinder(agents, outcomes.find),
      redactor: new Redactor(Object.assign({}, options.secrets ?? environmentSecrets(), ...keys) as Secrets),
      hooks,
      breaker: checkBreaker(options.breaker ?? {}),
      compaction: options.context?.compaction,
      report: onError,
      ...(tracer ? { traces: { propagate: tracer.propagate ?? false } } : {}),
      observer: hooks || tracer ? observe() : null,
      consumers: { told: consumers, existing: new Set() },
      ...models,
      ...(options.triggers ? { dayBudgets: dayBudgetsOf(agents) } : {}),
      schemas: new Map(),
      makeDeps: options.deps ?? null,
    }
    this.#services = alter === null ? services : alter(services, agents)
    this.#ownsSources = alter === null
    const alarm = options.system?.clock ?? idleClock
    this.#worker = new Worker(this.#services, {
      ...worker,
      alarm,
      drives,
      named: worker.id !== undefined,
      id: worker.id ?? `worker-${random.id()}`,
    })
    this.#register(own, options.triggers, (counter) => (this.#services.observer ??= observe()).count(counter))
    checkBound(consumers, this.#consumerHost())
  }

  /** What servers, workers and triggers reach of this harness beside its verbs. */
  #register(options: HarnessOptions, triggers: Triggers | undefined, listen: HarnessParts['listen']): void {
    const { store, redactor, model, program = readProgramNames(undefined) } = this.#services
    const learn = (secrets: Secrets): void => redactor.learn(secrets)
    const sources = triggers?.sources ?? []
    harnessStores.set(this, { store, program, drives: this.#drives, sources, learn, options, model, listen })
    if (triggers) registerTriggers(this, { services: this.#services, worker: this.#worker })
    drivers.set(this, {
      look: async (...look) => this.#driving().look(...look),
      take: async (wanted) => {
        const worker = this.#driving()
        checkTake(wanted)
        return worker.take(wanted)
      },
    })
  }

  #consumerHost() {
    return { services: this.#services, wake: (id: string) => this.#worker.wake(id) }
  }

  async open(options: OpenOptions = {}): Promise<Session> {
    checkOpen(options)
    const { id = this.#services.random.id(), reuse = false } = options
    const handle = this.session(id)
    const { origin, blobs } = buildOrigin(options)
    const begun = this.#beginning(options)
    const brought = options.messages ? await this.#bring(begun.agent, options.messages) : { blobs: [] }
    const beginning = { ...begun, ...origin, ...brought, blobs: [...blobs, ...brought.blobs] }
    await createOnce(this.#services, id, beginning, reuse ? () => true : undefined)
    return handle
  }

  async #bring(agent: string, messages: NonNullable<OpenOptions['messages']>) {
    const { bringMessages } = await import('./sessions/bring/bring.ts')
    return bringMessages(this.#services, agent, messages)
  }

  /** Uses the environment of the agent. */
  #beginning({ agent = DEFAULT_AGENT, labels }: BeginOptions): SessionBeginning {
    const { environment } = findAgent(this.#agents, agent)
    const begun = environment === null ? { agent } : { agent, environment }
    return labels ? { ...begun, ...sessionDescription({ labels }) } : begun
  }

  session(id: string, options?: SessionChoice): Session {
    if (options !== undefined) checkSessionChoice(options)
    if (options?.stored !== true) checkSessionId(id)
    return new SessionHandle(this.#place(id))
  }

  #place(id: string): SessionAccess {
    this.#check()
    checkSession(id)
    return { id, services: this.#services, worker: this.#worker }
  }

  async run(input: Input, options: RunOptions & BeginOptions = {}): Promise<Result> {
    checkRun(options)
    const place = this.#place(this.#services.random.id())
    const send = () => createWithMessage(place, this.#beginning(options), input, options)
    return runInput(place, { ...options, fresh: true }, send)
  }

  stream(input: Input, options: StreamOptions & BeginOptions = {}): RunStream {
    checkStream(options)
    const place = this.#place(this.#services.random.id())
    return openStream(place, options, () => createWithMessage(place, this.#beginning(options), input, options))
  }

  async trigger(envelope: TriggerEnvelope): Promise<TriggerReceipt> {
    this.#check()
    if (this.#triggers === null)
      throw new Fault(
        'invalid_config',
        'This harness has no triggers. Give it triggers: createTriggers({ … }) of terret/triggers.',
      )
    return this.#triggers.accept({ services: this.#services, worker: this.#worker }, envelope)
  }

  async list(options: ListOptions = {}): Promise<ListedPage> {
    this.#check()
    return (await import('./sessions/list-page.ts')).listSessions(this.#services, options)
  }

  watch(...options: Parameters<Sessions['watch']>): ReturnType<Sessions['watch']> {
    return watchSessionCards({ services: this.#services, worker: this.#worker }, ...options)
  }

  async pending(filter: PendingFilter = {}): Promise<readonly PendingCall[]> {
    this.#check()
    checkPending(filter)
    return pendingInStore(this.#services.store, filter)
  }

  async remove(session: string, options: RemoveOptions = {}): Promise<readonly Removed[]> {
    this.#check()
    checkSession(session)
    checkRemove(options)
    const { removeSession } = await import('./sessions/drive/removed.ts')
    return removeSession(this.#services, session, options.by)
  }

  async agents(): Promise<readonly AgentRow[]> {
    this.#check()
    const { agentRows } = await import('./sessions/look/describe.ts')
    const own = new Map([...this.#agents].filter(([name]) => !isLaneAgent(name)))
    return agentRows(own, { ...this.#services, routes: this.#table })
  }

  async health(): Promise<Health> {
    this.#check()
    const { checkHealth } = await import('./sessions/look/health.ts')
    return checkHealth(this.#services, this.#worker, [...this.#agents.keys()])
  }

  work(options: { readonly session: string }): Promise<RestReport>
  work(options?: WorkOptions): Promise<WorkResult>
  async work(options: WorkOptions | { readonly session: string } = {}): Promise<WorkResult | RestReport> {
    if (typeof options === 'object' && options !== null && 'session' in options) return this.#workOn(options.session)
    const worker = this.#driving()
    const wanted = completeWorkOptions(this.#agents, options, this.#outcomes.withGraders)
    const release = keepProcessAlive()
    try {
      return await worker.work(wanted)
    } finally {
      release()
    }
  }

  async #workOn(session: string): Promise<RestReport> {
    this.#check()
    checkSession(session)
    const { outage, waits = [] } = (await this.#services.store.card(session)) ?? {}
    const tried = outage || waits.length > 0 ? await retryNow(this.#place(session)) : []
    for (const other of tried) if (other !== session) wakeSession(this.#place(other))
    return this.#worker.wake(session)
  }

  /** Stops running work, records how far it came, and gives the sessions back. A store passed in stays open. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#worker.awaitRest(mayBeLane, CLOSE_MS)
    await this.#worker.close()
    const agents = this.#ownsSources ? [...this.#agents.values()] : []
    const sources = new Set(agents.flatMap(({ tools }) => tools.sources))
    await Promise.allSettled([...sources].map((source) => source.close()))
    await this.#services.observer?.close()
    await this.#plugins?.close(this.#services.clock)
    await this.#services.watchdog?.close()
    await this.#services.live.close()
    if (this.#ownsStore) await this.#services.store.close()
  }

  #driving(): Worker {
    this.#check()
    if (!this.#drives)
      throw new Fault(
        'invalid_config',
        'This harness has `worker: { drives: false }`. Work with one that may drive sessions.',
      )
    return this.#worker
  }

  #check(): void {
    if (this.#closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
  }
}

// Sound: `NewHarness` derives the types from the options, and nothing at run time depends on them.
export const Harness = LocalHarness as unknown as NewHarness
