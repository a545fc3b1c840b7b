// Checks a graph before it runs. Each error is a configuration Fault that says what to do.
import { Fault } from '../kernel/failure.ts'
import type { Edge, Graph } from './graph-definition.ts'
import { END, START } from './planner-node.ts'

/** Reserved words in a message to a graph. */
const WORDS = ['retry', 'edit']

export function checkGraph(graph: Graph): void {
  const { name, nodes, edges } = graph
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new Fault('invalid_config', `Graph name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
  checkChannels(graph)
  for (const node of nodes.keys()) checkNode(graph, node)
  const missing = edges.find(({ from }) => sourcesOf(from).some((node) => node !== START && !nodes.has(node)))
  if (missing)
    throw graphFault(graph, 'MissingNode', `an edge comes from "${namesOf(missing.from)}", and there is no such node`)
  for (const edge of edges) for (const to of targetsOf(edge)) checkTarget(graph, namesOf(edge.from), to)
  for (const [node, { to }] of nodes) for (const target of to) checkTarget(graph, node, target)
  checkEdges(graph)
  checkEnds(graph)
  checkPaths(graph)
  const { visitsMax } = graph
  if (visitsMax !== null && !(Number.isSafeInteger(visitsMax) && visitsMax >= 1))
    throw graphFault(graph, 'InvalidLimit', `visitsMax must be a whole number from 1, not ${visitsMax}`)
}

function checkChannels(graph: Graph): void {
  for (const channel of Object.keys(graph.channels)) {
    if (WORDS.includes(channel) || !/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(channel))
      throw graphFault(
        graph,
        'InvalidChannel',
        `"${channel}" cannot be a channel: use letters, digits and "_", and not ${WORDS.join(' or ')}`,
      )
  }
}

function checkNode(graph: Graph, node: string): void {
  const step = graph.nodes.get(node)
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(node) || node === START || node === END || node === 'subagent')
    throw graphFault(
      graph,
      'InvalidNode',
      `"${node}" cannot be a node: use 1 to 64 letters, digits, "_" or "-", and no name of the harness`,
    )
  if (!Number.isSafeInteger(step?.retries) || Number(step?.retries) < 0)
    throw graphFault(graph, 'InvalidNode', `the retries of "${node}" must be a whole number from 0`)
  const { policy = null } = step ?? {}
  if (policy !== null && typeof policy === 'object' && !(Number.isSafeInteger(policy.quorum) && policy.quorum >= 1))
    throw graphFault(graph, 'InvalidNode', `the quorum of "${node}" must be a whole number from 1`)
}

function checkTarget(graph: Graph, from: string, to: string): void {
  if (to !== END && !graph.nodes.has(to))
    throw graphFault(graph, 'MissingEdgeTarget', `"${from}" leads to "${to}", and there is no such node`)
}

function checkEdges(graph: Graph): void {
  const seen = new Set<string>()
  for (const edge of graph.edges) {
    if (edge.type === 'join' && (edge.from.length < 2 || new Set(edge.from).size < edge.from.length))
      throw graphFault(graph, 'InvalidEdge', `"${edge.to}" must wait for two different nodes or more`)
    if (edge.type === 'route' && edge.to.length === 0)
      throw graphFault(graph, 'InvalidEdge', `the route of "${edge.from}" must name what it may choose`)
    // A node may have two routes, since each decides for itself; the same edge twice is a mistake.
    const key = edge.type === 'route' ? '' : JSON.stringify([edge.from, edge.to])
    if (key !== '' && seen.has(key))
      throw graphFault(
        graph,
        'DuplicateEdge',
        `the edge from "${namesOf(edge.from)}" to "${targetsOf(edge).join()}" is there twice`,
      )
    seen.add(key)
  }
}

function checkEnds(graph: Graph): void {
  const { nodes, onInterrupt, onFailure } = graph
  if (onInterrupt !== null) {
    const step = nodes.get(onInterrupt)
    if (step?.type !== 'run' || step.gate !== 'auto' || step.tool(onInterrupt).effect !== 'read')
      throw graphFault(
        graph,
        'InvalidFinalizer',
        `onInterrupt is "${onInterrupt}", which must be a node(…) with effect: 'read' and without approval`,
      )
  }
  for (const [node, by] of onFailure) {
    if (!nodes.has(node))
      throw graphFault(graph, 'InvalidCompensation', `onFailure names "${node}", and there is no such node`)
    if (by === true && !nodes.get(node)?.tool(node).undo)
      throw graphFault(graph, 'InvalidCompensation', `"${node}" is to be undone by its own undo, and has none`)
    if (by === true && nodes.has(`undo_${node}`))
      throw graphFault(
        graph,
        'InvalidCompensation',
        `"undo_${node}" is the name of what undoes "${node}". Give the node another name`,
      )
    if (by !== true && (by === node || nodes.get(by)?.type !== 'run'))
      throw graphFault(
        graph,
        'InvalidCompensation',
        `"${by}" is to undo "${node}", and must be another node(…) of the graph`,
      )
  }
}

function checkPaths(graph: Graph): void {
  const { nodes, edges, onInterrupt, onFailure } = graph
  if (!edges.some(({ from }) => from === START))
    throw graphFault(graph, 'MissingStart', 'no edge comes from START. Add one such as [START, "first"]')
  const ways = connectionsOf(graph)
  const reached = reachableFrom(START, ways)
  const back = reachableFrom(
    END,
    ways.map(([from, to]) => [to, from] as const),
  )
  // The nodes for a stop or a failure need not be on a path.
  const apart = new Set<unknown>([onInterrupt, ...onFailure.values()])
  for (const node of nodes.keys()) {
    if (!reached.has(node) && apart.has(node)) continue
    if (!reached.has(node)) throw graphFault(graph, 'UnreachableNode', `no path leads from START to "${node}"`)
    if (!back.has(node)) throw graphFault(graph, 'NoPathToEnd', `no path leads from "${node}" to END`)
  }
}

function connectionsOf({ nodes, edges }: Graph): readonly (readonly [string, string])[] {
  const drawn = edges.flatMap((edge) =>
    sourcesOf(edge.from).flatMap((from) => targetsOf(edge).map((to) => [from, to] as const)),
  )
  const told = [...nodes].flatMap(([from, { to }]) => to.map((target) => [from, target] as const))
  return [...drawn, ...told]
}

function reachableFrom(first: string, ways: readonly (readonly [string, string])[]): ReadonlySet<string> {
  const reached = new Set([first])
  // A set may grow during iteration, and each entry is visited once.
  for (const at of reached) for (const [from, to] of ways) if (from === at) reached.add(to)
  return reached
}

function sourcesOf(from: Edge['from']): readonly string[] {
  return typeof from === 'string' ? [from] : from
}

function targetsOf(edge: Edge): readonly string[] {
  return edge.type === 'route' ? edge.to : [edge.to]
}

function namesOf(from: Edge['from']): string {
  return sourcesOf(from).join('", "')
}

function graphFault({ name }: Graph, what: string, why: string): Fault {
  return new Fault('invalid_config', `${what}: in graph "${name}" ${why}.`)
}
