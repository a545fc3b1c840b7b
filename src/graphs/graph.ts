// A graph as its author writes it: a state, nodes, edges. What is wrong with it is said here, before anything runs.
import type { Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Channels, StateOf, UpdateOf } from './channel.ts'
import {
  anything,
  callable,
  filled,
  having,
  listOf,
  needed,
  optionsOf,
  record,
  tableOf,
  text,
  within,
} from '../options.ts'
import { graphAgent } from './agent.ts'
import { AS_AGENT, type Edge, type Graph } from './definition.ts'
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
import type { END, START, Step, Target } from './step.ts'
import { LIMITS } from '../effects/limits.ts'
import { checkGraph } from './validate.ts'

type To<Name extends string> = Name | typeof END
type From<Name extends string> = Name | typeof START
export type EdgeOption<S, Name extends string> =
  | readonly [From<Name>, To<Name>]
  | readonly [readonly Name[], To<Name>]
  | {
      readonly from: From<Name>
      /** All that it may choose. */
      readonly to: readonly To<Name>[]
      readonly by: (state: S) => Target<Name> | typeof END | readonly (Target<Name> | typeof END)[]
    }

export type GraphOptions<C extends Channels, Name extends string> = {
  /** Also the name of its agent. */
  readonly name: string
  /** When to use it: with one, models that may start subagents may start it. */
  readonly description?: string
  readonly nodes: { readonly [N in Name]: Node<C, NoInfer<Name> | typeof END> }
  readonly edges: readonly EdgeOption<StateOf<C>, NoInfer<Name>>[]
  /** Those of a run. `modelRequests` counts turns, which are supersteps and retries; its default here is 1,000. */
  readonly limits?: Partial<Limits>
  /** How often one node may run between two messages. Default: as often as it likes. */
  readonly visitsMax?: number
  /** What a message means that is no JSON object. Must be pure. Without it such a message is refused. */
  readonly input?: (text: string) => UpdateOf<C>
  /**
   * A node with `effect: 'read'` that has the last word when a run is stopped: it has 10 s, and the state after it is the output of the
   * interrupted run. Without it a stopped run has no output.
   */
  readonly onInterrupt?: NoInfer<Name>
  /**
   * What undoes a node that was done when the run fails after it: the name of a node, which is called with `{ args, wrote }` of the call
   * it undoes, or `true` for the node's own `undo`. The newest is undone first.
   */
  readonly onFailure?: { readonly [N in NoInfer<Name>]?: NoInfer<Name> | true }
}

/** Names, edges and bounds are checked with what they mean. */
const checkOptions = optionsOf<GraphOptions<Channels, string>>('graph', {
  name: needed(filled),
  description: text,
  nodes: needed(record),
  edges: needed(listOf(anything)),
  limits: within<Partial<Limits>>(LIMITS),
  visitsMax: anything,
  input: callable,
  onInterrupt: filled,
  onFailure: record,
})
const channel = having('make it with last(), append(), reduce() or ephemeral()', 'reduce')
const checkChannels = optionsOf<{ readonly channels: Channels }>('withState', { channels: needed(tableOf(channel)) })
const checkRoute = optionsOf<Extract<EdgeOption<never, string>, { readonly by: unknown }>>('an edge', {
  from: needed(anything),
  to: needed(listOf(text)),
  by: needed(callable),
})

/** The ways to make a graph over these channels: each knows the state's type. */
export function withState<C extends Channels>(channels: C): Ways<C> {
  checkChannels({ channels })
  return { node, question, agentNode, agentsNode, mapNode, graph: (options) => graphOf(channels, options) }
}

/** `NoInfer`: where a node may go is what it says, and not what the graph around it would like. */
type Ways<C extends Channels> = {
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
  /** Does the same with many items at once. */
  mapNode: <Of, Value, const Name extends string = never>(
    options: MapOptions<C, Of, Value, Name>,
  ) => Node<C, NoInfer<Name>>
  graph: <Name extends string>(options: GraphOptions<C, Name>) => Graph
}

function graphOf<C extends Channels, Name extends string>(channels: C, options: GraphOptions<C, Name>): Graph {
  checkOptions(options, typeof options?.name === 'string' ? `graph "${options.name}"` : 'graph')
  for (const [node, step] of Object.entries<unknown>(options.nodes))
    if (typeof (step as Partial<Step> | null)?.tool !== 'function')
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
  const steps = new Map(Object.entries<Step>(nodes))
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
  const graph: Graph = { ...own, [AS_AGENT]: (shared) => graphAgent(graph, shared) }
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
