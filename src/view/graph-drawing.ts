// A graph as data to draw: its nodes and edges, from the JSON that every run keeps as its instructions, and the state
// of each node from the log. It knows no tools and runs nothing. Pure.
import { isObject, type JsonObject, asList, parseJson, asString } from './untrusted-json.ts'
import type { NodeStop } from './node-stops.ts'

/** The name that edges from the beginning of a graph come from. */
export const START = 'START'
/** The name that edges to the end of a graph lead to. */
export const END = 'END'

/** A node of a graph as it is drawn. */
export type GraphNode = {
  /** The name of the node in its graph. */
  readonly name: string
  /** What it does: it runs code, asks, starts a child, or does the same for many items. */
  readonly type: 'run' | 'question' | 'agent' | 'map'
  /** What it does, for people. */
  readonly description: string
  /** The approval it needs before it runs. */
  readonly gate: GateKind
  /** The agents of the child sessions that it starts. */
  readonly agents: readonly string[]
  /** The possible targets of its commands, in addition to its edges. */
  readonly to: readonly string[]
}
export type GateKind = 'auto' | 'ask' | 'always' | 'never' | 'by_arguments'

/** What leads from nodes to nodes. */
export type GraphEdge = {
  /** `join` waits for all nodes in `from`; `route` goes to some of the nodes in `to`. */
  readonly type: 'edge' | 'join' | 'route'
  /** The nodes that it comes from. */
  readonly from: readonly string[]
  /** The nodes that it leads to. */
  readonly to: readonly string[]
}

/** A graph as it is drawn: its nodes and edges. */
export type GraphDrawing = {
  /** The name of the graph. */
  readonly name: string
  /** Its nodes, in the order of the definition. */
  readonly nodes: readonly GraphNode[]
  /** Its edges, in the order of the definition. */
  readonly edges: readonly GraphEdge[]
  /** The node that runs last when a run is stopped. */
  readonly onInterrupt: string | null
  /** The node that undoes another one when the run fails after it; true: the node's own undo. */
  readonly onFailure: readonly (readonly [string, string | true])[]
}

/** Null if it is not a graph. A file's graph is not trusted: values of the wrong type are left out. */
export function drawingIn(json: unknown): GraphDrawing | null {
  const graph = typeof json === 'string' ? parseJson(json) : json
  if (!isObject(graph) || !Array.isArray(graph['nodes']) || !Array.isArray(graph['edges'])) return null
  const nodes = asList(graph['nodes']).filter(isObject).map(nodeIn)
  const known = new Set([START, END, ...nodes.map(({ name }) => name)])
  const edges = asList(graph['edges']).filter(isObject).map(edgeIn)
  const { onInterrupt, onFailure } = graph
  return {
    name: asString(graph['name']),
    nodes: nodes.map((node) => ({ ...node, to: node.to.filter((name) => known.has(name)) })),
    edges: edges.filter(({ from, to }) => [...from, ...to].every((name) => known.has(name))),
    onInterrupt: typeof onInterrupt === 'string' && known.has(onInterrupt) ? onInterrupt : null,
    onFailure: isObject(onFailure)
      ? Object.entries(onFailure).map(([node, by]) => [node, by === true ? true : asString(by)] as const)
      : [],
  }
}

const TYPES: readonly string[] = ['run', 'question', 'agent', 'map'] satisfies readonly GraphNode['type'][]

function nodeIn(node: JsonObject): GraphNode {
  const { type, approval } = node
  return {
    name: asString(node['name']),
    type: TYPES.includes(asString(type)) ? (type as GraphNode['type']) : 'run',
    description: asString(node['description']),
    gate: Object.hasOwn(GATES, asString(approval)) ? (approval as GateKind) : 'auto',
    agents: namesIn(node['agent']),
    to: namesIn(node['to']),
  }
}

function edgeIn({ type, from, to }: JsonObject): GraphEdge {
  return { type: type === 'join' || type === 'route' ? type : 'edge', from: namesIn(from), to: namesIn(to) }
}

function namesIn(value: unknown): readonly string[] {
  return typeof value === 'string' ? [value] : asList(value).filter((name) => typeof name === 'string')
}

