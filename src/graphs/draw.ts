// A graph as others read it: JSON for programs, Mermaid for people. In the order of its definition, so the same graph is the same text.
import type { Json } from '../kernel/content.ts'
import type { Edge, Graph } from './definition.ts'
import { END, START, type Step } from './step.ts'

export function toJson({ name, description, channels, nodes, edges, onInterrupt, onFailure }: Graph): Json {
  return {
    name,
    ...(description === '' ? {} : { description }),
    state: Object.fromEntries(Object.entries(channels).map(([channel, { type }]) => [channel, type])),
    nodes: [...nodes].map(([node, step]) => nodeJson(node, step)),
    edges: edges.map(edgeJson),
    ...(onInterrupt === null ? {} : { onInterrupt }),
    ...(onFailure.size === 0 ? {} : { onFailure: Object.fromEntries(onFailure) }),
  }
}

function nodeJson(name: string, step: Step): Json {
  const { type, description, gate, to, retries, policy, child, totalMs } = step
  const { effect, timeoutMs } = step.tool(name)
  return {
    name,
    type,
    ...(description === '' ? {} : { description }),
    ...(type === 'run' || type === 'map' ? { effect, timeoutMs } : {}),
    ...(child === null ? {} : { agent: child }),
    ...(gate === 'auto' ? {} : { approval: gate }),
    ...(retries === 0 ? {} : { retries }),
    ...(policy === null ? {} : { policy }),
    ...(totalMs === undefined ? {} : { totalMs }),
    ...(to.length === 0 ? {} : { to }),
  }
}

function edgeJson({ type, from, to }: Edge): Json {
  return { type, from, to }
}

/** Gates have six corners, questions lean, children have double sides, and what is only chosen is dotted. */
export function toMermaid({ nodes, edges, onInterrupt, onFailure }: Graph): string {
  // Some words mean something to Mermaid, so nodes have numbers there.
  const ids = new Map([START, ...nodes.keys(), END].map((name, i) => [name, `n${i}`]))
  const id = (name: string): string => ids.get(name) ?? name
  const lines = [`${id(START)}([START])`, ...[...nodes].map(([name, step]) => `${id(name)}${shape(name, step)}`)]
  lines.push(`${id(END)}([END])`)
  for (const edge of edges) lines.push(...drawn(edge, id))
  for (const [name, { to }] of nodes) for (const target of to) lines.push(`${id(name)} -. goto .-> ${id(target)}`)
  for (const [name, by] of onFailure) lines.push(undoing(id(name), by === true ? null : id(by)))
  if (onInterrupt !== null) lines.push(`stop([STOP]) -. stopped .-> ${id(onInterrupt)}`)
  return `${['flowchart TD', ...lines.map((line) => `  ${line}`)].join('\n')}\n`
}

function undoing(from: string, by: string | null): string {
  return by === null ? `${from} -. failed .-> ${from}u["undo"]` : `${from} -. failed .-> ${by}`
}

function drawn(edge: Edge, id: (name: string) => string): readonly string[] {
  if (edge.type === 'edge') return [`${id(edge.from)} --> ${id(edge.to)}`]
  if (edge.type === 'join') return [`${edge.from.map(id).join(' & ')} -- all --> ${id(edge.to)}`]
  return edge.to.map((to) => `${id(edge.from)} -.-> ${id(to)}`)
}

const GATES: Readonly<Record<Step['gate'], string>> = {
  auto: '',
  ask: 'approval',
  always: 'approval, always',
  never: 'never runs',
  by_arguments: 'approval, by its arguments',
}

function agentsText(child: string | readonly string[]): string {
  if (typeof child === 'string') return `agent ${child}`
  return child.length === 1 ? `agent ${child.join()}` : `agents ${child.join(', ')}`
}

function shape(name: string, { type, gate, child }: Step): string {
  const agent = child === null || child === name ? '' : `<br/>${agentsText(child)}`
  const label = `"${name}${agent}${gate === 'auto' ? '' : `<br/>${GATES[gate]}`}"`
  if (gate !== 'auto') return `{{${label}}}`
  if (type === 'question') return `[/${label}/]`
  if (type === 'agent') return `[[${label}]]`
  return `[${label}]`
}
