// A graph as output: JSON for programs, Mermaid for people. It follows the order of the definition, so the same graph
// gives the same text.
import type { Json } from '../kernel/content.ts'
import type { Edge, Graph } from './graph-definition.ts'
import { assert } from '../kernel/failure.ts'
import { drawingIn, mermaidOf } from '../view/graph-drawing.ts'
import type { PlannerNode } from './planner-node.ts'

/** A graph as data, to be shown or compared elsewhere. */
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

function nodeJson(name: string, step: PlannerNode): Json {
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

/** Draws from the JSON alone, so a page without the graph itself gets the same drawing. */
export function toMermaid(graph: Graph): string {
  const drawing = drawingIn(toJson(graph))
  assert(drawing, 'a graph is not read back from its JSON')
  return mermaidOf(drawing)
}
