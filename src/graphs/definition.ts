// What a graph is when it was checked: data, and the user's functions. It is made in graph.ts and run by plan.ts.
import type { Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Agent } from '../engine/wiring.ts'
import type { Check } from '../options.ts'
import type { Shared } from '../sessions/agent.ts'
import type { Channels } from './channel.ts'
import type { Step, Target } from './step.ts'

export type Edge =
  | { readonly type: 'edge'; readonly from: string; readonly to: string }
  /** Waits until all have arrived. */
  | { readonly type: 'join'; readonly from: readonly string[]; readonly to: string }
  | { readonly type: 'route'; readonly from: string; readonly to: readonly string[]; readonly by: Choose }
/** Where to go, by the state. Must be pure. */
type Choose = (state: never) => Target | readonly Target[]

/** How a graph becomes an agent of a harness: it brings that along, so a harness without graphs does not load it. */
export const AS_AGENT = Symbol('terret.agent')

/** A graph that was checked. It has no state of its own: any number of sessions may run it. */
export type Graph = {
  readonly name: string
  readonly description: string
  readonly channels: Channels
  readonly nodes: ReadonlyMap<string, Step>
  readonly edges: readonly Edge[]
  readonly limits: Partial<Limits>
  readonly visitsMax: number | null
  readonly input: ((text: string) => unknown) | null
  /** The node that has the last word when a run is stopped. */
  readonly onInterrupt: string | null
  /** What undoes a node that was done when the run fails: another node, or its own `undo`. */
  readonly onFailure: ReadonlyMap<string, string | true>
  readonly [AS_AGENT]: (shared: Shared) => Agent
}

export const graphCheck: Check = (value) => {
  const { name, nodes } = (value ?? {}) as Partial<Graph>
  return typeof name === 'string' && nodes instanceof Map ? null : 'is no graph: make it with withState(…).graph(…)'
}

/** The agents of these graphs, beside the others of a harness. */
export function graphAgents(
  graphs: readonly Graph[],
  shared: Shared,
  others: ReadonlyMap<string, Agent>,
): ReadonlyMap<string, Agent> {
  const agents = new Map(others)
  for (const graph of graphs) {
    if (agents.has(graph.name))
      throw new Fault('invalid_config', `There is an agent "${graph.name}" already. Give the graph another name.`)
    agents.set(graph.name, graph[AS_AGENT](shared))
  }
  for (const { name, children } of agents.values()) {
    const missing = children.find((child) => !agents.has(child))
    if (missing !== undefined)
      throw new Fault('invalid_config', `Graph "${name}" starts agent "${missing}", which this harness does not have.`)
  }
  return agents
}
