// The agent as one life has it: its tools and models pass points, and whatever else is the user's tells the clock that it
// runs. What handlers do to the world is noted for the rules.
import {
  type Clock,
  type Consumer,
  type Hook,
  type Model,
  model as namedModel,
  type Plugin,
  type Tool,
  type ToolContext,
  type ToolSource,
} from '../../index.ts'
import type { CrashAgent, CrashWorld } from './crash-options.ts'
import type { JumpingClock } from './jumping-clock.ts'
import { type CrashNote, whyNotWhole } from './notes.ts'
import { type LifePoints, waitForever } from './points.ts'
import { findDifference, lookAtWorld } from './same-world.ts'

/** One life of a run. What both lives share stands in `trial`. */
export type CrashLife = {
  readonly points: LifePoints
  /** Null: time passes as it does. */
  readonly clock: JumpingClock | null
  /** Sources of tools, which a crash ends too. */
  readonly sources: Set<ToolSource>
  readonly trial: TrialRecord
}
export type TrialRecord = {
  readonly world: CrashWorld
  readonly note: (note: CrashNote) => void
  /** The calls that began, and those whose handler returned, by key. */
  readonly begun: Set<string>
  readonly ended: Set<string>
  /** How many handlers run now, and how many ever began. */
  readonly handlers: { running: number; began: number }
}

export function agentOfLife(agent: CrashAgent, life: CrashLife): CrashAgent {
  const { models, subagents, graphs, plugins, hooks, deps } = agent
  const table = <T extends object>(given: T): T => mapValues(given, (value) => modelOfLife(value, life))
  const { named, routes } = models ?? {}
  return {
    ...agent,
    ...partsOfLife(agent, life),
    ...(models
      ? { models: { ...(named ? { named: table(named) } : {}), ...(routes ? { routes: table(routes) } : {}) } }
      : {}),
    ...(typeof subagents === 'object'
      ? { subagents: mapValues(subagents, (each: object) => ({ ...each, ...partsOfLife(each, life) })) }
      : {}),
    ...(graphs ? { graphs: graphs.map((graph) => graphOfLife(graph, life)) } : {}),
    ...(plugins ? { plugins: plugins.map((plugin) => pluginOfLife(plugin, life)) } : {}),
    ...(hooks ? { hooks: hooks.map((hook) => withRunOfLife(hook, life)) } : {}),
    ...(deps ? { deps: (of) => runUserCode(life, () => deps(of)) } : {}),
  }
}

type AgentParts = Partial<Pick<CrashAgent, 'model' | 'tools'>>

function partsOfLife({ model, tools }: AgentParts, life: CrashLife): AgentParts {
  return {
    ...(model === undefined ? {} : { model: modelOfLife(model, life) }),
    ...(tools ? { tools: tools.map((tool) => anyToolOfLife(tool, life)) } : {}),
  }
}

/** What a node does is a handler too. Planning is pure, and no request. */
function graphOfLife<Graph extends AnyGraph>(graph: Graph, life: CrashLife): Graph {
  const nodes = [...graph.nodes].map(([name, node]) => {
    return [name, { ...node, tool: (as: string) => toolOfLife(node.tool(as), life) }] as const
  })
  return { ...graph, nodes: new Map(nodes) }
}
type AnyGraph = NonNullable<CrashAgent['graphs']>[number]

function pluginOfLife(plugin: Plugin, life: CrashLife): Plugin {
  const { tools, hooks, consumers, connect } = plugin
  return {
    ...plugin,
    ...(tools ? { tools: tools.map((tool) => anyToolOfLife(tool, life)) } : {}),
    ...(hooks ? { hooks: hooks.map((hook) => withRunOfLife(hook, life)) } : {}),
    ...(consumers ? { consumers: consumers.map((consumer) => withRunOfLife(consumer, life)) } : {}),
    ...(connect ? { connect: () => runUserCode(life, connect) } : {}),
  }
}

function withRunOfLife<T extends Hook | Consumer>(given: T, life: CrashLife): T {
  const run = given.run as (...args: readonly unknown[]) => unknown
  return { ...given, run: (...args: readonly unknown[]) => runUserCode(life, () => run(...args)) }
}

function modelOfLife(given: Model | string, life: CrashLife): Model | string {
  // `hint:NAME` is one of the models of the routes, which pass points themselves.
  if (typeof given === 'string' && given.startsWith('hint:')) return given
  const model: Model = typeof given === 'string' ? namedModel(given) : given
  const call: Model['call'] = (request, context) => {
    const name = `model, request ${life.points.count('request')}`
    return passPoints(life, [`asking the ${name}`, `answered by the ${name}`], (clock) => {
      life.trial.note({ type: 'request', session: request.session, wrong: whyNotWhole(request.messages) })
      return model.call(request, withClock(context, clock))
    })
  }
  return withMember(model, 'call', call)
}

function anyToolOfLife(tool: Tool | ToolSource, life: CrashLife): Tool | ToolSource {
  if (!('type' in tool)) return toolOfLife(tool, life)
  life.sources.add(tool)
  const tools: ToolSource['tools'] = async (...args) => {
    const found = await runUserCode(life, () => tool.tools(...args))
    return found.map((each) => toolOfLife(each, life))
  }
  return withMember(tool, 'tools', tools)
}

