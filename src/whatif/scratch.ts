// The place where a what-if is lived: a store in memory with the recording up to the cut, a clock that goes on from
// there, and an ordinary harness whose tools and models are stand-ins. It does not drive: play.ts does.
import type { Event, OwnerEvent } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Json } from '../kernel/content.ts'
import type { Blob, CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { type AlterServices, alteredHarness, type Harness, type HarnessOptions } from '../harness.ts'
import { buildOrigins, commitRestored } from '../archive/portable.ts'
import { createStoppableFlight } from '../runtime/loop/act-as-owner.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { FrozenRuns } from '../runtime/state/frozen-run.ts'
import { runtimeClock } from '../runtime/state/machine.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { SessionCache } from '../runtime/state/session-cache.ts'
import { Preparer } from '../runtime/turn/prepare-run.ts'
import { reviewOptions } from '../runtime/turn/run-options.ts'
import { memory } from '../stores/memory/memory-store.ts'
import { foldLog, type PortableLog, restorationOf } from '../stores/move/portable-tree.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { defineTool, type Tool, type ToolSource } from '../tools/core/tool.ts'
import { usdOf } from '../view/usd.ts'
import type { TreeCut } from './cut-tree.ts'
import type { RecordedTree } from './recorded-tree.ts'
import { isSource, type Playback } from './stand-ins.ts'

/** Goes on from the moment of the cut, so that deadlines and questions of the recording are not over. */
export class ScratchClock implements Clock {
  #ahead: number

  constructor(from: number) {
    this.#ahead = from - runtimeClock.now()
  }

  now(): number {
    return runtimeClock.now() + this.#ahead
  }

  timer(ms: number, fire: () => void): () => void {
    return runtimeClock.timer(ms, fire)
  }

  /** What is scheduled for then is not waited for. */
  advanceTo(moment: number): void {
    this.#ahead += Math.max(0, moment - this.now())
  }
}

/** When the what-if begins: a wait of the recording for its provider is over. */
export function momentOfCut({ logs }: RecordedTree, cut: TreeCut): number {
  const moments = logs.flatMap((log) => {
    const upTo = cut.get(log.session)
    if (upTo === undefined) return []
    const { at, run, deferred } = foldLog(log.events.slice(0, upTo))
    return [at, run?.retryAt ?? 0, deferred?.retryAt ?? 0]
  })
  return Math.max(0, ...moments)
}

export type ScratchParts = {
  readonly tree: RecordedTree
  readonly options: HarnessOptions
  readonly clock: ScratchClock
  /** Nothing but the recording answers for the model. */
  readonly isRecorded: boolean
  readonly effects: boolean
  /** Whether any tool may run: only then it needs what the host builds for tools. */
  readonly runsTools: boolean
  /** Where the named tools of sources may run. Others are known from the recording, and no source is asked for them. */
  readonly named: readonly string[]
  /** Agents whose setup is otherwise now. Their next runs show it as it is, in place of what earlier runs showed. */
  readonly changed: ReadonlySet<string>
}

export type Scratch = {
  readonly harness: Harness
  readonly services: Services
  readonly agents: ReadonlyMap<string, Agent>
}

export function scratchStore(clock: Clock): CompleteStore {
  return memory({ clock, sessionsMax: Number.MAX_SAFE_INTEGER })
}

/** An ordinary harness on this store, whose tools and models are stand-ins. It is made and drives nothing by itself. */
export function openScratch(parts: ScratchParts, store: CompleteStore, playback: Playback): Scratch {
  const { options, clock } = parts
  const { program: _program, triggers: _triggers, tracing: _tracing, worker: _worker, plugins, ...rest } = options
  // Consumers act on settled runs, and this run is none of theirs.
  const tools = plugins?.map(({ consumers: _consumers, ...plugin }) => plugin)
  let made: Omit<Scratch, 'harness'> | null = null
  const alter: AlterServices = (services, agents) => {
    made = { services: alterServices(parts, services, playback), agents }
    return made.services
  }
  const harness = alteredHarness(
    { ...rest, ...(tools ? { plugins: tools } : {}), store, system: { ...options.system, clock } },
    alter,
  )
  return { harness, ...(made as unknown as Omit<Scratch, 'harness'>) }
}

function alterServices(parts: ScratchParts, services: Services, playback: Playback): Services {
  const { tree, isRecorded, effects, runsTools } = parts
  const known = new WeakMap<Agent, Agent>()
  const altered = (agent: Agent): Agent => {
    const made = known.get(agent) ?? alterAgent(parts, agent, playback)
    known.set(agent, made)
    return made
  }
  const [created] = tree.events
  const { agent: root = '', program } = created?.type === 'session.created' ? created : {}
  const { traces: _traces, program: _program, dayBudgets: _dayBudgets, route, ...rest } = services
  return {
    ...rest,
    agent: (name) => altered(services.agent(name)),
    // A run may have chosen its model by name. Nobody chose that one for the what-if.
    model: () => altered(services.agent(root)).model,
    ...(isRecorded || !route ? {} : { route }),
    ...(isRecorded ? { compaction: false } : {}),
    ...(program === undefined ? {} : { program: { names: [program], given: true } }),
    // Only hooks that take part in a run are asked; those that are told of it are not.
    observer: null,
    consumers: undefined,
    makeDeps: runsTools ? services.makeDeps : null,
    ...(effects ? {} : { worktrees: { exist: () => false, settle: async () => null, place: (folder) => folder } }),
  }
}

function alterAgent({ isRecorded, ...parts }: ScratchParts, agent: Agent, playback: Playback): Agent {
  const change = (tool: Tool | ToolSource): Tool | ToolSource =>
    isSource(tool) ? standInSource(parts, tool, playback) : playback.standIn(tool)
  // The code of a workflow may do anything, so it does not run.
  const repeats = isRecorded || agent.planner !== null
  return {
    ...agent,
    // The recording has paid already.
    ...(isRecorded ? { budget: null } : {}),
    ...(parts.changed.has(agent.name) ? { prefix: 'follow' } : {}),
    model: repeats ? playback.recorded(agent.model) : playback.paced(agent.model),
    tools: agent.tools.mapped(change),
  }
}

/** A source is asked for its tools, and connects, only if one of them may run. */
function standInSource(
  { tree, named }: Pick<ScratchParts, 'tree' | 'named'>,
  source: ToolSource,
  playback: Playback,
): ToolSource {
  const prefix = `${source.name.replace(/[^A-Za-z0-9_-]/g, '_')}__`
  const { type, name } = source
  const isAsked = named.some((tool) => tool.startsWith(prefix))
  const recorded = isAsked ? [] : recordedTools(tree, prefix).map((tool) => playback.standIn(tool))
  return {
    type,
    name,
    tools: async (...asked) =>
      isAsked ? (await source.tools(...asked)).map((tool) => playback.standIn(tool)) : recorded,
    ...('warnings' in source && isAsked ? { warnings: () => source.warnings?.() ?? [] } : {}),
    close: async () => {},
  }
}

type FrozenTool = {
  readonly name: string
  readonly description: string
  readonly parameters: Json
  readonly definition: string
}

/** The tools of a source as runs of the recording showed them. */
function recordedTools({ logs, blobs }: RecordedTree, prefix: string): readonly Tool[] {
  const found = new Map<string, FrozenTool>()
  for (const event of logs.flatMap((log) => log.events)) {
    if (event.type !== 'run.started' && event.type !== 'run.reviewed') continue
    const shown = blobs.get(('now' in event ? event.now?.toolset : undefined) ?? event.toolset)
    if (!shown) continue
    for (const tool of JSON.parse(new TextDecoder().decode(shown.data)) as readonly FrozenTool[])
      if (tool.name.startsWith(prefix)) found.set(tool.name, tool)
  }
  return [...found.values()].map(({ name, description, parameters, definition }) => {
    const tool = defineTool({ name, description, input: parameters as never, execute: () => '' })
    return { ...tool, parameters, definition }
  })
}

/** Writes the recording up to the cut. `reviews` are further events of some sessions. */
export async function fillScratch(
  store: CompleteStore,
  tree: RecordedTree,
  cut: TreeCut,
  reviews: ReadonlyMap<string, SetupReview> = new Map(),
): Promise<void> {
  const logs = logsWithin(tree, cut).map(({ session, events }): PortableLog => {
    const { event } = reviews.get(session) ?? {}
    return { session, events: event ? [...events, event] : events }
  })
  const blobs = new Map(tree.blobs)
  for (const review of reviews.values()) for (const blob of review.blobs) blobs.set(blob.hash, blob)
  const kept = { ...tree, logs, blobs, accounts: accountsAt(tree, logs) }
  const now = store.now()
  const writes = await Promise.all(
    logs.map(async (log) => ({ ...(await restorationOf(kept, log, now)), continues: true as const })),
  )
  await commitRestored(store, [...(await buildOrigins(store, tree.origins, now)), ...writes])
}

function logsWithin({ logs }: RecordedTree, cut: TreeCut): readonly PortableLog[] {
  return logs.flatMap(({ session, events }) => {
    const upTo = cut.get(session)
    return upTo === undefined ? [] : [{ session, events: events.slice(0, upTo) }]
  })
}

/** What the tree had spent at the cut, in dollars, if an account limited it. */
export function treeUsdAt(tree: RecordedTree, cut: TreeCut): number {
  const account = accountsAt(tree, logsWithin(tree, cut)).find(({ id }) => id === `tree:${tree.root}`)
  return usdOf(account?.spent ?? 0)
}

/** What was spent by then, on the accounts that limited it. More money that people allowed stays allowed. */
function accountsAt({ accounts, root }: RecordedTree, logs: readonly PortableLog[]): RecordedTree['accounts'] {
  const spentBy = (id: string): number => {
    const log = logs.find(({ session }) => id.startsWith(`run:${session}:`) || id === `session:${session}`)
    const run = Number(/^run:.*:(\d+)$/.exec(id)?.[1] ?? 0)
    const events = id === `tree:${root}` ? logs.flatMap((each) => each.events) : (log?.events ?? []).slice(run)
    return spentIn(events)
  }
  return accounts.map((account) =>
    account.id.startsWith('raised:') ? account : { ...account, held: 0, assumed: 0, spent: spentBy(account.id) },
  )
}

/** In millionths of a dollar. */
export function spentIn(events: readonly Event[]): number {
  return events.reduce((sum, event) => sum + (('cost' in event ? event.cost : 0) ?? 0), 0)
}

/** What of a session's setup is otherwise now. `event` is for the run that is open at the cut, if there is one. */
export type SetupReview = {
  readonly agent: string
  readonly event: OwnerEvent | null
  readonly blobs: readonly Blob[]
  readonly changed: readonly SetupPart[]
}
export type SetupPart = 'instructions' | 'tools' | 'policy' | 'limits'

/**
 * A run that is open at the cut froze the setup of the recorded agent. Where the agent is another one now, the run gets
 * its setup by the event that a fork and an import use for that.
 */
export async function reviewSetups(
  { services, agents }: Scratch,
  tree: RecordedTree,
  cut: TreeCut,
): Promise<ReadonlyMap<string, SetupReview>> {
  const { store } = services
  const preparer = new Preparer(services, new FrozenRuns(store), () => Promise.reject(new Error('no run begins here')))
  const reviews = new Map<string, SetupReview>()
  for (const { session, events } of tree.logs) {
    const upTo = cut.get(session)
    if (upTo === undefined) continue
    const state = foldLog(events.slice(0, upTo))
    if (!agents.has(state.agent))
      throw new Fault(
        'invalid_input',
        `Session ${session} belongs to agent "${state.agent}", which the what-if does not have. Give it as one of \`subagents\`.`,
      )
    if (state.run?.ending || state.run?.foreign || services.agent(state.agent).planner) continue
    const began = startBefore(events.slice(0, upTo), state.run !== null)
    if (!began) continue
    const cache = new SessionCache(session, store, null, false)
    await cache.open()
    const chosen = await reviewOptions(services, cache)
    const flight = createStoppableFlight()
    const { setup, blobs } = await preparer.setup(cache, await chosen.agent.tools.open(flight), chosen)
    const now = { ...setup, limits: chosen.agent.limits }
    const changed = changedParts(began, now)
    if (changed.length === 0) continue
    const { agent, at, epoch, seq } = state
    const event = state.run ? ({ seq: seq + 1, at, epoch, type: 'run.reviewed', ...now } as const) : null
    reviews.set(session, { agent, event, blobs: event ? blobs : [], changed })
  }
  return reviews
}

/** A finished run that chose its own setup says nothing about the one of its agent. */
function startBefore(events: readonly Event[], isOpen: boolean): RunSetup | undefined {
  return events.findLast((event): event is RunSetup => {
    return (event.type === 'run.started' || event.type === 'run.reviewed') && (isOpen || event.options === undefined)
  })
}
type RunSetup = Extract<Event, { type: 'run.started' | 'run.reviewed' }>

type FrozenSetup = Pick<Extract<Event, { type: 'run.reviewed' }>, 'toolset' | 'instructions' | 'policy' | 'limits'>

function changedParts(began: RunSetup, now: FrozenSetup): readonly SetupPart[] {
  const shown = began.type === 'run.started' ? (began.now ?? began) : began
  const parts: readonly (SetupPart | false)[] = [
    shown.instructions !== now.instructions && 'instructions',
    shown.toolset !== now.toolset && 'tools',
    began.policy !== now.policy && 'policy',
    !sameLimits(began.limits, now.limits) && 'limits',
  ]
  return parts.filter((part) => part !== false)
}

/** The patience of a run comes with its message. Older logs lack limits that exist now. */
function sameLimits(then: FrozenSetup['limits'], now: FrozenSetup['limits']): boolean {
  const before = then as Readonly<Record<string, Json | undefined>>
  return Object.entries(now).every(
    ([name, value]) =>
      name === 'patienceMs' || before[name] === undefined || canonicalJson(before[name]) === canonicalJson(value),
  )
}
