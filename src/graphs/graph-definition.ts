// A checked graph: data and the user's functions. with-state.ts builds it, and graph-planner.ts runs it.
import type { Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Agent } from '../runtime/state/agent.ts'
import type { Check } from '../options.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import type { Channels } from './channel.ts'
import type { PlannerNode, GotoTarget } from './planner-node.ts'

export type Edge =
  | { readonly type: 'edge'; readonly from: string; readonly to: string }
  /** Waits until all have arrived. */
  | { readonly type: 'join'; readonly from: readonly string[]; readonly to: string }
  | { readonly type: 'route'; readonly from: string; readonly to: readonly string[]; readonly by: ChooseTarget }
/** Chooses the next nodes from the state. Must be pure. */
type ChooseTarget = (state: never) => GotoTarget | readonly GotoTarget[]

/**
 * Builds the graph's agent for a harness. The graph carries this function, so a harness without graphs does not load
 * the code.
 */
export const AS_AGENT = Symbol('terret.agent')

/** A checked graph. It has no state of its own, so any number of sessions may run it. */
export type Graph = {
  /** The name of the graph, by which sessions are opened with it. */
  readonly name: string
  /** When to use it: models that may start it as a child read this. Empty for none. */
  readonly description: string
  /** The channels of its state, by name. */
  readonly channels: Channels
  /** Its nodes, by name. */
  readonly nodes: ReadonlyMap<string, PlannerNode>
  /** Its edges, in the order of the definition. */
  readonly edges: readonly Edge[]
  /** Limits of its runs, over the defaults of graphs. */
  readonly limits: Partial<Limits>
  /** How often one node may run between two messages. Null for no limit. */
  readonly visitsMax: number | null
  /** Converts a message that is not a JSON object into an update. Null: such a message is refused. */
  readonly input: ((text: string) => unknown) | null
  /** The node that runs last when a run is stopped. */
  readonly onInterrupt: string | null
  /** For each node, its compensation when the run fails later: another node, or its own `undo`. */
  readonly onFailure: ReadonlyMap<string, string | true>
  readonly [AS_AGENT]: (shared: SharedAgentOptions, others?: ReadonlyMap<string, Agent>) => Agent
}

/** A graph without nodes, for an agent whose planner is code of this package. */
export function plannerGraph(name: string, asAgent: Graph[typeof AS_AGENT]): Graph {
  return {
    name,
    description: '',
    channels: {},
    nodes: new Map(),
    edges: [],
    limits: {},
    visitsMax: null,
    onInterrupt: null,
    onFailure: new Map(),
    input: null,
    [AS_AGENT]: asAgent,
  }
}

export const graphCheck: Check = (value) => {
  const { name, nodes } = (value ?? {}) as Partial<Graph>
  return typeof name === 'string' && nodes instanceof Map ? null : 'is no graph: make it with withState(…).graph(…)'
}

/** The agents of the harness with those of these graphs added. */
export function graphAgents(
  graphs: readonly Graph[],
  shared: SharedAgentOptions,
  others: ReadonlyMap<string, Agent>,
): ReadonlyMap<string, Agent> {
  const agents = new Map(others)
  for (const graph of graphs) {
    if (agents.has(graph.name))
      throw new Fault('invalid_config', `There is an agent "${graph.name}" already. Give the graph another name.`)
    agents.set(graph.name, graph[AS_AGENT](shared, others))
  }
  for (const { name, children } of agents.values()) {
    const missing = children.find((child) => !agents.has(child))
    if (missing !== undefined)
      throw new Fault('invalid_config', `Graph "${name}" starts agent "${missing}", which this harness does not have.`)
  }
  return agents
}