/** One line between two nodes. */
export type GraphLine = {
  /** The node that it comes from. */
  readonly from: string
  /** The node that it leads to. */
  readonly to: string
  /** It is not always taken. */
  readonly chosen: boolean
  /** A word beside the line: `all`, `goto` or `failed`. Empty for a plain one. */
  readonly label: string
  /** Taken only after a failure or a stop. Absent for others. */
  readonly after?: 'failed' | 'stopped'
}

/** All lines of a drawing, in the order of the definition. */
export function graphLines({ nodes, edges, onFailure }: GraphDrawing): readonly GraphLine[] {
  return [
    ...edges.flatMap(({ type, from, to }) =>
      from.flatMap((source) =>
        to.map((target) => {
          return { from: source, to: target, chosen: type === 'route', label: type === 'join' ? 'all' : '' }
        }),
      ),
    ),
    ...nodes.flatMap(({ name, to }) => to.map((target) => ({ from: name, to: target, chosen: true, label: 'goto' }))),
    ...onFailure.flatMap(([name, by]) =>
      by === true ? [] : [{ from: name, to: by, chosen: true, label: 'failed', after: 'failed' as const }],
    ),
  ]
}

/** How a node stands. */
export type NodeStanding = {
  /** The state of its last run. */
  readonly status: string
  /** How often it ran. */
  readonly times: number
  /** It is running or waiting now. */
  readonly now: boolean
}

/** How each node of a graph stands, by where its sessions have stopped. */
export function standingsOf(stops: readonly NodeStop[]): ReadonlyMap<string, NodeStanding> {
  const standings = new Map<string, NodeStanding>()
  for (const { node, status } of stops) {
    const now = status === 'open' || status === 'runs' || status === 'waits'
    standings.set(node, { status, times: (standings.get(node)?.times ?? 0) + 1, now })
  }
  return standings
}

/**
 * For Mermaid. Gates are hexagons, questions are slanted, children have double sides, and optional lines are dotted.
 */
export function mermaidOf({ nodes, edges, onInterrupt, onFailure }: GraphDrawing): string {
  // Some words have a meaning in Mermaid, so nodes are numbered there.
  const ids = new Map([START, ...nodes.map(({ name }) => name), END].map((name, i) => [name, `n${i}`]))
  const id = (name: string): string => ids.get(name) ?? name
  const lines = [`${id(START)}([START])`, ...nodes.map((node) => `${id(node.name)}${nodeShape(node)}`)]
  lines.push(`${id(END)}([END])`)
  for (const edge of edges) lines.push(...edgeLines(edge, id))
  for (const { name, to } of nodes) for (const target of to) lines.push(`${id(name)} -. goto .-> ${id(target)}`)
  for (const [name, by] of onFailure) lines.push(undoLine(id(name), by === true ? null : id(by)))
  if (onInterrupt !== null) lines.push(`stop([STOP]) -. stopped .-> ${id(onInterrupt)}`)
  return `${['flowchart TD', ...lines.map((line) => `  ${line}`)].join('\n')}\n`
}

function undoLine(from: string, by: string | null): string {
  return by === null ? `${from} -. failed .-> ${from}u["undo"]` : `${from} -. failed .-> ${by}`
}

function edgeLines({ type, from, to }: GraphEdge, id: (name: string) => string): readonly string[] {
  const source = from.map(id).join(' & ')
  const arrow = type === 'edge' ? '-->' : type === 'join' ? '-- all -->' : '-.->'
  return to.map((target) => `${source} ${arrow} ${id(target)}`)
}

const GATES: Readonly<Record<GateKind, string>> = {
  auto: '',
  ask: 'approval',
  always: 'approval, always',
  never: 'never runs',
  by_arguments: 'approval, by its arguments',
}

/** The lines below the name of a node. */
export function nodeNotes({ name, gate, agents }: GraphNode): readonly string[] {
  const [agent] = agents
  const whose = agents.length === 0 || (agents.length === 1 && agent === name) ? [] : [agentsText(agents)]
  return [...whose, ...(gate === 'auto' ? [] : [GATES[gate]])]
}

function agentsText(agents: readonly string[]): string {
  return `agent${agents.length === 1 ? '' : 's'} ${agents.join(', ')}`
}

function nodeShape(node: GraphNode): string {
  const label = `"${[node.name, ...nodeNotes(node)].join('<br/>')}"`
  if (node.gate !== 'auto') return `{{${label}}}`
  if (node.type === 'question') return `[/${label}/]`
  if (node.type === 'agent') return `[[${label}]]`
  return `[${label}]`
}
