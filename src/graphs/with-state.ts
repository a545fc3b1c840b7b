// The author's interface for a graph: a state, nodes and edges. Errors in a definition are reported here, before
// anything runs.
import type { Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Channels, StateOf, UpdateOf } from './channel.ts'
import {
  anyCheck,
  functionCheck,
  nonEmptyCheck,
  methodsCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  objectCheck,
  tableCheck,
  textCheck,
  optionsCheck,
} from '../options.ts'
import { graphAgent } from './graph-agent.ts'
import { AS_AGENT, type Edge, type Graph } from './graph-definition.ts'
import {
  type AgentNodeOptions,
  agentNode,
  type AgentsNodeOptions,
  agentsNode,
  type MapOptions,
  mapNode,
  type Node,
  type NodeOptions,
  node,
  type QuestionOptions,
  question,
} from './node.ts'
import type { END, START, PlannerNode, GotoTarget } from './planner-node.ts'
import { LIMITS } from '../runtime/state/limits.ts'
import { checkGraph } from './validate.ts'

type EdgeTarget<Name extends string> = Name | typeof END
type EdgeSource<Name extends string> = Name | typeof START
export type EdgeOption<S, Name extends string> =
  | readonly [EdgeSource<Name>, EdgeTarget<Name>]
  | readonly [readonly Name[], EdgeTarget<Name>]
  | {
      readonly from: EdgeSource<Name>
      /** All targets that it may choose. */
      readonly to: readonly EdgeTarget<Name>[]
      readonly by: (state: S) => GotoTarget<Name> | typeof END | readonly (GotoTarget<Name> | typeof END)[]
    }

export type GraphOptions<C extends Channels, Name extends string> = {
  /** Also the name of its agent. */
  readonly name: string
  /** When to use it. Only with a description may models that start subagents start this graph. */
  readonly description?: string
  readonly nodes: { readonly [N in Name]: Node<C, NoInfer<Name> | typeof END> }
  readonly edges: readonly EdgeOption<StateOf<C>, NoInfer<Name>>[]
  /** Limits of a run. `modelRequests` counts turns, which are supersteps and retries; its default here is 1,000. */
  readonly limits?: Partial<Limits>
  /** How often one node may run between two messages. Default: unlimited. */
  readonly visitsMax?: number
  /**
   * Converts a message that is not a JSON object into an update. Must be pure. Without it such a message is refused.
   */
  readonly input?: (text: string) => UpdateOf<C>
  /**
   * A node with `effect: 'read'` that runs last when a run is stopped. It has 10 s, and the state after it is the
   * output of the interrupted run. Without it a stopped run has no output.
   */
  readonly onInterrupt?: NoInfer<Name>
  /**
   * For each node, its compensation if the run fails later: the name of a node, which is called with `{ args, wrote }`
   * of the call to undo, or `true` for the node's own `undo`. The newest call is undone first.
   */
  readonly onFailure?: { readonly [N in NoInfer<Name>]?: NoInfer<Name> | true }
}

/** Checks the types of the options. `checkGraph` checks names, edges and bounds later. */
const checkOptions = optionsChecker<GraphOptions<Channels, string>>('graph', {
  name: requiredCheck(nonEmptyCheck),
  description: textCheck,
  nodes: requiredCheck(objectCheck),
  edges: requiredCheck(listCheck(anyCheck)),
  limits: optionsCheck<Partial<Limits>>(LIMITS),
  visitsMax: anyCheck,
  input: functionCheck,
  onInterrupt: nonEmptyCheck,
  onFailure: objectCheck,
})
const channelCheck = methodsCheck('make it with last(), append(), reduce() or ephemeral()', 'reduce')
const checkChannels = optionsChecker<{ readonly channels: Channels }>('withState', {
  channels: requiredCheck(tableCheck(channelCheck)),
})
const checkRoute = optionsChecker<Extract<EdgeOption<never, string>, { readonly by: unknown }>>('an edge', {
  from: requiredCheck(anyCheck),
  to: requiredCheck(listCheck(textCheck)),
  by: requiredCheck(functionCheck),
})

/** The functions that build a graph over these channels. Each knows the type of the state. */
export function withState<C extends Channels>(channels: C): GraphBuilder<C> {
  checkChannels({ channels })
  return { node, question, agentNode, agentsNode, mapNode, graph: (options) => buildGraph(channels, options) }
}

/** `NoInfer`: the targets are inferred from the node itself, not from the graph around it. */
type GraphBuilder<C extends Channels> = {
  /** Runs code. */
  node: <Args = Record<string, never>, const Name extends string = never>(
    options: NodeOptions<C, Args, Name>,
  ) => Node<C, NoInfer<Name>>
  /** Waits for an answer from outside: a person, or a tool of the host. */
  question: <Args, const Name extends string = never>(options: QuestionOptions<C, Args, Name>) => Node<C, NoInfer<Name>>
  /** Gives a task to a child session. */
  agentNode: <const Name extends string = never>(options: AgentNodeOptions<C, Name>) => Node<C, NoInfer<Name>>
  /** Gives tasks to child sessions of several agents at once. */
  agentsNode: <const Name extends string = never>(options: AgentsNodeOptions<C, Name>) => Node<C, NoInfer<Name>>
  /** Runs the same code for many items at once. */
  mapNode: <Of, Value, const Name extends string = never>(
    options: MapOptions<C, Of, Value, Name>,
  ) => Node<C, NoInfer<Name>>
  graph: <Name extends string>(options: GraphOptions<C, Name>) => Graph
}

function buildGraph<C extends Channels, Name extends string>(channels: C, options: GraphOptions<C, Name>): Graph {
  checkOptions(options, typeof options?.name === 'string' ? `graph "${options.name}"` : 'graph')
  for (const [node, step] of Object.entries<unknown>(options.nodes))
    if (typeof (step as Partial<PlannerNode> | null)?.tool !== 'function')
      throw new Fault(
        'invalid_config',
        `The node "${node}" of graph "${options.name}" is no node. Make it with node(…).`,
      )
  const {
    name,
    description = '',
    nodes,
    edges,
    limits = {},
    visitsMax = null,
    input = null,
    onInterrupt = null,
  } = options
  const steps = new Map(Object.entries<PlannerNode>(nodes))
  const onFailure = new Map(Object.entries<string | true | undefined>(options.onFailure ?? {}).filter(isSet))
  const own = {
    name,
    description,
    channels,
    nodes: steps,
    edges: edges.map(edgeOf),
    limits,
    visitsMax,
    input,
    onInterrupt,
    onFailure,
  }
  const graph: Graph = {
    ...own,
    // A copy with other nodes is an agent with those.
    [AS_AGENT](shared) {
      return graphAgent(this, shared)
    },
  }
  checkGraph(graph)
  return graph
}

function isSet(entry: [string, string | true | undefined]): entry is [string, string | true] {
  return entry[1] !== undefined
}

function edgeOf<S>(edge: EdgeOption<S, string>): Edge {
  if (!Array.isArray(edge)) checkRoute(edge)
  if ('by' in edge) return { type: 'route', from: edge.from, to: edge.to, by: edge.by }
  const [from, to] = edge
  return typeof from === 'string' ? { type: 'edge', from, to } : { type: 'join', from, to }
}