function toolOfLife(tool: Tool, life: CrashLife): Tool {
  const { rooted, filtered, reconcile, approval, validate, checkOutput, filesChanged } = tool
  const made = (other: Tool | null): Tool | null => other && toolOfLife(other, life)
  return {
    ...tool,
    approval: duringUserCode(life, approval),
    validate: duringUserCode(life, validate),
    checkOutput: checkOutput && duringUserCode(life, checkOutput),
    ...(filesChanged ? { filesChanged: duringUserCode(life, filesChanged) } : {}),
    execute: (args, context) => executeInLife(tool, args, { context, life }),
    ...(reconcile ? { reconcile: (args, context) => reconcileInLife(tool, args, { context, life }) } : {}),
    ...(rooted ? { rooted: (root) => made(rooted(root)) } : {}),
    ...(filtered ? { filtered: (skills) => made(filtered(skills)) } : {}),
  }
}

type CallInLife = { readonly context: ToolContext; readonly life: CrashLife }

function executeInLife(tool: Tool, args: unknown, { context, life }: CallInLife): Promise<unknown> {
  const { points, trial } = life
  const { name, effect } = tool
  const of = { key: context.key, tool: name, effect }
  const handler = `handler ${points.count('handler')} (${name})`
  return passPoints(life, [`entering ${handler}`, `leaving ${handler}`], async (clock) => {
    const again = trial.ended.has(of.key)
    const isLooked = effect === 'read' || (effect === 'idempotent' && again)
    const { handlers } = trial
    const isAlone = handlers.running === 0
    const nth = (handlers.began += 1)
    handlers.running += 1
    trial.note({ type: 'began', ...of })
    trial.begun.add(of.key)
    try {
      const before = isLooked ? await lookAtWorld(trial.world) : null
      const value = await tool.execute(args, withClock(context, clock))
      const changed = isLooked ? findDifference(before, await lookAtWorld(trial.world)) : null
      if (isLooked && isAlone && handlers.began === nth) trial.note({ type: 'looked', ...of, again, changed })
      trial.note({ type: 'ended', ...of })
      trial.ended.add(of.key)
      return value
    } finally {
      handlers.running -= 1
    }
  })
}

async function reconcileInLife(tool: Tool, args: unknown, { context, life }: CallInLife): Promise<unknown> {
  const { world, note, ended, begun } = life.trial
  const { key } = context
  let found: unknown
  try {
    found = await runUserCode(life, (clock) => tool.reconcile?.(args, withClock(context, clock)))
    return found
  } finally {
    const known = ended.has(key) ? true : begun.has(key) ? null : false
    const happened = world.happened ? await world.happened(key) : known
    note({ type: 'reconciled', key, tool: tool.name, effect: tool.effect, found: found !== undefined, happened })
  }
}

type UserCode<T> = (clock: Clock | null) => T | Promise<T>

/** Runs code of the user's between two points. */
async function passPoints<T>(life: CrashLife, [enter, leave]: readonly [string, string], run: UserCode<T>): Promise<T> {
  const { points } = life
  if (!points.pass(enter)) return waitForever()
  try {
    const value = await runUserCode(life, run)
    return points.pass(leave) ? value : await waitForever()
  } catch (error) {
    if (!points.pass(leave)) return waitForever()
    throw error
  }
}

/** Runs code of the user's, for which time passes. In a dead life it neither begins nor ends. */
async function runUserCode<T>({ points, clock }: CrashLife, run: UserCode<T>): Promise<T> {
  if (points.dead) return waitForever()
  const occupied = clock?.enter()
  try {
    const value = await run(occupied?.clock ?? null)
    return points.dead ? await waitForever() : value
  } catch (error) {
    if (points.dead) return await waitForever()
    throw error
  } finally {
    occupied?.leave()
  }
}

/** The same function, while whose promise time passes. A result that is no promise stays one. */
function duringUserCode<Args extends readonly unknown[], T>(
  { clock }: CrashLife,
  run: (...args: Args) => T,
): (...args: Args) => T {
  return (...args) => {
    const value = run(...args)
    if (clock && value instanceof Promise) value.finally(clock.enter().leave).catch(() => {})
    return value
  }
}

type Waiting = { readonly clock: Clock; readonly signal: AbortSignal }

/** The context of a handler or a model, whose waits this clock counts. */
function withClock<Context extends Waiting>(context: Context, clock: Clock | null): Context {
  if (clock === null) return context
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = clock.timer(ms, resolve)
      context.signal.addEventListener('abort', () => (cancel(), resolve()), { once: true })
    })
  const withSleep = 'sleep' in context ? withMember(context, 'sleep', sleep) : context
  return withMember(withSleep, 'clock', clock)
}

/** The same object with another member. Its methods are bound to itself, which may have private fields. */
function withMember<T extends object>(inner: T, name: keyof T & string, member: unknown): T {
  return new Proxy(inner, {
    get(target, asked) {
      if (asked === name) return member
      const own: unknown = Reflect.get(target, asked)
      return typeof own === 'function' ? (own.bind(target) as unknown) : own
    },
  })
}

function mapValues<T extends object>(table: T, map: (value: never) => unknown): T {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, map(value as never)])) as T
}
