// Where a graph goes after a superstep: edges, routes, commands and joins give the next tasks. Pure, but for the routes themselves,
// which are user code: what they choose is checked here and recorded with the reply.
import type { Mutable } from '../kernel/content.ts'
import type { State } from './channel.ts'
import type { Edge, Graph } from './definition.ts'
import { GraphError, errorText } from './error.ts'
import type { Point, Task } from './checkpoint.ts'
import { END, isSend, START, type Target, type Written } from './step.ts'

/** A node that is done, with what it wrote. */
export type Left = { readonly node: string; readonly written: Written }

type Next = Pick<Mutable<Point>, 'arrived' | 'reached'> & { tasks: Task[] }

/** `state` is the state after the superstep. `left` is null at the start: no node has run yet. */
export function routed(graph: Graph, point: Point, state: State, left: readonly Left[] | null): Point {
  const next: Next = { tasks: [], ...(point.reached ? { reached: true } : {}) }
  if (point.arrived) next.arrived = { ...point.arrived }
  const walked = new Set<string>()
  for (const { node, written } of left ?? [{ node: START, written: { update: {}, goto: null } }]) {
    if (written.goto !== null) for (const target of written.goto) go(next, target)
    // Several calls of one node are one arrival.
    else if (!walked.has(node)) {
      walked.add(node)
      for (const edge of graph.edges) follow(edge, node, state, next)
    }
  }
  if (next.tasks.length === 0 && !next.reached) throw new GraphError(deadEnd(next))
  const visits = next.tasks.length > 0 ? visited(graph, point.visits, next.tasks) : undefined
  const { tasks, arrived, reached } = next
  const waits = arrived && tasks.length > 0 && Object.keys(arrived).length > 0
  return {
    state,
    step: point.step + (left ? 1 : 0),
    tasks,
    ...(waits ? { arrived } : {}),
    ...(visits ? { visits } : {}),
    // After its end nothing is undone any more.
    ...(point.done && tasks.length > 0 ? { done: point.done } : {}),
    ...(reached && tasks.length > 0 ? { reached } : {}),
  }
}

/** A command may go only where its node says it may: else the drawing would not be the graph. */
export function checkGoto({ nodes }: Graph, node: string, goto: readonly Target[], task: number): void {
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

function follow(edge: Edge, node: string, state: State, next: Next): void {
  if (edge.type === 'edge' && edge.from === node) go(next, edge.to)
  else if (edge.type === 'route' && edge.from === node) for (const target of chosen(edge, state)) go(next, target)
  else if (edge.type === 'join' && edge.from.includes(node)) arrive(edge, node, next)
}

function arrive({ from, to }: Extract<Edge, { type: 'join' }>, node: string, next: Next): void {
  const key = `${from.join('+')} > ${to}`
  const { [key]: before = [], ...others } = next.arrived ?? {}
  const here = before.includes(node) ? before : [...before, node]
  const all = from.every((name) => here.includes(name))
  next.arrived = all ? others : { ...others, [key]: here }
  if (all) go(next, to)
}

function chosen({ from, to, by }: Extract<Edge, { type: 'route' }>, state: State): readonly Target[] {
  let choice: Target | readonly Target[]
  try {
    choice = by(state as never)
  } catch (error) {
    throw new GraphError(`The route of "${from}" failed: ${errorText(error)}`)
  }
  const all = Array.isArray(choice) ? (choice as readonly Target[]) : [choice as Target]
  for (const target of all) {
    const name = typeof target === 'string' ? target : isSend(target) ? target.node : String(target)
    if (!to.includes(name) || (name === END && typeof target !== 'string'))
      throw new GraphError(`InvalidRoute: the route of "${from}" chose "${name}"; it may choose ${to.join(', ')}.`)
  }
  return all
}

/** A node is called once however many ways lead to it; each branch of a fan-out is called. */
function go(next: Next, target: Target): void {
  if (typeof target !== 'string') next.tasks.push({ node: target.node, sent: target.args, items: [] })
  else if (target === END) next.reached = true
  else if (!next.tasks.some(({ node, sent }) => node === target && sent === undefined))
    next.tasks.push({ node: target, items: [] })
}

function visited({ visitsMax }: Graph, before: Point['visits'], tasks: readonly Task[]): Point['visits'] {
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

function deadEnd({ arrived = {} }: Next): string {
  const waits = Object.entries(arrived).map(([key, here]) => `${key} (only ${here.join(', ')} arrived)`)
  const why = waits.length > 0 ? `It still waits: ${waits.join('; ')}.` : 'No route chose anything.'
  return `DeadEnd: nothing is left to run, and END was not reached. ${why}`
}
