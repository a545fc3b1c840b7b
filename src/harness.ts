// The harness: wires agents, tools, models and a store into sessions one can talk to. The verbs are those of
// sessions/verbs.ts; what happens to a session is decided by the kernel alone.
import { type Graph, graphAgents, graphCheck } from './graphs/definition.ts'
import type { Json } from './kernel/content.ts'
import { Fault } from './kernel/failure.ts'
import type { Claim, Store, Taking } from './ports/store.ts'
import type { Model } from './ports/model.ts'
import type { Clock, Random } from './ports/system.ts'
import type { OutputMode } from './models/output.ts'
import { type Routes, RouteTable } from './models/router.ts'
import {
  anything,
  callable,
  type Check,
  type Checks,
  clockCheck,
  count,
  filled,
  flag,
  having,
  listOf,
  needed,
  optionsOf,
  orNull,
  record,
  ms,
  tableOf,
  text,
  within,
} from './options.ts'
import {
  AGENT,
  AGENT_OPTIONS,
  type AgentOptions,
  agentsOf,
  type Answers,
  modelCheck,
  type SubagentOptions,
  type Subagents,
  type ToolsBelow,
} from './sessions/agent.ts'
import type { BreakerOptions } from './riders/guard/guard.ts'
import type { Hook } from './riders/hooks/hooks.ts'
import type { Input } from './sessions/input.ts'
import { liveOf } from './live/shared.ts'
import { Observer, type RunTracer } from './riders/hooks/observer.ts'
import { systemClock, systemRandom } from './engine/platform.ts'
import { systemProcesses } from './engine/processes.ts'
import { programCheck, programOf } from './engine/program.ts'
import { descriptionIn, ORIGIN_OPTIONS, originOf } from './sessions/origin.ts'
import type { Beginning } from './engine/owner.ts'
import type { Worked, WorkOptions } from './engine/due-loop.ts'
import { type Budget, BUDGETS } from './riders/money/spending-limits.ts'
import { environmentSecrets, Redactor, type Secrets } from './riders/redact/redact.ts'
import type { Result } from './sessions/result.ts'
import { Watchdog } from './engine/watchdog.ts'
import { type Look, type Looked, Worker, WORKER_OPTIONS, type WorkerOptions } from './engine/worker.ts'
import type { Agent, Compaction, MakeContext, Program, Services } from './engine/wiring.ts'
import {
  checkActive,
  checkEvents,
  checkList,
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
import type { MoneyAccount } from './sessions/look/accounts.ts'
import type { AgentRow } from './sessions/look/describe.ts'
import type { Health } from './sessions/look/health.ts'
import { type PendingCall, pendingIn } from './sessions/look/pending.ts'
import type { Place } from './sessions/await-run.ts'
import { begin, streamed } from './sessions/drive/driven.ts'
import { createWith, tryNow } from './sessions/drive/enter.ts'
import { made } from './sessions/drive/made.ts'
import { kick } from './sessions/drive/place.ts'
import type { ActiveFilter, EventPage, EventsFilter, RunCard } from './sessions/reading.ts'
import type { ListedCard, ListOptions } from './sessions/meter.ts'
import type { ListedPage, PageOptions } from './sessions/paging/page.ts'
import type { BeginOptions, OpenOptions, Removed, RunStream, Session, Sessions } from './sessions/verbs.ts'
import type { TypedSessions } from './sessions/typed.ts'
import { watching } from './sessions/follow/open.ts'
import { labelsCheck } from './sessions/metadata.ts'
import { modelsBy } from './sessions/models.ts'
import { agentNamed, agentsBy, checkBreaker, hooksOf, reporter, warn, worksFor } from './sessions/setup/parts.ts'
import { bindPlugins, type Bound, type Plugin, watcherOf } from './sessions/plugins.ts'
import { SessionHandle } from './session.ts'
import { holdProcess, systemClock as idleClock } from './stores/plan/clock.ts'
import { checkSessionId } from './stores/plan/id.ts'
import { memory } from './stores/memory/memory.ts'
import type { Tool } from './tools/core/tool.ts'
import type { AnySchema, DepsOf, ToolList } from './tools/core/typed.ts'
import type { Policy } from './tools/policy/policy.ts'
import { VERSION } from './version.ts'

/** The parameters are what `new Harness` infers. Without any, it is what all options have in common. */
export type HarnessOptions<
  Tools extends ToolList = ToolList,
  Schema extends AnySchema = AnySchema,
  Mode extends OutputMode = OutputMode,
  Agents extends Subagents = Subagents,
  Graphs extends readonly Graph[] = readonly Graph[],
  Plugins extends readonly Plugin[] = readonly Plugin[],
> = AgentOptions<Tools, Schema, Mode> & {
  /** Where sessions live. Without one they live in memory and end with the process. */
  readonly store?: Store
  /**
   * The name of your program, which the sessions it opens have: its workers drive these, and leave those of other programs on the same
   * store alone. Of several names, the first is for new sessions. Name it before a second program opens the store.
   */
  readonly program?: string | readonly string[]
  /** How long a question to a person stays open. Default: for ever. */
  readonly approvalMs?: number | null
  /** Rules on what may run, what must be asked and what is denied. Without any, each tool decides itself. */
  readonly policy?: Policy
  /** The name that rules call this place by, such as `production`. */
  readonly environment?: string
  /** Values that must never be written, shown or sent, by name. Default: what the environment names like a secret. */
  readonly secrets?: Secrets
  /** In dollars: calls that could go over are not made. */
  readonly budget?: Budget
  /** `true`: the agent may start children like itself. Or the agents it may start, by name. */
  readonly subagents?: Agents & OnlyKnown<Agents, SubagentOptions>
  /** Subagents work on while their parent goes on, and report by a message: the model gets the tools that lead them. Default false. */
  readonly detached?: boolean
  /** Workflows, each an agent by its name: `run(input, { agent: 'report' })`. */
  readonly graphs?: Graphs
  /** Tools, instructions, hooks and consumers of the log that belong together, and are closed with the harness. */
  readonly plugins?: Plugins
  /** Your own code around runs and calls, in this order. */
  readonly hooks?: readonly Hook<ToolsOf<Tools, Agents, Graphs, Plugins>>[]
  /** Models that a run may choose by these names, beside those that are named `provider:model`. */
  readonly models?: Readonly<Record<string, Model | string>>
  /** A model for each workload. Agents, runs and tools ask for one by `hint:NAME`; summaries of a full context are made by `summarization`. */
  readonly routes?: Routes
  /**
   * Builds what tools get as `deps`: clients, connections, whose session it is. Once for each run that a worker drives, before its
   * first call there. What has `close` or `Symbol.asyncDispose` is closed when the next run begins or the worker leaves the session.
   */
  readonly context?: MakeContext
  /** A hook that throws ends its run. Without it, it is reported and the run goes on. */
  readonly strictHooks?: boolean
  /** When a run that gets nowhere is nudged and halted. `false`: never. */
  readonly breaker?: BreakerOptions | false
  /**
   * What happens when the context of a session gets full: old results are cleared, then all but the last messages is summarised by the
   * session's own model. `false`: the run ends instead. `windowTokens`: the models take no more than this; without it, what is known of them counts.
   * With an object, agents with tools also get `retrieve_original`, which reads what was cleared or cut again. `detectPins: false`: rules
   * that users write are not looked for.
   */
  readonly compaction?: Compaction | false
  /** Makes spans of runs that settled: `tracing` of `terret/tracing`. It is closed with the harness. */
  readonly tracing?: (place: {
    readonly store: Store
    readonly clock: Clock
    readonly report: (error: unknown) => void
  }) => RunTracer
  /** Say on stderr which call blocks the event loop for longer than this. A thread of its own; off unless set. */
  readonly watchdogMs?: number
  /**
   * Told of what went wrong beside a run: a hook that threw, an exporter that failed, an MCP server that is missing. Default: a
   * warning of the process.
   */
  readonly onError?: (where: string, error: unknown) => void
  /** `false`: it records what is said to sessions, and drives none of them. Workers on the same store do that. */
  readonly drives?: boolean
  readonly worker?: Partial<Omit<WorkerOptions, 'named' | 'drives' | 'alarm'>>
  readonly clock?: Clock
  readonly random?: Random
}

/** All tools that agents of a harness may have. Those of workflows and plugins are not known. */
type ToolsOf<Tools extends ToolList, Agents, Graphs, Plugins> =
  | Tools[number]
  | ToolsBelow<Agents>
  | ([Graphs | Plugins] extends [never] ? never : Tool)

/** A misspelled option does not compile, also where the options themselves are inferred. */
type OnlyKnown<Table, Options> = {
  readonly [Name in keyof Table]: { readonly [Key in Exclude<keyof Table[Name], keyof Options>]: never }
}

/** Tools that need something of `context` make it one that must be there. */
type WithContext<Deps> = unknown extends Deps ? unknown : { readonly context: MakeContext<Deps> }

/** A harness, whatever its options were. What `new Harness` makes is one, and knows more. */
export interface Harness extends Sessions, Pick<LocalHarness, 'look' | 'take' | 'work' | 'describe'> {}

/** `Answers` are the types of its agents' answers, by name, and `Tools` all tools that they have: both are inferred. */
export interface TypedHarness<Answers extends Readonly<Record<string, unknown>>, Tools extends ToolList[number]>
  extends TypedSessions<Answers, Tools>,
    Pick<LocalHarness, 'look' | 'take' | 'work' | 'describe'> {}

type NewHarness = new <
  Tools extends ToolList | [] = ToolList,
  Schema extends AnySchema = never,
  Mode extends OutputMode = 'auto',
  Agents extends Subagents = never,
  Graphs extends readonly Graph[] = never,
  Plugins extends readonly Plugin[] = never,
>(
  options: HarnessOptions<Tools, Schema, Mode, Agents, Graphs, Plugins> &
    WithContext<DepsOf<Tools[number] | ToolsBelow<Agents>>>,
) => TypedHarness<Answers<Schema, Mode, Agents, Graphs>, ToolsOf<Tools, Agents, Graphs, Plugins>>

const checkTake = optionsOf<Omit<Taking, 'process'>>('take', {
  limit: needed(count()),
  agents: listOf(filled),
  among: listOf(filled),
  fresh: flag,
})

/** A path is what is often given instead. */
const storeCheck: Check = (value, name, of) => {
  if (typeof value === 'string') return `is a text. Write store: sqlite(${JSON.stringify(value)})`
  return having('give one, such as sqlite("file.db")', 'commit', 'read', 'claim', 'list')(value, name, of)
}

const checkOptions = optionsOf<HarnessOptions>('new Harness', {
  ...AGENT_OPTIONS,
  store: storeCheck,
  program: programCheck,
  approvalMs: orNull(ms),
  // Read by `parsePolicy`, as a file of rules is.
  policy: record,
  environment: filled,
  secrets: tableOf(text),
  budget: within<Budget>(BUDGETS),
  // Each is checked by its name.
  subagents: (value, name, of) => (value === true ? null : tableOf(() => null)(value, name, of)),
  detached: flag,
  graphs: listOf(graphCheck),
  hooks: listOf(() => null),
  // Each is checked by its place.
  plugins: listOf(() => null),
  models: tableOf(modelCheck),
  routes: tableOf(modelCheck),
  context: callable,
  strictHooks: flag,
  breaker: (value, name, of) => (value === false ? null : record(value, name, of)),
  compaction: (value, name, of) =>
    value === false ? null : within<Compaction>({ windowTokens: count(1), detectPins: flag })(value, name, of),
  tracing: callable,
  watchdogMs: () => null,
  onError: callable,
  drives: flag,
  worker: within<NonNullable<HarnessOptions['worker']>>(WORKER_OPTIONS),
  clock: clockCheck,
  random: having('give one with id() and fraction()', 'id', 'fraction'),
})
const checkOpen = optionsOf<OpenOptions>('open', {
  ...ORIGIN_OPTIONS,
  agent: filled,
  id: text,
  reuse: flag,
  messages: listOf(anything),
})
const BEGIN: Checks<BeginOptions> = { agent: filled, labels: labelsCheck }
const checkRun = optionsOf<RunOptions & BeginOptions>('run', { ...RUN_OPTIONS, ...BEGIN }, ELSEWHERE)
const checkStream = optionsOf<StreamOptions & BeginOptions>('stream', { ...STREAM_OPTIONS, ...BEGIN }, ELSEWHERE)

const stores = new WeakMap<object, { readonly store: Store; readonly program: Program; readonly drives: boolean }>()

/** For a server over a harness: its store, its program, and whether it drives. Null for what is no harness of this process. */
export function servedBy(
  harness: object,
): { readonly store: Store; readonly program: Program; readonly drives: boolean } | null {
  return stores.get(harness) ?? null
}

const agentsOfHarness = new WeakMap<object, ReadonlyMap<string, Agent>>()

/**
 * For a command that names them: the tools that the model of the harness itself is offered, but for those of its sources. The last one
 * may be one that it gets only after a result was made shorter.
 */
export function toolsOfferedBy(harness: object): readonly Tool[] {
  const { tools, retrieve } = agentsOfHarness.get(harness)?.get(AGENT) ?? {}
  const seen = [...(tools?.seen?.values() ?? [])]
  return retrieve && seen.every(({ name }) => name !== retrieve.name) ? [...seen, retrieve] : seen
}

class LocalHarness implements Sessions {
  readonly #services: Services
  readonly #worker: Worker
  readonly #ownsStore: boolean
  readonly #drives: boolean
  readonly #agents: ReadonlyMap<string, Agent>
  readonly #plugins: Bound | null
  readonly #table: RouteTable | null
  #closed = false

  constructor(own: HarnessOptions) {
    checkOptions(own)
    const plugins = own.plugins?.length ? bindPlugins(own.plugins, own) : null
    const options = plugins ? { ...own, ...plugins.given } : own
    const clock = options.clock ?? systemClock
    const random = options.random ?? systemRandom
    const store = options.store ?? memory({ clock })
    const onError = reporter(options.onError ?? warn)
    const table = options.routes ? new RouteTable(options.routes) : null
    const shared = { ...options, clock, store, table, warn: (text: string) => onError('tools', new Error(text)) }
    const agents = graphAgents(options.graphs ?? [], shared, agentsOf(options, shared))
    stores.set(this, { store, program: programOf(options.program), drives: options.drives ?? true })
    this.#ownsStore = options.store === undefined
    this.#drives = options.drives ?? true
    this.#agents = agents
    agentsOfHarness.set(this, agents)
    this.#plugins = plugins
    this.#table = table
    const live = liveOf(store, clock)
    const hooks = hooksOf({ ...options, clock }, [...agents.keys()], onError)
    const tracer = options.tracing?.({ store, clock, report: (error) => onError('tracing', error) }) ?? null
    const report = (error: unknown): void => onError('observer', error)
    const onPlugin = (plugin: string, error: unknown): void => onError(`plugin ${plugin}`, error)
    const observer = hooks || tracer ? new Observer({ store, clock, hooks, tracer, report }) : null
    const { keys, ...models } = modelsBy(options, table, [...agents.values()])
    this.#services = {
      watchdog: options.watchdogMs === undefined ? null : new Watchdog(options.watchdogMs),
      store,
      live,
      clock,
      random,
      processes: systemProcesses,
      code: `terret@${VERSION}`,
      program: programOf(options.program),
      agent: agentsBy(agents),
      redactor: new Redactor(Object.assign({}, options.secrets ?? environmentSecrets(), ...keys) as Secrets),
      hooks,
      breaker: checkBreaker(options.breaker ?? {}),
      compaction: options.compaction,
      report: onError,
      ...(tracer ? { traces: { propagate: tracer.propagate ?? false } } : {}),
      observer: plugins ? watcherOf(observer, plugins.consumers, { store, clock, report: onPlugin }) : observer,
      ...models,
      schemas: new Map(),
      context: options.context ?? null,
    }
    const alarm = options.clock ?? idleClock
    this.#worker = new Worker(this.#services, {
      ...options.worker,
      alarm,
      drives: this.#drives,
      named: options.worker?.id !== undefined,
      id: options.worker?.id ?? `worker-${random.id()}`,
    })
    hooks?.bound?.bind({ services: this.#services, wake: (id: string) => this.#worker.wake(id) })
  }

  /**
   * What this harness was made of, as plain JSON: its agents with their models by name, tools, limits, policy and budget. No secret and
   * no code is in it. Equal setups say the same, so it can be written down and compared.
   */
  async describe(): Promise<Json> {
    const { describeAgents, describeRoutes } = await import('./sessions/look/describe.ts')
    const { code, redactor } = this.#services
    return redactor.json({ code, agents: describeAgents(this.#agents), ...describeRoutes(this.#table) })
  }

  async open(options: OpenOptions = {}): Promise<Session> {
    checkOpen(options)
    const { id = this.#services.random.id(), reuse = false } = options
    const handle = this.session(id)
    const { origin, blobs } = originOf(options)
    const begun = this.#beginning(options)
    const brought = options.messages ? await this.#bring(begun.agent, options.messages) : { blobs: [] }
    const beginning = { ...begun, ...origin, ...brought, blobs: [...blobs, ...brought.blobs] }
    await made(this.#services, id, beginning, reuse ? () => true : undefined)
    return handle
  }

  async #bring(agent: string, messages: NonNullable<OpenOptions['messages']>) {
    const { bringMessages } = await import('./sessions/bring/bring.ts')
    return bringMessages(this.#services, agent, messages)
  }

  /** In the environment of the harness, unless another is given. */
  #beginning({ agent = AGENT, labels }: BeginOptions): Beginning {
    const { environment } = agentNamed(this.#agents, agent)
    const begun = environment === null ? { agent } : { agent, environment }
    return labels ? { ...begun, ...descriptionIn({ labels }) } : begun
  }

  session(id: string, options?: SessionChoice): Session {
    if (options !== undefined) checkSessionChoice(options)
    if (options?.stored !== true) checkSessionId(id)
    return new SessionHandle(this.#place(id))
  }

  #place(id: string): Place {
    this.#check()
    checkSession(id)
    return { id, services: this.#services, worker: this.#worker }
  }

  async run(input: Input, options: RunOptions & BeginOptions = {}): Promise<Result> {
    checkRun(options)
    return begin(this.#place(this.#services.random.id()), this.#beginning(options), input, options)
  }

  stream(input: Input, options: StreamOptions & BeginOptions = {}): RunStream {
    checkStream(options)
    const place = this.#place(this.#services.random.id())
    return streamed(place, options, () => createWith(place, this.#beginning(options), input, options))
  }

  async list(options: ListOptions = {}): Promise<readonly ListedCard[]> {
    this.#check()
    checkList(options)
    const { listed } = await import('./sessions/reading.ts')
    return listed(this.#services, options)
  }

  watch(...options: Parameters<Sessions['watch']>): ReturnType<Sessions['watch']> {
    return watching({ services: this.#services, worker: this.#worker }, ...options)
  }

  async page(options: PageOptions = {}): Promise<ListedPage> {
    this.#check()
    return (await import('./sessions/paging/page.ts')).paged(this.#services, options)
  }

  async events(filter: EventsFilter): Promise<EventPage> {
    this.#check()
    checkEvents(filter)
    const { eventsOf } = await import('./sessions/reading.ts')
    return eventsOf(this.#services.store, filter)
  }

  async status(session: string): Promise<RunCard | null> {
    this.#check()
    checkSession(session)
    const { statusOf } = await import('./sessions/reading.ts')
    return statusOf(this.#services.store, session)
  }

  async active(filter: ActiveFilter = {}): Promise<readonly RunCard[]> {
    this.#check()
    checkActive(filter)
    const { activeIn } = await import('./sessions/reading.ts')
    return activeIn(this.#services.store, filter)
  }

  async pending(filter: PendingFilter = {}): Promise<readonly PendingCall[]> {
    this.#check()
    checkPending(filter)
    return pendingIn(this.#services.store, filter)
  }

  async remove(session: string, options: RemoveOptions = {}): Promise<readonly Removed[]> {
    this.#check()
    checkSession(session)
    checkRemove(options)
    const { removed } = await import('./sessions/drive/removed.ts')
    return removed(this.#services, session, options.by)
  }

  async agents(): Promise<readonly AgentRow[]> {
    this.#check()
    const { agentRows } = await import('./sessions/look/describe.ts')
    return agentRows(this.#agents, this.#services.redactor)
  }

  models(): readonly string[] {
    return this.#services.choosable
  }

  async accounts(session?: string): Promise<readonly MoneyAccount[]> {
    this.#check()
    if (session !== undefined) checkSession(session)
    const { moneyOf } = await import('./sessions/look/accounts.ts')
    return moneyOf(this.#services, [...this.#agents.keys()], session)
  }

  async health(): Promise<Health> {
    this.#check()
    const { healthOf } = await import('./sessions/look/health.ts')
    return healthOf(this.#services, this.#worker)
  }

  async wake(session: string): Promise<Looked> {
    this.#check()
    checkSession(session)
    const { outage, waits = [] } = (await this.#services.store.card(session)) ?? {}
    const tried = outage || waits.length > 0 ? await tryNow(this.#place(session)) : []
    for (const other of tried) if (other !== session) kick(this.#place(other))
    return this.#worker.wake(session)
  }

  /**
   * Looks as `work` does at what is due: a session that failed too often is left alone. For a `DueLoop` over several harnesses, which
   * says when to look, and whether `alone`.
   */
  async look(session: string, alone: boolean, claim?: Claim): Promise<Look> {
    this.#checkDriver()
    return this.#worker.look(session, alone, claim)
  }

  /** Claims due sessions by the store's `take`. Each must be handed to `look` with its claim. Sessions of any agent, unless `agents` are given. */
  async take(wanted: Omit<Taking, 'process'>): Promise<ReadonlyMap<string, Claim>> {
    this.#checkDriver()
    checkTake(wanted)
    return this.#worker.take(wanted)
  }

  /**
   * Drives whatever is due in the store and belongs to an agent of this harness (or to one of `agents`), until nothing was due for `idleMs`, `signal` is aborted or the
   * harness is closed. Any number of processes may do so on one store. The process stays alive meanwhile.
   */
  async work(options: WorkOptions = {}): Promise<Worked> {
    this.#checkDriver()
    const wanted = worksFor(this.#agents, options)
    const release = holdProcess()
    try {
      return await this.#worker.work(wanted)
    } finally {
      release()
    }
  }

  /** Stops what runs, writes down how far it came, and gives the sessions back. A store passed in stays open. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#worker.close()
    const sources = new Set([...this.#agents.values()].flatMap(({ tools }) => tools.sources))
    await Promise.allSettled([...sources].map((source) => source.close()))
    await this.#services.observer?.close()
    await this.#plugins?.close(this.#services.clock)
    await this.#services.watchdog?.close()
    await this.#services.live.close()
    if (this.#ownsStore) await this.#services.store.close()
  }

  #checkDriver(): void {
    this.#check()
    if (!this.#drives)
      throw new Fault('invalid_config', 'This harness has `drives: false`. Work with one that may drive sessions.')
  }

  #check(): void {
    if (this.#closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
  }
}

// Sound: which types follow from the options is said in `NewHarness`, and nothing at run time depends on it.
export const Harness = LocalHarness as unknown as NewHarness
