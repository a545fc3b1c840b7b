// Finds the next nodes after a superstep, from edges, routes, commands and joins. Pure, except for the routes, which
// are user code: their choice is checked here and recorded with the reply.
import type { Mutable } from '../kernel/content.ts'
import type { GraphState } from './channel.ts'
import type { Edge, Graph } from './graph-definition.ts'
import { GraphError, errorText } from './error.ts'
import type { Checkpoint, NodeTask } from './checkpoint.ts'
import { END, isSend, START, type GotoTarget, type NodeOutput } from './planner-node.ts'

/** A finished node and its output. */
export type FinishedNode = { readonly node: string; readonly written: NodeOutput }

type NextTasks = Pick<Mutable<Checkpoint>, 'arrived' | 'reached'> & { tasks: NodeTask[] }

/** `state` is the state after the superstep. `left` is null at the start, when no node has run yet. */
export function routeSuperstep(
  graph: Graph,
  point: Checkpoint,
  state: GraphState,
  left: readonly FinishedNode[] | null,
): Checkpoint {
  const next: NextTasks = { tasks: [], ...(point.reached ? { reached: true } : {}) }
  if (point.arrived) next.arrived = { ...point.arrived }
  const walked = new Set<string>()
  for (const { node, written } of left ?? [{ node: START, written: { update: {}, goto: null } }]) {
    if (written.goto !== null) for (const target of written.goto) addTarget(next, target)
    // Several calls of one node count as one arrival.
    else if (!walked.has(node)) {
      walked.add(node)
      for (const edge of graph.edges) followEdge(edge, node, state, next)
    }
  }
  if (next.tasks.length === 0 && !next.reached) throw new GraphError(deadEndText(next))
  const visits = next.tasks.length > 0 ? countVisits(graph, point.visits, next.tasks) : undefined
  const { tasks, arrived, reached } = next
  const waits = arrived && tasks.length > 0 && Object.keys(arrived).length > 0
  return {
    state,
    step: point.step + (left ? 1 : 0),
    tasks,
    ...(waits ? { arrived } : {}),
    ...(visits ? { visits } : {}),
    // Nothing is undone any more once the graph has ended.
    ...(point.done && tasks.length > 0 ? { done: point.done } : {}),
    ...(reached && tasks.length > 0 ? { reached } : {}),
  }
}

/** A command may go only to the targets that its node declares; otherwise the drawing would not match the graph. */
export function checkGoto({ nodes }: Graph, node: string, goto: readonly GotoTarget[], task: number): void {
  const may = nodes.get(node)?.to ?? []
  for (const target of goto) {
    const name = typeof target === 'string' ? target : isSend(target) ? target.node : ''
    if (!may.includes(name))
      throw new GraphError(
        `InvalidGoto: node "${node}" goes to "${name}"; it may go to ${may.join(', ') || 'no node by a command'}.`,
        [task],
      )
  }
}

function followEdge(edge: Edge, node: string, state: GraphState, next: NextTasks): void {
  if (edge.type === 'edge' && edge.from === node) addTarget(next, edge.to)
  else if (edge.type === 'route' && edge.from === node)
    for (const target of chooseTargets(edge, state)) addTarget(next, target)
  else if (edge.type === 'join' && edge.from.includes(node)) arriveAtJoin(edge, node, next)
}

function arriveAtJoin({ from, to }: Extract<Edge, { type: 'join' }>, node: string, next: NextTasks): void {
  const key = `${from.join('+')} > ${to}`
  const { [key]: before = [], ...others } = next.arrived ?? {}
  const here = before.includes(node) ? before : [...before, node]
  const all = from.every((name) => here.includes(name))
  next.arrived = all ? others : { ...others, [key]: here }
  if (all) addTarget(next, to)
}

function chooseTargets({ from, to, by }: Extract<Edge, { type: 'route' }>, state: GraphState): readonly GotoTarget[] {
  let choice: GotoTarget | readonly GotoTarget[]
  try {
    choice = by(state as never)
  } catch (error) {
    throw new GraphError(`The route of "${from}" failed: ${errorText(error)}`)
  }
  const all = Array.isArray(choice) ? (choice as readonly GotoTarget[]) : [choice as GotoTarget]
  for (const target of all) {
    const name = typeof target === 'string' ? target : isSend(target) ? target.node : String(target)
    if (!to.includes(name) || (name === END && typeof target !== 'string'))
      throw new GraphError(`InvalidRoute: the route of "${from}" chose "${name}"; it may choose ${to.join(', ')}.`)
  }
  return all
}

/** A node is called once, however many edges lead to it. Each `send` of a fan-out is called. */
function addTarget(next: NextTasks, target: GotoTarget): void {
  if (typeof target !== 'string') next.tasks.push({ node: target.node, sent: target.args, items: [] })
  else if (target === END) next.reached = true
  else if (!next.tasks.some(({ node, sent }) => node === target && sent === undefined))
    next.tasks.push({ node: target, items: [] })
}

function countVisits(
  { visitsMax }: Graph,
  before: Checkpoint['visits'],
  tasks: readonly NodeTask[],
): Checkpoint['visits'] {
  if (visitsMax === null) return undefined
  const visits: Record<string, number> = { ...before }
  for (const { node } of tasks) {
    const times = (visits[node] ?? 0) + 1
    visits[node] = times
    if (times > visitsMax)
      throw new GraphError(
        `RecursionLimit: node "${node}" would run for the ${times}th time; it may run ${visitsMax} times.`,
      )
  }
  return visits
}

function deadEndText({ arrived = {} }: NextTasks): string {
  const waits = Object.entries(arrived).map(([key, here]) => `${key} (only ${here.join(', ')} arrived)`)
  const why = waits.length > 0 ? `It still waits: ${waits.join('; ')}.` : 'No route chose anything.'
  return `DeadEnd: nothing is left to run, and END was not reached. ${why}`
}
